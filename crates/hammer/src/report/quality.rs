//! The table of what real browsers measured.

use super::table::{Entry, Table};
use super::view::Section;
use crate::figures::{digits, percent};
use crate::record::Phase;

const HEADINGS: [&str; 13] = [
    "server",
    "time",
    "browsers",
    "failed",
    "server CPU cores",
    "frames/s of a track",
    "freezes a minute",
    "time frozen",
    "lost",
    "round trip",
    "in the jitter buffer",
    "limited by CPU",
    "by bandwidth",
];

/// Returns the table of a section with browsers: a row for each server and time.
pub(super) fn of(section: &Section<'_>) -> Option<Table> {
    let rows = section.runs().flat_map(|run| {
        let browsers = run.browsers.iter();
        let failed = run.summary.failed_joins;
        browsers
            .flat_map(|browsers| &browsers.phases)
            .map(move |phase| row(&run.server.name, failed, phase))
    });
    let rows: Vec<Vec<Entry>> = rows.collect();
    (!rows.is_empty()).then(|| Table {
        headings: HEADINGS.map(str::to_owned).into(),
        rows,
    })
}

fn row(server: &str, failed: u64, phase: &Phase) -> Vec<Entry> {
    let ms = |ms: Option<f64>| ms.map_or_else(String::new, |ms| format!("{} ms", digits(ms)));
    let cells = [
        server.to_owned(),
        phase.name.clone(),
        phase.browsers.to_string(),
        failed.to_string(),
        phase.server_cpu_cores.map_or_else(String::new, digits),
        digits(phase.frames_per_s),
        digits(phase.freezes_per_min),
        percent(phase.frozen_share),
        percent(phase.lost_share),
        ms(phase.round_trip_ms),
        ms(phase.jitter_buffer_ms),
        percent(phase.limited_by_cpu_share),
        percent(phase.limited_by_bandwidth_share),
    ];
    cells.into_iter().map(Entry::of).collect()
}
