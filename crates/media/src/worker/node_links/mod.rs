//! The node links of a worker, and their socket.

mod intake;
mod reports;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Events, Interest, Registry, Token};
use portunus_rtc::streams::NtpClock;
use portunus_rtp::Ssrc;
use slab::Slab;

use super::ingests::Ingests;
use crate::IngestId;
use crate::command::NewNodeLink;
use crate::node_link::{FarWorker, Incoming, KeyChange, NodeLinkId, NodeLinkState, RelayedStream};
use crate::outlet::LinkWay;
use crate::sys::{Destination, MediaSocket, SendBatch, SendCounters, enable_gro, send_batch};

pub(super) use intake::{Answered, Opened, Origin, Reading};
pub(super) use reports::StreamReport;

/// The poll's token for the socket of node links.
const TOKEN: Token = Token(15);
/// Room for a compound of RTCP with its tag, in bytes.
const COMPOUND: usize = 1_232;

/// All node links of a worker. Invariants:
///
/// - A link keeps its slot, and can be found by its id and by the addresses of its other end.
/// - A link knows the outlets whose streams it carries.
pub(super) struct NodeLinks {
    /// The index of the worker.
    worker: u16,
    clock: NtpClock,
    socket: Option<LinkSocket>,
    slots: Slab<Link>,
    by_id: HashMap<NodeLinkId, usize>,
    /// The link and the index of the worker at its other end.
    by_address: HashMap<SocketAddr, (usize, u16)>,
    /// When something is due, unless it has changed since.
    due: Option<Instant>,
    has_changed: bool,
}

/// A node link.
struct Link {
    id: NodeLinkId,
    state: NodeLinkState,
    /// The slots of the outlets, by the SSRCs of their streams.
    outlets: HashMap<Ssrc, usize>,
}

/// The socket of all links, and what waits to leave by it.
struct LinkSocket {
    socket: MediaSocket,
    batch: SendBatch,
    is_ready: bool,
}

/// The way of a stream over a link, for a burst of its packets.
pub(in crate::worker) struct StreamWay<'a> {
    socket: &'a mut LinkSocket,
    link: LinkWay<'a>,
    to: Destination,
}

impl StreamWay<'_> {
    /// Writes a datagram into the room, and queues it.
    pub(in crate::worker) fn send(
        &mut self,
        write: impl FnOnce(&LinkWay<'_>, &mut [u8]) -> Option<usize>,
    ) {
        let room = self.socket.batch.room(&self.socket.socket);
        if let Some(len) = write(&self.link, room) {
            self.socket.batch.commit(len, &self.to);
        }
    }
}

impl NodeLinks {
    /// Returns no links. Reports use this clock.
    pub(super) fn new(worker: u16, clock: NtpClock) -> Self {
        Self {
            worker,
            clock,
            socket: None,
            slots: Slab::new(),
            by_id: HashMap::new(),
            by_address: HashMap::new(),
            due: None,
            has_changed: false,
        }
    }

    /// Takes the socket of all links.
    pub(super) fn open(&mut self, socket: MediaSocket, registry: &Registry) {
        let gro = enable_gro(&socket);
        let gso = socket.probe_gso();
        tracing::debug!(worker = self.worker, gro, gso, local = %socket.local(), "node link socket");
        let fd = socket.raw_fd();
        if let Err(error) = registry.register(&mut SourceFd(&fd), TOKEN, Interest::READABLE) {
            tracing::error!(worker = self.worker, %error, "cannot listen to the socket of node links");
            return;
        }
        self.socket = Some(LinkSocket {
            socket,
            batch: send_batch(gso),
            is_ready: true,
        });
    }

    /// Notes whether the poll found the socket readable.
    pub(super) fn note_ready(&mut self, events: &Events) {
        if let Some(socket) = &mut self.socket
            && events.iter().any(|event| event.token() == TOKEN)
        {
            socket.is_ready = true;
        }
    }

    /// Adds a link.
    pub(super) fn add(&mut self, new: NewNodeLink, now: Instant) {
        self.has_changed = true;
        let NewNodeLink {
            id,
            options,
            status,
        } = new;
        let state = NodeLinkState::new(self.worker, &options, status, now);
        let slot = self.slots.insert(Link {
            id,
            state,
            outlets: HashMap::new(),
        });
        self.by_id.insert(id, slot);
        for (far, address) in (0..).zip(&options.far) {
            // A link that replaces another one has the same addresses.
            self.by_address.insert(canonical(*address), (slot, far));
        }
    }

    /// Removes a link. Its streams end.
    pub(super) fn remove(&mut self, id: NodeLinkId) {
        if let Some(slot) = self.by_id.remove(&id) {
            self.slots.try_remove(slot);
            self.by_address.retain(|_, (of, _)| *of != slot);
        }
    }

    /// Uses another key.
    pub(super) fn set_key(&mut self, id: NodeLinkId, change: &KeyChange) {
        if let Some(link) = self.get_mut(id) {
            link.state.set_key(change);
        }
    }

    fn get_mut(&mut self, id: NodeLinkId) -> Option<&mut Link> {
        let slot = self.by_id.get(&id)?;
        self.has_changed = true;
        self.slots.get_mut(*slot)
    }

    /// Expects a stream of another node for an ingest.
    pub(super) fn expect(&mut self, stream: RelayedStream, ingests: &mut Ingests, now: Instant) {
        let RelayedStream {
            link,
            far,
            ssrc,
            ingest,
            encoding,
            replaces,
        } = stream;
        let Some(link) = self.get_mut(link) else {
            return;
        };
        let own = link.state.own_ssrc();
        let id = link.id;
        let Some((slot, clock_rate)) = ingests.join_link(ingest, encoding, ssrc, (id, far), own)
        else {
            return;
        };
        let mut incoming = Incoming::new((ingest, slot), encoding, (far, ssrc), clock_rate);
        incoming.replaces = replaces;
        link.state.expect(ssrc, incoming, now);
    }

    /// Forgets a stream of another node.
    pub(super) fn forget(&mut self, link: NodeLinkId, ssrc: Ssrc) {
        if let Some(link) = self.get_mut(link) {
            link.state.forget(ssrc);
        }
    }

    /// Forgets the streams of an ingest that is gone.
    pub(super) fn forget_ingest(&mut self, ingest: IngestId) {
        for (_, link) in &mut self.slots {
            link.state.forget_ingest(ingest);
        }
    }

    /// Notes the outlet of a stream. Returns whether the link exists.
    pub(super) fn join(
        &mut self,
        link: NodeLinkId,
        (ssrc, far): (Ssrc, u16),
        outlet: usize,
        now: Instant,
    ) -> bool {
        let Some(link) = self.get_mut(link) else {
            return false;
        };
        link.outlets.insert(ssrc, outlet);
        link.state.stream_begins(far, now);
        true
    }

    /// Notes that the outlet of a stream is gone.
    pub(super) fn leave(&mut self, link: NodeLinkId, (ssrc, far): (Ssrc, u16), outlet: usize) {
        if let Some(link) = self.get_mut(link)
            && link.outlets.get(&ssrc) == Some(&outlet)
        {
            link.outlets.remove(&ssrc);
            link.state.stream_ended(far);
        }
    }

    /// Sends a report to a worker of the other node soon.
    pub(super) fn report_soon(&mut self, link: NodeLinkId, far: u16, now: Instant) {
        let link = self.get_mut(link);
        let far = link.and_then(|link| link.state.far.get_mut(usize::from(far)));
        if let Some(far) = far {
            far.report_soon(now);
        }
    }

    /// Returns the way of a stream to a worker of the other node.
    pub(super) fn way(&mut self, link: NodeLinkId, far: u16) -> Option<StreamWay<'_>> {
        let socket = self.socket.as_mut()?;
        let link = self.slots.get(*self.by_id.get(&link)?)?;
        let to = link.state.far.get(usize::from(far))?.address;
        let to = socket.batch.destination(None, to);
        let link = LinkWay::new(&link.state)?;
        Some(StreamWay { socket, link, to })
    }

    /// Sends a compound of RTCP, which begins with our SSRC, to a worker of the other node.
    fn send_rtcp(&mut self, slot: usize, far: u16, compound: &[u8]) {
        let (Some(link), Some(socket)) = (self.slots.get_mut(slot), &mut self.socket) else {
            return;
        };
        send_rtcp(&mut link.state, socket, far, compound);
    }

    /// Sends the RTCP of an ingest, which begins with our SSRC, to the other node.
    pub(super) fn send_feedback(&mut self, link: NodeLinkId, far: u16, compound: &[u8]) {
        if let Some(slot) = self.by_id.get(&link).copied() {
            self.send_rtcp(slot, far, compound);
        }
    }

    /// Sends what is queued.
    pub(super) fn flush(&mut self) {
        if let Some(LinkSocket { socket, batch, .. }) = &mut self.socket {
            batch.flush(socket);
        }
    }

    /// Adds what links have sent to `others`.
    pub(super) fn counted(&self, others: SendCounters) -> SendCounters {
        let Some(socket) = &self.socket else {
            return others;
        };
        let own = socket.batch.counters();
        SendCounters {
            datagrams: others.datagrams + own.datagrams,
            bytes: others.bytes + own.bytes,
            calls: others.calls + own.calls,
            dropped: others.dropped + own.dropped,
            refused: others.refused + own.refused,
        }
    }

    /// When something is due.
    pub(super) fn timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Finds out when something is due, after changes.
    fn update_due(&mut self) {
        if !std::mem::take(&mut self.has_changed) {
            return;
        }
        let links = self.slots.iter().map(|(_, link)| &link.state);
        let due = links.flat_map(|link| {
            let reports = link.far.iter().filter_map(FarWorker::report_at);
            reports.chain(link.nack_at())
        });
        self.due = due.min();
    }

    /// Keeps datagrams for [`NodeLinks::take_kept`] instead of sending them.
    #[cfg(feature = "testing")]
    pub(super) fn keep(&mut self) {
        if let Some(socket) = &mut self.socket {
            socket.batch.diverted = Some(crate::sys::Diverted::Kept(Vec::new()));
        }
    }

    /// Drops datagrams instead of sending them.
    #[cfg(feature = "testing")]
    pub(super) fn drop(&mut self) {
        if let Some(socket) = &mut self.socket {
            socket.batch.diverted = Some(crate::sys::Diverted::Dropped);
        }
    }

    /// Returns the datagrams kept since the last call.
    #[cfg(feature = "testing")]
    pub(super) fn take_kept(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.flush();
        match self.socket.as_mut().map(|it| &mut it.batch.diverted) {
            Some(Some(crate::sys::Diverted::Kept(kept))) => std::mem::take(kept),
            _ => Vec::new(),
        }
    }
}

fn send_rtcp(link: &mut NodeLinkState, socket: &mut LinkSocket, far: u16, compound: &[u8]) {
    let to = link.far.get(usize::from(far)).map(|far| far.address);
    let LinkSocket { socket, batch, .. } = socket;
    let room = batch.room(socket);
    let Some(to) = to.filter(|_| compound.len() <= COMPOUND) else {
        return;
    };
    let Some(start) = room.get_mut(..compound.len()) else {
        return;
    };
    start.copy_from_slice(compound);
    if let Some(len) = link.seal_rtcp(compound.len(), room) {
        let to = batch.destination(None, to);
        batch.commit(len, &to);
    }
}

/// Returns an address as sockets tell it.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V6(ip) => {
            let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
            SocketAddr::new(ip, address.port())
        }
        IpAddr::V4(_) => address,
    }
}
