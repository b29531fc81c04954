//! The numbers of a sink: one continuous space of sequence numbers, timestamps and picture ids over
//! layer switches, source switches and dropped layers.

use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;

use super::{Packet, SourceKey, Vp8Ids};

/// Sent packets remembered: as many as a receiver can usefully ask for again.
const MAX_SENT: usize = 512;

/// What became of a packet when it was sent: enough to write it again, to the letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sent {
    pub(crate) out: SeqNo,
    pub(crate) seq: SeqNo,
    pub(crate) source: SourceKey,
    pub(crate) encoding: u8,
    pub(crate) timestamp_offset: u32,
    pub(crate) ids_offset: Vp8Ids,
    pub(crate) marker: bool,
}

/// Maps the numbers of whatever is relayed to those of the sink.
#[derive(Debug)]
pub(crate) struct Numbering {
    /// The stream that is relayed now.
    stream: Option<(SourceKey, u8)>,
    /// What is added to its numbers.
    offset: i64,
    timestamp_offset: u32,
    ids_offset: Vp8Ids,
    highest_in: SeqNo,
    highest_out: SeqNo,
    last_timestamp: u32,
    last_ids: Vp8Ids,
    last_at: Option<Instant>,
    dropped_picture: Option<u32>,
    sent: Vec<Slot>,
}

/// A [`Sent`] in 24 bytes: every packet to every sink writes one, so their size is felt. All zeros is
/// an empty slot: no packet has the number 0.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Low 32 bits.
    out: u32,
    /// Low 32 and next 16 bits: all that SRTP has.
    seq_low: u32,
    seq_high: u16,
    picture_offset: u16,
    timestamp_offset: u32,
    source: u32,
    tl0_offset: u8,
    encoding: u8,
    marker: bool,
}

impl Slot {
    #[inline]
    fn new(sent: &Sent) -> Self {
        Self {
            out: sent.out.0 as u32,
            seq_low: sent.seq.0 as u32,
            seq_high: (sent.seq.0 >> 32) as u16,
            picture_offset: sent.ids_offset.picture,
            timestamp_offset: sent.timestamp_offset,
            source: sent.source.0 as u32,
            tl0_offset: sent.ids_offset.tl0,
            encoding: sent.encoding,
            marker: sent.marker,
        }
    }

    /// What the slot says; `near` is a recent number of the sink.
    fn sent(self, near: SeqNo) -> Option<Sent> {
        let back = (near.0 as u32).wrapping_sub(self.out);
        Some(Sent {
            out: SeqNo(near.0.checked_sub(u64::from(back))?),
            seq: SeqNo(u64::from(self.seq_low) | u64::from(self.seq_high) << 32),
            source: SourceKey(self.source as usize),
            encoding: self.encoding,
            timestamp_offset: self.timestamp_offset,
            ids_offset: Vp8Ids {
                picture: self.picture_offset,
                tl0: self.tl0_offset,
            },
            marker: self.marker,
        })
    }
}

impl Numbering {
    /// A sink whose first packet follows `start`. The receiver takes the roll-over counter of SRTP to
    /// be 0 (RFC 3711 section 3.3.1), so `start` is below 2^15.
    pub(crate) fn starting_after(start: u16) -> Self {
        Self {
            stream: None,
            offset: 0,
            timestamp_offset: 0,
            ids_offset: Vp8Ids::default(),
            highest_in: SeqNo(0),
            highest_out: SeqNo(u64::from(start & 0x7fff)),
            last_timestamp: 0,
            last_ids: Vp8Ids::default(),
            last_at: None,
            dropped_picture: None,
            sent: Vec::new(),
        }
    }

    /// Numbers a packet that is relayed, into `sent`. False: it is from before the switch to its
    /// stream, or was sent already.
    ///
    /// The caller's place is written field by field: returned by value, the record would be copied
    /// in wider words than it was written in, which waits for the stores to the slots.
    #[inline]
    pub(crate) fn forward(
        &mut self,
        source: SourceKey,
        packet: &Packet,
        clock_rate: u32,
        marker: bool,
        sent: &mut Sent,
    ) -> bool {
        let stream = (source, packet.encoding);
        if self.stream != Some(stream) {
            self.switch(stream, packet, clock_rate);
        } else if packet.seq <= self.highest_in {
            return match self.late(packet, marker) {
                Some(late) => {
                    *sent = late;
                    true
                }
                None => false,
            };
        }
        let Some(out) = packet.seq.0.checked_add_signed(self.offset).map(SeqNo) else {
            return false;
        };
        self.reserve_gap(source, packet, out);
        self.highest_in = packet.seq;
        self.highest_out = out;
        self.last_timestamp = packet.header.timestamp.wrapping_add(self.timestamp_offset);
        self.last_at = Some(packet.arrival);
        if let Some(ids) = packet.vp8 {
            self.last_ids = ids.plus(self.ids_offset);
        }
        sent.out = out;
        sent.seq = packet.seq;
        sent.source = source;
        sent.encoding = packet.encoding;
        sent.timestamp_offset = self.timestamp_offset;
        sent.ids_offset = self.ids_offset;
        sent.marker = marker;
        self.remember(sent);
        true
    }

    /// A packet of the relayed stream is left out (an upper layer): the numbers close over it.
    pub(crate) fn skip(&mut self, source: SourceKey, packet: &Packet) {
        if self.stream != Some((source, packet.encoding)) || packet.seq <= self.highest_in {
            return;
        }
        // Those lost before it keep their numbers: they may still come.
        let out = packet.seq.0.checked_add_signed(self.offset).map(SeqNo);
        if let Some(out) = out {
            self.reserve_gap(source, packet, out);
            self.highest_out = SeqNo(out.0.saturating_sub(1));
        }
        self.highest_in = packet.seq;
        self.offset -= 1;
        if packet.vp8.is_some() && self.dropped_picture != Some(packet.header.timestamp) {
            self.dropped_picture = Some(packet.header.timestamp);
            self.ids_offset.picture = self.ids_offset.picture.wrapping_sub(1);
        }
    }

    /// A source no longer feeds the sink, and its key may be given to another: nothing of it is
    /// remembered, and what comes next is a switch.
    pub(crate) fn forget(&mut self, source: SourceKey) {
        if self.stream.is_some_and(|(of, _)| of == source) {
            self.stream = None;
        }
        let of_source = |slot: &&mut Slot| slot.source as usize == source.0;
        for slot in self.sent.iter_mut().filter(of_source) {
            *slot = Slot::default();
        }
    }

    /// Headers are written otherwise from now on: what was sent before cannot be sent again as it was.
    pub(crate) fn forget_sent(&mut self) {
        self.sent.fill(Slot::default());
    }

    /// What was sent with this number.
    pub(crate) fn sent(&self, out: SeqNo) -> Option<Sent> {
        let mask = self.sent.len().checked_sub(1)?;
        let sent = self
            .sent
            .get(out.0 as usize & mask)?
            .sent(self.highest_out)?;
        (sent.out == out).then_some(sent)
    }

    fn switch(&mut self, stream: (SourceKey, u8), packet: &Packet, clock_rate: u32) {
        let next = self.highest_out.0 + 1;
        self.offset = (next as i64).wrapping_sub(packet.seq.0 as i64);
        self.highest_in = SeqNo(packet.seq.0.saturating_sub(1));
        let next_timestamp = match self.last_at {
            Some(at) => {
                let pause = packet
                    .arrival
                    .saturating_duration_since(at)
                    .max(Duration::from_millis(1));
                let ticks = pause.as_micros() * u128::from(clock_rate) / 1_000_000;
                self.last_timestamp.wrapping_add(ticks as u32)
            }
            None => packet.header.timestamp,
        };
        self.timestamp_offset = next_timestamp.wrapping_sub(packet.header.timestamp);
        if let Some(ids) = packet.vp8 {
            self.ids_offset = match self.last_at {
                Some(_) => self.last_ids.next().minus(ids),
                None => Vp8Ids::default(),
            };
        }
        self.dropped_picture = None;
        self.stream = Some(stream);
    }

    /// Numbers that the lost packets before this one keep, for when they come after all.
    #[inline]
    fn reserve_gap(&mut self, source: SourceKey, packet: &Packet, out: SeqNo) {
        let missing = packet
            .seq
            .0
            .saturating_sub(self.highest_in.0.saturating_add(1));
        for back in 1..=missing.min(MAX_SENT as u64 / 2) {
            let seq = SeqNo(packet.seq.0 - back);
            let sent = self.record(
                SeqNo(out.0.saturating_sub(back)),
                seq,
                source,
                packet.encoding,
                false,
            );
            self.remember(&sent);
        }
    }

    /// A lost packet that came after all has its number waiting.
    #[cold]
    fn late(&mut self, packet: &Packet, marker: bool) -> Option<Sent> {
        let near = self.highest_out;
        let stream = self.stream;
        self.sent.iter_mut().find_map(|slot| {
            let sent = slot.sent(near).filter(|sent| {
                sent.seq == packet.seq
                    && slot.out != 0
                    && Some((sent.source, sent.encoding)) == stream
            })?;
            slot.marker = marker;
            Some(Sent { marker, ..sent })
        })
    }

    #[inline]
    fn record(
        &self,
        out: SeqNo,
        seq: SeqNo,
        source: SourceKey,
        encoding: u8,
        marker: bool,
    ) -> Sent {
        Sent {
            out,
            seq,
            source,
            encoding,
            timestamp_offset: self.timestamp_offset,
            ids_offset: self.ids_offset,
            marker,
        }
    }

    #[inline]
    fn remember(&mut self, sent: &Sent) {
        if self.sent.is_empty() {
            self.sent.resize(MAX_SENT, Slot::default());
        }
        let mask = self.sent.len() - 1;
        if let Some(slot) = self.sent.get_mut(sent.out.0 as usize & mask) {
            *slot = Slot::new(sent);
        }
    }
}

#[cfg(test)]
mod tests;
