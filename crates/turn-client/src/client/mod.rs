//! The protocol: from the first request to the end of the allocation.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::{Duration, Instant};

use turn_types::attribute::{Data, Lifetime, XorPeerAddress, XorRelayedAddress};
use turn_types::channel::ChannelData;
use turn_types::message::DATA;
use turn_types::stun::attribute::ErrorCode;
use turn_types::stun::message::{Message, MessageClass, TransactionId};
use turn_types::stun::prelude::{Attribute, AttributeFromRaw, AttributeStaticType};

use crate::channels::{Channel, Channels, Envelope};
use crate::message::{self, Challenge, Request};
use crate::{CHANNEL_HEAD, Fault};

/// How long the first answer is waited for, twice as long after each repetition (RFC 8489 section 6.2.1).
const RETRY: Duration = Duration::from_millis(500);
/// How often a request is sent: for 15.5 s.
const SENT: u8 = 5;
/// How often a server may ask for another nonce before a request is answered.
const CHALLENGES: u8 = 3;
/// How often an allocation is refreshed, if it lasts that long: it keeps the mapping of a NAT on the way to the server alive,
/// and tells soon that the server is gone.
const REFRESH: Duration = Duration::from_secs(20);
/// How many refreshes in a row may stay without an answer, each sent as often as any request.
const UNANSWERED: u8 = 2;
/// How often channels are looked at.
const SWEEP: Duration = Duration::from_secs(5);
/// Channels that are asked for at a time.
const MOST_PENDING: usize = 512;

/// Long-term credentials (RFC 8489 section 9.2).
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name. It may have been made for a time, by a REST API for TURN servers.
    pub username: String,
    /// The password.
    pub password: String,
}

/// The password is not shown.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Login");
        shown
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// What has happened to the allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// There is one: this is its relayed address.
    Allocated(SocketAddr),
    /// There is none, or none any more. Nothing more comes of this client.
    Failed(Fault),
}

/// What a datagram of the server was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// Of the protocol. It may have led to something to transmit, or to an event.
    Consumed,
    /// A peer's datagram: who sent it, and where it is in what was received.
    Peer(SocketAddr, Range<usize>),
    /// Nothing that a TURN server has to say.
    Refused,
}

/// A request that is to be answered.
#[derive(Debug)]
struct Pending {
    request: Request,
    transaction: TransactionId,
    bytes: Vec<u8>,
    sent: u8,
    /// When it is sent again.
    next: Instant,
    wait: Duration,
    is_signed: bool,
    challenges: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Allocating,
    Allocated {
        relayed: SocketAddr,
        /// When it is refreshed.
        refresh: Instant,
    },
    Ended,
}

/// One allocation at a TURN server.
#[derive(Debug)]
pub struct Client {
    /// Tells its channels from those of other allocations.
    number: u16,
    login: Login,
    challenge: Option<Challenge>,
    state: State,
    /// An allocation of a former run was in the way.
    has_released: bool,
    /// Refreshes without an answer.
    unanswered: u8,
    pending: Vec<Pending>,
    channels: Channels,
    /// When channels are looked at next.
    sweep: Instant,
    out: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
    deadline: Option<Instant>,
}

impl Client {
    /// Begins to allocate an address. `number` tells this client from others that its owner has had.
    pub fn new(number: u16, login: Login, now: Instant) -> Self {
        let mut client = Client {
            number,
            login,
            challenge: None,
            state: State::Allocating,
            has_released: false,
            unanswered: 0,
            pending: Vec::new(),
            channels: Channels::default(),
            sweep: now + SWEEP,
            out: VecDeque::new(),
            events: VecDeque::new(),
            deadline: None,
        };
        client.send(Request::Allocate, 0, now);
        client
    }

    /// The relayed address, while there is an allocation.
    pub fn relayed(&self) -> Option<SocketAddr> {
        match self.state {
            State::Allocated { relayed, .. } => Some(relayed),
            State::Allocating | State::Ended => None,
        }
    }

    /// How many peers have a channel.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// The channel to a peer; the server is asked for it if it is new. `None` without an allocation, if the server refuses the
    /// peer, if the peer's address is of another family than the relayed one, or if there are too many.
    pub fn open(&mut self, peer: SocketAddr, now: Instant) -> Option<Channel> {
        let relayed = self.relayed()?;
        if relayed.is_ipv4() != peer.is_ipv4() {
            return None;
        }
        let has_room = self.pending.len() < MOST_PENDING;
        let is_known = || self.channels.knows(peer);
        if !has_room && !is_known() {
            return None;
        }
        let (number, is_new) = self.channels.open(peer, now)?;
        if is_new {
            self.send(Request::Bind { number, peer }, 0, now);
        }
        Some(Channel {
            allocation: self.number,
            number,
        })
    }

    /// How a datagram is sent by a channel. `None` if it is that of another allocation, or has expired.
    #[inline]
    pub fn envelope(&mut self, channel: Channel) -> Option<Envelope> {
        let is_ours = channel.allocation == self.number && self.relayed().is_some();
        self.channels.envelope(channel.number).filter(|_| is_ours)
    }

    /// A datagram for a peer, as the server takes it while the channel is not confirmed.
    pub fn indication(peer: SocketAddr, data: &[u8]) -> Vec<u8> {
        message::indication(peer, data)
    }

    /// Takes a datagram of the server.
    pub fn receive(&mut self, now: Instant, datagram: &[u8]) -> Received {
        if datagram.first().is_some_and(|first| first >> 6 == 1) {
            return self.channel_data(datagram);
        }
        let Ok(message) = Message::from_bytes(datagram) else {
            return Received::Refused;
        };
        match message.class() {
            MessageClass::Indication if message.method() == DATA => self.data(&message),
            MessageClass::Success | MessageClass::Error => self.response(&message, now),
            _ => Received::Refused,
        }
    }

    /// The next datagram for the server.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Client::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// Sends again what was not answered, and keeps what lasts for a time only.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.send_again(now);
        if let State::Allocated { refresh, .. } = self.state
            && now >= refresh
        {
            self.refresh(now);
        }
        if self.relayed().is_some() && now >= self.sweep {
            self.sweep = now + SWEEP;
            let room = MOST_PENDING.saturating_sub(self.pending.len());
            for (number, peer) in self.channels.sweep(now, room) {
                self.send(Request::Bind { number, peer }, 0, now);
            }
        }
        self.reckon();
    }

    /// Gives the allocation back. What is to be transmitted then need not be waited for: it expires by itself, too.
    pub fn close(&mut self) {
        if self.relayed().is_some() {
            let (_, bytes) = Request::Release.write(self.challenge.as_ref());
            self.out.push_back(bytes);
        }
        self.end();
    }

    fn refresh(&mut self, now: Instant) {
        if self.relayed().is_some() && !self.is_refreshing() {
            self.send(Request::Refresh, 0, now);
        }
    }

    fn is_refreshing(&self) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|it| it.request == Request::Refresh)
    }

    fn channel_data(&self, datagram: &[u8]) -> Received {
        let Ok((number, len)) = ChannelData::parse_header(datagram) else {
            return Received::Refused;
        };
        let range = CHANNEL_HEAD..CHANNEL_HEAD.saturating_add(len);
        match self.channels.peer(number) {
            Some(peer) if datagram.len() >= range.end => Received::Peer(peer, range),
            _ => Received::Refused,
        }
    }

    /// What a peer without a channel sent: the address is new, and of a host that may send.
    fn data(&self, message: &Message<'_>) -> Received {
        let mut peer = None;
        let mut data = None;
        for (offset, attribute) in message.iter_attributes() {
            match attribute.get_type() {
                XorPeerAddress::TYPE => {
                    let address = XorPeerAddress::from_raw(attribute).ok();
                    peer = address.map(|it| canonical(it.addr(message.transaction_id())));
                }
                Data::TYPE => {
                    let start = offset.saturating_add(CHANNEL_HEAD);
                    data = Some(start..start.saturating_add(usize::from(attribute.length())));
                }
                _ => {}
            }
        }
        match (peer, data) {
            (Some(peer), Some(data)) if self.relayed().is_some() => Received::Peer(peer, data),
            _ => Received::Refused,
        }
    }

    fn response(&mut self, response: &Message<'_>, now: Instant) -> Received {
        let transaction = response.transaction_id();
        let mut pending = self.pending.iter();
        let Some(at) = pending.position(|it| it.transaction == transaction) else {
            return Received::Refused;
        };
        let is_success = response.class() == MessageClass::Success;
        let key = self.challenge.as_ref().map(|challenge| &challenge.key);
        // A question for credentials is not signed, and neither are the errors of some servers.
        let is_wrong = |key| response.validate_integrity_with_key(key).is_err();
        if is_success && key.is_none_or(is_wrong) {
            return Received::Refused;
        }
        let pending = self.pending.swap_remove(at);
        match is_success {
            true => self.succeeded(pending.request, response, now),
            false => self.refused(&pending, response, now),
        }
        self.reckon();
        Received::Consumed
    }

    fn succeeded(&mut self, request: Request, response: &Message<'_>, now: Instant) {
        match request {
            Request::Allocate => {
                let Ok(relayed) = response.attribute::<XorRelayedAddress>() else {
                    return self.fail(Fault::Incomplete("relayed address"));
                };
                let relayed = canonical(relayed.addr(response.transaction_id()));
                self.last(relayed, response, now);
                self.sweep = now + SWEEP;
                self.events.push_back(Event::Allocated(relayed));
            }
            Request::Refresh => {
                if let Some(relayed) = self.relayed() {
                    self.last(relayed, response, now);
                }
            }
            Request::Release => self.send(Request::Allocate, 0, now),
            Request::Bind { number, .. } => self.channels.bound(number),
        }
    }

    /// The allocation lasts as long as the response says.
    fn last(&mut self, relayed: SocketAddr, response: &Message<'_>, now: Instant) {
        let Ok(lifetime) = response.attribute::<Lifetime>() else {
            return self.fail(Fault::Incomplete("lifetime"));
        };
        let lifetime = Duration::from_secs(lifetime.seconds().into());
        if lifetime.is_zero() {
            return self.fail(Fault::Ended);
        }
        let refresh = now + REFRESH.min(lifetime / 2);
        self.state = State::Allocated { relayed, refresh };
        self.unanswered = 0;
    }

    fn refused(&mut self, pending: &Pending, response: &Message<'_>, now: Instant) {
        let (code, reason) = match response.attribute::<ErrorCode>() {
            Ok(error) => (error.code(), error.reason().to_owned()),
            Err(_) => {
                return self.fail_request(pending.request, Fault::Incomplete("error code"), now);
            }
        };
        let asks =
            code == ErrorCode::STALE_NONCE || code == ErrorCode::UNAUTHORIZED && !pending.is_signed;
        if asks
            && pending.challenges < CHALLENGES
            && let Some(challenge) = Challenge::read(response, &self.login)
        {
            self.challenge = Some(challenge);
            let challenges = pending.challenges.saturating_add(1);
            return self.send(pending.request, challenges, now);
        }
        let fault = match code {
            ErrorCode::UNAUTHORIZED => Fault::Login,
            ErrorCode::ALLOCATION_MISMATCH => match pending.request {
                // Of a former run, by the same port: it has our credentials, or has to expire.
                Request::Allocate if !self.has_released => {
                    self.has_released = true;
                    return self.send(Request::Release, 0, now);
                }
                Request::Allocate | Request::Release => Fault::Mismatch,
                // It has restarted, or our address has changed.
                Request::Refresh | Request::Bind { .. } => return self.fail(Fault::Ended),
            },
            ErrorCode::WRONG_CREDENTIALS => Fault::Mismatch,
            code => Fault::Refused { code, reason },
        };
        self.fail_request(pending.request, fault, now);
    }

    /// A request has come to nothing.
    fn fail_request(&mut self, request: Request, fault: Fault, now: Instant) {
        match request {
            Request::Bind { number, .. } => self.channels.refused(number, now),
            Request::Allocate | Request::Refresh | Request::Release => self.fail(fault),
        }
    }

    fn fail(&mut self, fault: Fault) {
        self.end();
        self.events.push_back(Event::Failed(fault));
    }

    fn end(&mut self) {
        self.state = State::Ended;
        self.pending.clear();
        self.deadline = None;
    }

    fn send(&mut self, request: Request, challenges: u8, now: Instant) {
        let (transaction, bytes) = request.write(self.challenge.as_ref());
        let next = now + RETRY;
        self.out.push_back(bytes.clone());
        self.pending.push(Pending {
            request,
            transaction,
            bytes,
            sent: 1,
            next,
            wait: RETRY,
            is_signed: self.challenge.is_some(),
            challenges,
        });
        self.deadline = Some(self.deadline.map_or(next, |deadline| deadline.min(next)));
    }

    fn send_again(&mut self, now: Instant) {
        let mut unanswered = Vec::new();
        self.pending.retain_mut(|pending| {
            if now < pending.next {
                return true;
            }
            if pending.sent >= SENT {
                unanswered.push(pending.request);
                return false;
            }
            pending.sent = pending.sent.saturating_add(1);
            pending.wait = pending.wait.saturating_mul(2);
            pending.next = now + pending.wait;
            self.out.push_back(pending.bytes.clone());
            true
        });
        for request in unanswered {
            match request {
                // Is it there at all?
                Request::Bind { number, .. } => {
                    self.channels.unanswered(number, now);
                    self.refresh(now);
                }
                Request::Refresh if self.unanswered.saturating_add(1) < UNANSWERED => {
                    self.unanswered = self.unanswered.saturating_add(1);
                    self.refresh(now);
                }
                _ => self.fail(Fault::NoAnswer),
            }
        }
    }

    /// Sets the deadline anew.
    fn reckon(&mut self) {
        let own = match self.state {
            State::Allocated { refresh, .. } => {
                let refresh = Some(refresh).filter(|_| !self.is_refreshing());
                refresh.into_iter().chain([self.sweep]).min()
            }
            State::Allocating | State::Ended => None,
        };
        let pending = self.pending.iter().map(|pending| pending.next);
        self.deadline = pending.chain(own).min();
    }
}

/// IPv4 addresses in IPv6 are those.
fn canonical(address: SocketAddr) -> SocketAddr {
    let ip: IpAddr = address.ip().to_canonical();
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests;
