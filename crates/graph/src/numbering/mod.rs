//! The numbers of a sink: one continuous space of sequence numbers, timestamps and picture ids
//! across layer switches, source switches and dropped layers.

use std::mem;
use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;
use portunus_sdp::negotiated::Codec;

use super::{Packet, Part, PictureIds, SourceKey};
use crate::SharedClock;

/// How many packets back retransmission goes, which is as many as a history keeps.
const REMEMBERED: u64 = 1_024;
/// How long timestamps can be compared: after hours they wrap around.
const COMPARABLE: Duration = Duration::from_secs(60);
/// The maximum number of ended runs. If every frame loses its upper layer, each frame ends one.
const MAX_RUNS: usize = 128;
/// How far back, in picture ids, VP9 can refer (P_DIFF of a scalability structure, RFC 9628 section
/// 4.2). The second is the practical limit for 7-bit ids, of which all are in reach.
const VP9_REACH: u16 = 255;
const VP9_REACH_SHORT: u16 = 63;
/// How far back, in frame numbers, a dependency descriptor can refer (12 bits, plus one).
const FRAME_REACH: u16 = 4_096;

/// How a packet was sent: enough to write it again exactly as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// The sequence number at the sink.
    pub out: SeqNo,
    /// The sequence number at the source.
    pub seq: SeqNo,
    /// The source.
    pub source: SourceKey,
    /// The simulcast encoding.
    pub encoding: u8,
    /// Added to the timestamp.
    pub timestamp_offset: u32,
    /// Added to the picture numbers of VP8 and VP9.
    pub ids_offset: PictureIds,
    /// Added to the frame numbers of dependency descriptors.
    pub frame_offset: u16,
    /// The layers that were relayed.
    pub part: Part,
}

/// Consecutive packets of one stream that were all numbered in the same way. Packets that were lost
/// before they came here keep their numbers, in case they arrive late.
///
/// A run replaces a record for each packet: an undisturbed stream is a single run.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The source number of the first packet.
    first: SeqNo,
    /// The source number of the last packet. It is before `first` if the run is empty.
    last: SeqNo,
    /// Added to the sequence numbers.
    offset: i64,
    source: SourceKey,
    timestamp_offset: u32,
    ids_offset: PictureIds,
    frame_offset: u16,
    encoding: u8,
    generation: u8,
    part: Part,
}

impl Run {
    fn is_empty(&self) -> bool {
        self.last < self.first
    }

    fn is_of(&self, source: SourceKey, packet: &Packet) -> bool {
        let stream = (packet.encoding, packet.generation);
        self.source == source && (self.encoding, self.generation) == stream
    }

    fn out(&self, seq: SeqNo) -> Option<SeqNo> {
        seq.0.checked_add_signed(self.offset).map(SeqNo)
    }

    #[inline]
    fn sent(&self, seq: SeqNo, out: SeqNo) -> Sent {
        Sent {
            out,
            seq,
            source: self.source,
            encoding: self.encoding,
            timestamp_offset: self.timestamp_offset,
            ids_offset: self.ids_offset,
            frame_offset: self.frame_offset,
            part: self.part,
        }
    }

    /// Returns the packet with source number `seq`, if it is in the run.
    fn find(&self, seq: SeqNo) -> Option<Sent> {
        let holds = (self.first..=self.last).contains(&seq);
        holds.then(|| self.out(seq).map(|out| self.sent(seq, out)))?
    }

    /// Returns the packet with sink number `out`, if it is in the run.
    fn find_out(&self, out: SeqNo) -> Option<Sent> {
        let seq = out.0.checked_add_signed(self.offset.checked_neg()?)?;
        self.find(SeqNo(seq))
    }
}

/// Maps the numbers of the relayed streams to those of the sink.
#[derive(Debug)]
#[repr(C)]
pub struct Numbering {
    /// The stream that is relayed now.
    current: Option<Run>,
    highest_out: SeqNo,
    last_timestamp: u32,
    last_ids: PictureIds,
    last_frame: Option<u16>,
    last_at: Option<Instant>,
    dropped_picture: Option<u32>,
    /// A ring of earlier runs.
    ended: Vec<Run>,
    next_ended: usize,
    /// The shared clock of the last packet's source, and what was added to its timestamps.
    shared_clock: Option<(SharedClock, u32)>,
}

impl Numbering {
    /// The size of the part at the start that each packet reads.
    pub const HEAD: usize = mem::offset_of!(Self, ended);

    /// Returns the numbering of a sink whose first packet follows `start`. It stays below 2^15,
    /// because the receiver assumes an SRTP roll-over counter of 0 (RFC 3711 section 3.3.1).
    pub fn starting_after(start: u16) -> Self {
        Self {
            current: None,
            highest_out: SeqNo(u64::from(start & 0x7fff)),
            last_timestamp: 0,
            last_ids: PictureIds::default(),
            last_frame: None,
            last_at: None,
            dropped_picture: None,
            ended: Vec::new(),
            next_ended: 0,
            shared_clock: None,
        }
    }

    /// Numbers a relayed packet. Returns `None` if it is from before the switch to its stream, or
    /// was dropped already.
    #[inline]
    pub fn forward(
        &mut self,
        source: SourceKey,
        packet: &Packet,
        clock_rate: u32,
        part: Part,
    ) -> Option<Sent> {
        match &self.current {
            Some(run) if run.is_of(source, packet) => {
                if packet.seq <= run.last {
                    return self.late(source, packet);
                }
                let is_far = packet.seq.0 - run.last.0 > REMEMBERED;
                let changes = run.part != part;
                if is_far {
                    self.close_up(source, packet);
                }
                if changes {
                    self.change_part(part);
                }
            }
            _ if self.is_heard(packet) => return None,
            _ => self.switch(source, packet, clock_rate, part),
        }
        let run = self.current.as_mut()?;
        let out = run.out(packet.seq)?;
        run.last = packet.seq;
        self.highest_out = out;
        self.last_timestamp = packet.header.timestamp.wrapping_add(run.timestamp_offset);
        self.last_at = Some(packet.arrival);
        if let Some(clock) = packet.clock {
            self.shared_clock = Some((clock, run.timestamp_offset));
        }
        if let Some(ids) = packet.ids {
            self.last_ids = ids.plus(run.ids_offset);
        }
        if let Some(frame) = packet.frame {
            self.last_frame = Some(frame.wrapping_add(run.frame_offset));
        }
        Some(run.sent(packet.seq, out))
    }

    /// Drops a packet of the relayed stream (of an upper layer), without a gap in the numbers.
    #[inline]
    pub fn skip(&mut self, source: SourceKey, packet: &Packet) {
        let Some(run) = self.current.as_mut() else {
            return;
        };
        if !run.is_of(source, packet) || packet.seq <= run.last {
            return;
        }
        // Packets lost before it keep their numbers: they may still arrive.
        run.last = SeqNo(packet.seq.0.saturating_sub(1));
        let ended = (!run.is_empty()).then_some(*run);
        run.first = SeqNo(packet.seq.0.saturating_add(1));
        run.last = packet.seq;
        run.offset = run.offset.wrapping_sub(1);
        // VP9 refers to pictures by the distance of their ids, so ids of dropped pictures stay
        // unused.
        let closes = packet.ids.is_some() && packet.codec != Codec::Vp9;
        if closes && self.dropped_picture != Some(packet.header.timestamp) {
            self.dropped_picture = Some(packet.header.timestamp);
            run.ids_offset.picture = run.ids_offset.picture.wrapping_sub(1);
        }
        if let Some(ended) = ended {
            self.highest_out = ended.out(ended.last).unwrap_or(self.highest_out);
            self.end(ended);
        }
    }

    /// Inserts a packet of our own. Returns its number and the present timestamp.
    pub fn insert(&mut self, clock_rate: u32, now: Instant) -> (SeqNo, u32) {
        if let Some(run) = self.current.as_mut() {
            let ended = *run;
            run.first = SeqNo(run.last.0.saturating_add(1));
            run.offset = run.offset.wrapping_add(1);
            self.end(ended);
        }
        self.highest_out = SeqNo(self.highest_out.0.saturating_add(1));
        let since = self.last_at.map(|at| now.saturating_duration_since(at));
        let ticks = since.map(|since| since.as_micros() * u128::from(clock_rate) / 1_000_000);
        let timestamp = self.last_timestamp.wrapping_add(ticks.unwrap_or(0) as u32);
        // The next relayed packet continues as if the stream had gone on meanwhile.
        (self.last_timestamp, self.last_at) = (timestamp, Some(now));
        (self.highest_out, timestamp)
    }

    /// Whether any packet was relayed to the sink yet.
    #[inline]
    pub fn has_begun(&self) -> bool {
        self.last_at.is_some()
    }

    /// Leaves no gap in the numbers before this packet of the relayed stream. Timestamps and
    /// picture numbers stay as they are.
    #[inline]
    pub fn close_up(&mut self, source: SourceKey, packet: &Packet) {
        let Some(run) = self.current.as_mut() else {
            return;
        };
        if !run.is_of(source, packet) || packet.seq <= run.last {
            return;
        }
        let left_out = packet.seq.0.saturating_sub(run.last.0).saturating_sub(1);
        let ended = *run;
        run.first = packet.seq;
        run.last = SeqNo(packet.seq.0.saturating_sub(1));
        run.offset = run.offset.wrapping_sub_unsigned(left_out);
        self.end(ended);
    }

    /// Forgets a source that no longer feeds the sink, as its key may be given to another source.
    /// The next packet counts as a switch.
    pub fn forget(&mut self, source: SourceKey) {
        self.current = self.current.filter(|run| run.source != source);
        self.ended.retain(|run| run.source != source);
        self.next_ended = 0;
    }

    /// Forgets everything, because nothing is sent for a while. The next packet
    /// counts as a switch.
    pub fn interrupt(&mut self) {
        self.current = None;
        self.ended.clear();
        self.next_ended = 0;
    }

    /// Forgets what was sent, because headers are written differently from now on: SRTP must not
    /// seal two different packets with one number.
    pub fn forget_sent(&mut self) {
        self.ended.clear();
        self.next_ended = 0;
        if let Some(run) = &mut self.current {
            run.first = SeqNo(run.last.0.saturating_add(1));
        }
    }

    /// Returns how the packet with this number was sent, if that is recent enough.
    #[inline]
    pub fn sent(&self, out: SeqNo) -> Option<Sent> {
        if !self.is_recent(out) {
            return None;
        }
        let current = self.current.as_ref();
        current
            .and_then(|run| run.find_out(out))
            .or_else(|| self.ended.iter().find_map(|run| run.find_out(out)))
    }

    fn is_recent(&self, out: SeqNo) -> bool {
        let back = self.highest_out.0.checked_sub(out.0);
        back.is_some_and(|back| back < REMEMBERED)
    }

    /// Returns what is added to timestamps if the packet's source shares the clock of the one
    /// before.
    fn kept_offset(&self, packet: &Packet) -> Option<u32> {
        let (clock, offset) = self.shared_clock?;
        (packet.clock == Some(clock)).then_some(offset)
    }

    /// Whether the sink already got this time, or a later one, from a source that shares the
    /// packet's clock.
    fn is_heard(&self, packet: &Packet) -> bool {
        let is_recent = |at| packet.arrival.saturating_duration_since(at) < COMPARABLE;
        if !self.last_at.is_some_and(is_recent) {
            return false;
        }
        self.kept_offset(packet).is_some_and(|offset| {
            let timestamp = packet.header.timestamp.wrapping_add(offset);
            timestamp.wrapping_sub(self.last_timestamp) as i32 <= 0
        })
    }

    fn switch(&mut self, source: SourceKey, packet: &Packet, clock_rate: u32, part: Part) {
        let next = self.highest_out.0.saturating_add(1);
        let timestamp = match (self.last_at, self.kept_offset(packet)) {
            (Some(_), Some(offset)) => packet.header.timestamp.wrapping_add(offset),
            (Some(at), None) => {
                let pause = packet
                    .arrival
                    .saturating_duration_since(at)
                    .max(Duration::from_millis(1));
                let ticks = pause.as_micros() * u128::from(clock_rate) / 1_000_000;
                self.last_timestamp.wrapping_add(ticks as u32)
            }
            (None, _) => packet.header.timestamp,
        };
        let ids_offset = match (packet.ids, self.last_at, &self.current) {
            (Some(ids), Some(_), _) => self.next_ids(packet, ids).minus(ids),
            (Some(_), None, _) | (None, _, None) => PictureIds::default(),
            (None, _, Some(run)) => run.ids_offset,
        };
        // A receiver takes a frame with a lower number for an old one.
        let frame_offset = match (packet.frame, self.last_frame) {
            (Some(frame), Some(last)) => {
                let reach = if refers_back(packet) { FRAME_REACH } else { 0 };
                last.wrapping_add(reach + 1).wrapping_sub(frame)
            }
            _ => 0,
        };
        let run = Run {
            first: packet.seq,
            last: SeqNo(packet.seq.0.saturating_sub(1)),
            offset: (next as i64).wrapping_sub(packet.seq.0 as i64),
            source,
            timestamp_offset: timestamp.wrapping_sub(packet.header.timestamp),
            ids_offset,
            frame_offset,
            encoding: packet.encoding,
            generation: packet.generation,
            part,
        };
        self.dropped_picture = None;
        if let Some(ended) = self.current.replace(run) {
            self.end(ended);
        }
    }

    /// Returns the numbers of the first picture after a switch.
    fn next_ids(&self, packet: &Packet, ids: PictureIds) -> PictureIds {
        let reach = match packet.codec == Codec::Vp9 && refers_back(packet) {
            false => 0,
            true if ids.is_short || self.last_ids.is_short => VP9_REACH_SHORT,
            true => VP9_REACH,
        };
        self.last_ids.after(reach + 1)
    }

    /// Changes the layers that are relayed from here on.
    fn change_part(&mut self, part: Part) {
        if let Some(run) = &mut self.current {
            let ended = *run;
            run.first = SeqNo(run.last.0.saturating_add(1));
            run.part = part;
            self.end(ended);
        }
    }

    /// Stores a run that has ended.
    fn end(&mut self, run: Run) {
        if run.is_empty() {
            return;
        }
        match self.ended.get_mut(self.next_ended) {
            Some(oldest) => *oldest = run,
            None => self.ended.push(run),
        }
        self.next_ended = (self.next_ended + 1) % MAX_RUNS;
    }

    /// Returns the number that was reserved for a packet that arrives late.
    #[cold]
    fn late(&mut self, source: SourceKey, packet: &Packet) -> Option<Sent> {
        let runs = self.current.iter().chain(&self.ended);
        let mut runs = runs.filter(|run| run.is_of(source, packet));
        let sent = runs.find_map(|run| run.find(packet.seq))?;
        self.is_recent(sent.out).then_some(sent)
    }
}

/// Whether a stream that starts with this packet refers to earlier pictures. Such references must
/// not hit pictures of another stream: the receiver has to wait for a keyframe.
fn refers_back(packet: &Packet) -> bool {
    !(packet.layers.keyframe && packet.layers.start)
}

#[cfg(test)]
mod tests;
