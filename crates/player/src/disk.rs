//! Reading of files on tokio's blocking threads. The number of readers is limited, so that a disk
//! that hangs leaves threads to others.

use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};

/// Players that read at a time. Each reads a quarter of a second; the others wait in order.
const AT_A_TIME: usize = 64;

static READING: Semaphore = Semaphore::const_new(AT_A_TIME);

/// Runs `work` on a blocking thread when it is its turn. Returns `None` if the server stops.
pub(crate) fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<Option<T>> {
    in_turn(&READING, work)
}

fn in_turn<T: Send + 'static>(
    turns: &'static Semaphore,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<Option<T>> {
    tokio::spawn(async {
        let turn = turns.acquire().await.ok()?;
        // The thread keeps its turn even if nobody waits for it any more.
        let done = spawn_blocking(move || {
            let _until_done = turn;
            work()
        });
        done.await.ok()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use std::sync::mpsc;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_disk_that_hangs_takes_so_many_threads_and_no_more() {
        // A semaphore of its own, because other tests read at the same time.
        static TURNS: Semaphore = Semaphore::const_new(3);
        let (go_on, hang) = mpsc::channel::<()>();
        let hang = Arc::new(Mutex::new(hang));
        let hanging: Vec<_> = (0..3)
            .map(|_| {
                let hang = Arc::clone(&hang);
                in_turn(&TURNS, move || hang.lock().unwrap().recv().is_ok())
            })
            .collect();
        let mut next = in_turn(&TURNS, || 7);
        let waits = timeout(Duration::from_millis(100), &mut next).await;
        assert!(waits.is_err(), "all turns are taken");
        // Other work still has threads.
        assert_eq!(spawn_blocking(|| 8).await.unwrap(), 8);
        for _ in 0..3 {
            go_on.send(()).unwrap();
        }
        for hanging in hanging {
            assert_eq!(hanging.await.unwrap(), Some(true));
        }
        assert_eq!(next.await.unwrap(), Some(7));
    }
}
