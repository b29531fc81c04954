//! An allocation: the peers and channels of its client (RFC 8656 sections 9 to 12).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use turn_types::stun::message::{IntegrityKey, TransactionId};

use crate::MediaAddresses;
use crate::places::Place;

/// The lifetime of a permission (RFC 8656 section 9).
const PERMISSION: Duration = Duration::from_secs(300);
/// The lifetime of a channel (RFC 8656 section 12).
const CHANNEL: Duration = Duration::from_secs(600);

/// The allocation of a client.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) username: String,
    pub(crate) key: IntegrityKey,
    /// The transaction of the request for it.
    pub(crate) transaction: TransactionId,
    /// The relayed transport address.
    pub(crate) relayed: SocketAddr,
    pub(crate) expires: Instant,
    pub(crate) media: Arc<MediaAddresses>,
    /// Permissions by IP address: at most as many as the media plane has addresses.
    permissions: Vec<(IpAddr, Instant)>,
    /// Peers: at most as many as the media plane has addresses.
    peers: Vec<Peer>,
    /// The number of datagrams that the client has sent.
    sent: u64,
    _place: Place,
}

/// An address of the media plane to which the client sends.
#[derive(Debug)]
struct Peer {
    /// The address as the client knows it.
    address: SocketAddr,
    /// The address to which the socket is bound.
    bound: SocketAddr,
    /// The channel with its expiry.
    channel: Option<(u16, Instant)>,
    /// The value of `sent` when the client last sent to it.
    sent: u64,
}

/// The channel's number or its peer is bound otherwise.
#[derive(Debug)]
pub(crate) struct ChannelTaken;

/// The form in which the client gets a peer's datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Envelope {
    /// ChannelData with this number.
    Channel(u16),
    /// An indication with the peer's address.
    Indication(SocketAddr),
}

impl Allocation {
    pub(crate) fn new(
        username: String,
        key: IntegrityKey,
        transaction: TransactionId,
        relayed: SocketAddr,
        expires: Instant,
        media: Arc<MediaAddresses>,
        place: Place,
    ) -> Self {
        Allocation {
            username,
            key,
            transaction,
            relayed,
            expires,
            media,
            permissions: Vec::new(),
            peers: Vec::new(),
            sent: 0,
            _place: place,
        }
    }

    /// Permits a peer of the media plane.
    pub(crate) fn permit(&mut self, peer: IpAddr, now: Instant) {
        let until = now + PERMISSION;
        match self.permissions.iter_mut().find(|(ip, _)| *ip == peer) {
            Some((_, expires)) => *expires = until,
            None => {
                // Drops addresses that the media plane no longer has.
                self.permissions.retain(|(_, expires)| *expires > now);
                self.permissions.push((peer, until));
            }
        }
    }

    /// Binds a channel to a peer of the media plane, and permits the peer.
    pub(crate) fn bind(
        &mut self,
        number: u16,
        address: SocketAddr,
        bound: SocketAddr,
        now: Instant,
    ) -> Result<(), ChannelTaken> {
        let is_valid = |peer: &&Peer| peer.channel.is_some_and(|(_, expires)| expires > now);
        let mut valid = self.peers.iter().filter(is_valid);
        let is_other = |peer: &Peer| {
            let has_number = peer.channel.is_some_and(|(it, _)| it == number);
            has_number != (peer.address == address)
        };
        if valid.any(is_other) {
            return Err(ChannelTaken);
        }
        for peer in &mut self.peers {
            peer.channel = peer.channel.filter(|(it, _)| *it != number);
        }
        self.permit(address.ip(), now);
        if let Some(peer) = self.peer(address, bound) {
            peer.channel = Some((number, now + CHANNEL));
        }
        Ok(())
    }

    /// Returns the destination of ChannelData. Returns `None` if the channel or the permission has
    /// expired.
    pub(crate) fn by_channel(&mut self, number: u16, now: Instant) -> Option<SocketAddr> {
        let is_it = |peer: &&mut Peer| {
            let channel = peer.channel;
            channel.is_some_and(|(it, expires)| it == number && expires > now)
        };
        let peer = self.peers.iter_mut().find(is_it)?;
        self.sent = self.sent.wrapping_add(1);
        peer.sent = self.sent;
        let (ip, bound) = (peer.address.ip(), peer.bound);
        self.permits(ip, now).then_some(bound)
    }

    /// Returns the destination of a Send indication. Returns `None` without a permission.
    pub(crate) fn by_address(&mut self, address: SocketAddr, now: Instant) -> Option<SocketAddr> {
        if !self.permits(address.ip(), now) {
            return None;
        }
        let bound = self.media.bound(address)?;
        let sent = self.sent.wrapping_add(1);
        self.sent = sent;
        self.peer(address, bound)?.sent = sent;
        Some(bound)
    }

    /// Returns the form of a datagram from the socket bound at `from`: with the address to which
    /// the client last sent. Returns `None` without a permission.
    pub(crate) fn envelope(&self, from: SocketAddr, now: Instant) -> Option<Envelope> {
        let of_it = self.peers.iter().filter(|peer| peer.bound == from);
        let known = of_it.max_by_key(|peer| peer.sent);
        if let Some(peer) = known
            && self.permits(peer.address.ip(), now)
        {
            let channel = peer.channel.filter(|(_, expires)| *expires > now);
            let number = channel.map(|(number, _)| Envelope::Channel(number));
            return Some(number.unwrap_or(Envelope::Indication(peer.address)));
        }
        self.media.bound(from)?;
        let mut names = self.media.known_as(from);
        let permitted = names.find(|it| self.permits(it.ip(), now));
        permitted.map(Envelope::Indication)
    }

    fn permits(&self, ip: IpAddr, now: Instant) -> bool {
        let mut permissions = self.permissions.iter();
        permissions.any(|(it, expires)| *it == ip && *expires > now)
    }

    /// Returns the entry of a peer. Makes it if necessary.
    fn peer(&mut self, address: SocketAddr, bound: SocketAddr) -> Option<&mut Peer> {
        if !self.peers.iter().any(|peer| peer.address == address) {
            // Drops addresses that the media plane no longer has.
            let media = &self.media;
            self.peers
                .retain(|it| media.bound(it.address) == Some(it.bound));
            self.peers.push(Peer {
                address,
                bound,
                channel: None,
                sent: 0,
            });
        }
        let mut peers = self.peers.iter_mut();
        peers.find(|peer| peer.address == address)
    }
}
