//! The bare loop: seal and send, without a pause or at the rate of sources.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use aws_lc_rs::error::Unspecified;
use nix::time::{ClockId, clock_gettime};
use portunus_udp::{SendBatch, SendCounters};

use super::CeilingError;
use super::cipher::Cipher;
use super::plan::{Datagram, Plan};
use crate::source::{Due, spread};
use crate::traffic::{AUDIO_PERIOD, Graph, PACKET_BYTES, Profile, RTP_HEADER_BYTES, Traffic};

/// The most messages of a sendmmsg call: more than the arena needs.
const MESSAGES: usize = 1_024;
/// The number of viewers between two readings of the clock.
const LOOK: usize = 256;

/// All destinations.
#[derive(Debug)]
pub(super) struct Sender {
    socket: UdpSocket,
    connections: Vec<Connection>,
    payload: Vec<u8>,
    tag_bytes: usize,
}

#[derive(Debug)]
struct Connection {
    cipher: Cipher,
    to: SocketAddr,
    ssrc: u32,
    sequence: u64,
}

/// The packets that a run of the loop sent, and its duration.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) dropped: u64,
    pub(super) took: Duration,
    pub(super) took_sending: Duration,
    /// The CPU time of the thread.
    pub(super) cpu: Duration,
}

/// How messages are passed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Batching {
    /// The bytes sealed between two system calls.
    pub(super) bytes: usize,
    /// Whether packets of one size leave as one message.
    pub(super) gso: bool,
}

/// The next packets of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Frame,
    Audio,
}

impl Sender {
    /// Makes a sender to a connection at each of `to`.
    pub(super) fn new(
        socket: UdpSocket,
        to: &[SocketAddr],
        profile: Profile,
    ) -> Result<Self, CeilingError> {
        let connection = |(number, to): (u32, &SocketAddr)| {
            Ok(Connection {
                cipher: Cipher::new(profile, number).map_err(|_| CeilingError::Crypto)?,
                to: *to,
                ssrc: number << 10,
                sequence: 1,
            })
        };
        let connections: Result<_, CeilingError> = (0..).zip(to).map(connection).collect();
        Ok(Self {
            socket,
            connections: connections?,
            payload: (0..PACKET_BYTES).map(|n| n as u8).collect(),
            tag_bytes: profile.tag_bytes(),
        })
    }

    /// Sends the plan to all, repeatedly and without a pause, for about `duration`.
    pub(super) fn run(
        &mut self,
        plan: &Plan,
        batching: Batching,
        duration: Duration,
    ) -> Result<Sent, CeilingError> {
        let mut out = Out::new(&self.socket, batching, &self.payload, self.tag_bytes)?;
        'all: loop {
            for window in &plan.windows {
                for connections in self.connections.chunks_mut(LOOK) {
                    for connection in connections {
                        out.write(connection, window)?;
                    }
                    if out.start.elapsed() >= duration {
                        break 'all;
                    }
                }
            }
            if plan.windows.is_empty() || self.connections.is_empty() {
                break;
            }
        }
        out.finish()
    }

    /// Sends each frame when it is due, at the rate of `graph`'s sources, for `duration`.
    pub(super) fn pace(
        &mut self,
        traffic: &Traffic,
        graph: &Graph,
        plan: &Plan,
        batching: Batching,
        duration: Duration,
    ) -> Result<Sent, CeilingError> {
        let mut out = Out::new(&self.socket, batching, &self.payload, self.tag_bytes)?;
        let end = out.start + duration;
        let mut dues = BinaryHeap::new();
        for source in 0..graph.sources.len() {
            let phase = spread(source as u64);
            let mut add = |next, period| {
                let due = Due::in_phase(out.start, phase, period, out.start);
                dues.push(Reverse((due.at(), source, next, period)));
            };
            if traffic.video_bps > 0 {
                add(Next::Frame, traffic.frame_period());
            }
            if traffic.audio_bps > 0 {
                add(Next::Audio, AUDIO_PERIOD);
            }
        }
        let audio = [Datagram {
            bytes: traffic.audio_packet_bytes(),
            feed: 0,
            marker: true,
            last: true,
        }];
        let frames: Vec<&[Datagram]> = plan.windows.iter().map(|window| frame(window)).collect();
        let mut frame_of = vec![0; graph.sources.len()];
        while let Some(Reverse((at, source, next, period))) = dues.pop() {
            let now = Instant::now();
            if at >= end || now >= end {
                break;
            }
            if at > now {
                out.flush()?;
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
            }
            let datagrams = match (next, frame_of.get_mut(source)) {
                (Next::Frame, Some(number)) => {
                    *number = (*number + 1) % frames.len().max(1);
                    frames.get(*number).copied().unwrap_or_default()
                }
                _ => &audio,
            };
            for connection in graph.sources.get(source).into_iter().flatten() {
                if let Some(connection) = self.connections.get_mut(*connection as usize) {
                    out.write(connection, datagrams)?;
                }
            }
            dues.push(Reverse((at + period, source, next, period)));
        }
        out.finish()
    }
}

/// Returns the video of a window with one frame of one feed.
fn frame(window: &[Datagram]) -> &[Datagram] {
    let message = window.split_inclusive(|datagram| datagram.last).next();
    message.unwrap_or_default()
}

/// A run of the loop in progress.
struct Out<'a> {
    batch: SendBatch,
    socket: &'a UdpSocket,
    payload: &'a [u8],
    tag_bytes: usize,
    start: Instant,
    cpu: Duration,
    took_sending: Duration,
}

impl<'a> Out<'a> {
    fn new(
        socket: &'a UdpSocket,
        batching: Batching,
        payload: &'a [u8],
        tag_bytes: usize,
    ) -> Result<Self, CeilingError> {
        Ok(Self {
            batch: SendBatch::new(batching.bytes, MESSAGES, batching.gso),
            socket,
            payload,
            tag_bytes,
            cpu: thread_cpu()?,
            start: Instant::now(),
            took_sending: Duration::ZERO,
        })
    }

    /// Seals these packets for a connection.
    #[inline]
    fn write(
        &mut self,
        connection: &mut Connection,
        datagrams: &[Datagram],
    ) -> Result<(), CeilingError> {
        let to = self.batch.destination(None, connection.to);
        for datagram in datagrams {
            let len = datagram.bytes + self.tag_bytes;
            if self.batch.is_full() {
                self.flush()?;
            }
            let room = self.batch.room(self.socket);
            let room = room.get_mut(..len).unwrap_or_default();
            let written = connection.write(datagram, self.payload, room);
            written.map_err(|_| CeilingError::Crypto)?;
            self.batch.commit(len, &to);
            if datagram.last {
                self.batch.part();
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CeilingError> {
        let start = Instant::now();
        self.batch.flush(self.socket);
        self.took_sending += start.elapsed();
        let error = self.batch.take_error();
        error.map_or(Ok(()), |error| Err(CeilingError::Send(error)))
    }

    fn finish(mut self) -> Result<Sent, CeilingError> {
        self.flush()?;
        let SendCounters {
            datagrams, dropped, ..
        } = self.batch.counters();
        Ok(Sent {
            packets: datagrams,
            dropped,
            took: self.start.elapsed(),
            took_sending: self.took_sending,
            cpu: thread_cpu()?.saturating_sub(self.cpu),
        })
    }
}

impl Connection {
    #[inline]
    fn write(
        &mut self,
        packet: &Datagram,
        payload: &[u8],
        datagram: &mut [u8],
    ) -> Result<(), Unspecified> {
        let (header, sealed) = datagram
            .split_first_chunk_mut::<RTP_HEADER_BYTES>()
            .ok_or(Unspecified)?;
        let [ssrc_0, ssrc_1, ssrc_2, ssrc_3] = (self.ssrc | packet.feed & 0x3FF).to_be_bytes();
        let [.., sequence_0, sequence_1] = self.sequence.to_be_bytes();
        let kind = 96 | u8::from(packet.marker) << 7;
        *header = [
            0x80, kind, sequence_0, sequence_1, 0, 0, 0, 0, ssrc_0, ssrc_1, ssrc_2, ssrc_3,
        ];
        let tag = match self.cipher {
            Cipher::Gcm(_) => Profile::Gcm.tag_bytes(),
            Cipher::Cm(_) => Profile::Cm.tag_bytes(),
        };
        let payload = payload
            .get(..sealed.len().saturating_sub(tag))
            .ok_or(Unspecified)?;
        let outcome = self.cipher.seal(self.sequence, header, payload, sealed);
        self.sequence += 1;
        outcome
    }
}

fn thread_cpu() -> Result<Duration, CeilingError> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map(Duration::from)
        .map_err(|error| CeilingError::Send(error.into()))
}
