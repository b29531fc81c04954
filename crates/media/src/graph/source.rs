//! A source: one track with all its encodings, and who relays it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::DataRate;
use portunus_rtc::streams::SenderClock;
use portunus_rtp::{Pt, SeqNo};
use portunus_srtp::fetch;
use smallvec::SmallVec;

use super::selector::ENCODINGS;
use super::{CachedFrames, Evenness, Flow, History, Packet};
use crate::ingest::Lowest;
use crate::{KeyframeCache, SourceRef};

/// Index of a source in its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct SourceKey(pub(crate) usize);

/// What a source is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceFormat {
    pub(crate) is_video: bool,
    /// RTP clock in Hz.
    pub(crate) clock_rate: u32,
    /// Encodings that the source may have: 1 without simulcast.
    pub(crate) encodings: u8,
    /// Messages for data channels, and not RTP.
    pub(crate) messages: Option<Messages>,
    /// What is kept for new sinks.
    pub(crate) keep: Option<KeyframeCache>,
}

/// What a source of messages brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Messages {
    /// The label of the channels, where routes have none of their own.
    pub(crate) label: &'static str,
    pub(crate) kind: MessageKind,
}

/// What the messages of a source are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Text,
    Bytes,
    /// Each says it by its payload type: text is 0.
    Marked,
}

impl Messages {
    /// What peers bring.
    pub(crate) const OF_PEERS: Messages = Messages {
        label: "",
        kind: MessageKind::Marked,
    };
}

impl MessageKind {
    /// Whether a message with this payload type is text.
    pub(crate) fn is_text(self, pt: Pt) -> bool {
        match self {
            MessageKind::Text => true,
            MessageKind::Bytes => false,
            MessageKind::Marked => pt == Pt(0),
        }
    }
}

/// Routes from which on a frame is worth waiting for.
const MANY: usize = 3;
/// How long is waited for a frame's next packet, and for its last one.
const NEXT_PACKET: Duration = Duration::from_micros(30);
const WHOLE_FRAME: Duration = Duration::from_micros(250);

/// Sound is kept for so long at most, which takes 32 packets of 20 ms: one that is asked for later comes too late to be heard.
pub(crate) const SOUND_WINDOW: Duration = Duration::from_millis(550);

/// A source as one worker has it: the peer lives here, or another worker passes its packets on.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) is: SourceRef,
    pub(crate) format: SourceFormat,
    histories: [History; ENCODINGS],
    /// What histories span where nothing bounds it.
    window: Duration,
    evenness: [Evenness; ENCODINGS],
    cache: Option<CachedFrames>,
    pub(crate) flow: Flow,
    /// Packets of this turn, not yet relayed.
    pub(crate) fresh: Vec<Arc<Packet>>,
    /// It is among the sources with packets of this turn. It may be so without any: they were forgotten.
    pub(crate) is_listed: bool,
    /// Slots of the routes on this worker.
    pub(crate) routes: Vec<usize>,
    /// Slots of its outlets.
    pub(crate) outlets: SmallVec<[usize; 2]>,
    /// Slots of the legs that it is routed into.
    pub(crate) legs: SmallVec<[usize; 1]>,
    /// Other workers that relay it, with the number of their routes.
    pub(crate) watchers: Vec<(u16, usize)>,
    pub(crate) clocks: [Option<SenderClock>; ENCODINGS],
    /// The last round trip to its sender, as far as it is known.
    pub(crate) round_trip: Option<Duration>,
    generations: [u8; ENCODINGS],
    /// When the last keyframe of each encoding came, and its number.
    last_keyframes: [Option<(Instant, SeqNo)>; ENCODINGS],
    pub(crate) keyframes: KeyframeRequests,
    /// What the viewers on this worker can take, if the source lives on another.
    pub(crate) lowest: Lowest,
    /// What the viewers on this worker can take of the single layer that a peer sends; none: all of it.
    pub(crate) limit: Option<DataRate>,
    /// The same of all workers, where the source lives.
    pub(crate) limits: SmallVec<[(u16, DataRate); 2]>,
}

impl Source {
    /// A source whose histories span `window`, those of sound [`SOUND_WINDOW`] at most.
    pub(crate) fn new(is: SourceRef, window: Duration) -> Self {
        Self {
            is,
            format: SourceFormat {
                is_video: false,
                clock_rate: 90_000,
                encodings: 1,
                messages: None,
                keep: None,
            },
            histories: [
                History::new(window),
                History::new(window),
                History::new(window),
            ],
            window,
            evenness: Default::default(),
            cache: None,
            flow: Flow::default(),
            fresh: Vec::new(),
            is_listed: false,
            routes: Vec::new(),
            outlets: SmallVec::new(),
            legs: SmallVec::new(),
            watchers: Vec::new(),
            clocks: [None; ENCODINGS],
            round_trip: None,
            generations: [0; ENCODINGS],
            last_keyframes: [None; ENCODINGS],
            keyframes: KeyframeRequests::default(),
            lowest: Lowest::default(),
            limit: None,
            limits: SmallVec::new(),
        }
    }

    /// Whether anybody relays it.
    pub(crate) fn is_relayed(&self) -> bool {
        !self.routes.is_empty()
            || !self.watchers.is_empty()
            || !self.outlets.is_empty()
            || !self.legs.is_empty()
    }

    /// Takes what the source is like. With simulcast, nothing is kept for new sinks.
    pub(crate) fn set_format(&mut self, format: SourceFormat) {
        self.format = format;
        self.set_window(self.window);
        let kind = format.is_video && format.encodings == 1 || format.messages.is_some();
        match (format.keep.filter(|_| kind), &mut self.cache) {
            (Some(limits), Some(cache)) => cache.set_limits(limits),
            (Some(limits), None) => self.cache = Some(CachedFrames::new(limits)),
            (None, _) => self.cache = None,
        }
    }

    /// Whether it has layers that can be chosen from.
    pub(crate) fn has_layers(&self) -> bool {
        self.format.is_video && (self.format.encodings > 1 || self.flow.has_layers())
    }

    /// What a new sink gets first.
    pub(crate) fn cached(&self) -> &[Arc<Packet>] {
        self.cache.as_ref().map_or(&[], CachedFrames::packets)
    }

    /// What of it has this number or a higher one.
    pub(crate) fn cached_from(&self, seq: SeqNo) -> &[Arc<Packet>] {
        let cache = self.cache.as_ref();
        cache.map_or(&[], |cache| cache.packets_from(seq))
    }

    /// The bytes of the keyframe that is kept, if a packet is of it.
    pub(crate) fn keyframe_with(&self, packet: &Packet) -> Option<usize> {
        self.cache.as_ref()?.keyframe_with(packet)
    }

    /// What comes at present, where a keyframe is kept.
    pub(crate) fn rate(&self) -> DataRate {
        self.cache
            .as_ref()
            .map_or(DataRate::ZERO, CachedFrames::rate)
    }

    /// Up to then what follows is kept, whatever the limits.
    pub(crate) fn hold(&mut self, until: Instant) {
        if let Some(cache) = &mut self.cache {
            cache.hold(until);
        }
    }

    /// Whether a sink that gets what is kept misses nothing of what comes next.
    pub(crate) fn is_kept_whole(&self) -> bool {
        self.cache.as_ref().is_some_and(CachedFrames::is_whole)
    }

    /// Whether a new sink needs no keyframe of its own.
    pub(crate) fn has_picture(&self, now: Instant) -> bool {
        let cache = self.cache.as_ref();
        cache.is_some_and(|cache| cache.is_whole() && !cache.is_old(now))
    }

    /// Whether anybody has a use for its packets.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_relayed() || self.cache.is_some()
    }

    /// A packet to be filled and pushed: a buffer that nobody holds any more, if there is one.
    pub(crate) fn recycle(
        &mut self,
        encoding: u8,
        seq: SeqNo,
        now: Instant,
    ) -> Option<Arc<Packet>> {
        let spare = || self.cache.as_mut()?.take_spare();
        let history = self.histories.get_mut(usize::from(encoding))?;
        Some(history.recycle(seq, now, spare))
    }

    /// [`fetch`]es what taking a packet of an encoding reads of the source itself.
    #[inline]
    pub(crate) fn fetch(&self, encoding: u8) {
        if let Some(history) = self.histories.get(usize::from(encoding)) {
            fetch(history);
        }
        if let Some(evenness) = self.evenness.get(usize::from(encoding)) {
            fetch(evenness);
        }
        fetch(&self.format);
        fetch(&self.flow);
        fetch(&self.fresh);
    }

    /// The history of an encoding, to look at.
    pub(crate) fn kept(&self, encoding: u8) -> Option<&History> {
        self.histories.get(usize::from(encoding))
    }

    /// The history of an encoding.
    pub(crate) fn history(&mut self, encoding: u8) -> Option<&mut History> {
        self.histories.get_mut(usize::from(encoding))
    }

    /// A packet that is still remembered.
    pub(crate) fn remembered(&self, encoding: u8, seq: SeqNo) -> Option<&Arc<Packet>> {
        let remembered = self.histories.get(usize::from(encoding))?.get(seq);
        // What new sinks were sent may be older.
        remembered.or_else(|| self.cache.as_ref()?.get(seq))
    }

    /// Pads a packet of video that is to be pushed, if that lets it leave together with its neighbours.
    pub(crate) fn even_out(&mut self, packet: &mut Packet) {
        if self.format.is_video
            && let Some(evenness) = self.evenness.get_mut(usize::from(packet.encoding))
        {
            let mut fresh = self.fresh.iter().rev();
            let last = fresh.find(|fresh| fresh.encoding == packet.encoding);
            let waits = last.is_some_and(|l| l.header.timestamp != packet.header.timestamp);
            evenness.even_out(packet, waits);
        }
    }

    /// Whether the packets of this turn had better wait for the rest of their frame: senders write a
    /// frame's packets one by one, and those of one turn leave together, as one message for each viewer.
    pub(crate) fn holds_back(&self, now: Instant) -> bool {
        let (Some(first), Some(last)) = (self.fresh.first(), self.fresh.last()) else {
            return false;
        };
        self.format.is_video
            && self.routes.len() >= MANY
            && !last.header.marker
            && now.saturating_duration_since(last.arrival) < NEXT_PACKET
            && now.saturating_duration_since(first.arrival) < WHOLE_FRAME
    }

    /// Takes a packet: it is remembered, and relayed at the end of the turn, or when its frame is whole.
    pub(crate) fn push(&mut self, packet: Arc<Packet>, now: Instant) {
        let encoding = usize::from(packet.encoding);
        if let Some(generation) = self.generations.get_mut(encoding)
            && std::mem::replace(generation, packet.generation) != packet.generation
            && let Some(clock) = self.clocks.get_mut(encoding)
        {
            // It was that of another SSRC.
            *clock = None;
        }
        if packet.layers.keyframe
            && packet.layers.start
            && let Some(last) = self.last_keyframes.get_mut(encoding)
        {
            *last = Some((packet.arrival, packet.seq));
        }
        // Messages are sent again by SCTP.
        if self.format.messages.is_none() {
            if let Some(history) = self.history(packet.encoding) {
                history.insert(Arc::clone(&packet), now);
            }
            self.flow.record(&packet, self.format.encodings);
        }
        if let Some(cache) = &mut self.cache {
            cache.push(&packet);
        }
        self.fresh.push(packet);
    }

    /// When the last keyframe of an encoding came, if it could be told and anybody had a use for it.
    pub(crate) fn last_keyframe(&self, encoding: u8) -> Option<Instant> {
        let last = self.last_keyframes.get(usize::from(encoding))?;
        last.map(|(at, _)| at)
    }

    /// Whether a keyframe came since a packet of its encoding: no decoder needs that any more.
    pub(crate) fn is_outdated(&self, encoding: u8, seq: SeqNo) -> bool {
        let last = self.last_keyframes.get(usize::from(encoding)).copied();
        last.flatten().is_some_and(|(_, keyframe)| seq < keyframe)
    }

    /// From now on histories span `window`, those of sound [`SOUND_WINDOW`] at most.
    pub(crate) fn set_window(&mut self, window: Duration) {
        self.window = window;
        let is_sound = !self.format.is_video && self.format.messages.is_none();
        let window = match is_sound {
            true => window.min(SOUND_WINDOW),
            false => window,
        };
        for history in &mut self.histories {
            history.set_window(window);
        }
    }

    /// Frees what is remembered.
    pub(crate) fn forget(&mut self) {
        self.histories.iter_mut().for_each(History::clear);
        self.flow.stop();
        self.fresh = Vec::new();
    }
}

/// Keyframe requests for a source: those that are to be passed on, and when the last ones were passed to another worker,
/// which itself puts off what comes too often: merged where all viewers ask at once.
#[derive(Debug, Default)]
pub(crate) struct KeyframeRequests {
    wanted: [bool; ENCODINGS],
    last: [Option<Instant>; ENCODINGS],
}

impl KeyframeRequests {
    /// Less than a keyframe takes to come.
    const APART: Duration = Duration::from_millis(2);

    /// Somebody wants a keyframe; says whether nobody else has wanted it already.
    pub(crate) fn want(&mut self, encoding: u8) -> bool {
        let wanted = self.wanted.get_mut(usize::from(encoding));
        wanted.is_some_and(|wanted| !std::mem::replace(wanted, true))
    }

    /// It is passed on now; says whether anybody wanted it.
    pub(crate) fn take(&mut self, encoding: u8) -> bool {
        let wanted = self.wanted.get_mut(usize::from(encoding));
        wanted.is_some_and(std::mem::take)
    }

    /// A keyframe is to be asked for; says whether that is to be now.
    pub(crate) fn ask(&mut self, encoding: u8, now: Instant) -> bool {
        let Some(last) = self.last.get_mut(usize::from(encoding)) else {
            return false;
        };
        if last.is_some_and(|last| now.saturating_duration_since(last) < Self::APART) {
            return false;
        }
        *last = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::IngestId;

    #[test]
    fn a_frame_that_is_still_coming_is_waited_for_a_moment() {
        let (start, window) = (Instant::now(), Duration::from_secs(1));
        let ingest = SourceRef::Ingest(IngestId {
            worker: 0,
            serial: 1,
        });
        let mut source = Source::new(ingest, window);
        source.format.is_video = true;
        source.routes = (0..MANY).collect();
        let at = |us| start + Duration::from_micros(us);
        let push = |source: &mut Source, us, marker| {
            let mut packet = Packet::empty(at(us));
            packet.header.marker = marker;
            source.fresh.push(Arc::new(packet));
        };
        assert!(!source.holds_back(start), "nothing is there");
        push(&mut source, 0, false);
        assert!(source.holds_back(at(20)));
        assert!(!source.holds_back(at(30)), "the next packet does not come");
        for us in (20..=240).step_by(20) {
            push(&mut source, us, false);
        }
        assert!(source.holds_back(at(245)));
        assert!(!source.holds_back(at(250)), "the frame does not end");
        push(&mut source, 241, true);
        assert!(!source.holds_back(at(245)), "it is whole");
        source.fresh.pop();
        source.routes.pop();
        assert!(!source.holds_back(at(245)), "for few it is not worth it");
    }

    #[test]
    fn what_came_before_the_last_keyframe_of_its_encoding_is_outdated() {
        let start = Instant::now();
        let ingest = SourceRef::Ingest(IngestId {
            worker: 0,
            serial: 1,
        });
        let mut source = Source::new(ingest, Duration::from_secs(1));
        let mut push = |seq, encoding, keyframe| {
            let mut packet = Packet::empty(start);
            (packet.seq, packet.encoding) = (SeqNo(seq), encoding);
            (packet.layers.keyframe, packet.layers.start) = (keyframe, true);
            source.push(Arc::new(packet), start);
        };
        push(10, 0, true);
        push(11, 0, false);
        push(50, 1, true);
        push(20, 0, true);
        assert!(source.is_outdated(0, SeqNo(10)) && source.is_outdated(0, SeqNo(19)));
        assert!(!source.is_outdated(0, SeqNo(20)) && !source.is_outdated(1, SeqNo(50)));
        assert!(!source.is_outdated(2, SeqNo(1)), "none came");
        assert_eq!(source.last_keyframe(0), Some(start));
        assert_eq!(source.last_keyframe(2), None);
    }

    #[test]
    fn a_keyframe_that_many_want_is_wanted_once() {
        let mut requests = KeyframeRequests::default();
        assert!(requests.want(1) && !requests.want(1) && requests.want(0));
        assert!(!requests.want(9), "there is none");
        assert!(requests.take(1) && !requests.take(1) && !requests.take(2));
        assert!(requests.want(1));
    }

    #[test]
    fn keyframe_requests_are_merged() {
        let start = Instant::now();
        let mut requests = KeyframeRequests::default();
        let mut ask = |encoding, us| {
            let now = start + Duration::from_micros(us);
            requests.ask(encoding, now)
        };
        assert!(ask(0, 0));
        assert!(!ask(0, 1_999));
        assert!(ask(1, 1_999));
        assert!(ask(0, 2_000));
        assert!(!ask(9, 2_000));
    }

    /// So many packets of sound are kept, whatever a burst made of the history before.
    #[test]
    fn of_sound_half_a_second_is_kept() {
        let (mut now, window) = (Instant::now(), Duration::from_secs(1));
        let ingest = SourceRef::Ingest(IngestId {
            worker: 0,
            serial: 1,
        });
        let mut source = Source::new(ingest, window);
        let push = |source: &mut Source, seq, now| {
            let mut packet = source.recycle(0, SeqNo(seq), now).unwrap();
            let inner = Arc::get_mut(&mut packet).unwrap();
            (inner.seq, inner.arrival) = (SeqNo(seq), now);
            source.push(packet, now);
            source.fresh.clear();
        };
        let kept = |source: &Source| {
            let all = (0..4_000).filter(|seq| source.remembered(0, SeqNo(*seq)).is_some());
            all.count()
        };
        source.set_format(source.format);
        for seq in 0..3_000 {
            // At its beginning two dozen come at once.
            let since = if (10..34).contains(&seq) { 0 } else { 20 };
            now += Duration::from_millis(since);
            push(&mut source, seq, now);
        }
        assert_eq!(kept(&source), 32);
        source.set_format(SourceFormat {
            is_video: true,
            ..source.format
        });
        for seq in 3_000..3_100 {
            now += Duration::from_millis(20);
            push(&mut source, seq, now);
        }
        assert_eq!(kept(&source), 64);
    }
}
