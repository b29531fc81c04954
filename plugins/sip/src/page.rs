//! A page: a client's handle, its account and its call.

use std::collections::BTreeMap;
use std::fmt;

use portunus_core::sdp::Direction;
use portunus_core::{ClientAddress, Handle, LocalJsep, Object};
use portunus_sip::agent::{AccountId, CallId, SubscriptionId};
use serde_json::Value;

use crate::forks::Forks;
use crate::headers::Prefixes;
use crate::media::CallSide;
use crate::register::RegisterRequest;

/// A page among those of the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PageId(pub(crate) u64);

/// Where the registration of a page stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RegistrationStatus {
    #[default]
    Unregistered,
    Registering,
    Registered,
    Unregistering,
    /// Nothing was sent, but calls can be made: guests, `send_register` is false, helpers.
    Disabled,
}

impl RegistrationStatus {
    /// As administrators see it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            RegistrationStatus::Unregistered => "unregistered",
            RegistrationStatus::Registering => "registering",
            RegistrationStatus::Registered => "registered",
            RegistrationStatus::Unregistering => "unregistering",
            RegistrationStatus::Disabled => "disabled",
        }
    }

    /// Whether calls can be made.
    pub(crate) const fn may_call(self) -> bool {
        matches!(
            self,
            RegistrationStatus::Registered | RegistrationStatus::Disabled
        )
    }
}

/// Where the call of a page stands; without one it is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CallStatus {
    #[default]
    Idle,
    /// It has called, and nobody has answered.
    Inviting,
    /// It is called.
    Invited,
    /// It is called and has sent a description, but has not accepted.
    Progress,
    InCall,
    /// Its own change of the call waits for an answer.
    Reinviting,
    /// The peer's change of the call waits for its answer.
    Reinvited,
    /// It has ended the call, and the peer has not confirmed it yet.
    Closing,
}

impl CallStatus {
    /// As clients and administrators see it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            CallStatus::Idle => "idle",
            CallStatus::Inviting => "inviting",
            CallStatus::Invited => "invited",
            CallStatus::Progress => "progress",
            CallStatus::InCall => "incall",
            CallStatus::Reinviting => "incall_reinviting",
            CallStatus::Reinvited => "incall_reinvited",
            CallStatus::Closing => "closing",
        }
    }

    /// Whether both sides have agreed to talk.
    pub(crate) const fn is_in_call(self) -> bool {
        matches!(
            self,
            CallStatus::InCall | CallStatus::Reinviting | CallStatus::Reinvited
        )
    }

    /// Whether it is called and can still accept or decline.
    pub(crate) const fn rings(self) -> bool {
        matches!(self, CallStatus::Invited | CallStatus::Progress)
    }
}

impl fmt::Display for CallStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a page is for its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    #[default]
    Master,
    /// It has the account of this page.
    Helper(PageId),
}

/// A page, as long as its handle is attached.
pub(crate) struct Page {
    pub(crate) handle: Handle,
    pub(crate) client: Option<ClientAddress>,
    /// Whoever has it may have media and SIP sent to other machines, and is told why they are not.
    pub(crate) is_trusted: bool,
    /// What it is told apart by in events.
    pub(crate) unique_id: String,
    /// What helpers name it by.
    pub(crate) master_id: u32,
    pub(crate) role: Role,
    pub(crate) registration: RegistrationStatus,
    /// The account that it has registered, or whose master it helps.
    pub(crate) account: Option<AccountId>,
    /// Its name within [`Page::lines`].
    pub(crate) name: Option<String>,
    /// It is told what other pages of its account do, and its call waits for it when it is gone.
    pub(crate) lines: bool,
    /// Calls are told to the caller as ringing at once.
    pub(crate) automatic_ringing: bool,
    pub(crate) prefixes: Prefixes,
    pub(crate) call: Option<PageCall>,
    /// Its subscriptions by their events.
    pub(crate) subscriptions: BTreeMap<String, SubscriptionId>,
    /// Its publications by their events.
    pub(crate) publications: BTreeMap<String, SubscriptionId>,
}

/// The side of a call that a page has.
pub(crate) struct PageCall {
    pub(crate) id: CallId,
    /// The Call-ID.
    pub(crate) call_id: String,
    pub(crate) status: CallStatus,
    /// The transaction of the request that began it: events carry it.
    pub(crate) transaction: Option<String>,
    /// Media, once there is a description.
    pub(crate) media: Option<CallSide>,
    /// The peer's changes are accepted without asking the page.
    pub(crate) autoaccept: bool,
    /// The page has the peer's answer already: as early media, or before.
    pub(crate) answered: bool,
    /// The peer has answered, but has not accepted: it takes no change of the call yet.
    pub(crate) early: bool,
    /// What its forks have described before it was accepted.
    pub(crate) forks: Forks,
    /// SRTP is a must.
    pub(crate) srtp_required: bool,
    /// The page has taken the call from another, and has not answered our offer yet.
    pub(crate) moving: bool,
    /// The page has a description that it has not answered, or has offered one: to be forgotten with the call.
    pub(crate) change: Option<Change>,
    /// A `hold` or `unhold` that waits until nobody changes the call any more.
    pub(crate) waiting: Option<Hold>,
}

/// A `hold` or `unhold`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hold {
    /// Of the request.
    pub(crate) transaction: String,
    /// The direction in which the call goes on; none: it is held no more.
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

    /// Whether the call cannot be changed now: it is not accepted yet, or a change, of either side, waits for an answer.
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
    /// The same, but nobody is told.
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

    /// What `register` says that concerns the page alone.
    pub(crate) fn take_options(&mut self, request: &RegisterRequest<'_>) {
        self.lines = request.lines;
        self.name = request.name.map(str::to_owned);
        self.automatic_ringing = request.automatic_ringing;
    }

    /// Where its call stands.
    pub(crate) fn status(&self) -> CallStatus {
        self.call
            .as_ref()
            .map_or(CallStatus::Idle, |call| call.status)
    }

    /// The Call-ID of its call.
    pub(crate) fn call_id(&self) -> Option<&str> {
        self.call.as_ref().map(|call| call.call_id.as_str())
    }

    /// Answers a request.
    pub(crate) fn reply(&self, transaction: &str, result: Object) {
        let data = self.data().with("result", result);
        self.push(Some(transaction), data, None);
    }

    /// Tells it something; in a call, as what follows the request that began it.
    pub(crate) fn tell(&self, result: Object, jsep: Option<LocalJsep>) {
        self.tell_data(self.data().with("result", result), jsep);
    }

    /// The same, with members beside the result.
    pub(crate) fn tell_data(&self, data: Object, jsep: Option<LocalJsep>) {
        let transaction = self
            .call
            .as_ref()
            .and_then(|call| call.transaction.as_deref());
        self.push(transaction, data, jsep);
    }

    /// What all events begin with.
    pub(crate) fn data(&self) -> Object {
        Object::new()
            .with("sip", "event")
            .with_some("call_id", self.call_id())
    }

    pub(crate) fn push(&self, transaction: Option<&str>, data: Object, jsep: Option<LocalJsep>) {
        self.handle.push(transaction, Value::from(data), jsep);
    }
}

/// The result that an event of this name has.
pub(crate) fn named_event(name: &str) -> Object {
    Object::new().with("event", name)
}
