//! Two connections joined by a network.

use std::time::{Duration, Instant};

use portunus_rtp::{Fields, SeqNo};
use portunus_sdp::negotiated::{DtlsRole, NegotiatedMedia};

use super::media_side::NewPacket;
use super::{Link, MediaSide, Network, Side, audio, data, mirrored, video};
use crate::StreamConfig;
use crate::data::{DataOptions, DataPayload};

/// Two connections: the left one is the client, the right one is the server.
///
/// A failed test prints the seed of its network.
#[derive(Debug)]
pub struct MediaPair {
    /// The virtual time.
    pub now: Instant,
    /// The network between them.
    pub network: Network,
    /// The client, which controls ICE and starts DTLS.
    pub left: MediaSide,
    /// The server.
    pub right: MediaSide,
    seed: u64,
}

impl MediaPair {
    /// The index of the audio m-line that [`MediaPair::connected`] makes.
    pub const AUDIO: usize = 0;
    /// The index of its video m-line.
    pub const VIDEO: usize = 1;
    /// The index of its data m-line.
    pub const DATA: usize = 2;

    /// Makes a connected pair with audio, video and data. The network is good at first, and `link`
    /// from then on. The right side echoes.
    pub fn connected(seed: u64, link: Link) -> Self {
        let lines = vec![audio("a", 1_000), video("v", 2_000), data("d")];
        let mut pair = Self::of(seed, lines, StreamConfig::default());
        pair.right.echo = true;
        pair.connect();
        pair.network.link = link;
        pair
    }

    /// Makes two sides that do not know each other. `lines` are those of the right one.
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

    /// Passes each side the other's parameters and its m-lines, the first time or later.
    pub fn negotiate(&mut self) {
        self.negotiate_right();
        self.left.negotiate(&self.right, self.now);
    }

    /// Passes the right side its m-lines, before the left one.
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
        // The answers of the last checks arrive.
        self.run(Duration::from_millis(500));
    }

    /// Sends a new packet from the left side.
    pub fn send(&mut self, media: usize, seq: SeqNo, timestamp: u32, payload: &[u8]) {
        let packet = NewPacket {
            media,
            seq,
            timestamp,
            payload,
        };
        self.left.send(self.now, packet, &mut self.network);
    }

    /// Sends a hand-made RTP packet from the left side.
    pub fn send_raw(&mut self, fields: &Fields, extensions: &[(u8, &[u8])], payload: &[u8]) {
        self.left
            .send_raw(self.now, fields, extensions, payload, &mut self.network);
    }

    /// Sends bytes in place of RTCP from the left side.
    pub fn send_rtcp(&mut self, compound: &[u8]) {
        self.left.send_rtcp(self.now, compound, &mut self.network);
    }

    /// Sends a message on a data channel from the left side.
    pub fn send_text(&mut self, label: &str, text: &str) {
        let (payload, options) = (DataPayload::Text(text), DataOptions::default());
        let transport = &mut self.left.connection.transport;
        let sent = transport.send_data(label, "", payload, options, self.now);
        assert_eq!(sent, Ok(()));
    }

    /// Lets `time` pass.
    pub fn run(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Lets at most `time` pass, until `done`. Returns whether it is done.
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
            // An expired deadline must not stop the clock.
            self.now = next.max(self.now + Duration::from_micros(10));
            while let Some(datagram) = self.network.receive(self.now) {
                let (path, mut bytes) = ((datagram.source, datagram.destination), datagram.bytes);
                let sides = [&mut self.left, &mut self.right];
                if let Some(side) = sides.into_iter().find(|side| side.has(path.1)) {
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

    /// Returns the next deadline: a datagram's arrival or a timer of a side.
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
