//! One allocation: whom its client may send to, and by which channels (RFC 8656 sections 9 to 12).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use turn_types::stun::message::{IntegrityKey, TransactionId};

use crate::MediaAddresses;
use crate::places::Place;

/// How long a permission lasts (RFC 8656 section 9).
const PERMISSION: Duration = Duration::from_secs(300);
/// How long a channel lasts (RFC 8656 section 12).
const CHANNEL: Duration = Duration::from_secs(600);

/// What a client has been given.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) username: String,
    pub(crate) key: IntegrityKey,
    /// The request that made it.
    pub(crate) transaction: TransactionId,
    /// The relayed transport address.
    pub(crate) relayed: SocketAddr,
    pub(crate) expires: Instant,
    pub(crate) media: Arc<MediaAddresses>,
    /// By IP address. There are as many at most as the media plane has addresses.
    permissions: Vec<(IpAddr, Instant)>,
    /// The same.
    peers: Vec<Peer>,
    /// Counts what the client sends.
    sent: u64,
    _place: Place,
}

/// An address of the media plane that the client sends to.
#[derive(Debug)]
struct Peer {
    /// As the client knows it.
    address: SocketAddr,
    /// Where the socket is bound.
    bound: SocketAddr,
    /// A channel, and when it expires.
    channel: Option<(u16, Instant)>,
    /// When the client last sent to it, in datagrams.
    sent: u64,
}

/// A channel cannot be bound: its number or the peer is another's.
#[derive(Debug)]
pub(crate) struct ChannelTaken;

/// How the client gets what a peer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Envelope {
    /// ChannelData of this number.
    Channel(u16),
    /// An indication that names the peer.
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

    /// Permits a peer, which is of the media plane.
    pub(crate) fn permit(&mut self, peer: IpAddr, now: Instant) {
        let until = now + PERMISSION;
        match self.permissions.iter_mut().find(|(ip, _)| *ip == peer) {
            Some((_, expires)) => *expires = until,
            None => {
                // What is left of addresses that the media plane had before.
                self.permissions.retain(|(_, expires)| *expires > now);
                self.permissions.push((peer, until));
            }
        }
    }

    /// Binds a channel to a peer, which is of the media plane, and permits the peer.
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

    /// Where ChannelData is to be sent. Returns `None` if the channel or the permission has expired.
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

    /// Where the data of a Send indication is to be sent. Returns `None` without a permission.
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

    /// How the client gets what came from the socket that is bound at `from`: under the name by which the client last sent
    /// to it. Returns `None` if there is no permission.
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

    /// The entry of a peer, which is made if there is none.
    fn peer(&mut self, address: SocketAddr, bound: SocketAddr) -> Option<&mut Peer> {
        if !self.peers.iter().any(|peer| peer.address == address) {
            // What is left of addresses that the media plane had before.
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
