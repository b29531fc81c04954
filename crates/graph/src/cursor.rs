//! The position of a sink in the packets that its source keeps for new sinks.

use std::sync::Arc;

use portunus_rtp::SeqNo;

use super::{Packet, Source};

/// A position among the packets that a source keeps. It holds none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    next: SeqNo,
    /// The timestamp of the picture that the last packet was of.
    picture: Option<u32>,
    /// What follows is not cut off by the limits of the cache.
    is_whole: bool,
}

/// The next step of a sink.
#[derive(Debug)]
pub enum Next<'a> {
    /// Send this packet.
    Packet(&'a Arc<Packet>),
    /// Send this packet, the first of a keyframe. The packets before it are no longer kept.
    Keyframe(&'a Arc<Packet>),
    /// Wait: the next packet is relayed in a moment.
    Wait,
    /// Relay what the source sends from now on: the sink has caught up.
    Live,
}

impl Cursor {
    /// Returns the start of the keyframe that a source keeps, or `None` if it keeps none.
    pub fn new(source: &Source) -> Option<Self> {
        let first = source.cached().first()?;
        Some(Self {
            next: first.seq,
            picture: None,
            is_whole: source.is_kept_whole(),
        })
    }

    /// Whether the source should go on keeping packets for this sink. After a gap at the start, it
    /// should not.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether the sink will lack packets between this position and the live stream.
    #[inline]
    pub fn leaves_gap(&self, source: &Source) -> bool {
        !self.is_whole || source.cached().is_empty()
    }

    /// Returns the next step. Packets that the source has not relayed to any sink yet do not count.
    #[inline]
    pub fn next<'a>(&self, source: &'a Source) -> Next<'a> {
        let Some(keyframe) = source.cached().first() else {
            return Next::Live;
        };
        let fresh = source.fresh.iter().map(|packet| packet.seq);
        let to_come = fresh.filter(|seq| *seq >= self.next);
        let is_here = |packet: &&Arc<Packet>| to_come.clone().all(|seq| packet.seq < seq);
        if self.next < keyframe.seq {
            // The current picture is completed, if that is possible.
            let same = |packet: &&Arc<Packet>| Some(packet.header.timestamp) == self.picture;
            let rest = source.remembered(keyframe.encoding, self.next);
            if let Some(rest) = rest.filter(same).filter(is_here) {
                return Next::Packet(rest);
            }
            return Some(keyframe)
                .filter(is_here)
                .map_or(Next::Wait, Next::Keyframe);
        }
        let rest = source.cached_from(self.next);
        match rest.first() {
            Some(packet) if is_here(&packet) => Next::Packet(packet),
            Some(_) if rest.len() > to_come.clone().count() => Next::Wait,
            Some(_) | None => Next::Live,
        }
    }

    /// Moves past a packet. `jumped` says that the packet is the first of a keyframe.
    #[inline]
    pub fn pass(&mut self, packet: &Packet, jumped: bool) {
        self.is_whole |= jumped;
        self.next = SeqNo(packet.seq.0.saturating_add(1));
        self.picture = Some(packet.header.timestamp);
    }

    /// Whether a packet is before this position: if it comes now, it is late.
    #[inline]
    pub fn has_passed(&self, packet: &Packet) -> bool {
        self.picture.is_some() && packet.seq < self.next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]
    use std::time::{Duration, Instant};

    use super::*;
    use crate::SourceFormat;
    use crate::{IngestId, KeyframeCache};

    /// A source that keeps its last keyframe, and a sink of it.
    struct Rig {
        source: Source,
        cursor: Cursor,
        now: Instant,
    }

    impl Rig {
        fn new() -> Self {
            let ingest = IngestId {
                worker: 0,
                serial: 1,
            };
            let mut source = Source::new(ingest.into(), Duration::from_secs(1));
            source.set_format(SourceFormat {
                is_video: true,
                clock_rate: 90_000,
                encodings: 1,
                messages: None,
                keep: Some(KeyframeCache {
                    max_age: Duration::ZERO,
                    max_bytes: 0,
                }),
                on_demand: false,
            });
            let now = Instant::now();
            push(&mut source, 10, 0, true, now);
            source.fresh.clear();
            let cursor = Cursor::new(&source).unwrap();
            Self {
                source,
                cursor,
                now,
            }
        }

        fn push(&mut self, seq: u64, picture: u32, keyframe: bool) {
            push(&mut self.source, seq, picture, keyframe, self.now);
        }

        /// Takes all that is there; each number, that of a keyframe that was jumped to negative,
        /// and what comes then.
        fn take(&mut self) -> (Vec<i64>, &'static str) {
            let mut taken = Vec::new();
            loop {
                let (packet, jumped) = match self.cursor.next(&self.source) {
                    Next::Packet(packet) => (packet, false),
                    Next::Keyframe(packet) => (packet, true),
                    Next::Wait => return (taken, "wait"),
                    Next::Live => return (taken, "live"),
                };
                let number = packet.seq.0 as i64;
                taken.push(if jumped { -number } else { number });
                self.cursor.pass(packet, jumped);
            }
        }
    }

    fn push(source: &mut Source, seq: u64, picture: u32, keyframe: bool, now: Instant) {
        let mut packet = Packet::empty(now);
        packet.seq = SeqNo(seq);
        packet.header.timestamp = picture;
        packet.layers.keyframe = keyframe;
        source.push(Arc::new(packet), now);
    }

    #[test]
    fn what_is_kept_comes_in_order_and_then_what_is_to_be_relayed_is_live() {
        let mut rig = Rig::new();
        rig.push(11, 1, false);
        rig.source.fresh.clear();
        rig.push(13, 2, false);
        assert_eq!(rig.take(), (vec![10, 11], "live"));
    }

    #[test]
    fn what_comes_late_in_between_is_waited_for() {
        let mut rig = Rig::new();
        rig.push(13, 3, false);
        rig.source.fresh.clear();
        rig.push(12, 2, false);
        rig.push(9, 0, false);
        rig.push(14, 4, false);
        assert_eq!(rig.take(), (vec![10], "wait"));
        rig.source.fresh.clear();
        assert_eq!(rig.take(), (vec![12, 13, 14], "live"));
    }

    #[test]
    fn a_new_keyframe_takes_the_place_of_all_before_it_but_the_picture_under_way() {
        let mut rig = Rig::new();
        for (seq, picture) in [(11, 1), (12, 2), (13, 2), (14, 3)] {
            rig.push(seq, picture, false);
        }
        rig.source.fresh.clear();
        for _ in 0..3 {
            let Next::Packet(packet) = rig.cursor.next(&rig.source) else {
                panic!("all are there");
            };
            rig.cursor.pass(packet, false);
        }
        rig.push(15, 4, true);
        rig.push(16, 4, false);
        assert_eq!(rig.take(), (vec![13], "wait"), "it is to be relayed first");
        rig.source.fresh.clear();
        assert_eq!(rig.take(), (vec![-15, 16], "live"));
    }

    #[test]
    fn what_another_sender_goes_on_with_comes_after_a_gap() {
        let mut rig = Rig::new();
        rig.push(11, 1, false);
        rig.source.fresh.clear();
        assert!(!rig.cursor.leaves_gap(&rig.source));
        let mut packet = Packet::empty(rig.now);
        packet.seq = SeqNo(12);
        packet.header.timestamp = 2;
        packet.stretch = 1;
        rig.source.push(Arc::new(packet), rig.now);
        assert_eq!(rig.take(), (vec![], "live"));
        assert!(rig.cursor.leaves_gap(&rig.source));
    }

    #[test]
    fn where_nothing_is_kept_any_more_all_is_live() {
        let mut rig = Rig::new();
        let format = SourceFormat {
            keep: None,
            ..rig.source.format
        };
        rig.source.set_format(format);
        assert_eq!(rig.take(), (vec![], "live"));
    }
}
