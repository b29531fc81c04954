//! Audio without holes: samples follow one another, at their times by the clock.
//!
//! Both players that count samples and players that use times must stay synchronous with the video.
//! So gaps are filled, and when a sender's sampling clock is off by 10 ms, 10 ms of concealment are
//! inserted, or audio is left out.

use crate::bitstream::Setup;
use crate::container::{Rotation, TrackSetup};
use crate::opus::{Gap, OpusTime, Toc, packet_duration};
use crate::track::Codec;

use super::lipsync::Stamp;
use super::merge::Opening;
use super::{Nanos, PartReason, SECOND};

/// The tolerated error and the size of a correction, as a part of a second: a 100th.
const PIECES: i64 = 100;
/// The longest gap that is filled, in seconds. A longer one is a gap in the times.
const LONGEST_FILL: i64 = 60;
/// A packet of this level in -dBov or quieter can be left out.
const QUIET: u8 = 60;
/// An Opus packet this short is empty.
const EMPTY: usize = 3;
/// The time for which a quiet packet is awaited, in seconds.
const PATIENCE: i64 = 2;
/// The longest plausible G.711 packet in samples: a second.
const LONGEST_PCM: usize = 8_000;
/// The samples of G.711 that are filled at a time.
const FILL_PCM: i64 = 800;

fn opening(codec: Codec, part: Option<PartReason>) -> Opening {
    let setup = match codec {
        Codec::Pcmu => Setup::Pcmu,
        Codec::Pcma => Setup::Pcma,
        // WebRTC's Opus decoders make two channels of any packet (RFC 7587 section 7).
        _ => Setup::Opus { channels: 2 },
    };
    let setup = TrackSetup {
        setup,
        picture: None,
        rotation: Rotation::R0,
        name: None,
    };
    Opening { setup, part }
}

/// A packet of audio to be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) at: Nanos,
    pub(super) duration: Nanos,
    pub(super) data: Vec<u8>,
    pub(super) is_fill: bool,
}

/// The result of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It has its place, and the audio before it is complete except for `missed`.
    Placed { missed: Option<(Nanos, Nanos)> },
    /// There is audio at its time already, or the audio was ahead.
    LeftOut,
    /// It is not a packet of the codec.
    Unfit,
}

/// The audio of a track. Lengths are in samples.
#[derive(Debug)]
pub(super) struct Sound {
    codec: Codec,
    rate: i64,
    /// The place of the next sample on the server's clock, in samples.
    end: Option<i64>,
    /// The end of the sender's audio.
    heard: i64,
    /// The timestamp that follows.
    next: Option<Stamp>,
    /// The samples that were filled since the last packet.
    filled: i64,
    /// The first byte of the last packet.
    toc: Toc,
    /// The end of the last G.711 packet.
    tail: Vec<u8>,
    /// Since when the audio is off.
    off_since: Option<i64>,
    /// The setup of its first packet, until it is returned.
    opening: Option<Box<Opening>>,
}

impl Sound {
    pub(super) fn new(codec: Codec) -> Self {
        Self {
            codec,
            rate: codec.clock_rate().into(),
            end: None,
            heard: 0,
            next: None,
            filled: 0,
            toc: Toc(0),
            tail: Vec::new(),
            off_since: None,
            opening: Some(Box::new(opening(codec, None))),
        }
    }

    /// Notes whether the track had another codec before, so that another part starts.
    pub(super) fn after(mut self, another: bool) -> Self {
        let part = another.then_some(PartReason::Codec);
        self.opening = Some(Box::new(opening(self.codec, part)));
        self
    }

    /// Notes that the following audio comes from another sender.
    pub(super) fn interrupt(&mut self) {
        self.next = None;
        self.off_since = None;
    }

    pub(super) fn codec(&self) -> Codec {
        self.codec
    }

    /// Returns the setup of the track with its first packet.
    pub(super) fn open(&mut self) -> Option<Box<Opening>> {
        self.opening.take()
    }

    /// Returns the timestamp that follows the last packet in its stream.
    pub(super) fn next(&self) -> Option<Stamp> {
        self.next
    }

    /// Returns the length of a packet, if it is valid.
    fn length(&self, packet: &[u8]) -> Option<i64> {
        match self.codec {
            Codec::Opus => i64::try_from(packet_duration(packet)?.0).ok(),
            _ if packet.is_empty() || packet.len() > LONGEST_PCM => None,
            _ => i64::try_from(packet.len()).ok(),
        }
    }

    /// Takes the next packet, whose time by the clock is `at`.
    pub(super) fn put(
        &mut self,
        packet: &[u8],
        stamp: Stamp,
        at: Nanos,
        level: Option<u8>,
        emit: &mut impl FnMut(Piece),
    ) -> Put {
        let Some(length) = self.length(packet) else {
            return Put::Unfit;
        };
        let at = self.samples(at);
        let Some(end) = self.end else {
            self.end = Some(at);
            self.write(packet, length, emit);
            self.follow(stamp, length);
            return Put::Placed { missed: None };
        };
        let next = self.next.filter(|next| next.stream == stamp.stream);
        let behind_next = next.map(|next| stamp.ticks.saturating_sub(next.ticks));
        if behind_next.is_some_and(|ticks| ticks.saturating_add(length) <= 0) {
            return Put::LeftOut;
        }
        let piece = self.rate / PIECES;
        let behind = at.saturating_sub(end);
        // More than a second is no drift.
        let follows =
            behind_next.is_some_and(|ticks| ticks <= 0) && self.filled == 0 && behind < self.rate;
        self.follow(stamp, length);
        if behind <= -length.max(piece) || !follows && behind < -length / 2 {
            self.off_since = None;
            return Put::LeftOut;
        }
        let heard = self.nanos(self.heard);
        if !follows {
            self.off_since = None;
            self.fill_gap(behind, emit);
            self.write(packet, length, emit);
            let begins = self.nanos(self.heard.saturating_sub(length));
            let missed = (begins > heard).then_some((heard, begins));
            return Put::Placed { missed };
        }
        if behind.saturating_abs() < piece {
            self.off_since = None;
        } else if self.is_time(packet, behind, level) {
            self.off_since = None;
            if behind > 0 {
                self.stretch(behind / piece * piece, emit);
            } else {
                return self.shorten(packet, length, piece, emit);
            }
        }
        self.write(packet, length, emit);
        Put::Placed { missed: None }
    }

    /// Fills the time until `until`, up to the longest gap and in whole packets.
    pub(super) fn fill(&mut self, until: Nanos, emit: &mut impl FnMut(Piece)) {
        let until = self.samples(until);
        let Some(end) = self.end else {
            return;
        };
        let frame = self.rate / 50;
        let most = (LONGEST_FILL * self.rate).saturating_sub(self.filled);
        let length = until.saturating_sub(end).min(most) / frame * frame;
        if length > 0 {
            self.fill_with(length, emit);
        }
    }

    /// Whether an error is to be corrected at this packet.
    fn is_time(&mut self, packet: &[u8], behind: i64, level: Option<u8>) -> bool {
        let since = *self.off_since.get_or_insert(self.heard);
        let is_quiet = match level {
            Some(level) => level >= QUIET,
            None => true,
        };
        is_quiet
            || self.codec == Codec::Opus && packet.len() <= EMPTY
            || behind.saturating_abs() >= self.rate * 3 / (PIECES * 2)
            || self.heard.saturating_sub(since) >= PATIENCE * self.rate
    }

    /// Inserts concealment before a packet.
    fn stretch(&mut self, length: i64, emit: &mut impl FnMut(Piece)) {
        let heard = self.heard;
        match self.codec {
            Codec::Opus => self.fill_with(length, emit),
            _ => {
                let data = self.tail.clone();
                let count = usize::try_from(length).unwrap_or(0);
                let data: Vec<u8> = data.iter().copied().cycle().take(count).collect();
                let length = i64::try_from(data.len()).unwrap_or(0);
                self.emit(data, length, true, emit);
            }
        }
        self.filled = 0;
        self.heard = heard;
    }

    /// Writes less than the packet.
    fn shorten(
        &mut self,
        packet: &[u8],
        length: i64,
        piece: i64,
        emit: &mut impl FnMut(Piece),
    ) -> Put {
        let left = length.saturating_sub(piece);
        if left <= 0 {
            return Put::LeftOut;
        }
        match self.codec {
            Codec::Opus => {
                self.toc = Toc(packet.first().copied().unwrap_or(0));
                self.fill_with(left, emit);
                self.filled = 0;
                self.heard = self.end.unwrap_or(self.heard);
                Put::LeftOut
            }
            _ => {
                let left = usize::try_from(left).unwrap_or(0);
                let packet = packet.get(..left).unwrap_or(packet);
                self.write(packet, packet.len() as i64, emit);
                Put::Placed { missed: None }
            }
        }
    }

    fn fill_gap(&mut self, length: i64, emit: &mut impl FnMut(Piece)) {
        let most = (LONGEST_FILL * self.rate).saturating_sub(self.filled);
        if length > most {
            self.end = self.end.map(|end| end.saturating_add(length));
        } else if length > 0 {
            self.fill_with(length, emit);
        }
    }

    fn fill_with(&mut self, length: i64, emit: &mut impl FnMut(Piece)) {
        match self.codec {
            Codec::Opus => {
                let time = |samples: i64| OpusTime(u64::try_from(samples).unwrap_or(0));
                for (data, length) in Gap::going_on(self.toc, time(self.filled), time(length)) {
                    let length = i64::try_from(length.0).unwrap_or(0);
                    self.filled = self.filled.saturating_add(length);
                    self.emit(data, length, true, emit);
                }
            }
            codec => {
                let silence = if codec == Codec::Pcma { 0xd5 } else { 0xff };
                let mut left = length;
                while left > 0 {
                    let length = left.min(FILL_PCM);
                    left = left.saturating_sub(length);
                    self.filled = self.filled.saturating_add(length);
                    let data = vec![silence; usize::try_from(length).unwrap_or(0)];
                    self.emit(data, length, true, emit);
                }
            }
        }
    }

    fn write(&mut self, packet: &[u8], length: i64, emit: &mut impl FnMut(Piece)) {
        match self.codec {
            Codec::Opus => self.toc = Toc(packet.first().copied().unwrap_or(0)),
            _ => {
                let piece = usize::try_from(self.rate / PIECES).unwrap_or(0);
                self.tail.clear();
                let from = packet.len().saturating_sub(piece);
                self.tail.extend(packet.get(from..).unwrap_or_default());
            }
        }
        self.emit(packet.to_vec(), length, false, emit);
        self.filled = 0;
        self.heard = self.end.unwrap_or(self.heard);
    }

    fn emit(&mut self, data: Vec<u8>, length: i64, is_fill: bool, emit: &mut impl FnMut(Piece)) {
        let begin = self.end.unwrap_or(0);
        let end = begin.saturating_add(length);
        self.end = Some(end);
        let at = self.nanos(begin);
        emit(Piece {
            at,
            duration: self.nanos(end).saturating_sub(at),
            data,
            is_fill,
        });
    }

    fn follow(&mut self, stamp: Stamp, length: i64) {
        self.next = Some(Stamp {
            stream: stamp.stream,
            ticks: stamp.ticks.saturating_add(length),
        });
    }

    fn samples(&self, at: Nanos) -> i64 {
        let samples = i128::from(at) * i128::from(self.rate) / i128::from(SECOND);
        i64::try_from(samples).unwrap_or(i64::MAX / 2)
    }

    fn nanos(&self, samples: i64) -> Nanos {
        let nanos = i128::from(samples) * i128::from(SECOND) / i128::from(self.rate.max(1));
        Nanos::try_from(nanos).unwrap_or(Nanos::MAX)
    }
}
