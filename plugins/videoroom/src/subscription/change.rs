//! What a subscription receives: streams come, go, and take the m-lines of others.

use std::collections::{BTreeSet, HashMap};

use portunus_core::media::Layer;
use portunus_core::sdp::{CodecName, Kind};
use portunus_core::{FieldError, Fields, Handle, HandleId, LocalJsep, Mid, Object};
use serde_json::Value;

use super::layers::{RequestedLayers, Subscribe, Unsubscribe};
use super::{Format, Line, MAX_LINES, Signaling, Source, TOO_MANY};
use crate::id::{Id, Ids};
use crate::publication::Published;
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::roster::Participant;

/// What a request comes to: the event that answers it, with an offer. None: that comes later by itself.
pub(crate) type Outcome = Result<Option<(Value, Option<LocalJsep>)>, Refusal>;

/// A stream that is going to be received.
#[derive(Debug)]
pub(super) struct Planned {
    feed: Id,
    mid: Mid,
    kind: Kind,
    codec: Option<CodecName>,
    /// Its place among the publisher's streams.
    stream: usize,
    request: Subscribe,
}

impl RoomState {
    /// The requests `subscribe`, `unsubscribe` and `update`.
    pub(crate) fn change(
        &mut self,
        key: HandleId,
        fields: Fields<'_>,
        ids: Ids,
        name: &str,
    ) -> Outcome {
        let missing = |name: &str| FieldError::Missing(name.to_owned());
        let (subscribes, unsubscribes) = match name {
            "subscribe" => {
                let subscribes = Subscribe::list(fields, "streams", ids)?;
                (subscribes.ok_or_else(|| missing("streams"))?, Vec::new())
            }
            "unsubscribe" => {
                let unsubscribes = Unsubscribe::list(fields, "streams", ids)?;
                (Vec::new(), unsubscribes.ok_or_else(|| missing("streams"))?)
            }
            _ => {
                let subscribes = Subscribe::list(fields, "subscribe", ids)?;
                let unsubscribes = Unsubscribe::list(fields, "unsubscribe", ids)?;
                if subscribes.is_none() && unsubscribes.is_none() {
                    return Err(missing("subscribe").into());
                }
                (
                    subscribes.unwrap_or_default(),
                    unsubscribes.unwrap_or_default(),
                )
            }
        };
        let planned = self.plan(subscribes)?;
        if self.subscribers.get(&key).is_some_and(|s| s.client_offered) {
            return Err(Refusal::Invalid(
                "The m-lines are those of the client's offer",
            ));
        }
        self.check_room(key, &planned, &unsubscribes)?;
        self.check_same_e2ee(key, &planned, &unsubscribes)?;
        let mut changed = false;
        for unsubscribe in &unsubscribes {
            changed |= self.unsubscribe(key, unsubscribe);
        }
        for planned in planned {
            changed |= self.subscribe(key, planned)?;
        }
        // One more publisher on the m-line of data takes no offer.
        self.relay(key);
        self.offer_changes(key, changed)
    }

    /// Answers a request that may have changed what there is to offer.
    pub(super) fn offer_changes(&mut self, key: HandleId, changed: bool) -> Outcome {
        let subscriber = self.subscribers.get_mut(&key).ok_or(Refusal::NotInRoom)?;
        if !changed && !subscriber.pending.offer && !subscriber.pending.removals {
            return Ok(Some((self.updated().into(), None)));
        }
        if subscriber.signaling == Signaling::HaveLocalOffer {
            subscriber.pending.offer = true;
            let updating = Object::new()
                .with("videoroom", "updating")
                .with("room", self.id.to_json());
            return Ok(Some((updating.into(), None)));
        }
        let offer = self.offer(key)?;
        let updated = self.updated().with("streams", self.summaries(key));
        Ok(Some((updated.into(), Some(offer))))
    }

    /// The streams that are wanted, if all feeds and m-lines are known. Disabled ones are left out.
    pub(super) fn plan(&self, subscribes: Vec<Subscribe>) -> Result<Vec<Planned>, Refusal> {
        let mut planned = Vec::new();
        for request in subscribes {
            let published = self.published(&request.feed)?;
            let mut streams: Vec<_> = published.streams.iter().collect();
            if let Some(mid) = &request.mid {
                streams.retain(|stream| stream.mid.as_str() == mid);
                if streams.is_empty() {
                    return Err(Refusal::NoSuchFeed(format!("{} mid {mid}", request.feed)));
                }
            }
            for stream in streams.into_iter().filter(|stream| !stream.disabled) {
                // More could not be had; that is known before they take memory.
                if planned.len() >= 2 * MAX_LINES {
                    return Err(TOO_MANY);
                }
                planned.push(Planned {
                    feed: request.feed.clone(),
                    mid: stream.mid,
                    kind: stream.kind,
                    codec: stream.codec,
                    stream: stream.index,
                    request: request.clone(),
                });
            }
        }
        Ok(planned)
    }

    /// What somebody publishes, whose media has to be up.
    pub(super) fn published(&self, feed: &Id) -> Result<&Published, Refusal> {
        let publisher = self.named(feed)?;
        publisher
            .up()
            .ok_or_else(|| Refusal::NoSuchFeed(feed.to_string()))
    }

    /// Whether all feeds are encrypted end to end, if they all are or none is.
    pub(super) fn e2ee_of(&self, planned: &[Planned]) -> Result<Option<bool>, Refusal> {
        let mut e2ee = None;
        for planned in planned {
            let this = self.published(&planned.feed)?.e2ee;
            if e2ee.is_some_and(|e2ee| e2ee != this) {
                return Err(Refusal::MixedFeeds);
            }
            e2ee = Some(this);
        }
        Ok(e2ee)
    }

    /// Checks that what is wanted goes with what is left once `unsubscribes` are gone.
    fn check_same_e2ee(
        &mut self,
        key: HandleId,
        planned: &[Planned],
        unsubscribes: &[Unsubscribe],
    ) -> Result<(), Refusal> {
        let Some(wanted) = self.e2ee_of(planned)? else {
            return Ok(());
        };
        let keeps_some = self.keeps_some(key, unsubscribes);
        let subscriber = self.subscribers.get_mut(&key).ok_or(Refusal::NotInRoom)?;
        if keeps_some && subscriber.e2ee != wanted {
            return Err(Refusal::MixedFeeds);
        }
        subscriber.e2ee = wanted;
        Ok(())
    }

    /// Whether anything is left to receive once `unsubscribes` are gone.
    fn keeps_some(&self, key: HandleId, unsubscribes: &[Unsubscribe]) -> bool {
        let gone: Vec<(usize, Option<&Id>)> = unsubscribes
            .iter()
            .flat_map(|unsubscribe| {
                let feed = unsubscribe
                    .feed
                    .as_ref()
                    .filter(|_| unsubscribe.sub_mid.is_none());
                let concerned = self.concerned(key, unsubscribe).into_iter();
                concerned.map(move |index| (index, feed))
            })
            .collect();
        let goes = |index: usize, feed: &Id| {
            let of = |of: Option<&Id>| of.is_none_or(|of| of == feed);
            gone.iter().any(|(line, by)| *line == index && of(*by))
        };
        let lines = self.subscribers.get(&key).map(|s| s.lines.as_slice());
        let mut lines = lines.unwrap_or_default().iter().enumerate();
        lines.any(|(index, line)| match &line.source {
            Source::None => false,
            Source::Track { feed, .. } => !goes(index, feed),
            Source::Data(feeds) => feeds.iter().any(|feed| !goes(index, feed)),
        })
    }

    /// Checks that there is room for what is wanted once `unsubscribes` are gone, so that nothing is done by halves.
    fn check_room(
        &self,
        key: HandleId,
        planned: &[Planned],
        unsubscribes: &[Unsubscribe],
    ) -> Result<(), Refusal> {
        let subscriber = self.subscribers.get(&key).ok_or(Refusal::NotInRoom)?;
        let concerned = unsubscribes
            .iter()
            .flat_map(|unsubscribe| self.concerned(key, unsubscribe));
        let freed: BTreeSet<usize> = concerned.collect();
        let mut free: HashMap<_, usize> = HashMap::new();
        for (index, line) in subscriber.lines.iter().enumerate() {
            if line.seat.is_none() && (line.source == Source::None || freed.contains(&index)) {
                *free.entry((line.kind, line.format.codec)).or_default() += 1;
            }
        }
        let mut more = 0;
        for planned in planned.iter().filter(|p| p.kind != Kind::Data) {
            match free.get_mut(&(planned.kind, planned.codec)) {
                Some(left) if *left > 0 => *left -= 1,
                Some(_) | None => more += 1,
            }
        }
        subscriber.check_room(more)
    }

    /// Takes a stream into an m-line; says whether that has to be offered.
    pub(super) fn subscribe(&mut self, key: HandleId, planned: Planned) -> Result<bool, Refusal> {
        let Planned {
            feed,
            mid,
            kind,
            stream,
            request,
            ..
        } = planned;
        let publisher = self.people.get_mut(&feed).and_then(|p| p.media.as_mut());
        let stream = publisher.and_then(|media| media.streams.get_mut(stream));
        let subscriber = self.subscribers.get_mut(&key);
        let (Some(stream), Some(subscriber)) = (stream, subscriber) else {
            return Err(Refusal::NoSuchFeed(feed.to_string()));
        };
        let data = subscriber.lines.iter().position(|l| l.kind == Kind::Data);
        if let Some(index) = data.filter(|_| kind == Kind::Data) {
            stream.receivers.insert((key, index));
            let Some(line) = subscriber.lines.get_mut(index) else {
                return Ok(false);
            };
            return Ok(match &mut line.source {
                Source::Data(feeds) => {
                    if !feeds.contains(&feed) {
                        feeds.push(feed);
                    }
                    false
                }
                Source::None | Source::Track { .. } => {
                    line.source = Source::Data(vec![feed]);
                    true
                }
            });
        }
        let free = |line: &Line| {
            line.source == Source::None
                && line.seat.is_none()
                && line.kind == kind
                && line.format.codec == stream.codec
        };
        let index = match subscriber.lines.iter().position(free) {
            Some(index) => index,
            None => subscriber.lines.len(),
        };
        if index == subscriber.lines.len() {
            if kind != Kind::Data {
                subscriber.check_room(1)?;
            }
            let own = Mid::new(&index.to_string()).ok_or(TOO_MANY)?;
            subscriber.lines.push(Line::new(kind, own));
        }
        let Some(line) = subscriber.lines.get_mut(index) else {
            return Ok(false);
        };
        line.source = match kind {
            Kind::Data => Source::Data(vec![feed]),
            Kind::Audio | Kind::Video => Source::Track { feed, mid },
        };
        line.format.codec = stream.codec;
        line.crossrefid = request.crossrefid;
        line.send = request.send;
        line.ready = false;
        line.requested = RequestedLayers::default();
        if kind == Kind::Video {
            line.requested.apply(&request.layers);
        }
        stream.receivers.insert((key, index));
        Ok(true)
    }

    /// Lets streams go; says whether that has to be offered.
    fn unsubscribe(&mut self, key: HandleId, unsubscribe: &Unsubscribe) -> bool {
        let mut changed = false;
        for index in self.concerned(key, unsubscribe) {
            changed |= match (&unsubscribe.sub_mid, &unsubscribe.feed) {
                (None, Some(feed)) => self.let_go(key, index, feed),
                _ => self.clear_line(key, index),
            };
        }
        changed
    }

    /// The m-lines that are not to receive what they do.
    fn concerned(&self, key: HandleId, unsubscribe: &Unsubscribe) -> Vec<usize> {
        let Some(subscriber) = self.subscribers.get(&key) else {
            return Vec::new();
        };
        let lines = subscriber.lines.iter().enumerate();
        if let Some(sub_mid) = &unsubscribe.sub_mid {
            let found = subscriber.line(sub_mid);
            let bound = |index: &usize| {
                let line = subscriber.lines.get(*index);
                line.is_some_and(|line| line.seat.is_none())
            };
            return found.filter(bound).into_iter().collect();
        }
        let Some(feed) = &unsubscribe.feed else {
            return Vec::new();
        };
        let is_mid = |mid: &Mid| unsubscribe.mid.as_deref().is_none_or(|m| m == mid.as_str());
        let data_mid = self.people.get(feed).and_then(|p| p.media.as_ref());
        let data_mid = data_mid
            .and_then(|media| media.data().next())
            .map(|s| s.mid);
        lines
            .filter(|(_, line)| match &line.source {
                Source::None => false,
                _ if line.seat.is_some() => false,
                Source::Track { feed: from, mid } => from == feed && is_mid(mid),
                Source::Data(feeds) => feeds.contains(feed) && data_mid.as_ref().is_none_or(is_mid),
            })
            .map(|(index, _)| index)
            .collect()
    }

    /// Takes `feed` off an m-line; says whether the m-line has nothing to send any more.
    fn let_go(&mut self, key: HandleId, index: usize, feed: &Id) -> bool {
        self.forget_receiver(feed, key, index);
        let Some(subscriber) = self.subscribers.get_mut(&key) else {
            return false;
        };
        let Some(line) = subscriber.lines.get_mut(index) else {
            return false;
        };
        match &mut line.source {
            Source::Data(feeds) => {
                feeds.retain(|known| known != feed);
                if !feeds.is_empty() {
                    line.end_route_of(&subscriber.handle, feed);
                    return false;
                }
            }
            // Others have the m-line by now.
            Source::Track { feed: from, .. } if from != feed => return false,
            Source::None => return false,
            Source::Track { .. } => {}
        }
        line.give_up(&subscriber.handle);
        line.seat.is_none()
    }

    /// Takes everything off an m-line; false if there was nothing.
    fn clear_line(&mut self, key: HandleId, index: usize) -> bool {
        let subscriber = self.subscribers.get(&key);
        let source = subscriber
            .and_then(|s| s.lines.get(index))
            .map(|l| &l.source);
        let feeds = match source {
            None | Some(Source::None) => return false,
            Some(Source::Track { feed, .. }) => vec![feed.clone()],
            Some(Source::Data(feeds)) => feeds.clone(),
        };
        for feed in &feeds {
            self.forget_receiver(feed, key, index);
        }
        if let Some(subscriber) = self.subscribers.get_mut(&key)
            && let Some(line) = subscriber.lines.get_mut(index)
        {
            line.give_up(&subscriber.handle);
        }
        true
    }

    /// Takes everything off all m-lines.
    pub(super) fn clear_lines(&mut self, key: HandleId) {
        let lines = self.subscribers.get(&key).map_or(0, |s| s.lines.len());
        for index in 0..lines {
            self.clear_line(key, index);
        }
    }

    pub(super) fn forget_receiver(&mut self, feed: &Id, key: HandleId, index: usize) {
        forget_receiver(&mut self.people, feed, (key, index));
    }

    /// Takes what a publisher sent, which is gone, off all subscriptions.
    pub(crate) fn media_gone(&mut self, feed: &Id, media: &Published) {
        let mut concerned = BTreeSet::new();
        let receivers = media.streams.iter().flat_map(|stream| &stream.receivers);
        for (key, index) in receivers {
            if self.let_go(*key, *index, feed) {
                concerned.insert(*key);
            }
        }
        for key in concerned {
            match self.subscribers.get_mut(&key) {
                Some(subscriber) if !subscriber.autoupdate => subscriber.pending.removals = true,
                Some(_) => self.renegotiate(key, None),
                None => {}
            }
        }
        self.reseat_all();
    }
}

/// Forgets that an m-line receives something of `feed`: the stream may have another mid by now.
pub(super) fn forget_receiver(
    people: &mut HashMap<Id, Participant>,
    feed: &Id,
    receiver: (HandleId, usize),
) {
    let media = people.get_mut(feed).and_then(|p| p.media.as_mut());
    for stream in media.into_iter().flat_map(|media| &mut media.streams) {
        stream.receivers.remove(&receiver);
    }
}

impl Planned {
    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }
}

impl Line {
    pub(super) fn new(kind: Kind, mid: Mid) -> Self {
        Line {
            kind,
            mid,
            source: Source::None,
            format: Format::default(),
            crossrefid: None,
            send: true,
            ready: false,
            requested: RequestedLayers::default(),
            current: Layer::default(),
            reason: None,
            routes: Vec::new(),
            seat: None,
        }
    }

    /// Ends what it receives. On a seat, whoever takes it over finds out who sat there.
    fn give_up(&mut self, handle: &Handle) {
        self.end_routes(handle);
        if self.seat.is_none() {
            self.source = Source::None;
            self.ready = false;
        }
    }
}
