//! The plugin's requests, and what each reaches beyond the call.

use portunus_core::{Fields, Reach, Requests, Right, Rights, recording};

use crate::Shared;
use crate::refusal::Refusal;

/// All of them.
pub const REQUESTS: Requests = Requests(&[
    ("create", Reach::Said(made)),
    ("edit", Reach::Said(changed)),
    ("destroy", Reach::Said(changed)),
    ("exists", Reach::Call),
    ("list", Reach::Call),
    ("allowed", Reach::Call),
    ("kick", Reach::Call),
    ("moderate", Reach::Call),
    ("enable_recording", Reach::Beyond(Right::Record)),
    ("listparticipants", Reach::Call),
    ("rtp_forward", Reach::Beyond(Right::Forward)),
    ("stop_rtp_forward", Reach::Beyond(Right::Forward)),
    ("listforwarders", Reach::Beyond(Right::Forward)),
    ("publish_remotely", Reach::Beyond(Right::Forward)),
    ("unpublish_remotely", Reach::Beyond(Right::Forward)),
    ("listremotes", Reach::Beyond(Right::Forward)),
    ("list_remotes", Reach::Beyond(Right::Forward)),
    ("add_remote_publisher", Reach::Beyond(Right::Forward)),
    ("update_remote_publisher", Reach::Beyond(Right::Forward)),
    ("remove_remote_publisher", Reach::Beyond(Right::Forward)),
    ("join", Reach::Call),
    ("watch", Reach::Call),
    ("joinandconfigure", Reach::Said(recording)),
    ("configure", Reach::Said(recording)),
    ("publish", Reach::Said(recording)),
    ("unpublish", Reach::Call),
    ("leave", Reach::Call),
    ("start", Reach::Call),
    ("pause", Reach::Call),
    ("subscribe", Reach::Call),
    ("unsubscribe", Reach::Call),
    ("update", Reach::Call),
    ("switch", Reach::Call),
]);

/// What a room that is made outlives, and whether it is recorded. Where to is ignored of those who may not record.
fn made(fields: Fields<'_>) -> Rights {
    let record = Rights::if_so(fields.boolean("record") == Ok(Some(true)), Right::Record);
    permanent(fields).and(record)
}

/// What a room that is changed or ended outlives, and where it is recorded, if somebody else has it recorded.
fn changed(fields: Fields<'_>) -> Rights {
    let moved = ["new_rec_dir", "record_format"]
        .iter()
        .any(|name| fields.has(name));
    permanent(fields).and(Rights::if_so(moved, Right::Record))
}

fn permanent(fields: Fields<'_>) -> Rights {
    let is_permanent = fields.boolean("permanent") == Ok(Some(true));
    Rights::if_so(is_permanent, Right::Create)
}

impl Shared {
    /// The rights of somebody who makes a request, with those that it shows the admin key for; an error if it needs others.
    pub(crate) fn check(
        &self,
        request: &str,
        fields: Fields<'_>,
        rights: Rights,
    ) -> Result<Rights, Refusal> {
        let rights = self.rooms.rights(fields, rights);
        REQUESTS.check(request, fields, rights)?;
        Ok(rights)
    }
}
