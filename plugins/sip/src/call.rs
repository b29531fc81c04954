//! A call: a dialog with a peer, whichever page has it.

use std::time::SystemTime;

use portunus_core::Object;
use portunus_sip::agent::{AccountId, CallId};
use portunus_sip::dialog::DialogId;
use serde_json::Value;
use tokio::time::Instant;

use crate::media::CallSide;
use crate::page::{PageId, named_event};
use crate::seen::Caller;

/// A call of an account.
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) account: AccountId,
    /// The Call-ID.
    pub(crate) call_id: String,
    /// The other side's URI, as clients are told.
    pub(crate) peer: String,
    /// The other side's name, if it has called.
    pub(crate) displayname: Option<String>,
    pub(crate) outgoing: bool,
    /// What clients are told of who calls; none of a call of our own.
    pub(crate) caller: Option<Box<Caller>>,
    /// Whose call it is: several while it rings, nobody while it is parked.
    pub(crate) pages: Vec<PageId>,
    /// INVITE had no offer: our side makes it.
    pub(crate) offerless: bool,
    /// When the caller is to be told again that it rings.
    pub(crate) ring_at: Option<Instant>,
    /// When both sides have agreed to talk.
    pub(crate) since: Option<SystemTime>,
    /// The dialog, once there is one.
    pub(crate) dialog: Option<DialogId>,
    /// Media of a parked call.
    pub(crate) parked: Option<CallSide>,
    /// The code that we end it with, if we do: what clients are told of the end.
    pub(crate) ending: Option<Ending>,
    /// A transferor is told how this call goes.
    pub(crate) reports_to: Option<u32>,
}

impl Call {
    /// A call that somebody makes or gets, which nobody has yet.
    pub(crate) fn new(id: CallId, account: AccountId, call_id: String, peer: String) -> Self {
        Call {
            id,
            account,
            call_id,
            peer,
            displayname: None,
            outgoing: false,
            caller: None,
            pages: Vec::new(),
            offerless: false,
            ring_at: None,
            since: None,
            dialog: None,
            parked: None,
            ending: None,
            reports_to: None,
        }
    }

    /// Takes down which dialog it is.
    pub(crate) fn note_dialog(&mut self, dialog: &DialogId) {
        self.dialog = Some(dialog.clone());
    }
}

/// How our side has ended a call: a status code with its phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) code: u16,
    pub(crate) reason: String,
}

impl Ending {
    pub(crate) fn new(code: u16, reason: &str) -> Self {
        Ending {
            code,
            reason: reason.to_owned(),
        }
    }

    /// BYE was sent.
    pub(crate) fn bye() -> Self {
        Ending::new(200, "to BYE")
    }

    /// CANCEL was sent or came.
    pub(crate) fn cancelled() -> Self {
        Ending::new(487, "Request Terminated")
    }
}

/// The end of a call as clients are told.
#[derive(Debug, Clone, Default)]
pub(crate) struct End {
    pub(crate) code: u16,
    pub(crate) reason: String,
    /// Members of the header field Reason.
    pub(crate) because: Object,
    /// Header fields that the page wants to see are taken from this message.
    pub(crate) message: Option<crate::seen::Seen>,
}

impl End {
    pub(crate) fn of(ending: Ending) -> Self {
        End {
            code: ending.code,
            reason: ending.reason,
            ..End::default()
        }
    }

    /// The event, without header fields.
    pub(crate) fn event(&self) -> Object {
        named_event("hangup")
            .with("code", self.code)
            .with("reason", self.reason.as_str())
            .with_all(Value::from(self.because.clone()))
    }
}
