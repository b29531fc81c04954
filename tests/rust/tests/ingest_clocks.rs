//! Senders whose clock is slower or faster than ours, end to end. This takes time: the first ten
//! seconds of a stream are observed before any correction.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::time::{Duration, Instant};

use portunus_media::ingest::RtpIngest;
use portunus_media::{IngestFeed, IngestMedia, IngestOptions, RouteOptions};
use portunus_sdp::negotiated::Codec;
use portunus_sdp::{CodecName, Kind};
use portunus_tests::{Packet, Sender, Stage, Viewer, listen};
use tokio::time::MissedTickBehavior;

/// Ticks of Opus in 120 ms, the unit of corrections.
const STEP: i64 = 48 * 120;
/// The time for which senders keep the right time at first.
const STEADY: Duration = Duration::from_secs(11);

/// A sender whose clock becomes wrong after a while.
struct Runner {
    sender: Sender,
    viewer: Viewer,
    /// The speed of the clock from then on.
    speed: f64,
    start: Instant,
    sent: u32,
}

impl Runner {
    async fn new(stage: &Stage, worker: usize, speed: f64) -> Self {
        let socket = listen();
        let sender = Sender::new(socket.local(), 10);
        let mut options = IngestOptions::rtp(Codec::Opus, 48_000, IngestFeed::socket(socket));
        options.media = IngestMedia::Rtp(RtpIngest {
            skew: true,
            ..RtpIngest::new(Codec::Opus, 48_000)
        });
        let ingest = stage.media.add_ingest(options);
        let lines = [(Kind::Audio, Some(CodecName::Opus))];
        let mut viewer = stage.viewer(worker, &lines).await;
        let track = viewer.tracks[0];
        stage.media.route(ingest.id, track, RouteOptions::default());
        viewer.peer.connect().await;
        Runner {
            sender,
            viewer,
            speed,
            start: Instant::now(),
            sent: 0,
        }
    }

    /// Sends a packet with the time of its clock. Each contains its timestamp.
    fn send(&mut self) {
        let right = self.start.elapsed();
        let wrong = right.saturating_sub(STEADY).mul_f64(self.speed);
        let ticks = (right.min(STEADY) + wrong).as_micros() as u64 * 48 / 1_000;
        self.sender.timestamp = ticks as u32;
        let packet = self.sender.packet(true, &(ticks as u32).to_be_bytes());
        self.sender.send(&packet);
        self.sent += 1;
    }

    /// Returns the distance of packets from their sender's time, in ticks. The first packet counts
    /// as right.
    fn moved(&self) -> Vec<i64> {
        let off = |packet: &Packet| {
            let sent = u32::from_be_bytes(packet.payload[..4].try_into().unwrap());
            i64::from(packet.timestamp.wrapping_sub(sent) as i32)
        };
        let offs: Vec<i64> = self.viewer.peer.packets.iter().map(off).collect();
        offs.iter().map(|off| off - offs[0]).collect()
    }
}

#[tokio::test]
async fn slow_and_fast_clocks_are_made_up_for() {
    let stage = Stage::start(2);
    let mut slow = Runner::new(&stage, 0, 0.7).await;
    let mut fast = Runner::new(&stage, 1, 1.3).await;
    let mut right = Runner::new(&stage, 0, 1.0).await;
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let deadline = Instant::now() + Duration::from_secs(60);
    let done = |runner: &Runner, step: i64| runner.moved().last() == Some(&step);
    while !done(&slow, STEP) || !done(&fast, -STEP) {
        assert!(
            Instant::now() < deadline,
            "{:?} {:?}",
            slow.moved().last(),
            fast.moved().last()
        );
        for runner in [&mut slow, &mut fast, &mut right] {
            runner.send();
            let mut turned = false;
            let once = |_: &mut _| std::mem::replace(&mut turned, true);
            runner.viewer.peer.run_until(once).await;
        }
        ticks.tick().await;
    }
    // One number was skipped, so that the receiver sees that time has passed.
    let numbers = |runner: &Runner| -> Vec<u64> {
        let packets = runner.viewer.peer.packets.iter();
        packets.map(|packet| packet.seq).collect()
    };
    let gaps = |numbers: &[u64]| {
        numbers
            .windows(2)
            .filter(|pair| pair[1] != pair[0] + 1)
            .count()
    };
    assert_eq!(gaps(&numbers(&slow)), 1);
    // Some 120 ms of sound were skipped, for which no retransmission must be requested.
    assert_eq!(gaps(&numbers(&fast)), 0);
    let got = fast.viewer.peer.packets.len() as u32;
    assert!(
        (4..40).contains(&(fast.sent - got)),
        "{got} of {}",
        fast.sent
    );
    assert!(
        right.moved().iter().all(|off| *off == 0),
        "{:?}",
        right.moved()
    );
}
