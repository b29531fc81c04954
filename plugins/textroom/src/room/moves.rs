//! Members that come from, and go to, the same room at another node.

use std::collections::HashSet;

use portunus_core::Handle;
use portunus_resources::RoomContent;

use super::members::Member;
use super::{History, RoomState};
use crate::contact::{Contact, ContactId, Name, News, NodeName};

impl RoomState {
    /// Takes a member of this node back, which was one at another node. Nobody is told, since the
    /// others have gone.
    pub(crate) fn restore(&mut self, contact: Contact, name: &Name) {
        let is_known = self.members.of_contact(&contact.id()).is_some();
        if !is_known && self.members.named(&name.username).is_none() {
            let name = name.clone();
            self.members.add(Member { contact, name });
        }
    }

    /// Tells all that these are gone, but for members.
    pub(crate) fn tell_gone(&self, names: impl Iterator<Item = String>) {
        for name in names.filter(|name| self.members.named(name).is_none()) {
            self.send_leave(&name);
        }
    }

    /// Returns the names of all members.
    pub(crate) fn names(&self) -> Vec<Name> {
        self.members.names()
    }

    /// Removes all members, which are no longer here. Returns those of this node.
    pub(crate) fn take_members(&mut self) -> Vec<(Handle, Name)> {
        let members = std::mem::take(&mut self.members).into_members();
        let own = members.filter_map(|Member { contact, name }| match contact {
            Contact::Here(handle) => Some((handle, name)),
            // Their node moves them.
            Contact::There(_) => None,
        });
        own.collect()
    }

    /// Removes those members of another node that are not among `members`.
    pub(crate) fn keep_of_node(&mut self, node: &NodeName, members: &[(u64, Name)]) {
        let present: HashSet<u64> = members.iter().map(|(member, _)| *member).collect();
        let all = self.members.iter().map(|member| member.contact.id());
        let gone = all.filter(|id| match id {
            ContactId::There(of, guest) => of == node && !present.contains(guest),
            ContactId::Here(_) => false,
        });
        for contact in gone.collect::<Vec<_>>() {
            self.gone(&contact);
        }
    }

    /// Takes a member of another node that comes from the same room elsewhere, or is one already.
    /// Returns whether it is one now: its name may be taken.
    pub(crate) fn come_back(&mut self, contact: &Contact, name: &Name) -> bool {
        if self.members.of_contact(&contact.id()).is_some() {
            return true;
        }
        let room = self.id.to_string();
        if self.destroyed || self.members.named(&name.username).is_some() {
            let event = self.message("kicked");
            contact.send(&self.text(event.with("username", name.username.as_str())));
            contact.left(&room);
            return false;
        }
        let member = Member {
            contact: contact.clone(),
            name: name.clone(),
        };
        let event = self.message("join").with_all(member.to_object());
        self.members.add(member);
        contact.entered(&room, name);
        let news = News {
            joined: Some(name.clone()),
            ..News::default()
        };
        // Its node tells its own members, by all names.
        let text = self.text(event);
        self.members.send(&room, &text, &news, contact.node());
        true
    }

    /// Takes the history that it had at another node.
    pub(crate) fn restore_history(&mut self, history: &History) {
        for message in history.iter() {
            self.history.push(message.to_owned());
        }
    }

    /// Tells a node with members all names, and the history.
    pub(crate) fn tell_all(&self, node: &NodeName) {
        let mut members = self.members.iter();
        let of_node = members.find(|member| member.contact.node() == Some(node));
        if let Some(member) = of_node {
            let room = self.id.to_string();
            member.contact.tell_names(&room, self.members.names());
            self.tell_history(&member.contact);
        }
    }

    /// Counts the calls in a row without members. Returns their number.
    pub(crate) fn idle(&mut self) -> u32 {
        self.idle = match self.is_used() {
            true => 0,
            false => self.idle.saturating_add(1),
        };
        self.idle
    }
}
