//! The plots of a section.

use crate::record::{Criterion, DELIVERED_AT_LEAST, RunRecord, Sample, Step};
use crate::report::plot::{Axis, COLOURS, Plot, Series, Style};
use crate::report::view::Section;

/// A plot with its caption.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) title: &'static str,
    /// The unit, and the meaning of the lines.
    pub(super) caption: String,
    pub(super) plot: Plot,
}

/// A set of charts under a common heading.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) heading: &'static str,
    /// The quantity on the plots' horizontal axes.
    pub(super) across: &'static str,
    pub(super) note: String,
    pub(super) charts: Vec<Chart>,
}

/// Returns all charts that have something to show.
pub(super) fn rows(section: &Section<'_>) -> Vec<Row> {
    let mut rows = vec![
        Row {
            heading: "Over participants",
            across: "participants",
            note: rounds_note(section, "Each dot is a time of constant load"),
            charts: over_participants(section),
        },
        Row {
            heading: "Over PeerConnections",
            across: "PeerConnections",
            note: rounds_note(section, "Those included that publish"),
            charts: over_connections(section),
        },
        Row {
            heading: "Over time",
            across: "seconds",
            note: time_note(section),
            charts: over_time(section),
        },
    ];
    for row in &mut rows {
        row.charts.retain(|chart| !chart.plot.is_empty());
    }
    rows.retain(|row| !row.charts.is_empty());
    rows
}

fn rounds_note(section: &Section<'_>, text: &str) -> String {
    let rounds = section
        .servers
        .iter()
        .map(|group| group.runs.len())
        .max()
        .unwrap_or(0);
    match rounds {
        0 | 1 => format!("{text}."),
        n => format!("{text}; the median of {n} rounds."),
    }
}

fn time_note(section: &Section<'_>) -> String {
    let several = section.servers.iter().any(|group| group.runs.len() > 1);
    let text = "A value a second; the servers ran one after the other, each from second 0";
    match several {
        true => format!("{text}. The first round is shown."),
        false => format!("{text}."),
    }
}

fn over_participants(section: &Section<'_>) -> Vec<Chart> {
    let throughput = steps(section, Style::Dotted, |s| Some(s.received_bps));
    let delivery = steps(section, Style::Dotted, |s| Some(s.delivered_share * 100.0));
    let cpu = steps(section, Style::Dotted, |s| s.server_cpu_cores);
    let memory = steps(section, Style::Dotted, |s| {
        Some(s.server_pss_bytes.or(s.server_rss_bytes)? as f64)
    });
    let p50 = steps(section, Style::Dotted, |s| Some(s.delay?.p50_us));
    let p99 = steps(section, Style::Dashed, |s| Some(s.delay?.p99_us));
    let per_core = |s: &Step| Some(s.received_bps / s.server_cpu_cores.filter(|c| *c > 0.01)?);
    let efficiency = |s: &Step| Some(s.efficiency_share()? * 100.0);
    let from = seconds_of_steps(section, Style::Dotted, |s| {
        Some(s.link.as_ref()?.from_server_bps)
    });
    let to = seconds_of_steps(section, Style::Dashed, |s| {
        Some(s.link.as_ref()?.to_server_bps)
    });
    let load = steps(section, Style::Dotted, |s| s.load_cpu_cores);
    let mut charts = vec![
        rate(
            "Throughput",
            "UDP payload that arrived",
            throughput,
            ceilings(section),
        ),
        delivered(delivery),
        plain("Server CPU", "cores", cpu),
        size("Server memory", MEMORY, memory),
        delay("Added delay", TWO_DELAYS, join(p50, p99)),
        rate(
            "Throughput for each core used",
            "UDP payload by CPU time",
            steps(section, Style::Dotted, per_core),
            Vec::new(),
        ),
        plain(
            "Of the bare loop's efficiency",
            "%: the loop's CPU time for a packet, of the server's, with as many participants",
            steps(section, Style::Dotted, efficiency),
        ),
        rate(
            "Bandwidth of the link",
            BOTH_WAYS,
            join(from, to),
            Vec::new(),
        ),
        plain("hammer's own CPU", "cores", load),
    ];
    for chart in &mut charts {
        let x: Vec<f64> = values(&chart.plot.series, |(x, _)| *x).collect();
        chart.plot.x = participants_axis(section, &x);
    }
    charts
}

/// Returns the charts by PeerConnections, if participants have several.
fn over_connections(section: &Section<'_>) -> Vec<Chart> {
    let mut steps = section.runs().flat_map(|run| &run.steps);
    if !steps.any(|step| step.peer_connections > step.participants) {
        return Vec::new();
    }
    let series = |figure: &dyn Fn(&Step) -> Option<f64>| -> Vec<Series> {
        let groups = section.servers.iter().enumerate();
        let series = groups.map(|(at, group)| Series {
            colour: at % COLOURS,
            style: Style::Dotted,
            points: group.steps_by_connections(figure),
        });
        series.collect()
    };
    let memory = |s: &Step| Some(s.server_pss_bytes.or(s.server_rss_bytes)? as f64);
    let packet_us = |s: &Step| {
        let us = s.server_cpu_cores? * 1e6 / s.received_pps;
        us.is_finite().then_some(us)
    };
    vec![
        plain("Server CPU", "cores", series(&|s| s.server_cpu_cores)),
        size("Server memory", MEMORY, series(&memory)),
        plain(
            "CPU time for each packet",
            "us for each packet that arrived",
            series(&packet_us),
        ),
        delivered(series(&|s| Some(s.delivered_share * 100.0))),
    ]
}

const MEMORY: &str = "resident; shared pages in proportion";
const TWO_DELAYS: &str = "median; dashed: 99 % are below";
const BOTH_WAYS: &str = "all headers counted; dashed: to the server";
/// A sample shorter than this, cut by the start or end of a step, says little about a second.
const SHORT_S: f64 = 0.3;

/// Returns both ceilings, or one line if they are equal.
fn ceilings(section: &Section<'_>) -> Vec<(f64, String)> {
    let bps = |criterion| {
        let bps = section.bare(criterion, |bare| bare.delivered_bps)?;
        Some((bps.median, format!("ceiling {}", criterion.name())))
    };
    let [in_time, at_all] = Criterion::BOTH.map(bps);
    match (in_time, at_all) {
        (Some((in_time, _)), Some((at_all, _))) if at_all <= in_time => {
            vec![(in_time, "ceiling in time and at all".to_owned())]
        }
        lines => [lines.0, lines.1].into_iter().flatten().collect(),
    }
}

/// The axis is logarithmic if one server carries many times what another does. A linear axis would
/// squeeze the other into its edge.
fn participants_axis(section: &Section<'_>, x: &[f64]) -> Axis {
    let most = section.servers.iter().filter_map(|group| {
        let participants = group
            .steps(|step| Some(step.participants.into()))
            .into_iter();
        participants.map(|(x, _)| x).max_by(f64::total_cmp)
    });
    let most: Vec<f64> = most.collect();
    let least = most.iter().copied().fold(f64::MAX, f64::min);
    let greatest = most.iter().copied().fold(0.0, f64::max);
    match greatest > least * 6.0 {
        true => Axis::logarithmic(x.iter().copied(), 1.0),
        false => Axis::linear(x.iter().copied(), 1.0),
    }
}

fn over_time(section: &Section<'_>) -> Vec<Chart> {
    let participants = samples(section, Style::Solid, |s| Some(s.participants.into()));
    let throughput = samples(section, Style::Solid, |s| {
        Some(s.received_bytes as f64 * 8.0 / s.length_s)
    });
    let cpu = samples(section, Style::Solid, |s| {
        Some(s.server.as_ref()?.cpu_cores)
    });
    let memory = samples(section, Style::Solid, |s| {
        let server = s.server.as_ref()?;
        Some(server.pss_bytes.unwrap_or(server.rss_bytes) as f64)
    });
    let from = samples(section, Style::Solid, |s| {
        Some(s.link.as_ref()?.from_server_bps)
    });
    let to = samples(section, Style::Dashed, |s| {
        Some(s.link.as_ref()?.to_server_bps)
    });
    let p50 = samples(section, Style::Solid, |s| Some(s.delay?.p50_us));
    let p99 = samples(section, Style::Dashed, |s| Some(s.delay?.p99_us));
    let joins = samples(section, Style::Solid, |s| {
        Some(f64::from(s.joined) / s.length_s)
    });
    let join_p50 = samples(section, Style::Dotted, |s| Some(s.join_delay?.p50_us));
    let connections = match section
        .runs()
        .flat_map(|run| &run.samples)
        .any(|s| s.peer_connections > s.participants)
    {
        true => samples(section, Style::Solid, |s| Some(s.peer_connections.into())),
        false => Vec::new(),
    };
    let join_p99 = samples(section, Style::Dashed, |s| Some(s.join_delay?.p99_us));
    let gap = samples(section, Style::Solid, |s| s.longest_gap_ms);
    let load = samples(section, Style::Solid, |s| Some(s.load.as_ref()?.cpu_cores));
    vec![
        plain("Participants", "with media", participants),
        plain(
            "PeerConnections",
            "those included that publish",
            connections,
        ),
        rate(
            "Throughput",
            "UDP payload that arrived",
            throughput,
            ceilings(section),
        ),
        plain("Server CPU", "cores", cpu),
        size("Server memory", MEMORY, memory),
        rate(
            "Bandwidth of the link",
            BOTH_WAYS,
            join(from, to),
            Vec::new(),
        ),
        delay("Added delay", TWO_DELAYS, join(p50, p99)),
        plain("Joins", "a second", joins),
        delay(
            "Time to join",
            "to the first packet: median; dashed: 99 % are below",
            join(join_p50, join_p99),
        ),
        plain("Longest gap", "ms without media, of any participant", gap),
        plain("hammer's own CPU", "cores", load),
    ]
}

fn steps(
    section: &Section<'_>,
    style: Style,
    figure: impl Fn(&Step) -> Option<f64>,
) -> Vec<Series> {
    let groups = section.servers.iter().enumerate();
    let series = groups.map(|(at, group)| Series {
        colour: at % COLOURS,
        style,
        points: group.steps(&figure),
    });
    series.collect()
}

fn seconds_of_steps(
    section: &Section<'_>,
    style: Style,
    figure: impl Fn(&Sample) -> Option<f64>,
) -> Vec<Series> {
    let groups = section.servers.iter().enumerate();
    let series = groups.map(|(at, group)| Series {
        colour: at % COLOURS,
        style,
        points: group.seconds_of_steps(&figure),
    });
    series.collect()
}

fn samples(
    section: &Section<'_>,
    style: Style,
    figure: impl Fn(&Sample) -> Option<f64>,
) -> Vec<Series> {
    let groups = section.servers.iter().enumerate();
    let series = groups.map(|(at, group)| {
        let samples = group
            .runs
            .first()
            .map_or(&[][..], |run: &&RunRecord| &run.samples);
        let points = samples
            .iter()
            .filter(|sample| sample.length_s >= SHORT_S)
            .filter_map(|sample| Some((sample.at_s, figure(sample)?)));
        Series {
            colour: at % COLOURS,
            style,
            points: points
                .filter(|(x, y)| x.is_finite() && y.is_finite())
                .collect(),
        }
    });
    series.collect()
}

fn join(mut first: Vec<Series>, second: Vec<Series>) -> Vec<Series> {
    first.extend(second);
    first
}

fn values(series: &[Series], at: fn(&(f64, f64)) -> f64) -> impl Iterator<Item = f64> {
    series.iter().flat_map(|series| &series.points).map(at)
}

fn chart(title: &'static str, caption: String, y: Axis, series: Vec<Series>) -> Chart {
    let x = Axis::linear(values(&series, |(x, _)| *x), 1.0);
    let lines = Vec::new();
    Chart {
        title,
        caption,
        plot: Plot {
            x,
            y,
            series,
            lines,
        },
    }
}

fn plain(title: &'static str, caption: &str, series: Vec<Series>) -> Chart {
    let y = Axis::linear(values(&series, |(_, y)| *y), 1.0);
    chart(title, caption.to_owned(), y, series)
}

/// The axis does not start at 0, since the differences are close to 100.
fn delivered(series: Vec<Series>) -> Chart {
    let least = values(&series, |(_, y)| *y).fold(90.0, f64::min);
    let mut chart = plain("Delivered", "% of the packets that were due", series);
    chart.plot.y.from = (least / 10.0).floor() * 10.0;
    chart.plot.y.to = 100.0;
    chart.plot.lines = vec![(DELIVERED_AT_LEAST * 100.0, "99.5 %".to_owned())];
    chart
}

fn rate(
    title: &'static str,
    caption: &str,
    series: Vec<Series>,
    lines: Vec<(f64, String)>,
) -> Chart {
    let levels = lines.iter().map(|(bps, _)| *bps);
    let most = values(&series, |(_, y)| *y)
        .chain(levels)
        .fold(0.0, f64::max);
    let (unit, name) = match most {
        m if m >= 1e9 => (1e9, "Gbit/s"),
        m if m >= 1e6 => (1e6, "Mbit/s"),
        _ => (1e3, "kbit/s"),
    };
    let y = Axis::linear(std::iter::once(most), unit);
    let mut chart = chart(title, format!("{name}: {caption}"), y, series);
    chart.plot.lines = lines;
    chart
}

fn size(title: &'static str, caption: &str, series: Vec<Series>) -> Chart {
    let mib = f64::from(1 << 20);
    let y = Axis::linear(values(&series, |(_, y)| *y), mib);
    chart(title, format!("MiB: {caption}"), y, series)
}

fn delay(title: &'static str, caption: &str, series: Vec<Series>) -> Chart {
    let (unit, name) = match values(&series, |(_, y)| *y).fold(0.0, f64::max) {
        m if m >= 20_000.0 => (1_000.0, "ms"),
        _ => (1.0, "us"),
    };
    let y = Axis::logarithmic(values(&series, |(_, y)| *y), unit);
    chart(title, format!("{name}: {caption}"), y, series)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;
    use crate::record::example;
    use crate::report::view;

    #[test]
    fn memory_is_shown_over_connections_for_each_step() {
        let mut report = example::report();
        for step in report.runs.iter_mut().flat_map(|run| &mut run.steps) {
            step.peer_connections = 10 + 10 * step.participants;
        }
        let sections = view::sections(&report);
        let rows = rows(&sections[0]);
        let row = rows.iter().find(|row| row.across == "PeerConnections");
        let charts = &row.unwrap().charts;
        let memory = charts.iter().find(|chart| chart.title == "Server memory");
        for (series, run) in memory.unwrap().plot.series.iter().zip(&report.runs) {
            let steps = run.steps.iter();
            let expected = steps.map(|step| {
                let bytes = step.server_pss_bytes.unwrap();
                (f64::from(step.peer_connections), bytes as f64)
            });
            assert_eq!(series.points, expected.collect::<Vec<_>>());
        }
    }
}
