//! Telephone events in RTP (RFC 4733): keys of a telephone, in payloads of four bytes.

use std::time::{Duration, Instant};

use crate::RtpError;

/// The bytes of a payload.
pub const LEN: usize = 4;
/// The characters of the events 0 to 15.
const DIGITS: &[u8; 16] = b"0123456789*#ABCD";
/// The time without a packet after which an event counts as ended: three times the 50 ms between
/// repetitions, since networks lose packets in bursts.
const LOST: Duration = Duration::from_millis(500);
/// The longest duration in a packet. A longer event continues with a new timestamp (section
/// 2.5.1.3).
const SEGMENT: u16 = u16::MAX;

/// Returns the character of an event, if it is a key.
pub fn digit(event: u8) -> Option<char> {
    DIGITS
        .get(usize::from(event))
        .map(|digit| char::from(*digit))
}

/// Returns the event of a key.
pub fn event(digit: char) -> Option<u8> {
    let of = |known: &u8| char::from(*known) == digit.to_ascii_uppercase();
    let place = DIGITS.iter().position(of)?;
    u8::try_from(place).ok()
}

/// The content of a packet (section 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelephoneEvent {
    /// The event. 0 to 15 are the keys `0123456789*#ABCD`.
    pub event: u8,
    /// Whether it has ended.
    pub end: bool,
    /// The power of the tone in -dBm0, 0 to 63.
    pub volume: u8,
    /// The duration so far, in units of RTP time.
    pub duration: u16,
}

impl TelephoneEvent {
    /// Reads a payload. Ignores bytes after the first event.
    pub fn parse(payload: &[u8]) -> Result<Self, RtpError> {
        let error = RtpError::Truncated {
            expected: LEN,
            actual: payload.len(),
        };
        let &[event, flags, high, low] = payload.first_chunk::<LEN>().ok_or(error)?;
        Ok(Self {
            event,
            end: flags & 0x80 != 0,
            volume: flags & 0x3f,
            duration: u16::from_be_bytes([high, low]),
        })
    }

    /// Returns the payload.
    pub fn to_bytes(self) -> [u8; LEN] {
        let [high, low] = self.duration.to_be_bytes();
        let flags = u8::from(self.end) << 7 | self.volume.min(0x3f);
        [self.event, flags, high, low]
    }
}

/// A key that was pressed and released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressed {
    /// The event.
    pub event: u8,
    /// The duration, in units of RTP time.
    pub duration: u32,
}

/// Makes one [`Pressed`] of all packets of an event, even if some are lost, repeated, late or
/// split.
#[derive(Debug, Clone, Default)]
pub struct Detector {
    last: Option<Event>,
}

/// The last event.
#[derive(Debug, Clone, Copy)]
struct Event {
    event: u8,
    /// The timestamp of the current segment.
    timestamp: u32,
    /// The duration of earlier segments.
    before: u32,
    duration: u16,
    heard: Instant,
    is_told: bool,
}

impl Event {
    fn pressed(&mut self) -> Option<Pressed> {
        let is_new = !std::mem::replace(&mut self.is_told, true);
        is_new.then(|| Pressed {
            event: self.event,
            duration: self.before.saturating_add(u32::from(self.duration)),
        })
    }
}

impl Detector {
    /// Takes a packet. Returns the events that it ends: an earlier one, and its own.
    pub fn take(
        &mut self,
        packet: TelephoneEvent,
        (timestamp, marker): (u32, bool),
        now: Instant,
    ) -> impl Iterator<Item = Pressed> + use<> {
        let mut ended = [None, None];
        if let Some(last) = &mut self.last {
            let ahead = timestamp.wrapping_sub(last.timestamp) as i32;
            let is_recent = now.saturating_duration_since(last.heard) < LOST;
            if ahead == 0 && last.event == packet.event && (is_recent || last.is_told) {
                last.heard = now;
                last.duration = last.duration.max(packet.duration);
                let own = packet.end.then(|| last.pressed()).flatten();
                return [own, None].into_iter().flatten();
            }
            if ahead < 0 && is_recent {
                // The event has already ended.
                return ended.into_iter().flatten();
            }
            let segment = u32::from(last.duration);
            if last.event == packet.event
                && !last.is_told
                && !marker
                && last.duration == SEGMENT
                && timestamp == last.timestamp.wrapping_add(segment)
            {
                last.before = last.before.saturating_add(segment);
                last.timestamp = timestamp;
                last.duration = packet.duration;
                last.heard = now;
                let own = packet.end.then(|| last.pressed()).flatten();
                return [own, None].into_iter().flatten();
            }
            ended[0] = last.pressed();
        }
        let mut next = Event {
            event: packet.event,
            timestamp,
            before: 0,
            duration: packet.duration,
            heard: now,
            is_told: false,
        };
        if packet.end {
            ended[1] = next.pressed();
        }
        self.last = Some(next);
        ended.into_iter().flatten()
    }

    /// Returns when the current event ends without further packets.
    pub fn deadline(&self) -> Option<Instant> {
        let last = self.last.as_ref().filter(|last| !last.is_told)?;
        Some(last.heard + LOST)
    }

    /// Returns the current event if it has ended at `now` for lack of packets.
    pub fn timeout(&mut self, now: Instant) -> Option<Pressed> {
        if self.deadline()? > now {
            return None;
        }
        self.last.as_mut()?.pressed()
    }

    /// Ends the current event, since the next packets are from another sender.
    pub fn restart(&mut self) -> Option<Pressed> {
        self.last.take()?.pressed()
    }
}
