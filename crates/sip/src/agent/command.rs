//! Commands of the owner of an agent.

use std::time::Duration;

use super::{AccountId, CallId, ReferId, RequestId, SubscriptionId};
use crate::digest::Credentials;
use crate::flow::Transport;
use crate::message::{Method, Uri};

/// Additional header fields, names with values. The agent leaves out those with a malformed name,
/// with CR or LF, and those that it writes itself: Via, From, To, Call-ID, CSeq, Contact, Route and
/// others of that kind.
pub type ExtraHeaders = Vec<(String, String)>;

/// A body with its media type.
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
    /// The identity, for From of all requests.
    pub identity: Uri,
    /// The display name, without quotes; may be empty.
    pub display_name: String,
    /// The credentials for 401 and 407, if there are any.
    pub credentials: Option<Credentials>,
    /// The registration. `None` for an account that only calls.
    pub registration: Option<Registration>,
    /// The next hop of all requests outside of dialogs.
    pub outbound_proxy: Option<Uri>,
    /// The transport of all requests whose URIs name none. `None` lets RFC 3263 decide.
    pub transport: Option<Transport>,
    /// User-Agent. `None` for that of the [`super::Options`].
    pub user_agent: Option<String>,
    /// Parameters of the Contact URI, names with values. An empty value leaves the name alone.
    pub contact_params: Vec<(String, String)>,
    /// Whether the Contact becomes the address that the registrar saw (`received` and `rport`), if
    /// that differs.
    pub behind_nat: bool,
    /// Whether REFERs are accepted and reported as [`super::AgentEvent::Refer`]. Otherwise they get
    /// 405.
    pub refers: bool,
    /// Whether the account takes all INVITEs from its registrar, except those to Contacts of other
    /// accounts (a trunk). Nothing limits requests from there.
    pub entrance: bool,
    /// Whether each message is reported as [`super::AgentEvent::Trace`].
    pub trace: bool,
}

/// The registration of an account (RFC 3261 section 10).
#[derive(Debug, Clone)]
pub struct Registration {
    /// The registrar. `None` for the domain of the identity.
    pub registrar: Option<Uri>,
    /// The interval to ask for.
    pub expires: Duration,
    /// Header fields of REGISTER.
    pub headers: ExtraHeaders,
    /// The interval of OPTIONS that keep the connection or NAT binding open; `None` sends none. If
    /// one fails, the account is registered again.
    pub keepalive: Option<Duration>,
    /// Whether a failed registration is tried again: after half a minute at first without a
    /// response or with 5xx (RFC 5626 section 4.5), after five minutes if it was refused. The
    /// failure is reported in any case.
    pub retry: bool,
}

/// An outgoing call.
#[derive(Debug, Clone)]
pub struct Invite {
    /// The callee.
    pub uri: Uri,
    /// The Call-ID. `None` for a random one.
    pub call_id: Option<String>,
    /// The offer. `None` leaves the offer to the peer; [`Command::Acknowledge`] answers it.
    pub offer: Option<Body>,
    /// Additional header fields: Referred-By, Replaces and others.
    pub headers: ExtraHeaders,
    /// Credentials that replace those of the account.
    pub credentials: Option<Credentials>,
    /// Whether CANCEL may be sent before any response (RFC 2543).
    pub cancel_early: bool,
}

/// A command. All results are [`super::AgentEvent`]s. A command for something that is gone has no
/// effect.
#[derive(Debug, Clone)]
pub enum Command {
    /// Adds an account and registers it, or changes the profile of an account and registers it
    /// again.
    SetAccount {
        /// The account.
        account: AccountId,
        /// Its new profile.
        profile: Box<Profile>,
    },
    /// Registers an account at once, whether it is registered or waits for its next attempt.
    Register {
        /// The account.
        account: AccountId,
    },
    /// Unregisters and removes an account. Ends with `Unregistered`. Its calls go on.
    RemoveAccount {
        /// The account.
        account: AccountId,
    },
    /// Calls. Always ends with `Ended`.
    Invite {
        /// The account that calls.
        account: AccountId,
        /// The id of the call.
        call: CallId,
        /// The call.
        invite: Box<Invite>,
    },
    /// Sends a provisional response to an incoming call: 180 to 189.
    Progress {
        /// The call.
        call: CallId,
        /// 101 to 199.
        code: u16,
        /// Header fields.
        headers: ExtraHeaders,
        /// SDP for early media.
        body: Option<Body>,
    },
    /// Accepts an incoming call by 200.
    Accept {
        /// The call.
        call: CallId,
        /// Header fields.
        headers: ExtraHeaders,
        /// The answer. For a call without an offer it is the offer, and
        /// [`super::AgentEvent::Acknowledged`] has the answer.
        body: Option<Body>,
    },
    /// Refuses an incoming call.
    Reject {
        /// The call.
        call: CallId,
        /// 300 to 699.
        code: u16,
        /// The reason phrase. `None` for the usual one.
        reason: Option<String>,
        /// Header fields. Contact is allowed with 3xx, WWW-Authenticate with 401.
        headers: ExtraHeaders,
    },
    /// Answers the peer's offer in the 2xx to an INVITE or re-INVITE without an offer.
    Acknowledge {
        /// The call.
        call: CallId,
        /// The answer.
        body: Body,
    },
    /// Ends a call by CANCEL, BYE, or 480 for an incoming one that was not accepted.
    Hangup {
        /// The call.
        call: CallId,
        /// Header fields: Reason and others.
        headers: ExtraHeaders,
    },
    /// Makes another offer in a call. After a glare (491) the agent tries again by itself. Ends
    /// with `ReinviteAccepted` or `ReinviteRejected`.
    /// `ReinviteRejected`.
    Reinvite {
        /// The call.
        call: CallId,
        /// Header fields.
        headers: ExtraHeaders,
        /// The offer. `None` leaves the offer to the peer; [`Command::Acknowledge`] answers it.
        body: Option<Body>,
    },
    /// Accepts the peer's re-INVITE or UPDATE.
    AcceptReinvite {
        /// The call.
        call: CallId,
        /// Header fields.
        headers: ExtraHeaders,
        /// The answer, or the offer if the request has none.
        body: Option<Body>,
    },
    /// Refuses the peer's re-INVITE or UPDATE.
    RejectReinvite {
        /// The call.
        call: CallId,
        /// 300 to 699.
        code: u16,
        /// Header fields.
        headers: ExtraHeaders,
    },
    /// Sends INFO, MESSAGE, REFER or another request without an offer in a call. Ends with
    /// `Response`.
    InDialog {
        /// The call.
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
        /// The account that sends.
        account: AccountId,
        /// The id of the request.
        request: RequestId,
        /// The method.
        method: Method,
        /// The target.
        uri: Uri,
        /// The Call-ID. `None` for a random one.
        call_id: Option<String>,
        /// Header fields.
        headers: ExtraHeaders,
        /// The body.
        body: Option<Body>,
    },
    /// Notifies a transferor of the call that it asked for (RFC 3515).
    NotifyRefer {
        /// The REFER.
        refer: ReferId,
        /// The status of that call.
        code: u16,
        /// Its reason phrase. `None` for the usual one.
        reason: Option<String>,
        /// Whether this is the last notification. A code of 200 or more need not be the last.
        last: bool,
    },
    /// Subscribes (RFC 6665), and refreshes the subscription. With the id of a present subscription
    /// it subscribes again, in its dialog.
    Subscribe {
        /// The account that subscribes.
        account: AccountId,
        /// The id of the subscription.
        subscription: SubscriptionId,
        /// The subscription.
        subscribe: Box<Subscribe>,
    },
    /// Ends a subscription. Ends with `SubscriptionEnded`.
    Unsubscribe {
        /// The subscription.
        subscription: SubscriptionId,
    },
    /// Publishes a state (RFC 3903), and refreshes it. With the id of a present publication it
    /// replaces the state.
    Publish {
        /// The account that publishes.
        account: AccountId,
        /// The id of the publication.
        publication: SubscriptionId,
        /// The state.
        publish: Box<Publish>,
    },
    /// Removes a publication.
    Unpublish {
        /// The publication.
        publication: SubscriptionId,
    },
}

/// A subscription.
#[derive(Debug, Clone)]
pub struct Subscribe {
    /// The resource whose state is wanted.
    pub uri: Uri,
    /// The event package, with its parameters.
    pub event: String,
    /// Accept.
    pub accept: Option<String>,
    /// The interval to ask for.
    pub expires: Duration,
    /// The Call-ID. `None` for a random one.
    pub call_id: Option<String>,
    /// Header fields.
    pub headers: ExtraHeaders,
    /// The body.
    pub body: Option<Body>,
}

/// A state for publication.
#[derive(Debug, Clone)]
pub struct Publish {
    /// The resource whose state it is; usually the identity of the account.
    pub uri: Uri,
    /// The event package.
    pub event: String,
    /// The interval to ask for.
    pub expires: Duration,
    /// Header fields.
    pub headers: ExtraHeaders,
    /// The state.
    pub body: Body,
}
