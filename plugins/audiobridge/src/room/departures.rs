//! Leaving a room, and the end of a room.

use portunus_core::{Handle, HandleId, Notice};
use portunus_resources::{Id, RoomContent};
use serde_json::Value;

use super::{Audience, Link, Participant, RoomState};
use crate::cluster::send_to_all;
use crate::refusal::Refusal;

impl RoomState {
    /// Whether `handle` has joined as `id`.
    pub(crate) fn has(&self, id: &Id, handle: HandleId) -> bool {
        self.roster.joined(id, handle).is_some()
    }

    /// Removes a participant at its own request. Its PeerConnection stays.
    pub(crate) fn leave(&mut self, id: &Id, handle: HandleId) -> bool {
        self.remove_joined(id, handle, Audience::Listening)
    }

    /// Removes a participant whose PeerConnection or handle is gone. Participants with paused
    /// events are told, too.
    pub(crate) fn lost(&mut self, id: &Id, handle: HandleId) -> bool {
        self.remove_joined(id, handle, Audience::All)
    }

    fn remove_joined(&mut self, id: &Id, handle: HandleId, audience: Audience<'_>) -> bool {
        if !self.has(id, handle) {
            return false;
        }
        self.remove_and_notify(id, audience);
        true
    }

    /// Removes a participant, and tells others.
    pub(super) fn remove_and_notify(&mut self, id: &Id, audience: Audience<'_>) {
        if let Some(person) = self.remove(id) {
            tracing::info!(room = %self.id(), %id, "participant left");
            self.send(audience, self.event().with("leaving", id.to_json()));
            self.notify_left(&person);
        }
    }

    /// Kicks a participant. `client` is the client that asked for it, if any.
    pub(crate) fn kick(&mut self, id: &Id, client: Option<&Handle>) -> Result<(), Refusal> {
        self.named(id)?;
        self.send(Audience::All, self.event().with("kicked", id.to_json()));
        let Some(person) = self.remove(id) else {
            return Ok(());
        };
        self.notify_about(client, "kicked", id);
        person.who.close("thrown out of the room");
        self.send(Audience::All, self.event().with("leaving", id.to_json()));
        self.notify_left(&person);
        Ok(())
    }

    /// Kicks all participants and listeners.
    pub(crate) fn kick_all(&mut self, client: Option<&Handle>) {
        for person in self.remove_all() {
            person.push(self.event().with("kicked_all", person.id.to_json()));
            self.notify_about(client, "kicked_all", &person.id);
            person.who.close("thrown out of the room");
        }
        // Listeners have no id.
        for handle in self.listeners.take_all() {
            handle.push(None, self.event().with("kicked_all", true), None);
            handle.close_pc();
        }
        for client in self.far_listeners.take_all() {
            client.push(self.event().with("kicked_all", true).into());
            client.close();
        }
        self.changed();
    }

    /// Ends the room. Participants learn the reason, if no request ended the room, and lose their
    /// PeerConnections.
    pub(crate) fn destroy(&mut self, reason: Option<&str>) {
        self.profile.end();
        let event = Value::from(self.message("destroyed").with_some("reason", reason));
        let notice = Notice::new(event.clone());
        let people = self.remove_all();
        let far = people.iter().filter_map(|person| person.who.far());
        send_to_all(far, &event);
        for person in people {
            person.send(&notice);
            person.who.close("the room has ended");
        }
        let listeners = self.far_listeners.take_all();
        send_to_all(listeners.iter(), &event);
        for client in listeners {
            client.close();
        }
        for handle in self.listeners.take_all() {
            handle.send_notice(&notice);
            handle.close_pc();
        }
        self.phones.end_all();
        self.forwarders.end_all();
        self.announcements.stop_all(&self.mix);
        self.stop_recording_mix();
    }

    /// Removes a participant from the roster and the mix.
    pub(super) fn remove(&mut self, id: &Id) -> Option<Participant> {
        let mut person = self.roster.remove(id)?;
        self.part(&mut person);
        self.changed();
        Some(person)
    }

    fn remove_all(&mut self) -> Vec<Participant> {
        let mut people: Vec<_> = self.roster.remove_all().collect();
        for person in &mut people {
            self.part(person);
        }
        people
    }

    fn part(&self, person: &mut Participant) {
        self.mix.remove(person.number);
        person.recorded.running = None;
        if let Link::Rtp(_) | Link::Phone(_) | Link::Far(_) = person.link {
            person.link = Link::None;
        }
    }

    /// Returns the participant that a request names.
    pub(super) fn named(&self, id: &Id) -> Result<&Participant, Refusal> {
        self.roster.get(id).ok_or_else(|| Refusal::NoSuchUser {
            id: id.clone(),
            room: self.id().clone(),
        })
    }
}
