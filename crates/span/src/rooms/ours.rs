//! The participants of a room at this node, as the other nodes get to know them.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use portunus_media::SourceRef;
use portunus_relay::{Offer, SourceDescription, SourceId};
use portunus_room::{Participant, PersonId, State};
use portunus_rtp::Mid;

use super::record::{PersonRecord, PublicationRecord, StreamRecord};
use crate::Port;

/// The participants of a room at this node.
#[derive(Debug, Default)]
pub(crate) struct Ours {
    people: BTreeMap<PersonId, Known>,
    /// Whose stream an offer is.
    by_offer: HashMap<SourceId, (PersonId, Mid)>,
}

/// A participant as the others know it.
#[derive(Debug, Default)]
struct Known {
    record: Option<PersonRecord>,
    streams: HashMap<Mid, Offered>,
}

/// A stream that is offered.
#[derive(Debug)]
struct Offered {
    source: SourceRef,
    description: SourceDescription,
    offer: Offer,
}

/// An item that has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It has this value, and a shorter one if that is too long.
    Set {
        item: String,
        value: Bytes,
        shorter: Bytes,
    },
    /// It is gone.
    Remove { item: String },
}

/// The start of the names of items of participants.
const PERSON: char = 'p';

/// Returns the name of the item of a participant.
fn item_of(id: &PersonId) -> String {
    format!("{PERSON}{id}")
}

/// Returns the participant of an item, or `None` if the item is something else.
pub(crate) fn person_of(item: &str) -> Option<PersonId> {
    item.strip_prefix(PERSON).map(PersonId::from)
}

impl Ours {
    /// Looks at the room. Returns what has changed since the last look.
    pub(crate) fn look(&mut self, state: &State, port: &Port) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut present = HashSet::new();
        let people = state.people();
        for person in people.filter(|person| !person.is_dummy() && !person.is_elsewhere()) {
            let id = person.id();
            present.insert(id.clone());
            let record = self.record(state, person, port);
            let known = self.people.entry(id.clone()).or_default();
            if known.record.as_ref() != Some(&record) {
                changes.push(Change::Set {
                    item: item_of(id),
                    value: record.to_value().into(),
                    shorter: record.shorter().to_value().into(),
                });
                known.record = Some(record);
            }
        }
        let gone = self.people.keys().filter(|id| !present.contains(*id));
        for id in gone.cloned().collect::<Vec<_>>() {
            self.withdraw(&id, |_| true, port);
            self.people.remove(&id);
            changes.push(Change::Remove { item: item_of(&id) });
        }
        changes
    }

    /// Withdraws all that is offered, as the room is no longer used here.
    pub(crate) fn end(&mut self, port: &Port) {
        for id in self.people.keys().cloned().collect::<Vec<_>>() {
            self.withdraw(&id, |_| true, port);
        }
        self.people.clear();
    }

    /// Returns the participant and the m-line of an offer.
    pub(crate) fn stream_of(&self, source: SourceId) -> Option<&(PersonId, Mid)> {
        self.by_offer.get(&source)
    }

    fn record(&mut self, state: &State, person: &Participant, port: &Port) -> PersonRecord {
        let id = person.id();
        let publication = state.published(id);
        let streams = publication.map_or(&[][..], |publication| publication.streams());
        let mids: HashSet<Mid> = streams.iter().map(|stream| stream.mid).collect();
        self.withdraw(id, |mid| !mids.contains(&mid), port);
        let publication = publication.map(|publication| {
            let records = publication.streams().iter().map(|stream| {
                let source = match stream.disabled {
                    true => None,
                    false => state.offered(id, stream.mid),
                };
                let offer = self.offer(id, stream.mid, source, port);
                StreamRecord::new(stream, offer)
            });
            PublicationRecord {
                e2ee: publication.e2ee,
                streams: records.collect(),
            }
        });
        PersonRecord {
            display: person.profile.display.clone(),
            metadata: person.profile.metadata.clone(),
            note: person.note().map(|note| note.as_ref().to_owned()),
            session: Some(person.session()),
            connecting: publication.is_none() && state.publication(id).is_some(),
            publication,
        }
    }

    /// Offers a stream, unless it is offered as it is.
    fn offer(
        &mut self,
        id: &PersonId,
        mid: Mid,
        source: Option<(SourceRef, SourceDescription)>,
        port: &Port,
    ) -> Option<Offer> {
        let Some((source, description)) = source else {
            self.withdraw(id, |of| of == mid, port);
            return None;
        };
        let known = self.people.get(id).and_then(|it| it.streams.get(&mid));
        let known = known.filter(|it| it.source == source && it.description == description);
        if let Some(known) = known {
            return Some(known.offer.clone());
        }
        self.withdraw(id, |of| of == mid, port);
        let offer = port.offer(source, description.clone());
        let offered = Offered {
            source,
            description,
            offer: offer.clone(),
        };
        let known = self.people.entry(id.clone()).or_default();
        known.streams.insert(mid, offered);
        self.by_offer.insert(offer.id, (id.clone(), mid));
        Some(offer)
    }

    fn withdraw(&mut self, id: &PersonId, ends: impl Fn(Mid) -> bool, port: &Port) {
        let Some(known) = self.people.get_mut(id) else {
            return;
        };
        for (_, ended) in known.streams.extract_if(|mid, _| ends(*mid)) {
            self.by_offer.remove(&ended.offer.id);
            port.withdraw(ended.offer.id);
        }
    }
}
