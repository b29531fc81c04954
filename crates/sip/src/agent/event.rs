//! Events and other outputs of an agent.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{AccountId, CallId, ReferId, RequestId, SubscriptionId};
use crate::dialog::DialogId;
use crate::flow::{Flow, Route};
use crate::locate::Destination;
use crate::message::{Message, Request, Response};

/// An output, taken by [`super::Agent::poll`].
#[derive(Debug, Clone)]
pub enum Output {
    /// One whole message to send.
    Transmit {
        /// The route.
        route: Route,
        /// The message.
        bytes: Arc<[u8]>,
    },
    /// A name to resolve (RFC 3263). [`super::Agent::resolved`] takes the answer. Addresses need no
    /// resolution.
    Resolve {
        /// The id for the answer.
        id: ResolveId,
        /// The destination to resolve.
        destination: Destination,
    },
    /// Something happened.
    Event(AgentEvent),
}

/// The id of a resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResolveId(pub(super) u64);

/// Why a name has no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// DNS does not know it, or does not answer.
    #[error("DNS Error")]
    Dns,
    /// There is no socket for any transport that reaches it.
    #[error("no transport")]
    NoTransport,
}

/// The cause of a call's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The peer sent BYE.
    Bye,
    /// We sent BYE, by command.
    Hangup,
    /// CANCEL, ours or the peer's.
    Cancelled,
    /// The peer or a proxy refused it.
    Rejected,
    /// We refused it, by command.
    Declined,
    /// No response came in time.
    Timeout,
    /// The request could not be sent.
    Unreachable,
    /// Our 2xx was not acknowledged.
    NoAck,
    /// The peer did not refresh the session, or has lost the dialog.
    Lost,
    /// There is no room for the call, or the command was impossible.
    Refused,
}

/// The purpose of a request of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum About {
    /// The registration of an account.
    Registration(AccountId),
    /// A call that was not answered.
    Call(CallId),
    /// A request of the owner.
    Request(RequestId),
    /// A subscription or publication.
    Subscription(SubscriptionId),
    /// A request whose end nobody waits for, such as BYE.
    Nothing,
}

/// An event. Messages of peers are included as a whole.
#[derive(Debug, Clone)]
pub enum AgentEvent {
    /// The account is registered; repeated at each refresh.
    Registered {
        /// The account.
        account: AccountId,
        /// The interval that the registrar granted.
        expires: Duration,
        /// The 2xx.
        response: Arc<Response>,
    },
    /// The account is not, or is no longer, registered.
    RegistrationFailed {
        /// The account.
        account: AccountId,
        /// The status; 408 without a response, 503 if unreachable, 904 if the secret was refused.
        code: u16,
        /// The reason phrase.
        reason: String,
        /// The response, if there is one.
        response: Option<Arc<Response>>,
        /// The wait before the next attempt, if there will be one.
        retry: Option<Duration>,
    },
    /// The account is unregistered and removed.
    Unregistered {
        /// The account.
        account: AccountId,
        /// The response, if there was one.
        response: Option<Arc<Response>>,
    },
    /// A call comes in. 100 has been sent.
    Incoming {
        /// The call, with an id of the agent.
        call: CallId,
        /// The called account. `None` for no account (see [`super::Options::strangers`]).
        account: Option<AccountId>,
        /// The accounts with an entrance ([`super::Profile::entrance`]) whose registrar sent the
        /// call. If there are any, the call is for one of them.
        entrances: Vec<AccountId>,
        /// The flow of the INVITE.
        flow: Flow,
        /// The future dialog.
        dialog: DialogId,
        /// The present call that its Replaces names, if any.
        replaces: Option<CallId>,
        /// The INVITE.
        request: Arc<Request>,
    },
    /// A provisional response to our call, other than 100.
    Provisional {
        /// The call.
        call: CallId,
        /// The dialog. Each fork has its own. Its remote tag may be empty.
        dialog: DialogId,
        /// 101 to 199.
        response: Arc<Response>,
    },
    /// Our call was accepted. The agent has sent ACK if the offer was ours.
    Accepted {
        /// The call.
        call: CallId,
        /// The dialog.
        dialog: DialogId,
        /// The 2xx.
        response: Arc<Response>,
    },
    /// Our 2xx to an INVITE or re-INVITE was acknowledged.
    Acknowledged {
        /// The call.
        call: CallId,
        /// The ACK. It has the answer if the INVITE had no offer.
        request: Arc<Request>,
    },
    /// A call has ended: the last event of each call.
    Ended {
        /// The call.
        call: CallId,
        /// The cause.
        cause: Cause,
        /// The final status; 200 for BYE, 487 for CANCEL, 904 if our secret was refused.
        code: u16,
        /// The reason phrase.
        reason: String,
        /// The message that ended it: BYE, CANCEL or a response.
        message: Option<Arc<Message>>,
    },
    /// The peer makes another offer, or asks for one, by re-INVITE or UPDATE. `AcceptReinvite` or
    /// `RejectReinvite` responds.
    /// `RejectReinvite`.
    Reinvite {
        /// The call.
        call: CallId,
        /// The request.
        request: Arc<Request>,
    },
    /// The peer cancelled its re-INVITE.
    ReinviteCancelled {
        /// The call.
        call: CallId,
    },
    /// The peer accepted our re-INVITE. The agent has sent ACK if the offer was ours.
    ReinviteAccepted {
        /// The call.
        call: CallId,
        /// The 2xx.
        response: Arc<Response>,
    },
    /// Our re-INVITE failed; the call goes on as it was.
    ReinviteRejected {
        /// The call.
        call: CallId,
        /// The status.
        code: u16,
        /// The reason phrase.
        reason: String,
        /// The response, if there was one.
        response: Option<Arc<Response>>,
    },
    /// A request of the peer that got 200: MESSAGE or INFO.
    Request {
        /// The account. `None` in a stranger's call.
        account: Option<AccountId>,
        /// The call. `None` outside of dialogs.
        call: Option<CallId>,
        /// The flow of the request.
        flow: Flow,
        /// The request.
        request: Arc<Request>,
    },
    /// The peer asks for a call to somebody. The agent has sent 202. `NotifyRefer` reports
    /// progress.
    Refer {
        /// The REFER, with an id of the agent.
        refer: ReferId,
        /// The account.
        account: Option<AccountId>,
        /// The call. `None` outside of dialogs.
        call: Option<CallId>,
        /// The REFER.
        request: Arc<Request>,
    },
    /// Progress of the call that we asked the peer for by REFER in a call.
    ReferNotify {
        /// Our call in which the REFER was sent.
        call: CallId,
        /// The NOTIFY: its body is `message/sipfrag`.
        request: Arc<Request>,
    },
    /// The response to a request of ours, or its failure.
    Response {
        /// The request.
        request: RequestId,
        /// The status; 408 without a response, 503 if unreachable, 904 if our secret was refused.
        code: u16,
        /// The reason phrase.
        reason: String,
        /// The response, if there was one.
        response: Option<Arc<Response>>,
    },
    /// A subscription or publication was accepted; repeated at each refresh, and at our request to
    /// end it (expires 0).
    Subscribed {
        /// The subscription.
        subscription: SubscriptionId,
        /// The granted interval.
        expires: Duration,
        /// The 2xx.
        response: Arc<Response>,
    },
    /// A subscription or publication was refused, and is gone.
    SubscriptionFailed {
        /// The subscription.
        subscription: SubscriptionId,
        /// The status, as in `Response`.
        code: u16,
        /// The reason phrase.
        reason: String,
        /// The response, if there was one.
        response: Option<Arc<Response>>,
    },
    /// A notification. The agent has sent 200.
    Notify {
        /// The subscription.
        subscription: SubscriptionId,
        /// The NOTIFY.
        request: Arc<Request>,
    },
    /// A subscription or publication has ended, by the peer's NOTIFY or by our request.
    SubscriptionEnded {
        /// The subscription.
        subscription: SubscriptionId,
        /// The `reason` of Subscription-State, if there is one.
        reason: Option<String>,
    },
    /// A request of ours may not be sent to its target ([`super::Allow`]). If somebody waits for
    /// its end, that event is next.
    Forbidden {
        /// The purpose of the request.
        about: About,
        /// The forbidden address.
        address: IpAddr,
    },
    /// A message of an account whose profile asks for traces. Retransmissions are left out.
    Trace {
        /// The account.
        account: AccountId,
        /// The call.
        call: Option<CallId>,
        /// Whether it was sent; otherwise it was received.
        sent: bool,
        /// The route.
        route: Route,
        /// The whole message.
        bytes: Arc<[u8]>,
    },
}
