//! Messages of data channels between participants of this node and those of others.

use std::collections::BTreeSet;

use portunus_media::{DataMessage, DataPayload, SourceRef};

use super::State;
use crate::publication::Origin;
use crate::{PersonId, Stream};

impl State {
    /// Returns the data channels of a participant of this node as a source of messages, if its media
    /// is up and it sends them.
    pub fn data_source(&self, id: &PersonId) -> Option<SourceRef> {
        let publication = self.publications.up(id)?;
        if let Origin::Relayed(_) = publication.origin {
            return None;
        }
        let stream = publication.data().next()?;
        let source = publication.origin.source(stream.mid);
        source.filter(|_| stream.is_open())
    }

    /// Returns the participants at other nodes whose data channels somebody here receives.
    /// [`State::changes`] sees when they have changed.
    pub fn wanted_data(&self) -> BTreeSet<PersonId> {
        let people = self.roster.iter().filter(|person| person.is_elsewhere());
        let wanted = people.filter(|person| {
            let data = self.far_data(person.id());
            data.is_some()
                && self
                    .subscriptions
                    .data_receivers(person.id())
                    .next()
                    .is_some()
        });
        wanted.map(|person| person.id().clone()).collect()
    }

    /// Sends a message of a participant at another node to those who receive its data channels here.
    pub fn send_far_data(&self, id: &PersonId, payload: &DataPayload) {
        if !self.far_data(id).is_some_and(Stream::is_open) {
            return;
        }
        for peer in self.subscriptions.data_receivers(id) {
            let message = DataMessage {
                label: id.as_str().to_owned(),
                protocol: String::new(),
                payload: payload.clone(),
            };
            self.publications.media.send_data(peer, message);
        }
    }

    /// Notes whose data channels at other nodes somebody receives, after a change of subscriptions.
    pub(super) fn note_wanted_data(&mut self) {
        let wanted = self.wanted_data();
        if self.wanted_data != wanted {
            self.wanted_data = wanted;
            self.changes.send_replace(());
        }
    }

    /// Returns the data channels of a participant at another node.
    fn far_data(&self, id: &PersonId) -> Option<&Stream> {
        let publication = self.publications.up(id)?;
        match publication.origin {
            Origin::Relayed(_) => publication.data().next(),
            Origin::Client(_) | Origin::Remote(_) | Origin::Dummy => None,
        }
    }
}
