//! The plugin's requests, and the right that each needs.

pub(crate) mod fields;

use portunus_core::{Fields, Right, Rights, recording, requests};

requests! {
    /// Requests about rooms. Administrators may make them, too.
    pub enum Management {
        Create = "create": Reply, Depends(creation);
        Edit = "edit": Reply, Depends(change);
        Destroy = "destroy": Reply, Depends(change);
        Exists = "exists": Reply, Nothing;
        List = "list": Reply, Nothing;
        Allowed = "allowed": Reply, Nothing;
        Kick = "kick": Reply, Nothing;
        Moderate = "moderate": Reply, Nothing;
        EnableRecording = "enable_recording": Reply, Right(Right::Record);
        ListParticipants = "listparticipants": Reply, Nothing;
        RtpForward = "rtp_forward": Reply, Right(Right::Forward);
        StopRtpForward = "stop_rtp_forward": Reply, Right(Right::Forward);
        ListForwarders = "listforwarders": Reply, Right(Right::Forward);
        PublishRemotely = "publish_remotely": Reply, Right(Right::Forward);
        UnpublishRemotely = "unpublish_remotely": Reply, Right(Right::Forward);
        ListRemotes = "listremotes" | "list_remotes": Reply, Right(Right::Forward);
        AddRemotePublisher = "add_remote_publisher": Reply, Right(Right::Forward);
        UpdateRemotePublisher = "update_remote_publisher": Reply, Right(Right::Forward);
        RemoveRemotePublisher = "remove_remote_publisher": Reply, Right(Right::Forward);
    }
}

requests! {
    /// Requests of clients that join a room, and of those in it.
    pub enum Participation {
        Join = "join": Event, Nothing, Begins;
        Watch = "watch": Event, Nothing, Begins;
        JoinAndConfigure = "joinandconfigure": Event, Depends(recording), Begins;
        Configure = "configure": Event, Depends(recording);
        Publish = "publish": Event, Depends(recording);
        Unpublish = "unpublish": Event, Nothing;
        Leave = "leave": Event, Nothing;
        Start = "start": Event, Nothing;
        Pause = "pause": Event, Nothing;
        Subscribe = "subscribe": Event, Nothing;
        Unsubscribe = "unsubscribe": Event, Nothing;
        Update = "update": Event, Nothing;
        Switch = "switch": Event, Nothing;
    }
}

/// Returns the rights to create a room, which may be permanent or recorded. The plugin ignores
/// names and folders of recordings if the client may not record.
fn creation(fields: Fields<'_>) -> Rights {
    let record = Rights::if_so(fields.boolean("record") == Ok(Some(true)), Right::Record);
    permanent(fields).and(record)
}

/// Returns the rights to edit or destroy a room. Only a client that may record can change the
/// folder or format of recordings.
fn change(fields: Fields<'_>) -> Rights {
    let moved = ["new_rec_dir", "record_format"]
        .iter()
        .any(|name| fields.has(name));
    permanent(fields).and(Rights::if_so(moved, Right::Record))
}

fn permanent(fields: Fields<'_>) -> Rights {
    let is_permanent = fields.boolean("permanent") == Ok(Some(true));
    Rights::if_so(is_permanent, Right::Create)
}
