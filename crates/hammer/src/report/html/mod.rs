//! The report as one self-contained HTML file without scripts.

mod charts;
pub(crate) mod timeline;

use std::fmt::Write;

use super::cluster;
use super::comparisons;
use super::escape::escape;
use super::plot::COLOURS;
use super::quality;
use super::table::{self, Table};
use super::view::{Section, sections};
use crate::figures::{bytes, count, percent};
use crate::record::{Criterion, Report, RunRecord, best};
use charts::Chart;

/// The style sheet of all pages.
pub(crate) const STYLE: &str = include_str!("style.css");

// Writing into a string cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => { let _ = writeln!($out, $($arguments)*); };
}

/// Formats the page.
pub(super) fn page(report: &Report) -> String {
    let title = escape(&report.title);
    let mut body = String::new();
    header(&mut body, report);
    let sections = sections(report);
    for part in &sections {
        section(&mut body, part);
    }
    for comparison in comparisons::comparisons(&sections) {
        put!(
            &mut body,
            "<section>\n<h2>{}</h2>",
            escape(&comparison.heading())
        );
        rows(&mut body, &comparison.table, &[]);
        put!(&mut body, "</section>");
    }
    method(&mut body);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n<main>\n{body}</main>\n</html>\n"
    )
}

fn header(out: &mut String, report: &Report) {
    put!(out, "<header>\n<h1>{}</h1>", escape(&report.title));
    if let Some(run) = report.runs.first() {
        let machine = &run.machine;
        let processor = escape(&machine.processor);
        let kernel = escape(&machine.kernel);
        put!(
            out,
            "<p class=\"soft\">{} · {processor}, {} cores · Linux {kernel} · hammer {}</p>",
            date(run.started_unix_s),
            machine.cores,
            escape(&run.version)
        );
    }
    put!(out, "</header>");
}

fn section(out: &mut String, section: &Section<'_>) {
    put!(
        out,
        "<section>\n<h2>{}</h2>",
        escape(&heading(&section.scenario.name))
    );
    let words = section.command().into_iter();
    let words: Vec<String> = words
        .map(|word| format!("<code>{}</code>", escape(&word)))
        .collect();
    put!(out, "<p class=\"command\">{}</p>", words.join(" "));
    summary(out, section);
    warnings(out, section);
    legend(out, section);
    for row in charts::rows(section) {
        put!(
            out,
            "<h2>{}</h2>\n<p class=\"soft\">{}</p>\n<div class=\"charts\">",
            row.heading,
            escape(&row.note)
        );
        for chart in &row.charts {
            figure(out, chart, row.across);
        }
        put!(out, "</div>");
    }
    for run in section.runs() {
        browsers(out, run);
    }
    servers(out, section);
    put!(out, "</section>");
}

fn heading(scenario: &str) -> String {
    let mut letters = scenario.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn summary(out: &mut String, section: &Section<'_>) {
    let names: Vec<&str> = section.servers.iter().map(|group| group.name).collect();
    let tables = cluster::of(section);
    if tables.is_empty() {
        let table = quality::of(section).unwrap_or_else(|| table::of(section));
        rows(out, &table, &names);
    }
    for table in &tables {
        rows(out, table, &names);
    }
}

/// Writes a table. `servers` are coloured by their index.
fn rows(out: &mut String, table: &Table, servers: &[&str]) {
    put!(out, "<div class=\"card scroll\">\n<table>\n<thead><tr>");
    for heading in &table.headings {
        put!(out, "<th scope=\"col\">{}</th>", escape(heading));
    }
    put!(out, "</tr></thead>\n<tbody>");
    for row in &table.rows {
        let name = row.first().map_or("", |entry| entry.text.as_str());
        let colour = servers.iter().position(|server| *server == name);
        let (class, colour) = match colour {
            Some(at) => ("server", format!("s{}", at % COLOURS)),
            None => ("ceiling", "ceiling".to_owned()),
        };
        put!(
            out,
            "<tr class=\"{class}\" style=\"--colour: var(--{colour})\">"
        );
        for entry in row {
            let spread = entry.spread.as_deref().map(escape);
            let spread = spread.map(|text| format!("<span class=\"spread\">{text}</span>"));
            put!(
                out,
                "<td>{}{}</td>",
                escape(&entry.text),
                spread.unwrap_or_default()
            );
        }
        put!(out, "</tr>");
    }
    put!(out, "</tbody>\n</table>\n</div>");
}

fn warnings(out: &mut String, section: &Section<'_>) {
    let all = section.runs().flat_map(|run| {
        let warning = |text: &String| format!("{}, round {}: {text}", run.server.name, run.round);
        run.summary.warnings.iter().map(warning)
    });
    let all: Vec<String> = all.collect();
    if all.is_empty() {
        return;
    }
    put!(
        out,
        "<div class=\"warnings\" role=\"note\"><strong>Doubts about these figures</strong>\n<ul>"
    );
    for warning in all {
        put!(out, "<li>{}</li>", escape(&warning));
    }
    put!(out, "</ul></div>");
}

fn legend(out: &mut String, section: &Section<'_>) {
    put!(out, "<ul class=\"legend\">");
    for (at, group) in section.servers.iter().enumerate() {
        put!(
            out,
            "<li style=\"--colour: var(--s{})\">{}</li>",
            at % COLOURS,
            escape(group.name)
        );
    }
    if !section.ceilings().is_empty() {
        put!(
            out,
            "<li class=\"dashed\" style=\"--colour: var(--ceiling)\">ceilings of one core</li>"
        );
    }
    put!(out, "</ul>");
}

fn figure(out: &mut String, chart: &Chart, x: &str) {
    let label = format!("{} over {x}. {}", chart.title, chart.caption);
    // Drawing into a string fails only if the plot itself is impossible. Then the page says so in
    // its place.
    let svg = chart
        .plot
        .to_svg(&label)
        .unwrap_or_else(|error| format!("<p>{}</p>", escape(&error.to_string())));
    put!(
        out,
        "<figure>\n<figcaption><h3>{}</h3>{}</figcaption>",
        chart.title,
        escape(&chart.caption)
    );
    put!(out, "{svg}\n<div class=\"x\">{x}</div>\n</figure>");
}

/// Writes how the participants of real browsers fared.
fn browsers(out: &mut String, run: &RunRecord) {
    let Some(timeline) = timeline::of(run) else {
        return;
    };
    put!(
        out,
        "<h2>Connection progression: {}</h2>\n<figure>\n<figcaption>{}</figcaption>\n{}\n\
         <div class=\"x\">seconds</div>\n</figure>",
        escape(&run.server.name),
        timeline::LEGEND,
        timeline.to_svg()
    );
}

/// Writes how each server was started, and which of its threads were busy in the best step.
fn servers(out: &mut String, section: &Section<'_>) {
    put!(out, "<h2>Servers</h2>\n<dl class=\"card\">");
    for (round, ceiling) in section.ceilings().iter().enumerate() {
        for criterion in Criterion::BOTH {
            let Some(bare) = ceiling.of(criterion) else {
                continue;
            };
            let (all, crypto, send) = (bare.crypto_ns + bare.send_ns, bare.crypto_ns, bare.send_ns);
            put!(
                out,
                "<dt>ceiling {}, round {}</dt><dd>{all:.0} ns a packet: {crypto:.0} for header and encryption, \
                 {send:.0} for sending; {} delivered to {} addresses; {}, {} between two system calls</dd>",
                criterion.name(),
                round + 1,
                percent(bare.delivered_share),
                count(bare.addresses.into()),
                bare.joined(),
                bytes(bare.batch_bytes as f64)
            );
        }
    }
    for group in &section.servers {
        let Some(run) = group.runs.first() else {
            continue;
        };
        let server = &run.server;
        let mut lines = Vec::new();
        let text = |label: &str, value: &Option<String>| {
            value
                .as_ref()
                .map(|v| format!("{label}<code>{}</code>", escape(v)))
        };
        lines.extend(text("", &server.command));
        lines.extend(text("", &server.url));
        lines.extend(text("media protected by ", &server.srtp_profile));
        lines.extend(busiest(run));
        put!(
            out,
            "<dt>{}</dt><dd>{}</dd>",
            escape(group.name),
            lines.join("<br>")
        );
    }
    put!(out, "</dl>");
}

fn busiest(run: &RunRecord) -> Option<String> {
    let best = best(&run.steps, run.summary.criterion)?;
    let sample = run
        .samples
        .iter()
        .rev()
        .find(|sample| sample.at_s <= best.end_s + 0.1)?;
    let busiest = sample
        .server
        .as_ref()?
        .busiest
        .iter()
        .filter(|thread| thread.cpu_cores >= 0.005);
    let threads: Vec<String> = busiest
        .map(|thread| format!("{} {}", escape(&thread.name), percent(thread.cpu_cores)))
        .collect();
    (!threads.is_empty()).then(|| {
        format!(
            "busiest threads at {} participants: {}",
            best.participants,
            threads.join(", ")
        )
    })
}

fn method(out: &mut String) {
    put!(
        out,
        "<section>\n<h2>How to read this</h2>\n\
         <p>A number of participants is carried <em>in time</em> when at least 99.5 % of the packets arrive that are due to \
         all of them together, and of what those who decrypt get no more than 0.1 % is lost and 99 of 100 packets arrive \
         within one frame interval, or the time that <code>--max-delay</code> set. It is carried <em>at all</em> when 99.5 % \
         arrive, however late. Throughput is UDP payload as it arrives; the share of the ceiling compares packets per \
         second.</p>\n\
         <p>The ceilings are those of a bare loop of encrypting and sending the same packets on the server\u{2019}s core, over \
         the same link, to as many addresses that are read in the same way. In time no frame of a source is joined to another; \
         at all they are, as far as it pays. The efficiency compares CPU time for a packet with as many participants. Compare \
         figures of one run on one machine only.</p>\n</section>"
    );
}

/// Formats seconds since 1970 as a date and time in UTC (Howard Hinnant's civil_from_days).
pub(crate) fn date(unix_s: f64) -> String {
    let seconds = unix_s.max(0.0) as i64;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year}-{month:02}-{day:02} {:02}:{:02} UTC",
        second / 3_600,
        second / 60 % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    #[test]
    fn the_page_is_whole_and_loads_nothing() {
        let mut report = example::report();
        report.title = "<script>alert(1)</script>".to_owned();
        let page = page(&report);
        assert!(!page.contains("<script") && !page.contains("example of a <warning>"));
        // The only addresses are names of namespaces.
        let addresses = page.matches("http").count();
        assert_eq!(addresses, page.matches("xmlns=\"http").count());
        assert_eq!(page.matches("<svg ").count(), 19);
        for ceiling in [
            "ceiling in time",
            "ceiling at all",
            "% in time<",
            "% at all<",
        ] {
            assert!(page.contains(ceiling), "{ceiling}");
        }
        assert!(!page.contains("#0102"), "all colours are the style sheet's");
    }

    #[test]
    fn dates_of_known_times() {
        assert_eq!(date(0.0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_825_600.0), "2000-02-29 12:00 UTC");
        assert_eq!(date(1_767_225_599.0), "2025-12-31 23:59 UTC");
    }
}
