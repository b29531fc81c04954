//! `switch`: another mountpoint on the same m-lines.

use std::sync::Arc;

use portunus_core::{Fields, Message};
use serde_json::json;

use super::subscription::Subscription;
use super::{Answer, Session, Viewer, Watching};
use crate::mountpoint::{Mountpoint, Stream};
use crate::refusal::Refusal;

impl Viewer {
    pub(super) fn switch(self: &Arc<Self>, message: &Message) -> Result<Answer, Refusal> {
        let mut session = self.session();
        let Session::Watching(watching) = &mut *session else {
            return Err(Refusal::NotWatching);
        };
        let fields = Fields(&message.body);
        let target = self.shared.mountpoints.named(fields)?;
        target.details().access.check_pin(fields)?;
        let result = json!({ "switched": "ok", "id": target.id.to_json() });
        if Arc::ptr_eq(&watching.mountpoint, &target) {
            return Ok((result, None));
        }
        watching.fits(&target)?;
        if !target.add_viewer(self.clone()) {
            return Err(Refusal::NoSuchMountpoint(target.id.clone()));
        }
        watching.mountpoint.remove_viewer(self.id);
        for subscription in &mut watching.subscriptions {
            subscription.disconnect(&self.handle);
        }
        watching.move_to(target);
        watching.connect(&self.handle);
        self.tell_other_node(&watching.mountpoint);
        self.notify("switching", &watching.mountpoint);
        Ok((result, None))
    }
}

impl Watching {
    /// Checks that `target` has a matching stream at the index of each wanted stream.
    fn fits(&self, target: &Mountpoint) -> Result<(), Refusal> {
        if !self.mountpoint.is_live() || !target.is_live() {
            let reason = "both mountpoints have to be live RTP".to_owned();
            return Err(Refusal::CannotSwitch(reason));
        }
        let wanted = self.subscriptions.iter().filter(|s| s.wanted);
        for subscription in wanted {
            if !subscription.has_counterpart(target) {
                let mid = subscription.line.as_str();
                let reason = format!("the other mountpoint has nothing like the stream {mid}");
                return Err(Refusal::CannotSwitch(reason));
            }
        }
        Ok(())
    }

    /// Takes the streams of `target`, which [`Watching::fits`], by their indices. Nothing is
    /// negotiated: other parameters count as negotiated, and further streams as unwanted.
    fn move_to(&mut self, target: Arc<Mountpoint>) {
        self.requested = self.requested.by_place(&self.mountpoint, &target);
        for subscription in &mut self.subscriptions {
            if subscription.wanted {
                let stream = subscription.stream_of(&target);
                subscription.format = stream.and_then(Stream::format);
            } else if !subscription.has_counterpart(&target) {
                subscription.stream = None;
            }
        }
        self.mountpoint = target;
    }
}

impl Subscription {
    /// Returns whether `target` has such a stream at the same index.
    fn has_counterpart(&self, target: &Mountpoint) -> bool {
        let stream = self.stream_of(target);
        stream.is_some_and(|stream| stream.kind() == self.kind && self.carries(stream))
    }
}
