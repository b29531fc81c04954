//! The plugin's requests, and what each reaches beyond the call.

use portunus_core::{Fields, Reach, Requests, Right, Rights, recording};

use crate::plugin::Shared;
use crate::refusal::Refusal;

/// All of them.
pub const REQUESTS: Requests = Requests(&[
    ("create", Reach::Said(room)),
    ("edit", Reach::Said(room)),
    ("destroy", Reach::Said(room)),
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

/// What a room that is made, changed or ended outlives, and where it is recorded.
fn room(fields: Fields<'_>) -> Rights {
    let says = |name| fields.boolean(name) == Ok(Some(true));
    let names = |names: &[&str]| names.iter().any(|name| fields.has(name));
    let recorded = says("record")
        || says("mjrs")
        || names(&[
            "record_file",
            "record_dir",
            "mjrs_dir",
            "new_record_dir",
            "new_mjrs_dir",
        ]);
    let permanent = Rights::if_so(says("permanent"), Right::Create);
    permanent.and(Rights::if_so(recorded, Right::Record))
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
