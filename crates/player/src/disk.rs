//! Files are read on the threads for what blocks, by so many players at a time: a disk that hangs is not to take all of these threads,
//! which others need as well.

use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};

/// Players that read at a time. Each reads a quarter of a second at once; the others wait in the order in which they came.
const AT_A_TIME: usize = 64;

static READING: Semaphore = Semaphore::const_new(AT_A_TIME);

/// Does `work` on a thread for what blocks, once it is its turn; nothing if the server stops meanwhile.
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
        // Whoever waits no longer leaves the thread at its work, which keeps its turn.
        let done = spawn_blocking(move || {
            let _until_done = turn;
            work()
        });
        done.await.ok()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_disk_that_hangs_takes_so_many_threads_and_no_more() {
        // Of its own: other tests read meanwhile.
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
        // Others do not miss these threads.
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
