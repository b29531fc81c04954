//! The state of a cluster as text.

use std::fmt::Write;

use serde_json::Value;

/// Returns it.
pub(super) fn text(status: &Value) -> String {
    let mut out = String::new();
    let node = word(status, "node");
    let bus = match (flag(status, "bus_connected"), flag(status, "confirmed")) {
        (true, true) => "connected",
        (true, false) => "connected, and has not confirmed this node",
        (false, _) => "away",
    };
    line(
        &mut out,
        format_args!("This node   {node} of {}", word(status, "cluster")),
    );
    line(&mut out, format_args!("Bus         {bus}"));
    if let Some(days) = status.get("certificate_days").and_then(Value::as_i64) {
        line(&mut out, format_args!("Certificate valid for {days} days"));
    }
    let mut nodes = Table::new([
        "NODE",
        "STATE",
        "REGION",
        "LOAD",
        "MBIT/S OUT",
        "SEEN",
        "CONTROL",
    ]);
    for it in list(status, "nodes") {
        let load = it.get("load").unwrap_or(&Value::Null);
        let percent = number(load, "worker") * 100.0;
        let age = number(it, "age_ms") / 1_000.0;
        let control = list(it, "control").iter().filter_map(Value::as_str);
        nodes.row([
            word(it, "node"),
            word(it, "state"),
            word(it, "region"),
            format!("{percent:.0} %"),
            format!("{:.1}", number(load, "mbps_out")),
            format!("{age:.1} s"),
            control.collect::<Vec<_>>().join(" "),
        ]);
    }
    nodes.write(&mut out);
    let mut links = Table::new([
        "LINK TO",
        "STATE",
        "VERSION",
        "ROUND TRIP",
        "QUEUED",
        "MEDIA ROUND TRIP",
        "LOST",
        "MBIT/S OUT",
        "IN",
        "STREAMS OUT",
        "IN",
        "CARRIED",
        "SOURCES THROUGH",
    ]);
    for it in list(status, "links") {
        let round_trip = milliseconds(it);
        let version = it.get("version").and_then(Value::as_u64);
        let media = it.get("media");
        let through = it.get("through").and_then(Value::as_str);
        let state = word(it, "state");
        let of_media = |text: fn(&Value) -> String| media.map_or_else(String::new, text);
        links.row([
            word(it, "node"),
            through.map_or(state.clone(), |through| {
                format!("{state} through {through}")
            }),
            version.map_or_else(String::new, |it| it.to_string()),
            round_trip,
            format!("{}", number(it, "queued")),
            of_media(media_round_trip),
            of_media(|it| format!("{:.1} %", number(it, "lost") * 100.0)),
            of_media(|it| format!("{:.1}", number(it, "mbps_out"))),
            of_media(|it| format!("{:.1}", number(it, "mbps_in"))),
            of_media(|it| format!("{}", number(it, "streams_out"))),
            of_media(|it| format!("{}", number(it, "streams_in"))),
            of_media(|it| format!("{}", number(it, "carried_streams"))),
            of_media(sources_through),
        ]);
    }
    links.write(&mut out);
    let mut homes = Table::new(["ROOM", "HOME", "REVISION", "HERE", "NODES", "PEOPLE"]);
    for it in list(status, "homes") {
        let members = list(it, "members").iter().filter_map(Value::as_str);
        homes.row([
            word(it, "what"),
            word(it, "node"),
            format!("{}", number(it, "revision")),
            match (flag(it, "open"), flag(it, "registered")) {
                (true, true) => "registered",
                (true, false) => "open",
                (false, _) => "",
            }
            .to_owned(),
            members.collect::<Vec<_>>().join(" "),
            format!("{}", number(it, "items")),
        ]);
    }
    homes.write(&mut out);
    let disagreements = list(status, "disagreements");
    match disagreements.is_empty() {
        true => line(&mut out, format_args!("\nNothing disagrees.")),
        false => {
            line(&mut out, format_args!("\nWhat disagrees:"));
            for it in disagreements.iter().filter_map(Value::as_str) {
                line(&mut out, format_args!("- {it}"));
            }
        }
    }
    out.trim_end().to_owned()
}

/// The round trip of a media link, unless nothing crosses it.
fn media_round_trip(media: &Value) -> String {
    match media.get("works").and_then(Value::as_bool) {
        Some(false) => "broken".to_owned(),
        _ => milliseconds(media),
    }
}

/// The nodes through which sources of the other node come, with their number.
fn sources_through(media: &Value) -> String {
    let nodes = media.get("through").and_then(Value::as_object);
    let nodes = nodes.into_iter().flatten();
    let named = nodes.map(|(node, sources)| format!("{node} ({sources})"));
    named.collect::<Vec<_>>().join(" ")
}

/// Rows whose columns are as wide as their longest entry.
struct Table<const N: usize>(Vec<[String; N]>);

impl<const N: usize> Table<N> {
    fn new(head: [&str; N]) -> Self {
        Table(vec![head.map(str::to_owned)])
    }

    fn row(&mut self, row: [String; N]) {
        self.0.push(row);
    }

    /// Writes it after an empty line. A table without rows is left out.
    fn write(&self, out: &mut String) {
        if self.0.len() < 2 {
            return;
        }
        let mut widths = [0; N];
        for row in &self.0 {
            for (width, entry) in widths.iter_mut().zip(row) {
                *width = (*width).max(entry.chars().count());
            }
        }
        out.push('\n');
        for row in &self.0 {
            let mut text = String::new();
            for (width, entry) in widths.iter().zip(row) {
                // Writing to a string cannot fail.
                let _ = write!(text, "{entry:<width$}  ");
            }
            line(out, format_args!("{}", text.trim_end()));
        }
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{text}");
}

fn word(value: &Value, key: &str) -> String {
    let text = value.get(key).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn number(value: &Value, key: &str) -> f64 {
    value.get(key).and_then(Value::as_f64).unwrap_or_default()
}

/// Returns the round trip of a link, or nothing if it is not known.
fn milliseconds(value: &Value) -> String {
    let us = value.get("round_trip_us").and_then(Value::as_f64);
    us.map_or_else(String::new, |us| format!("{:.2} ms", us / 1_000.0))
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_link_says_what_is_carried_and_through_whom_sources_come() {
        let status = json!({
            "node": "a", "cluster": "portunus", "bus_connected": true, "confirmed": true,
            "nodes": [], "homes": [], "disagreements": [],
            "links": [{ "node": "b", "state": "up", "version": 1, "round_trip_us": 900, "queued": 0,
                "media": { "lost": 0.0, "mbps_out": 0.0, "mbps_in": 0.0, "streams_out": 2,
                    "streams_in": 0, "works": false, "carried_streams": 2, "through": { "c": 3 } } }],
        });
        let text = text(&status);
        let link = text.lines().find(|line| line.starts_with("b "));
        let words: Vec<_> = link.into_iter().flat_map(str::split_whitespace).collect();
        assert!(words.contains(&"broken"), "{text}");
        assert_eq!(
            words.get(words.len() - 3..),
            Some(&["2", "c", "(3)"][..]),
            "{text}"
        );
    }

    #[test]
    fn columns_are_aligned_and_empty_tables_are_left_out() {
        let status = json!({
            "node": "a", "cluster": "portunus", "bus_connected": true, "confirmed": true, "certificate_days": 700,
            "nodes": [{ "node": "a", "state": "serving", "region": "", "control": ["192.0.2.1:7900"],
                "load": { "worker": 0.25, "mbps_out": 12.0 }, "age_ms": 900 }],
            "links": [{ "node": "b", "state": "up", "through": "c", "version": 2, "queued": 0 }],
            "homes": [], "disagreements": ["b is on the bus, and there is no link to it"],
        });
        let expected = "This node   a of portunus\nBus         connected\nCertificate valid for 700 days\n\n\
            NODE  STATE    REGION  LOAD  MBIT/S OUT  SEEN   CONTROL\n\
            a     serving          25 %  12.0        0.9 s  192.0.2.1:7900\n\n\
            LINK TO  STATE         VERSION  ROUND TRIP  QUEUED  MEDIA ROUND TRIP  LOST  MBIT/S OUT  IN  STREAMS OUT  IN  CARRIED  SOURCES THROUGH\n\
            b        up through c  2                    0\n\n\
            What disagrees:\n- b is on the bus, and there is no link to it";
        assert_eq!(text(&status), expected);
    }
}
