//! A participant in the mix: what it sends and hears, and what the mixer tells of it and of announcements.

use std::net::SocketAddr;
use std::sync::Weak;

use portunus_audio::AudioEvent;
use portunus_core::HandleId;
use portunus_dsp::ParticipantId;
use portunus_resources::Id;
use tokio::sync::mpsc;

use super::{Audience, Link, Room, RoomState};
use crate::refusal::Refusal;

impl RoomState {
    /// What somebody's link is from now on; media flows over it if it is `up`. Others are told once it does.
    pub(crate) fn link(&mut self, id: &Id, link: Link, up: bool) {
        let Some(person) = self.roster.get_mut(id) else {
            return;
        };
        let changed = match (&person.link, &link) {
            (Link::Peer(before), Link::Peer(after)) => before != after,
            _ => true,
        };
        person.link = link;
        if up && (changed || !person.setup) {
            person.setup = true;
            self.connect(id);
        }
    }

    /// Takes the link of somebody who goes on to another room; says whether media flows over it.
    pub(crate) fn take_link(&mut self, id: &Id, handle: HandleId) -> (Link, bool) {
        let person = self.roster.get_mut(id);
        let Some(person) = person.filter(|person| person.is(handle)) else {
            return (Link::None, false);
        };
        self.sound.leave(person.number);
        let setup = std::mem::replace(&mut person.setup, false);
        (std::mem::replace(&mut person.link, Link::None), setup)
    }

    /// Whether somebody is there by plain RTP.
    pub(crate) fn is_by_rtp(&self, id: &Id) -> bool {
        let person = self.roster.get(id);
        person.is_some_and(|person| matches!(person.link, Link::Rtp(_)))
    }

    /// Somebody by plain RTP says where to send to, as it was asked to; nothing if it was not.
    pub(crate) fn connect_rtp(&mut self, id: &Id, remote: SocketAddr) -> Result<(), Refusal> {
        let Some(person) = self.roster.get_mut(id) else {
            return Ok(());
        };
        let Link::Rtp(rtp) = &mut person.link else {
            return Ok(());
        };
        if !std::mem::replace(&mut rtp.offered, false) {
            return Ok(());
        }
        let connected = rtp.leg.connect(remote);
        connected.map_err(|error| Refusal::Unknown(error.to_string()))?;
        rtp.remote = Some(remote);
        let handle = person.handle.id();
        self.came_up(id, handle);
        Ok(())
    }

    /// Media flows to and from somebody: others are told, if that is news.
    pub(crate) fn came_up(&mut self, id: &Id, handle: HandleId) {
        let person = self.roster.get_mut(id);
        let Some(person) = person.filter(|person| person.is(handle) && !person.setup) else {
            return;
        };
        if matches!(person.link, Link::None) {
            return;
        }
        person.setup = true;
        self.connect(id);
        self.tell_shown(id);
    }

    /// Puts somebody whose media is up into the mix, in the place of what it was there before.
    pub(super) fn connect(&mut self, id: &Id) {
        let Some(person) = self.roster.get(id) else {
            return;
        };
        let (source, out) = person.ends();
        let options = person.mixed(&self.options);
        self.sound.join(person.number, options, source, out);
        self.sound.connect(person.number, true);
        self.record_person(id);
    }

    /// Makes the mix, and the recording, of somebody what its settings say.
    pub(super) fn remix(&mut self, id: &Id) {
        if let Some(person) = self.roster.get(id).filter(|person| person.setup) {
            self.sound.set(person.number, person.mixed(&self.options));
        }
        self.gate_recording(id);
    }

    /// Begins anew what somebody sends: nothing of what came before is used any more.
    pub(crate) fn reset_decoder(&mut self, id: &Id) {
        if self.roster.get(id).is_some_and(|person| person.setup) {
            self.connect(id);
        }
    }

    fn talks(&mut self, number: ParticipantId, talking: bool) {
        let Some(person) = self.roster.numbered(number) else {
            return;
        };
        if std::mem::replace(&mut person.talking, talking) == talking {
            return;
        }
        let what = match talking {
            true => "talking",
            false => "stopped-talking",
        };
        let (id, handle) = (person.id.clone(), person.handle.clone());
        let event = self.told(what).with("id", id.to_json());
        self.notify(Some(&handle), || event.clone().into());
        self.tell(Audience::Listening, event);
    }

    fn heard(&mut self, event: AudioEvent) {
        match event {
            AudioEvent::Talking {
                participant,
                talking,
            } => self.talks(participant, talking),
            AudioEvent::AnnouncementStarted(number) => self.announcement_started(number),
            AudioEvent::AnnouncementEnded { announcement, why } => {
                self.announcement_ended(announcement, &why);
            }
            AudioEvent::RecordingEnded { file, error } => self.mix_recorded(&file, error),
        }
    }
}

/// Takes what the mixer tells of a room, until one of the two ends.
pub(crate) async fn hear(room: Weak<Room>, mut events: mpsc::Receiver<AudioEvent>) {
    while let Some(event) = events.recv().await {
        let Some(room) = room.upgrade() else { return };
        room.lock().heard(event);
    }
}
