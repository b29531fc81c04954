//! Putting other sources on m-lines, without a negotiation.

use portunus_rtp::Mid;
use serde::Deserialize;

use super::Subscriber;
use super::layers::LayerRequest;
use crate::publication::Publications;
use crate::{PersonId, Refusal};

/// Other sources for m-lines.
#[derive(Debug, Clone)]
pub enum Switch {
    /// Single streams.
    Streams(Vec<SwitchEntry>),
    /// Everything to this publisher.
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
    /// Which layers.
    pub layers: LayerRequest,
}

impl Subscriber {
    /// Puts other sources on m-lines. Returns how many have another one, and whether some were inactive, so that they have to be
    /// offered anew.
    pub(crate) fn switch(
        &mut self,
        switch: Switch,
        publications: &Publications,
    ) -> Result<(usize, bool), Refusal> {
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
        let (mut changes, mut offers) = (0, false);
        for entry in &entries {
            if let Some(revived) = self.switch_line(entry, publications) {
                changes += 1;
                offers |= revived;
            }
        }
        self.relay(publications);
        Ok((changes, offers))
    }

    /// Entries that switch everything to `feed`, m-line by m-line of the same kind and codec.
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

    /// Puts a source on an m-line, if it fits and is another one; says whether the m-line was inactive.
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
