//! Raw G.711: 8,000 samples per second, without a header.

use super::{Demux, Frame, Input, Nanos};
use crate::track::{Codec, TrackSource};
use crate::{FileError, OpenOptions};
use portunus_rtp::packetize::PayloadFormat;

/// 20 ms.
const FRAME: u64 = 160;
const NANOS_PER_SAMPLE: i64 = 125_000;

pub(super) fn open(
    input: Input,
    codec: Codec,
    options: &OpenOptions,
) -> Result<Box<dyn Demux>, FileError> {
    if !options.audio {
        return Err(FileError::NoTrack("video"));
    }
    let tracks = [TrackSource::new(codec, PayloadFormat::Whole)];
    Ok(Box::new(Pcm { input, tracks }))
}

#[derive(Debug)]
struct Pcm {
    input: Input,
    tracks: [TrackSource; 1],
}

fn nanos(bytes: u64) -> Nanos {
    i64::try_from(bytes)
        .unwrap_or(i64::MAX)
        .saturating_mul(NANOS_PER_SAMPLE)
}

impl Demux for Pcm {
    fn tracks(&self) -> &[TrackSource] {
        &self.tracks
    }

    fn read(&mut self, frame: &mut Frame) -> Result<bool, FileError> {
        let at = self.input.position();
        let len = FRAME.min(self.input.len().saturating_sub(at));
        if len == 0 {
            return Ok(false);
        }
        self.input
            .read_into(&mut frame.data, len, FRAME, "a frame")?;
        frame.track = 0;
        frame.at = nanos(at);
        frame.presented = frame.at;
        frame.duration = nanos(len);
        frame.keyframe = true;
        Ok(true)
    }

    fn seek(&mut self, to: Nanos) -> Result<(), FileError> {
        let sample = u64::try_from(to / NANOS_PER_SAMPLE).unwrap_or(0);
        self.input
            .seek((sample - sample % FRAME).min(self.input.len()))
    }

    fn duration(&self) -> Option<Nanos> {
        Some(nanos(self.input.len()))
    }
}
