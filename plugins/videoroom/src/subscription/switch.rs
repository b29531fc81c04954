//! Putting other sources on m-lines, without a negotiation.

use portunus_core::media::Layer;
use portunus_core::sdp::Kind;
use portunus_core::{FieldError, Fields, HandleId, Mid, Object};

use super::change::Outcome;
use super::layers::{LayerRequest, RequestedLayers};
use super::{Line, Signaling, Source};
use crate::id::{Id, Ids};
use crate::members;
use crate::publication::Stream;
use crate::refusal::Refusal;
use crate::room::RoomState;

/// A source for an m-line.
#[derive(Debug)]
struct Entry {
    feed: Id,
    mid: String,
    sub_mid: String,
    layers: LayerRequest,
}

/// A subscriber's `switch`.
#[derive(Debug)]
pub(crate) struct Switch(Form);

#[derive(Debug)]
enum Form {
    Streams(Vec<Entry>),
    /// In the old form: everything to this publisher.
    Feed(Id),
}

impl Entry {
    fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, FieldError> {
        Ok(Entry {
            feed: ids.required(fields, "feed")?,
            mid: fields.required_string("mid")?.to_owned(),
            sub_mid: fields.required_string("sub_mid")?.to_owned(),
            layers: LayerRequest::read(fields)?,
        })
    }
}

impl Switch {
    pub(crate) fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, Refusal> {
        if let Some(entries) = members::some_objects(fields, "streams")? {
            let entries = entries.into_iter().map(|entry| Entry::read(entry, ids));
            return Ok(Switch(Form::Streams(entries.collect::<Result<_, _>>()?)));
        }
        match ids.read(fields, "feed")? {
            Some(feed) => Ok(Switch(Form::Feed(feed))),
            None => Err(FieldError::Missing("streams".to_owned()).into()),
        }
    }
}

impl RoomState {
    /// Puts other sources on m-lines.
    pub(crate) fn switch(
        &mut self,
        key: HandleId,
        switch: Switch,
        transaction: Option<&str>,
    ) -> Outcome {
        let subscriber = self.subscribers.get(&key).ok_or(Refusal::NotInRoom)?;
        let (e2ee, mut feeds) = (subscriber.e2ee, Vec::new());
        let entries = match switch.0 {
            Form::Streams(entries) => entries,
            Form::Feed(feed) => {
                let entries = self.matching(key, &feed)?;
                feeds.push(feed);
                entries
            }
        };
        for entry in &entries {
            let published = self.published(&entry.feed)?;
            let known = |mid: &Mid| mid.as_str() == entry.mid;
            if !published.streams.iter().any(|stream| known(&stream.mid)) {
                let text = format!("{} mid {}", entry.feed, entry.mid);
                return Err(Refusal::NoSuchFeed(text));
            }
            if published.e2ee != e2ee {
                return Err(Refusal::MixedFeeds);
            }
        }
        let (mut changes, mut revived) = (0, false);
        for entry in &entries {
            if let Some(was_inactive) = self.put(key, entry) {
                changes += 1;
                revived |= was_inactive;
            }
        }
        self.relay(key);
        if revived {
            self.renegotiate(key, transaction);
        }
        let switched = self
            .event()
            .with("switched", "ok")
            .with("changes", changes)
            .with("streams", self.summaries(key));
        let publisher = feeds.first().and_then(|feed| self.people.get(feed));
        let switched = match publisher {
            Some(publisher) => {
                let named = Object::new().with("id", publisher.id.to_json());
                switched
                    .with_all(named)
                    .with_some("display", publisher.display.as_deref())
            }
            None => switched,
        };
        Ok(Some((switched.into(), None)))
    }

    /// Entries that switch everything to `feed`, m-line by m-line of the same kind and codec.
    fn matching(&self, key: HandleId, feed: &Id) -> Result<Vec<Entry>, Refusal> {
        let published = self.published(feed)?;
        let subscriber = self.subscribers.get(&key).ok_or(Refusal::NotInRoom)?;
        let mut streams: Vec<_> = published.streams.iter().filter(|s| !s.disabled).collect();
        let mut entries = Vec::new();
        let bound = |line: &&Line| line.kind != Kind::Data && line.seat.is_none();
        for line in subscriber.lines.iter().filter(bound) {
            let fits =
                |stream: &&Stream| stream.kind == line.kind && stream.codec == line.format.codec;
            let Some(place) = streams.iter().position(fits) else {
                continue;
            };
            let stream = streams.remove(place);
            entries.push(Entry {
                feed: feed.clone(),
                mid: stream.mid.to_string(),
                sub_mid: line.mid.to_string(),
                layers: LayerRequest::default(),
            });
        }
        Ok(entries)
    }

    /// Puts a source on an m-line, if it fits and is another one; says whether the m-line was inactive.
    fn put(&mut self, key: HandleId, entry: &Entry) -> Option<bool> {
        let subscriber = self.subscribers.get_mut(&key)?;
        let index = subscriber.line(&entry.sub_mid)?;
        let line = subscriber.lines.get_mut(index)?;
        let inactive = match subscriber.signaling {
            Signaling::Stable => !line.ready,
            // The offer that waits for its answer may say so.
            Signaling::HaveLocalOffer | Signaling::Closed => line.track(&self.people).is_none(),
        };
        let media = self.people.get(&entry.feed)?.media.as_ref()?;
        let stream = media
            .streams
            .iter()
            .find(|stream| stream.mid.as_str() == entry.mid)?;
        let fits = stream.kind == line.kind && stream.codec == line.format.codec;
        if !fits || stream.disabled || line.kind == Kind::Data || line.seat.is_some() {
            return None;
        }
        let source = Source::Track {
            feed: entry.feed.clone(),
            mid: stream.mid,
        };
        if line.source == source {
            return None;
        }
        let mid = stream.mid;
        let before = std::mem::replace(&mut line.source, source);
        line.send = true;
        line.current = Layer::default();
        // How important a picture is depends on its place.
        line.requested = RequestedLayers {
            priority: line.requested.priority,
            ..RequestedLayers::default()
        };
        line.requested.apply(&entry.layers);
        let revived = before == Source::None || inactive;
        line.ready &= !revived;
        if let Source::Track { feed, .. } = &before {
            self.forget_receiver(feed, key, index);
        }
        let media = self.people.get_mut(&entry.feed)?.media.as_mut()?;
        media.stream_mut(mid)?.receivers.insert((key, index));
        Some(revived)
    }
}
