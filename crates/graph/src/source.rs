//! A source: one track with all its encodings, and its receivers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::DataRate;
use portunus_rtc::streams::SenderClock;
use portunus_rtp::SeqNo;
use portunus_srtp::fetch;
use smallvec::SmallVec;

use super::{
    CachedFrames, Demand, ENCODINGS, Evenness, Flow, History, KeyframeRequests, Lowest, Packet,
    SourceFormat,
};
use crate::SourceRef;

/// The number of routes from which on it pays to wait for a whole frame.
const MANY: usize = 3;
/// How long a frame's next packet is awaited, and its last one.
const NEXT_PACKET: Duration = Duration::from_micros(30);
const WHOLE_FRAME: Duration = Duration::from_micros(250);

/// The maximum time that audio is kept: 32 packets of 20 ms. Audio that is resent later comes too
/// late.
pub const SOUND_WINDOW: Duration = Duration::from_millis(550);

/// A source on one worker. The peer lives there, or another worker passes its packets on.
#[derive(Debug)]
pub struct Source {
    /// Its id.
    pub is: SourceRef,
    /// Its format.
    pub format: SourceFormat,
    histories: [History; ENCODINGS],
    /// The time that histories should span.
    window: Duration,
    evenness: [Evenness; ENCODINGS],
    cache: Option<CachedFrames>,
    /// The layers that arrive, and their bitrates.
    pub flow: Flow,
    /// Packets of this turn that are not relayed yet.
    pub fresh: Vec<Arc<Packet>>,
    /// It is listed among the sources with fresh packets. The packets may have been dropped since.
    pub is_listed: bool,
    /// The slots of the routes on this worker.
    pub routes: Vec<usize>,
    /// The slots of its outlets.
    pub outlets: SmallVec<[usize; 2]>,
    /// The slots of the legs that it is routed to.
    pub legs: SmallVec<[usize; 1]>,
    /// Other workers that relay it, with their number of routes.
    pub watchers: Vec<(u16, usize)>,
    /// The clock of each encoding, from its sender reports.
    pub clocks: [Option<SenderClock>; ENCODINGS],
    /// The last known round trip to the sender.
    pub round_trip: Option<Duration>,
    generations: [u8; ENCODINGS],
    /// The arrival and the number of the last keyframe of each encoding.
    last_keyframes: [Option<(Instant, SeqNo)>; ENCODINGS],
    /// The keyframe requests to pass on.
    pub keyframes: KeyframeRequests,
    /// The bitrate that viewers on this worker can take, if the source lives on another.
    pub lowest: Lowest,
    /// The bitrate that viewers on this worker can take of the single layer of a peer. `None` means
    /// no limit.
    pub limit: Option<DataRate>,
    /// The limits of all workers, where the source lives.
    pub limits: SmallVec<[(u16, DataRate); 2]>,
    /// What receivers on this worker can see, of a source that is sent on demand.
    pub demand: Demand,
    /// What those on other workers can see, where the source lives.
    pub demands: SmallVec<[(u16, Demand); 2]>,
}

impl Source {
    /// Returns a source whose histories span `window`, or [`SOUND_WINDOW`] at most for audio.
    pub fn new(is: SourceRef, window: Duration) -> Self {
        Self {
            is,
            format: SourceFormat {
                is_video: false,
                clock_rate: 90_000,
                encodings: 1,
                messages: None,
                keep: None,
                on_demand: false,
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
            demand: Demand::NOTHING,
            demands: SmallVec::new(),
        }
    }

    /// Whether the source has any receiver.
    #[inline]
    pub fn is_relayed(&self) -> bool {
        !self.routes.is_empty()
            || !self.watchers.is_empty()
            || !self.outlets.is_empty()
            || !self.legs.is_empty()
    }

    /// Sets the format. With simulcast, nothing is kept for new sinks.
    pub fn set_format(&mut self, format: SourceFormat) {
        self.format = format;
        self.set_window(self.window);
        let kind = format.is_video && format.encodings == 1 || format.messages.is_some();
        match (format.keep.filter(|_| kind), &mut self.cache) {
            (Some(limits), Some(cache)) => cache.set_limits(limits),
            (Some(limits), None) => self.cache = Some(CachedFrames::new(limits)),
            (None, _) => self.cache = None,
        }
    }

    /// Whether there are layers to choose from.
    #[inline]
    pub fn has_layers(&self) -> bool {
        self.format.is_video && (self.format.encodings > 1 || self.flow.has_layers())
    }

    /// Returns the packets that a new sink gets first.
    #[inline]
    pub fn cached(&self) -> &[Arc<Packet>] {
        self.cache.as_ref().map_or(&[], CachedFrames::packets)
    }

    /// Returns the packets that a new sink gets first, without those that are relayed in a moment.
    pub fn cached_before_fresh(&self) -> impl Iterator<Item = &Arc<Packet>> {
        let fresh = self.fresh.first().map(|packet| packet.seq);
        let cached = self.cached().iter();
        cached.take_while(move |packet| fresh.is_none_or(|fresh| packet.seq < fresh))
    }

    /// Returns the kept packets from number `seq` on.
    #[inline]
    pub fn cached_from(&self, seq: SeqNo) -> &[Arc<Packet>] {
        let cache = self.cache.as_ref();
        cache.map_or(&[], |cache| cache.packets_from(seq))
    }

    /// Returns the size of the kept keyframe in bytes if `packet` belongs to it.
    #[inline]
    pub fn keyframe_with(&self, packet: &Packet) -> Option<usize> {
        self.cache.as_ref()?.keyframe_with(packet)
    }

    /// Returns the present bitrate, or 0 if no keyframe is kept.
    #[inline]
    pub fn rate(&self) -> DataRate {
        self.cache
            .as_ref()
            .map_or(DataRate::ZERO, CachedFrames::rate)
    }

    /// Keeps packets until `until` whatever the limits.
    #[inline]
    pub fn hold(&mut self, until: Instant) {
        if let Some(cache) = &mut self.cache {
            cache.hold(until);
        }
    }

    /// Whether a sink that gets the kept packets misses nothing before the next ones.
    #[inline]
    pub fn is_kept_whole(&self) -> bool {
        self.cache.as_ref().is_some_and(CachedFrames::is_whole)
    }

    /// Whether a new sink needs no keyframe of its own.
    #[inline]
    pub fn has_picture(&self, now: Instant) -> bool {
        let cache = self.cache.as_ref();
        cache.is_some_and(|cache| cache.is_whole() && !cache.is_old(now))
    }

    /// Whether its packets are needed.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.is_relayed() || self.cache.is_some()
    }

    /// Returns a packet to fill and [push](Source::push), if possible with a buffer that nobody
    /// holds.
    #[inline]
    pub fn recycle(&mut self, encoding: u8, seq: SeqNo, now: Instant) -> Option<Arc<Packet>> {
        let spare = || self.cache.as_mut()?.take_spare();
        let history = self.histories.get_mut(usize::from(encoding))?;
        Some(history.recycle(seq, now, spare))
    }

    /// [Prefetches](fetch) the parts of the source that taking a packet reads.
    #[inline]
    pub fn fetch(&self, encoding: u8) {
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

    /// Returns the history of an encoding.
    #[inline]
    pub fn history(&self, encoding: u8) -> Option<&History> {
        self.histories.get(usize::from(encoding))
    }

    fn history_mut(&mut self, encoding: u8) -> Option<&mut History> {
        self.histories.get_mut(usize::from(encoding))
    }

    /// Returns a packet that is still stored.
    #[inline]
    pub fn remembered(&self, encoding: u8, seq: SeqNo) -> Option<&Arc<Packet>> {
        let remembered = self.histories.get(usize::from(encoding))?.get(seq);
        // Packets that new sinks were sent may be older.
        remembered.or_else(|| self.cache.as_ref()?.get(seq))
    }

    /// Pads a packet of video if that lets it leave together with its neighbours.
    #[inline]
    pub fn even_out(&mut self, packet: &mut Packet) {
        if self.format.is_video
            && let Some(evenness) = self.evenness.get_mut(usize::from(packet.encoding))
        {
            let mut fresh = self.fresh.iter().rev();
            let last = fresh.find(|fresh| fresh.encoding == packet.encoding);
            let waits = last.is_some_and(|l| l.header.timestamp != packet.header.timestamp);
            evenness.even_out(packet, waits);
        }
    }

    /// Whether the packets of this turn should wait for the rest of their frame. Senders write a
    /// frame's packets one by one. The packets of one turn leave together, as one message for each
    /// viewer.
    #[inline]
    pub fn holds_back(&self, now: Instant) -> bool {
        let (Some(first), Some(last)) = (self.fresh.first(), self.fresh.last()) else {
            return false;
        };
        self.format.is_video
            && self.routes.len() >= MANY
            && !last.header.marker
            && now.saturating_duration_since(last.arrival) < NEXT_PACKET
            && now.saturating_duration_since(first.arrival) < WHOLE_FRAME
    }

    /// Stores a packet, to be relayed at the end of the turn or when its frame is complete.
    #[inline]
    pub fn push(&mut self, packet: Arc<Packet>, now: Instant) {
        let encoding = usize::from(packet.encoding);
        if let Some(generation) = self.generations.get_mut(encoding)
            && std::mem::replace(generation, packet.generation) != packet.generation
            && let Some(clock) = self.clocks.get_mut(encoding)
        {
            // That clock was of another SSRC.
            *clock = None;
        }
        if packet.layers.keyframe
            && packet.layers.start
            && let Some(last) = self.last_keyframes.get_mut(encoding)
        {
            *last = Some((packet.arrival, packet.seq));
        }
        // SCTP resends messages itself.
        if self.format.messages.is_none() {
            if let Some(history) = self.history_mut(packet.encoding) {
                history.insert(Arc::clone(&packet), now);
            }
            self.flow.record(&packet, self.format.encodings);
        }
        if let Some(cache) = &mut self.cache {
            cache.push(&packet);
        }
        self.fresh.push(packet);
    }

    /// Returns when the last keyframe of an encoding arrived, if it could be recognized.
    #[inline]
    pub fn last_keyframe(&self, encoding: u8) -> Option<Instant> {
        let last = self.last_keyframes.get(usize::from(encoding))?;
        last.map(|(at, _)| at)
    }

    /// Whether a later keyframe of the encoding has arrived, so that no decoder needs the packet.
    #[inline]
    pub fn is_outdated(&self, encoding: u8, seq: SeqNo) -> bool {
        let last = self.last_keyframes.get(usize::from(encoding)).copied();
        last.flatten().is_some_and(|(_, keyframe)| seq < keyframe)
    }

    /// Changes the time that histories span, at most [`SOUND_WINDOW`] for audio.
    pub fn set_window(&mut self, window: Duration) {
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

    /// Drops all stored packets.
    pub fn forget(&mut self) {
        self.histories.iter_mut().for_each(History::clear);
        self.flow.stop();
        self.fresh = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
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
