//! The log of a running server: the server does not wait for its reader, and strangers neither
//! flood it nor forge lines.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::Peer;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything should take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server, whose standard error is a pipe that is not read unless a test does.
struct Server {
    process: Child,
    api: String,
    _folder: TempDir,
}

impl Server {
    fn start(log: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "[http]\nbind = [\"127.0.0.1\"]\nport = 0\n[websocket]\nenabled = false\n\
             [media]\nbind = [\"127.0.0.1\"]\nport = 0\nworkers = 1\n[admin]\nport = 0\n[log]\n{log}"
        );
        let path = folder.path().join("portunus.toml");
        std::fs::write(&path, config).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_portunus"))
            .arg("--config")
            .arg(path)
            .env_remove("PORTUNUS_LOG")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let api = loop {
            let line = lines.next().expect("the banner").unwrap();
            if let Some(url) = line.trim_start().strip_prefix("HTTP") {
                break url.trim().to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Server {
            process,
            api,
            _folder: folder,
        }
    }

    /// The session and the handle of a client of `plugin`.
    fn attach(&self, plugin: &str) -> (String, String) {
        let id = |reply: Value| reply["data"]["id"].as_u64().expect("an id");
        let create = json!({ "janus": "create", "transaction": "t" });
        let session = format!("{}/{}", self.api, id(post(&self.api, &create)));
        let attach = json!({ "janus": "attach", "transaction": "t", "plugin": plugin });
        let handle = format!("{session}/{}", id(post(&session, &attach)));
        (session, handle)
    }

    /// A number at `/metrics`.
    fn metric(&self, name: &str) -> u64 {
        let metrics = http("GET", &self.api.replace("/janus", "/metrics"), "");
        let mut lines = metrics.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.expect(name).parse().unwrap()
    }

    fn terminate(&self) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end that a signal asked for; gives all of the log that was not read before.
    fn ended(mut self) -> String {
        let mut log = String::new();
        let mut stderr = self.process.stderr.take().unwrap();
        stderr.read_to_string(&mut log).unwrap();
        assert!(self.process.wait().unwrap().success(), "{log}");
        log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn http(method: &str, url: &str, body: &str) -> String {
    let url = url.strip_prefix("http://").unwrap();
    let (host, path) = url.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn post(url: &str, request: &Value) -> Value {
    serde_json::from_str(&http("POST", url, &request.to_string())).unwrap()
}

/// A call to the echo test, with sound and a data channel; with its offer and the answer.
async fn call(server: &Server) -> (Peer, [String; 2]) {
    let (session, handle) = server.attach("janus.plugin.echotest");
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio.add_codec(CodecName::Opus, None, None);
    let mut peer = Peer::offering().await;
    let offer = peer.offer(Description::offer(OfferOptions {
        media: vec![audio, MediaOffer::new(Kind::Data, Direction::SendRecv)],
        ..Default::default()
    }));
    let message = json!({
        "janus": "message", "transaction": "t", "body": { "audio": true },
        "jsep": { "type": "offer", "sdp": offer },
    });
    assert_eq!(post(&handle, &message)["janus"], "ack");
    let answer = loop {
        let event: Value = serde_json::from_str(&http("GET", &session, "")).unwrap();
        if let Some(sdp) = event["jsep"]["sdp"].as_str() {
            break sdp.to_owned();
        }
    };
    peer.accept(&answer);
    peer.connect().await;
    (peer, [offer, answer])
}

/// Says something on the data channel and waits for the echo.
async fn talk(peer: &mut Peer, number: usize) {
    peer.send_text("chat", &format!("{number}"));
    peer.run_until(|peer| peer.texts("chat").len() > number)
        .await;
}

#[tokio::test]
async fn calls_go_on_while_nobody_reads_the_log() {
    // Several lines for each packet, written where packets are relayed.
    let server = Server::start("filter = \"info,sctp_proto=trace,is=trace\"\n");
    let (mut peer, _) = call(&server).await;
    let lost = "portunus_log_lines_lost_total{reason=\"unread\"}";
    let begun = Instant::now();
    let mut said = 0;
    while server.metric(lost) == 0 {
        assert!(begun.elapsed() < PATIENCE, "the log is read by somebody");
        for _ in 0..100 {
            talk(&mut peer, said).await;
            said += 1;
        }
    }
    // Lines are being lost, and everything works: this call, another, and the API.
    talk(&mut peer, said).await;
    peer.send(0, 960, b"opus").await;
    peer.run_until(|peer| !peer.packets.is_empty()).await;
    talk(&mut call(&server).await.0, 0).await;
    // It ends in spite of a log that nobody takes.
    server.terminate();
    let begun = Instant::now();
    let mut server = server;
    while server.process.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < PATIENCE, "the server does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test]
async fn the_log_says_how_many_lines_were_lost() {
    let server = Server::start("filter = \"info,sctp_proto=trace,is=trace\"\n");
    let (mut peer, _) = call(&server).await;
    let begun = Instant::now();
    let mut said = 0;
    while server.metric("portunus_log_lines_lost_total{reason=\"unread\"}") == 0 {
        assert!(begun.elapsed() < PATIENCE, "the log is read by somebody");
        for _ in 0..100 {
            talk(&mut peer, said).await;
            said += 1;
        }
    }
    server.terminate();
    let log = server.ended();
    assert!(log.contains("log lines are lost"), "{log}");
}

#[tokio::test]
async fn the_log_has_no_passwords_of_ice_however_much_it_says() {
    let server = Server::start("filter = \"debug,is=trace\"\n");
    let (mut peer, descriptions) = call(&server).await;
    talk(&mut peer, 0).await;
    server.terminate();
    let log = server.ended();
    assert!(log.contains("Set remote credentials"), "{log}");
    for line in descriptions.iter().flat_map(|sdp| sdp.lines()) {
        for name in ["a=ice-pwd:", "a=ice-ufrag:"] {
            if let Some(secret) = line.strip_prefix(name) {
                let told: Vec<_> = log.lines().filter(|it| it.contains(secret)).collect();
                assert!(told.is_empty(), "{line}: {told:#?}");
            }
        }
    }
}

#[test]
fn operators_read_who_joins_and_leaves() {
    let server = Server::start("");
    let (session, handle) = server.attach("janus.plugin.videoroom");
    let ask = |body: Value, pointer: &str| {
        let message = json!({ "janus": "message", "transaction": "t", "body": body });
        let reply = post(&handle, &message);
        if reply.pointer(pointer).is_some() {
            return;
        }
        loop {
            let event: Value = serde_json::from_str(&http("GET", &session, "")).unwrap();
            if event.pointer(pointer).is_some() {
                return;
            }
        }
    };
    ask(
        json!({ "request": "create", "room": 7, "pin": "S3cr3t" }),
        "/plugindata/data/room",
    );
    let join = json!({
        "request": "join", "ptype": "publisher", "room": 7, "id": 42, "pin": "S3cr3t",
    });
    ask(join, "/plugindata/data/private_id");
    ask(json!({ "request": "leave" }), "/plugindata/data/leaving");
    server.terminate();
    let log = server.ended();
    for line in [
        "participant joined room=7 id=42",
        "participant left room=7 id=42",
    ] {
        assert!(log.contains(line), "{log}");
    }
    assert!(!log.contains("S3cr3t"), "{log}");
}

#[test]
fn strangers_neither_flood_the_log_nor_write_lines_of_their_own() {
    for format in ["text", "json"] {
        let server = Server::start(&format!("format = \"{format}\"\n"));
        let plugin = "none\n2026-01-01T00:00:00Z ERROR forged\r\u{2028}\u{202e}\u{1b}[2J";
        let create = json!({ "janus": "create", "transaction": "t" });
        let session = post(&server.api, &create)["data"]["id"].as_u64().unwrap();
        let session = format!("{}/{session}", server.api);
        let attach = json!({ "janus": "attach", "transaction": "t", "plugin": plugin });
        assert_eq!(post(&session, &attach)["error"]["code"], 460);
        let (_, handle) = server.attach("janus.plugin.videoroom");
        for _ in 0..300 {
            for request in ["create", "destroy"] {
                let body = json!({ "request": request, "room": 7 });
                let message = json!({ "janus": "message", "transaction": "t", "body": body });
                let reply = post(&handle, &message);
                assert!(reply["plugindata"]["data"]["error"].is_null(), "{reply}");
            }
        }
        assert!(server.metric("portunus_log_lines_lost_total{reason=\"rate\"}") > 100);
        server.terminate();
        let log = server.ended();
        let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
        assert!((100..290).contains(&count("room created")), "{log}");
        assert!(count("room destroyed") > 0, "{log}");
        // It is said again every few seconds, while more is left out.
        assert!((1..20).contains(&count("log lines are left out")), "{log}");
        assert_eq!((count("forged"), count("none")), (1, 1), "{log}");
        let is_plain =
            |c: char| c == '\n' || (!c.is_control() && !('\u{2028}'..='\u{202e}').contains(&c));
        assert!(log.chars().all(is_plain), "{log:?}");
    }
}
