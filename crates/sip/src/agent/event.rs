//! What an agent tells, and what it wants done.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{AccountId, CallId, ReferId, RequestId, SubscriptionId};
use crate::dialog::DialogId;
use crate::flow::{Flow, Route};
use crate::locate::Destination;
use crate::message::{Message, Request, Response};

/// What an agent wants done. Taken by [`super::Agent::poll`].
#[derive(Debug, Clone)]
pub enum Output {
    /// Bytes to be sent: one whole message.
    Transmit {
        /// Where to.
        route: Route,
        /// The message.
        bytes: Arc<[u8]>,
    },
    /// A name to be found (RFC 3263), and answered by [`super::Agent::resolved`]. Addresses are never asked for.
    Resolve {
        /// To be given back with the answer.
        id: ResolveId,
        /// What to resolve.
        destination: Destination,
    },
    /// Something happened.
    Event(AgentEvent),
}

/// Names a resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResolveId(pub(super) u64);

/// Why a name has no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// DNS does not know it, or does not answer.
    #[error("DNS Error")]
    Dns,
    /// There is no socket for any transport that it could be reached over.
    #[error("no transport")]
    NoTransport,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The peer sent BYE.
    Bye,
    /// We sent BYE, by command.
    Hangup,
    /// CANCEL, ours or the peer's.
    Cancelled,
    /// The peer refused it, or a proxy did.
    Rejected,
    /// We refused it, by command.
    Declined,
    /// No answer in time.
    Timeout,
    /// It could not be sent.
    Unreachable,
    /// Our 2xx was not acknowledged.
    NoAck,
    /// The peer did not refresh the session, or the dialog is gone at its side.
    Lost,
    /// We have no room for it, or the command could not be followed.
    Refused,
}

/// What a request of ours is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum About {
    /// The registration of an account.
    Registration(AccountId),
    /// A call that is not answered yet.
    Call(CallId),
    /// A request of the owner.
    Request(RequestId),
    /// A subscription or publication.
    Subscription(SubscriptionId),
    /// What nobody waits for, such as a request that ends a call.
    Nothing,
}

/// Something that happened. What came from a peer is there as a whole.
#[derive(Debug, Clone)]
pub enum AgentEvent {
    /// The account is registered; also at each refresh.
    Registered {
        /// Which.
        account: AccountId,
        /// For how long, as the registrar granted.
        expires: Duration,
        /// The 2xx.
        response: Arc<Response>,
    },
    /// The account is not, or is no longer, registered.
    RegistrationFailed {
        /// Which.
        account: AccountId,
        /// A status; 408 for no answer, 503 for unreachable, 904 if the secret was refused.
        code: u16,
        /// What it means.
        reason: String,
        /// The answer, if there is one.
        response: Option<Arc<Response>>,
        /// When it is tried again, if it is.
        retry: Option<Duration>,
    },
    /// The account is unregistered and removed.
    Unregistered {
        /// Which.
        account: AccountId,
        /// The answer, if there was one.
        response: Option<Arc<Response>>,
    },
    /// A call comes in. 100 has been sent.
    Incoming {
        /// Its id, by the agent.
        call: CallId,
        /// For whom; `None`: for no account (see [`super::Options::strangers`]).
        account: Option<AccountId>,
        /// The accounts with an entrance ([`super::Profile::entrance`]) that are registered where it came from. If
        /// there are any, it is for one of them.
        entrances: Vec<AccountId>,
        /// Where it came from.
        flow: Flow,
        /// The dialog that it will be.
        dialog: DialogId,
        /// The call of ours that it is to replace, if its Replaces names one.
        replaces: Option<CallId>,
        /// The INVITE.
        request: Arc<Request>,
    },
    /// A provisional answer to our call, other than 100.
    Provisional {
        /// Which.
        call: CallId,
        /// The dialog; forks have different ones. Its remote tag may be empty.
        dialog: DialogId,
        /// 101 to 199.
        response: Arc<Response>,
    },
    /// Our call was taken. ACK has been sent if the offer was ours.
    Accepted {
        /// Which.
        call: CallId,
        /// The dialog.
        dialog: DialogId,
        /// The 2xx.
        response: Arc<Response>,
    },
    /// Our 2xx to an INVITE or re-INVITE was acknowledged.
    Acknowledged {
        /// Which.
        call: CallId,
        /// The ACK; it has the answer if the INVITE had no offer.
        request: Arc<Request>,
    },
    /// A call has ended: the last event of each call.
    Ended {
        /// Which.
        call: CallId,
        /// How.
        cause: Cause,
        /// The status that ended it; 200 for BYE, 487 for CANCEL, 904 if our secret was refused.
        code: u16,
        /// What it means.
        reason: String,
        /// What ended it: BYE, CANCEL or a response.
        message: Option<Arc<Message>>,
    },
    /// The peer makes another offer, or asks for one: a re-INVITE, or an UPDATE. Answered by `AcceptReinvite` or
    /// `RejectReinvite`.
    Reinvite {
        /// Which.
        call: CallId,
        /// The request.
        request: Arc<Request>,
    },
    /// The peer took its re-INVITE back before it was answered.
    ReinviteCancelled {
        /// Which.
        call: CallId,
    },
    /// The peer took our re-INVITE. ACK has been sent if the offer was ours.
    ReinviteAccepted {
        /// Which.
        call: CallId,
        /// The 2xx.
        response: Arc<Response>,
    },
    /// Our re-INVITE failed; the call goes on as it was.
    ReinviteRejected {
        /// Which.
        call: CallId,
        /// The status.
        code: u16,
        /// What it means.
        reason: String,
        /// The answer, if there was one.
        response: Option<Arc<Response>>,
    },
    /// A request of the peer that has been answered with 200: MESSAGE, INFO.
    Request {
        /// For whom; `None`: in a stranger's call.
        account: Option<AccountId>,
        /// In which call; `None`: outside of dialogs.
        call: Option<CallId>,
        /// Where it came from.
        flow: Flow,
        /// The request.
        request: Arc<Request>,
    },
    /// The peer wants us to call somebody. 202 has been sent. Answered by `NotifyRefer`.
    Refer {
        /// Its id, by the agent.
        refer: ReferId,
        /// For whom.
        account: Option<AccountId>,
        /// In which call; `None`: outside of dialogs.
        call: Option<CallId>,
        /// The REFER.
        request: Arc<Request>,
    },
    /// How it goes with the call that we asked the peer for, by REFER in a call.
    ReferNotify {
        /// Our call in which the REFER was sent.
        call: CallId,
        /// The NOTIFY: its body is `message/sipfrag`.
        request: Arc<Request>,
    },
    /// The answer to a request of ours.
    Response {
        /// Which.
        request: RequestId,
        /// The status; 408 for no answer, 503 for unreachable, 904 if our secret was refused.
        code: u16,
        /// What it means.
        reason: String,
        /// The answer, if there was one.
        response: Option<Arc<Response>>,
    },
    /// A subscription or publication was taken; also at each refresh, and when it is ended by us (expires 0).
    Subscribed {
        /// Which.
        subscription: SubscriptionId,
        /// For how long.
        expires: Duration,
        /// The 2xx.
        response: Arc<Response>,
    },
    /// A subscription or publication was refused, and is gone.
    SubscriptionFailed {
        /// Which.
        subscription: SubscriptionId,
        /// The status, as in `Response`.
        code: u16,
        /// What it means.
        reason: String,
        /// The answer, if there was one.
        response: Option<Arc<Response>>,
    },
    /// News. 200 has been sent.
    Notify {
        /// Of which subscription.
        subscription: SubscriptionId,
        /// The NOTIFY.
        request: Arc<Request>,
    },
    /// A subscription or publication is over, by the peer's NOTIFY or by ours.
    SubscriptionEnded {
        /// Which.
        subscription: SubscriptionId,
        /// The `reason` of Subscription-State, if there is one.
        reason: Option<String>,
    },
    /// A request of ours may not be sent to its target ([`super::Allow`]). If somebody waits for its end, that is told next.
    Forbidden {
        /// What cannot be done.
        about: About,
        /// The address that nothing may be sent to.
        address: IpAddr,
    },
    /// A message, for accounts whose profile asks for it. Retransmissions are not told.
    Trace {
        /// Whose.
        account: AccountId,
        /// Of which call.
        call: Option<CallId>,
        /// Whether it was sent; else received.
        sent: bool,
        /// The way.
        route: Route,
        /// The whole message.
        bytes: Arc<[u8]>,
    },
}
