//! Datagrams of other nodes: found by their address, opened, and RTCP read.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use portunus_rtp::Ssrc;
use portunus_rtp::rtcp::{self, ReportBlock};

use super::{LinkSocket, NodeLinks};
use crate::node_link::{FarWorker, LinkRefusal, NodeLinkId, Received, rtcp_ssrc};
use crate::sys::ReceiveBatch;

/// The number of messages per recvmmsg call. The kernel may have joined up to 64 datagrams in each.
const MESSAGES: usize = 8;
/// The maximum number of datagrams per turn, so that they are relayed while they are in the core's
/// cache.
const DATAGRAMS_PER_TURN: usize = 256;

/// Where a datagram came from: the slot of the link, and the worker at its other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) struct Origin {
    link: usize,
    pub(in crate::worker) far: u16,
}

/// A datagram of another node that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum Opened {
    /// A packet for an ingest.
    Packet(Received),
    /// A packet that came before.
    Repeated,
    /// A compound of RTCP of this length.
    Rtcp(Origin, usize),
}

/// What a report of another node says of a stream.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) enum Answered {
    /// It answers our own report.
    Own,
    /// It is on the stream of the outlet in this slot.
    Outlet(usize),
    Unknown,
}

impl NodeLinks {
    /// Reads the socket. `take` gets each datagram with its sender. Returns whether there may be
    /// more.
    pub(in crate::worker) fn take_ready(&mut self) -> bool {
        self.socket
            .as_mut()
            .is_some_and(|socket| std::mem::take(&mut socket.is_ready))
    }

    /// Receives messages. Returns their number.
    pub(in crate::worker) fn receive(&self, batch: &mut ReceiveBatch) -> usize {
        let socket = self.socket.as_ref();
        socket.map_or(0, |LinkSocket { socket, .. }| {
            batch.receive_up_to(socket, MESSAGES).unwrap_or(0)
        })
    }

    /// Whether there may be more after this number of messages and datagrams. The socket is then
    /// read again in the next turn.
    pub(in crate::worker) fn goes_on(&mut self, messages: usize, datagrams: usize) -> Reading {
        if messages < MESSAGES {
            return Reading::Empty;
        }
        if datagrams < DATAGRAMS_PER_TURN {
            return Reading::More;
        }
        if let Some(socket) = &mut self.socket {
            socket.is_ready = true;
        }
        Reading::Later
    }

    /// Opens a datagram in place.
    pub(in crate::worker) fn open_datagram(
        &mut self,
        from: SocketAddr,
        datagram: &mut [u8],
        now: Instant,
    ) -> Result<Opened, LinkRefusal> {
        let known = self.by_address.get(&from).copied();
        let (link, far) = known.ok_or(LinkRefusal::UnknownAddress)?;
        self.has_changed = true;
        let entry = self.slots.get_mut(link);
        let state = &mut entry.ok_or(LinkRefusal::UnknownAddress)?.state;
        let opened = match rtcp::is_rtcp(datagram) {
            true => state
                .receive_rtcp(far, datagram)
                .map(|len| Opened::Rtcp(Origin { link, far }, len)),
            false => state
                .receive(far, datagram, now)
                .map(|received| received.map_or(Opened::Repeated, Opened::Packet)),
        };
        let opened = opened.inspect_err(|why| state.status.refuse(*why))?;
        if let Opened::Packet(Received {
            replaces: Some((link, ssrc)),
            ..
        }) = opened
            && let Some(former) = self.get_mut(link)
        {
            former.state.supersede(ssrc);
        }
        Ok(opened)
    }

    /// Returns the slot of the outlet that sends a stream to `origin`, and the round trip.
    pub(in crate::worker) fn outlet(
        &self,
        origin: Origin,
        ssrc: Ssrc,
    ) -> Option<(usize, Duration)> {
        let link = self.slots.get(origin.link)?;
        let outlet = link.outlets.get(&ssrc)?;
        let far = link.state.far.get(usize::from(origin.far));
        let round_trip = far.map_or_else(Duration::default, FarWorker::round_trip);
        Some((*outlet, round_trip))
    }

    /// Takes a sender report of `origin`. Returns the ingest and encoding that it is about, if any.
    pub(in crate::worker) fn take_sender_report(
        &mut self,
        origin: Origin,
        (ssrc, ntp): (Ssrc, u64),
        now: Instant,
    ) -> Option<(usize, u8)> {
        let link = self.slots.get_mut(origin.link)?;
        if ssrc == rtcp_ssrc(origin.far) {
            let far = link.state.far.get_mut(usize::from(origin.far))?;
            far.reported(ntp, now);
            return None;
        }
        let incoming = link.state.stream_of(origin.far, ssrc)?;
        incoming.stream.sender_report(ntp, now);
        Some((incoming.slot, incoming.encoding))
    }

    /// Takes a report block of `origin`.
    pub(in crate::worker) fn take_block(
        &mut self,
        origin: Origin,
        block: &ReportBlock,
        now: Instant,
    ) -> Answered {
        let Some(link) = self.slots.get_mut(origin.link) else {
            return Answered::Unknown;
        };
        if block.ssrc == link.state.own_ssrc() {
            let far = link.state.far.get_mut(usize::from(origin.far));
            if let Some(round_trip) = far.and_then(|far| far.answered(block, now)) {
                link.state.status.note_round_trip(round_trip);
                if FarWorker::is_in_time(block) {
                    link.state.status.answered.fetch_add(1, Relaxed);
                }
            }
            return Answered::Own;
        }
        let outlet = link.outlets.get(&block.ssrc).copied();
        outlet.map_or(Answered::Unknown, Answered::Outlet)
    }

    /// Notes the worst loss that a report of `origin` tells, in 1/256.
    pub(in crate::worker) fn note_loss(&self, origin: Origin, fraction: u8) {
        if let Some(link) = self.slots.get(origin.link) {
            let worst = &link.state.status.fraction_lost;
            worst.store(u64::from(fraction), Relaxed);
        }
    }

    /// Counts keyframe requests of ours.
    pub(in crate::worker) fn count_keyframes(&self, link: NodeLinkId, requests: u64) {
        let link = self.by_id.get(&link).and_then(|slot| self.slots.get(*slot));
        if let Some(link) = link {
            link.state
                .status
                .keyframe_requests
                .fetch_add(requests, Relaxed);
        }
    }
}

/// What reading the socket does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum Reading {
    More,
    /// In the next turn.
    Later,
    Empty,
}
