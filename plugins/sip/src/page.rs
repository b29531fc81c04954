//! A page: a client's handle, its account and its call.

use std::collections::BTreeMap;

use portunus_core::sdp::Direction;
use portunus_core::{ClientAddress, Handle, LocalJsep, Object};
use portunus_sip::agent::{AccountId, CallId, SubscriptionId};
use serde_json::Value;

use crate::forks::Forks;
use crate::headers::Prefixes;
use crate::media::CallSide;
use crate::register_request::RegisterRequest;
use crate::status::{CallStatus, PageId, RegistrationStatus};

/// The role of a page for its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    #[default]
    Master,
    /// It shares the account of this page.
    Helper(PageId),
}

/// A page, as long as its handle is attached.
pub(crate) struct Page {
    pub(crate) handle: Handle,
    pub(crate) client: Option<ClientAddress>,
    /// The client may direct media and SIP to other machines, and learns why that fails.
    pub(crate) is_trusted: bool,
    /// Its id in events.
    pub(crate) unique_id: String,
    /// The number that helpers name it by.
    pub(crate) master_id: u32,
    pub(crate) role: Role,
    pub(crate) registration: RegistrationStatus,
    /// The account that it, or its master, has registered.
    pub(crate) account: Option<AccountId>,
    /// Its name in [`Page::lines`].
    pub(crate) name: Option<String>,
    /// It gets the calls of the account's other pages, and its call outlives it.
    pub(crate) lines: bool,
    /// Callers get 180 at once.
    pub(crate) automatic_ringing: bool,
    pub(crate) prefixes: Prefixes,
    pub(crate) call: Option<PageCall>,
    /// Its subscriptions by their events.
    pub(crate) subscriptions: BTreeMap<String, SubscriptionId>,
    /// Its publications by their events.
    pub(crate) publications: BTreeMap<String, SubscriptionId>,
}

/// A page's side of a call.
pub(crate) struct PageCall {
    pub(crate) id: CallId,
    /// The Call-ID.
    pub(crate) call_id: String,
    pub(crate) status: CallStatus,
    /// The transaction of the request that began it, for events.
    pub(crate) transaction: Option<String>,
    /// Media, once there is a description.
    pub(crate) media: Option<CallSide>,
    /// Changes by the peer are accepted without the page.
    pub(crate) autoaccept: bool,
    /// The page has the peer's answer, as early media or otherwise.
    pub(crate) answered: bool,
    /// The peer has answered, but not accepted, so the call cannot be changed.
    pub(crate) early: bool,
    /// The descriptions of its forks before it was accepted.
    pub(crate) forks: Forks,
    /// SRTP is mandatory.
    pub(crate) srtp_required: bool,
    /// The page takes the call from another one, and has not answered our offer.
    pub(crate) moving: bool,
    /// The change that waits for an answer. It ends with the call.
    pub(crate) change: Option<Change>,
    /// A `hold` or `unhold` that waits for the end of a change.
    pub(crate) waiting: Option<Hold>,
}

/// A `hold` or `unhold`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hold {
    /// The transaction of the request.
    pub(crate) transaction: String,
    /// The direction of the held call. `None` resumes it.
    pub(crate) direction: Option<Direction>,
    pub(crate) headers: Vec<(String, String)>,
}

impl PageCall {
    pub(crate) fn new(id: CallId, call_id: String, status: CallStatus) -> Self {
        PageCall {
            id,
            call_id,
            status,
            transaction: None,
            media: None,
            autoaccept: true,
            answered: false,
            early: false,
            forks: Forks::default(),
            srtp_required: false,
            moving: false,
            change: None,
            waiting: None,
        }
    }

    /// Whether the call cannot be changed now: it is not accepted, or a change of either side waits
    /// for an answer.
    pub(crate) const fn is_changing(&self) -> bool {
        self.early || self.change.is_some() || !matches!(self.status, CallStatus::InCall)
    }
}

/// A change of a call that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The page's `update`.
    Update,
    /// The page's `hold` or `unhold`.
    Hold,
    /// The peer's, with an offer.
    Offered,
    /// The peer's, which asks for an offer.
    Asked,
    /// The answer comes with the peer's ACK, and the page gets it.
    Acknowledged,
    /// As above, but the page does not get it.
    Quiet,
}

impl Page {
    pub(crate) fn new(handle: Handle, unique_id: String, master_id: u32) -> Self {
        Page {
            handle,
            client: None,
            is_trusted: false,
            unique_id,
            master_id,
            role: Role::Master,
            registration: RegistrationStatus::Unregistered,
            account: None,
            name: None,
            lines: false,
            automatic_ringing: true,
            prefixes: Prefixes::default(),
            call: None,
            subscriptions: BTreeMap::new(),
            publications: BTreeMap::new(),
        }
    }

    /// Takes the members of `register` that concern the page alone.
    pub(crate) fn take_options(&mut self, request: &RegisterRequest<'_>) {
        self.lines = request.lines;
        self.name = request.name.map(str::to_owned);
        self.automatic_ringing = request.automatic_ringing;
    }

    /// Returns the status of its call.
    pub(crate) fn status(&self) -> CallStatus {
        self.call
            .as_ref()
            .map_or(CallStatus::Idle, |call| call.status)
    }

    /// Returns the Call-ID of its call.
    pub(crate) fn call_id(&self) -> Option<&str> {
        self.call.as_ref().map(|call| call.call_id.as_str())
    }

    /// Answers a request.
    pub(crate) fn reply(&self, transaction: &str, result: Object) {
        let data = self.data().with("result", result);
        self.push(Some(transaction), data, None);
    }

    /// Sends an event. In a call, it has the transaction of the request that began it.
    pub(crate) fn send(&self, result: Object, jsep: Option<LocalJsep>) {
        self.send_data(self.data().with("result", result), jsep);
    }

    /// Sends an event with members beside the result.
    pub(crate) fn send_data(&self, data: Object, jsep: Option<LocalJsep>) {
        let transaction = self
            .call
            .as_ref()
            .and_then(|call| call.transaction.as_deref());
        self.push(transaction, data, jsep);
    }

    /// Makes the common members of all events.
    pub(crate) fn data(&self) -> Object {
        Object::new()
            .with("sip", "event")
            .with_some("call_id", self.call_id())
    }

    pub(crate) fn push(&self, transaction: Option<&str>, data: Object, jsep: Option<LocalJsep>) {
        self.handle.push(transaction, Value::from(data), jsep);
    }
}
