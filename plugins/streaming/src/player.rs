//! Plays a file: hands its packets to the media plane when they are due.
//!
//! Files are read ahead on the threads for what blocks, a batch at a time; the task that sleeps until packets are
//! due never touches the disk.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portunus_core::media::ingest::{FeedError, PacketFeed};
use portunus_files::{FileError, MediaFile, OpenOptions, Sent};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinError, spawn_blocking};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use crate::bounds::Bounds;

/// How much is read at once.
const AHEAD: Duration = Duration::from_millis(250);

/// The same in bytes: what a fast file has in a few frames.
const AHEAD_BYTES: usize = 1 << 20;

/// A player that is this late goes on from where it is instead of hurrying after the clock.
const LATE: Duration = Duration::from_secs(1);

/// How often viewers are told how the streams' times belong together.
const REPORTS: Duration = Duration::from_secs(5);

/// A damaged file that played at least this long before the damage is begun again.
const WORTHWHILE: Duration = Duration::from_secs(1);

/// A file being played; dropping it stops it.
#[derive(Debug)]
pub(crate) struct Player {
    task: AbortHandle,
    /// Where it is to go on; of several requests the last one holds.
    position: watch::Sender<Duration>,
    /// It stands still.
    held: watch::Sender<bool>,
}

impl Player {
    /// Plays `file`, the packets of each track into the feed at its index. The name is for the log.
    pub(crate) fn start(file: MediaFile, feeds: Vec<PacketFeed>, name: &str) -> Self {
        let name = name.to_owned();
        Self::spawn(async move |requests| play(file, &feeds, &name, requests).await)
    }

    /// Opens the file first, away from here: for one that was opened before, within the same bounds.
    pub(crate) fn open(
        name: String,
        bounds: Bounds,
        options: OpenOptions,
        feeds: Vec<PacketFeed>,
    ) -> Self {
        Self::spawn(async move |requests| {
            let named = name.clone();
            let open = move || MediaFile::open(&bounds.file(&named)?, &options);
            let opened = spawn_blocking(open).await;
            match flatten(opened) {
                Ok(file) if file.tracks().len() == feeds.len() => {
                    play(file, &feeds, &name, requests).await;
                }
                Ok(_) => warn!(file = name, "the file has other tracks than before"),
                Err(error) => warn!(file = name, %error, "cannot play"),
            }
        })
    }

    /// Goes on at `position` of the file; false if nothing is played any more.
    pub(crate) fn seek(&self, position: Duration) -> bool {
        self.position.send(position).is_ok()
    }

    /// Stands still, or goes on from there. A position can be gone to meanwhile.
    pub(crate) fn hold(&self, hold: bool) {
        self.held
            .send_if_modified(|held| std::mem::replace(held, hold) != hold);
    }

    fn spawn<P>(playing: impl FnOnce(Requests) -> P) -> Self
    where
        P: Future<Output = ()> + Send + 'static,
    {
        let (position, seeks) = watch::channel(Duration::ZERO);
        let (held, holds) = watch::channel(false);
        let requests = Requests { seeks, holds };
        Self {
            task: tokio::spawn(playing(requests)).abort_handle(),
            position,
            held,
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is wanted of a player.
struct Requests {
    seeks: watch::Receiver<Duration>,
    holds: watch::Receiver<bool>,
}

/// What comes next.
enum Turn {
    Packet,
    Seek(Duration),
    /// Nobody wants anything any more.
    Over,
}

impl Requests {
    /// Waits until the file's time `at` is due, which is as much later as the file is held.
    async fn turn(&mut self, clock: &mut Clock, at: Duration) -> Turn {
        loop {
            if !*self.holds.borrow_and_update() {
                tokio::select! {
                    biased;
                    Ok(()) = self.seeks.changed() => break Turn::Seek(*self.seeks.borrow_and_update()),
                    Ok(()) = self.holds.changed() => continue,
                    () = sleep_until(clock.due(at)) => break Turn::Packet,
                }
            }
            let since = Instant::now();
            let turn = tokio::select! {
                biased;
                Ok(()) = self.seeks.changed() => Some(Turn::Seek(*self.seeks.borrow_and_update())),
                changed = self.holds.changed() => changed.is_err().then_some(Turn::Over),
            };
            clock.stood_still(since.elapsed());
            if let Some(turn) = turn {
                break turn;
            }
        }
    }
}

/// Plays until the file or its viewers end.
async fn play(file: MediaFile, feeds: &[PacketFeed], name: &str, mut requests: Requests) {
    let rates = file.tracks().iter().map(|track| track.codec.clock_rate());
    // When the next report is due, of each track.
    let mut reports: Vec<_> = rates.map(|rate| (rate, Duration::ZERO)).collect();
    let mut clock = Clock::start();
    let mut sent = file.nothing_sent();
    let mut reading = spawn_blocking(move || Batch::read(file, Batch::default()));
    let mut spare = Batch::default();
    'batches: loop {
        let (file, mut batch) = match reading.await {
            Ok(read) => read,
            Err(_) => return,
        };
        let ends = batch.ends;
        reading = spawn_blocking(move || Batch::read(file, spare));
        if let Some(error) = &batch.error {
            warn!(file = name, %error, again = !ends, "cannot be played any further");
        }
        for packet in &batch.packets {
            match requests.turn(&mut clock, packet.at).await {
                Turn::Packet => {}
                Turn::Seek(position) => {
                    // What was read ahead is dropped.
                    let Ok((file, _)) = reading.await else { return };
                    let sent = sent.clone();
                    reading = spawn_blocking(move || Batch::read_at(file, &sent, position, batch));
                    spare = Batch::default();
                    continue 'batches;
                }
                Turn::Over => return,
            }
            let (Some(feed), Some((rate, report))) =
                (feeds.get(packet.track), reports.get_mut(packet.track))
            else {
                continue;
            };
            let timestamp = packet.timestamp.wrapping_add(clock.held_ticks(*rate));
            if packet.at >= *report {
                *report = packet.at.saturating_add(REPORTS);
                // A report that finds no room comes again.
                let _ = feed.sender_report(0, clock.ntp(packet.presented), timestamp);
            }
            let Some(bytes) = batch.bytes.get_mut(packet.range.clone()) else {
                continue;
            };
            set_timestamp(bytes, timestamp);
            if feed.send(0, bytes) == Err(FeedError::Gone) {
                return;
            }
            sent.add(packet.track, packet.sequence, packet.at, packet.presented);
        }
        if ends {
            info!(file = name, "played to its end");
            return;
        }
        spare = batch;
    }
}

/// Times of the file on the clocks of this machine.
struct Clock {
    start: Instant,
    wall: Duration,
    /// How long the file was held. RTP's time goes on meanwhile, as if nothing had been there to send.
    held: Duration,
}

impl Clock {
    fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            start: Instant::now(),
            wall: wall.unwrap_or_default(),
            held: Duration::ZERO,
        }
    }

    /// All that is to come is later by `time`.
    fn stood_still(&mut self, time: Duration) {
        self.start += time;
        self.wall = self.wall.saturating_add(time);
        self.held = self.held.saturating_add(time);
    }

    /// How long the file was held in units of an RTP clock, which wrap.
    fn held_ticks(&self, rate: u32) -> u32 {
        let ticks = self.held.as_nanos().saturating_mul(rate.into()) / 1_000_000_000;
        // What wraps around is cut off.
        (ticks & u128::from(u32::MAX)) as u32
    }

    /// When the file's time `at` is due.
    fn due(&mut self, at: Duration) -> Instant {
        let (due, now) = (self.start + at, Instant::now());
        match now.checked_duration_since(due) {
            Some(late) if late > LATE => {
                self.start += late;
                self.wall += late;
                now
            }
            _ => due,
        }
    }

    /// The file's time `at` as NTP has it (32.32 bits since 1900).
    fn ntp(&self, at: Duration) -> u64 {
        const FROM_1900_TO_1970: u64 = 2_208_988_800;
        let since = self.wall.saturating_add(at);
        let seconds = since.as_secs().wrapping_add(FROM_1900_TO_1970);
        let fraction = (u64::from(since.subsec_nanos()) << 32) / 1_000_000_000;
        (seconds << 32) | fraction
    }
}

/// Packets that were read at once.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    packets: Vec<Packet>,
    error: Option<FileError>,
    /// Nothing comes after it.
    ends: bool,
}

#[derive(Debug)]
struct Packet {
    track: usize,
    at: Duration,
    presented: Duration,
    sequence: u16,
    timestamp: u32,
    range: Range<usize>,
}

impl Batch {
    /// Fills `self` with what comes at `position` of the file, right behind what was sent. Blocks.
    fn read_at(
        mut file: MediaFile,
        sent: &Sent,
        position: Duration,
        mut batch: Self,
    ) -> (MediaFile, Self) {
        match file.seek_behind(sent, position) {
            Ok(()) => Self::read(file, batch),
            Err(error) => {
                batch.packets.clear();
                batch.ends = file.seek_behind(sent, Duration::ZERO).is_err();
                batch.error = Some(error);
                (file, batch)
            }
        }
    }

    /// Fills `self` with what comes next. Blocks.
    fn read(mut file: MediaFile, mut batch: Self) -> (MediaFile, Self) {
        batch.bytes.clear();
        batch.packets.clear();
        batch.error = None;
        batch.ends = false;
        let mut until = None;
        while batch.bytes.len() < AHEAD_BYTES {
            match file.next() {
                Some(Ok(packet)) => {
                    let from = batch.bytes.len();
                    batch.bytes.extend_from_slice(packet.bytes);
                    batch.packets.push(Packet {
                        track: packet.track,
                        at: packet.at,
                        presented: packet.presented,
                        sequence: sequence(packet.bytes),
                        timestamp: timestamp(packet.bytes),
                        range: from..batch.bytes.len(),
                    });
                    if packet.at >= *until.get_or_insert(packet.at + AHEAD) {
                        break;
                    }
                }
                Some(Err(error)) => {
                    batch.error = Some(error);
                    batch.ends = file.played() < WORTHWHILE || file.seek(Duration::ZERO).is_err();
                    break;
                }
                None => {
                    batch.ends = true;
                    break;
                }
            }
        }
        (file, batch)
    }
}

/// The sequence number of an RTP packet.
fn sequence(packet: &[u8]) -> u16 {
    let bytes = packet.get(2..4).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

/// The timestamp of an RTP packet.
fn timestamp(packet: &[u8]) -> u32 {
    let bytes = packet.get(4..8).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn set_timestamp(packet: &mut [u8], timestamp: u32) {
    if let Some(bytes) = packet.get_mut(4..8) {
        bytes.copy_from_slice(&timestamp.to_be_bytes());
    }
}

/// A file that could not be opened because the server stops is as good as one that cannot be read.
fn flatten(
    opened: Result<Result<MediaFile, FileError>, JoinError>,
) -> Result<MediaFile, FileError> {
    opened.unwrap_or_else(|error| Err(FileError::Io(std::io::Error::other(error))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use portunus_core::media::ingest::{PacketReceiver, packet_feed};

    fn tone(seconds: usize, looping: bool) -> MediaFile {
        let options = OpenOptions {
            looping,
            ..OpenOptions::default()
        };
        let samples = std::io::Cursor::new(vec![0xd5; seconds * 8_000]);
        MediaFile::from_reader(samples, "alaw", &options).unwrap()
    }

    #[test]
    fn batches_are_bounded_and_follow_one_another() {
        let (mut file, mut batch) = Batch::read(tone(1, true), Batch::default());
        let mut expected = Duration::ZERO;
        for _ in 0..20 {
            assert!((12..=14).contains(&batch.packets.len()));
            for packet in &batch.packets {
                assert_eq!(packet.at, expected);
                assert_eq!(batch.bytes[packet.range.clone()].len(), 172);
                expected += Duration::from_millis(20);
            }
            (file, batch) = Batch::read(file, batch);
        }
    }

    #[test]
    fn the_last_batch_says_so() {
        let (file, batch) = Batch::read(tone(1, false), Batch::default());
        assert!(!batch.ends);
        let rest = (0..4).fold((file, batch), |(file, batch), _| Batch::read(file, batch));
        assert!(rest.1.ends && rest.1.error.is_none());
    }

    #[test]
    fn a_batch_after_a_seek_follows_what_was_sent() {
        let (file, batch) = Batch::read(tone(10, true), Batch::default());
        let mut sent = file.nothing_sent();
        let (gone, first) = (&batch.packets[..4], batch.packets[0].sequence);
        for packet in gone {
            sent.add(packet.track, packet.sequence, packet.at, packet.presented);
        }
        let start = batch.packets[0].timestamp;
        // Two batches more than what was sent, as when playing.
        let (file, batch) = Batch::read(file, batch);
        let (file, batch) = Batch::read(file, batch);
        let (_, batch) = Batch::read_at(file, &sent, Duration::from_secs(5), batch);
        let next = &batch.packets[0];
        assert_eq!(next.sequence, first.wrapping_add(4));
        assert_eq!(next.timestamp.wrapping_sub(start), 4 * 160);
        assert_eq!(next.at, Duration::from_millis(80));
    }

    /// A tone whose 20 ms are numbered.
    fn numbered() -> MediaFile {
        let samples: Vec<u8> = (0..8_000).map(|at| (at / 160) as u8).collect();
        let options = OpenOptions::default();
        MediaFile::from_reader(std::io::Cursor::new(samples), "alaw", &options).unwrap()
    }

    /// Of the packets that have come: sequence number, timestamp, and which 20 ms they are.
    fn come(receiver: &PacketReceiver) -> Vec<(u16, u32, u8)> {
        let packets = std::iter::from_fn(|| receiver.take_packet());
        packets
            .map(|packet| (sequence(&packet), timestamp(&packet), packet[12]))
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_held_goes_on_where_it_was() {
        let (feed, receiver) = packet_feed(1);
        let player = Player::start(numbered(), vec![feed], "tone");
        tokio::time::sleep(Duration::from_millis(110)).await;
        let before = come(&receiver);
        assert_eq!(before.len(), 6);
        player.hold(true);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(come(&receiver), []);
        player.hold(false);
        tokio::time::sleep(Duration::from_millis(110)).await;
        let after = come(&receiver);
        assert!((5..=6).contains(&after.len()), "{after:?}");
        let (last, next) = (before[5], after[0]);
        assert_eq!((next.0.wrapping_sub(last.0), next.2), (1, 6));
        assert_eq!(next.1.wrapping_sub(last.1), 160 + 10 * 8_000);
        assert_eq!(after[1].1.wrapping_sub(next.1), 160);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_held_goes_to_another_position() {
        let (feed, receiver) = packet_feed(1);
        let player = Player::start(numbered(), vec![feed], "tone");
        player.hold(true);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(player.seek(Duration::from_millis(500)));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(come(&receiver), []);
        player.hold(false);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(come(&receiver)[0].2, 25);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_stopped_does_not_hurry() {
        let mut clock = Clock::start();
        let start = Instant::now();
        assert_eq!(
            clock.due(Duration::from_secs(1)),
            start + Duration::from_secs(1)
        );
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(clock.due(Duration::from_secs(2)), Instant::now());
        let next = clock.due(Duration::from_secs(3));
        assert_eq!(next, Instant::now() + Duration::from_secs(1));
        let apart = clock.ntp(Duration::from_millis(1_500)) - clock.ntp(Duration::ZERO);
        assert!(apart.abs_diff(3 << 31) < 8);
    }
}
