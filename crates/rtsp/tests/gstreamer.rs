//! A real server: gst-rtsp-server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod support;

use std::process::Stdio;
use std::time::Duration;

use portunus_rtsp::{Config, RtspError, Session, Transport};
use support::{PATIENCE, Pull, Told, refusal};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

struct Gst {
    child: Child,
    port: u16,
}

impl Gst {
    /// Starts a server. `port` 0 means any free one.
    async fn start(port: u16, login: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gst_server.py");
        // Debian's Python has Debian's bindings.
        let mut child = Command::new("/usr/bin/python3")
            .args([script, &port.to_string(), login])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let reading = timeout(PATIENCE, output.read_line(&mut line)).await;
        reading.expect("it starts").unwrap();
        let port = line.trim().parse().expect(
            "gst-rtsp-server runs (packages python3-gi, gir1.2-gst-rtsp-server-1.0, \
             gstreamer1.0-plugins-good and -ugly)",
        );
        Self { child, port }
    }

    async fn end(mut self) {
        drop(self.child.stdin.take());
        let _ = timeout(PATIENCE, self.child.wait()).await;
        let mut rest = Vec::new();
        if let Some(mut output) = self.child.stdout.take() {
            let _ = output.read_to_end(&mut rest).await;
        }
    }
}

/// GStreamer's encoders make their first frames before the answer, which takes long on a busy
/// machine.
fn patient(url: String) -> Config {
    Config {
        request_timeout: PATIENCE / 2,
        reconnect_delay: Duration::from_millis(1_500),
        ..Config::new(url)
    }
}

#[tokio::test]
#[ignore = "needs gst-rtsp-server; the script for tests runs it"]
async fn gstreamer_over_udp_and_tcp() {
    let server = Gst::start(0, "digest").await;
    for (path, transport, is_tcp) in [
        ("av", Transport::Udp, false),
        ("av", Transport::Tcp, true),
        ("tcp", Transport::UdpThenTcp, true),
        ("av", Transport::UdpThenTcp, false),
    ] {
        let url = format!("rtsp://127.0.0.1:{}/{path}", server.port);
        let config = Config {
            transport,
            ..patient(url)
        };
        let session = Session::open(&config).await.unwrap();
        assert_eq!(session.is_tcp(), is_tcp, "{path} {transport:?}");
        let [audio, video] = session.media() else {
            panic!("two media")
        };
        assert_eq!((audio.encoding.as_str(), audio.pt), ("PCMA", 8));
        assert_eq!((video.encoding.as_str(), video.pt), ("H264", 96));
        assert!(
            video
                .fmtp
                .as_deref()
                .unwrap()
                .contains("sprop-parameter-sets")
        );
        session.close().await;
        let mut pulled = Pull::start(config);
        for (medium, pt) in [(0, 8), (1, 96)] {
            for _ in 0..10 {
                let is_it = |told: &Told| *told == Told::Packet(medium, pt);
                pulled.until("a packet", is_it).await;
            }
        }
        pulled
            .until("a report", |told| matches!(told, Told::Report(_)))
            .await;
        pulled.stop().await;
    }
    server.end().await;
}

#[tokio::test]
#[ignore = "needs gst-rtsp-server; the script for tests runs it"]
async fn gstreamer_with_logins() {
    for login in ["basic", "digest"] {
        let server = Gst::start(0, login).await;
        let url = format!("rtsp://127.0.0.1:{}/login", server.port);
        let error = refusal(&patient(url.clone())).await;
        assert!(
            matches!(error, RtspError::Unauthorized(_) | RtspError::Status { .. }),
            "{error}"
        );
        let right = url.replace("rtsp://", "rtsp://user:secret@");
        let mut pulled = Pull::start(patient(right));
        let is_packet = |told: &Told| *told == Told::Packet(1, 96);
        pulled.until("a packet", is_packet).await;
        pulled.stop().await;
        server.end().await;
    }
}

#[tokio::test]
#[ignore = "needs gst-rtsp-server; the script for tests runs it"]
async fn gstreamer_is_killed_and_comes_back() {
    let server = Gst::start(0, "digest").await;
    let port = server.port;
    let mut pulled = Pull::start(patient(format!("rtsp://127.0.0.1:{port}/av")));
    let is_packet = |told: &Told| *told == Told::Packet(1, 96);
    pulled.until("a packet", is_packet).await;
    server.end().await;
    pulled
        .until("the loss", |told| matches!(told, Told::Lost(_)))
        .await;
    let server = Gst::start(port, "digest").await;
    pulled
        .until("a new session", |told| matches!(told, Told::Connected(_)))
        .await;
    pulled.until("a packet", is_packet).await;
    pulled.stop().await;
    server.end().await;
}
