//! `switch`: another mountpoint on the same m-lines.

use std::sync::Arc;

use portunus_core::{FieldError, Fields, Message};
use serde_json::json;

use super::{Answered, Session, Viewer, Watching};
use crate::id::MountpointId;
use crate::mountpoint::Mountpoint;
use crate::refusal::Refusal;
use crate::secret;

impl Viewer {
    pub(super) fn switch(self: &Arc<Self>, message: &Message) -> Answered {
        let mut session = self.session();
        let Session::Watching(watching) = &mut *session else {
            return Err(Refusal::NotWatching);
        };
        let fields = Fields(&message.body);
        let id = MountpointId::read(fields, "id", self.shared.string_ids())?
            .ok_or_else(|| Refusal::from(FieldError::Missing("id".to_owned())))?;
        let target = self.shared.mountpoints.get(&id)?;
        let pin = target.details().pin.clone();
        secret::check(fields, "pin", pin.as_deref())?;
        let result = json!({ "switched": "ok", "id": id.to_json() });
        if Arc::ptr_eq(&watching.mountpoint, &target) {
            return Ok((result, None));
        }
        watching.fits(&target)?;
        if !target.add_viewer(self) {
            return Err(Refusal::NoSuchMountpoint(id));
        }
        watching.mountpoint.remove_viewer(self.id);
        for subscription in &mut watching.subscriptions {
            subscription.disconnect(&self.handle);
        }
        watching.mountpoint = target;
        watching.connect(&self.handle);
        Ok((result, None))
    }
}

impl Watching {
    /// Whether each stream has its counterpart at the same place of `target`.
    fn fits(&self, target: &Mountpoint) -> Result<(), Refusal> {
        if !self.mountpoint.is_live() || !target.is_live() {
            let reason = "both mountpoints have to be live RTP".to_owned();
            return Err(Refusal::CannotSwitch(reason));
        }
        for subscription in &self.subscriptions {
            let old = subscription.stream_of(&self.mountpoint);
            let new = subscription.stream_of(target);
            let same = old.zip(new).is_some_and(|(old, new)| {
                let codec = old.live().codec;
                old.kind() == new.kind() && codec == new.live().codec
            });
            if !same {
                let mid = subscription.line.as_str();
                let reason = format!("the other mountpoint has nothing like the stream {mid}");
                return Err(Refusal::CannotSwitch(reason));
            }
        }
        Ok(())
    }
}
