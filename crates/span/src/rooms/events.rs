//! What the cluster and the other nodes say of rooms.

use bytes::Bytes;
use portunus_cluster::{HomeKey, NodeId, Place};
use portunus_room::{PersonId, State};

use super::Spanning;
use super::data::{payload, wanted_of};
use super::message::RoomMessage;
use super::ours::person_of;
use super::record::PersonRecord;
use super::sought::{DEFINITION, Item};
use crate::PortEvent;

impl Spanning {
    pub(super) async fn event(&mut self, event: PortEvent) {
        match event {
            PortEvent::Item {
                key,
                node,
                item,
                value,
            } => {
                if let Some(sought) = self.sought.get_mut(&key) {
                    let name = item;
                    sought.add(Item { node, name, value });
                } else {
                    self.item(&key, node, &item, value);
                    if wanted_of(&item).is_some() {
                        self.look(&key.name()).await;
                    }
                }
            }
            PortEvent::Home { key, place } => {
                let is_elsewhere = matches!(
                    place,
                    Place::There {
                        is_reachable: true,
                        ..
                    }
                );
                if let Some(sought) = self.sought.get_mut(&key) {
                    sought.home = Some(place.clone());
                }
                if !is_elsewhere {
                    self.found(&key).await;
                }
                self.names.placed(&key, &place, &self.port).await;
                if let Some(spanned) = self.open.get_mut(&key) {
                    spanned.at_home(place);
                    self.tell_openers(&key).await;
                }
                if self.adopted.contains(&key.name()) {
                    // The home tells of it, if the node that has made it is gone.
                    self.look(&key.name()).await;
                }
            }
            PortEvent::Complete { key } => {
                self.found(&key).await;
                if let Some(spanned) = self.open.get_mut(&key) {
                    spanned.complete();
                }
            }
            PortEvent::Ended { key } => {
                self.sought.remove(&key);
                if let Some(mut spanned) = self.open.remove(&key) {
                    spanned.end(&self.port);
                    self.directory.destroy(&key.name());
                }
            }
            PortEvent::Message { key, from, body } => self.message(&key, &from, &body).await,
            // Their items are told, and taken back, by themselves.
            PortEvent::Resumed { node } => {
                self.questions.lost(&node);
                self.tell_doors_again(&node).await;
            }
            PortEvent::Lost { node } => {
                self.questions.lost(&node);
                self.door_messages.lost(&node);
            }
            PortEvent::Linked { node } => {
                for spanned in self.open.values_mut() {
                    spanned.theirs.linked(&node);
                }
            }
            PortEvent::Wanted { source, demand } => {
                for spanned in self.open.values() {
                    if let Some((id, mid)) = spanned.ours.stream_of(source) {
                        let mut state = spanned.room.lock();
                        state.set_far_layer(id, *mid, demand.top());
                        return;
                    }
                }
            }
            PortEvent::SourceEnded {
                node,
                source,
                ingest,
            } => {
                for spanned in self.open.values() {
                    spanned.theirs.source_ended(&node, source, ingest);
                }
            }
        }
    }

    /// Takes an item of another node.
    pub(super) fn item(&mut self, key: &HomeKey, node: NodeId, item: &str, value: Option<Bytes>) {
        if item == DEFINITION {
            return self.redefine(&key.name(), value.as_deref());
        }
        let Some(spanned) = self.open.get_mut(key) else {
            return;
        };
        if let Some(id) = wanted_of(item) {
            return spanned.data.set(&id, node, value.is_some());
        }
        let Some(id) = person_of(item) else { return };
        match value.as_deref().map(PersonRecord::parse).transpose() {
            Ok(record) => spanned.theirs.set(&id, node, record),
            Err(error) => tracing::warn!(%key, %node, %error, "cluster: skipped"),
        }
    }

    /// Takes the definition of a room that this node has, too, if it is a later one.
    pub(super) fn redefine(&self, name: &str, definition: Option<&[u8]>) {
        let definition = definition.and_then(|it| std::str::from_utf8(it).ok());
        let Some(definition) = definition.filter(|_| self.rooms.contains_key(name)) else {
            return;
        };
        if let Err(error) = self.directory.adopt(name, definition) {
            tracing::warn!(name, %error, "cluster: a room is not changed as at another node");
        }
    }

    async fn message(&mut self, key: &HomeKey, from: &NodeId, body: &[u8]) {
        match RoomMessage::parse(body) {
            Some(RoomMessage::Ask { call, question }) => {
                self.answer(key, from, call, &question).await;
            }
            Some(RoomMessage::Answer { call, answer }) => {
                self.questions.answered(from, call, answer);
            }
            Some(RoomMessage::Door { bytes, numbered }) => {
                self.take_door(key, from, (&bytes, numbered)).await;
            }
            Some(RoomMessage::Confirmed { run, number }) => {
                self.door_messages.confirmed(from, run, number);
            }
            Some(RoomMessage::AskDoor { call, question }) => {
                self.answer_door(key, from, call, &question);
            }
            Some(RoomMessage::AnswerDoor { call, answer }) => {
                self.questions.answered(from, call, answer);
            }
            Some(RoomMessage::Open) => self.open_for(key, from).await,
            Some(RoomMessage::Opened) => self.opened(key).await,
            Some(RoomMessage::Destroy { permanently: None }) => self.destroy(key, from).await,
            Some(RoomMessage::Destroy {
                permanently: Some(ago),
            }) => self.destroy_permanently(key, from, ago).await,
            Some(RoomMessage::Keep { definition }) => self.keep(&key.name(), &definition),
            Some(message) => self.room_message(key, from, message),
            None => {}
        }
    }

    /// Does what a client of another node has asked for. The home has checked its rights.
    fn room_message(&self, key: &HomeKey, from: &NodeId, message: RoomMessage) {
        let Some(spanned) = self.open.get(key) else {
            return;
        };
        let is_ours = |state: &State, id: &PersonId| {
            state
                .person(id)
                .is_some_and(|person| !person.is_elsewhere())
        };
        match message {
            RoomMessage::Kick {
                id,
                session,
                replaced,
            } => {
                let id = PersonId::from(id);
                let is_meant = |state: &State| {
                    let person = state.person(&id).filter(|_| is_ours(state, &id));
                    person.is_some_and(|it| session.is_none_or(|named| it.session() == named))
                };
                let is_there = is_meant(&spanned.room.lock());
                if let Some(door) = self.doors.door().filter(|_| replaced && is_there) {
                    door.replaced(&key.name(), &id);
                }
                let mut state = spanned.room.lock();
                if is_meant(&state) {
                    tracing::info!(%key, %id, node = %from, "cluster: kicked by another node");
                    // It is there.
                    let _ = state.kick(&id, None);
                }
            }
            RoomMessage::Moderate { id, mid, mute } => {
                let id = PersonId::from(id);
                let mut state = spanned.room.lock();
                if is_ours(&state, &id) {
                    // The stream may be gone meanwhile.
                    let _ = state.moderate(&id, &mid, mute);
                }
            }
            RoomMessage::Data { id, text, bytes } => {
                if let Some(payload) = payload(text, bytes) {
                    let id = PersonId::from(id);
                    spanned.room.lock().send_far_data(&id, &payload);
                }
            }
            _ => {}
        }
    }
}
