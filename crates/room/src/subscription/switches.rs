//! Switches of m-lines to other sources, without a negotiation.

use portunus_rtp::Mid;
use serde::Deserialize;

use super::Subscriber;
use super::layers::LayerRequest;
use crate::publication::Publications;
use crate::{PersonId, Refusal};

/// A switch of m-lines to other sources.
#[derive(Debug, Clone)]
pub enum Switch {
    /// Single streams.
    Streams(Vec<SwitchEntry>),
    /// All m-lines to this publisher.
    Feed(PersonId),
}

/// A source for an m-line.
#[derive(Debug, Clone, Deserialize)]
pub struct SwitchEntry {
    /// The publisher.
    pub feed: PersonId,
    /// The publisher's m-line.
    pub mid: String,
    /// The m-line of the subscription.
    pub sub_mid: String,
    /// The requested layers.
    pub layers: LayerRequest,
}

/// The outcome of a [`Switch`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Switching {
    /// The number of m-lines with another source.
    pub(crate) changes: usize,
    /// Whether one of them was inactive, so that an offer is due.
    pub(crate) revived: bool,
}

impl Subscriber {
    /// Puts other sources on m-lines.
    pub(crate) fn switch(
        &mut self,
        switch: Switch,
        publications: &Publications,
    ) -> Result<Switching, Refusal> {
        let entries = match switch {
            Switch::Streams(entries) => entries,
            Switch::Feed(feed) => self.matching(&feed, publications)?,
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
            if publication.e2ee != self.e2ee {
                return Err(Refusal::MixedFeeds);
            }
        }
        let mut switching = Switching::default();
        for entry in &entries {
            if let Some(revived) = self.switch_line(entry, publications) {
                switching.changes += 1;
                switching.revived |= revived;
            }
        }
        self.relay(publications);
        Ok(switching)
    }

    /// Returns entries that switch all m-lines to streams of `feed` with the same kind and codec.
    fn matching(
        &self,
        feed: &PersonId,
        publications: &Publications,
    ) -> Result<Vec<SwitchEntry>, Refusal> {
        let mut streams: Vec<_> = publications.published(feed)?.streams().iter().collect();
        let mut entries = Vec::new();
        for line in &self.lines {
            let Some(place) = streams.iter().position(|stream| line.fits(stream)) else {
                continue;
            };
            let stream = streams.remove(place);
            entries.push(SwitchEntry {
                feed: feed.clone(),
                mid: stream.mid.to_string(),
                sub_mid: line.mid.to_string(),
                layers: LayerRequest::default(),
            });
        }
        Ok(entries)
    }

    /// Puts another source on an m-line. Returns whether the m-line was inactive, or `None` if the
    /// source is the same or does not fit.
    fn switch_line(&mut self, entry: &SwitchEntry, publications: &Publications) -> Option<bool> {
        let stable = self.negotiation.is_stable();
        let mut lines = self.lines.iter_mut();
        let line = lines.find(|line| line.mid.as_str() == entry.sub_mid)?;
        let mut streams = publications.up(&entry.feed)?.streams().iter();
        let stream = streams.find(|stream| stream.mid.as_str() == entry.mid)?;
        if !line.fits(stream) {
            return None;
        }
        let track = (&entry.feed, stream.mid);
        line.switch(track, &entry.layers, publications, stable)
    }
}
