//! A handle of the plugin.

use std::sync::Arc;

use portunus_core::{Handle, HandleEvent, Message, PluginHandle, Reply};
use serde_json::Value;

use crate::shared::Shared;
use crate::status::PageId;

/// A page, as the core sees it.
pub(crate) struct Attached {
    id: PageId,
    handle: Handle,
    shared: Arc<Shared>,
}

impl Attached {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        let id = shared.phones().attach(handle.clone());
        Attached { id, handle, shared }
    }
}

impl PluginHandle for Attached {
    fn message(&mut self, message: Message) -> Reply {
        let phones = self.shared.phones();
        if let Err(refusal) = phones.request(self.id, &message) {
            let call_id = phones.call_id_of(self.id);
            let data = refusal.to_json(call_id.as_deref());
            self.handle.push(Some(&message.transaction), data, None);
        }
        Reply::Ack(None)
    }

    fn event(&mut self, event: HandleEvent) {
        match event {
            HandleEvent::Hangup(_) => self.shared.phones().connection_lost(self.id),
            HandleEvent::Up
            | HandleEvent::Media { .. }
            | HandleEvent::SlowLink { .. }
            | HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::Layer { .. }
            | HandleEvent::Paused { .. }
            | HandleEvent::Remb(_)
            | HandleEvent::DataChannel { .. }
            | HandleEvent::Data(_) => {}
        }
    }

    fn query(&self) -> Value {
        self.shared.phones().state_of(self.id)
    }

    fn detach(&mut self) {
        self.shared.phones().detached(self.id);
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.shared.phones().detached(self.id);
    }
}
