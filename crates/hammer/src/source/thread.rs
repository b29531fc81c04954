//! The thread that sends a source's packets to mountpoints, paced by frame.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use portunus_udp::run_first;

use super::pace::{Due, Lateness};
use super::{AUDIO, Packets, Sent, VIDEO, VideoCodec};
use crate::traffic::{AUDIO_PERIOD, Traffic};

/// What is sent.
#[derive(Debug, Clone)]
pub struct SourceConfig {
    /// How much.
    pub traffic: Traffic,
    /// What the video looks like.
    pub codec: VideoCodec,
    /// Time between two keyframes.
    pub keyframes: Duration,
    /// All sources send their frames at the same moments; else these are spread over the time of a frame.
    pub aligned: bool,
    /// Those who publish send lower layers beside the highest: see [`Packets::set_layers`].
    pub simulcast: bool,
    /// Temporal layers of VP8, 1 to 3.
    pub temporal_layers: u8,
}

impl SourceConfig {
    /// The usual, for `traffic`.
    pub fn of(traffic: Traffic) -> Self {
        Self {
            traffic,
            codec: VideoCodec::default(),
            keyframes: Duration::from_secs(2),
            aligned: false,
            simulcast: false,
            temporal_layers: 1,
        }
    }
}

/// Where a mountpoint takes its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destination {
    /// The port of its video.
    pub video: Option<SocketAddr>,
    /// The port of its audio.
    pub audio: Option<SocketAddr>,
}

/// A running source; it ends when it is dropped.
#[derive(Debug)]
pub struct Source {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    sent: Vec<Arc<Sent>>,
}

impl Source {
    /// Starts to send to all of `destinations` from `local`. How late frames leave is noted in
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
        let thread = thread::Builder::new()
            .name("source".to_owned())
            .spawn(move || run(&mut feeds, &lateness, &stopped))?;
        Ok(Self {
            stop,
            thread: Some(thread),
            sent,
        })
    }

    /// What has been sent to the destination with this index.
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

/// The packets of one destination and when they are due.
struct Feed {
    packets: Packets,
    sent: Arc<Sent>,
    video: Option<(UdpSocket, Due)>,
    audio: Option<(UdpSocket, Due)>,
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
            io::Result::Ok(Some((socket, due)))
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

    /// Sends what is due; says when there is more to do.
    fn send(&mut self, lateness: &Lateness) -> Option<Instant> {
        let now = Instant::now();
        let Self {
            packets,
            sent,
            video,
            audio,
        } = self;
        if let Some((socket, due)) = video
            && let Some(late) = due.take(now)
        {
            lateness.note(late);
            packets.frame(|_, packet| send(socket, packet, VIDEO, sent));
        }
        if let Some((socket, due)) = audio
            && let Some(late) = due.take(now)
        {
            lateness.note(late);
            packets.audio(|_, packet| send(socket, packet, AUDIO, sent));
        }
        let next = [video, audio];
        next.into_iter().flatten().map(|(_, due)| due.at()).min()
    }
}

fn send(socket: &UdpSocket, packet: &[u8], stream: usize, sent: &Sent) {
    // Refused while nobody listens (an ICMP answer to an earlier packet): then it counts as not sent.
    if socket.send(packet).is_ok() {
        sent.count(stream);
    }
}

fn run(feeds: &mut [Feed], lateness: &Lateness, stop: &AtomicBool) {
    // Real sources do not wait for each other, and not for those who read: without this right, which
    // root has, frames of several sources may meet.
    run_first();
    while !stop.load(Ordering::Relaxed) {
        let next = feeds
            .iter_mut()
            .filter_map(|feed| feed.send(lateness))
            .min();
        let now = Instant::now();
        let next = next.unwrap_or(now + AUDIO_PERIOD);
        // Short enough to notice the end soon.
        thread::sleep(next.saturating_duration_since(now).min(AUDIO_PERIOD));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::source::Stamp;
    use crate::traffic::Sizes;

    #[test]
    fn frames_arrive_and_are_counted() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let config = SourceConfig::of(Traffic {
            video_bps: 1_000_000,
            fps: 50,
            packets_per_frame: Some(3),
            sizes: Sizes::Equal,
            audio_bps: 0,
        });
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
        // The last one may not be counted yet.
        assert!(source.sent(0).unwrap().packets() >= 8);
    }
}
