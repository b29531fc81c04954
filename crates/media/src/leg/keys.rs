//! Keys that are pressed for the near side, and keys of a source that are passed on to the far end.

use std::time::{Duration, Instant};

use portunus_graph::Packet;
use portunus_rtp::telephone_event::{Detector, Pressed, TelephoneEvent};
use portunus_sdp::negotiated::Codec;

use super::tones::{Tone, Tones};
use super::{LegPayload, LegSide, LegTones};

/// Keys for the near side, and keys of a source for the far end.
#[derive(Debug)]
pub(super) struct Keys {
    /// Tones for the near side.
    near: Tones,
    /// The timestamp of the tone that the near side hears.
    near_at: Option<u32>,
    /// Detects the keys of a source that are passed on.
    passed: Detector,
    /// The clock of their durations, in Hz.
    passed_clock: u32,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            near: Tones::default(),
            near_at: None,
            passed: Detector::default(),
            passed_clock: 8_000,
        }
    }
}

impl Keys {
    /// Presses keys for the near side.
    pub(super) fn press_near(&mut self, tones: &LegTones, now: Instant) {
        self.near.add(tones, now);
    }

    /// The timestamp of the tone that the near side hears.
    pub(super) fn near_at(&self) -> Option<u32> {
        self.near_at
    }

    pub(super) fn set_near_at(&mut self, timestamp: Option<u32>) {
        self.near_at = timestamp;
    }

    /// Returns the tone that is due for the near side. `events` is the payload of telephone events
    /// there.
    pub(super) fn due_near(&mut self, events: Option<LegPayload>, now: Instant) -> Option<Tone> {
        let Some(events) = events else {
            // Nobody can hear them.
            self.near.clear();
            return None;
        };
        self.near.poll(events.clock_rate, now)
    }

    /// When a tone for the near side is due.
    pub(super) fn near_deadline(&self) -> Option<Instant> {
        self.near.deadline()
    }

    /// Starts over, because the keys of another source are passed on.
    pub(super) fn restart(&mut self) {
        self.passed = Detector::default();
    }

    /// Takes a packet of the source. Returns the keys that were released.
    pub(super) fn take(
        &mut self,
        packet: &Packet,
        clock_rate: u32,
        now: Instant,
    ) -> impl Iterator<Item = Pressed> + use<> {
        let is_event = packet.codec == Codec::TelephoneEvent;
        let event = is_event.then(|| TelephoneEvent::parse(packet.payload()).ok());
        let event = event.flatten();
        let pressed = event.map(|event| {
            self.passed_clock = clock_rate.max(1);
            let place = (packet.header.timestamp, packet.header.marker);
            self.passed.take(event, place, now)
        });
        pressed.into_iter().flatten()
    }

    /// When a pressed key counts as released.
    pub(super) fn passed_deadline(&self) -> Option<Instant> {
        self.passed.deadline()
    }

    /// Returns a key that counts as released.
    pub(super) fn timeout(&mut self, now: Instant) -> Option<Pressed> {
        self.passed.timeout(now)
    }

    /// The clock of the durations of passed keys, in Hz.
    pub(super) fn passed_clock(&self) -> u32 {
        self.passed_clock
    }

    /// Returns the tone that passes a key on to the far end.
    pub(super) fn passed_tone(&self, key: Pressed) -> LegTones {
        let seconds = f64::from(key.duration) / f64::from(self.passed_clock);
        let mut tones = LegTones::new(&[key.event], LegSide::FarEnd);
        // Clients do not say which of several clocks they count by.
        tones.duration = tones.duration.max(Duration::from_secs_f64(seconds));
        tones
    }
}
