//! The metrics of audio rooms, and of the threads that mix them.

use std::time::Duration;

use portunus_metrics::{MetricKind, MetricsPage, MetricsSource};

use crate::{AudioThreadStats, AudioThreads};

impl MetricsSource for AudioThreads {
    fn write(&self, page: &mut MetricsPage) {
        let totals = self.totals();
        for (name, help, value) in [
            ("audio_rooms", "Audio rooms that there are", totals.rooms),
            (
                "audio_participants",
                "Participants of audio rooms",
                totals.participants,
            ),
        ] {
            page.gauge(name, help, value);
        }
        for (name, help, value) in [
            (
                "audio_decoded_frames",
                "Frames of participants that were decoded",
                totals.decoded,
            ),
            (
                "audio_relayed_frames",
                "Frames of participants that were neither decoded nor encoded, for they alone were heard",
                totals.relayed,
            ),
            (
                "audio_encoded_frames",
                "Frames of mixes that were encoded",
                totals.encoded,
            ),
            (
                "audio_helped_frames",
                "Frames of mixes that another thread encoded than the room's",
                totals.helped,
            ),
            (
                "audio_unreturned_frames",
                "Frames of mixes that another thread did not encode in time: a packet is missing for each",
                totals.unreturned,
            ),
            (
                "audio_mixed_frames",
                "Frames of rooms that were mixed",
                totals.ticks,
            ),
            (
                "audio_skipped_frames",
                "Frames of rooms that were left out because their thread was too late",
                totals.skipped,
            ),
            (
                "audio_dropped_packets",
                "Packets of participants that an audio thread did not take in time, or that were too many",
                totals.dropped,
            ),
            (
                "audio_undelivered_packets",
                "Packets of mixes that a media worker did not take in time",
                totals.undelivered,
            ),
            (
                "audio_merged_events",
                "Events of audio rooms that were not taken in time, and of which a later one says more",
                totals.merged_events,
            ),
        ] {
            page.counter(&format!("{name}_total"), help, value);
        }
        let stats = self.thread_stats();
        for (name, help, read) in [
            (
                "audio_late_median_seconds",
                "By how much half of the frames of the last seconds left late at most",
                (|it| it.late_median) as fn(&AudioThreadStats) -> Duration,
            ),
            (
                "audio_late_p99_seconds",
                "By how much 99 of 100 frames of the last seconds left late at most",
                |it| it.late_p99,
            ),
            (
                "audio_late_max_seconds",
                "By how much the latest frame of the last seconds was late",
                |it| it.late_max,
            ),
        ] {
            let values = stats.iter().map(|it| (it.index, read(it).as_secs_f64()));
            page.labelled(MetricKind::Gauge, name, help, "thread", values);
        }
    }
}
