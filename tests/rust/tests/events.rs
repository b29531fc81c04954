//! The events of a whole call for event handlers.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;
use std::time::Duration;

use portunus_core::events::{EventFilter, EventKind, EventMask, Subscription};
use portunus_echotest::EchoTest;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Caller, Peer, Server};
use serde_json::{Value, json};
use tokio::time::timeout;

const PACKAGE: &str = "janus.plugin.echotest";

/// The longest time that a test waits for an expected event.
const PATIENCE: Duration = Duration::from_secs(20);

/// The events that a subscriber has received so far.
struct Told {
    events: Subscription,
    told: Vec<Value>,
}

impl Told {
    /// Subscribes to all events except those of the server and plugins.
    fn on(server: &Server) -> Self {
        let kinds = [
            EventKind::Sessions,
            EventKind::Handles,
            EventKind::Jsep,
            EventKind::WebRtc,
            EventKind::Media,
        ];
        let kinds = kinds.into_iter();
        let filter = EventFilter {
            kinds: kinds.fold(EventMask::NONE, |mask, kind| mask.and(kind.into())),
            plugins: Vec::new(),
        };
        let events = server.gateway.events().subscribe("test", filter, 10_000);
        let told = Vec::new();
        Told { events, told }
    }

    /// Takes events until one is as wanted. Returns its index.
    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> usize {
        loop {
            let event = timeout(PATIENCE, self.events.recv()).await;
            let event = event
                .unwrap_or_else(|_| panic!("{:#?}", self.told))
                .unwrap();
            self.told.push(self.events.to_json(&event));
            if self.told.last().is_some_and(&wanted) {
                return self.told.len() - 1;
            }
        }
    }

    async fn until_is(&mut self, name: &str, value: &str) -> usize {
        self.until(|event| event["event"][name] == value).await
    }
}

/// Returns the subject of an event in a word or two.
fn word(event: &Value) -> String {
    let body = &event["event"];
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    match (event["type"].as_u64(), event["subtype"].as_u64()) {
        (Some(1 | 2), None) => text("name"),
        (Some(8), None) => text("owner"),
        (Some(16), Some(1)) => text("ice"),
        (Some(16), Some(2)) => "local candidate".to_owned(),
        (Some(16), Some(3)) => "remote candidate".to_owned(),
        (Some(16), Some(4)) => "pair".to_owned(),
        (Some(16), Some(5)) => format!("dtls {}", text("dtls")),
        (Some(16), Some(6)) => text("connection"),
        (Some(32), Some(1)) => "media".to_owned(),
        (Some(32), Some(3)) => "statistics".to_owned(),
        other => panic!("{other:?}: {event}"),
    }
}

fn description() -> Description {
    let media = [Kind::Audio, Kind::Video, Kind::Data].map(|kind| {
        let mut media = MediaOffer::new(kind, Direction::SendRecv);
        match kind {
            Kind::Audio => media.add_codec(CodecName::Opus, None, None),
            Kind::Video => media.add_codec(CodecName::Vp8, None, None),
            Kind::Data => {}
        }
        media
    });
    Description::offer(OfferOptions {
        media: media.into(),
        ..Default::default()
    })
}

/// Attaches and connects. Returns the two descriptions, too.
async fn connect(server: &Server) -> (Caller, Peer, String, String) {
    let mut caller = server.attach(PACKAGE).await;
    let mut peer = Peer::offering().await;
    let offer = peer.offer(description());
    let body = json!({ "audio": true });
    caller.message(body, Some(("offer", &offer))).await;
    let answer = caller.next().await;
    let answer = answer["jsep"]["sdp"].as_str().unwrap().to_owned();
    peer.accept(&answer);
    peer.connect().await;
    caller.until("/janus", "webrtcup").await;
    (caller, peer, offer, answer)
}

/// Sends sound until statistics have arrived twice.
async fn talk(peer: &mut Peer, told: &mut Told) -> usize {
    let mut found = 0;
    for n in 0..400 {
        peer.send(0, n * 960, b"opus").await;
        peer.run_for(Duration::from_millis(20)).await;
        while let Some(event) = told.events.try_recv() {
            told.told.push(told.events.to_json(&event));
            let event = told.told.last().unwrap();
            found += usize::from(
                event["subtype"] == 3 && event["event"]["mid"] == "0" && event["type"] == 32,
            );
        }
        if found == 2 {
            return n as usize + 1;
        }
    }
    panic!("no statistics: {:#?}", told.told);
}

#[tokio::test]
async fn a_call_is_told_from_its_beginning_to_its_end() {
    let server = Server::start(1, Arc::new(EchoTest));
    let mut told = Told::on(&server);
    let (mut caller, mut peer, offer, answer) = connect(&server).await;
    talk(&mut peer, &mut told).await;
    caller.request("detach", json!({})).await;
    told.until_is("name", "detached").await;

    let words: Vec<_> = told.told.iter().map(word).collect();
    let setup = [
        "created",
        "attached",
        "remote",
        "gathering",
        "remote candidate",
        "local candidate",
        "local",
        "connecting",
        "pair",
        "connected",
        "ready",
        "dtls trying",
        "dtls connected",
        "webrtcup",
    ];
    assert_eq!(words[..setup.len()], setup, "{words:?}");
    let (media, end) = words[setup.len()..].split_at(words.len() - setup.len() - 2);
    assert_eq!(end, ["hangup", "detached"]);
    assert!(media.contains(&"media".to_owned()), "{media:?}");
    assert_eq!(media.last(), Some(&"statistics".to_owned()));

    let of = |wanted: &str| {
        let place = words.iter().position(|word| word == wanted).unwrap();
        &told.told[place]["event"]
    };
    assert_eq!(
        of("remote")["jsep"],
        json!({ "type": "offer", "sdp": offer })
    );
    assert_eq!(
        of("local")["jsep"],
        json!({ "type": "answer", "sdp": answer })
    );
    let candidate_in = |sdp: &str| {
        let mut lines = sdp.lines();
        let line = lines.find_map(|line| line.strip_prefix("a=candidate:"));
        json!({ "text": line.unwrap() })["text"].clone()
    };
    assert_eq!(
        of("remote candidate")["remote-candidate"],
        candidate_in(&offer)
    );
    assert_eq!(
        of("local candidate")["local-candidate"],
        candidate_in(&answer)
    );
    let candidates = &of("pair")["candidates"];
    let (local, remote) = (&candidates["local"], &candidates["remote"]);
    assert_eq!(
        (&local["type"], &local["transport"]),
        (&json!("host"), &json!("udp"))
    );
    assert_eq!(
        (&remote["type"], &remote["family"]),
        (&json!("host"), &json!(4))
    );
    let text = format!(
        "{}:{} [host,udp] <-> {}:{} [host,udp]",
        local["address"].as_str().unwrap(),
        local["port"],
        remote["address"].as_str().unwrap(),
        remote["port"],
    );
    assert_eq!(of("pair")["selected-pair"], text.as_str());
    assert_eq!(
        of("dtls connected")["retransmissions"]
            .as_u64()
            .map(|n| n < 20),
        Some(true)
    );
    let coming = json!({ "media": "audio", "mid": "0", "receiving": true });
    assert_eq!(of("media"), &coming);
    assert_eq!(
        of("hangup"),
        &json!({ "connection": "hangup", "reason": "Detach" })
    );

    // All events except the session's own name the handle, whose events have its address.
    let attached = &told.told[1];
    for event in &told.told[1..] {
        for name in ["session_id", "handle_id", "emitter"] {
            assert_eq!(event[name], attached[name], "{event}");
        }
    }
}

#[tokio::test]
async fn the_last_figures_say_all_that_was_sent() {
    let server = Server::start(1, Arc::new(EchoTest));
    let mut told = Told::on(&server);
    let (_caller, mut peer, ..) = connect(&server).await;
    let sent = talk(&mut peer, &mut told).await;
    // The peer closes it, without a request to the API.
    peer.connection.transport.close();
    peer.run_for(Duration::from_millis(10)).await;
    let end = told.until_is("connection", "hangup").await;
    assert_eq!(told.told[end]["event"]["reason"], "DTLS alert");
    let is_sound = |event: &&Value| {
        event["type"] == 32 && event["subtype"] == 3 && event["event"]["mid"] == "0"
    };
    let last = told.told[..end].iter().rfind(is_sound).unwrap();
    let figures = &last["event"];
    assert_eq!(figures["packets-received"], sent, "{figures}");
    assert_eq!(figures["bytes-received"], 4 * sent, "{figures}");
    assert_eq!(
        (&figures["media"], &figures["mindex"]),
        (&json!("audio"), &json!(0))
    );
    assert_eq!(
        (&figures["codec"], &figures["base"]),
        (&json!("opus"), &json!(48_000))
    );
    assert_eq!(figures["lost"], 0);
    for name in [
        "rtt",
        "lost-by-remote",
        "jitter-local",
        "jitter-remote",
        "packets-sent",
        "bytes-sent",
        "bytes-received-lastsec",
        "bytes-sent-lastsec",
        "nacks-received",
        "nacks-sent",
        "retransmissions-received",
    ] {
        assert!(figures[name].is_u64(), "{name}: {figures}");
    }
    for name in [
        "in-link-quality",
        "in-media-link-quality",
        "out-link-quality",
        "out-media-link-quality",
    ] {
        assert!(figures[name].as_u64() <= Some(100), "{name}: {figures}");
    }
}

#[tokio::test]
async fn whoever_watches_and_takes_nothing_keeps_no_call_from_being_made() {
    let server = Server::start(1, Arc::new(EchoTest));
    let slow = server
        .gateway
        .events()
        .subscribe("slow", EventFilter::ALL, 1);
    let (_caller, mut peer, ..) = connect(&server).await;
    for n in 0..50 {
        peer.send(0, n * 960, b"opus").await;
        peer.run_for(Duration::from_millis(5)).await;
    }
    peer.run_until(|peer| peer.packets.len() >= 40).await;
    assert!(slow.dropped() > 10);
    assert_eq!(server.gateway.counters().snapshot().events_dropped, 0);
}
