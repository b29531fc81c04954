//! The thread that sends a source's packets to mountpoints, paced by frame.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use portunus_udp::{DATAGRAM_BYTES, SendBatch, run_first};

use super::pace::{Due, Lateness, Spacing};
use super::{AUDIO, Packets, Sent, SourceConfig, VIDEO};
use crate::traffic::AUDIO_PERIOD;

/// The most packets passed to the kernel at once: more than a frame usually has.
const FRAME_PACKETS: usize = 64;

/// The ports of a mountpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destination {
    /// The port of its video.
    pub video: Option<SocketAddr>,
    /// The port of its audio.
    pub audio: Option<SocketAddr>,
}

/// A running source, which ends when it is dropped.
#[derive(Debug)]
pub struct Source {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    sent: Vec<Arc<Sent>>,
}

impl Source {
    /// Starts to send to all of `destinations` from `local`. The delays of frames are recorded in
    /// `lateness`.
    pub fn start(
        config: &SourceConfig,
        local: IpAddr,
        destinations: &[Destination],
        lateness: Arc<Lateness>,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let start = Instant::now();
        let mut feeds = Vec::new();
        for (n, destination) in destinations.iter().enumerate() {
            let phase = match config.aligned {
                true => 0.0,
                false => n as f64 / destinations.len() as f64,
            };
            feeds.push(Feed::new(config, local, destination, (start, phase))?);
        }
        let sent = feeds.iter().map(|feed| Arc::clone(&feed.sent)).collect();
        let stopped = Arc::clone(&stop);
        let batch = config
            .gso
            .then(|| SendBatch::new(FRAME_PACKETS * DATAGRAM_BYTES, FRAME_PACKETS, true));
        let spacing = match config.aligned {
            true => Spacing::default(),
            false => Spacing::of(feeds.iter().flat_map(Feed::periods)),
        };
        let thread = thread::Builder::new()
            .name("source".to_owned())
            .spawn(move || run(&mut feeds, batch, &lateness, spacing, &stopped))?;
        Ok(Self {
            stop,
            thread: Some(thread),
            sent,
        })
    }

    /// Returns the packets sent to the destination with this index.
    pub fn sent(&self, destination: usize) -> Option<Arc<Sent>> {
        self.sent.get(destination).cloned()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The packets of one destination, and their deadlines.
struct Feed {
    packets: Packets,
    sent: Arc<Sent>,
    video: Option<(Port, Due)>,
    audio: Option<(Port, Due)>,
}

impl Feed {
    fn new(
        config: &SourceConfig,
        local: IpAddr,
        destination: &Destination,
        (start, phase): (Instant, f64),
    ) -> io::Result<Self> {
        let open = |to: Option<SocketAddr>, period: Duration| {
            let Some(to) = to else {
                return Ok(None);
            };
            let socket = UdpSocket::bind((local, 0))?;
            socket.connect(to)?;
            let due = Due::new(start + period.mul_f64(phase), period);
            io::Result::Ok(Some((Port { socket, to }, due)))
        };
        let traffic = &config.traffic;
        let video = destination.video.filter(|_| traffic.video_bps > 0);
        let audio = destination.audio.filter(|_| traffic.audio_bps > 0);
        Ok(Self {
            packets: Packets::new(config),
            sent: Arc::default(),
            video: open(video, traffic.frame_period())?,
            audio: open(audio, AUDIO_PERIOD)?,
        })
    }

    /// Returns the times between its packets.
    fn periods(&self) -> impl Iterator<Item = Duration> + use<> {
        let both = [&self.video, &self.audio];
        let periods = both.map(|port| port.as_ref().map(|(_, due)| due.period()));
        periods.into_iter().flatten()
    }

    /// Returns the next deadline.
    fn due(&self) -> Option<Instant> {
        let both = [&self.video, &self.audio];
        both.into_iter().flatten().map(|(_, due)| due.at()).min()
    }

    /// Sends what is due.
    fn send(&mut self, batch: &mut Option<SendBatch>, lateness: &Lateness, now: Instant) {
        let Self {
            packets,
            sent,
            video,
            audio,
        } = self;
        if let Some((port, due)) = video
            && let Some(late) = due.take(now)
        {
            lateness.note(late);
            let taken = match batch {
                Some(batch) => {
                    port.send_joined(batch, |put| packets.frame(|_, packet| put(packet)))
                }
                None => port.send_each(|put| packets.frame(|_, packet| put(packet))),
            };
            sent.count(VIDEO, taken);
        }
        if let Some((port, due)) = audio
            && let Some(late) = due.take(now)
        {
            lateness.note(late);
            let taken = port.send_each(|put| packets.audio(|_, packet| put(packet)));
            sent.count(AUDIO, taken);
        }
    }
}

/// A port of a mountpoint, and the socket that feeds it. A packet that is refused while nobody
/// listens (an ICMP answer to an earlier one) counts as not sent.
struct Port {
    socket: UdpSocket,
    to: SocketAddr,
}

impl Port {
    /// Sends what `packets` passes to its argument. Returns the number of packets that the kernel
    /// took.
    fn send_each(&self, packets: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u64 {
        let mut taken = 0;
        packets(&mut |packet| taken += u64::from(self.socket.send(packet).is_ok()));
        taken
    }

    /// Like `send_each`, by one system call, with packets of one size joined.
    fn send_joined(
        &self,
        batch: &mut SendBatch,
        packets: impl FnOnce(&mut dyn FnMut(&[u8])),
    ) -> u64 {
        let to = batch.destination(None, self.to);
        let before = batch.counters().datagrams;
        packets(&mut |packet| {
            if let Some(room) = batch.room(&self.socket).get_mut(..packet.len()) {
                room.copy_from_slice(packet);
                batch.commit(packet.len(), &to);
            }
        });
        batch.flush(&self.socket);
        batch.counters().datagrams - before
    }
}

fn run(
    feeds: &mut [Feed],
    mut batch: Option<SendBatch>,
    lateness: &Lateness,
    mut spacing: Spacing,
    stop: &AtomicBool,
) {
    // Real sources do not wait for each other or for readers. Without this right, which root has,
    // frames of several sources may meet.
    let _ = run_first(1);
    let due = |(index, feed): (usize, &Feed)| Some(Reverse((feed.due()?, index)));
    let mut queue: BinaryHeap<_> = feeds.iter().enumerate().filter_map(due).collect();
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        let next = queue
            .peek()
            .map(|Reverse((at, _))| spacing.not_before(*at, now));
        if let Some(next) = next.filter(|next| *next <= now)
            && let Some(Reverse((_, index))) = queue.pop()
            && let Some(feed) = feeds.get_mut(index)
        {
            spacing.sent(next, now);
            feed.send(&mut batch, lateness, now);
            queue.extend(feed.due().map(|at| Reverse((at, index))));
            continue;
        }
        // Short enough to notice the end soon.
        let next = next.unwrap_or(now + AUDIO_PERIOD);
        thread::sleep(next.saturating_duration_since(now).min(AUDIO_PERIOD));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::source::Stamp;
    use crate::traffic::{Sizes, Traffic};

    #[test]
    fn frames_arrive_and_are_counted() {
        for gso in [false, true] {
            frames_arrive(gso);
        }
    }

    fn frames_arrive(gso: bool) {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let config = SourceConfig {
            gso,
            ..SourceConfig::of(Traffic {
                video_bps: 1_000_000,
                fps: 50,
                packets_per_frame: Some(3),
                sizes: Sizes::Equal,
                audio_bps: 0,
            })
        };
        let destination = Destination {
            video: receiver.local_addr().ok(),
            audio: None,
        };
        let local = "127.0.0.1".parse().unwrap();
        let source = Source::start(&config, local, &[destination], Arc::default()).unwrap();
        let mut buffer = [0; 2_000];
        for number in 0..9 {
            let len = receiver.recv(&mut buffer).unwrap();
            let stamp = Stamp::read(buffer.get(..len).unwrap()).unwrap();
            assert_eq!(stamp.number, number);
        }
        // The last frame may not be counted yet.
        assert!(source.sent(0).unwrap().packets() >= 6);
    }
}
