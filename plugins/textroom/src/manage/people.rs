//! Members, as moderators see and treat them.

use portunus_core::{FieldError, Fields};
use serde_json::json;

use super::{Managed, check_types, success};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::requests::Asker;

impl Shared {
    pub(super) fn list_participants(
        &self,
        fields: Fields<'_>,
        _: &Asker,
    ) -> Result<Managed, Refusal> {
        let room = self.rooms.named(fields)?;
        let participants = room.lock().participants();
        let answer = success()
            .with("room", room.id.to_json())
            .with("participants", participants);
        Ok(answer.into())
    }

    pub(super) fn allowed(&self, fields: Fields<'_>, _: &Asker) -> Result<Managed, Refusal> {
        check_types(fields, &["secret"])?;
        fields.required_string("action")?;
        is_list(fields, "allowed")?;
        self.managed(fields, |room| {
            let known = room.allowed.change(fields)?.map(|known| json!(known));
            let answer = success().with("room", room.id.to_json());
            Ok(answer.with_some("allowed", known).into())
        })
    }

    pub(super) fn kick(&self, fields: Fields<'_>, asker: &Asker) -> Result<Managed, Refusal> {
        check_types(fields, &["secret"])?;
        let username = fields.required_string("username")?;
        self.managed(fields, |room| {
            room.kick(username, asker.handle.as_ref())?;
            tracing::info!(room = %room.id, username, "member kicked");
            Ok(success().into())
        })
    }

    pub(super) fn announcement(&self, fields: Fields<'_>, _: &Asker) -> Result<Managed, Refusal> {
        check_types(fields, &["secret"])?;
        let text = fields.required_string("text")?;
        self.managed(fields, |room| {
            room.announce(text)?;
            Ok(success().into())
        })
    }
}

fn is_list(fields: Fields<'_>, name: &str) -> Result<(), FieldError> {
    let is_list = fields.0.get(name).is_none_or(serde_json::Value::is_array);
    // It tells what is wrong in the same words.
    if is_list {
        Ok(())
    } else {
        fields.strings(name).map(drop)
    }
}
