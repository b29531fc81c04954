//! The plugin's requests, and what each reaches beyond the room.

use portunus_core::{Fields, Right, Rights, requests};

requests! {
    /// The requests of clients about their PeerConnection.
    pub enum Negotiation {
        Setup = "setup": Event, Nothing, Begins;
        Ack = "ack": Event, Nothing;
        Restart = "restart": Event, Nothing;
    }
}

requests! {
    /// The requests that manage rooms, of clients by the API and by data channels, and of
    /// administrators.
    pub enum Management {
        List = "list": Reply, Nothing;
        ListParticipants = "listparticipants": Reply, Nothing;
        Exists = "exists": Reply, Nothing;
        Create = "create": Reply, Depends(room);
        Edit = "edit": Reply, Depends(room);
        Destroy = "destroy": Reply, Depends(room);
        Allowed = "allowed": Reply, Nothing;
        Kick = "kick": Reply, Nothing;
        Announcement = "announcement": Reply, Nothing;
    }
}

requests! {
    /// The requests of clients about their own place in rooms, by the API and by data channels.
    pub enum Membership {
        Join = "join": Reply, Nothing;
        Leave = "leave": Reply, Nothing;
        Message = "message": Reply, Nothing;
    }
}

/// Returns the rights to create, edit or destroy a room: for a permanent one, and for a back-end.
fn room(fields: Fields<'_>) -> Rights {
    let has = |name| matches!(fields.text(name), Ok(Some(_)));
    let permanent = fields.member("permanent") == Ok(Some(true));
    let posts = has("post") || has("new_post");
    Rights::if_so(permanent, Right::Create).and(Rights::if_so(posts, Right::Forward))
}
