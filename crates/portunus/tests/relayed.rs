//! The server's own address at a TURN server of others: coturn (skipped with a message where it is
//! not installed). Clients are told of nothing else, so a call that works is relayed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod calls;
mod server;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use calls::Call;
use portunus_tests::free_port;
use server::{PATIENCE, Process, metric, run};

const WORKERS: u64 = 2;

/// A TURN server for `media` with the password `secret`, in a folder with its certificate.
struct Coturn<'f> {
    folder: &'f Path,
    port: u16,
    tls_port: u16,
    process: Option<Process>,
}

impl<'f> Coturn<'f> {
    /// `None` if there is no such program.
    fn start(folder: &'f Path) -> Option<Self> {
        if Command::new("turnserver")
            .arg("--version")
            .output()
            .is_err()
        {
            println!("skipped: there is no turnserver (coturn)");
            return None;
        }
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
            ])
            .args(["-nodes", "-days", "1", "-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args(["-keyout", "key.pem", "-out", "cert.pem"])
            .current_dir(folder)
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        let mut coturn = Coturn {
            folder,
            port: free_port(),
            tls_port: free_port(),
            process: None,
        };
        coturn.run();
        Some(coturn)
    }

    fn run(&mut self) {
        let file = |name: &str| self.folder.join(name).display().to_string();
        let process = Command::new("turnserver")
            .args(["-n", "--no-cli", "--no-dtls", "--allow-loopback-peers"])
            .args(["-L", "127.0.0.1", "-E", "127.0.0.1"])
            .args(["-a", "-u", "media:secret", "-r", "example.org"])
            .args(["-p", &self.port.to_string()])
            .args(["--tls-listening-port", &self.tls_port.to_string()])
            .args(["--cert", &file("cert.pem"), "--pkey", &file("key.pem")])
            .args(["--pidfile", &file("pid"), "--db", &file("db")])
            .args(["--log-file", "stdout"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.process = Some(Process(process.unwrap()));
        let patience = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", self.tls_port)).is_err() {
            assert!(Instant::now() < patience, "coturn does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A server that uses it, and where its API is.
    fn used(&self, uri: &str, password: &str, one_port: bool) -> (Process, String) {
        let ca = self.folder.join("cert.pem");
        let config = format!(
            "[http]\nbind = [\"127.0.0.1\"]\nport = 0\n[websocket]\nenabled = false\n[admin]\nport = 0\n\
             [media]\nbind = [\"127.0.0.1\"]\nport = 0\nworkers = {WORKERS}\npin = false\none_port = {one_port}\n\
             turn_server = {uri:?}\nturn_user = \"media\"\nturn_password = {password:?}\nturn_ca = {ca:?}\n\
             force_relay = true\n"
        );
        let path = self.folder.join("portunus.toml");
        std::fs::write(&path, config).unwrap();
        run(&path)
    }
}

fn allocations(api: &str) -> u64 {
    metric(api, "portunus_media_relayed_allocations")
}

fn wait_for_allocations(api: &str, wanted: u64) {
    let patience = Instant::now() + PATIENCE;
    while allocations(api) != wanted {
        assert!(
            Instant::now() < patience,
            "{} allocations",
            allocations(api)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Calls on both workers work, and are relayed.
async fn calls_are_relayed(api: &str) {
    let sent = || metric(api, "portunus_media_relayed_sent_datagrams_total");
    let received = || metric(api, "portunus_media_relayed_received_datagrams_total");
    let before = (sent(), received());
    let mut calls = Vec::new();
    for _ in 0..WORKERS {
        calls.push(Call::start(api).await);
    }
    for call in &mut calls {
        call.echoes(0).await;
    }
    assert!(sent() >= before.0 + 10 && received() >= before.1 + 10);
    assert!(metric(api, "portunus_media_relayed_channels") >= WORKERS);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_relayed_by_udp_tcp_and_tls() {
    let folder = tempfile::tempdir().unwrap();
    let Some(coturn) = Coturn::start(folder.path()) else {
        return;
    };
    let (port, tls_port) = (coturn.port, coturn.tls_port);
    for (uri, one_port) in [
        (format!("turn:127.0.0.1:{port}"), false),
        (format!("turn:127.0.0.1:{port}"), true),
        (format!("turn:127.0.0.1:{port}?transport=tcp"), false),
        (format!("turns:localhost:{tls_port}"), false),
    ] {
        let (_server, api) = coturn.used(&uri, "secret", one_port);
        wait_for_allocations(&api, WORKERS);
        calls_are_relayed(&api).await;
        assert_eq!(
            metric(&api, "portunus_media_relayed_refused_total"),
            0,
            "{uri}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_goes_and_returns_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut coturn) = Coturn::start(folder.path()) else {
        return;
    };
    let uri = format!("turn:127.0.0.1:{}?transport=tcp", coturn.port);
    let (_server, api) = coturn.used(&uri, "secret", false);
    wait_for_allocations(&api, WORKERS);
    coturn.process = None;
    wait_for_allocations(&api, 0);
    coturn.run();
    wait_for_allocations(&api, WORKERS);
    calls_are_relayed(&api).await;
}

#[test]
fn a_wrong_password_ends_nothing_and_nobody_is_told_of_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let Some(coturn) = Coturn::start(folder.path()) else {
        return;
    };
    let uri = format!("turn:127.0.0.1:{}", coturn.port);
    let (_server, api) = coturn.used(&uri, "guess", false);
    assert_eq!(allocations(&api), 0);
    assert_eq!(metric(&api, "portunus_media_relayed_channels"), 0);
}
