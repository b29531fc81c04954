//! What browsers measured between two moments.

use super::guest::Guest;
use crate::browsers::PageReport;
use crate::figures::{digits, percent};
use crate::record::Phase;

/// The counters of the connected participants at the start.
pub(super) struct Meter {
    before: Vec<Option<PageReport>>,
}

impl Meter {
    /// Starts to measure.
    pub(super) fn start(guests: &[Guest]) -> Self {
        let before = |guest: &Guest| guest.is_connected().then(|| guest.report.clone());
        Self {
            before: guests.iter().map(before).collect(),
        }
    }

    /// Returns the quality since then, of those that were connected all the time.
    pub(super) fn end(&self, guests: &[Guest]) -> Phase {
        let pairs = self.before.iter().zip(guests);
        let pairs: Vec<(&PageReport, &PageReport)> = pairs
            .filter(|(_, guest)| guest.is_connected())
            .filter_map(|(before, guest)| Some((before.as_ref()?, &guest.report)))
            .collect();
        let sum = |of: &dyn Fn(&PageReport) -> f64| -> f64 {
            // Counters of a track that was replaced begin anew.
            let grown = pairs
                .iter()
                .map(|(before, now)| (of(now) - of(before)).max(0.0));
            grown.sum()
        };
        // Seconds of all video tracks together.
        let watched_s: f64 = pairs
            .iter()
            .map(|(before, now)| {
                (now.at_ms - before.at_ms).max(0.0) / 1e3 * f64::from(now.video_tracks)
            })
            .sum();
        let per_s = |count: f64| share(count, watched_s);
        let packets = sum(&|it| it.packets_received) + sum(&|it| it.packets_lost);
        let sending_s = sum(&|it| it.sending_s);
        let trips: Vec<f64> = pairs
            .iter()
            .filter_map(|(_, it)| it.round_trip_ms)
            .collect();
        let buffered = sum(&|it| it.jitter_buffer_frames);
        Phase {
            browsers: pairs.len() as u32,
            video_tracks: pairs.iter().map(|(_, now)| now.video_tracks).sum(),
            frames_per_s: per_s(sum(&|it| it.frames_decoded)),
            freezes_per_min: per_s(sum(&|it| it.freezes)) * 60.0,
            frozen_share: per_s(sum(&|it| it.frozen_s)).min(1.0),
            lost_share: share(sum(&|it| it.packets_lost), packets),
            round_trip_ms: (!trips.is_empty())
                .then(|| trips.iter().sum::<f64>() / trips.len() as f64),
            jitter_buffer_ms: (buffered > 0.0)
                .then(|| sum(&|it| it.jitter_buffer_s) * 1e3 / buffered),
            limited_by_cpu_share: share(sum(&|it| it.limited_by_cpu_s), sending_s),
            limited_by_bandwidth_share: share(sum(&|it| it.limited_by_bandwidth_s), sending_s),
            ..Phase::default()
        }
    }
}

fn share(part: f64, of: f64) -> f64 {
    if of > 0.0 { part / of } else { 0.0 }
}

/// Describes a phase in one line.
pub(super) fn to_text(phase: &Phase) -> String {
    let ms = |ms: Option<f64>| ms.map_or("unknown".to_owned(), |ms| format!("{} ms", digits(ms)));
    format!(
        "{}: {} browsers, {} frames/s of each of {} video tracks, {} freezes a minute and {} of the time, \
         {} lost, round trip {}, limited by CPU {} and by bandwidth {}",
        phase.name,
        phase.browsers,
        digits(phase.frames_per_s),
        phase.video_tracks,
        digits(phase.freezes_per_min),
        percent(phase.frozen_share),
        percent(phase.lost_share),
        ms(phase.round_trip_ms),
        percent(phase.limited_by_cpu_share),
        percent(phase.limited_by_bandwidth_share),
    )
}
