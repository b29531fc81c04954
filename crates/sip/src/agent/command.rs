//! What an agent is asked to do.

use std::time::Duration;

use super::{AccountId, CallId, ReferId, RequestId, SubscriptionId};
use crate::digest::Credentials;
use crate::flow::Transport;
use crate::message::{Method, Uri};

/// Header fields to be added, names with values. Those with a malformed name, with CR or LF, and those that the agent itself
/// writes (Via, From, To, Call-ID, CSeq, Contact, Route and others of that kind) are left out.
pub type ExtraHeaders = Vec<(String, String)>;

/// A body with its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Content-Type.
    pub content_type: String,
    /// The content.
    pub content: Vec<u8>,
}

/// An identity, and how it is registered.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The identity: From of all requests.
    pub identity: Uri,
    /// The display name, without quotes; may be empty.
    pub display_name: String,
    /// The secrets for 401 and 407, if there are any.
    pub credentials: Option<Credentials>,
    /// How to register; `None`: calls only.
    pub registration: Option<Registration>,
    /// The next hop of all requests outside of dialogs.
    pub outbound_proxy: Option<Uri>,
    /// The transport for all requests whose URIs ask for no other. `None`: as RFC 3263 finds.
    pub transport: Option<Transport>,
    /// User-Agent; `None`: that of the [`super::Options`].
    pub user_agent: Option<String>,
    /// Parameters of the Contact URI, names with values. An empty value: a name alone.
    pub contact_params: Vec<(String, String)>,
    /// Whether the Contact becomes the address that the registrar saw, if that is another one (`received` and `rport`).
    pub behind_nat: bool,
    /// Whether outgoing calls offer reliable provisional responses (RFC 3262). Incoming ones give them where required.
    pub reliable: bool,
    /// Whether all INVITEs from where it is registered are for it, but for those to the Contacts of other accounts (a trunk).
    /// Nothing limits what comes from there.
    pub entrance: bool,
    /// Whether each message is told as [`super::AgentEvent::Trace`].
    pub trace: bool,
}

/// How an account is registered (RFC 3261 section 10).
#[derive(Debug, Clone)]
pub struct Registration {
    /// The registrar; `None`: the domain of the identity.
    pub registrar: Option<Uri>,
    /// For how long.
    pub expires: Duration,
    /// Header fields of REGISTER.
    pub headers: ExtraHeaders,
    /// The interval of OPTIONS that keep the way open; `None`: none. If one fails, the account is registered anew.
    pub keepalive: Option<Duration>,
    /// Whether a registration that failed is tried again: after half a minute at first where there was no answer, or
    /// 5xx (RFC 5626 section 4.5), and after five minutes where it was refused. The failure is told in any case.
    pub retry: bool,
}

/// A call to be made.
#[derive(Debug, Clone)]
pub struct Invite {
    /// Whom to call.
    pub uri: Uri,
    /// The Call-ID; `None`: a random one.
    pub call_id: Option<String>,
    /// The offer; `None`: the peer makes it in its answer, and [`Command::Acknowledge`] answers.
    pub offer: Option<Body>,
    /// More header fields: Referred-By, Replaces and others.
    pub headers: ExtraHeaders,
    /// Secrets in place of the account's.
    pub credentials: Option<Credentials>,
    /// Whether CANCEL may be sent before any answer came (RFC 2543).
    pub cancel_early: bool,
}

/// A command. All results are [`super::AgentEvent`]s. A command for what is no longer there has no effect.
#[derive(Debug, Clone)]
pub enum Command {
    /// Adds an account and registers it, or gives an account another profile and registers it anew.
    SetAccount {
        /// Its id.
        account: AccountId,
        /// What it is from now on.
        profile: Box<Profile>,
    },
    /// Registers an account now that waits to be registered again, or is registered.
    Register {
        /// Which.
        account: AccountId,
    },
    /// Unregisters and removes an account. Ends with `Unregistered`. Its calls go on.
    RemoveAccount {
        /// Which.
        account: AccountId,
    },
    /// Calls. Ends with `Ended`, whatever happens.
    Invite {
        /// Who calls.
        account: AccountId,
        /// The id of the call.
        call: CallId,
        /// The call.
        invite: Box<Invite>,
    },
    /// Answers an incoming call for now: 180 to 189.
    Progress {
        /// Which.
        call: CallId,
        /// 101 to 199.
        code: u16,
        /// Header fields.
        headers: ExtraHeaders,
        /// SDP for early media.
        body: Option<Body>,
    },
    /// Takes an incoming call: 200.
    Accept {
        /// Which.
        call: CallId,
        /// Header fields.
        headers: ExtraHeaders,
        /// The answer, or the offer to a call without one: then [`super::AgentEvent::Acknowledged`] has the answer.
        body: Option<Body>,
    },
    /// Refuses an incoming call.
    Reject {
        /// Which.
        call: CallId,
        /// 300 to 699.
        code: u16,
        /// The reason phrase; `None`: the usual one.
        reason: Option<String>,
        /// Header fields. Contact is allowed with 3xx, WWW-Authenticate with 401.
        headers: ExtraHeaders,
    },
    /// Answers the peer's offer, which came in the 2xx to an INVITE or re-INVITE of ours that had none.
    Acknowledge {
        /// Which.
        call: CallId,
        /// The answer.
        body: Body,
    },
    /// Ends a call: CANCEL, BYE, or 480 to an incoming one that was not taken.
    Hangup {
        /// Which.
        call: CallId,
        /// Header fields: Reason and others.
        headers: ExtraHeaders,
    },
    /// Makes another offer in a call. A glare (491) is tried again by itself. Ends with `ReinviteAccepted` or
    /// `ReinviteRejected`.
    Reinvite {
        /// Which.
        call: CallId,
        /// Header fields.
        headers: ExtraHeaders,
        /// The offer; `None`: the peer makes it, and [`Command::Acknowledge`] answers.
        body: Option<Body>,
    },
    /// Takes the peer's re-INVITE or UPDATE.
    AcceptReinvite {
        /// Which.
        call: CallId,
        /// Header fields.
        headers: ExtraHeaders,
        /// The answer, or the offer to one without.
        body: Option<Body>,
    },
    /// Refuses the peer's re-INVITE or UPDATE.
    RejectReinvite {
        /// Which.
        call: CallId,
        /// 300 to 699.
        code: u16,
        /// Header fields.
        headers: ExtraHeaders,
    },
    /// Sends INFO, MESSAGE, REFER or another request without an offer in a call. Ends with `Response`.
    InDialog {
        /// Which.
        call: CallId,
        /// The id of the request.
        request: RequestId,
        /// The method.
        method: Method,
        /// Header fields: Refer-To and others.
        headers: ExtraHeaders,
        /// The body.
        body: Option<Body>,
    },
    /// Sends MESSAGE, OPTIONS or another request outside of dialogs. Ends with `Response`.
    OutOfDialog {
        /// Who sends.
        account: AccountId,
        /// The id of the request.
        request: RequestId,
        /// The method.
        method: Method,
        /// To whom.
        uri: Uri,
        /// The Call-ID; `None`: a random one.
        call_id: Option<String>,
        /// Header fields.
        headers: ExtraHeaders,
        /// The body.
        body: Option<Body>,
    },
    /// Tells a transferor how the call is going that it asked for (RFC 3515).
    NotifyRefer {
        /// Which REFER.
        refer: ReferId,
        /// The status of that call.
        code: u16,
        /// Its reason phrase; `None`: the usual one.
        reason: Option<String>,
        /// Whether this is the last word. A code of 200 or more need not be the last.
        last: bool,
    },
    /// Subscribes (RFC 6665), and keeps the subscription. With the id of a subscription that is there: again, in its dialog.
    Subscribe {
        /// Who subscribes.
        account: AccountId,
        /// The id.
        subscription: SubscriptionId,
        /// To what.
        subscribe: Box<Subscribe>,
    },
    /// Ends a subscription. Ends with `SubscriptionEnded`.
    Unsubscribe {
        /// Which.
        subscription: SubscriptionId,
    },
    /// Publishes a state (RFC 3903), and keeps it. With the id of a publication that is there: replaces its state.
    Publish {
        /// Who publishes.
        account: AccountId,
        /// The id.
        publication: SubscriptionId,
        /// What.
        publish: Box<Publish>,
    },
    /// Takes a publication back.
    Unpublish {
        /// Which.
        publication: SubscriptionId,
    },
}

/// A subscription to be made.
#[derive(Debug, Clone)]
pub struct Subscribe {
    /// Whose state.
    pub uri: Uri,
    /// The event package, with its parameters.
    pub event: String,
    /// Accept.
    pub accept: Option<String>,
    /// For how long.
    pub expires: Duration,
    /// The Call-ID; `None`: a random one.
    pub call_id: Option<String>,
    /// Header fields.
    pub headers: ExtraHeaders,
    /// The body.
    pub body: Option<Body>,
}

/// A state to be published.
#[derive(Debug, Clone)]
pub struct Publish {
    /// Whose state; mostly the account's identity.
    pub uri: Uri,
    /// The event package.
    pub event: String,
    /// For how long.
    pub expires: Duration,
    /// Header fields.
    pub headers: ExtraHeaders,
    /// The state.
    pub body: Body,
}
