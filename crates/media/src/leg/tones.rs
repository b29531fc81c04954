//! Schedules the packets of telephone events (RFC 4733 section 2.5).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use portunus_rtp::telephone_event::TelephoneEvent;

use super::LegTones;

/// The time between two packets of an event.
const APART: Duration = Duration::from_millis(20);
/// The number of packets that report the end of an event.
const ENDS: u8 = 3;
/// The power of a tone in -dBm0, as WebRTC clients send it.
const VOLUME: u8 = 10;
/// The maximum number of events that wait.
const MOST: usize = 64;
const DURATION: (Duration, Duration) = (Duration::from_millis(40), Duration::from_secs(6));
const GAP: (Duration, Duration) = (Duration::from_millis(30), Duration::from_secs(6));

/// A packet to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tone {
    pub(crate) payload: TelephoneEvent,
    /// It starts an event: the present timestamp is used for it and for the packets that follow.
    pub(crate) begins: bool,
    /// The distance from the timestamp of the start. Long events continue in segments.
    pub(crate) offset: u32,
}

/// The events for one side.
#[derive(Debug, Default)]
pub(crate) struct Tones {
    waiting: VecDeque<Planned>,
    current: Option<Sounding>,
    /// The earliest time for the next event.
    next_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    event: u8,
    duration: Duration,
    gap: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Sounding {
    planned: Planned,
    began: Instant,
    next: Instant,
    sent: u32,
    /// The start of the present segment, in RTP time.
    segment: u32,
    ends: u8,
}

impl Tones {
    /// Queues events, as long as there is room.
    pub(crate) fn add(&mut self, tones: &LegTones, now: Instant) {
        let room = MOST.saturating_sub(self.waiting.len());
        let planned = tones.events.iter().map(|event| Planned {
            event: *event,
            duration: tones.duration.clamp(DURATION.0, DURATION.1),
            gap: tones.gap.clamp(GAP.0, GAP.1),
        });
        self.waiting.extend(planned.take(room));
        self.next_at.get_or_insert(now);
    }

    /// Whether an event is being sent, during which nothing else is heard.
    pub(crate) fn are_sounding(&self) -> bool {
        self.current.is_some()
    }

    /// Drops all events.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// When the next packet is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match &self.current {
            Some(sounding) => Some(sounding.next),
            None => self.next_at.filter(|_| !self.waiting.is_empty()),
        }
    }

    /// Returns the packet that is due, with times in units of `clock_rate` Hz.
    pub(crate) fn poll(&mut self, clock_rate: u32, now: Instant) -> Option<Tone> {
        if self.deadline()? > now {
            return None;
        }
        let mut sounding = match self.current.take() {
            Some(sounding) => sounding,
            None => Sounding {
                planned: self.waiting.pop_front()?,
                began: now,
                next: now,
                sent: 0,
                segment: 0,
                ends: 0,
            },
        };
        let begins = sounding.sent == 0;
        sounding.sent = sounding.sent.saturating_add(1);
        let ticks = |time: Duration| {
            let ticks = time.as_micros() * u128::from(clock_rate) / 1_000_000;
            u32::try_from(ticks).unwrap_or(u32::MAX)
        };
        let planned = sounding.planned;
        let (whole, told) = (ticks(planned.duration), ticks(APART * sounding.sent));
        let mut rest = told.min(whole).saturating_sub(sounding.segment);
        let mut offset = sounding.segment;
        let most = u32::from(u16::MAX);
        let mut end = told >= whole;
        if rest > most {
            // This packet ends the segment, and the next one starts another.
            (rest, end) = (most, false);
            sounding.segment = sounding.segment.saturating_add(most);
        }
        if end {
            sounding.ends += 1;
            offset = sounding.segment;
        }
        sounding.next = (sounding.next + APART).max(now);
        if sounding.ends < ENDS {
            self.current = Some(sounding);
        } else {
            self.next_at = Some(sounding.began.max(now) + planned.gap);
        }
        Some(Tone {
            payload: TelephoneEvent {
                event: planned.event,
                end,
                volume: VOLUME,
                duration: u16::try_from(rest).unwrap_or(u16::MAX),
            },
            begins,
            offset,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a failed test panics"
    )]
    use portunus_rtp::telephone_event::{Detector, Pressed};
    use proptest::prelude::*;

    use super::*;
    use crate::leg::LegSide;

    /// All packets with the times and timestamps at which they leave.
    fn played(tones: &LegTones, clock_rate: u32) -> Vec<(Instant, u32, Tone)> {
        let start = Instant::now();
        let (mut all, mut playing, mut begun) = (Vec::new(), Tones::default(), 0);
        playing.add(tones, start);
        while let Some(at) = playing.deadline() {
            let tone = playing.poll(clock_rate, at).unwrap();
            if tone.begins {
                let since = at.duration_since(start).as_micros() as u64;
                begun = (since * u64::from(clock_rate) / 1_000_000) as u32;
            }
            all.push((at, begun.wrapping_add(tone.offset), tone));
        }
        all
    }

    fn detect(packets: impl IntoIterator<Item = (Instant, u32, Tone)>) -> Vec<Pressed> {
        let mut detector = Detector::default();
        let mut pressed = Vec::new();
        let mut last = None;
        for (at, timestamp, tone) in packets {
            pressed.extend(detector.take(tone.payload, (timestamp, tone.begins), at));
            last = Some(at);
        }
        let end = last.map(|at| at + Duration::from_secs(1));
        pressed.extend(end.and_then(|end| detector.timeout(end)));
        pressed
    }

    #[test]
    fn a_key_takes_its_time_and_is_told_three_times_to_have_ended() {
        let tones = LegTones::new(&[5], LegSide::FarEnd);
        let packets = played(&tones, 8_000);
        let durations: Vec<u16> = packets
            .iter()
            .map(|(_, _, it)| it.payload.duration)
            .collect();
        assert_eq!(durations, [160, 320, 480, 640, 800, 800, 800]);
        let ends = packets.iter().filter(|(_, _, tone)| tone.payload.end);
        assert_eq!(ends.count(), 3);
        let begins: Vec<bool> = packets.iter().map(|(_, _, tone)| tone.begins).collect();
        assert!(begins[0] && begins[1..].iter().all(|begins| !begins));
    }

    #[test]
    fn long_keys_go_on_in_segments_and_are_one() {
        let tones = LegTones {
            duration: Duration::from_secs(6),
            ..LegTones::new(&[1, 1], LegSide::FarEnd)
        };
        let packets = played(&tones, 48_000);
        assert!(packets.iter().any(|(_, _, tone)| tone.offset > 0));
        let key = Pressed {
            event: 1,
            duration: 288_000,
        };
        assert_eq!(detect(packets), [key, key]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut tones = Tones::default();
        let start = Instant::now();
        for _ in 0..100 {
            tones.add(&LegTones::new(&[0; 16], LegSide::Near), start);
        }
        assert_eq!(tones.waiting.len(), MOST);
        tones.clear();
        assert_eq!(tones.deadline(), None);
    }

    proptest! {
        /// Whatever single packets are lost, repeated or late, each key is heard once, in order.
        #[test]
        fn keys_survive_networks(
            events in prop::collection::vec(0u8..=16, 1..8),
            duration in 40u64..900,
            gap in 30u64..200,
            fates in prop::collection::vec(0u8..8, 400),
        ) {
            let tones = LegTones {
                duration: Duration::from_millis(duration),
                gap: Duration::from_millis(gap),
                ..LegTones::new(&events, LegSide::FarEnd)
            };
            let packets = played(&tones, 8_000);
            let mut arriving = Vec::new();
            let mut lost_before = false;
            for (packet, fate) in packets.iter().zip(fates.iter().cycle()) {
                match fate {
                    // Never two in a row.
                    0 | 1 if !lost_before => lost_before = true,
                    2 => { arriving.extend([*packet, *packet]); lost_before = false; }
                    3 => {
                        // It overtakes the one before.
                        let at = arriving.len().saturating_sub(1);
                        arriving.insert(at, *packet);
                        lost_before = false;
                    }
                    _ => { arriving.push(*packet); lost_before = false; }
                }
            }
            let mut times: Vec<Instant> = arriving.iter().map(|(at, ..)| *at).collect();
            times.sort();
            let arriving = arriving.into_iter().zip(times).map(|((_, ts, tone), at)| (at, ts, tone));
            let heard: Vec<u8> = detect(arriving).into_iter().map(|key| key.event).collect();
            prop_assert_eq!(heard, events);
        }
    }
}
