//! The scenario of all brokers.

use std::pin::pin;
use std::time::{Duration, Instant};

use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::Peer;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::broker::Broker;
use crate::correspondent::{Correspondent, Wire};
use crate::site::{SECRET, Site};

/// The longest time that a test waits for media.
const PATIENCE: Duration = Duration::from_secs(20);

/// The properties of events by a broker.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// The place of events of the kind `core`.
    pub core: &'static str,
    /// The place of events of the kind `external`.
    pub external: &'static str,
    /// The place of events of the kind `transports`.
    pub transports: &'static str,
    /// They carry their kind's label.
    pub labelled: bool,
    /// The broker keeps them for absent subscribers.
    pub kept: bool,
}

/// A call by the broker, with media. Events. A restart of the broker, during which all of it goes
/// on. `connect` returns a correspondent at the broker.
pub async fn everything<W: Wire>(
    broker: &mut Broker,
    config: &str,
    package: &str,
    told: Told,
    gently: bool,
    connect: impl AsyncFn(&Broker) -> W,
) {
    let mut far = Correspondent::new(connect(broker).await);
    let site = Site::start(config).await;
    site.until_counted("connects", 1).await;
    let (session, handle, mut peer) = call(&mut far).await;
    refusals(&mut far).await;
    administration(&mut far, told).await;

    let connected = |event: &Value| event["event"]["data"]["event"] == "connected";
    let event = far.event(told.transports, connected).await;
    assert_eq!(
        (&event["type"], &event["event"]["transport"]),
        (&json!(128), &json!(package))
    );
    let id = event["event"]["id"].as_str().unwrap().to_owned();

    site.publish(0..3);
    for n in 0..3 {
        let event = far.event(told.core, |event| event["event"]["n"] == n).await;
        assert_eq!(
            (&event["emitter"], &event["subtype"]),
            (&json!("Portunus"), &json!(1))
        );
        if told.labelled {
            assert_eq!(event["eventtype"], "core");
        }
    }

    broker.stop(gently);
    drop(far);
    echo(&mut peer).await;
    site.publish(3..23);
    let before = site.counted("messages");
    during(broker.start_again(), &mut peer).await;
    let mut far = Correspondent::new(connect(broker).await);
    site.until_counted("connects", 2).await;
    site.until_counted("messages", before + 1).await;
    if told.kept {
        for n in 3..23 {
            far.event(told.core, |event| event["event"]["n"] == n).await;
        }
    }
    assert_eq!(
        (site.counted("dropped"), site.counted("lost_messages")),
        (0, 0)
    );

    // The transport may need a moment more than the handler.
    let again = |event: &Value| connected(event) && event["event"]["id"] == *id;
    if told.kept {
        let lost = |event: &Value| event["event"]["data"]["event"] == "disconnected";
        far.event(told.transports, lost).await;
        far.event(told.transports, again).await;
    }
    let alive = json!({ "janus": "keepalive", "session_id": session });
    assert_eq!(patient(&mut far, alive).await["janus"], "ack");
    let body = json!({ "janus": "message", "session_id": session, "handle_id": handle, "body": { "audio": true } });
    assert_eq!(far.ask("to-janus", body).await["janus"], "ack");
    let event = far.pushed("event").await;
    assert_eq!(event["plugindata"]["data"]["result"], "ok", "{event}");
    echo(&mut peer).await;

    site.publish(23..24);
    far.event(told.core, |event| event["event"]["n"] == 23)
        .await;
    site.publish(24..34);
    site.end().await;
    if told.kept {
        far.event(told.core, |event| event["event"]["n"] == 33)
            .await;
    }
    far.close().await;
}

/// Waits for something while the call goes on: some brokers take longer to start than its consent holds.
async fn during(other: impl Future<Output = ()>, peer: &mut Peer) {
    let mut other = pin!(other);
    let moment = Duration::from_millis(10);
    while timeout(moment, &mut other).await.is_err() {
        peer.run_for(moment).await;
    }
}

/// Repeats a request until it is answered. Some brokers lose a request without a subscriber.
async fn patient<W: Wire>(far: &mut Correspondent<W>, request: Value) -> Value {
    for n in 0..100 {
        let transaction = format!("again{n}");
        let mut request = request.clone();
        request["transaction"] = transaction.clone().into();
        far.say("to-janus", request.to_string(), &transaction).await;
        let answer = far.until(|message| message.body["transaction"] == *transaction);
        let wait = Duration::from_millis(200);
        if let Ok(answer) = timeout(wait, answer).await {
            return answer.body;
        }
    }
    panic!("no answer to {request}");
}

/// Creates a session, a handle of the echo test, and a PeerConnection whose sound comes back.
async fn call<W: Wire>(far: &mut Correspondent<W>) -> (Value, Value, Peer) {
    // Before the server has subscribed, requests are lost. A repeated request for a session would
    // create two.
    patient(far, json!({ "janus": "ping" })).await;
    let created = far.ask("to-janus", json!({ "janus": "create" })).await;
    let session = created["data"]["id"].clone();
    let attach =
        json!({ "janus": "attach", "session_id": session, "plugin": "janus.plugin.echotest" });
    let attached = far.ask("to-janus", attach).await;
    let handle = attached["data"]["id"].clone();
    let mut peer = Peer::offering().await;
    let mut sound = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    sound.add_codec(CodecName::Opus, None, None);
    let offer = peer.offer(Description::offer(OfferOptions {
        media: vec![sound],
        ..Default::default()
    }));
    let message = json!({
        "janus": "message", "session_id": session, "handle_id": handle,
        "body": { "audio": true }, "jsep": { "type": "offer", "sdp": offer },
    });
    assert_eq!(far.ask("to-janus", message).await["janus"], "ack");
    let event = far.pushed("event").await;
    assert_eq!(event["plugindata"]["data"]["result"], "ok", "{event}");
    peer.accept(event["jsep"]["sdp"].as_str().unwrap());
    peer.connect().await;
    assert_eq!(far.pushed("webrtcup").await["sender"], handle);
    echo(&mut peer).await;
    (session, handle, peer)
}

/// Sends sound until some of it comes back.
async fn echo(peer: &mut Peer) {
    peer.packets.clear();
    let started = Instant::now();
    for n in 0.. {
        peer.send(0, n * 960, b"opus").await;
        let mut turns = 0;
        peer.run_until(|_| {
            turns += 1;
            turns > 3
        })
        .await;
        if !peer.packets.is_empty() {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "nothing comes back");
    }
}

/// Errors are sent to the requester, as far as that is known.
async fn refusals<W: Wire>(far: &mut Correspondent<W>) {
    let unknown = far
        .ask("to-janus", json!({ "janus": "keepalive", "session_id": 1 }))
        .await;
    assert_eq!(unknown["error"]["code"], 458);
    for (text, code) in [
        ("{", 454),
        ("[]", 456),
        (r#"{"janus":7,"transaction":"x"}"#, 467),
    ] {
        far.say("to-janus", text.to_owned(), "wrong").await;
        let refusal = far.until(|message| message.body["janus"] == "error").await;
        assert_eq!(refusal.body["error"]["code"], code, "{text}");
    }
    let long = json!({ "janus": "ping", "transaction": "x".repeat(600_000) });
    far.say("to-janus", long.to_string(), "long").await;
    let refusal = far.until(|message| message.body["janus"] == "error").await;
    assert_eq!(refusal.body["error"]["code"], 454);
}

/// The Admin API, and an event that the server sends by its request.
async fn administration<W: Wire>(far: &mut Correspondent<W>, told: Told) {
    let to = "to-janus-admin";
    let stranger = far.ask(to, json!({ "janus": "list_sessions" })).await;
    assert_eq!(stranger["error"]["code"], 403);
    let list = json!({ "janus": "list_sessions", "admin_secret": SECRET });
    let sessions = far.ask(to, list).await;
    assert_eq!(
        sessions["sessions"].as_array().map(Vec::len),
        Some(1),
        "{sessions}"
    );
    let data = json!({ "text": "ä \"quoted\"", "n": 1 });
    let tell = json!({
        "janus": "custom_event", "schema": "test", "data": data, "admin_secret": SECRET,
    });
    assert_eq!(far.ask(to, tell).await["janus"], "success");
    let mut event = far.event(told.external, |event| event["type"] == 4).await;
    let members = event.as_object_mut().unwrap();
    assert!(members.remove("timestamp").unwrap().as_u64() > Some(1_600_000_000_000_000));
    assert_eq!(
        members.remove("eventtype"),
        told.labelled.then(|| "external".into())
    );
    let expected =
        json!({ "emitter": "Portunus", "type": 4, "event": { "schema": "test", "data": data } });
    assert_eq!(event, expected);
}
