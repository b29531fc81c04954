//! Notes about tracks in manifests.

use std::time::Duration;

use portunus_files::assembly::{ClockKind, GapReason, Note};
use portunus_files::manifest::{self, Change, Clock, Gap, Layer, Track};

/// Adds a note to a track. Returns whether the manifest is to be written soon.
pub(super) fn note(track: &mut Track, note: &Note) -> bool {
    match *note {
        Note::Gap { from, to, why } => track.add_gap(Gap {
            from_ms: ms(from),
            to_ms: ms(to),
            why: reason(why),
        }),
        Note::Layer { at, encoding } => track.add_layer(Layer {
            at_ms: ms(at),
            encoding,
        }),
        Note::Change {
            at,
            picture,
            rotation,
        } => track.add_change(Change {
            at_ms: ms(at),
            width: picture.map(|picture| picture.width),
            height: picture.map(|picture| picture.height),
            rotation: rotation.degrees(),
        }),
        Note::Clock(kind) => track.clock = clock(kind),
        Note::ClockDoubt(doubt) => track.clock_doubt_ms = Some(ms(doubt)),
        Note::Talks { from, to } => track.add_talk(ms(from), ms(to)),
    }
    !matches!(note, Note::Talks { .. })
}

pub(super) fn clock(kind: ClockKind) -> Clock {
    match kind {
        ClockKind::Arrival => Clock::Arrival,
        ClockKind::Capture => Clock::Capture,
        ClockKind::Reports => Clock::Reports,
    }
}

fn reason(why: GapReason) -> manifest::GapReason {
    match why {
        GapReason::Loss => manifest::GapReason::Loss,
        GapReason::Muted => manifest::GapReason::Muted,
        GapReason::Silent => manifest::GapReason::Silent,
        GapReason::Disk => manifest::GapReason::Disk,
        GapReason::Keyframe => manifest::GapReason::Keyframe,
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
