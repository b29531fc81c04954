//! The consumer that the guide shows, pasted and started.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use portunus_events::Webhook;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

use crate::lifecycle::{Running, start};

async fn posting_to(port: u16, secret: &str) -> Running {
    let keys = format!(
        "backend = \"http://127.0.0.1:{port}/\"\nhmac_secret = \"{secret}\"\nmax_retransmissions = 100\n\
         retransmissions_backoff = 50\n"
    );
    start::<Webhook>(&keys).await
}

#[tokio::test]
async fn prints_events_whose_signature_is_right_and_refuses_others() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/events.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let program = guide.split("```python\n").nth(1).unwrap();
    let program = program.split("```").next().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.py");
    assert!(program.contains("9000"));
    std::fs::write(&path, program.replace("9000", &port.to_string())).unwrap();
    let mut command = Command::new("python3");
    command.arg(&path).kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut consumer) = command.spawn() else {
        eprintln!("skipped: there is no python3 here");
        return;
    };
    let mut lines = BufReader::new(consumer.stdout.take().unwrap()).lines();
    let stranger = posting_to(port, "guessed").await;
    stranger.publish([1]);
    stranger.until("lost", 1).await;
    assert!(
        stranger.last_error().contains("403"),
        "{}",
        stranger.last_error()
    );
    let right = posting_to(port, "change me").await;
    right.publish([2]);
    right.until("sent", 1).await;
    let line = timeout(Duration::from_secs(20), lines.next_line()).await;
    assert_eq!(line.unwrap().unwrap().unwrap(), "256 - {'n': 2}");
}
