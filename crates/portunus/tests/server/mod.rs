//! The program as a server that records, and requests to it.
#![allow(dead_code, reason = "each test uses some of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than anything should take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn has(program: &str) -> bool {
    let found = Command::new(program).arg("-version").output().is_ok();
    if !found {
        println!("skipped: there is no {program}");
    }
    found
}

/// A process that does not outlive the test, however that ends.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running server that records below `folder`, with this in its configuration too; where its API
/// is.
pub fn start(folder: &Path, more: &str) -> (Process, String) {
    let program = Command::new(env!("CARGO_BIN_EXE_portunus"));
    start_by(program, folder, more)
}

/// The same, started by another program, which takes its arguments.
pub fn start_by(program: Command, folder: &Path, more: &str) -> (Process, String) {
    let config = format!(
        "[http]\nbind = [\"127.0.0.1\"]\nport = 0\n[websocket]\nenabled = false\n\
         [media]\nbind = [\"127.0.0.1\"]\nport = 0\nworkers = 1\n[admin]\nport = 0\n\
         [recording]\ndir = {:?}\nkeep_free_mb = 0\n{more}",
        folder.join("rec")
    );
    let path = folder.join("portunus.toml");
    std::fs::write(&path, config).unwrap();
    run_by(program, &path)
}

/// A running server with this configuration; where its API is.
pub fn run(config: &Path) -> (Process, String) {
    run_by(Command::new(env!("CARGO_BIN_EXE_portunus")), config)
}

/// The same, started by another program, which takes its arguments.
pub fn run_by(mut program: Command, config: &Path) -> (Process, String) {
    let server = program
        .arg("--config")
        .arg(config)
        .stdout(Stdio::piped())
        .spawn();
    let mut server = Process(server.unwrap());
    let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let api = loop {
        let line = lines.next().expect("the banner").unwrap();
        if let Some(url) = line.trim_start().strip_prefix("HTTP") {
            // The address of HTTPS stands behind it.
            break url
                .split([' ', ','])
                .find(|it| !it.is_empty())
                .unwrap()
                .to_owned();
        }
    };
    // The rest is read so that the server can go on writing.
    std::thread::spawn(move || lines.for_each(drop));
    (server, api)
}

/// A handle of the streaming plugin.
pub fn attach(api: &str) -> String {
    attach_to(api, "janus.plugin.streaming")
}

/// A handle of a plugin, by its package.
pub fn attach_to(api: &str, plugin: &str) -> String {
    let id = |reply: Value| reply["data"]["id"].as_u64().expect("an id");
    let create = json!({ "janus": "create", "transaction": "t" });
    let session = format!("{api}/{}", id(post(api, &create)));
    let attach = json!({
        "janus": "attach", "transaction": "t", "plugin": plugin,
    });
    format!("{session}/{}", id(post(&session, &attach)))
}

/// Returns the answer of a handle's plugin.
pub fn ask(handle: &str, body: Value) -> Value {
    let message = json!({ "janus": "message", "transaction": "t", "body": body });
    post(handle, &message)["plugindata"]["data"].clone()
}

/// Returns a whole response, from its status on.
pub fn response(method: &str, url: &str, body: &str) -> String {
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
    response
}

fn http(method: &str, url: &str, body: &str) -> String {
    let response = response(method, url, body);
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

pub fn post(url: &str, request: &Value) -> Value {
    serde_json::from_str(&http("POST", url, &request.to_string())).unwrap()
}

/// Returns the response to a GET.
pub fn get(url: &str) -> String {
    http("GET", url, "")
}

/// Sends a signal to a server.
pub fn signal(server: &Process, name: &str) {
    let id = server.0.id().to_string();
    let kill = Command::new("kill").args([name, &id]).status();
    assert!(kill.unwrap().success());
}

/// A number at `/metrics`.
pub fn metric(api: &str, name: &str) -> u64 {
    let metrics = http("GET", &api.replace("/janus", "/metrics"), "");
    let mut lines = metrics.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.expect(name).parse().unwrap()
}
