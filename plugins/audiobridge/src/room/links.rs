//! The links of participants to the mix.

use std::net::SocketAddr;

use portunus_core::HandleId;
use portunus_resources::Id;

use super::{Link, RoomState};

impl RoomState {
    /// Sets the link of a participant. Media flows over it if it is `up`, and others are told then.
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

    /// Takes the link of a participant that moves to another room. Returns whether media flows
    /// over it, too.
    pub(crate) fn take_link(&mut self, id: &Id, handle: HandleId) -> (Link, bool) {
        let person = self.roster.get_mut(id);
        let Some(person) = person.filter(|person| person.is(handle)) else {
            return (Link::None, false);
        };
        self.mix.remove(person.number);
        let setup = std::mem::replace(&mut person.setup, false);
        (std::mem::replace(&mut person.link, Link::None), setup)
    }

    /// Whether a participant uses plain RTP.
    pub(crate) fn is_by_rtp(&self, id: &Id) -> bool {
        let person = self.roster.get(id);
        person.is_some_and(|person| matches!(person.link, Link::Rtp(_)))
    }

    /// The number of participants without a PeerConnection: by plain RTP, or by telephone.
    pub(crate) fn without_peer(&self) -> usize {
        let links = self.roster.iter().map(|person| &person.link);
        links
            .filter(|link| matches!(link, Link::Rtp(_) | Link::Phone(_)))
            .count()
    }

    /// Whether the address of a participant by plain RTP is unknown yet.
    pub(crate) fn awaits_remote(&self, id: &Id) -> bool {
        let person = self.roster.get(id);
        person.is_some_and(|person| matches!(&person.link, Link::Rtp(rtp) if rtp.awaits_remote))
    }

    /// Sends to a participant by plain RTP at this address from now on, and tells others.
    pub(crate) fn rtp_came_up(&mut self, id: &Id, remote: SocketAddr) {
        let Some(person) = self.roster.get_mut(id) else {
            return;
        };
        let Link::Rtp(rtp) = &mut person.link else {
            return;
        };
        rtp.awaits_remote = false;
        rtp.options.remote = Some(remote);
        rtp.leg.connect(&rtp.options);
        if !person.setup {
            self.up(id);
        }
    }

    /// Handles that a participant's PeerConnection is up. Others are told if that is news.
    pub(crate) fn came_up(&mut self, id: &Id, handle: HandleId) {
        let person = self.roster.get_mut(id);
        let Some(person) = person.filter(|person| person.is(handle) && !person.setup) else {
            return;
        };
        if !matches!(person.link, Link::None) {
            self.up(id);
        }
    }

    /// Connects a participant, and tells others.
    pub(super) fn up(&mut self, id: &Id) {
        if let Some(person) = self.roster.get_mut(id) {
            person.setup = true;
            self.connect(id);
            self.send_state(id);
        }
    }

    /// Connects a participant whose media is up to the mix, and starts its recording.
    pub(super) fn connect(&mut self, id: &Id) {
        if let Some(person) = self.roster.get_mut(id) {
            self.mix.connect(person, self.profile.options());
            let muted = self.mix.is_muted();
            self.people_recorder.start(person, &self.profile, muted);
        }
    }

    /// Applies the settings of a participant to the mix and to its recording.
    pub(super) fn update(&mut self, id: &Id) {
        if let Some(person) = self.roster.get_mut(id) {
            self.mix.update(person, self.profile.options());
            person.gate_recording(self.mix.is_muted());
        }
    }

    /// Resets the decoder of a participant: earlier packets are not used any more.
    pub(crate) fn reset_decoder(&mut self, id: &Id) {
        if self.roster.get(id).is_some_and(|person| person.setup) {
            self.connect(id);
        }
    }
}
