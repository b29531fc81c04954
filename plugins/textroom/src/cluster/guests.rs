//! Guests of other nodes in the rooms of this one.

use std::collections::{BTreeMap, HashSet};

use portunus_core::{Asked, Fields};
use portunus_resources::{Answer, Asker};
use serde_json::{Map, Value};

use super::{TextRooms, lock};
use crate::contact::{Contact, FarGuest, NodeName, Presence, RoomMessage};
use crate::guest::Guest;
use crate::management::requested_name;
use crate::refusal::Refusal;
use crate::requests::Membership;

/// The most guests of one node, whose own limits are lower.
const MOST: usize = 100_000;

/// The guests of all other nodes.
#[derive(Debug, Default)]
pub(super) struct FarGuests(BTreeMap<NodeName, BTreeMap<u64, Guest>>);

impl FarGuests {
    pub(super) fn take(&mut self, node: &NodeName, guest: u64) -> Option<Guest> {
        self.0.get_mut(node)?.remove(&guest)
    }

    pub(super) fn take_node(&mut self, node: &str) -> Vec<Guest> {
        let of_node = self.0.remove(node).unwrap_or_default();
        of_node.into_values().collect()
    }

    fn put(&mut self, node: &NodeName, number: u64, guest: Guest) {
        let of_node = self.0.entry(node.clone()).or_default();
        of_node.insert(number, guest);
    }

    fn has_place(&self, node: &NodeName) -> bool {
        self.0.get(node).is_none_or(|of_node| of_node.len() < MOST)
    }

    /// Takes those of a node of whom `is_kept` is false.
    fn take_others(&mut self, node: &NodeName, is_kept: impl Fn(u64) -> bool) -> Vec<Guest> {
        let Some(of_node) = self.0.get_mut(node) else {
            return Vec::new();
        };
        let others: Vec<u64> = of_node.keys().copied().filter(|it| !is_kept(*it)).collect();
        let others = others.iter().filter_map(|guest| of_node.remove(guest));
        others.collect()
    }
}

impl TextRooms {
    /// Calls `act` with a guest of another node. The guest is no longer in the map meanwhile, so
    /// that a room can be locked. All messages of nodes come one after the other.
    fn with_guest<T>(
        &self,
        node: &NodeName,
        number: u64,
        act: impl FnOnce(&mut Guest) -> T,
    ) -> Option<T> {
        let shared = self.shared()?;
        let known = {
            let mut guests = lock(&self.0.guests);
            let known = guests.take(node, number);
            if known.is_none() && !guests.has_place(node) {
                return None;
            }
            known
        };
        let mut guest = known.unwrap_or_else(|| {
            let contact = Contact::There(FarGuest {
                node: node.clone(),
                guest: number,
                outbox: self.0.outbox.clone(),
            });
            Guest::far(contact, shared)
        });
        let done = act(&mut guest);
        lock(&self.0.guests).put(node, number, guest);
        Some(done)
    }

    /// Answers a request of a data channel at another node.
    pub(super) fn said(&self, node: &NodeName, guest: u64, request: &str, asker: &Asker) {
        self.with_guest(node, guest, |guest| guest.answer_text(request, asker));
    }

    /// Answers a request by the API of another node.
    pub(super) fn asked(
        &self,
        node: &NodeName,
        guest: u64,
        ask: u64,
        request: &Map<String, Value>,
        asker: &Asker,
    ) {
        let answer = self.answer_to(node, guest, request, asker);
        let answer = answer.unwrap_or_else(|refusal| Answer::from(refusal.to_object()));
        let answered = move |answer: Value| RoomMessage::Answered { ask, answer };
        match answer.now() {
            Ok(answer) => self.send(node, &answered(answer.into())),
            Err(later) => {
                let (rooms, node) = (self.clone(), node.clone());
                tokio::spawn(async move {
                    let answer = later.complete().await;
                    rooms.send(&node, &answered(answer.into()));
                });
            }
        }
    }

    fn answer_to(
        &self,
        node: &NodeName,
        guest: u64,
        request: &Map<String, Value>,
        asker: &Asker,
    ) -> Result<Answer, Refusal> {
        let fields = Fields(request);
        let name = fields.member::<&str>("request")?.unwrap_or_default();
        let wanted = requested_name(fields, name)?;
        let Some(asked) = Asked::<Membership>::named(wanted) else {
            let shared = self.shared().ok_or(Refusal::Unreachable)?;
            return shared.manage(wanted, fields, asker);
        };
        let answer = self.with_guest(node, guest, |guest| guest.by_api(asked, fields, asker));
        answer
            .unwrap_or(Err(Refusal::Unreachable))
            .map(Answer::from)
    }

    /// Takes which members another node has in rooms of this one.
    pub(super) fn present(&self, node: &NodeName, rooms: Vec<Presence>, all: bool) {
        let Some(shared) = self.shared() else { return };
        if all {
            let members = rooms.iter().flat_map(|room| &room.members);
            let members: HashSet<u64> = members.map(|(member, _)| *member).collect();
            let others = lock(&self.0.guests).take_others(node, |guest| members.contains(&guest));
            for mut guest in others {
                guest.go();
            }
        }
        for Presence { room, members } in rooms {
            let Some(id) = shared.rooms.ids().parse(&room) else {
                continue;
            };
            let found = match shared.rooms.exists(&id) {
                true => shared.rooms.get(&id).ok(),
                false => None,
            };
            let Some(found) = found else {
                let texts = vec![shared.destroyed(&id)];
                for (guest, _) in members {
                    let (room, texts) = (room.clone(), texts.clone());
                    self.send(node, &RoomMessage::Whispered { guest, texts });
                    self.send(node, &RoomMessage::Left { room, guest });
                }
                continue;
            };
            found.lock().keep_of_node(node, &members);
            for (number, name) in members {
                self.with_guest(node, number, |guest| guest.come_back(&found, &name));
            }
            found.lock().tell_all(node);
        }
    }
}
