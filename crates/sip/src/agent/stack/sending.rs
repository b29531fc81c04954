//! Sending of requests: the next hop, its addresses, Via and Contact.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::exchanges::{Exchange, ExchangeId, Outcome, Owner, Sending, SentAck, to_tag};
use super::{Contact, Stack};
use crate::agent::accounts::Speaker;
use crate::agent::timers::Timer;
use crate::agent::{Output, ResolveError, ResolveId, extensions};
use crate::dialog::next_hop;
use crate::flow::{Route, Target, Transport};
use crate::locate::{Destination, MAX_TARGETS};
use crate::message::{Host, Method, Via};

/// The largest request by UDP, in octets (RFC 3261 section 18.1.1): the MTU of the path is not
/// known.
const MOST_BY_UDP: usize = 1_300;
/// The octets that each hop adds to a request: Via and Contact.
const HOP: usize = 160;

impl Stack {
    /// Begins an exchange. Its owner gets the outcome later, even of a failure.
    pub(in crate::agent) fn send(&mut self, mut sending: Sending) -> ExchangeId {
        let id = ExchangeId(self.random.number());
        self.add_capabilities(&mut sending);
        if let Some(credentials) = &sending.credentials {
            sending.digest.start();
            if !sending.digest.is_empty() {
                let cnonce = self.random.token(16);
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
            addresses: Vec::new(),
            forbidden: None,
            route: None,
            client: None,
            proceeding: false,
            cancel: None,
            fallback: None,
            adapted: 0,
            acks: Vec::new(),
        };
        self.exchanges.insert(id, exchange);
        if let Some(flow) = flow {
            self.attempt(id, Some(Route::Flow(flow)));
            return id;
        }
        match hop {
            Some(destination) => match literal(&destination) {
                Some(target) => self.found(id, [target]),
                None => {
                    let resolve = ResolveId(self.random.number());
                    self.exchanges.set_resolving(resolve, id);
                    let patience = self.now + self.options.timers.timeout;
                    self.deadlines.set(Timer::Resolve(resolve), Some(patience));
                    self.push(Output::Resolve {
                        id: resolve,
                        destination,
                    });
                }
            },
            None => self.exchanges.set_unsent(id, "DNS Error"),
        }
        id
    }

    /// Adds Allow and Supported, where the method may have them.
    fn add_capabilities(&self, sending: &mut Sending) {
        let request = &mut sending.request;
        if request.method == Method::Ack {
            return;
        }
        let allow = self.allow(Some(&sending.speaker.profile));
        request.headers.set("Allow", allow);
        extensions::add_supported(request);
    }

    /// Takes the answer to [`Output::Resolve`].
    pub(in crate::agent) fn take_targets(
        &mut self,
        id: ResolveId,
        targets: Result<Vec<Target>, ResolveError>,
    ) -> Option<Outcome> {
        self.deadlines.set(Timer::Resolve(id), None);
        let id = self.exchanges.take_resolving(id)?;
        match targets {
            Ok(targets) if !targets.is_empty() => {
                self.found(id, targets);
                None
            }
            Err(ResolveError::NoTransport) => self.failed(id, 503, "Service Unavailable"),
            _ => self.failed(id, 503, "DNS Error"),
        }
    }

    fn found(&mut self, id: ExchangeId, targets: impl IntoIterator<Item = Target>) {
        if let Some(exchange) = self.exchanges.get_mut(id) {
            exchange.targets = targets.into_iter().take(MAX_TARGETS).collect();
            let targets = exchange.targets.iter();
            exchange.addresses = targets.map(|target| target.remote.ip()).collect();
            self.attempt(id, None);
        }
    }

    /// Sends the request on `route`, or to its next usable target.
    pub(super) fn attempt(&mut self, id: ExchangeId, mut route: Option<Route>) {
        loop {
            let Some(exchange) = self.exchanges.get_mut(id) else {
                return;
            };
            let next = route
                .take()
                .or_else(|| exchange.targets.pop_front().map(Route::Target));
            let Some(next) = next else {
                self.exchanges.set_unsent(id, "Service Unavailable");
                return;
            };
            if let Route::Target(target) = &next
                && !self.options.allow.allows(target.remote.ip())
            {
                exchange.forbidden = Some(target.remote.ip());
                continue;
            }
            match self.by_size(id, next) {
                (tcp, Some(udp)) => {
                    if let Some(exchange) = self.exchanges.get_mut(id) {
                        exchange.fallback = Some(udp);
                    }
                    route = Some(tcp);
                }
                (next, None) => {
                    if self.transmit(id, next) {
                        return;
                    }
                }
            }
        }
    }

    /// Selects TCP for large requests (RFC 3261 section 18.1.1), unless the account wants UDP or
    /// the far end has no TCP. The second part is the original target then.
    fn by_size(&self, id: ExchangeId, route: Route) -> (Route, Option<Target>) {
        let Route::Target(target) = &route else {
            return (route, None);
        };
        let is_wanted = self.exchanges.get(id).is_some_and(|exchange| {
            let Sending {
                speaker,
                request,
                owner,
                ..
            } = &exchange.sending;
            !matches!(owner, Owner::Ack(_))
                && speaker.profile.transport != Some(Transport::Udp)
                && request.to_bytes().len().saturating_add(HOP) > MOST_BY_UDP
        });
        let has_tcp = || self.local(Transport::Tcp, target.remote.ip()).is_some();
        if target.transport != Transport::Udp
            || !is_wanted
            || !has_tcp()
            || self.exchanges.udp_only.has(self.now, target.remote)
        {
            return (route, None);
        }
        let tcp = Target {
            transport: Transport::Tcp,
            ..target.clone()
        };
        let udp = target.clone();
        (Route::Target(tcp), Some(udp))
    }

    /// Sends a request by UDP, if only its size asked for TCP and the far end has none. Returns
    /// whether it did.
    pub(super) fn fall_back(&mut self, id: ExchangeId) -> bool {
        let exchange = self.exchanges.get_mut(id);
        let Some(udp) = exchange.and_then(|exchange| exchange.fallback.take()) else {
            return false;
        };
        self.exchanges.udp_only.add(self.now, udp.remote);
        self.attempt(id, Some(Route::Target(udp)));
        true
    }

    /// Sends the request on `route`. Returns whether it could.
    fn transmit(&mut self, id: ExchangeId, route: Route) -> bool {
        let (transport, remote) = (route.transport(), route.remote().ip());
        let branch = format!("z9hG4bK{}", self.random.token(20));
        let Some(via) = self
            .local(transport, remote)
            .map(|local| Via::new(transport.as_str(), local.host.clone(), local.port, &branch))
        else {
            return false;
        };
        let Some(mut exchange) = self.exchanges.take(id) else {
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
            if let Some(invite) = self.exchanges.get_mut(invite) {
                invite.acks.push(SentAck { tag, route, bytes });
            }
            return true;
        }
        let sent = self
            .transactions
            .request(self.now, request.clone(), route.clone());
        if let Ok(client) = sent {
            exchange.client = Some(client);
            exchange.route = Some(route.clone());
            exchange.proceeding = false;
            self.exchanges.set_client(client, id);
            if let Some((_, bytes)) = self.transactions.sent(client) {
                let bytes = bytes.clone();
                self.trace(&speaker, call, true, &route, &bytes);
            }
        } else {
            self.count_full();
        }
        self.exchanges.insert(id, exchange);
        sent.is_ok()
    }

    /// Returns the Contact header field of a request.
    fn contact_of(
        &self,
        speaker: &Speaker,
        contact: Contact,
        transport: Transport,
        remote: IpAddr,
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
        let account = speaker.account.and_then(|id| self.accounts.get(id));
        if let Some(old) = account
            .and_then(|account| account.contact.as_ref())
            .filter(|old| **old != header.uri)
        {
            text = format!("{text}, <{old}>;expires=0");
        }
        Some(text)
    }
}

/// Returns the next hop of a request.
fn hop_of(sending: &Sending) -> Option<Destination> {
    let uri = sending
        .hop
        .clone()
        .unwrap_or_else(|| next_hop(&sending.request));
    Destination::of(uri.as_sip()?, sending.speaker.profile.transport)
}

/// Returns the target of a hop that needs no DNS (RFC 3263 section 4.1).
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
