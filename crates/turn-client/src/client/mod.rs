//! The protocol from the first request to the end of the allocation.

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
use crate::{CHANNEL_HEAD, Fault, Login};

/// The wait for the first answer. It doubles after each retransmission (RFC 8489 section 6.2.1).
const RETRY: Duration = Duration::from_millis(500);
/// The transmissions of a request, over 15.5 s.
const SENT: u8 = 5;
/// How often a server may ask for another nonce per request.
const CHALLENGES: u8 = 3;
/// The interval of refreshes, if the allocation lasts longer. It keeps the mapping of a NAT before
/// the server, and soon shows that the server is gone.
const REFRESH: Duration = Duration::from_secs(20);
/// The most consecutive refreshes without an answer, each with all its retransmissions.
const UNANSWERED: u8 = 2;
/// The interval of maintaining channels.
const SWEEP: Duration = Duration::from_secs(5);
/// The most pending requests for channels.
const MOST_PENDING: usize = 512;

/// An event of the allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The allocation exists, with this relayed address.
    Allocated(SocketAddr),
    /// There is no allocation, or it has ended. The client has no further events.
    Failed(Fault),
}

/// The result of a received datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A message of the protocol. There may be datagrams to transmit and events.
    Consumed,
    /// A peer's datagram: its sender, and its place in the received one.
    Peer(SocketAddr, Range<usize>),
    /// Not a valid message of a TURN server.
    Refused,
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Pending {
    request: Request,
    transaction: TransactionId,
    bytes: Vec<u8>,
    sent: u8,
    /// When it is retransmitted.
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
    /// Distinguishes its channels from those of other allocations.
    number: u16,
    login: Login,
    challenge: Option<Challenge>,
    state: State,
    /// Whether an allocation of an earlier run was released.
    has_released: bool,
    /// Consecutive refreshes without an answer.
    unanswered: u8,
    pending: Vec<Pending>,
    channels: Channels,
    /// When channels are maintained next.
    sweep: Instant,
    out: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
    deadline: Option<Instant>,
}

impl Client {
    /// Requests an allocation. `number` distinguishes this client from others of its owner.
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

    /// Returns the relayed address while there is an allocation.
    pub fn relayed(&self) -> Option<SocketAddr> {
        match self.state {
            State::Allocated { relayed, .. } => Some(relayed),
            State::Allocating | State::Ended => None,
        }
    }

    /// Returns the number of peers with a channel.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Returns the channel to a peer, and requests a new one from the server. Returns `None`
    /// without an allocation, if the server refuses the peer, if the peer's address is of another
    /// family than the relayed one, or if there are too many channels.
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

    /// Returns the way of a datagram on a channel. Returns `None` if it belongs to another
    /// allocation, or has expired.
    #[inline]
    pub fn envelope(&mut self, channel: Channel) -> Option<Envelope> {
        let is_ours = channel.allocation == self.number && self.relayed().is_some();
        self.channels.envelope(channel.number).filter(|_| is_ours)
    }

    /// Returns a datagram for a peer while its channel is not confirmed.
    pub fn indication(peer: SocketAddr, data: &[u8]) -> Vec<u8> {
        message::indication(peer, data)
    }

    /// Takes a datagram from the server.
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

    /// Returns the next datagram for the server.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns when [`Client::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// Retransmits requests, and renews the allocation and its channels.
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

    /// Releases the allocation. The remaining datagram may be dropped, since the allocation also
    /// expires by itself.
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

    /// Takes data of a peer without a channel: it has a new address of a permitted host.
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
        // A request for credentials is not signed, and neither are the errors of some servers.
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

    /// Sets the lifetime of the allocation from a response.
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
                // An allocation of an earlier run on the same port: it has our credentials, or has
                // to expire.
                Request::Allocate if !self.has_released => {
                    self.has_released = true;
                    return self.send(Request::Release, 0, now);
                }
                Request::Allocate | Request::Release => Fault::Mismatch,
                // The server has restarted, or our address has changed.
                Request::Refresh | Request::Bind { .. } => return self.fail(Fault::Ended),
            },
            ErrorCode::WRONG_CREDENTIALS => Fault::Mismatch,
            code => Fault::Refused { code, reason },
        };
        self.fail_request(pending.request, fault, now);
    }

    /// Handles a failed request.
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
                // The refresh shows whether the server is still there.
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

    /// Computes the deadline.
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

/// Returns IPv4 for IPv4-mapped addresses.
fn canonical(address: SocketAddr) -> SocketAddr {
    let ip: IpAddr = address.ip().to_canonical();
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests;
