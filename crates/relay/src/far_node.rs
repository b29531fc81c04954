//! Another node: its link, what is sent to it, and the messages that wait for it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use portunus_media::{Demand, MediaPlane, NodeLink};

use crate::capacity::{Capacity, Choice};
use crate::far_node_id::{FarNodeId, Key};
use crate::health::Health;
use crate::pending::{Pending, Subject};
use crate::receiving::{Parent, Ssrcs};
use crate::sending::{Sending, SentId};
use crate::{NodeName, NodePlace, SourceId, Wanted};

/// How long what another node does not name again is sent on, after the connection was resumed.
const NAMED_WITHIN: Duration = Duration::from_secs(5);

/// Another node.
#[derive(Debug)]
pub(crate) struct FarNodeState {
    pub(crate) link: NodeLink,
    /// `None` if it is of a version that knows nothing of carriers.
    pub(crate) place: Option<NodePlace>,
    pub(crate) health: Health,
    capacity: Capacity,
    /// The sources that are sent to it.
    sending: BTreeMap<SentId, Sending>,
    /// Sources of this node that it was told to take from carriers, and from which ones.
    pub(crate) assigned: BTreeMap<SourceId, Vec<NodeName>>,
    /// Those of them that it was given another way for, and when.
    pub(crate) moved: BTreeMap<SourceId, Instant>,
    /// Sources that this node carries for it.
    pub(crate) carried: BTreeSet<Key>,
    pub(crate) ssrcs: Ssrcs,
    pub(crate) pending: Pending,
}

impl FarNodeState {
    pub(crate) fn new(
        link: NodeLink,
        max_bps: Option<u64>,
        place: Option<NodePlace>,
        health: Health,
    ) -> Self {
        Self {
            link,
            place,
            health,
            capacity: Capacity::new(max_bps),
            sending: BTreeMap::new(),
            assigned: BTreeMap::new(),
            moved: BTreeMap::new(),
            carried: BTreeSet::new(),
            ssrcs: Ssrcs::new(),
            pending: Pending::default(),
        }
    }

    /// Its name, if it can carry sources.
    pub(crate) fn name(&self) -> Option<&NodeName> {
        self.place.as_ref().map(|place| &place.name)
    }

    /// Whether media crosses the link in both directions, as far as is known. A node of an older
    /// version does not say.
    pub(crate) fn works(&self, now: Instant) -> bool {
        self.place.is_none() || self.health.works(now)
    }

    /// Returns it as the node that a source is taken from.
    pub(crate) fn parent(&self, node: FarNodeId, far: u16) -> Parent {
        Parent {
            node,
            link: self.link.id(),
            far,
        }
    }

    /// Whether there is room for another source.
    pub(crate) fn has_room(&self) -> bool {
        let withheld = self.sending.values().flat_map(|it| it.ranks(true));
        withheld.count() == 0
    }

    /// Sends what it wants of a source.
    pub(crate) fn send(
        &mut self,
        media: &MediaPlane,
        id: SentId,
        source: impl FnOnce() -> Sending,
        (streams, layers): (&[Wanted], (u8, u8)),
        now: Instant,
    ) {
        let sending = self.sending.entry(id).or_insert_with(source);
        sending.apply(media, streams, layers);
        if sending.demand().is_nothing() {
            self.sending.remove(&id);
        }
        self.capacity.begin(now);
    }

    /// Tells that a source is gone, or was never there.
    pub(crate) fn tell_ended(&mut self, id: SourceId) {
        self.pending.push(Subject::Ended(id));
    }

    /// Sends a source no longer.
    pub(crate) fn withdraw(&mut self, media: &MediaPlane, id: SentId) {
        if let Some(mut sending) = self.sending.remove(&id) {
            sending.end(media);
        }
    }

    /// Whether a source is sent to it.
    pub(crate) fn sends(&self, id: SentId) -> bool {
        self.sending.contains_key(&id)
    }

    /// Returns the encodings and layers of a source that the node wants.
    pub(crate) fn wants(&self, id: SentId) -> Demand {
        let sending = self.sending.get(&id);
        sending.map_or(Demand::NOTHING, Sending::demand)
    }

    /// The encodings of a source that the link does not carry.
    pub(crate) fn withheld(&self, id: SentId) -> Option<Vec<u8>> {
        self.sending.get(&id).map(Sending::withheld)
    }

    /// The number of streams that are sent to it for other nodes.
    pub(crate) fn carried_streams(&self) -> usize {
        let sending = self.sending.iter();
        let carried = sending.filter(|(id, _)| matches!(id, SentId::Carried(_)));
        carried.map(|(_, sending)| sending.streams()).sum()
    }

    /// Begins to tell all again, as messages may have been lost. `wants` are those of this node.
    pub(crate) fn resume(&mut self, wants: impl Iterator<Item = Subject>) {
        let ended = self.pending.begin_again();
        wants.for_each(|want| self.pending.push(want));
        for (id, sending) in &self.sending {
            if sending.ranks(true).next().is_some() {
                self.pending.push(Subject::Withheld(*id));
            }
        }
        for subject in ended {
            self.pending.push(subject);
        }
    }

    /// The other node tells again what it wants.
    pub(crate) fn begins_again(&mut self, now: Instant) {
        for sending in self.sending.values_mut() {
            sending.stale_since = Some(now);
        }
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let stale = self.sending.values().filter_map(|it| it.stale_since);
        let stale = stale.map(|since| since + NAMED_WITHIN);
        let measured = self.capacity.poll_timeout();
        let measured = measured.filter(|_| !self.sending.is_empty());
        stale.chain(measured).min()
    }

    /// Does what is due. Returns the sources that it wants no longer.
    pub(crate) fn handle_timeout(&mut self, media: &MediaPlane, now: Instant) -> Vec<SentId> {
        let mut gone = Vec::new();
        self.sending.retain(|id, sending| {
            let is_stale = sending.stale_since;
            let is_stale = is_stale.is_some_and(|since| since + NAMED_WITHIN <= now);
            if is_stale {
                sending.end(media);
                gone.push(*id);
            }
            !is_stale
        });
        self.keep_within_capacity(media, now);
        gone
    }

    fn keep_within_capacity(&mut self, media: &MediaPlane, now: Instant) {
        let Some(seconds) = self.capacity.measure(now) else {
            return;
        };
        let sending = self.sending.values_mut();
        let bitrate = sending.map(|sending| sending.measure(seconds)).sum();
        match self.capacity.choose(bitrate) {
            Some(Choice::Withhold(mut over)) => {
                for (id, encoding) in self.ranked(false) {
                    if over <= 0.0 {
                        break;
                    }
                    over -= self.sending.get(&id).map_or(0.0, |it| it.bitrate(encoding));
                    self.withhold(media, id, encoding, true);
                }
            }
            Some(Choice::Restore(room)) => {
                let next = self.ranked(true).pop();
                let fits = |(id, encoding): &(SentId, u8)| {
                    let sending = self.sending.get(id);
                    sending.is_some_and(|it| it.bitrate(*encoding) <= room)
                };
                if let Some((id, encoding)) = next.filter(fits) {
                    self.withhold(media, id, encoding, false);
                }
            }
            None => {}
        }
    }

    /// The streams that are sent, or withheld, those first that are withheld first.
    fn ranked(&self, withheld: bool) -> Vec<(SentId, u8)> {
        let sending = self.sending.iter();
        let streams = sending.flat_map(|(id, it)| it.ranks(withheld).map(move |of| (*id, of)));
        let mut streams: Vec<_> = streams.collect();
        streams.sort_by(|(_, (_, one)), (_, (_, other))| {
            other.partial_cmp(one).unwrap_or(Ordering::Equal)
        });
        let streams = streams.into_iter();
        streams.map(|(id, (encoding, _))| (id, encoding)).collect()
    }

    fn withhold(&mut self, media: &MediaPlane, id: SentId, encoding: u8, withheld: bool) {
        if let Some(sending) = self.sending.get_mut(&id) {
            sending.withhold(media, encoding, withheld);
            self.pending.push(Subject::Withheld(id));
        }
    }

    /// Ends all. Returns the sources that were sent to it.
    pub(crate) fn end(&mut self, media: &MediaPlane) -> Vec<SentId> {
        for sending in self.sending.values_mut() {
            sending.end(media);
        }
        media.remove_node_link(self.link.id());
        std::mem::take(&mut self.sending).into_keys().collect()
    }
}
