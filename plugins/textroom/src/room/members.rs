//! The members of a room.

use std::collections::{BTreeMap, HashMap};

use portunus_core::Object;
use serde_json::Value;

use crate::contact::{Contact, ContactId, Name, News, NodeName, send};

/// A member.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) contact: Contact,
    pub(super) name: Name,
}

impl Member {
    /// Returns the member as others see it.
    pub(super) fn to_object(&self) -> Object {
        Object::new()
            .with("username", self.name.username.as_str())
            .with_some("display", self.name.display.as_deref())
    }
}

/// The members, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Members {
    by_order: BTreeMap<u64, Member>,
    by_name: HashMap<String, u64>,
    by_contact: HashMap<ContactId, u64>,
    /// The numbers of members at other nodes, each with one of them.
    by_node: BTreeMap<NodeName, (usize, Contact)>,
    next: u64,
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.by_order.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_order.is_empty()
    }

    /// Adds a member whose name is free. Returns whether it is the first one of another node.
    pub(super) fn add(&mut self, member: Member) -> bool {
        let order = self.next;
        self.next += 1;
        let mut is_first = false;
        if let Some(node) = member.contact.node() {
            let of_node = self.by_node.entry(node.clone());
            let (count, _) = of_node.or_insert_with(|| (0, member.contact.clone()));
            *count += 1;
            is_first = *count == 1;
        }
        self.by_name.insert(member.name.username.clone(), order);
        self.by_contact.insert(member.contact.id(), order);
        self.by_order.insert(order, member);
        is_first
    }

    pub(super) fn remove(&mut self, contact: &ContactId) -> Option<Member> {
        let order = self.by_contact.remove(contact)?;
        let member = self.by_order.remove(&order)?;
        self.by_name.remove(&member.name.username);
        if let Some(node) = member.contact.node()
            && let Some((count, _)) = self.by_node.get_mut(node)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_node.remove(node);
            }
        }
        Some(member)
    }

    pub(super) fn of_contact(&self, contact: &ContactId) -> Option<&Member> {
        self.by_order.get(self.by_contact.get(contact)?)
    }

    pub(super) fn named(&self, username: &str) -> Option<&Member> {
        self.by_order.get(self.by_name.get(username)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.by_order.values()
    }

    pub(super) fn into_members(self) -> impl Iterator<Item = Member> {
        self.by_order.into_values()
    }

    /// Returns all members as others see them.
    pub(super) fn listed(&self) -> Vec<Value> {
        self.iter()
            .map(|member| member.to_object().into())
            .collect()
    }

    /// Returns the names of all.
    pub(super) fn names(&self) -> Vec<Name> {
        self.iter().map(|member| member.name.clone()).collect()
    }

    /// Sends a message to all, but for those of the node `except`: once to each other node.
    pub(super) fn send(&self, room: &str, text: &str, news: &News, except: Option<&NodeName>) {
        for member in self.iter() {
            if let Contact::Here(handle) = &member.contact {
                send(handle, text);
            }
        }
        for (node, (_, contact)) in &self.by_node {
            if except != Some(node) {
                contact.publish(room, text, news);
            }
        }
    }
}
