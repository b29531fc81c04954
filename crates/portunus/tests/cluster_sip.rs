//! Pages of two nodes with one SIP account: each node registers its own contact, and the registrar
//! rings all of them. Two processes with a real nats-server, and Kamailio as the registrar. Skipped
//! with a message where one of them is not installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::net::UdpSocket;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nodes::Site;
use nodes::events::Events;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Peer, free_port};
use serde_json::{Value, json};
use server::{PATIENCE, attach_to, post};
use tempfile::TempDir;

const PACKAGE: &str = "janus.plugin.sip";
const PROGRAM: &str = "/usr/sbin/kamailio";

/// Whoever shows its password may register, and is called at all its contacts at once.
const ROUTES: &str = r#"
request_route {
  force_rport();
  if (is_method("CANCEL")) { if (t_check_trans()) t_relay(); exit; }
  if (has_totag()) {
    if (loose_route()) t_relay();
    else if (is_method("ACK")) { if (t_check_trans()) t_relay(); }
    else sl_send_reply("481", "Call/Transaction Does Not Exist");
    exit;
  }
  $var(secret) = $fU + "-secret";
  if (is_method("REGISTER")) {
    if (!pv_www_authenticate("portunus.test", "$var(secret)", "0")) { www_challenge("portunus.test", "1"); exit; }
    save("location");
    exit;
  }
  if (!pv_proxy_authenticate("portunus.test", "$var(secret)", "0")) { proxy_challenge("portunus.test", "1"); exit; }
  consume_credentials();
  record_route();
  if (!lookup("location")) { sl_send_reply("404", "Not Found"); exit; }
  t_relay();
}
"#;

/// Kamailio as registrar and proxy. It ends with this value.
struct Kamailio {
    process: Child,
    port: u16,
    folder: TempDir,
}

impl Kamailio {
    /// Returns `None` with a message if it is not installed.
    fn start() -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            println!("skipped: there is no {PROGRAM} (scripts/setup sip)");
            return None;
        }
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let modules = [
            "kex",
            "tm",
            "sl",
            "rr",
            "pv",
            "siputils",
            "textops",
            "auth",
            "usrloc",
            "registrar",
        ];
        let modules = modules
            .map(|name| format!("loadmodule \"{name}.so\"\n"))
            .concat();
        let config = format!(
            "#!KAMAILIO\ndebug=0\nlog_stderror=yes\nchildren=1\nauto_aliases=no\ndisable_tcp=yes\n\
             listen=udp:127.0.0.1:{port}\n{modules}modparam(\"auth\", \"qop\", \"auth\")\n\
             modparam(\"auth\", \"nonce_count\", 1)\n{ROUTES}"
        );
        let path = folder.path().join("kamailio.cfg");
        std::fs::write(&path, config).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut process = Command::new(PROGRAM)
            .args(["-DD", "-E", "-m", "32", "-M", "4", "-f"])
            .arg(&path)
            .arg("-Y")
            .arg(folder.path())
            .arg("-w")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        // Its socket is there once nobody else can have the port.
        let begin = Instant::now();
        while UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            let ended = process.try_wait().unwrap();
            assert!(
                ended.is_none() && begin.elapsed() < PATIENCE,
                "Kamailio does not start"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Kamailio {
            process,
            port,
            folder,
        })
    }
}

impl Drop for Kamailio {
    fn drop(&mut self) {
        // Its workers are processes, too.
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let log = self.folder.path().join("log");
            println!("{}", std::fs::read_to_string(log).unwrap_or_default());
        }
    }
}

/// A page with an account.
struct Page {
    handle: String,
    events: Events,
    peer: Option<Peer>,
}

fn result(event: &Value) -> &Value {
    &event["plugindata"]["data"]["result"]
}

fn sound() -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio.add_codec(CodecName::Opus, None, None);
    Description::offer(OfferOptions {
        media: vec![audio],
        ..OfferOptions::default()
    })
}

impl Page {
    /// A page that is registered.
    fn registered(api: &str, name: &str, registrar: u16) -> Self {
        let handle = attach_to(api, PACKAGE);
        let events = Events::of(&handle);
        let page = Page {
            handle,
            events,
            peer: None,
        };
        page.send(
            json!({
                "request": "register", "username": format!("sip:{name}@127.0.0.1:{registrar}"),
                "secret": format!("{name}-secret"), "proxy": format!("sip:127.0.0.1:{registrar}"),
            }),
            None,
        );
        let registered = page.events.until(|event| {
            let name = result(event)["event"].as_str().unwrap_or_default();
            ["registered", "registration_failed"].contains(&name)
        });
        assert_eq!(result(&registered)["event"], "registered", "{registered}");
        page
    }

    fn send(&self, body: Value, jsep: Option<(&str, &str)>) {
        let mut message = json!({ "janus": "message", "transaction": "m", "body": body });
        if let Some((kind, sdp)) = jsep {
            message["jsep"] = json!({ "type": kind, "sdp": sdp });
        }
        assert_eq!(post(&self.handle, &message)["janus"], "ack");
    }

    #[track_caller]
    fn until(&mut self, name: &str) -> Value {
        self.events.until(|event| result(event)["event"] == name)
    }

    async fn call(&mut self, name: &str, registrar: u16) {
        let mut peer = Peer::offering().await;
        let offer = peer.offer(sound());
        self.peer = Some(peer);
        let call = json!({ "request": "call", "uri": format!("sip:{name}@127.0.0.1:{registrar}") });
        self.send(call, Some(("offer", &offer)));
        let calling = self.events.until(|event| event["janus"] == "event");
        assert_eq!(result(&calling)["event"], "calling", "{calling}");
        let next = self.events.until(|event| event["janus"] == "event");
        let name = result(&next)["event"].as_str().unwrap_or_default();
        assert!(["ringing", "proceeding"].contains(&name), "{next}");
    }

    /// Waits for the end of its call. Returns code and reason.
    #[track_caller]
    fn ended(&mut self) -> (Value, Value) {
        let hangup = self.until("hangup");
        self.peer = None;
        let result = result(&hangup);
        (result["code"].clone(), result["reason"].clone())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_rings_at_pages_of_two_nodes_and_one_answers() {
    let Some(kamailio) = Kamailio::start() else {
        return;
    };
    let networks =
        "[server]\noutgoing_networks = [\"127.0.0.0/8\"]\n[sip]\nlocal_ip = \"127.0.0.1\"\n";
    let Some(site) = Site::with(&[("a", networks), ("b", networks)]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api());
    let registrar = kamailio.port;
    let mut at_a = Page::registered(a, "alice", registrar);
    let mut at_b = Page::registered(b, "alice", registrar);
    let mut bob = Page::registered(b, "bob", registrar);

    bob.call("alice", registrar).await;
    let incoming = at_a.until("incomingcall");
    at_b.until("incomingcall");
    let mut peer = Peer::answering().await;
    let answer = peer.answer(incoming["jsep"]["sdp"].as_str().unwrap());
    at_a.send(json!({ "request": "accept" }), Some(("answer", &answer)));
    let accepted = bob.until("accepted");
    assert_eq!(at_b.ended(), (json!(200), json!("Accepted elsewhere")));
    let of_bob = bob.peer.as_mut().unwrap();
    of_bob.accept(accepted["jsep"]["sdp"].as_str().unwrap());
    of_bob.connect().await;
    peer.connect().await;
    let (begin, mut clock) = (Instant::now(), 0);
    while !peer.packets.iter().any(|packet| packet.payload == b"hello") {
        assert!(begin.elapsed() < PATIENCE, "nothing is heard");
        clock += 960;
        of_bob.send(0, clock, b"hello").await;
        of_bob.run_for(Duration::from_millis(10)).await;
        peer.run_for(Duration::from_millis(10)).await;
    }
    bob.send(json!({ "request": "hangup" }), None);
    assert_eq!(at_a.ended().0, 200);
    bob.ended();

    // Who declines for all does so at other nodes, too.
    bob.call("alice", registrar).await;
    at_a.until("incomingcall");
    at_b.until("incomingcall");
    at_b.send(json!({ "request": "decline", "code": 603 }), None);
    assert_eq!(at_a.ended(), (json!(603), json!("Declined elsewhere")));
    assert_eq!(at_b.ended().0, 603);
    assert_eq!(bob.ended().0, 603);

    // A caller that gives up was not answered elsewhere.
    bob.call("alice", registrar).await;
    at_a.until("incomingcall");
    at_b.until("incomingcall");
    bob.send(json!({ "request": "hangup" }), None);
    for page in [&mut at_a, &mut at_b] {
        assert_eq!(page.ended(), (json!(487), json!("Request Terminated")));
    }
    bob.ended();

    // A page that unregisters takes the contact of its node along, and no other one.
    at_a.send(json!({ "request": "unregister" }), None);
    at_a.until("unregistered");
    bob.call("alice", registrar).await;
    let incoming = at_b.until("incomingcall");
    let mut peer = Peer::answering().await;
    let answer = peer.answer(incoming["jsep"]["sdp"].as_str().unwrap());
    at_b.send(json!({ "request": "accept" }), Some(("answer", &answer)));
    bob.until("accepted");
    assert_eq!(
        at_a.events
            .come()
            .filter(|it| it["janus"] == "event")
            .count(),
        0
    );
}
