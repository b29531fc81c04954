//! Exchanges: a request of ours with all that it takes until it has its answer. The next hop is found, one address after the
//! other is tried, a challenge is answered.

mod answer;
mod send;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::command::{ExtraHeaders, Profile};
use super::compose::{Contact, Speaker};
use super::{About, AccountId, Agent, CallId, ReferId, RequestId, SubscriptionId};
use crate::digest::{Client as Digest, Credentials, Kind};
use crate::flow::{Flow, Route, Target};
use crate::message::{NameAddr, Request, Response, SipUri, Uri};
use crate::transaction::ClientId;

/// The code for a secret that was refused, as Janus has it.
pub(super) const REFUSED: u16 = 904;

/// Names an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ExchangeId(u64);

impl ExchangeId {
    /// That of no exchange.
    pub(super) const NONE: Self = Self(0);
}

/// Who waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Register(AccountId),
    KeepAlive(AccountId),
    Invite(CallId),
    Reinvite(CallId),
    /// An UPDATE that refreshes the session.
    Refresh(CallId),
    Bye(CallId),
    Within(CallId, RequestId),
    Outside(RequestId),
    Subscribe(SubscriptionId),
    Publish(SubscriptionId),
    NotifyRefer(ReferId),
    /// An ACK: its bytes are kept for the INVITE of that exchange.
    Ack(ExchangeId),
    /// Nobody.
    Nobody,
}

/// A request to be sent.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) owner: Owner,
    pub(super) speaker: Speaker,
    pub(super) request: Request,
    pub(super) contact: Contact,
    pub(super) credentials: Option<Credentials>,
    pub(super) digest: Digest,
    /// The next hop, in place of what the request says.
    pub(super) hop: Option<Uri>,
    /// The way, if it is known.
    pub(super) flow: Option<Flow>,
    /// For the trace.
    pub(super) call: Option<CallId>,
}

#[derive(Debug)]
pub(super) struct Exchange {
    sending: Sending,
    targets: VecDeque<Target>,
    /// All addresses of the next hop.
    addresses: Vec<IpAddr>,
    /// One of them that nothing may be sent to.
    forbidden: Option<IpAddr>,
    route: Option<Route>,
    client: Option<ClientId>,
    /// A provisional answer came.
    proceeding: bool,
    /// INVITE: a 2xx came, and others may.
    accepted: bool,
    /// INVITE: is to be cancelled as soon as that is allowed.
    cancel: Option<ExtraHeaders>,
    /// The way by UDP that is taken where TCP, which the size of the request asks for, is not.
    fallback: Option<Target>,
    /// INVITE: the ACKs that were sent, by the tag of the answer.
    acks: Vec<(String, Route, Arc<[u8]>)>,
}

/// How an exchange ended; or a provisional answer, or one of several 2xx.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) reason: String,
    pub(super) response: Option<Arc<Response>>,
    /// The request as it was sent last.
    pub(super) request: Request,
    pub(super) route: Option<Route>,
    /// All addresses of the next hop.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) digest: Digest,
}

impl Answer {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// The number of the request as it was sent last.
    pub(super) fn number(&self) -> u32 {
        let cseq = self.request.headers.cseq().ok().flatten();
        cseq.map_or(0, |cseq| cseq.number)
    }

    /// For how long the request has asked.
    pub(super) fn asked(&self) -> Duration {
        let asked = self.request.headers.expires().ok().flatten();
        asked.unwrap_or_default()
    }

    /// When the peer wants to be asked again.
    pub(super) fn later(&self) -> Option<Duration> {
        let response = self.response.as_ref()?;
        response.headers.retry_after().ok().flatten()
    }
}

/// What came of an attempt to cancel an INVITE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancelled {
    /// It was never sent.
    Unsent,
    /// Its answer is to be waited for.
    Wait,
}

impl Owner {
    /// What its request is for.
    fn about(self) -> About {
        match self {
            Owner::Register(account) => About::Registration(account),
            Owner::Invite(call) => About::Call(call),
            Owner::Within(_, request) | Owner::Outside(request) => About::Request(request),
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

impl Exchange {
    pub(super) fn speaker(&self) -> &Speaker {
        &self.sending.speaker
    }
}

impl Sending {
    /// Within a dialog.
    pub(super) fn within(
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

    /// Outside of dialogs: by way of the outbound proxy, or to the account's own server in the way that the registrar is reached.
    pub(super) fn outside(
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

/// The way of a request to the account's own server, the host of the registrar or of the identity, where the URI of the registrar says
/// what it is reached by (`;transport=tls`, or `sips:`), and that of the request does not: the same. For whoever has asked for TLS nothing
/// is to leave in the clear. What DNS is asked follows from that (RFC 3263 section 4.1).
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

impl Agent {
    /// Gives up an exchange without telling its owner. What was sent gets no answer from then on.
    pub(super) fn abandon(&mut self, id: ExchangeId) {
        if let Some(client) = self
            .exchanges
            .remove(&id)
            .and_then(|exchange| exchange.client)
        {
            self.clients.remove(&client);
            self.transactions.forget(client);
        }
    }

    /// Waits for the answer no longer than for one that was never begun.
    pub(super) fn give_up(&mut self, now: Instant, id: ExchangeId) {
        if let Some(client) = self.exchanges.get(&id).and_then(|exchange| exchange.client) {
            self.transactions.give_up(now, client);
        }
    }

    /// Cancels an INVITE, at once or as soon as that is allowed (RFC 3261 section 9.1).
    pub(super) fn cancel(
        &mut self,
        now: Instant,
        id: ExchangeId,
        headers: ExtraHeaders,
        early: bool,
    ) -> Cancelled {
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return Cancelled::Unsent;
        };
        let Some(client) = exchange.client else {
            self.exchanges.remove(&id);
            return Cancelled::Unsent;
        };
        if exchange.cancel.is_some() {
            return Cancelled::Wait;
        }
        let headers = exchange.cancel.insert(headers);
        if exchange.proceeding || early {
            exchange.proceeding = true;
            self.transactions.cancel(now, client, headers);
        }
        Cancelled::Wait
    }

    /// Sends the ACK to the 2xx of an INVITE, now and for each repetition.
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        invite: ExchangeId,
        speaker: &Speaker,
        mut ack: Request,
        flow: Option<Flow>,
        call: Option<CallId>,
    ) {
        // It cannot be challenged, so it has what the INVITE had (RFC 3261 section 13.2.2.4).
        if let Some(exchange) = self.exchanges.get(&invite) {
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
        self.send(now, sending);
    }
}

/// The tag of To; empty if there is none.
pub(super) fn to_tag(to: Option<NameAddr>) -> String {
    to.and_then(|to| to.tag().map(str::to_owned))
        .unwrap_or_default()
}
