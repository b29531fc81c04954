//! The bare loop: seal and send, as fast as it goes.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::CeilingError;
use aws_lc_rs::error::Unspecified;
use nix::time::{ClockId, clock_gettime};
use portunus_udp::{SendBatch, SendCounters};

use super::cipher::{Cipher, Profile};
use crate::traffic::{AUDIO_PERIOD, RTP_HEADER_BYTES, Traffic};

/// A message of sendmmsg costs more than its part of the arena; so many are always enough.
const MESSAGES: usize = 1_024;

/// Everything that is sent.
#[derive(Debug)]
pub(super) struct Sender {
    socket: UdpSocket,
    viewers: Vec<Viewer>,
    schedule: Vec<Burst>,
    payload: Vec<u8>,
    tag_bytes: usize,
    /// Where the schedule goes on.
    next: usize,
}

#[derive(Debug)]
struct Viewer {
    cipher: Cipher,
    to: SocketAddr,
    ssrc: u32,
    sequence: u64,
}

/// What each viewer gets at one time: a frame or an audio packet, as sizes of RTP packets.
#[derive(Debug)]
struct Burst(Vec<usize>);

/// What a run of the loop sent, and how long it took for it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) calls: u64,
    pub(super) dropped: u64,
    pub(super) took: Duration,
    pub(super) took_sending: Duration,
    /// CPU time of the thread.
    pub(super) cpu: Duration,
}

impl Sender {
    /// To a viewer at each of `to`.
    pub(super) fn new(
        socket: UdpSocket,
        to: &[SocketAddr],
        profile: Profile,
        traffic: &Traffic,
    ) -> Result<Self, CeilingError> {
        let viewer = |(number, to): (u32, &SocketAddr)| {
            Ok(Viewer {
                cipher: profile.cipher(number).map_err(|_| CeilingError::Crypto)?,
                to: *to,
                ssrc: number,
                sequence: 1,
            })
        };
        let viewers: Result<_, CeilingError> = (0..).zip(to).map(viewer).collect();
        let schedule = schedule(traffic);
        let largest = schedule.iter().flat_map(|burst| &burst.0).max();
        Ok(Self {
            socket,
            viewers: viewers?,
            payload: (0..largest.copied().unwrap_or_default())
                .map(|n| n as u8)
                .collect(),
            schedule,
            tag_bytes: profile.tag_bytes(),
            next: 0,
        })
    }

    /// Seals up to `batch_bytes` before each system call, for about `duration`.
    pub(super) fn run(
        &mut self,
        batch_bytes: usize,
        joined: bool,
        duration: Duration,
    ) -> Result<Sent, CeilingError> {
        let mut batch = SendBatch::new(batch_bytes, MESSAGES, joined);
        let mut sent = Sent::default();
        let cpu = thread_cpu()?;
        let start = Instant::now();
        while sent.took < duration {
            let Some(Burst(sizes)) = self.schedule.get(self.next) else {
                self.next = 0;
                continue;
            };
            self.next += 1;
            for viewer in &mut self.viewers {
                let to = batch.destination(None, viewer.to);
                for (at, size) in sizes.iter().enumerate() {
                    let len = size + self.tag_bytes;
                    if batch.is_full() {
                        sent.flush(&mut batch, &self.socket)?;
                    }
                    let room = batch.room(&self.socket);
                    let datagram = room.get_mut(..len).unwrap_or_default();
                    let marker = at + 1 == sizes.len();
                    let written = viewer.write(marker, &self.payload, datagram);
                    written.map_err(|_| CeilingError::Crypto)?;
                    batch.commit(len, &to);
                }
                // A frame leaves as it comes: it is not joined to the next one of an only viewer.
                batch.part();
            }
            sent.took = start.elapsed();
        }
        sent.flush(&mut batch, &self.socket)?;
        sent.took = start.elapsed();
        sent.cpu = thread_cpu()?.saturating_sub(cpu);
        Ok(sent)
    }
}

impl Viewer {
    fn write(
        &mut self,
        marker: bool,
        payload: &[u8],
        datagram: &mut [u8],
    ) -> Result<(), Unspecified> {
        let (header, sealed) = datagram
            .split_first_chunk_mut::<RTP_HEADER_BYTES>()
            .ok_or(Unspecified)?;
        let [ssrc_0, ssrc_1, ssrc_2, ssrc_3] = self.ssrc.to_be_bytes();
        let [.., sequence_0, sequence_1] = self.sequence.to_be_bytes();
        let kind = 96 | u8::from(marker) << 7;
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

impl Sent {
    fn flush(&mut self, batch: &mut SendBatch, socket: &UdpSocket) -> Result<(), CeilingError> {
        let start = Instant::now();
        batch.flush(socket);
        self.took_sending += start.elapsed();
        let SendCounters {
            datagrams,
            bytes,
            calls,
            dropped,
            ..
        } = batch.counters();
        self.packets = datagrams;
        self.bytes = bytes;
        self.calls = calls;
        self.dropped = dropped;
        batch
            .take_error()
            .map_or(Ok(()), |error| Err(CeilingError::Send(error)))
    }
}

fn thread_cpu() -> Result<Duration, CeilingError> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map(Duration::from)
        .map_err(|error| CeilingError::Send(error.into()))
}

/// Two seconds of frames and audio packets in the order of their times.
fn schedule(traffic: &Traffic) -> Vec<Burst> {
    let seconds = Duration::from_secs(2);
    let frames = (0..).map(|n: u64| (traffic.frame_period() * n as u32, traffic.frame(n)));
    let mut bursts: Vec<_> = frames.take_while(|(at, _)| *at < seconds).collect();
    if traffic.audio_bps > 0 {
        let packets = (0..)
            .map(|n| AUDIO_PERIOD * n)
            .take_while(|at| *at < seconds);
        bursts.extend(packets.map(|at| (at, vec![traffic.audio_packet_bytes()])));
    }
    bursts.sort_by_key(|(at, _)| *at);
    let bursts = bursts.into_iter().map(|(_, sizes)| Burst(sizes));
    bursts.filter(|burst| !burst.0.is_empty()).collect()
}
