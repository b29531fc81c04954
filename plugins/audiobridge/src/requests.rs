//! The plugin's requests, and the rights that they need.

use portunus_core::{Fields, Right, Rights, recording, requests};

requests! {
    /// The requests of clients and administrators that manage rooms.
    pub enum Management {
        Create = "create": Reply, Depends(creation);
        Edit = "edit": Reply, Depends(change);
        Destroy = "destroy": Reply, Depends(change);
        Exists = "exists": Reply, Nothing;
        Allowed = "allowed": Reply, Nothing;
        List = "list": Reply, Nothing;
        ListParticipants = "listparticipants": Reply, Nothing;
        ListForwarders = "listforwarders": Reply, Right(Right::Forward);
        RtpForward = "rtp_forward": Reply, Right(Right::Forward);
        StopRtpForward = "stop_rtp_forward": Reply, Right(Right::Forward);
        Kick = "kick": Reply, Nothing;
        KickAll = "kick_all": Reply, Nothing;
        Mute = "mute": Reply, Nothing;
        Unmute = "unmute": Reply, Nothing;
        MuteRoom = "mute_room": Reply, Nothing;
        UnmuteRoom = "unmute_room": Reply, Nothing;
        Suspend = "suspend": Reply, Nothing;
        Resume = "resume": Reply, Depends(recording);
        EnableRecording = "enable_recording": Reply, Right(Right::Record);
        EnableMjrs = "enable_mjrs": Reply, Right(Right::Record);
        PlayFile = "play_file": Reply, Right(Right::Create);
        IsPlaying = "is_playing": Reply, Nothing;
        StopFile = "stop_file": Reply, Nothing;
        StopAllFiles = "stop_all_files": Reply, Nothing;
        /// It shows names of files.
        ListAnnouncements = "listannouncements": Reply, Right(Right::Create);
        /// A call may cost money.
        DialOut = "dial_out": Reply, Right(Right::Forward);
        StopDialOut = "stop_dial_out": Reply, Right(Right::Forward);
        DenoiseEnable = "denoise_enable": Reply, Nothing;
        DenoiseDisable = "denoise_disable": Reply, Nothing;
    }
}

requests! {
    /// The requests of clients about their own participation.
    pub enum Participation {
        Join = "join": Event, Depends(participant), Begins;
        Configure = "configure": Event, Depends(participant);
        ChangeRoom = "changeroom": Event, Nothing;
        Leave = "leave": Event, Nothing;
        Hangup = "hangup": Event, Nothing;
        Listen = "listen": Event, Nothing;
        ResetDecoder = "resetdecoder": Reply, Nothing;
    }
}

/// Returns the rights to create a room, which may be permanent or recorded. Without the right to
/// record, the plugin ignores names and folders of recordings.
fn creation(fields: Fields<'_>) -> Rights {
    let is_on = |name| fields.member(name) == Ok(Some(true));
    let record = Rights::if_so(is_on("record") || is_on("mjrs"), Right::Record);
    permanent(fields).and(record)
}

/// Returns the rights to edit or destroy a room. Moving the recordings of a room needs the right to
/// record.
fn change(fields: Fields<'_>) -> Rights {
    let moved = ["new_record_dir", "new_mjrs_dir"]
        .iter()
        .any(|name| fields.has(name));
    permanent(fields).and(Rights::if_so(moved, Right::Record))
}

fn permanent(fields: Fields<'_>) -> Rights {
    let is_permanent = fields.member("permanent") == Ok(Some(true));
    Rights::if_so(is_permanent, Right::Create)
}

/// Returns the rights of a participant: it may be recorded, or have its media sent to another
/// address.
fn participant(fields: Fields<'_>) -> Rights {
    let by_rtp = Rights::if_so(fields.has("rtp"), Right::Forward);
    recording(fields).and(by_rtp)
}
