//! CSV: one line per second of each run.

use std::io::{self, Write};

use crate::record::{Criterion, Report, RunRecord, Sample, Stalls, Step};

/// A column: its name and value. The value is empty if it was not measured.
type Column = (&'static str, fn(&RunRecord, &Sample) -> Option<String>);

const COLUMNS: [Column; 46] = [
    ("scenario", |run, _| text(&run.scenario.name)),
    ("server", |run, _| text(&run.server.name)),
    ("round", |run, _| Some(run.round.to_string())),
    ("at_s", |_, s| number(Some(s.at_s))),
    ("length_s", |_, s| number(Some(s.length_s))),
    ("participants", |_, s| Some(s.participants.to_string())),
    ("peer_connections", |_, s| {
        Some(s.peer_connections.to_string())
    }),
    ("joined", |_, s| Some(s.joined.to_string())),
    ("left", |_, s| Some(s.left.to_string())),
    ("failed", |_, s| Some(s.failed.to_string())),
    ("expected_packets", |_, s| {
        Some(s.expected_packets.to_string())
    }),
    ("received_packets", |_, s| {
        Some(s.received_packets.to_string())
    }),
    ("received_bytes", |_, s| Some(s.received_bytes.to_string())),
    ("lost_packets", |_, s| Some(s.lost_packets.to_string())),
    ("reordered_packets", |_, s| {
        Some(s.reordered_packets.to_string())
    }),
    ("longest_gap_ms", |_, s| number(s.longest_gap_ms)),
    ("delay_p50_us", |_, s| number(s.delay.map(|d| d.p50_us))),
    ("delay_p90_us", |_, s| number(s.delay.map(|d| d.p90_us))),
    ("delay_p99_us", |_, s| number(s.delay.map(|d| d.p99_us))),
    ("delay_max_us", |_, s| number(s.delay.map(|d| d.max_us))),
    ("far_received_packets", |_, s| {
        Some(s.far?.received_packets.to_string())
    }),
    ("far_delivered_share", |_, s| {
        number(s.far.map(|far| far.delivered_share))
    }),
    ("far_delay_p50_us", |_, s| {
        number(s.far?.delay.map(|d| d.p50_us))
    }),
    ("far_delay_p99_us", |_, s| {
        number(s.far?.delay.map(|d| d.p99_us))
    }),
    ("send_late_p99_us", |_, s| {
        number(s.send_late.map(|d| d.p99_us))
    }),
    ("join_delay_p50_us", |_, s| {
        number(s.join_delay.map(|d| d.p50_us))
    }),
    ("join_delay_p99_us", |_, s| {
        number(s.join_delay.map(|d| d.p99_us))
    }),
    ("server_cpu_cores", |_, s| {
        number(s.server.as_ref().map(|u| u.cpu_cores))
    }),
    ("server_rss_bytes", |_, s| {
        Some(s.server.as_ref()?.rss_bytes.to_string())
    }),
    ("server_pss_bytes", |_, s| {
        Some(s.server.as_ref()?.pss_bytes?.to_string())
    }),
    ("server_threads", |_, s| {
        Some(s.server.as_ref()?.threads.to_string())
    }),
    ("from_server_bps", |_, s| {
        number(s.link.as_ref().map(|l| l.from_server_bps))
    }),
    ("from_server_pps", |_, s| {
        number(s.link.as_ref().map(|l| l.from_server_pps))
    }),
    ("to_server_bps", |_, s| {
        number(s.link.as_ref().map(|l| l.to_server_bps))
    }),
    ("to_server_pps", |_, s| {
        number(s.link.as_ref().map(|l| l.to_server_pps))
    }),
    ("load_cpu_cores", |_, s| {
        number(s.load.as_ref().map(|l| l.cpu_cores))
    }),
    ("stolen_cores", |_, s| {
        number(s.load.as_ref().map(|l| l.stolen_cores))
    }),
    ("server_stalled_ms", |run, s| {
        of_cores(run, s, true, |stalls| stalls.total_ms)
    }),
    ("load_stalled_ms", |run, s| {
        of_cores(run, s, false, |stalls| stalls.total_ms)
    }),
    ("server_slow_ms", |run, s| {
        of_cores(run, s, true, |stalls| stalls.slow_ms)
    }),
    ("load_slow_ms", |run, s| {
        of_cores(run, s, false, |stalls| stalls.slow_ms)
    }),
    ("carried", |run, s| Some(carried(run, s)?.to_owned())),
    ("efficiency_share", |run, s| {
        number(step_of(run, s)?.efficiency_share())
    }),
    ("loop_cpu_ns_per_packet", |run, s| {
        number(step_of(run, s)?.loop_cpu_ns_per_packet)
    }),
    ("ceiling_in_time_bps", |run, _| {
        ceiling_bps(run, Criterion::InTime)
    }),
    ("ceiling_at_all_bps", |run, _| {
        ceiling_bps(run, Criterion::AtAll)
    }),
];

/// Returns the time of constant load that contains a second.
fn step_of<'a>(run: &'a RunRecord, sample: &Sample) -> Option<&'a Step> {
    let mut steps = run.steps.iter();
    steps.find(|step| sample.at_s > step.start_s && sample.at_s <= step.end_s)
}

/// Returns whether that load was carried: in time, at all, or not.
fn carried(run: &RunRecord, sample: &Sample) -> Option<&'static str> {
    let step = step_of(run, sample)?;
    let mut met = Criterion::BOTH.into_iter();
    let met = met.find(|criterion| step.meets(*criterion));
    Some(met.map_or("no", Criterion::name))
}

fn ceiling_bps(run: &RunRecord, criterion: Criterion) -> Option<String> {
    number(Some(run.ceiling.as_ref()?.of(criterion)?.delivered_bps))
}

/// Returns for how long cores stalled or were slow, of the server or of the others. Returns `None`
/// if they were not watched.
fn of_cores(
    run: &RunRecord,
    sample: &Sample,
    server: bool,
    ms: fn(&Stalls) -> f64,
) -> Option<String> {
    let of = |stalls: &&Stalls| run.server.cores.contains(&stalls.core) == server;
    let total_ms = sample.stalls.iter().filter(of).map(ms);
    (!sample.stalls.is_empty()).then(|| number(Some(total_ms.sum())))?
}

/// Writes the names of the columns and all samples of all runs.
pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    writeln!(out, "{}", names.join(","))?;
    for run in &report.runs {
        for sample in &run.samples {
            let fields = COLUMNS
                .iter()
                .map(|(_, field)| field(run, sample).unwrap_or_default());
            writeln!(out, "{}", fields.collect::<Vec<_>>().join(","))?;
        }
    }
    Ok(())
}

fn number(value: Option<f64>) -> Option<String> {
    value.map(|value| format!("{}", (value * 1e3).round() / 1e3))
}

/// Quotes text as RFC 4180 requires.
fn text(value: &str) -> Option<String> {
    if value.contains([',', '"', '\n', '\r']) {
        return Some(format!("\"{}\"", value.replace('"', "\"\"")));
    }
    Some(value.to_owned())
}
