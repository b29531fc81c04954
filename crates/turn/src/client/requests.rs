//! The handling of each request (RFC 8656 sections 7 to 12).

use std::net::IpAddr;
use std::time::Duration;

use turn_types::AddressFamily;
use turn_types::attribute::{
    ChannelNumber, EvenPort, Lifetime, RequestedAddressFamily, RequestedTransport,
    ReservationToken, XorPeerAddress, XorRelayedAddress,
};
use turn_types::stun::attribute::{
    AttributeType, ErrorCode, MessageIntegrity, Nonce, RawAttribute, Realm, Username,
    XorMappedAddress,
};
use turn_types::stun::message::Message;
use turn_types::stun::prelude::{Attribute, AttributeFromRaw, AttributeStaticType};

use super::{Action, Client, Pending, Refusal, User, canonical};
use crate::allocation::Allocation;
use crate::places::Full;
use crate::{Now, Shared, TurnRefused, message};

/// The shortest lifetime of an allocation, and the default one (RFC 8656 section 3.2).
const LIFETIME: Duration = Duration::from_secs(600);

/// The numbers of channels. RFC 8656 has those up to 0x4FFF, RFC 5766 more.
const CHANNELS: std::ops::RangeInclusive<u16> = 0x4000..=0x7FFF;

const UNSUPPORTED_FAMILY: Refusal = Refusal::Code(
    ErrorCode::ADDRESS_FAMILY_NOT_SUPPORTED,
    TurnRefused::Malformed,
);

impl Client {
    pub(super) fn allocate(
        &mut self,
        shared: &Shared,
        datagram: &[u8],
        request: &Message<'_>,
        user: User,
        now: Now,
    ) -> Result<Action<'static>, Refusal> {
        if let Some(allocation) = self.live(now) {
            // The response got lost.
            let is_again = allocation.transaction == request.transaction_id();
            return match is_again && allocation.username == user.name {
                true => Ok(Action::Reply(self.allocated(request, now))),
                false => Err(Refusal::MISMATCH),
            };
        }
        let mut transport = None;
        let mut family = AddressFamily::IPV4;
        let mut lifetime = None;
        read(request, |attribute| {
            match attribute.get_type() {
                RequestedTransport::TYPE => {
                    transport = RequestedTransport::from_raw(attribute).ok();
                }
                RequestedAddressFamily::TYPE => {
                    let asked = RequestedAddressFamily::from_raw(attribute);
                    family = asked.map_err(|_| UNSUPPORTED_FAMILY)?.family();
                }
                Lifetime::TYPE => lifetime = Lifetime::from_raw(attribute).ok(),
                // Pairs of ports are for separate RTP and RTCP, which is not supported.
                EvenPort::TYPE | ReservationToken::TYPE => {
                    let code = ErrorCode::INSUFFICIENT_CAPACITY;
                    return Err(Refusal::Code(code, TurnRefused::Malformed));
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let transport = transport.ok_or(Refusal::MALFORMED)?;
        if transport.protocol() != RequestedTransport::UDP {
            let code = ErrorCode::UNSUPPORTED_TRANSPORT_PROTOCOL;
            return Err(Refusal::Code(code, TurnRefused::Malformed));
        }
        let Some(bind) = shared.media().relay(family == AddressFamily::IPV4) else {
            return Err(UNSUPPORTED_FAMILY);
        };
        let place = shared
            .take_place(self.address.ip())
            .map_err(|full| match full {
                Full::Address => {
                    Refusal::Code(ErrorCode::ALLOCATION_QUOTA_REACHED, TurnRefused::Quota)
                }
                Full::All => Refusal::Code(ErrorCode::INSUFFICIENT_CAPACITY, TurnRefused::Capacity),
            })?;
        Ok(Action::Open(Pending {
            bind,
            request: datagram.to_vec(),
            user,
            lifetime: granted(shared, lifetime.map(|it| it.seconds())),
            place,
        }))
    }

    /// Returns the response to the request for the allocation.
    pub(super) fn allocated(&self, request: &Message<'_>, now: Now) -> Vec<u8> {
        let Some(allocation) = &self.allocation else {
            return Vec::new();
        };
        let left = allocation.expires.saturating_duration_since(now.instant);
        let lifetime = Lifetime::new(u32::try_from(left.as_secs()).unwrap_or(u32::MAX));
        let transaction = request.transaction_id();
        let relayed = XorRelayedAddress::new(allocation.relayed, transaction);
        let mapped = XorMappedAddress::new(self.address, transaction);
        message::success(
            request,
            &[&relayed, &lifetime, &mapped],
            Some(&allocation.key),
        )
    }

    pub(super) fn refresh(
        &mut self,
        shared: &Shared,
        request: &Message<'_>,
        user: &User,
        now: Now,
    ) -> Result<Action<'static>, Refusal> {
        let mut asked = None;
        let mut family = None;
        read(request, |attribute| {
            match attribute.get_type() {
                Lifetime::TYPE => asked = Lifetime::from_raw(attribute).ok(),
                RequestedAddressFamily::TYPE => {
                    family = RequestedAddressFamily::from_raw(attribute).ok();
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let asked = asked.map(|it| it.seconds());
        let is_ipv4 = family.map(|it| it.family() == AddressFamily::IPV4);
        let allocation = self.owned(user, now)?;
        if is_ipv4.is_some_and(|is_ipv4| is_ipv4 != allocation.relayed.is_ipv4()) {
            let code = ErrorCode::PEER_ADDRESS_FAMILY_MISMATCH;
            return Err(Refusal::Code(code, TurnRefused::Malformed));
        }
        if asked == Some(0) {
            let response = message::success(request, &[&Lifetime::new(0)], Some(&user.key));
            self.end(shared);
            return Ok(Action::Released(response));
        }
        let lifetime = granted(shared, asked);
        allocation.expires = now.instant + lifetime;
        let seconds = u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX);
        let lifetime = Lifetime::new(seconds);
        Ok(Action::Reply(message::success(
            request,
            &[&lifetime],
            Some(&user.key),
        )))
    }

    pub(super) fn create_permission(
        &mut self,
        shared: &Shared,
        request: &Message<'_>,
        user: &User,
        now: Now,
    ) -> Result<Action<'static>, Refusal> {
        let mut peers = Vec::new();
        read(request, |attribute| {
            if attribute.get_type() != XorPeerAddress::TYPE {
                return Ok(false);
            }
            let peer = XorPeerAddress::from_raw(attribute);
            let peer = peer.map_err(|_| Refusal::MALFORMED)?;
            peers.push(canonical(peer.addr(request.transaction_id())).ip());
            Ok(true)
        })?;
        if peers.is_empty() {
            return Err(Refusal::MALFORMED);
        }
        let media = shared.media();
        let allocation = self.owned(user, now)?;
        for peer in &peers {
            check_peer(allocation, *peer, media.has_ip(*peer))?;
        }
        allocation.media = media;
        for peer in peers {
            allocation.permit(peer, now.instant);
        }
        Ok(Action::Reply(message::success(
            request,
            &[],
            Some(&user.key),
        )))
    }

    pub(super) fn channel_bind(
        &mut self,
        shared: &Shared,
        request: &Message<'_>,
        user: &User,
        now: Now,
    ) -> Result<Action<'static>, Refusal> {
        let mut peer = None;
        let mut number = None;
        read(request, |attribute| {
            match attribute.get_type() {
                XorPeerAddress::TYPE => peer = XorPeerAddress::from_raw(attribute).ok(),
                ChannelNumber::TYPE => number = ChannelNumber::from_raw(attribute).ok(),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let (Some(peer), Some(number)) = (peer, number) else {
            return Err(Refusal::MALFORMED);
        };
        let (peer, number) = (
            canonical(peer.addr(request.transaction_id())),
            number.channel(),
        );
        if !CHANNELS.contains(&number) {
            return Err(Refusal::MALFORMED);
        }
        let media = shared.media();
        let allocation = self.owned(user, now)?;
        let bound = media.bound(peer);
        check_peer(allocation, peer.ip(), bound.is_some())?;
        let bound = bound.ok_or(Refusal::FORBIDDEN)?;
        allocation.media = media;
        let outcome = allocation.bind(number, peer, bound, now.instant);
        outcome.map_err(|_| Refusal::MALFORMED)?;
        Ok(Action::Reply(message::success(
            request,
            &[],
            Some(&user.key),
        )))
    }
}

/// Reads the attributes of a request except its credentials. `take` returns whether it knows an
/// attribute.
fn read(
    request: &Message<'_>,
    mut take: impl FnMut(RawAttribute<'_>) -> Result<bool, Refusal>,
) -> Result<(), Refusal> {
    let mut unknown = Vec::new();
    for (_, attribute) in request.iter_attributes() {
        let kind = attribute.get_type();
        if !CREDENTIALS.contains(&kind) && !take(attribute)? && kind.comprehension_required() {
            unknown.push(kind);
        }
    }
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(Refusal::Unknown(unknown)),
    }
}

/// The attributes of credentials.
const CREDENTIALS: [AttributeType; 4] = [
    Username::TYPE,
    Realm::TYPE,
    Nonce::TYPE,
    MessageIntegrity::TYPE,
];

/// Returns the lifetime of an allocation for the requested seconds.
fn granted(shared: &Shared, asked: Option<u32>) -> Duration {
    let asked = asked.map_or(LIFETIME, |seconds| Duration::from_secs(seconds.into()));
    asked.max(LIFETIME).min(shared.lifetime)
}

/// Refuses a peer of another address family, or one outside of this server's media.
fn check_peer(allocation: &Allocation, peer: IpAddr, is_media: bool) -> Result<(), Refusal> {
    if peer.is_ipv4() != allocation.relayed.is_ipv4() {
        let code = ErrorCode::PEER_ADDRESS_FAMILY_MISMATCH;
        return Err(Refusal::Code(code, TurnRefused::Malformed));
    }
    match is_media {
        true => Ok(()),
        false => Err(Refusal::FORBIDDEN),
    }
}
