//! `portunus doctor`, as a person or a script uses it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::io::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use portunus_api::testing::write_certificate_for;
use portunus_tests::free_port;
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything should take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than the doctor may take, on a machine that does other things, too.
const SOON: Duration = Duration::from_secs(15);

const PROGRAM: &str = env!("CARGO_BIN_EXE_portunus");

/// A server of loopback that listens on nothing but what a test adds.
const QUIET: &str = "\
[http]
enabled = false
[websocket]
enabled = false
[admin]
enabled = false
[media]
bind = [\"127.0.0.1\"]
port = 0
workers = 1
";

/// A folder with a configuration in it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Other users look into it, too.
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), all).unwrap();
        let place = Place { folder };
        place.write(text);
        place
    }

    fn write(&self, text: &str) {
        let here = self.folder.path().to_str().unwrap();
        std::fs::write(self.file(), text.replace("HERE", here)).unwrap();
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("test.toml")
    }

    /// Runs the doctor by `wrapper`, a command that has it run elsewhere.
    fn examined_by(&self, wrapper: &[&str], more: &[&str]) -> Examined {
        let words = wrapper.iter().copied().chain([PROGRAM, "doctor", "--json"]);
        let words: Vec<&str> = words.chain(more.iter().copied()).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("--config").arg(self.file());
        let began = Instant::now();
        let output = command.output().unwrap();
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        Examined::of(&output)
    }

    fn examined(&self, more: &[&str]) -> Examined {
        self.examined_by(&[], more)
    }
}

/// The output of the doctor.
struct Examined {
    status: Option<i32>,
    report: Value,
}

impl Examined {
    fn of(output: &Output) -> Self {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(errors, "", "{text}");
        let report: Value = serde_json::from_str(&text).expect(&text);
        Examined {
            status: output.status.code(),
            report,
        }
    }

    /// The findings of a check, as `level: text`.
    fn of_check(&self, check: &str) -> Vec<String> {
        let findings = self.report["findings"].as_array().unwrap().iter();
        let of_check = findings.filter(|it| it["check"] == check);
        let text = |it: &Value| {
            let (level, text) = (it["level"].as_str().unwrap(), it["text"].as_str().unwrap());
            format!("{level}: {text}")
        };
        of_check.map(text).collect()
    }

    /// Whether one finding of a check begins with `level: `, and has all parts.
    #[track_caller]
    fn has(&self, check: &str, level: &str, parts: &[&str]) {
        let found = self.of_check(check);
        let fits = |it: &String| {
            it.starts_with(&format!("{level}: ")) && parts.iter().all(|part| it.contains(part))
        };
        assert!(
            found.iter().any(fits),
            "{check} {parts:?}: {:#}",
            self.report
        );
    }

    #[track_caller]
    fn lacks(&self, check: &str) {
        assert!(
            self.of_check(check).is_empty(),
            "{check}: {:#}",
            self.report
        );
    }
}

#[test]
fn a_taken_port_is_an_error_that_names_who_has_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp, udp) = (
        taken.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
    );
    let place = Place::new(&format!(
        "[http]\nbind = [\"127.0.0.1\"]\nport = {tcp}\n[websocket]\nenabled = false\n\
         [admin]\nenabled = false\n[media]\nbind = [\"127.0.0.1\"]\nport = {udp}\nworkers = 1\n"
    ));
    let examined = place.examined(&[]);
    assert_eq!(examined.status, Some(2));
    assert_eq!(examined.report["level"], "error");
    let process = format!("(process {})", std::process::id());
    for port in [
        format!("TCP port {tcp} (http.port)"),
        format!("UDP port {udp} (media.port)"),
    ] {
        examined.has("port-taken", "error", &[&port, &process]);
    }
    examined.has("server", "note", &["does not run"]);
    examined.has("local-addresses", "warning", &["this machine only"]);
}

#[test]
fn servers_that_are_connected_to_are_tried() {
    let closed = free_port();
    let nats = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let sip = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let (nats_port, silent_port) = (port(&nats), port(&silent));
    let sip_port = sip.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = nats.accept() {
            let _ = stream.write_all(b"INFO {}\r\n");
        }
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 1_500];
        while let Ok((length, from)) = sip.recv_from(&mut buffer) {
            let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
            let answer = request.replacen(request.lines().next().unwrap(), "SIP/2.0 200 OK", 1);
            sip.send_to(answer.as_bytes(), from).unwrap();
        }
    });
    let trunk = |name: &str, port: u16| {
        format!(
            "[[sip.trunks]]\nname = \"{name}\"\nserver = \"sip:127.0.0.1:{port}\"\nidentity = \"sip:a@b\"\n"
        )
    };
    let place = Place::new(&format!(
        "{QUIET}[nats]\nenabled = true\nurl = \"nats://127.0.0.1:{nats_port},nats://127.0.0.1:{silent_port}\"\n\
         [mqtt]\nenabled = true\nurl = \"tcp://127.0.0.1:{closed}\"\n\
         [rabbitmq]\nhost = \"127.0.0.1\"\nport = {closed}\n\
         [events.webhook]\nenabled = true\nbackend = \"https://user:secret@127.0.0.1:{closed}/x\"\n\
         [events.gelf]\nenabled = true\nbackend = \"no-such-name.invalid\"\n{}{}",
        trunk("one", sip_port),
        trunk("two", closed)
    ));
    let examined = place.examined(&[]);
    assert_eq!(examined.status, Some(2));
    let has = |level: &str, parts: &[&str]| examined.has("connection", level, parts);
    has("ok", &[&format!("127.0.0.1:{nats_port}"), "nats.url"]);
    has(
        "error",
        &[&format!("127.0.0.1:{silent_port}"), "no answer within 5 s"],
    );
    has("error", &["mqtt.url", "refused"]);
    has("error", &["events.webhook.backend", "refused"]);
    has("error", &["events.gelf.backend", "no-such-name.invalid"]);
    has("ok", &["sip.trunks[0].server"]);
    has("error", &["sip.trunks[1].server", "refused"]);
    let text = examined.report.to_string();
    assert!(!text.contains("secret"), "{text}");
    // Disabled features are not tried.
    assert!(!text.contains("rabbitmq"), "{text}");
}

#[test]
fn certificates_are_told_with_their_names_and_days() {
    let port = free_port();
    let https = format!(
        "[http]\nenabled = false\nhttps = true\nhttps_port = {port}\nbind = [\"127.0.0.1\"]\n\
         [websocket]\nenabled = false\n[admin]\nenabled = false\n\
         [media]\nbind = [\"127.0.0.1\"]\nport = 0\nworkers = 1\n\
         [tls]\ncertificate = \"HERE/cert.pem\"\nkey = \"HERE/key.pem\"\n"
    );
    let place = Place::new(&https);
    let write = |days| {
        let names = ["media.example.org", "192.0.2.1"];
        write_certificate_for(place.folder.path(), days, &names);
    };
    write(-1..89);
    let examined = place.examined(&["--host", "media.example.org"]);
    examined.has("certificate", "ok", &["media.example.org", "days left"]);
    examined.lacks("certificate-name");
    examined.lacks("certificate-time");
    let examined = place.examined(&["--host", "other.example.org"]);
    assert_eq!(examined.status, Some(2));
    let parts = ["not for other.example.org, but for media.example.org"];
    examined.has("certificate-name", "error", &parts);

    write(-85..5);
    let examined = place.examined(&[]);
    examined.has("certificate-time", "warning", &["expires in", "days"]);
    write(-90..-1);
    let examined = place.examined(&[]);
    examined.has("certificate-time", "error", &["expired on"]);
    assert_eq!(examined.status, Some(2));

    let unused = https.replace("https = true", "https = false");
    place.write(&unused);
    place
        .examined(&[])
        .has("unused-certificate", "warning", &[]);
    // A file that is none is an error of the configuration.
    place.write(&https);
    std::fs::write(place.folder.path().join("cert.pem"), "none").unwrap();
    let parts = ["test.toml:", "tls.certificate"];
    place.examined(&[]).has("configuration", "error", &parts);
}

#[test]
fn a_configuration_that_cannot_be_read_is_the_only_finding() {
    let place = Place::new("[http]\nport = 99999\n[medias]\n");
    let examined = place.examined(&[]);
    assert_eq!(examined.status, Some(2));
    examined.has("configuration", "error", &["test.toml:2: http.port"]);
    examined.has("configuration", "error", &["test.toml:3: medias"]);
    assert_eq!(examined.report["errors"], 2);
    std::fs::remove_file(place.file()).unwrap();
    let parts = ["cannot read the configuration"];
    place.examined(&[]).has("configuration", "error", &parts);
}

#[test]
fn the_exit_status_is_that_of_the_worst_finding_and_checks_can_be_ignored() {
    let place = Place::new(QUIET);
    // Values that differ between machines.
    let machine = [
        "receive-buffer",
        "open-files",
        "clock",
        "disk",
        "cores",
        "offload",
    ];
    let mut ignored: Vec<&str> = machine.iter().flat_map(|it| ["--ignore", it]).collect();
    let examined = place.examined(&ignored);
    assert_eq!(examined.status, Some(1), "{:#}", examined.report);
    assert_eq!(examined.report["level"], "warning");
    ignored.extend(["--ignore", "local-addresses"]);
    let examined = place.examined(&ignored);
    assert_eq!(examined.status, Some(0), "{:#}", examined.report);
    let wrong = Command::new(PROGRAM)
        .args(["doctor", "--ignore", "no-such-check"])
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn people_read_it_in_80_columns() {
    let place = Place::new(QUIET);
    let output = Command::new(PROGRAM)
        .args(["doctor", "--config"])
        .arg(place.file())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "\nAddresses\n",
        "\nLimits\n",
        "  warning  Clients are told",
        "Change: ",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let is_long = |line: &&str| line.chars().count() > 80 && !line.contains('/');
    assert_eq!(text.lines().find(is_long), None, "{text}");
    // No colours: this is no terminal.
    assert!(!text.contains('\u{1b}'), "{text}");
}

/// Whether commands can be run by `wrapper` here.
fn works(wrapper: &[&str]) -> bool {
    let output = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg("true")
        .output();
    let works = output.is_ok_and(|output| output.status.success());
    if !works {
        println!("skipped: {wrapper:?} does not work");
    }
    works
}

#[test]
fn without_a_network_it_says_so() {
    let alone = ["unshare", "--user", "--map-root-user", "--net"];
    if !works(&alone) {
        return;
    }
    let place = Place::new("[media]\nstun_server = \"stun.example.org\"\n");
    let examined = place.examined_by(&alone, &[]);
    assert_eq!(examined.status, Some(2));
    examined.has("no-address", "error", &["Media can be sent nowhere"]);
    examined.has("port", "ok", &["These are free", "TCP 8088 (http.port)"]);
}

#[test]
fn without_rights_it_says_what_it_may_not_look_at() {
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let nobody = [&nobody[..], &["--bounding-set=-all", "--inh-caps=-all"]].concat();
    // The program has to be where nobody may run it.
    let folder = tempfile::tempdir().unwrap();
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), all.clone()).unwrap();
    let program = folder.path().join("portunus");
    std::fs::copy(PROGRAM, &program).unwrap();
    std::fs::set_permissions(&program, all).unwrap();
    if !works(&nobody) {
        return;
    }
    let examined = |place: &Place| {
        let output = Command::new(nobody[0])
            .args(&nobody[1..])
            .arg(&program)
            .args(["doctor", "--json", "--config"])
            .arg(place.file())
            .output()
            .unwrap();
        Examined::of(&output)
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let place = Place::new(&QUIET.replace(
        "[http]\nenabled = false",
        &format!("[http]\nbind = [\"127.0.0.1\"]\nport = {port}"),
    ));
    let found = examined(&place);
    assert_eq!(found.status, Some(2));
    // The port is held by another user's process.
    let command = format!("sudo ss -lntp 'sport = :{port}'");
    found.has("port-taken", "error", &[&command]);
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    if first.is_ok_and(|it| it.trim().parse::<u16>().is_ok_and(|it| it > 99)) {
        place.write(&QUIET.replace(
            "[http]\nenabled = false",
            "[http]\nbind = [\"127.0.0.1\"]\nport = 99",
        ));
        let parts = ["TCP port 99 (http.port)"];
        examined(&place).has("port-denied", "error", &parts);
    }
    let secret = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(place.file(), secret).unwrap();
    let found = examined(&place);
    assert_eq!(found.status, Some(2));
    found.has("configuration", "error", &["Permission denied"]);
}

/// The server, which ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn healthy(place: &Place) -> bool {
    let output = Command::new(PROGRAM)
        .args(["health", "--config"])
        .arg(place.file())
        .output()
        .unwrap();
    output.status.success()
}

impl Running {
    fn start(place: &Place) -> Self {
        Running::start_with(place, &[])
    }

    fn start_with(place: &Place, more: &[&str]) -> Self {
        let server = Command::new(PROGRAM)
            .arg("--config")
            .arg(place.file())
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Running(server);
        let began = Instant::now();
        while !healthy(place) {
            assert!(began.elapsed() < PATIENCE, "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }
}

#[test]
fn beside_a_running_server_its_ports_are_its_own() {
    let (http, media, turn) = (free_port(), free_port(), free_port());
    // 127.0.0.3 leads here, as an address of a NAT that forwards does; 198.18.0.7 leads nowhere.
    let text = format!(
        "[http]\nport = {http}\n[websocket]\nenabled = false\n[admin]\nenabled = false\n\
         [media]\nport = {media}\nworkers = 1\nipv6 = false\n\
         announced = [\"127.0.0.1=>127.0.0.3\", \"198.18.0.7\"]\n\
         [turn]\nenabled = true\nport = {turn}\nhost = \"127.0.0.1\"\n"
    );
    let place = Place::new(&text);
    let alone = place.examined(&[]);
    alone.has("media-ports", "ok", &["127.0.0.3"]);
    alone.has("media-ports", "warning", &["198.18.0.7"]);
    alone.has("turn-port", "ok", &["127.0.0.1"]);

    let server = Running::start(&place);
    let examined = place.examined(&[]);
    let pid = format!("(process {})", server.0.id());
    examined.has("server", "ok", &["The server runs", &pid]);
    examined.lacks("port-taken");
    let parts = [
        &format!("TCP {http} (http.port)")[..],
        &format!("UDP {media} (media.port)"),
        &format!("UDP {turn} (turn.port)"),
    ];
    examined.has("port", "ok", &parts);
    examined.has("media-ports", "ok", &["127.0.0.3"]);
    examined.has("turn-port", "ok", &["127.0.0.1"]);
    examined.has("media-ports", "warning", &["198.18.0.7"]);
    examined.has("open-files", "ok", &["The server may open"]);
    assert!(healthy(&place), "the server was disturbed");

    // Another process has a port of a configuration that was changed meanwhile.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let changed = format!("{text}[unix]\n").replace(
        "[websocket]\nenabled = false",
        &format!("[websocket]\nbind = [\"127.0.0.1\"]\nport = {port}"),
    );
    place.write(&changed);
    let parts = [&format!("TCP port {port} (websocket.port)")[..]];
    place.examined(&[]).has("port-taken", "error", &parts);
}

#[test]
fn the_command_line_of_the_server_is_taken() {
    let (http, media) = (free_port(), free_port());
    let place = Place::new(&format!(
        "[http]\nport = {http}\n[websocket]\nenabled = false\n[admin]\nenabled = false\n\
         [media]\nport = {media}\nipv6 = false\n"
    ));
    let line = [
        "--workers=2",
        "--one-port",
        "--announce=127.0.0.1=>127.0.0.3",
    ];
    let _server = Running::start_with(&place, &line);
    let examined = place.examined(&line);
    let port = format!("UDP {media} (media.port)");
    examined.has("port", "ok", &["The server listens on", &port]);
    examined.has("address", "ok", &[&format!("127.0.0.3, UDP {media}:")]);
    examined.has("media-ports", "ok", &["127.0.0.3"]);
}

#[test]
fn a_certificate_that_the_server_has_not_loaded_is_told() {
    let port = free_port();
    let place = Place::new(&format!(
        "[http]\nhttps = true\nhttps_port = {port}\nport = 0\nenabled = false\n\
         [websocket]\nenabled = false\n[admin]\nenabled = false\n\
         [media]\nbind = [\"127.0.0.1\"]\nport = 0\nworkers = 1\n\
         [tls]\ncertificate = \"HERE/cert.pem\"\nkey = \"HERE/key.pem\"\n"
    ));
    write_certificate_for(place.folder.path(), -1..89, &["localhost"]);
    let _server = Running::start(&place);
    let examined = place.examined(&[]);
    examined.has("server", "ok", &["The server runs"]);
    examined.lacks("certificate-loaded");
    write_certificate_for(place.folder.path(), -1..89, &["localhost"]);
    let examined = place.examined(&[]);
    examined.has("certificate-loaded", "warning", &["another certificate"]);
}

#[test]
fn a_stun_server_is_asked() {
    let stun = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = stun.local_addr().unwrap().port();
    let text = format!("{QUIET}stun_server = \"127.0.0.1:{port}\"\n");
    let place = Place::new(&text);
    // It is there, and says nothing.
    place
        .examined(&[])
        .has("stun-server", "warning", &["does not answer"]);
    std::thread::spawn(move || {
        let mut request = [0; 1_500];
        while let Ok((_, from)) = stun.recv_from(&mut request) {
            // XOR-MAPPED-ADDRESS (RFC 8489 section 14.2) of 8.8.8.8:1000.
            let mut answer = vec![1, 1, 0, 12];
            answer.extend(&request[4..20]);
            answer.extend([0, 0x20, 0, 8, 0, 1]);
            answer.extend((1_000_u16 ^ 0x2112).to_be_bytes());
            answer.extend((0x0808_0808_u32 ^ 0x2112_A442).to_be_bytes());
            stun.send_to(&answer, from).unwrap();
        }
    });
    let examined = place.examined(&[]);
    examined.has("public-address", "ok", &["sees 127.0.0.1 as 8.8.8.8"]);
    examined.has("public-ports", "note", &["changes ports"]);
    examined.lacks("local-addresses");
    place.write(&format!("{text}announced = [\"127.0.0.1=>8.8.4.4\"]\n"));
    let parts = ["8.8.8.8", "8.8.4.4"];
    place.examined(&[]).has("public-address", "warning", &parts);
}
