//! The server behind nginx, set up as docs/guides/deploy.md says.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

const GUIDE: &str = include_str!("../../../docs/guides/deploy.md");

/// Longer than anything should take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that does not outlive the test, however that ends.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The code of this language in the part of the guide about nginx.
fn shown(language: &str) -> &'static str {
    let (_, part) = GUIDE.split_once("**Behind nginx**").expect("the part");
    let (_, code) = part.split_once(&format!("```{language}\n")).expect("code");
    code.split_once("```").expect("its end").0
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A connection from this address of the machine.
fn connection(from: [u8; 4], port: u16) -> Option<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    socket.connect(&to.into()).ok()?;
    Some(socket.into())
}

/// Sends a request; returns the status and what follows.
fn request(
    from: [u8; 4],
    port: u16,
    method: &str,
    path: &str,
    head: &[&str],
    body: &str,
) -> (u16, String) {
    let mut stream = connection(from, port).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut text = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: {}\r\n",
        body.len()
    );
    for line in head {
        text.push_str(&format!("{line}\r\n"));
    }
    if !head.iter().any(|line| line.starts_with("Connection")) {
        text.push_str("Connection: close\r\n");
    }
    stream
        .write_all(format!("{text}\r\n{body}").as_bytes())
        .unwrap();
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    // An upgraded connection stays open.
    while !answer.starts_with(b"HTTP/1.1 101") {
        match stream.read(&mut part).unwrap() {
            0 => break,
            len => answer.extend_from_slice(&part[..len]),
        }
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
    let (_, rest) = answer.split_once("\r\n\r\n").unwrap_or_default();
    (status.expect("a status"), rest.to_owned())
}

fn json_of(answer: &str) -> Value {
    // A proxy may send it in chunks.
    let (start, end) = (answer.find('{').unwrap(), answer.rfind('}').unwrap());
    serde_json::from_str(&answer[start..=end]).unwrap()
}

/// nginx, as the guide has it, but without TLS and on another port.
fn nginx(folder: &Path, port: u16, server: u16) -> Process {
    let shown = shown("nginx").replace("127.0.0.1:8088", &format!("127.0.0.1:{server}"));
    let mut lines = String::new();
    for line in shown.lines() {
        let word = line.trim();
        if word.starts_with("ssl_") || word.starts_with("listen [") {
            continue;
        }
        match word {
            "listen 443 ssl;" => lines.push_str(&format!("listen 127.0.0.1:{port};")),
            "listen 80;" => lines.push_str(&format!("listen 127.0.0.1:{};", free_port())),
            _ => lines.push_str(line),
        }
        lines.push('\n');
    }
    assert!(
        lines.contains(&format!("listen 127.0.0.1:{port};")),
        "{lines}"
    );
    let folder_name = folder.display();
    let config = format!(
        "daemon off;\nmaster_process off;\npid {folder_name}/nginx.pid;\nerror_log stderr;\nevents {{}}\n\
         http {{\naccess_log off;\nclient_body_temp_path {folder_name}/body;\nproxy_temp_path {folder_name}/proxy;\n\
         fastcgi_temp_path {folder_name}/f;\nuwsgi_temp_path {folder_name}/u;\nscgi_temp_path {folder_name}/s;\n{lines}}}\n"
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, config).unwrap();
    let child = Command::new("nginx")
        .args(["-e", "stderr", "-p"])
        .arg(folder)
        .arg("-c")
        .arg(&file)
        .spawn();
    let mut nginx = Process(child.unwrap());
    let start = Instant::now();
    while connection([127, 0, 0, 1], port).is_none() {
        let ended = nginx.0.try_wait().unwrap();
        assert!(
            ended.is_none() && start.elapsed() < PATIENCE,
            "nginx does not run: {ended:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    nginx
}

/// The server with the configuration of the guide; its ports of HTTP and of the Admin API.
fn server(folder: &Path) -> (Process, u16, u16) {
    let (http, websocket, admin) = (free_port(), free_port(), free_port());
    // The ports belong into the guide's sections.
    let shown = shown("toml")
        .replace(
            "[server]\n",
            "[server]\nrequest_rate = 1\nrequest_burst = 40\n",
        )
        .replace("[http]\n", &format!("[http]\nport = {http}\n"))
        .replace(
            "[websocket]\n",
            &format!("[websocket]\nport = {websocket}\n"),
        );
    let file = folder.join("portunus.toml");
    let config = format!("{shown}[admin]\nport = {admin}\n[media]\nport = 0\nworkers = 1\n");
    std::fs::write(&file, config).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_portunus"))
        .env_remove("PORTUNUS_LOG")
        .arg("--config")
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut server = Process(child.unwrap());
    let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    while !lines
        .next()
        .expect("the banner")
        .unwrap()
        .contains("Dashboard")
    {}
    std::thread::spawn(move || lines.for_each(drop));
    (server, http, admin)
}

const CLIENT: [u8; 4] = [127, 0, 0, 2];
const OTHER: [u8; 4] = [127, 0, 0, 3];
const HERE: [u8; 4] = [127, 0, 0, 1];

#[test]
fn behind_nginx_clients_are_strangers_each_with_limits_of_its_own_and_the_administrator_is_let_in()
{
    if Command::new("nginx").arg("-v").output().is_err() {
        println!("skipped: there is no nginx");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut server, http, admin) = server(folder.path());
    let port = free_port();
    let nginx = nginx(folder.path(), port, http);

    // Pages, the API, a WebSocket and WHIP come through.
    let (status, page) = request(CLIENT, port, "GET", "/", &[], "");
    assert_eq!(status, 200, "{page}");
    assert_eq!(request(CLIENT, port, "GET", "/janus/info", &[], "").0, 200);
    let upgrade = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol: janus-protocol",
    ];
    assert_eq!(request(CLIENT, port, "GET", "/janus", &upgrade, "").0, 101);
    assert_eq!(request(CLIENT, port, "OPTIONS", "/whip/7", &[], "").0, 204);

    // Clients behind the proxy are strangers, whatever they claim.
    let claims = [
        "X-Forwarded-For: 127.0.0.1",
        "Forwarded: for=127.0.0.1",
        "X-Real-IP: 127.0.0.1",
    ];
    let attach = |from, port, head: &[&str]| {
        let post = |path: &str, message: &Value| {
            json_of(&request(from, port, "POST", path, head, &message.to_string()).1)
        };
        let session = post("/janus", &json!({ "janus": "create", "transaction": "t" }));
        let session = format!("/janus/{}", session["data"]["id"]);
        let plugin =
            json!({ "janus": "attach", "transaction": "t", "plugin": "janus.plugin.videoroom" });
        let handle = post(&session, &plugin);
        let body = json!({ "request": "create", "record": true });
        let create = json!({ "janus": "message", "transaction": "t", "body": body });
        let answer = post(&format!("{session}/{}", handle["data"]["id"]), &create);
        answer["plugindata"]["data"].clone()
    };
    assert_eq!(attach(CLIENT, port, &[])["error_code"], 433);
    assert_eq!(attach(CLIENT, port, &claims)["error_code"], 433);
    // A program on this machine is trusted.
    assert_eq!(attach(HERE, http, &[])["videoroom"], "created");

    // The counters, the dashboard and the Admin API are for this machine alone.
    assert_eq!(request(CLIENT, port, "GET", "/metrics", &claims, "").0, 403);
    assert_eq!(request(CLIENT, port, "GET", "/admin", &[], "").0, 404);
    let (status, metrics) = request(HERE, http, "GET", "/metrics", &[], "");
    assert_eq!(status, 200);
    assert!(metrics.contains("portunus_sessions"), "{metrics}");
    assert_eq!(request(HERE, admin, "GET", "/", &[], "").0, 200);
    let overview = json!({ "janus": "overview", "transaction": "t" }).to_string();
    let (_, overview) = request(HERE, admin, "POST", "/admin", &[], &overview);
    let overview = json_of(&overview);
    let sessions = overview["sessions"].as_array().expect("sessions");
    let mut addresses: Vec<_> = sessions
        .iter()
        .filter_map(|it| it["address"].as_str())
        .collect();
    addresses.sort_unstable();
    assert_eq!(
        addresses,
        ["127.0.0.1", "127.0.0.2", "127.0.0.2"],
        "{overview}"
    );

    // Each client has a limit of its own, from which no header helps.
    let ping = json!({ "janus": "ping", "transaction": "t" }).to_string();
    let ping = |from, head: &[&str]| json_of(&request(from, port, "POST", "/janus", head, &ping).1);
    let refused = (0..200).any(|_| ping(CLIENT, &[])["error"]["code"] == 450);
    assert!(refused, "there is no limit");
    assert_eq!(
        ping(CLIENT, &["X-Forwarded-For: 198.51.100.9"])["error"]["code"],
        450
    );
    assert_eq!(ping(OTHER, &[])["janus"], "pong");

    drop(nginx);
    server.0.kill().unwrap();
    let mut logs = String::new();
    server
        .0
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut logs)
        .unwrap();
    assert!(
        !logs.contains("trusted_proxies") && !logs.contains("trust_loopback"),
        "{logs}"
    );
}
