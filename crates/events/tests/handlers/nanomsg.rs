//! Events over nanomsg: to nanomsg's own program, and to peers that are not subscribers.

use std::process::Stdio;
use std::time::Duration;

use portunus_core::events::EventBus;
use portunus_events::Nanomsg;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::lifecycle::{Running, numbers, read, start, until};

async fn at(address: &str, keys: &str) -> Running {
    start::<Nanomsg>(&format!("address = \"{address}\"\n{keys}")).await
}

/// Returns a free port outside of the kernel's range for automatic ports (32768 to 60999).
async fn free_port() -> u16 {
    loop {
        let port = rand::random_range(10_000..32_768);
        if TcpListener::bind(("127.0.0.1", port)).await.is_ok() {
            return port;
        }
    }
}

/// nanomsg's own subscriber, which prints a line for each message.
struct Nanocat {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Nanocat {
    /// Returns `None` if the program is not installed.
    fn start(arguments: &[&str]) -> Option<Self> {
        let mut command = Command::new("nanocat");
        command.args(["--sub", "--ascii"]).args(arguments);
        let process = command.kill_on_drop(true).stdout(Stdio::piped()).spawn();
        let Ok(mut process) = process else {
            eprintln!("skipped: there is no nanocat here");
            return None;
        };
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Some(Nanocat {
            _process: process,
            lines,
        })
    }

    async fn next(&mut self) -> Vec<u64> {
        let line = timeout(Duration::from_secs(20), self.lines.next_line()).await;
        numbers(line.unwrap().unwrap().unwrap().as_bytes())
    }
}

#[tokio::test]
async fn a_subscriber_that_is_bound_is_connected_to_over_tcp_and_ipc() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.sock");
    for address in [
        format!("tcp://127.0.0.1:{}", free_port().await),
        format!("ipc://{}", path.display()),
    ] {
        let handler = at(&address, "").await;
        handler.publish(0..3);
        // Without a subscriber the events wait.
        until(|| handler.counter("failed") >= 1, || handler.last_error()).await;
        let Some(mut nanocat) = Nanocat::start(&["--bind", &address]) else {
            return;
        };
        assert_eq!(nanocat.next().await, [0, 1, 2], "{address}");
        handler.until("sent", 3).await;
        assert_eq!(handler.counter("lost"), 0);
    }
}

#[tokio::test]
async fn any_number_of_subscribers_may_connect_over_tcp_and_ipc() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.sock");
    // A socket that an earlier server left does not matter.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    for address in [
        format!("tcp://127.0.0.1:{}", free_port().await),
        format!("ipc://{}", path.display()),
    ] {
        let handler = at(&address, "mode = \"bind\"\nbatch_pause_ms = 0\n").await;
        let connect = || Nanocat::start(&["--connect", &address]);
        let (Some(mut first), Some(mut second)) = (connect(), connect()) else {
            return;
        };
        // Events are sent until both are there. The earlier ones have no receiver.
        let mut sent = 0;
        while handler.counter("sent") < sent + 2 {
            sent = handler.counter("sent");
            handler.publish([0]);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        handler.publish([1]);
        for nanocat in [&mut first, &mut second] {
            while nanocat.next().await != [1] {}
        }
    }
}

#[tokio::test]
async fn who_does_not_read_misses_events_and_the_others_do_not() {
    let port = free_port().await;
    let keys = "mode = \"bind\"\nbatch_pause_ms = 0\ngrouping = false\n";
    let handler = at(&format!("tcp://127.0.0.1:{port}"), keys).await;
    let greet = async || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(b"\0SP\0\0\x21\0\0").await.unwrap();
        let mut theirs = [0; 8];
        stream.read_exact(&mut theirs).await.unwrap();
        assert_eq!(&theirs, b"\0SP\0\0\x20\0\0");
        stream
    };
    let _silent = greet().await;
    let mut reading = greet().await;
    let large = "x".repeat(1 << 20);
    for n in 0..40 {
        handler.publish_body(json!({ "n": n, "large": large }));
        let length = reading.read_u64().await.unwrap();
        let mut body = vec![0; usize::try_from(length).unwrap()];
        reading.read_exact(&mut body).await.unwrap();
        assert_eq!(numbers(&body), [n]);
    }
    assert!(handler.counter("lost") > 0);
}

#[tokio::test]
async fn who_is_no_subscriber_is_told_of() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let handler = at(&address, "").await;
    for (theirs, error) in [
        (b"SSH-2.0-".as_slice(), "does not speak nanomsg"),
        (b"\0SP\0\0\x20\0\0", "type 32"),
        (b"\0SP", "eof"),
    ] {
        let before = handler.counter("failed");
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(theirs).await.unwrap();
        drop(stream);
        until(
            || handler.counter("failed") > before,
            || handler.last_error(),
        )
        .await;
        assert!(
            handler.last_error().contains(error),
            "{}",
            handler.last_error()
        );
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_said_at_the_start() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let keys = format!("address = \"{address}\"\nmode = \"bind\"\n");
    let started = read::<Nanomsg>(&keys)
        .unwrap()
        .start(&EventBus::default())
        .await;
    let error = started.unwrap_err().to_string();
    assert!(error.contains(&address), "{error}");
}

#[tokio::test]
async fn grouping_can_be_tweaked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let handler = at(&address, "").await;
    assert_eq!(handler.tweak(json!({ "grouping": "no" })), Err(413));
    assert_eq!(handler.tweak(json!({ "grouping": false })), Ok(()));
    assert_eq!(handler.tweak(json!({ "events": 1 })), Err(413));
}
