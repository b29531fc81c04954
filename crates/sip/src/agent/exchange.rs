//! Exchanges: a request of ours with all that it takes until it has its answer. The next hop is found, one address after the
//! other is tried, a challenge is answered.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use super::command::ExtraHeaders;
use super::compose::{Contact, Speaker};
use super::event::{Output, ResolveError, ResolveId};
use super::{AccountId, Agent, CallId, ReferId, RequestId, SubscriptionId};
use crate::dialog::next_hop;
use crate::digest::{Client as Digest, Credentials, DigestError, Kind};
use crate::flow::{Flow, Route, Target, Transport};
use crate::locate::Destination;
use crate::message::{Host, Method, NameAddr, Request, Response, StatusCode, Uri, Via};
use crate::transaction::{ClientId, Event};

/// Addresses of one name that are tried.
const MOST_TARGETS: usize = 16;
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
    route: Option<Route>,
    client: Option<ClientId>,
    /// A provisional answer came.
    proceeding: bool,
    /// INVITE: a 2xx came, and others may.
    accepted: bool,
    /// INVITE: is to be cancelled as soon as that is allowed.
    cancel: Option<ExtraHeaders>,
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
    pub(super) digest: Digest,
}

impl Answer {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
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

    /// Outside of dialogs: by way of the outbound proxy.
    pub(super) fn outside(
        owner: Owner,
        speaker: Speaker,
        request: Request,
        call: Option<CallId>,
    ) -> Self {
        let hop = speaker.profile.outbound_proxy.clone();
        Self {
            hop,
            ..Self::within(owner, speaker, request, call)
        }
    }
}

impl Agent {
    /// Begins an exchange. Its owner hears of it later, even of a failure.
    pub(super) fn send(&mut self, now: Instant, mut sending: Sending) -> ExchangeId {
        let id = ExchangeId(self.number());
        if let Some(credentials) = &sending.credentials {
            sending.digest.start();
            if !sending.digest.is_empty() {
                let cnonce = self.token(16);
                sending
                    .digest
                    .authorize(&mut sending.request, credentials, &cnonce);
            }
        }
        let flow = sending.flow;
        let hop = hop_of(&sending);
        let exchange = Exchange {
            sending,
            targets: VecDeque::new(),
            route: None,
            client: None,
            proceeding: false,
            accepted: false,
            cancel: None,
            acks: Vec::new(),
        };
        self.exchanges.insert(id, exchange);
        if let Some(flow) = flow {
            self.attempt(now, id, Some(Route::Flow(flow)));
            return id;
        }
        match hop {
            Some(destination) => match literal(&destination) {
                Some(target) => self.found(now, id, [target]),
                None => {
                    let resolve = ResolveId(self.number());
                    self.resolving.insert(resolve, id);
                    self.outputs.push_back(Output::Resolve {
                        id: resolve,
                        destination,
                    });
                }
            },
            None => self.stillborn.push_back((id, "DNS Error")),
        }
        id
    }

    /// Takes the answer to [`Output::Resolve`].
    pub(super) fn take_targets(
        &mut self,
        now: Instant,
        id: ResolveId,
        targets: Result<Vec<Target>, ResolveError>,
    ) {
        let Some(id) = self.resolving.remove(&id) else {
            return;
        };
        match targets {
            Ok(targets) if !targets.is_empty() => self.found(now, id, targets),
            Err(ResolveError::NoTransport) => self.failed(now, id, 503, "Service Unavailable"),
            _ => self.failed(now, id, 503, "DNS Error"),
        }
    }

    fn found(&mut self, now: Instant, id: ExchangeId, targets: impl IntoIterator<Item = Target>) {
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.targets = targets.into_iter().take(MOST_TARGETS).collect();
            self.attempt(now, id, None);
        }
    }

    /// Sends the request on `route`, or to the next of its targets that can be used.
    fn attempt(&mut self, now: Instant, id: ExchangeId, mut route: Option<Route>) {
        loop {
            let Some(exchange) = self.exchanges.get_mut(&id) else {
                return;
            };
            let next = route
                .take()
                .or_else(|| exchange.targets.pop_front().map(Route::Target));
            let Some(next) = next else {
                self.stillborn.push_back((id, "Service Unavailable"));
                return;
            };
            if self.transmit(now, id, next) {
                return;
            }
        }
    }

    /// Whether the request could be sent on `route`.
    fn transmit(&mut self, now: Instant, id: ExchangeId, route: Route) -> bool {
        let (transport, remote) = (route.transport(), route.remote().ip());
        let branch = format!("z9hG4bK{}", self.token(20));
        let Some(via) = self
            .local(transport, remote)
            .map(|local| Via::new(transport.as_str(), local.host.clone(), local.port, &branch))
        else {
            return false;
        };
        let Some(mut exchange) = self.exchanges.remove(&id) else {
            return true;
        };
        let Sending {
            request,
            speaker,
            contact,
            owner,
            call,
            ..
        } = &mut exchange.sending;
        request.headers.remove("Via");
        request.headers.push_first("Via", via);
        if let Some(header) = self.contact_of(speaker, *contact, transport, remote) {
            request.headers.set("Contact", header);
        }
        let (speaker, call) = (speaker.clone(), *call);
        if let Owner::Ack(invite) = *owner {
            let bytes: Arc<[u8]> = request.to_bytes().into();
            let tag = to_tag(request.headers.to().ok().flatten());
            self.transactions.send(route.clone(), bytes.clone());
            self.trace(&speaker, call, true, &route, &bytes);
            if let Some(invite) = self.exchanges.get_mut(&invite) {
                invite.acks.push((tag, route, bytes));
            }
            return true;
        }
        let sent = self
            .transactions
            .request(now, request.clone(), route.clone());
        if let Ok(client) = sent {
            exchange.client = Some(client);
            exchange.route = Some(route.clone());
            exchange.proceeding = false;
            self.clients.insert(client, id);
            if let Some((_, bytes)) = self.transactions.sent(client) {
                let bytes = bytes.clone();
                self.trace(&speaker, call, true, &route, &bytes);
            }
        } else {
            self.counters.full = self.counters.full.saturating_add(1);
        }
        self.exchanges.insert(id, exchange);
        sent.is_ok()
    }

    /// The Contact header field of a request.
    fn contact_of(
        &self,
        speaker: &Speaker,
        contact: Contact,
        transport: Transport,
        remote: std::net::IpAddr,
    ) -> Option<String> {
        let header = match contact {
            Contact::No => return None,
            Contact::Plain | Contact::Register(_) => {
                self.contact_header(speaker, transport, remote)?
            }
        };
        let Contact::Register(seconds) = contact else {
            return Some(header.to_string());
        };
        let mut text = format!("{header};expires={seconds}");
        let account = speaker.account.and_then(|id| self.accounts.get(&id));
        if let Some(old) = account
            .and_then(|account| account.contact.as_ref())
            .filter(|old| **old != header.uri)
        {
            text = format!("{text}, <{old}>;expires=0");
        }
        Some(text)
    }

    /// Takes an answer to a request of ours.
    pub(super) fn on_response(
        &mut self,
        now: Instant,
        client: ClientId,
        response: Arc<Response>,
        bytes: &[u8],
        flow: &Flow,
    ) {
        let Some(&id) = self.clients.get(&client) else {
            return;
        };
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return;
        };
        let (speaker, call) = (exchange.sending.speaker.clone(), exchange.sending.call);
        if speaker.profile.trace {
            self.trace(&speaker, call, false, &Route::Flow(*flow), bytes);
        }
        if response.status.is_provisional() {
            self.provisional(now, id, response);
        } else if response.status.is_success() {
            self.succeeded(now, id, response);
        } else {
            self.refused(now, id, response);
        }
    }

    fn provisional(&mut self, now: Instant, id: ExchangeId, response: Arc<Response>) {
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return;
        };
        let first = !std::mem::replace(&mut exchange.proceeding, true);
        if let (true, Some(client), Some(headers)) = (first, exchange.client, &exchange.cancel) {
            self.transactions.cancel(now, client, headers);
            return;
        }
        if let Owner::Invite(call) = exchange.sending.owner
            && response.status != StatusCode::TRYING
            && exchange.cancel.is_none()
        {
            let request = exchange.sending.request.clone();
            self.call_progress(now, call, &request, response);
        }
    }

    fn succeeded(&mut self, now: Instant, id: ExchangeId, response: Arc<Response>) {
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return;
        };
        if exchange.sending.request.method != Method::Invite {
            self.finish(
                now,
                id,
                response.status.code(),
                response.reason.clone(),
                Some(response),
            );
            return;
        }
        // An INVITE stays for the answers of other forks, and for repetitions.
        exchange.accepted = true;
        let tag = to_tag(response.headers.to().ok().flatten());
        if let Some((_, route, bytes)) = exchange.acks.iter().find(|(other, ..)| *other == tag) {
            let (route, bytes) = (route.clone(), bytes.clone());
            self.transactions.send(route, bytes);
            return;
        }
        let owner = exchange.sending.owner;
        let answer = Answer {
            code: response.status.code(),
            reason: response.reason.clone(),
            response: Some(response),
            request: exchange.sending.request.clone(),
            route: exchange.route.clone(),
            digest: Digest::new(),
        };
        self.invite_accepted(now, owner, id, answer);
    }

    fn refused(&mut self, now: Instant, id: ExchangeId, response: Arc<Response>) {
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return;
        };
        let code = response.status.code();
        let cancelled = exchange.cancel.is_some();
        if !cancelled && Kind::of(response.status).is_some() {
            match self.authorize(id, &response) {
                Authorized::Again(route) => self.attempt(now, id, Some(route)),
                Authorized::Refused => {
                    let reason = "Operation has no matching challenge".to_owned();
                    self.finish(now, id, REFUSED, reason, Some(response));
                }
                Authorized::NoAnswer => {
                    self.finish(now, id, code, response.reason.clone(), Some(response))
                }
            }
            return;
        }
        if code == 503 && !cancelled && !exchange.targets.is_empty() {
            self.attempt(now, id, None);
            return;
        }
        self.finish(now, id, code, response.reason.clone(), Some(response));
    }

    /// Answers a challenge.
    fn authorize(&mut self, id: ExchangeId, response: &Response) -> Authorized {
        let cnonce = self.token(16);
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return Authorized::NoAnswer;
        };
        let Sending {
            credentials,
            digest,
            request,
            owner,
            ..
        } = &mut exchange.sending;
        let (Some(credentials), Some(route)) = (credentials, exchange.route.clone()) else {
            return Authorized::NoAnswer;
        };
        match digest.challenged(response, credentials) {
            Ok(()) => {}
            Err(DigestError::NoChallenge) => return Authorized::NoAnswer,
            Err(DigestError::NoMatch | DigestError::Refused) => return Authorized::Refused,
        }
        digest.authorize(request, credentials, &cnonce);
        let owner = *owner;
        let method = request.method.clone();
        let used = request
            .headers
            .cseq()
            .ok()
            .flatten()
            .map_or(0, |cseq| cseq.number);
        // Within a dialog others may have been sent meanwhile.
        let number = self
            .next_cseq(owner)
            .unwrap_or_else(|| used.wrapping_add(1) & 0x7fff_ffff);
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange
                .sending
                .request
                .headers
                .set("CSeq", format_args!("{number} {method}"));
        }
        Authorized::Again(route)
    }

    /// Takes what time, or the lack of a way, brought for a transaction of ours.
    pub(super) fn on_event(&mut self, now: Instant, event: &Event) {
        let (client, code, reason) = match *event {
            Event::TimedOut(client) => (client, 408, "Request Timeout"),
            Event::Unreachable(client) => (client, 503, "Service Unavailable"),
            Event::ClientEnded(client) => {
                if let Some(id) = self.clients.remove(&client)
                    && self
                        .exchanges
                        .get(&id)
                        .is_some_and(|exchange| exchange.client == Some(client))
                {
                    self.exchanges.remove(&id);
                }
                return;
            }
            Event::ServerEnded(server) => {
                self.servers.remove(&server);
                return;
            }
        };
        let Some(id) = self.clients.remove(&client) else {
            return;
        };
        let Some(exchange) = self
            .exchanges
            .get(&id)
            .filter(|exchange| exchange.client == Some(client))
        else {
            return;
        };
        if exchange.cancel.is_none() && !exchange.targets.is_empty() {
            self.attempt(now, id, None);
        } else {
            self.failed(now, id, code, reason);
        }
    }

    pub(super) fn failed(&mut self, now: Instant, id: ExchangeId, code: u16, reason: &str) {
        self.finish(now, id, code, reason.to_owned(), None);
    }

    /// Ends an exchange, and tells its owner.
    fn finish(
        &mut self,
        now: Instant,
        id: ExchangeId,
        code: u16,
        reason: String,
        response: Option<Arc<Response>>,
    ) {
        let Some(exchange) = self.exchanges.remove(&id) else {
            return;
        };
        if let Some(client) = exchange.client {
            self.clients.remove(&client);
        }
        let Sending {
            owner,
            request,
            digest,
            ..
        } = exchange.sending;
        let answer = Answer {
            code,
            reason,
            response,
            request,
            route: exchange.route,
            digest,
        };
        match owner {
            Owner::Register(account) => self.registered(now, account, id, answer),
            Owner::KeepAlive(account) => self.kept_alive(now, account, &answer),
            Owner::Invite(call) => self.invite_refused(now, call, answer),
            Owner::Reinvite(call) => self.reinvite_refused(now, call, answer),
            Owner::Refresh(call) => self.refreshed(now, call, &answer),
            Owner::Bye(call) => self.bye_answered(now, call),
            Owner::Within(call, request) => self.answered_within(call, request, answer),
            Owner::Outside(request) => self.answered_outside(request, answer),
            Owner::Subscribe(subscription) => self.subscribed(now, subscription, answer),
            Owner::Publish(publication) => self.published(now, publication, answer),
            Owner::NotifyRefer(refer) => self.notified_refer(refer, &answer),
            Owner::Ack(_) | Owner::Nobody => {}
        }
    }

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
        ack: Request,
        flow: Option<Flow>,
        call: Option<CallId>,
    ) {
        let mut sending = Sending::within(Owner::Ack(invite), speaker.clone(), ack, call);
        sending.flow = flow;
        sending.credentials = None;
        self.send(now, sending);
    }

    /// The number for a request that is sent again within a dialog.
    fn next_cseq(&mut self, owner: Owner) -> Option<u32> {
        match owner {
            Owner::Reinvite(call)
            | Owner::Refresh(call)
            | Owner::Bye(call)
            | Owner::Within(call, _) => self
                .calls
                .get_mut(&call)?
                .dialog
                .as_mut()
                .map(|dialog| dialog.next_cseq()),
            Owner::Subscribe(subscription) => self
                .subscriptions
                .get_mut(&subscription)?
                .dialog
                .as_mut()
                .map(|dialog| dialog.next_cseq()),
            Owner::NotifyRefer(refer) => self.refer_dialog(refer).map(|dialog| dialog.next_cseq()),
            _ => None,
        }
    }
}

enum Authorized {
    Again(Route),
    Refused,
    NoAnswer,
}

/// The tag of To; empty if there is none.
pub(super) fn to_tag(to: Option<NameAddr>) -> String {
    to.and_then(|to| to.tag().map(str::to_owned))
        .unwrap_or_default()
}

/// Where a request is to go next.
fn hop_of(sending: &Sending) -> Option<Destination> {
    let uri = sending
        .hop
        .clone()
        .unwrap_or_else(|| next_hop(&sending.request));
    let uri = uri.as_sip()?;
    let host = match uri.params.get("maddr") {
        Some(maddr) => maddr.parse().ok()?,
        None => uri.host.clone(),
    };
    let transport = match uri.transport() {
        Some(transport) => Some(transport.parse::<Transport>().ok()?),
        None => sending.speaker.profile.transport,
    };
    let transport = match transport {
        Some(Transport::Tcp | Transport::Udp) if uri.secure => Some(Transport::Tls),
        Some(Transport::Ws) if uri.secure => Some(Transport::Wss),
        other => other,
    };
    Some(Destination {
        host,
        port: uri.port,
        transport,
        secure: uri.secure,
    })
}

/// The target of a hop that needs no DNS (RFC 3263 section 4.1).
fn literal(hop: &Destination) -> Option<Target> {
    let Host::Address(address) = hop.host else {
        return None;
    };
    let transport = hop.transport.unwrap_or(if hop.secure {
        Transport::Tls
    } else {
        Transport::Udp
    });
    let port = hop.port.unwrap_or(transport.default_port());
    Some(Target {
        transport,
        remote: SocketAddr::new(address, port),
        host: hop.host.clone(),
    })
}
