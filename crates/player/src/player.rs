//! The player of a file.

use std::time::Duration;

use portunus_files::{FileError, Play};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tracing::{info, warn};

use crate::batch::Batch;
use crate::clock::Clock;
use crate::disk::on_disk;
use crate::feed::{Feed, Gone};
use crate::requests::{Hold, Requests, Turn};

/// The interval of reports, by which viewers synchronize the streams.
const REPORTS: Duration = Duration::from_secs(5);

/// A file that is being played. Dropping it stops it.
#[derive(Debug)]
pub struct Player {
    task: AbortHandle,
    /// The requested position. The last request counts.
    position: watch::Sender<Duration>,
    hold: Hold,
    ended: watch::Receiver<Option<Ended>>,
}

/// The end of a player, unless it was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The file was played to its end.
    Complete,
    /// The file could not be read.
    Failed,
    /// Nobody receives the packets any more.
    Unwanted,
}

impl Player {
    /// Plays `file`, each track into the feed at its index. The name is for the log.
    pub fn start(file: Box<dyn Play>, feeds: Vec<Feed>, name: &str) -> Self {
        Self::start_held_by(Hold::default(), file, feeds, name)
    }

    /// Plays `file`, and pauses whenever `hold` is set.
    pub fn start_held_by(hold: Hold, file: Box<dyn Play>, feeds: Vec<Feed>, name: &str) -> Self {
        let name = name.to_owned();
        let playing = async move |requests| play(file, &feeds, &name, requests).await;
        Self::spawn(hold, playing)
    }

    /// Opens the file on a blocking thread, and plays it. The file must have as many tracks as
    /// there are feeds.
    pub fn open(
        open: impl FnOnce() -> Result<Box<dyn Play>, FileError> + Send + 'static,
        feeds: Vec<Feed>,
        name: String,
    ) -> Self {
        Self::spawn(Hold::default(), async move |requests| {
            let opened = on_disk(open).await;
            match opened.ok().flatten().unwrap_or_else(|| Err(stopping())) {
                Ok(file) if file.clock_rates().len() == feeds.len() => {
                    play(file, &feeds, &name, requests).await
                }
                Ok(_) => {
                    warn!(file = name, "the file has other tracks than before");
                    Ended::Failed
                }
                Err(error) => {
                    warn!(file = name, %error, "cannot play");
                    Ended::Failed
                }
            }
        })
    }

    /// Seeks to `position` of the file. Returns false if the player has ended.
    pub fn seek(&self, position: Duration) -> bool {
        self.position.send(position).is_ok()
    }

    /// Pauses or resumes all players of its [`Hold`].
    pub fn hold(&self, hold: bool) {
        self.hold.set(hold);
    }

    /// Waits for the end without holding the player.
    pub fn ended(&self) -> impl Future<Output = Ended> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            let ended = ended.wait_for(Option::is_some).await;
            ended.ok().and_then(|it| *it).unwrap_or(Ended::Unwanted)
        }
    }

    fn spawn<P>(hold: Hold, playing: impl FnOnce(Requests) -> P) -> Self
    where
        P: Future<Output = Ended> + Send + 'static,
    {
        let (position, seeks) = watch::channel(Duration::ZERO);
        let (tell, ended) = watch::channel(None);
        let playing = playing(Requests::new(seeks, &hold));
        let task = tokio::spawn(async move {
            tell.send_replace(Some(playing.await));
        });
        Self {
            task: task.abort_handle(),
            position,
            hold,
            ended,
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Plays until the file ends or nobody receives it.
async fn play(file: Box<dyn Play>, feeds: &[Feed], name: &str, mut requests: Requests) -> Ended {
    // When the next report of each track is due.
    let rates = file.clock_rates().into_iter();
    let mut reports: Vec<_> = rates.map(|rate| (rate, Duration::ZERO)).collect();
    let mut clock = Clock::start();
    let mut sent = file.nothing_sent();
    let mut reading = on_disk(move || Batch::read(file, Batch::default()));
    let mut spare = Batch::default();
    'batches: loop {
        let Some((file, mut batch)) = reading.await.ok().flatten() else {
            return Ended::Failed;
        };
        let ends = batch.ends;
        reading = on_disk(move || Batch::read(file, spare));
        let error = batch.error.take();
        if let Some(error) = &error {
            warn!(file = name, %error, again = !ends, "cannot be played any further");
        }
        for index in 0..batch.packets.len() {
            let Some(packet) = batch.packets.get(index) else {
                break;
            };
            let (track, at, presented) = (packet.track, packet.at, packet.presented);
            let (sequence, timestamp) = (packet.sequence, packet.timestamp);
            match requests.turn(&mut clock, at).await {
                Turn::Packet => {}
                Turn::Seek(position) => {
                    // Packets that were read ahead are dropped.
                    let Some((file, _)) = reading.await.ok().flatten() else {
                        return Ended::Failed;
                    };
                    let sent = sent.clone();
                    reading = on_disk(move || Batch::read_at(file, &sent, position, batch));
                    spare = Batch::default();
                    continue 'batches;
                }
                Turn::Over => return Ended::Unwanted,
            }
            let (Some(feed), Some((rate, report))) = (feeds.get(track), reports.get_mut(track))
            else {
                continue;
            };
            // Messages have no timestamp.
            let timestamp = rate.map(|rate| timestamp.wrapping_add(clock.held_ticks(rate)));
            if let Some(timestamp) = timestamp
                && at >= *report
            {
                *report = at.saturating_add(REPORTS);
                feed.report(clock.ntp(presented), timestamp);
            }
            let Some(bytes) = batch.stamped(index, timestamp) else {
                continue;
            };
            if feed.send(bytes) == Err(Gone) {
                return Ended::Unwanted;
            }
            sent.add(track, sequence, at, presented);
        }
        if ends {
            info!(file = name, "played to its end");
            return match error {
                None => Ended::Complete,
                Some(_) => Ended::Failed,
            };
        }
        spare = batch;
    }
}

/// The error of a file that was not opened because the server stops.
fn stopping() -> FileError {
    FileError::Io(std::io::Error::other("the server stops"))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use portunus_files::{MediaFile, OpenOptions};
    use portunus_media::ingest::{PacketReceiver, packet_feed};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A tone whose packets are numbered.
    fn numbered() -> Box<dyn Play> {
        let samples: Vec<u8> = (0..8_000).map(|at| (at / 160) as u8).collect();
        let options = OpenOptions {
            looping: false,
            ..OpenOptions::default()
        };
        let samples = std::io::Cursor::new(samples);
        Box::new(MediaFile::from_reader(samples, "alaw", &options).unwrap())
    }

    /// Returns sequence number, timestamp and packet number of the received packets.
    fn come(receiver: &PacketReceiver) -> Vec<(u16, u32, u8)> {
        let packets = std::iter::from_fn(|| receiver.take_packet());
        packets
            .map(|packet| {
                let sequence = u16::from_be_bytes([packet[2], packet[3]]);
                let timestamp = u32::from_be_bytes(packet[4..8].try_into().unwrap());
                (sequence, timestamp, packet[12])
            })
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_held_goes_on_where_it_was() {
        let (feed, receiver) = packet_feed(1);
        let player = Player::start(numbered(), vec![feed.into()], "tone");
        tokio::time::sleep(110 * MS).await;
        let before = come(&receiver);
        assert_eq!(before.len(), 6);
        player.hold(true);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(come(&receiver), []);
        player.hold(false);
        tokio::time::sleep(110 * MS).await;
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
        let player = Player::start(numbered(), vec![feed.into()], "tone");
        player.hold(true);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(player.seek(500 * MS));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(come(&receiver), []);
        player.hold(false);
        tokio::time::sleep(50 * MS).await;
        assert_eq!(come(&receiver)[0].2, 25);
    }

    #[tokio::test(start_paused = true)]
    async fn players_with_one_hold_stand_still_together() {
        let hold = Hold::default();
        let play = || {
            let (feed, receiver) = packet_feed(1);
            let player = Player::start_held_by(hold.clone(), numbered(), vec![feed.into()], "tone");
            (player, receiver)
        };
        let ((one, of_one), (_other, of_other)) = (play(), play());
        one.hold(true);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((come(&of_one), come(&of_other)), (vec![], vec![]));
        drop(one);
        hold.set(false);
        tokio::time::sleep(50 * MS).await;
        assert!(come(&of_one).is_empty());
        assert_eq!(come(&of_other).len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_the_end_is_told_how_it_came() {
        let (feed, receiver) = packet_feed(1);
        let player = Player::start(numbered(), vec![feed.clone().into()], "tone");
        assert_eq!(player.ended().await, Ended::Complete);
        assert_eq!(come(&receiver).len(), 50);
        assert!(!player.seek(Duration::ZERO));

        let player = Player::start(numbered(), vec![feed.clone().into()], "tone");
        let ended = player.ended();
        drop(player);
        assert_eq!(ended.await, Ended::Unwanted);

        let missing = || Err(FileError::NotAFile);
        let player = Player::open(missing, vec![feed.clone().into()], "tone".to_owned());
        assert_eq!(player.ended().await, Ended::Failed);

        drop(receiver);
        let player = Player::start(numbered(), vec![feed.into()], "tone");
        assert_eq!(player.ended().await, Ended::Unwanted);
    }
}
