//! What one who listens got, as sound with its times.

use std::time::Duration;

use portunus_dsp::AudioCodec;

use crate::speech::{EncodeError, HEARD_RATE, Hearing};
use crate::viewer::Kept;

/// What is missing is filled in for so many packets at most.
const MOST_MISSING: u32 = 50;

/// Sound as it arrived.
#[derive(Debug, Default)]
pub(crate) struct Playback {
    sound: Vec<f32>,
    /// Where each packet's sound begins, and when the packet came.
    packets: Vec<(usize, Duration)>,
}

impl Playback {
    /// Decodes what came.
    pub(crate) fn of<'a>(
        codec: AudioCodec,
        kept: impl Iterator<Item = &'a Kept>,
    ) -> Result<Self, EncodeError> {
        let mut kept: Vec<&Kept> = kept.collect();
        kept.sort_by_key(|packet| packet.number);
        kept.dedup_by_key(|packet| packet.number);
        let mut hearing = Hearing::new(codec)?;
        let mut playback = Self::default();
        let ticks = codec.clock_rate() / 50;
        let mut before: Option<u32> = None;
        for packet in kept {
            let since = before.map_or(ticks, |before| packet.timestamp.wrapping_sub(before));
            for _ in 1..(since / ticks).clamp(1, MOST_MISSING) {
                hearing.hear(&[], &mut playback.sound);
            }
            before = Some(packet.timestamp);
            playback.packets.push((playback.sound.len(), packet.at));
            hearing.hear(&packet.payload, &mut playback.sound);
        }
        Ok(playback)
    }

    /// All of it.
    pub(crate) fn sound(&self) -> &[f32] {
        &self.sound
    }

    /// What came within `length` from `start` on; none if that is not all there.
    pub(crate) fn from(&self, start: Duration, length: Duration) -> Option<(usize, &[f32])> {
        let first = self.packets.partition_point(|(_, at)| *at < start);
        let last = self.packets.partition_point(|(_, at)| *at < start + length);
        let (from, _) = self.packets.get(first).filter(|_| first > 0)?;
        let (to, _) = self.packets.get(last)?;
        Some((*from, self.sound.get(*from..*to)?))
    }

    /// When the sample at `place` could be heard by one who plays each packet as it comes.
    pub(crate) fn time_of(&self, place: usize) -> Option<Duration> {
        let next = self.packets.partition_point(|(from, _)| *from <= place);
        let (from, at) = self.packets.get(next.checked_sub(1)?)?;
        Some(*at + Duration::from_secs_f64((place - from) as f64 / HEARD_RATE as f64))
    }
}
