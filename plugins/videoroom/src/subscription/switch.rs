//! Putting other sources on m-lines, without a negotiation.

use portunus_core::{FieldError, Fields, Mid};
use portunus_resources::{Id, Ids};

use super::Subscriber;
use super::layers::LayerRequest;
use crate::publication::Publications;
use crate::refusal::Refusal;

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
        if let Some(entries) = fields.some_objects("streams")? {
            let entries = entries.into_iter().map(|entry| Entry::read(entry, ids));
            return Ok(Switch(Form::Streams(entries.collect::<Result<_, _>>()?)));
        }
        match ids.read(fields, "feed")? {
            Some(feed) => Ok(Switch(Form::Feed(feed))),
            None => Err(FieldError::Missing("streams".to_owned()).into()),
        }
    }
}

impl Switch {
    /// In the old form, the publisher that everything is switched to.
    pub(crate) const fn feed(&self) -> Option<&Id> {
        match &self.0 {
            Form::Streams(_) => None,
            Form::Feed(feed) => Some(feed),
        }
    }
}

/// What a `switch` changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Switched {
    /// M-lines that have another source.
    pub(crate) changes: usize,
    /// Some of them were inactive, and have to be offered anew.
    pub(crate) revived: bool,
}

impl Subscriber {
    /// Puts other sources on m-lines.
    pub(crate) fn switch(
        &mut self,
        switch: Switch,
        publications: &Publications,
    ) -> Result<Switched, Refusal> {
        let entries = match switch.0 {
            Form::Streams(entries) => entries,
            Form::Feed(feed) => self.matching(&feed, publications)?,
        };
        for entry in &entries {
            let publication = publications.published(&entry.feed)?;
            let known = |mid: &Mid| mid.as_str() == entry.mid;
            if !publication
                .streams()
                .iter()
                .any(|stream| known(&stream.mid))
            {
                let text = format!("{} mid {}", entry.feed, entry.mid);
                return Err(Refusal::NoSuchFeed(text));
            }
            if publication.e2ee() != self.e2ee {
                return Err(Refusal::MixedFeeds);
            }
        }
        let mut switched = Switched::default();
        for entry in &entries {
            if let Some(revived) = self.switch_line(entry, publications) {
                switched.changes += 1;
                switched.revived |= revived;
            }
        }
        self.relay(publications);
        Ok(switched)
    }

    /// Entries that switch everything to `feed`, m-line by m-line of the same kind and codec.
    fn matching(&self, feed: &Id, publications: &Publications) -> Result<Vec<Entry>, Refusal> {
        let mut streams: Vec<_> = publications.published(feed)?.streams().iter().collect();
        let mut entries = Vec::new();
        for line in &self.lines {
            let Some(place) = streams.iter().position(|stream| line.fits(stream)) else {
                continue;
            };
            let stream = streams.remove(place);
            entries.push(Entry {
                feed: feed.clone(),
                mid: stream.mid.to_string(),
                sub_mid: line.mid().to_string(),
                layers: LayerRequest::default(),
            });
        }
        Ok(entries)
    }

    /// Puts a source on an m-line, if it fits and is another one; says whether the m-line was inactive.
    fn switch_line(&mut self, entry: &Entry, publications: &Publications) -> Option<bool> {
        let stable = self.negotiation.is_stable();
        let mut lines = self.lines.iter_mut();
        let line = lines.find(|line| line.mid().as_str() == entry.sub_mid)?;
        let mut streams = publications.up(&entry.feed)?.streams().iter();
        let stream = streams.find(|stream| stream.mid.as_str() == entry.mid)?;
        if !line.fits(stream) {
            return None;
        }
        let track = (&entry.feed, stream.mid);
        line.switch(track, &entry.layers, publications, stable)
    }
}
