//! Another node: what it wants of this one, and what this one wants of it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use portunus_media::{Demand, DemandReports, IngestId, MediaPlane, NodeLink};

use crate::capacity::{Capacity, Choice};
use crate::receiving::{Receiving, Ssrcs};
use crate::sending::Sending;
use crate::{Message, Offer, SourceId, Wanted};

/// How long what another node does not name again is sent on, after the connection was resumed.
const NAMED_WITHIN: Duration = Duration::from_secs(5);

/// Another node.
#[derive(Debug)]
pub(crate) struct FarNodeState {
    pub(crate) link: NodeLink,
    capacity: Capacity,
    /// The sources of this node that it wants.
    sending: BTreeMap<SourceId, Sending>,
    /// Its sources that this node may want.
    receiving: BTreeMap<SourceId, Receiving>,
    ssrcs: Ssrcs,
    pending: Pending,
}

/// The messages that wait: each is made when it leaves, so that no source has two of a kind.
#[derive(Debug, Default)]
struct Pending {
    queue: VecDeque<Subject>,
    queued: HashSet<Subject>,
}

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    Again,
    Want(SourceId),
    Withheld(SourceId),
    Ended(SourceId),
}

impl Pending {
    fn push(&mut self, subject: Subject) {
        if self.queued.insert(subject) {
            self.queue.push_back(subject);
        }
    }

    fn pop(&mut self) -> Option<Subject> {
        let subject = self.queue.pop_front()?;
        self.queued.remove(&subject);
        Some(subject)
    }
}

impl FarNodeState {
    pub(crate) fn new(link: NodeLink, max_bps: Option<u64>) -> Self {
        Self {
            link,
            capacity: Capacity::new(max_bps),
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            ssrcs: Ssrcs::new(),
            pending: Pending::default(),
        }
    }

    /// Subscribes to a source. A source that is known stays as it is.
    pub(crate) fn subscribe(
        &mut self,
        media: &MediaPlane,
        offer: &Offer,
        reports: &DemandReports,
    ) -> &Receiving {
        let link = self.link.id();
        let new = || Receiving::new(media, link, offer, reports);
        self.receiving.entry(offer.id).or_insert_with(new)
    }

    /// Removes a source of it.
    pub(crate) fn unsubscribe(&mut self, media: &MediaPlane, id: SourceId) {
        let Some(receiving) = self.receiving.remove(&id) else {
            return;
        };
        if receiving.asks() {
            self.pending.push(Subject::Want(id));
        }
        receiving.end(media);
    }

    /// Removes a source of it that has ended there. Returns what its ingest was.
    pub(crate) fn unsubscribe_ended(
        &mut self,
        media: &MediaPlane,
        id: SourceId,
    ) -> Option<IngestId> {
        let receiving = self.receiving.remove(&id)?;
        receiving.end(media);
        Some(receiving.ingest())
    }

    /// The ingest of a source of it.
    pub(crate) fn ingest(&self, id: SourceId) -> Option<IngestId> {
        self.receiving.get(&id).map(Receiving::ingest)
    }

    /// All sources of it.
    pub(crate) fn receiving(&self) -> impl Iterator<Item = (SourceId, &Receiving)> {
        self.receiving
            .iter()
            .map(|(id, receiving)| (*id, receiving))
    }

    /// Takes what viewers can see of a source of it.
    pub(crate) fn want(&mut self, media: &MediaPlane, id: SourceId, demand: Demand, now: Instant) {
        let ssrcs = &mut self.ssrcs;
        let receiving = self.receiving.get_mut(&id);
        if receiving.is_some_and(|it| it.want(media, demand, ssrcs, now).is_some()) {
            self.pending.push(Subject::Want(id));
        }
    }

    /// Sends what it wants of a source of this node.
    pub(crate) fn send(
        &mut self,
        media: &MediaPlane,
        id: SourceId,
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

    /// Ends a source of this node. Returns whether it was wanted.
    pub(crate) fn withdraw(&mut self, media: &MediaPlane, id: SourceId) -> bool {
        let Some(mut sending) = self.sending.remove(&id) else {
            return false;
        };
        sending.end(media);
        self.pending.push(Subject::Ended(id));
        true
    }

    /// What it wants of a source of this node.
    pub(crate) fn wants(&self, id: SourceId) -> Demand {
        let sending = self.sending.get(&id);
        sending.map_or(Demand::NOTHING, Sending::demand)
    }

    /// Tells again all that this node wants, as messages may have been lost.
    pub(crate) fn resume(&mut self) {
        let ended = self.pending.queue.iter().copied();
        let ended = ended.filter(|it| matches!(it, Subject::Ended(_)));
        let ended: Vec<Subject> = ended.collect();
        self.pending = Pending::default();
        self.pending.push(Subject::Again);
        for (id, receiving) in &self.receiving {
            if receiving.asks() {
                self.pending.push(Subject::Want(*id));
            }
        }
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

    /// Returns the next message.
    pub(crate) fn poll_message(&mut self) -> Option<Message> {
        loop {
            let message = match self.pending.pop()? {
                Subject::Again => Message::Again,
                Subject::Ended(source) => Message::Ended { source },
                Subject::Want(id) => match self.receiving.get(&id) {
                    Some(receiving) => receiving.message(),
                    None => Message::Want {
                        source: id,
                        streams: Vec::new(),
                        spatial: 0,
                        temporal: 0,
                    },
                },
                Subject::Withheld(id) => match self.sending.get(&id) {
                    Some(sending) => Message::Withheld {
                        source: id,
                        encodings: sending.withheld(),
                    },
                    None => continue,
                },
            };
            return Some(message);
        }
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let receiving = self.receiving.values().filter_map(Receiving::poll_timeout);
        let stale = self.sending.values().filter_map(|it| it.stale_since);
        let stale = stale.map(|since| since + NAMED_WITHIN);
        let measured = self.capacity.poll_timeout();
        let measured = measured.filter(|_| !self.sending.is_empty());
        receiving.chain(stale).chain(measured).min()
    }

    /// Does what is due. Returns the sources of this node that it wants no longer.
    pub(crate) fn handle_timeout(&mut self, media: &MediaPlane, now: Instant) -> Vec<SourceId> {
        let ssrcs = &mut self.ssrcs;
        for (id, receiving) in &mut self.receiving {
            if receiving.handle_timeout(media, ssrcs, now).is_some() {
                self.pending.push(Subject::Want(*id));
            }
        }
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
                let fits = |(id, encoding): &(SourceId, u8)| {
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
    fn ranked(&self, withheld: bool) -> Vec<(SourceId, u8)> {
        let sending = self.sending.iter();
        let streams = sending.flat_map(|(id, it)| it.ranks(withheld).map(move |of| (*id, of)));
        let mut streams: Vec<_> = streams.collect();
        streams.sort_by(|(_, (_, one)), (_, (_, other))| {
            other.partial_cmp(one).unwrap_or(Ordering::Equal)
        });
        let streams = streams.into_iter();
        streams.map(|(id, (encoding, _))| (id, encoding)).collect()
    }

    fn withhold(&mut self, media: &MediaPlane, id: SourceId, encoding: u8, withheld: bool) {
        if let Some(sending) = self.sending.get_mut(&id) {
            sending.withhold(media, encoding, withheld);
            self.pending.push(Subject::Withheld(id));
        }
    }

    /// Ends all. Returns the sources that it wanted.
    pub(crate) fn end(&mut self, media: &MediaPlane) -> Vec<SourceId> {
        for sending in self.sending.values_mut() {
            sending.end(media);
        }
        for receiving in self.receiving.values() {
            receiving.end(media);
        }
        media.remove_node_link(self.link.id());
        std::mem::take(&mut self.sending).into_keys().collect()
    }
}
