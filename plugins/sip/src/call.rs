//! A call: a dialog with a peer, in whatever page.

use std::time::SystemTime;

use portunus_core::Object;
use portunus_sip::agent::{AccountId, CallId};
use portunus_sip::dialog::DialogId;
use serde_json::Value;
use tokio::time::Instant;

use crate::ending::Ending;
use crate::events::named_event;
use crate::media::CallSide;
use crate::sip_message::{Caller, SipMessage};
use crate::status::PageId;

/// A call of an account.
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) account: AccountId,
    /// The Call-ID.
    pub(crate) call_id: String,
    /// The peer's URI, as clients get it.
    pub(crate) peer: String,
    /// The peer's name, if it has called.
    pub(crate) displayname: Option<String>,
    pub(crate) outgoing: bool,
    /// The caller; `None` for an outgoing call.
    pub(crate) caller: Option<Box<Caller>>,
    /// The pages of the call: several while it rings, none while it is parked.
    pub(crate) pages: Vec<PageId>,
    /// The INVITE had no offer, so our side makes it.
    pub(crate) offerless: bool,
    /// The time of the next 180 to the caller.
    pub(crate) ring_at: Option<Instant>,
    /// The time when the call was accepted.
    pub(crate) since: Option<SystemTime>,
    /// The dialog, once there is one.
    pub(crate) dialog: Option<DialogId>,
    /// The media of a parked call.
    pub(crate) parked: Option<CallSide>,
    /// How our side has ended it, if it has. Clients get this status.
    pub(crate) ending: Option<Ending>,
    /// The transfer that the call follows.
    pub(crate) reports_to: Option<u32>,
}

impl Call {
    /// Makes a call without pages.
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

    /// Notes the dialog.
    pub(crate) fn note_dialog(&mut self, dialog: &DialogId) {
        self.dialog = Some(dialog.clone());
    }
}

/// The end of a call, for clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct End {
    pub(crate) code: u16,
    pub(crate) reason: String,
    /// See [`Ending::text`].
    pub(crate) text: Option<String>,
    /// The members of the header field Reason.
    pub(crate) because: Object,
    /// The message with the header fields that the page wants.
    pub(crate) message: Option<SipMessage>,
}

impl End {
    pub(crate) fn of(ending: Ending) -> Self {
        End {
            code: ending.code,
            reason: ending.reason,
            text: ending.text,
            ..End::default()
        }
    }

    /// Returns the event, without header fields.
    pub(crate) fn event(&self) -> Object {
        named_event("hangup")
            .with("code", self.code)
            .with("reason", self.reason.as_str())
            .with_some("text", self.text.as_deref())
            .with_all(Value::from(self.because.clone()))
    }
}
