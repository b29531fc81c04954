//! Files of plugins: parts of them, and disks that hang.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};

use futures_util::future::join_all;
use portunus_admin::{AdminOptions, Administration};
use portunus_api::Transports;
use portunus_core::testing::TestServer;
use portunus_core::{
    CoreConfig, Handle, Plugin, PluginHandle, PluginInfo, PublicFile, PublicFiles,
};
use portunus_echotest::EchoTest;
use tempfile::TempDir;

use crate::server::{Server, config};

/// The content of the file that is served.
const TEXT: &str = "0123456789";

/// A plugin with a file, on a disk that may hang.
#[derive(Debug)]
struct Shelf {
    folder: TempDir,
    disk: Arc<Disk>,
}

#[derive(Debug, Default)]
struct Disk {
    hangs: Mutex<bool>,
    answers: Condvar,
    waiting: AtomicUsize,
}

impl Disk {
    fn hang(&self, hangs: bool) {
        *self.hangs.lock().unwrap() = hangs;
        self.answers.notify_all();
    }

    /// Comes back once the disk answers.
    fn look(&self) {
        self.waiting.fetch_add(1, SeqCst);
        let hangs = self.hangs.lock().unwrap();
        drop(self.answers.wait_while(hangs, |hangs| *hangs).unwrap());
        self.waiting.fetch_sub(1, SeqCst);
    }
}

impl Plugin for Shelf {
    fn info(&self) -> PluginInfo {
        EchoTest.info()
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        EchoTest.attach(handle)
    }

    fn files(&self) -> Option<&dyn PublicFiles> {
        Some(self)
    }
}

impl PublicFiles for Shelf {
    fn find(&self, path: &str) -> Option<PublicFile> {
        let name = PathBuf::from(path.strip_prefix("/shelf/")?);
        let (path, disk) = (self.folder.path().join(name), Arc::clone(&self.disk));
        Some(PublicFile::sought(move || {
            disk.look();
            Some(path)
        }))
    }
}

async fn shelf() -> (Server, Arc<Disk>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.opus"), TEXT).unwrap();
    let disk = Arc::new(Disk::default());
    let plugin = Shelf {
        folder,
        disk: Arc::clone(&disk),
    };
    let core = TestServer::new(CoreConfig::default(), vec![Arc::new(plugin)]);
    let transports = Transports::start(
        config(),
        Administration::new(core.gateway.clone(), AdminOptions::default()),
        Vec::new(),
    )
    .await;
    let transports = transports.unwrap();
    (Server { core, transports }, disk)
}

#[tokio::test]
async fn files_are_served_whole_and_in_parts() {
    let (server, _disk) = shelf().await;
    let whole = server.get("/shelf/a.opus").await;
    assert_eq!((whole.status, whole.body.as_str()), (200, TEXT));
    assert_eq!(whole.header("content-type"), Some("audio/ogg"));
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    let ask = |method: &'static str, range: &'static str| {
        let server = &server;
        async move { server.request(method, "/shelf/a.opus", &[range], b"").await }
    };
    let part = ask("GET", "Range: bytes=3-5").await;
    assert_eq!((part.status, part.body.as_str()), (206, "345"));
    assert_eq!(part.header("content-range"), Some("bytes 3-5/10"));
    let none = ask("GET", "Range: bytes=10-").await;
    assert_eq!(none.status, 416);
    assert_eq!(none.header("content-range"), Some("bytes */10"));
    let head = ask("HEAD", "Range: bytes=3-").await;
    assert_eq!((head.status, head.body.as_str()), (206, ""));
    assert_eq!(head.header("content-length"), Some("7"));
    let date = whole.header("last-modified").unwrap();
    let since = format!("If-Modified-Since: {date}");
    let known = server.request("GET", "/shelf/a.opus", &[&since], b"").await;
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    assert_eq!(server.get("/shelf/b.opus").await.status, 404);
}

#[tokio::test]
async fn a_disk_that_hangs_holds_up_its_files_only() {
    let (server, disk) = shelf().await;
    disk.hang(true);
    let files = async {
        let answers = join_all((0..60).map(|_| server.get("/shelf/a.opus"))).await;
        for answer in answers {
            assert_eq!(answer.status, 503);
            assert_eq!(answer.body, "the disk does not answer\n");
        }
    };
    let others = async {
        while disk.waiting.load(SeqCst) < 16 {
            tokio::task::yield_now().await;
        }
        for _ in 0..20 {
            assert_eq!(server.get("/janus/info").await.status, 200);
        }
        // As what else needs threads that may block.
        tokio::task::spawn_blocking(|| ()).await.unwrap();
    };
    tokio::join!(files, others);
    assert_eq!(disk.waiting.load(SeqCst), 16);
    disk.hang(false);
    assert_eq!(server.get("/shelf/a.opus").await.body, TEXT);
}
