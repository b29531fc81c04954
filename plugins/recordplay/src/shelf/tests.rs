#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::fs::create_dir;

use tempfile::TempDir;

use super::*;
use crate::nfo::MediaFiles;

/// A folder with so many described recordings.
fn shelf(recordings: u64) -> (TempDir, Arc<Shelf>) {
    let folder = tempfile::tempdir().unwrap();
    for id in 1..=recordings {
        describe(folder.path(), &recording(folder.path(), id));
    }
    let shelf = Arc::new(Shelf::new(folder.path().to_owned(), ""));
    (folder, shelf)
}

/// The files of a recording.
fn recording(folder: &Path, id: u64) -> Nfo {
    let audio = format!("rec-{id}-audio.mjr");
    fs::write(folder.join(&audio), b"MJR00002").unwrap();
    Nfo {
        id,
        name: "n".to_owned(),
        date: "d".to_owned(),
        is_private: false,
        files: MediaFiles {
            audio: Some(audio),
            ..MediaFiles::default()
        },
        key: None,
    }
}

fn describe(folder: &Path, nfo: &Nfo) {
    fs::write(described(folder, nfo.id), nfo.to_text()).unwrap();
}

async fn ids(shelf: &Shelf) -> Vec<u64> {
    shelf.list().await.iter().map(|it| it.nfo.id).collect()
}

#[tokio::test]
async fn those_who_ask_at_once_share_a_look_at_the_folder() {
    let (_folder, shelf) = shelf(20);
    let asked: Vec<_> = (0..200)
        .map(|_| {
            let shelf = Arc::clone(&shelf);
            tokio::spawn(async move { shelf.scan().await })
        })
        .collect();
    for asked in asked {
        asked.await.unwrap();
    }
    assert_eq!(ids(&shelf).await.len(), 20);
    // One that was running, and one for all later requests.
    assert!(shelf.looks.load(Ordering::SeqCst) <= 2);
    // A later request sees newer recordings.
    describe(shelf.folder(), &recording(shelf.folder(), 30));
    shelf.scan().await;
    assert_eq!(ids(&shelf).await.len(), 21);
}

#[tokio::test]
async fn a_look_that_nobody_waits_for_any_more_is_none() {
    let (_folder, shelf) = shelf(1);
    {
        let mut look = std::pin::pin!(shelf.scan());
        std::future::poll_fn(|context| {
            assert!(look.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
    }
    shelf.scan().await;
    assert_eq!(ids(&shelf).await, [1]);
}

#[tokio::test]
async fn only_what_has_changed_is_read_again() {
    let (folder, shelf) = shelf(3);
    shelf.scan().await;
    let before = shelf.list().await;
    let mut other = before[1].nfo.clone();
    other.name = "another name".to_owned();
    describe(folder.path(), &other);
    fs::write(folder.path().join("rec-3-audio.mjr"), b"MJR00002 and more").unwrap();
    shelf.scan().await;
    let after = shelf.list().await;
    assert!(Arc::ptr_eq(&before[0], &after[0]));
    assert_eq!(after[1].nfo.name, "another name");
    assert!(!Arc::ptr_eq(&before[2], &after[2]), "it is longer");
    fs::remove_file(folder.path().join("rec-1-audio.mjr")).unwrap();
    shelf.scan().await;
    assert!(!Arc::ptr_eq(&after[0], &shelf.list().await[0]));
}

#[tokio::test(start_paused = true)]
async fn what_a_full_disk_ended_is_listed_and_described_when_there_is_room() {
    let (folder, shelf) = shelf(0);
    let nfo = recording(folder.path(), 7);
    let path = described(folder.path(), 7);
    // Nothing can be written there.
    create_dir(&path).unwrap();
    let reserved = shelf.reserve(Some(7)).unwrap();
    shelf.finish(reserved, async move { nfo });
    assert_eq!(ids(&shelf).await, [7]);
    shelf.scan().await;
    assert_eq!(ids(&shelf).await, [7], "an update does not lose it");
    assert!(shelf.reserve(Some(7)).is_none(), "its number is taken");
    fs::remove_dir(&path).unwrap();
    // It is written without a request.
    while !path.is_file() {
        sleep(AGAIN).await;
    }
    shelf.scan().await;
    assert_eq!(ids(&shelf).await, [7]);
    assert_eq!(read_nfo(&path).unwrap().id, 7);
    let left = entries_of(folder.path()).count();
    assert_eq!(left, 2, "the description and the file");
}

#[tokio::test]
async fn an_update_writes_what_could_not_be_written() {
    let (folder, shelf) = shelf(0);
    let nfo = recording(folder.path(), 7);
    let path = described(folder.path(), 7);
    create_dir(&path).unwrap();
    let reserved = shelf.reserve(Some(7)).unwrap();
    shelf.finish(reserved, async move { nfo });
    assert_eq!(ids(&shelf).await, [7]);
    fs::remove_dir(&path).unwrap();
    shelf.scan().await;
    assert!(path.is_file());
    assert_eq!(ids(&shelf).await, [7]);
}
