//! Limits for players: how many play, and how many open files at a time, even if a disk hangs.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The limit of handles that play at a time.
const PLAYING: usize = 1_000;
/// The limit of recordings that are opened at a time, each on its own thread.
const OPENING: usize = 8;
/// The limit of requests that wait for that.
const WAITING: usize = 64;
/// The time limits for waiting, and then for opening.
const WAITS: Duration = Duration::from_secs(10);
const TAKES: Duration = Duration::from_secs(30);

/// The reason why nothing is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Busy {
    #[error("{PLAYING} clients play, and no more may at a time")]
    Playing,
    #[error("too many recordings are being opened, try again later")]
    Opening,
    #[error("the disk does not answer")]
    Disk,
    /// The server stops.
    #[error("the server stops")]
    Stopping,
}

/// The place of a handle among those that may play.
pub(crate) type Place = OwnedSemaphorePermit;

/// The counts of handles that play and of recordings that are being opened.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    playing: Arc<Semaphore>,
    /// The requests that wait or open.
    asked: Arc<Semaphore>,
    opening: Arc<Semaphore>,
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            playing: Arc::new(Semaphore::new(PLAYING)),
            asked: Arc::new(Semaphore::new(OPENING + WAITING)),
            opening: Arc::new(Semaphore::new(OPENING)),
        }
    }
}

impl Opening {
    /// Takes a place for a handle that plays.
    pub(crate) fn place(&self) -> Result<Place, Busy> {
        let place = Arc::clone(&self.playing).try_acquire_owned();
        place.map_err(|_| Busy::Playing)
    }

    /// Opens a file when it is its turn, in the order of requests. A thread that hangs keeps its
    /// turn, even if nobody waits for it any more.
    pub(crate) async fn open<T: Send + 'static>(
        &self,
        open: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let asked = Arc::clone(&self.asked).try_acquire_owned();
        let asked = asked.map_err(|_| Busy::Opening)?;
        let turn = timeout(WAITS, Arc::clone(&self.opening).acquire_owned());
        let turn = turn.await.map_err(|_| Busy::Opening)?;
        let turn = turn.map_err(|_| Busy::Stopping)?;
        let opened = spawn_blocking(move || {
            let _until_done = (asked, turn);
            open()
        });
        let opened = timeout(TAKES, opened).await.map_err(|_| Busy::Disk)?;
        opened.map_err(|_| Busy::Stopping)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use std::sync::mpsc;

    use tokio::time::advance;

    use super::*;

    #[test]
    fn so_many_play_and_who_ends_makes_room() {
        let opening = Opening::default();
        let mut places: Vec<_> = (0..PLAYING).map(|_| opening.place().unwrap()).collect();
        assert_eq!(opening.place().unwrap_err(), Busy::Playing);
        places.pop();
        assert!(opening.place().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_hangs_holds_few_threads_and_all_are_told() {
        let opening = Opening::default();
        let (go_on, hang) = mpsc::channel::<()>();
        let hang = Arc::new(std::sync::Mutex::new(hang));
        let open = || {
            let (opening, hang) = (opening.clone(), Arc::clone(&hang));
            tokio::spawn(async move {
                let opened = opening.open(move || hang.lock().unwrap().recv().is_ok());
                opened.await
            })
        };
        let opened: Vec<_> = (0..OPENING).map(|_| open()).collect();
        let waiting: Vec<_> = (0..WAITING).map(|_| open()).collect();
        while opening.asked.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        // One more is refused at once, and the waiting ones after a while.
        assert_eq!(opening.open(|| ()).await, Err(Busy::Opening));
        advance(WAITS + Duration::from_secs(1)).await;
        for waiting in waiting {
            assert_eq!(waiting.await.unwrap(), Err(Busy::Opening));
        }
        assert_eq!(opening.asked.available_permits(), WAITING);
        advance(TAKES).await;
        for opened in opened {
            assert_eq!(opened.await.unwrap(), Err(Busy::Disk));
        }
        // Their threads still hang.
        assert_eq!(opening.opening.available_permits(), 0);
        for _ in 0..OPENING {
            go_on.send(()).unwrap();
        }
        assert_eq!(opening.open(|| 7).await, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_no_more_leaves_its_room() {
        let opening = Opening::default();
        let all = Arc::clone(&opening.opening).acquire_many_owned(OPENING as u32);
        let all = all.await.unwrap();
        let gone = opening.open(|| ());
        assert!(timeout(Duration::from_secs(1), gone).await.is_err());
        assert_eq!(opening.asked.available_permits(), OPENING + WAITING);
        drop(all);
        assert_eq!(opening.open(|| ()).await, Ok(()));
    }
}
