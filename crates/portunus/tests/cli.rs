//! The binary as a person or a supervisor uses it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longer than anything should take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn portunus() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portunus"));
    command.env_remove("PORTUNUS_LOG");
    command
}

fn run(arguments: &[&str]) -> Output {
    portunus().args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.toml");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// A configuration on loopback, on ports that the kernel chooses.
const ANY_PORTS: &str = "\
[http]
bind = [\"127.0.0.1\"]
port = 0
[websocket]
bind = [\"127.0.0.1\"]
port = 0
[media]
bind = [\"127.0.0.1\"]
port = 0
workers = 1
[admin]
port = 0
";

#[test]
fn the_command_line_says_which_address_is_announced_and_that_workers_share_a_port() {
    let (_folder, path) = file("[media]\nannounced = [\"198.51.100.1\"]\n");
    let path = path.to_str().unwrap();
    let asked = ["--print-config", "--config", path];
    let announced = |more: &[&str]| {
        let printed = stdout(&run(&[&asked, more].concat()));
        let line = printed.lines().find(|line| line.starts_with("announced"));
        line.unwrap_or_default().to_owned()
    };
    assert_eq!(announced(&[]), "announced = [\"198.51.100.1\"]");
    let both = ["--announce", "203.0.113.7", "--announce", "2001:db8::7"];
    assert_eq!(
        announced(&both),
        "announced = [\"203.0.113.7\", \"2001:db8::7\"]"
    );
    let printed = stdout(&run(&[&asked[..], &["--one-port"]].concat()));
    assert!(printed.contains("one_port = true"), "{printed}");
    let wrong = run(&["--announce", "1.2.3"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
}

#[test]
fn help_says_what_a_person_needs() {
    let output = run(&["--help"]);
    assert!(output.status.success());
    let help = stdout(&output);
    for part in [
        "--config",
        "--check-config",
        "--workers",
        "8088",
        "8188",
        "10000",
        "SIGTERM",
        "Exit status",
    ] {
        assert!(help.contains(part), "{part} in\n{help}");
    }
    let version = stdout(&run(&["--version"]));
    assert_eq!(version, format!("portunus {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_arguments_end_with_status_2() {
    for arguments in [
        &["--nonsense"][..],
        &["--workers", "many"],
        &["--workers", "-1"],
        &["positional"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn mistakes_of_the_configuration_are_told_with_their_lines() {
    let (_folder, path) = file("[http]\nport = 99999\n\n[medias]\nport = 1\n");
    let path = path.to_str().unwrap();
    for arguments in [
        &["--config", path, "--check-config"][..],
        &["--config", path],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2));
        let expected = format!(
            "{path}:2: http.port: expected a whole number from 0 to 65535, got 99999\n\
             {path}:4: medias: unknown key; did you mean media?\n"
        );
        assert_eq!(stderr(&output), expected);
    }
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let output = run(&["--config", "/no/such/portunus.toml", "--check-config"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot read the configuration /no/such/portunus.toml"));
}

/// What the program says where `make` has made the default configuration; none where nobody may
/// have a `/etc` of their own.
fn run_with_default(make: &str, arguments: &str) -> Option<Output> {
    let script = format!(
        "mount -t tmpfs none /etc && mkdir /etc/portunus && cd /etc/portunus && {make} && echo made && exec timeout 30 \"$0\" {arguments}"
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command.arg(env!("CARGO_BIN_EXE_portunus"));
    let output = command.env_remove("PORTUNUS_LOG").output().ok()?;
    stdout(&output).starts_with("made\n").then_some(output)
}

#[test]
fn a_default_configuration_that_cannot_be_read_stops_the_start() {
    let looped = "ln -s portunus.toml portunus.toml";
    for make in ["mkdir portunus.toml", looped] {
        for arguments in ["", "--check-config", "--workers 1"] {
            let Some(output) = run_with_default(make, arguments) else {
                eprintln!("skipped: no mount namespaces here");
                return;
            };
            assert_eq!(output.status.code(), Some(2), "{make}: {arguments}");
            let text = stderr(&output);
            let expected = "cannot read the configuration /etc/portunus/portunus.toml: ";
            assert!(text.contains(expected), "{text}");
        }
    }
    // One that can be read is taken.
    let make = "echo '[server]' >portunus.toml && echo 'server_name = \"Mine\"' >>portunus.toml";
    let output = run_with_default(make, "--print-config").unwrap();
    assert!(stdout(&output).contains("server_name = \"Mine\""));
}

#[test]
fn a_configuration_without_mistakes_is_told_so_and_printed_whole() {
    let (_folder, path) = file("[media]\nport = 20000\n");
    let path = path.to_str().unwrap();
    let output = run(&["--config", path, "--check-config"]);
    assert!(output.status.success());
    assert_eq!(stdout(&output), format!("{path}: no mistakes\n"));
    let printed = stdout(&run(&[
        "--config",
        path,
        "--workers",
        "3",
        "--print-config",
    ]));
    for line in [
        "[server]",
        "port = 20000",
        "workers = 3",
        "base_path = \"/janus\"",
    ] {
        assert!(
            printed.lines().any(|printed| printed == line),
            "{line} in\n{printed}"
        );
    }
    let (_folder, again) = file(&printed);
    let reprinted = stdout(&run(&[
        "--config",
        again.to_str().unwrap(),
        "--print-config",
    ]));
    assert_eq!(reprinted, printed);
}

#[test]
fn what_is_wrong_without_stopping_the_start_is_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let dir = folder.path().join("file/recordings");
    let more = format!(
        "[server]\ntrust_loopback = false\n[recording]\ndir = {dir:?}\n[[videoroom.room]]\nroom = 7\nrecord = true\n"
    );
    let server = Running::start(&more);
    server.row("Dashboard");
    server.signal("-TERM");
    let (status, logs) = server.end();
    assert_eq!(status, Some(0), "{logs}");
    for part in [
        "server.trust_loopback: nobody may use the Admin API",
        "recording.dir: cannot write into the folder",
    ] {
        assert!(logs.contains(part), "{part} in\n{logs}");
    }
}

#[test]
fn a_taken_port_is_an_error_that_names_the_key() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (_folder, path) = file(&ANY_PORTS.replacen("port = 0", &format!("port = {port}"), 1));
    let output = run(&["--config", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("portunus: cannot listen on 127.0.0.1:{port}/tcp: ");
    let text = stderr(&output);
    assert!(
        text.contains(&expected) && text.contains("set http.port"),
        "{text}"
    );
}

#[test]
fn a_taken_media_port_is_an_error_that_names_the_key() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let media = format!("[media]\nbind = [\"127.0.0.1\"]\nport = {port}");
    let text = ANY_PORTS.replace("[media]\nbind = [\"127.0.0.1\"]\nport = 0", &media);
    let (_folder, path) = file(&text);
    let output = run(&["--config", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(
        text.contains(&format!(":{port}/udp")) && text.contains("media.port"),
        "{text}"
    );
}

/// A running server.
struct Running {
    child: Child,
    /// Lines of the standard output.
    lines: mpsc::Receiver<String>,
    folder: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(extra: &str) -> Self {
        Self::start_by(portunus(), extra)
    }

    /// Starts it by another program, which takes its arguments.
    fn start_by(mut program: Command, extra: &str) -> Self {
        let (folder, path) = file(&format!("{ANY_PORTS}{extra}"));
        let mut child = program
            .env_remove("PORTUNUS_LOG")
            .arg("--config")
            .arg(path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (lines_in, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = lines_in.send(line);
            }
        });
        Self {
            child,
            lines,
            folder,
        }
    }

    /// Returns a row of the banner.
    fn row(&self, name: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("the banner");
            if let Some(row) = line.trim_start().strip_prefix(name) {
                return row.trim().to_owned();
            }
        }
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
    }

    /// Waits for its end; returns the status and the logs.
    fn end(mut self) -> (Option<i32>, String) {
        let mut logs = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut logs)
            .unwrap();
        (self.child.wait().unwrap().code(), logs)
    }
}

fn get(url: &str) -> String {
    let (host, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn it_runs_where_its_banner_says_until_a_signal_ends_it() {
    for signal in ["-TERM", "-INT"] {
        let server = Running::start("");
        let pages = server.row("Web pages");
        let api = server.row("HTTP");
        assert!(get(&pages).starts_with("HTTP/1.1 200 OK"));
        let info = get(&format!("{api}/info"));
        assert!(
            info.contains("janus.plugin.echotest") && info.contains("janus.plugin.videocall"),
            "{info}"
        );
        server.signal(signal);
        let (status, logs) = server.end();
        assert_eq!(status, Some(0), "{logs}");
    }
}

/// Returns the process's soft limit of open files.
fn open_files(id: u32) -> u64 {
    let limits = std::fs::read_to_string(format!("/proc/{id}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.unwrap().split_whitespace().nth(3).unwrap();
    soft.parse().unwrap()
}

#[test]
fn it_may_open_as_many_files_as_the_system_allows() {
    for (hard, warns) in [(900, true), (5_000, false)] {
        let mut shell = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_portunus");
        let limits = format!("ulimit -Sn 256 && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
        shell.args(["-c", &limits, program]);
        let server = Running::start_by(shell, "");
        server.row("Web pages");
        assert_eq!(open_files(server.child.id()), hard);
        server.signal("-TERM");
        let (status, logs) = server.end();
        assert_eq!(status, Some(0), "{logs}");
        assert!(logs.contains("may open more files"), "{logs}");
        assert_eq!(logs.contains("LimitNOFILE="), warns, "{logs}");
    }
}

/// Reads one response of `/metrics` from an open connection, and returns the value of `name`.
fn metric(stream: &mut TcpStream, name: &str) -> u64 {
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut reader = BufReader::new(stream);
    let mut size = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.strip_prefix("content-length: ") {
            size = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; size];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let mut lines = body.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.expect(name).parse().unwrap()
}

#[test]
fn out_of_file_descriptors_it_logs_little_and_serves_again() {
    let mut shell = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_portunus");
    let limits = "ulimit -Sn 128 && ulimit -Hn 128 && exec \"$0\" \"$@\"";
    shell.args(["-c", limits, program]);
    let server = Running::start_by(shell, "");
    let api = server.row("HTTP");
    let host = api.strip_prefix("http://").unwrap();
    let host = host.split_once('/').unwrap().0.to_owned();
    let mut first = TcpStream::connect(&host).unwrap();
    const FAILURES: &str = "portunus_accept_failures_total";
    assert_eq!(metric(&mut first, FAILURES), 0);
    let start = Instant::now();
    let held: Vec<_> = (0..150)
        .map(|_| TcpStream::connect(&host).unwrap())
        .collect();
    while metric(&mut first, FAILURES) < 6 {
        assert!(start.elapsed() < PATIENCE, "nothing fails");
        std::thread::sleep(Duration::from_millis(20));
    }
    let seconds = start.elapsed().as_secs();
    drop((held, first));
    assert!(get(&format!("{api}/ping")).contains("pong"));
    server.signal("-TERM");
    let (status, logs) = server.end();
    assert_eq!(status, Some(0), "{logs}");
    let lines = logs.matches("cannot accept a connection").count() as u64;
    assert!((1..=seconds + 2).contains(&lines), "{lines} in {seconds} s");
}

#[test]
fn sighup_reads_the_configuration_again() {
    let mut server = Running::start("");
    let api = server.row("HTTP");
    let path = server.folder.path().join("test.toml");
    let text = format!("{ANY_PORTS}[server]\nsession_timeout = 7\nserver_name = \"Other\"\n");
    std::fs::write(&path, text).unwrap();
    server.signal("-HUP");
    let logs = BufReader::new(server.child.stderr.take().unwrap()).lines();
    let mut logs = logs.map_while(Result::ok);
    for part in [
        "the configuration is reloaded changed=\"server.session_timeout\"",
        "these changes need a restart keys=\"server.server_name\"",
    ] {
        assert!(logs.any(|line| line.contains(part)), "{part}");
    }
    assert!(get(&format!("{api}/info")).contains("\"session-timeout\":7,"));
    server.signal("-INT");
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn plugins_can_be_turned_off_and_logs_can_be_json() {
    let server = Running::start("[plugins.videocall]\nenabled = false\n[log]\nformat = \"json\"\n");
    let info = get(&format!("{}/info", server.row("HTTP")));
    assert!(info.contains("janus.plugin.echotest") && !info.contains("janus.plugin.videocall"));
    server.signal("-TERM");
    let (_, logs) = server.end();
    assert!(logs.lines().count() > 0);
    assert!(
        logs.lines().all(|line| line.starts_with("{\"timestamp\"")),
        "{logs}"
    );
}
