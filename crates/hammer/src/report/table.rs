//! The table of the quoted figures, for terminals and for the HTML report.

use super::view::{Group, Section, Spread};
use crate::figures::{bits_per_s, bytes, count, digits, percent, ratio, time_us};
use crate::record::{BareLoop, Calm, Carried, Criterion, RunRecord, Summary};

/// A column: its heading, and its entry for a server.
struct Column {
    heading: String,
    entry: Box<Fill>,
}

/// Returns a server's entry in the row of a criterion.
type Fill = dyn Fn(&Group<'_>, Criterion) -> Option<Entry>;

/// An entry of a table: the figure, and its spread over several rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) text: String,
    pub(super) spread: Option<String>,
}

/// A table with headings, and a row per server that starts with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<Entry>>,
}

/// Returns the table of a section: a row per server with what it carried in time, and one with what
/// it carried at all if that was searched. Empty columns are omitted.
pub(super) fn of(section: &Section<'_>) -> Table {
    let columns = columns(section);
    let mut table = Table::default();
    let lines = || {
        let groups = section.servers.iter();
        groups.flat_map(|group| group.criteria().map(move |criterion| (group, criterion)))
    };
    let used: Vec<&Column> = columns
        .iter()
        .filter(|column| {
            lines().any(|(group, criterion)| (column.entry)(group, criterion).is_some())
        })
        .collect();
    table.headings.push("server".to_owned());
    table.headings.push("carried".to_owned());
    table
        .headings
        .extend(used.iter().map(|column| column.heading.clone()));
    for criterion in Criterion::BOTH {
        table.rows.extend(ceiling_row(section, &used, criterion));
    }
    for (group, criterion) in lines() {
        let name = Entry {
            text: group.name.to_owned(),
            spread: group.version().map(str::to_owned),
        };
        let entries = used
            .iter()
            .map(|column| (column.entry)(group, criterion).unwrap_or_default());
        let first = [name, Entry::of(criterion.name())];
        table.rows.push(first.into_iter().chain(entries).collect());
    }
    table
}

const PARTICIPANTS: &str = "participants";
const THROUGHPUT: &str = "throughput";
const OF_CEILING: &str = "of ceiling";
const PER_CORE: &str = "per core";
const DELIVERED: &str = "delivered";

fn columns(section: &Section<'_>) -> Vec<Column> {
    // In an audio room, and in a transcoded call, no arriving packet is one that a source sent.
    // Delays are relative to the clock of 20 ms.
    let has = |name: &str| section.scenario.options.contains_key(name);
    let is_mixed = section.scenario.name == "bridge" || has("far-codec") || has("call");
    let delay = if is_mixed { "late" } else { "delay" };
    let mut columns = vec![
        most(PARTICIPANTS, count, |m| Some(m.participants.into())),
        most("connections", count, |m| {
            // If each participant has one, the number of PeerConnections adds nothing.
            let several = m.peer_connections > m.participants;
            several.then_some(m.peer_connections.into())
        }),
        most(THROUGHPUT, bits_per_s, |m| {
            // Accounts receive no media.
            let has_media = m.received_bps > 0.0 || m.participants == 0;
            has_media.then_some(m.received_bps)
        }),
        of_bare(OF_CEILING, |m| m.ceiling_share),
    ];
    if let Some(peer) = section.peer() {
        let carried = Criterion::BOTH.map(|criterion| {
            let pps = peer.most(criterion, |m| Some(m.received_pps))?;
            Some(pps.median).filter(|pps| *pps > 0.0)
        });
        let [in_time, at_all] = carried;
        columns.push(Column {
            heading: format!("vs {}", peer.name),
            entry: Box::new(move |group, criterion| {
                let of = match criterion {
                    Criterion::InTime => in_time?,
                    Criterion::AtAll => at_all?,
                };
                let ratio_of = group.most(criterion, |m| Some(m.received_pps / of))?;
                Some(entry(ratio_of, &ratio))
            }),
        });
    }
    columns.extend([
        most(DELIVERED, percent, |m| Some(m.delivered_share)),
        most("CPU cores", digits, |m| m.server_cpu_cores),
        cpu_against(section.peer()),
        Column {
            heading: "projected".to_owned(),
            entry: Box::new(|group, criterion| {
                let is_first = group.criteria().next() == Some(criterion);
                let projected = group.figure(projected).filter(|_| is_first)?;
                Some(entry(projected, &count))
            }),
        },
        most(PER_CORE, bits_per_s, |m| {
            let bps = Some(m.received_bps).filter(|bps| *bps > 0.0)?;
            Some(bps / m.server_cpu_cores?)
        }),
        most(
            "CPU/packet",
            |ns| time_us(ns / 1e3),
            |m| m.cpu_ns_per_packet,
        ),
        of_bare("of loop\u{2019}s efficiency", |m| m.efficiency_share),
        most(&format!("{delay} p50"), time_us, |m| Some(m.delay?.p50_us)),
        most(&format!("{delay} p90"), time_us, |m| Some(m.delay?.p90_us)),
        most(&format!("{delay} p99"), time_us, |m| Some(m.delay?.p99_us)),
        column("set-up p50", time_us, |s| Some(s.set_up?.server?.p50_us)),
        column("set-up p99", time_us, |s| Some(s.set_up?.server?.p99_us)),
        column("to far end", percent, |s| Some(s.far?.delivered_share)),
        column("far p50", time_us, |s| Some(s.far?.delay?.p50_us)),
        column("far p90", time_us, |s| Some(s.far?.delay?.p90_us)),
        column("far p99", time_us, |s| Some(s.far?.delay?.p99_us)),
        column("refreshes/s", digits, |s| {
            Some(s.registered?.refreshes_per_s)
        }),
        column("CPU/refresh", time_us, |s| s.registered?.cpu_us_per_refresh),
        column("mouth to ear p50", time_us, |s| {
            Some(s.sound.as_ref()?.mouth_to_ear?.p50_us)
        }),
        column("mouth to ear p99", time_us, |s| {
            Some(s.sound.as_ref()?.mouth_to_ear?.p99_us)
        }),
        column("talkers heard", percent, |s| s.sound.as_ref()?.heard_share),
        column("quality", digits, |s| Some(s.quality.as_ref()?.median)),
        column("memory each", bytes, |s| {
            let alone = s.peer_connections <= s.carried_participants;
            let of_connection = s.bytes_per_peer_connection.filter(|_| alone);
            s.bytes_per_participant.or(of_connection)
        }),
        column("memory/connection", bytes, |s| {
            let several = s.peer_connections > s.carried_participants;
            s.bytes_per_peer_connection.filter(|_| several)
        }),
        column("memory growth", percent, |s| {
            s.leaving.as_ref()?.growth_share()
        }),
        column("limited get", bits_per_s, |s| s.limited_bps),
        column("joins/CPU s", count, |s| s.joins_per_cpu_s),
        column("resumed p50", time_us, |s| Some(s.resumed?.delay?.p50_us)),
        column("resumed p99", time_us, |s| Some(s.resumed?.delay?.p99_us)),
        column("resumed last", time_us, |s| Some(s.resumed?.delay?.max_us)),
        column(
            "gap of resumes",
            |ms| time_us(ms * 1e3),
            |s| s.resumed?.longest_gap_ms,
        ),
        column("held", count, |s| {
            Some(s.held.as_ref()?.participants.into())
        }),
        column("held CPU", digits, |s| s.held.as_ref()?.server_cpu_cores),
        column("held efficiency", percent, |s| {
            s.held.as_ref()?.efficiency_share
        }),
        column("held p50", time_us, |s| {
            Some(s.held.as_ref()?.delay?.p50_us)
        }),
        column("held p99", time_us, |s| {
            Some(s.held.as_ref()?.delay?.p99_us)
        }),
        column("calm", percent, |s| Some(calm(s)?.share)),
        column("calm p50", time_us, |s| Some(calm(s)?.delay?.p50_us)),
        column("calm p99", time_us, |s| Some(calm(s)?.delay?.p99_us)),
        column("recorded", percent, |s| {
            Some(s.recorded.as_ref()?.found_share())
        }),
        column("on disk", bytes, |s| {
            Some(s.recorded.as_ref()?.bytes as f64)
        }),
        column("longest gap", |ms| time_us(ms * 1e3), |s| s.longest_gap_ms),
        column("in frames", digits, |s| s.longest_gap_frames),
    ]);
    columns
}

/// Returns the delay without stalls, of the repeated measurement or else of the best step.
fn calm(summary: &Summary) -> Option<Calm> {
    match &summary.held {
        Some(held) => held.calm,
        None => summary.calm,
    }
}

/// Returns the server's CPU time per participant, relative to that of the compared server. If both
/// carried as many, per packet.
fn cpu_against(peer: Option<&Group<'_>>) -> Column {
    let name = peer.map_or("", |peer| peer.name);
    let of_peer = Criterion::BOTH.map(|criterion| {
        let cpu = peer?.most(criterion, cpu_of_packet)?;
        Some(cpu.median).filter(|cpu| *cpu > 0.0)
    });
    Column {
        heading: format!("CPU/packet vs {name}"),
        entry: Box::new(move |group, criterion| {
            let [in_time, at_all] = of_peer;
            let of = match criterion {
                Criterion::InTime => in_time?,
                Criterion::AtAll => at_all?,
            };
            let share = group.most(criterion, |m| Some(cpu_of_packet(m)? / of))?;
            Some(entry(share, &percent))
        }),
    }
}

fn cpu_of_packet(carried: &Carried) -> Option<f64> {
    carried.cpu_ns_per_packet
}

/// Returns the participants for all of the server's CPU time if some was left, with equal costs for
/// each. Returns `None` if one more costs more for all, or little beside what is done once for all.
fn projected(run: &RunRecord) -> Option<f64> {
    let cores = run.server.cores.len().max(1) as f64;
    let share = run.summary.server_cpu_cores? / cores;
    let alike = !["star", "bridge"].contains(&run.scenario.name.as_str());
    let telling = (0.05..0.95).contains(&share) && run.summary.carried_participants > 0;
    (alike && telling).then(|| f64::from(run.summary.carried_participants) / share)
}

/// Returns a column with a figure of the most that was carried by each criterion.
fn most(
    heading: &str,
    write: impl Fn(f64) -> String + 'static,
    figure: impl Fn(&Carried) -> Option<f64> + 'static,
) -> Column {
    Column {
        heading: heading.to_owned(),
        entry: Box::new(move |group, criterion| {
            Some(entry(group.most(criterion, &figure)?, &write))
        }),
    }
}

/// Returns a column with a share of the bare loop, which names its criterion.
fn of_bare(heading: &str, figure: impl Fn(&Carried) -> Option<f64> + 'static) -> Column {
    Column {
        heading: heading.to_owned(),
        entry: Box::new(move |group, criterion| {
            Some(share_of_bare(group.most(criterion, &figure)?, criterion))
        }),
    }
}

/// Formats a share, such as "91.0 % in time".
pub(super) fn share_of_bare(share: Spread, criterion: Criterion) -> Entry {
    let Entry { text, spread } = entry(share, &percent);
    Entry {
        text: format!("{text} {}", criterion.name()),
        spread,
    }
}

/// Returns a column with a figure of the whole run, only in its first row.
fn column(
    heading: &str,
    write: impl Fn(f64) -> String + 'static,
    figure: impl Fn(&Summary) -> Option<f64> + 'static,
) -> Column {
    Column {
        heading: heading.to_owned(),
        entry: Box::new(move |group, criterion| {
            let is_first = group.criteria().next() == Some(criterion);
            let figure = group.summary(&figure).filter(|_| is_first)?;
            Some(entry(figure, &write))
        }),
    }
}

pub(super) fn entry(spread: Spread, write: &dyn Fn(f64) -> String) -> Entry {
    let (least, most) = (write(spread.least), write(spread.most));
    // The unit is written once if both have the same.
    let short = match (least.split_once(' '), most.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => number,
        _ => &least,
    };
    Entry {
        text: write(spread.median),
        spread: (least != most).then(|| format!("{short}\u{2013}{most}")),
    }
}

fn ceiling_row(
    section: &Section<'_>,
    columns: &[&Column],
    criterion: Criterion,
) -> Option<Vec<Entry>> {
    let ceilings = section.ceilings();
    let bare = |figure: fn(&BareLoop) -> f64| section.bare(criterion, figure);
    let bps = bare(|bare| bare.delivered_bps)?;
    let participants = bare(|bare| bare.participants.unwrap_or(bare.viewers))?;
    let share = bare(|bare| bare.delivered_share)?;
    let per_core = bare(|bare| bare.delivered_bps / bare.cpu_share.unwrap_or(1.0))?;
    let ns = bare(BareLoop::cpu_ns_per_packet)?;
    let whole = Spread::of(std::iter::once(1.0))?;
    let name = Entry {
        text: "ceiling".to_owned(),
        spread: ceilings
            .first()
            .map(|ceiling| ceiling.srtp_profile.trim_start_matches("SRTP_").to_owned()),
    };
    let entries = columns.iter().map(|column| match column.heading.as_str() {
        PARTICIPANTS => entry(participants, &count),
        THROUGHPUT => entry(bps, &bits_per_s),
        OF_CEILING => share_of_bare(whole, criterion),
        PER_CORE => entry(per_core, &bits_per_s),
        DELIVERED => entry(share, &percent),
        "CPU/packet" => entry(ns, &|ns| time_us(ns / 1e3)),
        _ => Entry::default(),
    });
    let first = [name, Entry::of(criterion.name())];
    Some(first.into_iter().chain(entries).collect())
}

impl Entry {
    /// Creates text without a spread.
    pub(super) fn of(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            spread: None,
        }
    }
}

impl Table {
    /// Formats the table for a terminal.
    pub(super) fn to_text(&self) -> String {
        let heading = |text: &String| Entry::of(text.clone());
        let mut rows = vec![self.headings.iter().map(heading).collect::<Vec<_>>()];
        rows.extend(self.rows.iter().cloned());
        let width = |column: usize| {
            let texts = rows.iter().filter_map(|row| row.get(column));
            texts
                .map(|entry| entry.text.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let mut text = String::new();
        for row in &rows {
            let mut line = String::new();
            for (at, (entry, width)) in row.iter().zip(&widths).enumerate() {
                match at {
                    0 => line += &format!("{:<width$}", entry.text),
                    1 => line += &format!("  {:<width$}", entry.text),
                    _ => line += &format!("  {:>width$}", entry.text),
                }
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}
