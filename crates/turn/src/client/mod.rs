//! The protocol with one client, sans-IO (RFC 8656).

mod requests;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use turn_types::attribute::{Data, XorPeerAddress};
use turn_types::channel::ChannelData;
use turn_types::message::{ALLOCATE, CHANNEL_BIND, CREATE_PERMISSION, REFRESH, SEND};
use turn_types::stun::attribute::{
    AttributeType, ErrorCode, MessageIntegrity, Nonce, Realm, Username, XorMappedAddress,
};
use turn_types::stun::message::{
    BINDING, IntegrityAlgorithm, IntegrityKey, LongTermKeyCredentials, Message, MessageClass,
};
use turn_types::stun::prelude::{Attribute, AttributeFromRaw, AttributeStaticType};

use crate::allocation::{Allocation, Envelope};
use crate::counters::count;
use crate::credentials;
use crate::framing::frame;
use crate::message::{self, REALM};
use crate::places::Place;
use crate::{Now, Shared, TurnRefused};

/// The bytes of the head of ChannelData.
const CHANNEL_HEAD: usize = 4;

/// The reaction to a datagram.
#[derive(Debug)]
pub enum Action<'d> {
    /// Nothing.
    Nothing,
    /// Send these bytes to the client.
    Reply(Vec<u8>),
    /// Send these bytes to the client, and close the relay socket of its ended allocation.
    Released(Vec<u8>),
    /// Open a relay socket, and call [`Client::opened`].
    Open(Pending),
    /// Send the datagram from the relay socket to a socket of the media plane.
    Relay {
        /// The bound address of the media socket.
        to: SocketAddr,
        /// The datagram.
        data: &'d [u8],
    },
}

/// A valid request for an allocation, which needs a socket.
#[derive(Debug)]
pub struct Pending {
    /// The address to bind the socket to. The kernel chooses the port.
    pub bind: IpAddr,
    request: Vec<u8>,
    user: User,
    lifetime: Duration,
    place: Place,
}

/// A user with valid credentials.
#[derive(Debug)]
struct User {
    name: String,
    key: IntegrityKey,
}

/// The reason why a request is refused, and whether the response is signed.
#[derive(Debug)]
enum Refusal {
    /// A signed error with this code.
    Code(u16, TurnRefused),
    /// An unsigned request for credentials.
    Challenge(u16, Option<TurnRefused>),
    /// Unknown attributes that would have to be understood.
    Unknown(Vec<AttributeType>),
}

impl Refusal {
    const MALFORMED: Refusal = Refusal::Code(ErrorCode::BAD_REQUEST, TurnRefused::Malformed);
    const MISMATCH: Refusal = Refusal::Code(ErrorCode::ALLOCATION_MISMATCH, TurnRefused::Mismatch);
    const FORBIDDEN: Refusal = Refusal::Code(ErrorCode::FORBIDDEN, TurnRefused::Forbidden);
}

/// A client: an address of UDP or of a connection. It takes little memory until it has an
/// allocation.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    allocation: Option<Box<Allocation>>,
}

impl Client {
    /// Makes a client without an allocation.
    pub fn new(address: SocketAddr) -> Self {
        let ip = address.ip().to_canonical();
        Client {
            address: SocketAddr::new(ip, address.port()),
            allocation: None,
        }
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether it has an allocation that has not expired.
    pub fn is_allocated(&self, now: Now) -> bool {
        let allocation = self.allocation.as_ref();
        allocation.is_some_and(|it| it.expires > now.instant)
    }

    /// Takes a message of the client: a UDP datagram, or a frame of a stream.
    pub fn receive<'d>(&mut self, shared: &Shared, datagram: &'d [u8], now: Now) -> Action<'d> {
        match datagram.first().map(|first| first >> 6) {
            Some(1) => self.channel_data(shared, datagram, now),
            Some(0) if is_stun(datagram) => match Message::from_bytes(datagram) {
                Ok(message) => self.message(shared, datagram, &message, now),
                Err(_) => self.garbage(shared),
            },
            _ => self.garbage(shared),
        }
    }

    /// Continues a request after the relay socket was bound at `relay`, or could not be opened.
    /// Returns the response.
    pub fn opened(
        &mut self,
        shared: &Shared,
        pending: Pending,
        relay: Option<SocketAddr>,
        now: Now,
    ) -> Vec<u8> {
        let Ok(request) = Message::from_bytes(&pending.request) else {
            return Vec::new();
        };
        let key = pending.user.key.clone();
        let Some(relay) = relay else {
            shared.counters.refused(TurnRefused::Capacity);
            return message::error(&request, ErrorCode::INSUFFICIENT_CAPACITY, Some(&key));
        };
        let allocation = Allocation::new(
            pending.user.name,
            pending.user.key,
            request.transaction_id(),
            relay,
            now.instant + pending.lifetime,
            shared.media(),
            pending.place,
        );
        self.end(shared);
        self.allocation = Some(Box::new(allocation));
        shared.allocation_made();
        self.allocated(&request, now)
    }

    /// Wraps data from the relay socket for the client: appends the head of ChannelData to `head`,
    /// or a whole indication. Returns whether `data` follows the head, or `None` if the client does
    /// not get it.
    pub fn envelop(
        &self,
        shared: &Shared,
        from: SocketAddr,
        data: &[u8],
        now: Now,
        head: &mut Vec<u8>,
    ) -> Option<bool> {
        let allocation = self.allocation.as_ref()?;
        let len = u16::try_from(data.len()).ok()?;
        let Some(envelope) = allocation.envelope(from, now.instant) else {
            count(&shared.counters.unwanted);
            return None;
        };
        match envelope {
            Envelope::Channel(number) => {
                head.extend(number.to_be_bytes());
                head.extend(len.to_be_bytes());
                Some(true)
            }
            Envelope::Indication(peer) => {
                head.extend(message::indication(peer, data));
                Some(false)
            }
        }
    }

    /// Ends the allocation, if there is one.
    pub fn end(&mut self, shared: &Shared) {
        if self.allocation.take().is_some() {
            shared.allocation_ended();
        }
    }

    fn garbage(&self, shared: &Shared) -> Action<'static> {
        count(&shared.counters.garbage);
        Action::Nothing
    }

    fn unwanted(&self, shared: &Shared) -> Action<'static> {
        count(&shared.counters.unwanted);
        Action::Nothing
    }

    fn channel_data<'d>(&mut self, shared: &Shared, datagram: &'d [u8], now: Now) -> Action<'d> {
        let Ok((number, len)) = ChannelData::parse_header(datagram) else {
            return self.garbage(shared);
        };
        let Some(data) = datagram.get(CHANNEL_HEAD..CHANNEL_HEAD.saturating_add(len)) else {
            return self.garbage(shared);
        };
        let to = self
            .live(now)
            .and_then(|it| it.by_channel(number, now.instant));
        match to {
            Some(to) => Action::Relay { to, data },
            None => self.unwanted(shared),
        }
    }

    fn message<'d>(
        &mut self,
        shared: &Shared,
        datagram: &'d [u8],
        message: &Message<'_>,
        now: Now,
    ) -> Action<'d> {
        match (message.class(), message.method()) {
            (MessageClass::Indication, SEND) => self.send(shared, datagram, message, now),
            (MessageClass::Request, BINDING) => self.binding(shared, message, now),
            (MessageClass::Request, _) => self.request(shared, datagram, message, now),
            _ => self.garbage(shared),
        }
    }

    /// Returns the client's address in a response (RFC 8489).
    fn binding(&self, shared: &Shared, request: &Message<'_>, now: Now) -> Action<'static> {
        if !self.may_be_answered(shared, now) {
            return Action::Nothing;
        }
        let address = XorMappedAddress::new(self.address, request.transaction_id());
        Action::Reply(message::success(request, &[&address], None))
    }

    fn send<'d>(
        &mut self,
        shared: &Shared,
        datagram: &'d [u8],
        message: &Message<'_>,
        now: Now,
    ) -> Action<'d> {
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
                    let end = start.saturating_add(usize::from(attribute.length()));
                    data = datagram.get(start..end);
                }
                other if other.comprehension_required() => return self.unwanted(shared),
                _ => {}
            }
        }
        let (Some(peer), Some(data)) = (peer, data) else {
            return self.garbage(shared);
        };
        let Some(allocation) = self.live(now) else {
            return self.unwanted(shared);
        };
        if allocation.media.bound(peer).is_none() {
            shared.counters.refused(TurnRefused::Forbidden);
            return Action::Nothing;
        }
        match allocation.by_address(peer, now.instant) {
            Some(to) => Action::Relay { to, data },
            None => self.unwanted(shared),
        }
    }

    fn request(
        &mut self,
        shared: &Shared,
        datagram: &[u8],
        request: &Message<'_>,
        now: Now,
    ) -> Action<'static> {
        let user = match self.authenticate(shared, request, now) {
            Ok(user) => user,
            Err(refusal) => return self.unauthenticated(shared, request, &refusal, now),
        };
        let key = user.key.clone();
        let done = match request.method() {
            ALLOCATE => self.allocate(shared, datagram, request, user, now),
            REFRESH => self.refresh(shared, request, &user, now),
            CREATE_PERMISSION => self.create_permission(shared, request, &user, now),
            CHANNEL_BIND => self.channel_bind(shared, request, &user, now),
            _ => Err(Refusal::MALFORMED),
        };
        done.unwrap_or_else(|refusal| {
            let (why, response) = match refusal {
                Refusal::Code(code, why) => (Some(why), message::error(request, code, Some(&key))),
                Refusal::Challenge(code, why) => (why, message::error(request, code, Some(&key))),
                Refusal::Unknown(attributes) => (
                    Some(TurnRefused::Malformed),
                    message::unknown(request, &attributes, Some(&key)),
                ),
            };
            if let Some(why) = why {
                shared.counters.refused(why);
            }
            Action::Reply(response)
        })
    }

    /// Returns whether a request without credentials is answered. The address of a client with an
    /// allocation is not forged.
    fn may_be_answered(&self, shared: &Shared, now: Now) -> bool {
        if self.is_allocated(now) || shared.answers.allow(self.address.ip(), now.instant) {
            return true;
        }
        count(&shared.counters.unanswered);
        false
    }

    /// Answers a client whose address may be forged.
    fn unauthenticated(
        &self,
        shared: &Shared,
        request: &Message<'_>,
        refusal: &Refusal,
        now: Now,
    ) -> Action<'static> {
        if let Refusal::Code(_, why) | Refusal::Challenge(_, Some(why)) = refusal {
            shared.counters.refused(*why);
        }
        if !self.may_be_answered(shared, now) {
            return Action::Nothing;
        }
        Action::Reply(match refusal {
            Refusal::Challenge(code, _) => {
                let nonce = shared.nonces.make(self.address, now.unix);
                message::challenge(request, *code, &nonce)
            }
            Refusal::Code(code, _) => message::error(request, *code, None),
            Refusal::Unknown(attributes) => message::unknown(request, attributes, None),
        })
    }

    /// Checks long-term credentials (RFC 8489 section 9.2.4).
    fn authenticate(
        &self,
        shared: &Shared,
        request: &Message<'_>,
        now: Now,
    ) -> Result<User, Refusal> {
        let wrong = || Refusal::Challenge(ErrorCode::UNAUTHORIZED, Some(TurnRefused::Credentials));
        if !request.has_attribute(MessageIntegrity::TYPE) {
            return Err(Refusal::Challenge(ErrorCode::UNAUTHORIZED, None));
        }
        let attributes = (
            request.attribute::<Username>(),
            request.attribute::<Realm>(),
            request.attribute::<Nonce>(),
        );
        let (Ok(name), Ok(realm), Ok(nonce)) = attributes else {
            return Err(Refusal::MALFORMED);
        };
        if !shared.nonces.accepts(nonce.nonce(), self.address, now.unix) {
            let why = Some(TurnRefused::Nonce);
            return Err(Refusal::Challenge(ErrorCode::STALE_NONCE, why));
        }
        let expiry = credentials::expiry(name.username()).ok_or_else(wrong)?;
        if realm.realm() != REALM {
            return Err(wrong());
        }
        let name = name.username().to_owned();
        let key = match &self.allocation {
            Some(allocation) if allocation.username == name => allocation.key.clone(),
            _ => {
                let password = shared.keychain.password(&name);
                let login = LongTermKeyCredentials::new(name.clone(), password, REALM.to_owned());
                login.make_key(IntegrityAlgorithm::Sha1)
            }
        };
        request
            .validate_integrity_with_key(&key)
            .map_err(|_| wrong())?;
        // An allocation outlives the credentials of its request.
        if request.method() == ALLOCATE && expiry < now.unix {
            let why = Some(TurnRefused::Expired);
            return Err(Refusal::Challenge(ErrorCode::UNAUTHORIZED, why));
        }
        Ok(User { name, key })
    }

    fn live(&mut self, now: Now) -> Option<&mut Allocation> {
        let allocation = self.allocation.as_deref_mut();
        allocation.filter(|it| it.expires > now.instant)
    }

    /// Returns the allocation, if it belongs to this user.
    fn owned(&mut self, user: &User, now: Now) -> Result<&mut Allocation, Refusal> {
        let allocation = self.live(now).ok_or(Refusal::MISMATCH)?;
        match allocation.username == user.name {
            true => Ok(allocation),
            false => Err(Refusal::Code(
                ErrorCode::WRONG_CREDENTIALS,
                TurnRefused::User,
            )),
        }
    }
}

/// Returns whether a datagram is one whole STUN message.
fn is_stun(datagram: &[u8]) -> bool {
    matches!(frame(datagram), Ok(Some((len, _))) if len == datagram.len())
}

/// Returns IPv4 for IPv4-mapped addresses.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests;
