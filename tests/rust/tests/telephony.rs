//! Calls between clients and telephones: sipp in both roles, over UDP and TCP, with losses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use portunus_core::record::Recorder;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_sip_plugin::{Sip, SipConfig};
use portunus_tests::{Caller, Peer, Server, Watcher, free_port};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::timeout;

const SIPP: &str = "/usr/bin/sipp";
const SOCAT: &str = "/usr/bin/socat";
const PACKAGE: &str = "janus.plugin.sip";

/// 20 ms of G.711.
const SOUND: [u8; 160] = [0x55; 160];

/// Returns whether sipp, which plays telephones, is installed. Otherwise, tests are skipped.
fn has_sipp() -> bool {
    let is_there = Path::new(SIPP).exists();
    if !is_there {
        eprintln!("left out: there is no {SIPP}");
    }
    is_there
}

/// A telephone.
struct Sipp {
    child: Child,
    port: u16,
}

/// A terminator of TLS in front of a telephone, since sipp of Debian has none.
struct Terminator {
    _child: Child,
    port: u16,
}

impl Terminator {
    /// Listens on `from`, and connects to `to`, both in the notation of socat.
    async fn start(from: &str, to: &str, port: u16) -> Self {
        let child = Command::new(SOCAT)
            .args([from, to])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        listens_by_tcp(port).await;
        Terminator {
            _child: child,
            port,
        }
    }
}

/// Waits until a port accepts connections.
async fn listens_by_tcp(port: u16) {
    let waiting = async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), waiting)
        .await
        .expect("a port");
}

/// Creates a certificate for this machine with its key, in one file and in two.
fn certificate(folder: &Path) -> [std::path::PathBuf; 3] {
    let [key, certificate, both] =
        ["key.pem", "certificate.pem", "both.pem"].map(|it| folder.join(it));
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext"])
        .args(["subjectAltName=IP:127.0.0.1", "-addext"])
        .args(["basicConstraints=critical,CA:FALSE", "-keyout"])
        .args([&key, Path::new("-out"), &certificate])
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success());
    let text = |path| std::fs::read_to_string(path).unwrap();
    std::fs::write(&both, text(&key) + &text(&certificate)).unwrap();
    [key, certificate, both]
}

impl Sipp {
    /// Plays a scenario of `tests/sip` with one call.
    fn play(scenario: &str, more: &[&str]) -> Self {
        let port = free_port();
        let is_tcp = more.contains(&"t1");
        let contact = format!(
            "127.0.0.1:{port};transport={}",
            if is_tcp { "tcp" } else { "udp" }
        );
        Self::play_at(port, &contact, scenario, more)
    }

    /// Like `play`, at this port, with `contact` as its address.
    fn play_at(port: u16, contact: &str, scenario: &str, more: &[&str]) -> Self {
        let media = free_port();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../sip/{scenario}.xml"));
        let child = Command::new(SIPP)
            .args(["-sf", &file.to_string_lossy(), "-i", "127.0.0.1", "-m", "1"])
            .args([
                "-p",
                &port.to_string(),
                "-mi",
                "127.0.0.1",
                "-mp",
                &media.to_string(),
            ])
            .args(["-key", "contact", contact])
            .args(["-rtp_echo", "-nostdin", "-timeout", "40", "-timeout_error"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Sipp { child, port }
    }

    /// Waits until it receives messages over UDP.
    async fn listens(self) -> Self {
        let is_taken = || UdpSocket::bind(("127.0.0.1", self.port)).is_err();
        let waiting = async {
            while !is_taken() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), waiting)
            .await
            .expect("sipp");
        self
    }

    /// Checks that its whole scenario was played.
    async fn ends_content(mut self) {
        let status = timeout(Duration::from_secs(45), self.child.wait()).await;
        let status = status.expect("the end of sipp").unwrap();
        assert!(status.success(), "sipp: {status}");
    }
}

async fn server() -> (Server, Watcher, u16) {
    let port = free_port();
    let config = SipConfig {
        listen: vec![
            format!("udp:{port}").parse().unwrap(),
            format!("tcp:{port}").parse().unwrap(),
        ],
        ..SipConfig::default()
    };
    let (server, watcher) = server_with(config).await;
    (server, watcher, port)
}

async fn server_with(config: SipConfig) -> (Server, Watcher) {
    let config = SipConfig {
        local_ip: Some([127, 0, 0, 1].into()),
        // Pages are called by their names, without a registrar.
        direct_callers: vec!["127.0.0.0/8".parse().unwrap()],
        ..config
    };
    Server::watched::<Sip>(config, Recorder::default()).await
}

/// Returns a page that can be called as alice, without a registrar.
async fn page(server: &Server) -> Caller {
    let mut page = server.attach(PACKAGE).await;
    let body = json!({
        "request": "register", "username": "sip:alice@127.0.0.1", "secret": "s", "send_register": false,
    });
    page.message(body, None).await;
    let registered = result(&mut page, "registered").await;
    assert_eq!(
        registered["plugindata"]["data"]["result"]["username"],
        "alice"
    );
    page
}

async fn result(page: &mut Caller, event: &str) -> Value {
    page.until("/plugindata/data/result/event", event).await
}

fn description() -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio.add_codec(CodecName::Pcmu, None, None);
    Description::offer(OfferOptions {
        media: vec![audio],
        ..OfferOptions::default()
    })
}

/// Speaks until the echo is heard.
async fn hear_echo(peer: &mut Peer) {
    let mut timestamp = 0;
    for _ in 0..500 {
        peer.send(0, timestamp, &SOUND).await;
        timestamp += 160;
        peer.run_for(Duration::from_millis(20)).await;
        if peer.packets.iter().any(|packet| packet.payload == SOUND) {
            return;
        }
    }
    panic!("nothing is heard");
}

/// Calls a telephone and speaks with it.
async fn call(page: &mut Caller, uri: &str, more: Value) -> Peer {
    let mut peer = Peer::offering().await;
    let offer = peer.offer(description());
    let mut body = json!({ "request": "call", "uri": uri });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    page.message(body, Some(("offer", &offer))).await;
    result(page, "calling").await;
    let accepted = result(page, "accepted").await;
    peer.accept(accepted["jsep"]["sdp"].as_str().expect("an answer"));
    peer.connect().await;
    hear_echo(&mut peer).await;
    peer
}

/// Presses a key, holds the call, resumes it, and ends it.
async fn hold_and_hang_up(server: &Server, page: &mut Caller) {
    page.message(json!({ "request": "dtmf_info", "digit": "5" }), None)
        .await;
    result(page, "dtmfsent").await;
    for (request, event) in [("hold", "holding"), ("unhold", "resuming")] {
        page.message(json!({ "request": request }), None).await;
        result(page, event).await;
        let is_made = async {
            while server.state(page).await["call_status"] != "incall" {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), is_made)
            .await
            .expect("an answer");
    }
    hang_up(page).await;
}

/// Ends the call.
async fn hang_up(page: &mut Caller) {
    page.message(json!({ "request": "hangup" }), None).await;
    result(page, "hangingup").await;
    let hangup = result(page, "hangup").await;
    let hangup = &hangup["plugindata"]["data"]["result"];
    assert_eq!(
        hangup,
        &json!({ "event": "hangup", "code": 200, "reason": "to BYE" })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_calls_a_telephone() {
    if !has_sipp() {
        return;
    }
    let (server, _watcher, _) = server().await;
    let mut page = page(&server).await;
    for (transport, more) in [("u1", &[][..]), ("u1", &["-lost", "10"]), ("t1", &[])] {
        let arguments: Vec<&str> = ["-t", transport].iter().chain(more).copied().collect();
        let loses = !more.is_empty();
        let mut phone = Sipp::play("held", &arguments);
        let more = match transport {
            "u1" => {
                phone = phone.listens().await;
                ""
            }
            _ => {
                listens_by_tcp(phone.port).await;
                ";transport=tcp"
            }
        };
        let uri = format!("sip:echo@127.0.0.1:{}{more}", phone.port);
        // Too large for UDP, but the telephone has no TCP.
        let long = "x".repeat(if transport == "u1" { 1_300 } else { 1 });
        let more = json!({ "headers": { "X-Long": long } });
        let _peer = call(&mut page, &uri, more).await;
        if loses {
            // It requires the order of its scenario, which retransmissions would break.
            hang_up(&mut page).await;
        } else {
            hold_and_hang_up(&server, &mut page).await;
            phone.ends_content().await;
        }
    }
}

/// Accepts the call of a telephone, speaks with it, and waits until it hangs up.
async fn take_call(page: &mut Caller) {
    let incoming = result(page, "incomingcall").await;
    let told = &incoming["plugindata"]["data"]["result"];
    assert_eq!(told["username"], "sip:echo@elsewhere.test");
    assert_eq!(told["displayname"], "\"Echo\"");
    let mut peer = Peer::answering().await;
    let answer = peer.answer(incoming["jsep"]["sdp"].as_str().unwrap());
    page.message(json!({ "request": "accept" }), Some(("answer", &answer)))
        .await;
    result(page, "accepted").await;
    peer.connect().await;
    hear_echo(&mut peer).await;
    let hangup = result(page, "hangup").await;
    let hangup = &hangup["plugindata"]["data"]["result"];
    let expected = json!({ "event": "hangup", "code": 200, "reason": "Session Terminated" });
    assert_eq!(hangup, &expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_telephone_calls_a_page() {
    if !has_sipp() {
        return;
    }
    let (server, _watcher, port) = server().await;
    let mut page = page(&server).await;
    let to = format!("127.0.0.1:{port}");
    for more in [
        vec!["-t", "u1"],
        vec!["-t", "t1"],
        vec!["-t", "u1", "-lost", "10"],
    ] {
        let mut arguments = vec!["-s", "alice", "-d", "1500", to.as_str()];
        arguments.extend(more);
        let phone = Sipp::play("calls", &arguments);
        take_call(&mut page).await;
        phone.ends_content().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn telephones_call_and_are_called_by_tls() {
    if !has_sipp() || !Path::new(SOCAT).exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [key, certificate, both] = certificate(folder.path());
    let port = free_port();
    let config = SipConfig {
        listen: vec![format!("tls:{port}").parse().unwrap()],
        tls_certificate: Some(certificate.clone()),
        tls_key: Some(key),
        tls_cacert: Some(certificate.clone()),
        ..SipConfig::default()
    };
    let (server, _watcher) = server_with(config).await;
    let mut page = page(&server).await;
    // The page calls: all requests in the call use TLS, too.
    let (secure, plain) = (free_port(), free_port());
    let contact = format!("127.0.0.1:{secure};transport=tls");
    let phone = Sipp::play_at(plain, &contact, "held", &["-t", "t1"]);
    listens_by_tcp(plain).await;
    let from = format!(
        "OPENSSL-LISTEN:{secure},bind=127.0.0.1,reuseaddr,fork,verify=0,cert={}",
        both.display()
    );
    let end = Terminator::start(&from, &format!("TCP:127.0.0.1:{plain}"), secure).await;
    let uri = format!("sip:echo@127.0.0.1:{};transport=tls", end.port);
    let _peer = call(&mut page, &uri, json!({})).await;
    hold_and_hang_up(&server, &mut page).await;
    phone.ends_content().await;
    // The page is called.
    let entrance = free_port();
    let from = format!("TCP-LISTEN:{entrance},bind=127.0.0.1,reuseaddr,fork");
    let to = format!("OPENSSL:127.0.0.1:{port},cafile={}", certificate.display());
    let end = Terminator::start(&from, &to, entrance).await;
    let to = format!("127.0.0.1:{}", end.port);
    let phone = Sipp::play("calls", &["-s", "alice", "-d", "500", &to, "-t", "t1"]);
    take_call(&mut page).await;
    phone.ends_content().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_there_is_told() {
    let (server, mut watcher, port) = server().await;
    let mut page = page(&server).await;
    let nobody = free_port();
    for (uri, code) in [
        (format!("sip:x@127.0.0.1:{nobody}"), 503),
        (format!("sip:x@127.0.0.1:{nobody};transport=tcp"), 503),
        // No messages may be sent there.
        ("sip:x@10.255.255.1".to_owned(), 503),
        // Our own address, with an unknown name.
        (format!("sip:x@127.0.0.1:{port}"), 404),
    ] {
        let is_forbidden = uri.contains("10.255");
        let mut peer = Peer::offering().await;
        let offer = peer.offer(description());
        page.message(
            json!({ "request": "call", "uri": uri }),
            Some(("offer", &offer)),
        )
        .await;
        let hangup = result(&mut page, "hangup").await;
        let told = &hangup["plugindata"]["data"]["result"];
        assert_eq!(told["code"], code, "{uri}: {told}");
        let reason = told["reason"].as_str().unwrap();
        assert_eq!(
            reason.contains("server.outgoing_networks"),
            is_forbidden,
            "{told}"
        );
    }
    let told = watcher.told("janus.plugin.sip", Some(&page)).await;
    assert!(told.is_object());
}
