//! Disk reads for HTTP on a bounded number of threads, so that a hanging disk delays nothing else.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::try_unfold;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The most threads that wait for disks, of tokio's 512 blocking threads.
const MOST: usize = 16;
/// How long a request waits for a thread and the disk.
const PATIENCE: Duration = Duration::from_secs(5);
/// The size of a read, in bytes.
const PIECE: u64 = 64 << 10;

/// The disk did not answer in time, or still blocks earlier requests.
#[derive(Debug, thiserror::Error)]
#[error("the disk does not answer")]
pub(crate) struct NoAnswer;

/// The threads that wait for disks.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    places: Arc<Semaphore>,
    patience: Duration,
}

impl Default for Disk {
    fn default() -> Self {
        Self::new(MOST, PATIENCE)
    }
}

impl Disk {
    fn new(most: usize, patience: Duration) -> Self {
        Self {
            places: Arc::new(Semaphore::new(most)),
            patience,
        }
    }

    /// Runs a function that may block. It holds its place until it ends, even if the request times
    /// out.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let places = Arc::clone(&self.places);
        let answer = async {
            let place = places.acquire_owned().await.ok()?;
            let work = move || {
                let _place = place;
                work()
            };
            spawn_blocking(work).await.ok()
        };
        timeout(self.patience, answer)
            .await
            .ok()
            .flatten()
            .ok_or(NoAnswer)
    }

    /// Streams `len` bytes of a file from `at` on.
    pub(crate) fn read(
        self,
        file: File,
        at: u64,
        len: u64,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send {
        let end = at.saturating_add(len);
        try_unfold(
            (self, Arc::new(file), at),
            move |(disk, file, at)| async move {
                let wanted = end.saturating_sub(at).min(PIECE);
                if wanted == 0 {
                    return Ok(None);
                }
                let source = Arc::clone(&file);
                let read = move || {
                    let mut piece = vec![0; usize::try_from(wanted).unwrap_or(0)];
                    let len = source.read_at(&mut piece, at)?;
                    piece.truncate(len);
                    Ok(Bytes::from(piece))
                };
                let read: io::Result<Bytes> = disk.ask(read).await.map_err(io::Error::other)?;
                let piece = read?;
                if piece.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let at = at.saturating_add(piece.len() as u64);
                Ok(Some((piece, (disk, file, at))))
            },
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use futures_util::TryStreamExt;
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn a_disk_that_hangs_holds_so_many_threads_and_no_more() {
        let disk = Disk::new(3, Duration::from_millis(50));
        let hung = Arc::new(Barrier::new(4));
        let begun = Arc::new(AtomicUsize::new(0));
        let ask = || {
            let (hung, begun) = (Arc::clone(&hung), Arc::clone(&begun));
            disk.ask(move || {
                begun.fetch_add(1, SeqCst);
                hung.wait();
            })
        };
        // New requests follow those that time out, like clients that retry.
        for _ in 0..5 {
            let answers = join_all(std::iter::repeat_with(ask).take(20)).await;
            assert!(answers.iter().all(Result::is_err));
        }
        assert_eq!(begun.load(SeqCst), 3);
        // Other blocking work continues.
        assert_eq!(spawn_blocking(|| 7).await.unwrap(), 7);
        // Requests succeed again once the disk answers.
        let released = Arc::clone(&hung);
        spawn_blocking(move || released.wait()).await.unwrap();
        let answered = async { while disk.ask(|| ()).await.is_err() {} };
        timeout(Duration::from_secs(20), answered).await.unwrap();
    }

    #[tokio::test]
    async fn a_part_of_a_file_is_read_piece_by_piece() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[1]).collect();
        std::fs::write(&path, &bytes).unwrap();
        let read = |at, len| {
            let pieces = Disk::default().read(File::open(&path).unwrap(), at, len);
            pieces.try_collect::<Vec<_>>()
        };
        for (at, len) in [(0, 300_000), (17, 131_072), (299_999, 1), (5, 0)] {
            let pieces = read(at, len).await.unwrap();
            assert!(pieces.iter().all(|piece| piece.len() as u64 <= PIECE));
            let (from, to) = (at as usize, (at + len) as usize);
            assert_eq!(pieces.concat(), &bytes[from..to]);
        }
        // The file has become shorter.
        assert!(read(299_999, 2).await.is_err());
    }
}
