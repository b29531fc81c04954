//! The members of a room.

use std::collections::{BTreeMap, HashMap};

use portunus_core::media::{DataMessage, DataPayload};
use portunus_core::{Handle, HandleId, Object};
use serde_json::Value;

/// The label of the data channel for all messages. The server opens it if the client has not.
const LABEL: &str = "JanusDataChannel";

/// Sends a message to a client. It is lost without a PeerConnection.
pub(crate) fn send(handle: &Handle, text: &str) {
    handle.send_data(DataMessage {
        label: LABEL.to_owned(),
        protocol: String::new(),
        payload: DataPayload::Text(text.to_owned()),
    });
}

/// A member.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) handle: Handle,
    pub(super) username: String,
    pub(super) display: Option<String>,
}

impl Member {
    /// Returns the member as others see it.
    pub(super) fn to_object(&self) -> Object {
        Object::new()
            .with("username", self.username.as_str())
            .with_some("display", self.display.as_deref())
    }
}

/// The members, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Members {
    by_order: BTreeMap<u64, Member>,
    by_name: HashMap<String, u64>,
    by_handle: HashMap<HandleId, u64>,
    next: u64,
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.by_order.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_order.is_empty()
    }

    /// Adds a member whose name is free.
    pub(super) fn add(&mut self, member: Member) {
        let order = self.next;
        self.next += 1;
        self.by_name.insert(member.username.clone(), order);
        self.by_handle.insert(member.handle.id(), order);
        self.by_order.insert(order, member);
    }

    pub(super) fn remove(&mut self, handle: HandleId) -> Option<Member> {
        let order = self.by_handle.remove(&handle)?;
        let member = self.by_order.remove(&order)?;
        self.by_name.remove(&member.username);
        Some(member)
    }

    pub(super) fn of_handle(&self, handle: HandleId) -> Option<&Member> {
        self.by_order.get(self.by_handle.get(&handle)?)
    }

    pub(super) fn named(&self, username: &str) -> Option<&Member> {
        self.by_order.get(self.by_name.get(username)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.by_order.values()
    }

    /// Returns all members as others see them.
    pub(super) fn listed(&self) -> Vec<Value> {
        self.iter()
            .map(|member| member.to_object().into())
            .collect()
    }

    /// Sends a message to all.
    pub(super) fn send(&self, text: &str) {
        for member in self.iter() {
            send(&member.handle, text);
        }
    }
}
