//! The metrics of recordings.

use portunus_metrics::{MetricsPage, MetricsSource};

use crate::Recorder;

impl MetricsSource for Recorder {
    fn write(&self, page: &mut MetricsPage) {
        let totals = self.totals();
        let help = "Files that are being recorded";
        page.gauge("recordings", help, totals.open);
        let help = "Bytes of packets that wait for the disks of recordings";
        let waiting = totals.waiting_bytes;
        page.gauge("recording_waiting_bytes", help, waiting);
        let help = "How far the disk of recordings that is latest is behind";
        page.gauge(
            "recording_disk_lag_seconds",
            help,
            totals.disk_lag.as_secs_f64(),
        );
        for (name, help, value) in [
            ("recordings_started", "Files begun", totals.started),
            (
                "recordings_failed",
                "Recordings that ended by an error",
                totals.failed,
            ),
            (
                "recordings_completed",
                "Files that nothing more is written into",
                totals.completed,
            ),
            ("recorded_bytes", "Bytes recorded", totals.bytes),
            (
                "recorded_packets",
                "Packets and messages recorded",
                totals.frames,
            ),
            (
                "recording_dropped",
                "Packets and messages left out of recordings because the disk was too slow",
                totals.dropped,
            ),
            (
                "recording_gaps",
                "Gaps in tracks of WebM, Matroska and MP4",
                totals.gaps,
            ),
            (
                "recording_commands",
                "Commands run for complete files",
                totals.commands,
            ),
            (
                "recording_commands_failed",
                "Commands for complete files that failed, were not there or took too long",
                totals.commands_failed,
            ),
            (
                "recording_commands_lost",
                "Complete files without a command because too many waited",
                totals.commands_lost,
            ),
        ] {
            page.counter(&format!("{name}_total"), help, value);
        }
    }
}
