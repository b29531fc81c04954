//! The internal plugin whose handles are the PeerConnections of participants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::{Handle, HandleEvent, Message, Plugin, PluginHandle, PluginInfo, Reply};
use serde_json::{Value, json};

use crate::hall::{Described, Event, Member, Role};

/// The plugin's package.
pub(crate) const PACKAGE: &str = "portunus.plugin.livekit";

/// The plugin, with the participants whose handles are being attached.
#[derive(Debug, Default)]
pub(crate) struct LiveKitPlugin {
    expected: Mutex<HashMap<String, Attached>>,
}

/// The owner of a handle.
#[derive(Debug, Clone)]
pub(crate) struct Attached {
    pub(crate) member: Arc<Member>,
    pub(crate) role: Role,
}

impl LiveKitPlugin {
    /// Expects a handle with this secret name.
    pub(crate) fn expect(&self, name: &str, owner: Attached) {
        self.expected().insert(name.to_owned(), owner);
    }

    /// Expects the handle no longer.
    pub(crate) fn forget(&self, name: &str) {
        self.expected().remove(name);
    }

    fn expected(&self) -> MutexGuard<'_, HashMap<String, Attached>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The plugin in the form that the core knows.
#[derive(Debug, Clone)]
pub(crate) struct SharedPlugin(pub(crate) Arc<LiveKitPlugin>);

impl Plugin for SharedPlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: PACKAGE,
            name: "LiveKit",
            description: "The PeerConnections of LiveKit's participants.",
            version: 1,
            version_string: "0.0.1",
        }
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        let name = handle.opaque_id().unwrap_or_default();
        let owner = self.0.expected().remove(name);
        if let Some(Attached { member, role }) = &owner {
            member.attached(*role, handle);
        }
        Box::new(PeerHandle(owner))
    }
}

/// A handle. Clients of the Janus API may attach to the plugin, too, which serves them nothing.
struct PeerHandle(Option<Attached>);

impl PluginHandle for PeerHandle {
    fn message(&mut self, message: Message) -> Reply {
        let Some(Attached { member, role }) = &self.0 else {
            return Reply::Error("Only participants of LiveKit can use this".to_owned());
        };
        if let Some(jsep) = message.jsep {
            let described = Described {
                jsep,
                _offer: message.offer,
            };
            member.describe(*role, described);
        }
        Reply::Success(json!({}))
    }

    fn event(&mut self, event: HandleEvent) {
        if let Some(Attached { member, role }) = &self.0 {
            member.media_event(*role, event);
        }
    }

    fn query(&self) -> Value {
        match &self.0 {
            Some(Attached { member, role }) => json!({
                "room": member.hall.name,
                "identity": member.identity,
                "sid": member.sid,
                "role": role.name(),
            }),
            None => json!({}),
        }
    }

    fn detach(&mut self) {
        // An operator can end a handle. The participant cannot do without it.
        if let Some(Attached { member, role }) = self.0.take() {
            member.happens(Event::HungUp(role, "detached".to_owned()));
        }
    }
}
