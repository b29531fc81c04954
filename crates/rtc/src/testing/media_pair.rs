//! Two connections joined by a network.

use std::time::{Duration, Instant};

use portunus_rtp::{Fields, SeqNo};
use portunus_sdp::negotiated::{DtlsRole, NegotiatedMedia};

use super::{Link, MediaSide, Network, Side, audio, data, mirrored, video};
use crate::StreamConfig;
use crate::data::{DataOptions, DataPayload};

/// Two connections: the left one is the client, the right one stands for a server.
///
/// A test that fails prints the seed of its network.
#[derive(Debug)]
pub struct MediaPair {
    /// The virtual time.
    pub now: Instant,
    /// What lies between them.
    pub network: Network,
    /// The client: controls ICE, starts DTLS.
    pub left: MediaSide,
    /// The server.
    pub right: MediaSide,
    seed: u64,
}

impl MediaPair {
    /// Index of the audio m-line that [`MediaPair::connected`] makes.
    pub const AUDIO: usize = 0;
    /// Index of its video m-line.
    pub const VIDEO: usize = 1;
    /// Index of its data m-line.
    pub const DATA: usize = 2;

    /// Audio, video and data, connected over a good network that is `link` from then on; the right
    /// side echoes.
    pub fn connected(seed: u64, link: Link) -> Self {
        let lines = vec![audio("a", 1_000), video("v", 2_000), data("d")];
        let mut pair = Self::of(seed, lines, StreamConfig::default());
        pair.right.echo = true;
        pair.connect();
        pair.network.link = link;
        pair
    }

    /// Two sides that have not heard of each other; `lines` are what the right one agrees to.
    pub fn of(seed: u64, lines: Vec<NegotiatedMedia>, streams: StreamConfig) -> Self {
        let now = Instant::now();
        let client = Side::new(
            "left",
            ([10, 0, 0, 1], 1_001).into(),
            true,
            DtlsRole::Client,
        );
        let server = Side::new(
            "right",
            ([10, 0, 0, 2], 1_002).into(),
            false,
            DtlsRole::Server,
        );
        let theirs = lines.iter().map(mirrored).collect();
        Self {
            now,
            network: Network::new(seed, Link::GOOD),
            left: MediaSide::new(client, theirs, streams, now),
            right: MediaSide::new(server, lines, streams, now),
            seed,
        }
    }

    /// Tells each side of the other and of its m-lines, the first time as any later one.
    pub fn negotiate(&mut self) {
        self.negotiate_right();
        self.left.negotiate(&self.right, self.now);
    }

    /// Tells the right side of its m-lines, while the left one does not know yet.
    pub fn negotiate_right(&mut self) {
        self.right.negotiate(&self.left, self.now);
    }

    /// Negotiates and runs until both sides are connected.
    pub fn connect(&mut self) {
        self.negotiate();
        let connected = self.run_until(Duration::from_secs(20), |pair| {
            pair.left.connection.transport.is_connected()
                && pair.right.connection.transport.is_connected()
        });
        assert!(connected, "{self:#?}");
        // The answers of the last checks.
        self.run(Duration::from_millis(500));
    }

    /// The left side sends a new packet.
    pub fn send(&mut self, media: usize, seq: SeqNo, timestamp: u32, payload: &[u8]) {
        let what = (media, seq, timestamp);
        self.left.send(self.now, what, payload, &mut self.network);
    }

    /// The left side sends an RTP packet made by hand.
    pub fn send_raw(&mut self, fields: &Fields, extensions: &[(u8, &[u8])], payload: &[u8]) {
        self.left
            .send_raw(self.now, fields, extensions, payload, &mut self.network);
    }

    /// The left side sends bytes in the place of RTCP.
    pub fn send_rtcp(&mut self, compound: &[u8]) {
        self.left.send_rtcp(self.now, compound, &mut self.network);
    }

    /// The left side sends a message on a data channel.
    pub fn send_text(&mut self, label: &str, text: &str) {
        let (payload, options) = (DataPayload::Text(text), DataOptions::default());
        let transport = &mut self.left.connection.transport;
        let sent = transport.send_data(label, "", payload, options, self.now);
        assert_eq!(sent, Ok(()));
    }

    /// Lets `time` go by.
    pub fn run(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Lets at most `time` go by, until `done`; tells whether it was.
    pub fn run_until(&mut self, time: Duration, done: impl Fn(&MediaPair) -> bool) -> bool {
        let end = self.now + time;
        loop {
            self.flush();
            if done(self) {
                return true;
            }
            let next = self.next_timeout().filter(|at| *at < end);
            let Some(next) = next else {
                self.now = end;
                return false;
            };
            // A deadline that has passed must not stop the clock.
            self.now = next.max(self.now + Duration::from_micros(10));
            while let Some((source, destination, mut bytes)) = self.network.receive(self.now) {
                let sides = [&mut self.left, &mut self.right];
                if let Some(side) = sides.into_iter().find(|side| side.has(destination)) {
                    let path = (source, destination);
                    side.receive(self.now, path, &mut bytes, &mut self.network);
                }
                self.flush();
            }
            for side in [&mut self.left, &mut self.right] {
                let due = side.connection.poll_timeout();
                if due.is_some_and(|at| at <= self.now) {
                    side.connection.handle_timeout(self.now);
                }
            }
        }
    }

    /// When something is due next: a datagram's arrival or a timer of a side.
    pub fn next_timeout(&self) -> Option<Instant> {
        let timeouts = [
            self.left.connection.poll_timeout(),
            self.right.connection.poll_timeout(),
            self.network.poll_timeout(),
        ];
        timeouts.into_iter().flatten().min()
    }

    fn flush(&mut self) {
        self.left.flush(self.now, &mut self.network);
        self.right.flush(self.now, &mut self.network);
    }
}

impl Drop for MediaPair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed of the network: {}", self.seed);
        }
    }
}
