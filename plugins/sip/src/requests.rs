//! The requests of clients.

use portunus_core::{Fields, Right, Rights, requests};

requests! {
    /// A request of a client.
    pub enum Request {
        Register = "register": Event, Nothing, Begins;
        Unregister = "unregister": Event, Nothing;
        Call = "call": Event, Nothing, Begins;
        Accept = "accept": Event, Nothing;
        Progress = "progress": Event, Nothing;
        SendRinging = "send_ringing": Event, Nothing;
        Decline = "decline": Event, Nothing;
        Hangup = "hangup": Event, Nothing;
        Update = "update": Event, Nothing;
        Hold = "hold": Event, Nothing;
        Unhold = "unhold": Event, Nothing;
        Info = "info": Event, Nothing;
        DtmfInfo = "dtmf_info": Event, Nothing;
        Message = "message": Event, Nothing;
        Transfer = "transfer": Event, Nothing;
        Subscribe = "subscribe": Event, Nothing;
        Unsubscribe = "unsubscribe": Event, Nothing;
        Publish = "publish": Event, Nothing;
        Unpublish = "unpublish": Event, Nothing;
        Recording = "recording": Event, Depends(begins);
        Keyframe = "keyframe": Event, Nothing;
        Forward = "rtp_forward": Event, Right(Right::Forward);
        StopForward = "stop_rtp_forward": Event, Right(Right::Forward);
        ListForwarders = "listforwarders": Event, Right(Right::Forward);
        Reset = "reset": Event, Nothing;
        Lines = "lines": Event, Nothing;
        Move = "move": Event, Nothing;
    }
}

/// Starting or resuming a recording makes files.
fn begins(fields: Fields<'_>) -> Rights {
    let action: Option<&str> = fields.member("action").ok().flatten();
    let action = action.unwrap_or_default().to_ascii_lowercase();
    Rights::if_so(matches!(action.as_str(), "start" | "resume"), Right::Record)
}
