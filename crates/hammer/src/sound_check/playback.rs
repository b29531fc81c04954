//! The decoded sound of a listener, with its times.

use std::time::Duration;

use portunus_dsp::AudioCodec;

use crate::speech::{EncodeError, HEARD_RATE, Hearing};
use crate::viewer::Kept;

/// The most missing packets that are filled in.
const MOST_MISSING: u32 = 50;

/// Sound as it arrived.
#[derive(Debug, Default)]
pub(crate) struct Playback {
    sound: Vec<f32>,
    /// The start of each packet's sound, and the arrival of the packet.
    packets: Vec<(usize, Duration)>,
}

impl Playback {
    /// Decodes the received packets.
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

    /// Returns all sound.
    pub(crate) fn sound(&self) -> &[f32] {
        &self.sound
    }

    /// Returns the sound of `length` from `start` on, or `None` if it is incomplete.
    pub(crate) fn from(&self, start: Duration, length: Duration) -> Option<(usize, &[f32])> {
        let first = self.packets.partition_point(|(_, at)| *at < start);
        let last = self.packets.partition_point(|(_, at)| *at < start + length);
        let (from, _) = self.packets.get(first).filter(|_| first > 0)?;
        let (to, _) = self.packets.get(last)?;
        Some((*from, self.sound.get(*from..*to)?))
    }

    /// Returns when the sample at `place` could be heard by a listener that plays each packet at
    /// once.
    pub(crate) fn time_of(&self, place: usize) -> Option<Duration> {
        let next = self.packets.partition_point(|(from, _)| *from <= place);
        let (from, at) = self.packets.get(next.checked_sub(1)?)?;
        Some(*at + Duration::from_secs_f64((place - from) as f64 / HEARD_RATE as f64))
    }
}
