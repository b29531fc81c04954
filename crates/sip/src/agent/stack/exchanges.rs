//! Exchanges: requests of ours until their final responses, over several addresses and challenges.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Stack;
use super::compose::Contact;
use super::udp_only::UdpOnly;
use crate::agent::accounts::Speaker;
use crate::agent::{
    About, AccountId, CallId, ExtraHeaders, Profile, ReferId, RequestId, ResolveId, SubscriptionId,
};
use crate::digest::{Client as Digest, Credentials, Kind};
use crate::flow::{Flow, Route, Target};
use crate::message::{NameAddr, Request, Response, SipUri, Uri};
use crate::transaction::ClientId;

/// The code for refused credentials, as Janus has it.
pub(in crate::agent) const REFUSED: u16 = 904;

/// The id of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::agent) struct ExchangeId(pub(super) u64);

impl ExchangeId {
    /// The id of no exchange.
    pub(in crate::agent) const NONE: Self = Self(0);
}

/// The owner of a request, who waits for its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) enum Owner {
    Register(AccountId),
    KeepAlive(AccountId),
    Invite(CallId),
    Reinvite(CallId),
    /// An UPDATE that refreshes the session.
    Refresh(CallId),
    Bye(CallId),
    InDialog(CallId, RequestId),
    OutOfDialog(RequestId),
    Subscribe(SubscriptionId),
    Publish(SubscriptionId),
    NotifyRefer(ReferId),
    /// An ACK, whose bytes are kept for the INVITE of that exchange.
    Ack(ExchangeId),
    /// Nobody.
    Nobody,
}

/// A request to send.
#[derive(Debug)]
pub(in crate::agent) struct Sending {
    pub(in crate::agent) owner: Owner,
    pub(in crate::agent) speaker: Speaker,
    pub(in crate::agent) request: Request,
    pub(in crate::agent) contact: Contact,
    pub(in crate::agent) credentials: Option<Credentials>,
    pub(in crate::agent) digest: Digest,
    /// The next hop, if it is not that of the request.
    pub(in crate::agent) hop: Option<Uri>,
    /// The flow, if it is known.
    pub(in crate::agent) flow: Option<Flow>,
    /// For the trace.
    pub(in crate::agent) call: Option<CallId>,
}

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) sending: Sending,
    pub(super) targets: VecDeque<Target>,
    /// All addresses of the next hop.
    pub(super) addresses: Vec<IpAddr>,
    /// One of them that is forbidden.
    pub(super) forbidden: Option<IpAddr>,
    pub(super) route: Option<Route>,
    pub(super) client: Option<ClientId>,
    /// A provisional response came.
    pub(super) proceeding: bool,
    /// INVITE: CANCEL follows as soon as that is allowed.
    pub(super) cancel: Option<ExtraHeaders>,
    /// The number of changes that the peer wanted (420, 421).
    pub(super) adapted: u8,
    /// The target by UDP, if the request goes by TCP only because of its size.
    pub(super) fallback: Option<Target>,
    /// INVITE: the ACKs that were sent.
    pub(super) acks: Vec<SentAck>,
}

/// An ACK to a 2xx, for its repetitions.
#[derive(Debug, Clone)]
pub(super) struct SentAck {
    /// The tag of the response.
    pub(super) tag: String,
    pub(super) route: Route,
    pub(super) bytes: Arc<[u8]>,
}

/// All exchanges, and what leads to them.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    exchanges: HashMap<ExchangeId, Exchange>,
    clients: HashMap<ClientId, ExchangeId>,
    resolving: HashMap<ResolveId, ExchangeId>,
    /// Exchanges that failed before they were sent, with the reason.
    unsent: VecDeque<(ExchangeId, &'static str)>,
    pub(super) udp_only: UdpOnly,
}

impl Exchanges {
    pub(super) fn len(&self) -> usize {
        self.exchanges.len()
    }

    pub(super) fn get(&self, id: ExchangeId) -> Option<&Exchange> {
        self.exchanges.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: ExchangeId) -> Option<&mut Exchange> {
        self.exchanges.get_mut(&id)
    }

    pub(super) fn insert(&mut self, id: ExchangeId, exchange: Exchange) {
        self.exchanges.insert(id, exchange);
    }

    /// Takes an exchange out, but not what leads to it.
    pub(super) fn take(&mut self, id: ExchangeId) -> Option<Exchange> {
        self.exchanges.remove(&id)
    }

    /// Removes an exchange with its transaction.
    pub(super) fn remove(&mut self, id: ExchangeId) -> Option<Exchange> {
        let exchange = self.exchanges.remove(&id)?;
        if let Some(client) = exchange.client {
            self.clients.remove(&client);
        }
        Some(exchange)
    }

    pub(super) fn of_client(&self, client: ClientId) -> Option<ExchangeId> {
        self.clients.get(&client).copied()
    }

    pub(super) fn set_client(&mut self, client: ClientId, id: ExchangeId) {
        self.clients.insert(client, id);
    }

    /// Forgets a transaction that ended. Returns its exchange, if it has no later transaction.
    pub(super) fn forget_client(&mut self, client: ClientId) -> Option<ExchangeId> {
        let id = self.clients.remove(&client)?;
        let exchange = self.exchanges.get(&id)?;
        (exchange.client == Some(client)).then_some(id)
    }

    pub(super) fn set_resolving(&mut self, resolve: ResolveId, id: ExchangeId) {
        self.resolving.insert(resolve, id);
    }

    pub(super) fn take_resolving(&mut self, resolve: ResolveId) -> Option<ExchangeId> {
        self.resolving.remove(&resolve)
    }

    pub(super) fn set_unsent(&mut self, id: ExchangeId, reason: &'static str) {
        self.unsent.push_back((id, reason));
    }

    pub(super) fn take_unsent(&mut self) -> Option<(ExchangeId, &'static str)> {
        self.unsent.pop_front()
    }
}

/// What became of a request of ours. The agent passes it to the owner.
#[derive(Debug)]
pub(in crate::agent) enum Outcome {
    /// A provisional response to an INVITE, other than 100.
    Progress {
        call: CallId,
        request: Box<Request>,
        response: Arc<Response>,
    },
    /// A 2xx to an INVITE or re-INVITE.
    Accepted {
        owner: Owner,
        exchange: ExchangeId,
        answer: Box<Answer>,
    },
    /// The exchange has ended.
    Finished {
        owner: Owner,
        exchange: ExchangeId,
        answer: Box<Answer>,
    },
    /// The request was changed as the peer wants it. It is to be sent again, with the next number
    /// of its dialog, by [`Stack::send_again`].
    Changed {
        owner: Owner,
        exchange: ExchangeId,
        route: Option<Route>,
    },
}

/// The result of an exchange, a provisional response, or one of several 2xx.
#[derive(Debug)]
pub(in crate::agent) struct Answer {
    pub(in crate::agent) code: u16,
    pub(in crate::agent) reason: String,
    pub(in crate::agent) response: Option<Arc<Response>>,
    /// The request as sent last.
    pub(in crate::agent) request: Request,
    pub(in crate::agent) route: Option<Route>,
    /// All addresses of the next hop.
    pub(in crate::agent) addresses: Vec<IpAddr>,
    pub(in crate::agent) digest: Digest,
}

impl Answer {
    pub(in crate::agent) fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Returns the number of the request as sent last.
    pub(in crate::agent) fn number(&self) -> u32 {
        let cseq = self.request.headers.cseq().ok().flatten();
        cseq.map_or(0, |cseq| cseq.number)
    }

    /// Returns the interval that the request asked for.
    pub(in crate::agent) fn asked(&self) -> Duration {
        let asked = self.request.headers.expires().ok().flatten();
        asked.unwrap_or_default()
    }

    /// Returns Retry-After.
    pub(in crate::agent) fn later(&self) -> Option<Duration> {
        let response = self.response.as_ref()?;
        response.headers.retry_after().ok().flatten()
    }
}

/// The result of an attempt to cancel an INVITE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) enum Cancelled {
    /// It was never sent.
    Unsent,
    /// Its response will come.
    Wait,
}

impl Owner {
    /// Returns the purpose of its request.
    pub(super) fn about(self) -> About {
        match self {
            Owner::Register(account) => About::Registration(account),
            Owner::Invite(call) => About::Call(call),
            Owner::InDialog(_, request) | Owner::OutOfDialog(request) => About::Request(request),
            Owner::Subscribe(subscription) | Owner::Publish(subscription) => {
                About::Subscription(subscription)
            }
            Owner::KeepAlive(_)
            | Owner::Reinvite(_)
            | Owner::Refresh(_)
            | Owner::Bye(_)
            | Owner::NotifyRefer(_)
            | Owner::Ack(_)
            | Owner::Nobody => About::Nothing,
        }
    }
}

impl Sending {
    /// Makes a request within a dialog.
    pub(in crate::agent) fn within(
        owner: Owner,
        speaker: Speaker,
        request: Request,
        call: Option<CallId>,
    ) -> Self {
        let credentials = speaker.profile.credentials.clone();
        Self {
            owner,
            speaker,
            contact: Contact::of(&request.method),
            request,
            credentials,
            digest: Digest::new(),
            hop: None,
            flow: None,
            call,
        }
    }

    /// Makes a request outside of dialogs: to the outbound proxy, or to the account's own server as
    /// the registrar is reached.
    pub(in crate::agent) fn outside(
        owner: Owner,
        speaker: Speaker,
        request: Request,
        call: Option<CallId>,
    ) -> Self {
        let proxy = speaker.profile.outbound_proxy.clone();
        let hop = proxy.or_else(|| as_registrar(&speaker.profile, &request));
        Self {
            hop,
            ..Self::within(owner, speaker, request, call)
        }
    }
}

/// Returns the hop of a request to the account's own server (the host of the registrar or of the
/// identity), if the URI of the registrar names a transport (`;transport=tls`, or `sips:`) and that
/// of the request does not. So nothing leaves in the clear for an account with TLS.
fn as_registrar(profile: &Profile, request: &Request) -> Option<Uri> {
    let registrar = profile
        .registration
        .as_ref()?
        .registrar
        .as_ref()?
        .as_sip()?;
    let uri = request.uri.as_sip()?;
    let is_open = uri.transport().is_none() && !uri.secure && !request.headers.has("Route");
    if !is_open || (registrar.transport().is_none() && !registrar.secure) {
        return None;
    }
    let is_registrar =
        uri.host == registrar.host && (uri.port.is_none() || uri.port == registrar.port);
    let identity = profile.identity.as_sip();
    let is_domain = uri.port.is_none() && identity.is_some_and(|own| own.host == uri.host);
    if is_registrar {
        Some(registrar.clone().into())
    } else if is_domain {
        let mut hop = SipUri::new(uri.host.clone());
        hop.secure = registrar.secure;
        if let Some(transport) = registrar.transport() {
            hop.params.set("transport", Some(transport));
        }
        Some(hop.into())
    } else {
        None
    }
}

impl Stack {
    /// Gives up an exchange without telling its owner. A response to its request is ignored.
    pub(in crate::agent) fn abandon(&mut self, id: ExchangeId) {
        let exchange = self.exchanges.remove(id);
        if let Some(client) = exchange.and_then(|exchange| exchange.client) {
            self.transactions.forget(client);
        }
    }

    pub(in crate::agent) fn speaker_of(&self, id: ExchangeId) -> Option<Speaker> {
        let exchange = self.exchanges.get(id)?;
        Some(exchange.sending.speaker.clone())
    }

    /// Waits for the response as long as for that of a new request.
    pub(in crate::agent) fn give_up(&mut self, id: ExchangeId) {
        if let Some(client) = self.exchanges.get(id).and_then(|exchange| exchange.client) {
            self.transactions.give_up(self.now, client);
        }
    }

    /// Cancels an INVITE as soon as that is allowed (RFC 3261 section 9.1).
    pub(in crate::agent) fn cancel(
        &mut self,
        id: ExchangeId,
        headers: ExtraHeaders,
        early: bool,
    ) -> Cancelled {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return Cancelled::Unsent;
        };
        let Some(client) = exchange.client else {
            self.exchanges.take(id);
            return Cancelled::Unsent;
        };
        if exchange.cancel.is_some() {
            return Cancelled::Wait;
        }
        let headers = exchange.cancel.insert(headers);
        if exchange.proceeding || early {
            exchange.proceeding = true;
            self.transactions.cancel(self.now, client, headers);
        }
        Cancelled::Wait
    }

    /// Sends the ACK to the 2xx of an INVITE, and keeps it for repetitions.
    pub(in crate::agent) fn acknowledge(
        &mut self,
        invite: ExchangeId,
        speaker: &Speaker,
        mut ack: Request,
        flow: Option<Flow>,
        call: Option<CallId>,
    ) {
        // It cannot be challenged, so it repeats the credentials of the INVITE (RFC 3261 section
        // 13.2.2.4).
        if let Some(exchange) = self.exchanges.get(invite) {
            for kind in [Kind::Server, Kind::Proxy] {
                let header = kind.answer_header();
                for value in exchange.sending.request.headers.all(header) {
                    ack.headers.push(header, value);
                }
            }
        }
        let mut sending = Sending::within(Owner::Ack(invite), speaker.clone(), ack, call);
        sending.flow = flow;
        sending.credentials = None;
        self.send(sending);
    }
}

/// Returns the tag of To, or an empty text.
pub(in crate::agent) fn to_tag(to: Option<NameAddr>) -> String {
    to.and_then(|to| to.tag().map(str::to_owned))
        .unwrap_or_default()
}
