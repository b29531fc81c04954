//! The plugin's requests, and what each reaches beyond the call.

use portunus_core::{Fields, Reach, Requests, Right, Rights, recording};

use crate::plugin::Shared;
use crate::refusal::Refusal;

/// All of them.
pub const REQUESTS: Requests = Requests(&[
    ("create", Reach::Said(made)),
    ("edit", Reach::Said(changed)),
    ("destroy", Reach::Said(changed)),
    ("exists", Reach::Call),
    ("allowed", Reach::Call),
    ("list", Reach::Call),
    ("listparticipants", Reach::Call),
    ("listforwarders", Reach::Beyond(Right::Forward)),
    ("rtp_forward", Reach::Beyond(Right::Forward)),
    ("stop_rtp_forward", Reach::Beyond(Right::Forward)),
    ("kick", Reach::Call),
    ("kick_all", Reach::Call),
    ("mute", Reach::Call),
    ("unmute", Reach::Call),
    ("mute_room", Reach::Call),
    ("unmute_room", Reach::Call),
    ("suspend", Reach::Call),
    ("resume", Reach::Said(recording)),
    ("enable_recording", Reach::Beyond(Right::Record)),
    ("enable_mjrs", Reach::Beyond(Right::Record)),
    ("play_file", Reach::Beyond(Right::Create)),
    ("is_playing", Reach::Call),
    ("stop_file", Reach::Call),
    ("stop_all_files", Reach::Call),
    // Names of files are not for everybody.
    ("listannouncements", Reach::Beyond(Right::Create)),
    // Calls may cost money.
    ("dial_out", Reach::Beyond(Right::Forward)),
    ("stop_dial_out", Reach::Beyond(Right::Forward)),
    ("resetdecoder", Reach::Call),
    ("denoise_enable", Reach::Call),
    ("denoise_disable", Reach::Call),
    ("join", Reach::Said(participant)),
    ("configure", Reach::Said(participant)),
    ("changeroom", Reach::Call),
    ("leave", Reach::Call),
    ("hangup", Reach::Call),
    ("listen", Reach::Call),
]);

/// What a room that is made outlives, and whether it is recorded. Where to is ignored of those who may not record.
fn made(fields: Fields<'_>) -> Rights {
    let is_on = |name| fields.boolean(name) == Ok(Some(true));
    let record = Rights::if_so(is_on("record") || is_on("mjrs"), Right::Record);
    permanent(fields).and(record)
}

/// What a room that is changed or ended outlives, and where it is recorded, if somebody else has it recorded.
fn changed(fields: Fields<'_>) -> Rights {
    let moved = ["new_record_dir", "new_mjrs_dir"]
        .iter()
        .any(|name| fields.has(name));
    permanent(fields).and(Rights::if_so(moved, Right::Record))
}

fn permanent(fields: Fields<'_>) -> Rights {
    let is_permanent = fields.boolean("permanent") == Ok(Some(true));
    Rights::if_so(is_permanent, Right::Create)
}

/// What a participant has recorded, and where it has its media sent to and taken from without a PeerConnection.
fn participant(fields: Fields<'_>) -> Rights {
    let by_rtp = Rights::if_so(fields.has("rtp"), Right::Forward);
    recording(fields).and(by_rtp)
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
