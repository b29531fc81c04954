//! A recording in a playback: its packets in order, with times on the common timeline.

use std::collections::BTreeMap;
use std::time::Duration;

use portunus_rtp::header::{set_pt, set_sequence, set_ssrc, set_timestamp};
use portunus_rtp::{Header, Pt, Ssrc};

use super::drift::Drift;
use super::red;
use super::source::Source;
use super::unwrap::{Key, Unwrap};
use crate::FileError;
use crate::demux::Nanos;
use crate::schedule::rtp_ticks;

/// The time for which late packets are awaited.
const LATE: Duration = Duration::from_secs(1);

/// The limits of packets and bytes that wait meanwhile.
const MAX_WAITING: usize = 2_048;
const MAX_WAITING_BYTES: usize = 4 << 20;

/// A recording that is played.
#[derive(Debug)]
pub(super) struct RecordedTrack {
    pub(super) source: Source,
    /// The RTP clock rate, or `None` for messages.
    pub(super) rate: Option<u32>,
    /// The arrival of its first frame on the common timeline.
    pub(super) begins: Duration,
    /// The handling of redundant audio.
    pub(super) redundancy: Redundancy,
    unwrap: Unwrap,
    waiting: BTreeMap<Key, Waiting>,
    waiting_bytes: usize,
    /// The arrival of the last frame that was read.
    newest: Duration,
    ended: bool,
    /// The error that ended it early, until it is reported.
    pub(super) error: Option<FileError>,
    numbers: Numbers,
    /// The earliest time to play on the common timeline.
    from: Nanos,
    /// The keyframe to start with.
    keyframe: Option<u16>,
    next: Option<Due>,
    spare: Vec<Vec<u8>>,
}

/// The handling of redundant audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redundancy {
    /// There is none.
    None,
    /// All packets become redundant audio. In the file, it has this payload type.
    Kept(Pt),
    /// All packets become plain packets of the codec.
    TakenOut(Pt),
}

/// The payload type of packets, and of the blocks in redundant audio.
const OPUS_PT: Pt = Pt(111);

#[derive(Debug)]
struct Waiting {
    arrival: Nanos,
    time: Nanos,
    bytes: Vec<u8>,
}

/// The numbering of outgoing packets.
#[derive(Debug)]
struct Numbers {
    ssrc: Ssrc,
    /// The next sequence number.
    next: u16,
    /// The timestamp at time 0.
    timestamp: u32,
    stretch: Option<Stretch>,
    /// When the last packet was due.
    last_at: Nanos,
}

/// The mapping of a stretch's numbers to outgoing ones.
#[derive(Debug)]
struct Stretch {
    number: u32,
    sequence: u16,
    timestamp: u32,
    first: i64,
    drift: Drift,
}

/// The next packet.
#[derive(Debug)]
pub(super) struct Due {
    pub at: Nanos,
    pub presented: Nanos,
    pub bytes: Vec<u8>,
}

impl RecordedTrack {
    pub(super) fn new(source: Source, rate: Option<u32>) -> Self {
        let red = source.info().red.map(Pt);
        Self {
            unwrap: Unwrap::new(rate.unwrap_or(1)),
            source,
            rate,
            begins: Duration::ZERO,
            redundancy: red.map_or(Redundancy::None, Redundancy::Kept),
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            newest: Duration::ZERO,
            ended: false,
            error: None,
            numbers: Numbers {
                ssrc: Ssrc(rand::random()),
                // Below 2^15, so that no SRTP receiver misses the first roll-over.
                next: rand::random::<u16>() >> 1,
                timestamp: rand::random(),
                stretch: None,
                last_at: 0,
            },
            from: Nanos::MIN,
            keyframe: None,
            next: None,
            spare: Vec::new(),
        }
    }

    /// Returns the next sequence number.
    pub(super) fn next_sequence(&self) -> u16 {
        self.numbers.next
    }

    pub(super) fn set_next_sequence(&mut self, next: u16) {
        self.numbers.next = next;
    }

    /// Seeks to packets at `from` on the common timeline, or shortly before. They become due at
    /// `base` or later.
    pub(super) fn go_to(&mut self, from: Duration, base: Nanos) -> Result<(), FileError> {
        let place = self.source.go_to(from.saturating_sub(self.begins))?;
        let cleared = std::mem::take(&mut self.waiting);
        self.spare.extend(cleared.into_values().map(|it| it.bytes));
        self.spare.truncate(MAX_WAITING);
        self.waiting_bytes = 0;
        self.newest = place.at;
        self.ended = false;
        self.error = None;
        self.keyframe = place.keyframe;
        self.from = if from.is_zero() {
            Nanos::MIN
        } else {
            nanos(from)
        };
        self.next = None;
        self.unwrap = Unwrap::new(self.rate.unwrap_or(1));
        self.numbers.stretch = None;
        self.numbers.last_at = base;
        Ok(())
    }

    /// Returns the next packet with its times. `shift` is added to times on the common timeline.
    pub(super) fn peek(&mut self, shift: Nanos) -> Option<&Due> {
        while self.next.is_none() {
            self.read_ahead();
            let (key, waiting) = self.waiting.pop_first()?;
            self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.bytes.len());
            self.next = match self.rate {
                None => self.message(waiting, shift),
                Some(rate) => self.packet(rate, key, waiting, shift),
            };
        }
        self.next.as_ref()
    }

    /// Removes the packet that was played.
    pub(super) fn taken(&mut self) {
        if let Some(due) = self.next.take() {
            self.spare.push(due.bytes);
        }
    }

    pub(super) fn due(&self) -> Option<&Due> {
        self.next.as_ref()
    }

    /// Reads until the next packet is certain.
    fn read_ahead(&mut self) {
        while !self.ended && !self.knows_next() {
            let mut bytes = self.spare.pop().unwrap_or_default();
            match self.source.read(&mut bytes) {
                Ok(Some(arrival)) => {
                    self.newest = arrival;
                    self.keep(arrival, bytes);
                }
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    self.error = Some(error);
                }
            }
        }
    }

    fn knows_next(&self) -> bool {
        let first = self.waiting.first_key_value();
        first.is_some_and(|(_, first)| {
            nanos(self.newest).saturating_sub(first.arrival) >= nanos(LATE)
                || self.waiting.len() >= MAX_WAITING
                || self.waiting_bytes >= MAX_WAITING_BYTES
        })
    }

    fn keep(&mut self, arrival: Duration, bytes: Vec<u8>) {
        let (key, time) = match self.rate {
            None => {
                let last = self.waiting.last_key_value();
                let sequence = last.map_or(0, |(key, _)| key.sequence.saturating_add(1));
                let stretch = 0;
                (Key { stretch, sequence }, nanos(arrival))
            }
            Some(_) => match Header::parse(&bytes) {
                Ok(header) => {
                    if let Some(first) = self.keyframe {
                        let behind = header.sequence.wrapping_sub(first) as i16;
                        if behind < 0 {
                            self.spare.push(bytes);
                            return;
                        }
                        if behind == 0 {
                            self.keyframe = None;
                        }
                    }
                    self.unwrap.packet(&header, arrival)
                }
                Err(_) => {
                    self.spare.push(bytes);
                    return;
                }
            },
        };
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes.len());
        let waiting = Waiting {
            arrival: nanos(arrival),
            time,
            bytes,
        };
        if let Some(twice) = self.waiting.insert(key, waiting) {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(twice.bytes.len());
            self.spare.push(twice.bytes);
        }
    }

    /// Returns when a message is due, or `None` if it is before the start.
    fn message(&mut self, waiting: Waiting, shift: Nanos) -> Option<Due> {
        let line = waiting.arrival.saturating_add(nanos(self.begins));
        if line < self.from {
            return None;
        }
        let at = line.saturating_add(shift).max(self.numbers.last_at);
        self.numbers.last_at = at;
        Some(Due {
            at,
            presented: at,
            bytes: waiting.bytes,
        })
    }

    /// Returns when a packet is due, with its outgoing numbers, or `None` if it is not played.
    fn packet(&mut self, rate: u32, key: Key, waiting: Waiting, shift: Nanos) -> Option<Due> {
        let Waiting {
            arrival,
            time,
            mut bytes,
        } = waiting;
        let header = Header::parse(&bytes).ok()?;
        let last = self.numbers.stretch.take();
        let (mut stretch, is_new) = match last {
            Some(stretch) if stretch.number == key.stretch => (stretch, false),
            _ => {
                let same = self.waiting.range(key..);
                let same = same.take_while(|(other, _)| other.stretch == key.stretch);
                let late = same.map(|(_, it)| it.arrival.saturating_sub(it.time));
                let delay = late.fold(arrival.saturating_sub(time), Nanos::min);
                let stretch = Stretch {
                    number: key.stretch,
                    sequence: self.numbers.next,
                    timestamp: 0,
                    first: key.sequence,
                    drift: Drift::new(delay),
                };
                (stretch, true)
            }
        };
        let delay = stretch.drift.delay(time, arrival);
        let line = time
            .saturating_add(delay)
            .saturating_add(nanos(self.begins));
        let presented = line.saturating_add(shift);
        if is_new {
            let first = rtp_ticks(presented, rate).wrapping_add(self.numbers.timestamp);
            stretch.timestamp = first.wrapping_sub(header.timestamp);
        }
        let behind = key.sequence.saturating_sub(stretch.first);
        let sequence = stretch.sequence.wrapping_add(behind as u16);
        let offset = stretch.timestamp;
        // Audio before the start would be played in a hurry. Video starts with its keyframe.
        let is_before = line < self.from && !self.source.has_keyframes();
        // It is later than packets are awaited.
        let is_past = !is_new && (sequence.wrapping_sub(self.numbers.next) as i16) < 0;
        if is_before || is_past || !self.convert(&header, &mut bytes) {
            if is_before {
                self.numbers.stretch = (!is_new).then_some(stretch);
            } else {
                self.numbers.stretch = Some(stretch);
            }
            self.spare.push(bytes);
            return None;
        }
        self.numbers.stretch = Some(stretch);
        self.numbers.next = sequence.wrapping_add(1);
        set_sequence(&mut bytes, sequence);
        set_timestamp(&mut bytes, header.timestamp.wrapping_add(offset));
        set_ssrc(&mut bytes, self.numbers.ssrc);
        let at = presented.max(self.numbers.last_at);
        self.numbers.last_at = at;
        Some(Due {
            at,
            presented: presented.max(0),
            bytes,
        })
    }

    /// Converts redundant audio to the wanted form. Returns false if the packet is malformed.
    fn convert(&self, header: &Header, bytes: &mut Vec<u8>) -> bool {
        let range = header.payload_range();
        match self.redundancy {
            Redundancy::None => true,
            Redundancy::Kept(red) if header.pt == red => {
                let payload = bytes.get_mut(range);
                payload.is_some_and(|payload| red::set_payload_type(payload, OPUS_PT.0))
            }
            Redundancy::Kept(red) => {
                // A primary block alone.
                bytes.insert(range.start.min(bytes.len()), OPUS_PT.0);
                set_pt(bytes, red);
                true
            }
            Redundancy::TakenOut(red) if header.pt == red => {
                let payload = header.payload(bytes);
                let Some(primary) = red::primary(payload) else {
                    return false;
                };
                let skipped = payload.len().saturating_sub(primary.len());
                bytes.drain(range.start..range.start.saturating_add(skipped));
                set_pt(bytes, OPUS_PT);
                true
            }
            Redundancy::TakenOut(_) => true,
        }
    }
}

pub(super) fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}
