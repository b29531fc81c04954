//! The program records what ffmpeg sends, and a signal that ends it leaves whole files behind. Without ffmpeg the test is
//! skipped, and says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longer than anything should take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("-version").output().is_ok();
    if !found {
        println!("skipped: there is no {program}");
    }
    found
}

/// A running server that records below `folder`; where its API is.
fn start(folder: &Path) -> (Child, String) {
    let config = format!(
        "[http]\nbind = [\"127.0.0.1\"]\nport = 0\n[websocket]\nenabled = false\n\
         [media]\nbind = [\"127.0.0.1\"]\nport = 0\nworkers = 1\n[admin]\nport = 0\n\
         [recording]\ndir = {:?}\ntemporary = \"part\"\n\
         [[streaming.mountpoint]]\nname = \"camera\"\ntype = \"rtp\"\nid = 7\n\
         [[streaming.mountpoint.media]]\ntype = \"video\"\nmid = \"v\"\nport = 0\ncodec = \"vp8\"\n",
        folder.join("rec")
    );
    let path = folder.join("portunus.toml");
    std::fs::write(&path, config).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_portunus"))
        .arg("--config")
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let api = loop {
        let line = lines.next().expect("the banner").unwrap();
        if let Some(url) = line.trim_start().strip_prefix("HTTP") {
            break url.trim().to_owned();
        }
    };
    // The rest is read so that the server can go on writing.
    std::thread::spawn(move || lines.for_each(drop));
    (server, api)
}

fn http(method: &str, url: &str, body: &str) -> String {
    let url = url.strip_prefix("http://").unwrap();
    let (host, path) = url.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
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

/// A number at `/metrics`.
fn metric(api: &str, name: &str) -> u64 {
    let metrics = http("GET", &api.replace("/janus", "/metrics"), "");
    let mut lines = metrics.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.expect(name).parse().unwrap()
}

#[test]
fn a_signal_ends_recordings_as_they_should() {
    if !has("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut server, api) = start(folder.path());
    let id = |reply: Value| reply["data"]["id"].as_u64().expect("an id");
    let create = json!({ "janus": "create", "transaction": "t" });
    let session = format!("{api}/{}", id(post(&api, &create)));
    let attach = json!({
        "janus": "attach", "transaction": "t", "plugin": "janus.plugin.streaming",
    });
    let handle = format!("{session}/{}", id(post(&session, &attach)));
    let ask = |body: Value| {
        let message = json!({ "janus": "message", "transaction": "t", "body": body });
        post(&handle, &message)["plugindata"]["data"].clone()
    };
    let info = ask(json!({ "request": "info", "id": 7 }));
    let port = info["info"]["media"][0]["port"].as_u64().expect("a port");
    let record = json!({
        "request": "recording", "action": "start", "id": 7, "video": "camera/1",
    });
    assert_eq!(ask(record), json!({ "streaming": "ok" }));

    let mut camera = Command::new("ffmpeg")
        .args([
            "-v",
            "error",
            "-re",
            "-f",
            "lavfi",
            "-i",
            "testsrc=size=160x120:rate=25",
        ])
        .args([
            "-c:v",
            "libvpx",
            "-deadline",
            "realtime",
            "-g",
            "10",
            "-f",
            "rtp",
        ])
        .arg(format!("rtp://127.0.0.1:{port}?pkt_size=1200"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    while metric(&api, "portunus_recorded_packets_total") < 50 {
        assert!(Instant::now() < deadline, "nothing is recorded");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(metric(&api, "portunus_recordings"), 1);
    let file = folder.path().join("rec/camera/1.mjr");
    assert!(folder.path().join("rec/camera/1.mjr.part").exists());
    assert!(!file.exists());

    let pid = server.id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    assert!(server.wait().unwrap().success());
    camera.kill().unwrap();
    camera.wait().unwrap();
    assert!(file.exists());
    let target = folder.path().join("1.webm");
    let converted = Command::new("janus-pp-rec")
        .arg(&file)
        .arg(&target)
        .output();
    let Ok(converted) = converted else {
        println!("there is no janus-pp-rec: what was recorded is not decoded");
        return;
    };
    assert!(converted.status.success());
    let decoded = Command::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(&target)
        .args(["-f", "null", "-"])
        .output()
        .unwrap();
    assert!(
        decoded.status.success() && decoded.stderr.is_empty(),
        "{decoded:?}"
    );
}
