//! The network side of forwarders: one socket for all that they send, and those of their RTCP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Events, Interest, Token};
use portunus_rtc::streams::NtpClock;
use portunus_rtp::Ssrc;
use portunus_rtp::rtcp::{Compound, Packet as Rtcp};
use slab::Slab;
use smallvec::SmallVec;
use socket2::SockRef;

use super::Outlets;
use crate::Encodings;
use crate::ingest::SharedSocket;
use crate::outlet::{ForwardRtcp, OutletEnd};
use crate::sys::{MediaSocket, ReceiveBatch, SendBatch, SendCounters, forward_batch};
use crate::worker::graph::Graph;

/// The first of the poll's tokens for the RTCP of forwarders. No worker has so many ingests.
const FIRST_TOKEN: usize = 1 << 24;
/// The number of messages per recvmmsg call, and of calls per socket and turn.
const MESSAGES: usize = 8;
const CALLS: usize = 4;

/// The socket by which all forwarders of a worker send.
pub(super) struct ForwardOut {
    socket: MediaSocket,
    pub(super) batch: SendBatch,
    /// Messages that the kernel did not send.
    refused: u64,
}

impl ForwardOut {
    /// Opens a socket for both families, or for IPv4 if there is no IPv6.
    pub(super) fn open() -> io::Result<Self> {
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        let socket = MediaSocket::bind(any)
            .or_else(|_| MediaSocket::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))))?;
        let batch = forward_batch(socket.probe_gso());
        Ok(Self {
            socket,
            batch,
            refused: 0,
        })
    }

    /// Returns room for a datagram, to be committed to the batch.
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.batch.room(&self.socket)
    }

    /// Sends a message of any length immediately.
    pub(super) fn send_message(&mut self, message: &[u8], to: SocketAddr) {
        let to = match to.ip() {
            IpAddr::V4(ip) if self.socket.local().is_ipv6() => {
                SocketAddr::new(ip.to_ipv6_mapped().into(), to.port())
            }
            IpAddr::V4(_) | IpAddr::V6(_) => to,
        };
        let sent = SockRef::from(&self.socket).send_to(message, &to.into());
        self.refused += u64::from(sent.is_err());
    }

    /// Sends the content of [`ForwardOut::room`] by a connected socket immediately.
    pub(super) fn send_by(&mut self, socket: &SharedSocket, len: usize) {
        let bytes = self.room().get(..len);
        let sent = bytes.map(|bytes| socket.send_connected(bytes));
        self.refused += u64::from(!matches!(sent, Some(Ok(_))));
    }

    /// Counts a message that is too long.
    pub(super) fn refuse_message(&mut self) {
        self.refused += 1;
    }

    fn counters(&self) -> SendCounters {
        let counters = self.batch.counters();
        SendCounters {
            refused: counters.refused + self.refused,
            ..counters
        }
    }
}

/// The network side of all forwarders of a worker.
pub(super) struct Forwarding {
    /// Opened with the first forwarder.
    pub(super) out: Option<ForwardOut>,
    ports: Slab<Port>,
    ready: Vec<usize>,
    /// When a report is due. `None` means not before something changes.
    pub(super) report_at: Option<Instant>,
    clock: NtpClock,
}

/// A socket for RTCP with a receiver.
struct Port {
    socket: SharedSocket,
    /// The slots of its outlets.
    members: SmallVec<[usize; 2]>,
    is_ready: bool,
}

impl Forwarding {
    pub(super) fn new(clock: NtpClock) -> Self {
        Self {
            out: None,
            ports: Slab::new(),
            ready: Vec::new(),
            report_at: None,
            clock,
        }
    }

    fn mark_ready(&mut self, index: usize) {
        if let Some(port) = self.ports.get_mut(index)
            && !std::mem::replace(&mut port.is_ready, true)
        {
            self.ready.push(index);
        }
    }

    /// Removes an outlet that is gone from its port.
    pub(super) fn leave(&mut self, outlet: usize, registry: &mio::Registry) {
        let unused: SmallVec<[usize; 2]> = self
            .ports
            .iter_mut()
            .filter_map(|(index, port)| {
                port.members.retain(|member| *member != outlet);
                port.members.is_empty().then_some(index)
            })
            .collect();
        for index in unused {
            let port = self.ports.remove(index);
            let fd = port.socket.as_fd().as_raw_fd();
            // Others may still hold the socket, so it has to be deregistered.
            let _ = registry.deregister(&mut SourceFd(&fd));
            self.ready.retain(|ready| *ready != index);
        }
    }

    /// Listens to the RTCP of an outlet's receiver.
    pub(super) fn join(&mut self, outlet: usize, rtcp: &ForwardRtcp, registry: &mio::Registry) {
        let mut ports = self.ports.iter_mut();
        let known = ports.find(|(_, port)| port.socket.is(rtcp.socket()));
        if let Some((_, port)) = known {
            port.members.push(outlet);
            return;
        }
        let fd = rtcp.socket().as_fd().as_raw_fd();
        let entry = self.ports.vacant_entry();
        let index = entry.key();
        let token = Token(FIRST_TOKEN + index);
        if let Err(error) = registry.register(&mut SourceFd(&fd), token, Interest::READABLE) {
            tracing::error!(%error, "cannot listen to the RTCP of a forwarder");
            return;
        }
        entry.insert(Port {
            socket: rtcp.socket().clone(),
            members: SmallVec::from_elem(outlet, 1),
            is_ready: false,
        });
        self.mark_ready(index);
    }
}

impl Outlets {
    /// Sends what forwarders have queued.
    pub(in crate::worker) fn flush(&mut self) {
        if let Some(out) = &mut self.forwarding.out {
            out.batch.flush(&out.socket);
        }
    }

    /// Adds what forwarders have sent to `others`.
    pub(in crate::worker) fn counted(&self, others: SendCounters) -> SendCounters {
        let Some(out) = &self.forwarding.out else {
            return others;
        };
        let own = out.counters();
        SendCounters {
            datagrams: others.datagrams + own.datagrams,
            bytes: others.bytes + own.bytes,
            calls: others.calls + own.calls,
            dropped: others.dropped + own.dropped,
            refused: others.refused + own.refused,
        }
    }

    /// When reports to receivers are due.
    pub(in crate::worker) fn timeout(&self) -> Option<Instant> {
        self.forwarding.report_at
    }

    /// Notes which sockets the poll found readable.
    pub(in crate::worker) fn note_ready(&mut self, events: &Events) {
        for event in events {
            if let Some(port) = event.token().0.checked_sub(FIRST_TOKEN) {
                self.forwarding.mark_ready(port);
            }
        }
    }

    /// Takes RTCP of receivers. Returns whether there is more.
    pub(in crate::worker) fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        graph: &mut Graph,
        now: Instant,
    ) -> bool {
        let mut more = false;
        for index in std::mem::take(&mut self.forwarding.ready) {
            let mut left = true;
            for _ in 0..CALLS {
                let Some(port) = self.forwarding.ports.get(index) else {
                    left = false;
                    break;
                };
                let socket = port.socket.clone();
                let received = batch.receive_up_to(&socket, MESSAGES).unwrap_or(0);
                for message in batch.iter(received) {
                    for datagram in message.data.chunks(message.stride) {
                        self.take_rtcp(index, datagram, graph, now);
                    }
                }
                left = received == MESSAGES;
                if !left {
                    break;
                }
            }
            if let Some(port) = self.forwarding.ports.get_mut(index) {
                port.is_ready = left;
                if left {
                    self.forwarding.ready.push(index);
                }
            }
            more |= left;
        }
        more
    }

    /// Takes a datagram of a receiver. Only keyframe requests matter.
    fn take_rtcp(&mut self, port: usize, datagram: &[u8], graph: &mut Graph, now: Instant) {
        for packet in Compound::new(datagram) {
            match packet {
                Ok(Rtcp::Pli(pli)) => self.receiver_asks(port, pli.media, graph, now),
                Ok(Rtcp::Fir(fir)) => {
                    for entry in fir.entries() {
                        self.receiver_asks(port, entry.ssrc, graph, now);
                    }
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// Requests a keyframe for a receiver. The SSRC is not checked if the port has only one
    /// forwarder.
    fn receiver_asks(&mut self, port: usize, media: Ssrc, graph: &mut Graph, now: Instant) {
        let Some(port) = self.forwarding.ports.get(port) else {
            return;
        };
        let members = port.members.clone();
        for slot in &members {
            let Some(outlet) = self.slots.get_mut(*slot) else {
                continue;
            };
            let OutletEnd::Forward(forwarder) = &mut outlet.end else {
                continue;
            };
            let (only, key) = (members.len() == 1, outlet.source);
            // Of forwarders to other servers, the lowest encoding stands for all.
            let all = !only && forwarder.options().encodings == Encodings::Only(0);
            if (only || forwarder.is_asked(media)) && forwarder.ask(now) {
                match all {
                    true => graph.want_keyframes(key),
                    false => self.want_keyframe(*slot, graph),
                }
            }
        }
    }

    /// Sends the reports that are due.
    pub(in crate::worker) fn report(&mut self, graph: &Graph, now: Instant) {
        if self.forwarding.report_at.is_none_or(|at| at > now) {
            return;
        }
        let mut next: Option<Instant> = None;
        for (_, outlet) in &mut self.slots {
            let OutletEnd::Forward(forwarder) = &mut outlet.end else {
                continue;
            };
            let due = forwarder.poll_timeout(now);
            if due.is_some_and(|due| due <= now)
                && let Some(source) = graph.source(outlet.source)
            {
                forwarder.report(&source.format, &source.clocks, &self.forwarding.clock, now);
            }
            let due = forwarder.poll_timeout(now);
            next = [next, due].into_iter().flatten().min();
        }
        self.forwarding.report_at = next;
    }
}
