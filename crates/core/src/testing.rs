//! Drives a gateway by JSON, without a network, for the tests of plugins.
//!
//! The media plane has no workers: negotiation works, but nothing is ever received.
//! [`TestServer::happen`] simulates its events.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::fmt::Write;
use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

pub use portunus_media::testing::Requested;
use portunus_media::{CloseReason, Event, MediaPlane, PeerEvent, PeerId, PeerStats};
use portunus_record::{Recorder, RecorderConfig};
pub use portunus_tokens::testing::{
    jwt, jwt_opens_room, jwt_verifier, signed_token, signed_token_opens,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::events::{EventFilter, Subscription};
use crate::{Client, CoreConfig, Gateway, Networks, Outbox, Plugin, Requester, ServerFacts};

/// A gateway with plugins under test. Answers follow their acks without a pause, except with
/// [`TestServer::pausing`].
#[derive(Debug)]
pub struct TestServer {
    /// The gateway.
    pub gateway: Gateway,
    media: MediaPlane,
    events: mpsc::Sender<PeerEvent>,
}

impl TestServer {
    /// A server with this configuration, without recording.
    pub fn new(config: CoreConfig, plugins: Vec<Arc<dyn Plugin>>) -> Self {
        Self::recording(silent(), config, plugins)
    }

    /// A server whose plugins record with `recorder`.
    pub fn recording(
        recorder: Recorder,
        config: CoreConfig,
        plugins: Vec<Arc<dyn Plugin>>,
    ) -> Self {
        let (media, sender, events) = MediaPlane::detached();
        Self::on(config, media, sender, events, plugins, recorder)
    }

    /// A server whose plugins are made on its media plane.
    pub fn with(
        config: CoreConfig,
        plugins: impl FnOnce(&MediaPlane) -> Vec<Arc<dyn Plugin>>,
    ) -> Self {
        Self::recording_with(silent(), config, plugins)
    }

    /// As [`TestServer::with`], with plugins that record with `recorder`.
    pub fn recording_with(
        recorder: Recorder,
        config: CoreConfig,
        plugins: impl FnOnce(&MediaPlane) -> Vec<Arc<dyn Plugin>>,
    ) -> Self {
        let (media, sender, events) = MediaPlane::detached();
        let plugins = plugins(&media);
        Self::on(config, media, sender, events, plugins, recorder)
    }

    /// A server whose plugins are made on its media plane asynchronously.
    pub async fn with_media<P>(config: CoreConfig, plugins: impl FnOnce(MediaPlane) -> P) -> Self
    where
        P: Future<Output = Vec<Arc<dyn Plugin>>>,
    {
        Self::recording_with_media(silent(), config, plugins).await
    }

    /// As [`TestServer::with_media`], with plugins that record with `recorder`.
    pub async fn recording_with_media<P>(
        recorder: Recorder,
        config: CoreConfig,
        plugins: impl FnOnce(MediaPlane) -> P,
    ) -> Self
    where
        P: Future<Output = Vec<Arc<dyn Plugin>>>,
    {
        let (media, sender, events) = MediaPlane::detached();
        let plugins = plugins(media.clone()).await;
        Self::on(config, media, sender, events, plugins, recorder)
    }

    /// A server with these facts.
    pub fn knowing(facts: ServerFacts, config: CoreConfig, plugins: Vec<Arc<dyn Plugin>>) -> Self {
        let (media, sender, events) = MediaPlane::detached();
        let config = without_pause(config);
        let gateway = Gateway::new(config, media.clone(), events, plugins, facts);
        TestServer {
            gateway,
            media,
            events: sender,
        }
    }

    /// A server that keeps the configured pause between an ack and its answer.
    pub fn pausing(config: CoreConfig, plugins: Vec<Arc<dyn Plugin>>) -> Self {
        let (media, sender, events) = MediaPlane::detached();
        let facts = ServerFacts::default();
        let gateway = Gateway::new(config, media.clone(), events, plugins, facts);
        TestServer {
            gateway,
            media,
            events: sender,
        }
    }

    fn on(
        config: CoreConfig,
        media: MediaPlane,
        sender: mpsc::Sender<PeerEvent>,
        events: mpsc::Receiver<PeerEvent>,
        plugins: Vec<Arc<dyn Plugin>>,
        recorder: Recorder,
    ) -> Self {
        let facts = ServerFacts {
            recorder,
            ..ServerFacts::default()
        };
        let config = without_pause(config);
        let gateway = Gateway::new(config, media.clone(), events, plugins, facts);
        TestServer {
            gateway,
            media,
            events: sender,
        }
    }

    /// Opens a connection of a program on the same machine, which has all rights.
    pub fn connect(&self) -> TestClient {
        self.connect_from(Requester::unix())
    }

    /// Opens a connection from another address, without rights.
    pub fn connect_stranger(&self) -> TestClient {
        self.connect_from(stranger())
    }

    /// Opens a connection of `requester`.
    pub fn connect_from(&self, requester: Requester) -> TestClient {
        let purse = self.gateway.memory().purse(requester.address());
        let (client, messages) = Client::pushed("janus.transport.test", requester, purse);
        TestClient {
            gateway: self.gateway.clone(),
            client,
            messages,
            session: 0,
            handle: 0,
        }
    }

    /// Opens a connection with a session, and attaches to the plugin `package`.
    pub async fn attach(&self, package: &str) -> TestClient {
        self.attach_from(Requester::unix(), package).await
    }

    /// As [`TestServer::attach`], from another address without rights.
    pub async fn attach_stranger(&self, package: &str) -> TestClient {
        self.attach_from(stranger(), package).await
    }

    /// As [`TestServer::attach`], of `requester`.
    pub async fn attach_from(&self, requester: Requester, package: &str) -> TestClient {
        let mut client = self.connect_from(requester);
        client.session = client.create().await;
        client.handle = client.attach(client.session, package).await;
        client
    }

    /// Subscribes to the events of the server.
    pub fn watch(&self, filter: EventFilter) -> Subscription {
        let events = &self.gateway.context().facts.events;
        events.subscribe("test", filter, 10_000)
    }

    /// Returns all PeerConnections, oldest first.
    pub fn peers(&self) -> Vec<PeerId> {
        self.gateway.peers()
    }

    /// Returns the requests to the media plane.
    pub fn requested(&self) -> Requested {
        self.media.requested()
    }

    /// Sets the statistics of `peer`.
    pub fn pretend_stats(&self, peer: PeerId, stats: PeerStats) {
        self.media.pretend_stats(peer, stats);
    }

    /// Makes requests for the statistics of `peer` wait for ever.
    pub fn withhold_stats(&self, peer: PeerId) {
        self.media.withhold_stats(peer);
    }

    /// Simulates the end of `peer` with its last statistics.
    pub async fn end(&self, peer: PeerId, reason: CloseReason, last: PeerStats) {
        let event = PeerEvent::new(peer, Event::Closed(reason)).with_last(Some(Box::new(last)));
        let sent = self.events.send(event).await;
        sent.expect("the gateway takes events");
    }

    /// Simulates an event of `peer`.
    pub async fn happen(&self, peer: PeerId, event: Event) {
        let sent = self.events.send(PeerEvent::new(peer, event)).await;
        sent.expect("the gateway takes events");
    }
}

fn without_pause(config: CoreConfig) -> CoreConfig {
    CoreConfig {
        ack_pause_ms: 0,
        ..config
    }
}

/// A client at an address reserved for documentation (RFC 5737).
pub fn stranger() -> Requester {
    Requester::at(Ipv4Addr::new(192, 0, 2, 77).into(), false)
}

/// All networks. Addresses of tests are not public.
pub fn everywhere() -> Networks {
    let networks = ["0.0.0.0/0", "::/0"].map(|all| all.parse().expect("a network"));
    Networks(networks.into())
}

/// A recorder that refuses to record, so that tests leave no files.
fn silent() -> Recorder {
    Recorder::new(RecorderConfig {
        enabled: false,
        keep_free_mb: 0,
        ..RecorderConfig::default()
    })
}

/// A client with a connection of its own.
#[derive(Debug)]
pub struct TestClient {
    gateway: Gateway,
    /// The connection.
    pub client: Client,
    messages: Outbox,
    /// The session of [`TestServer::attach`].
    pub session: u64,
    /// The handle of [`TestServer::attach`].
    pub handle: u64,
}

impl TestClient {
    /// Sends `request`, and returns the next message, which must be its reply.
    pub async fn ask(&mut self, request: Value) -> Value {
        self.ask_raw(&request.to_string()).await
    }

    /// As [`TestClient::ask`], with any text.
    pub async fn ask_raw(&mut self, request: &str) -> Value {
        self.gateway.submit(&self.client, request.as_bytes()).await;
        self.next().await
    }

    /// Returns the next message.
    pub async fn next(&mut self) -> Value {
        self.try_next().await.expect("an open connection")
    }

    /// Returns the next message, or `None` if the connection was closed.
    pub async fn try_next(&mut self) -> Option<Value> {
        let message = timeout(Duration::from_secs(600), self.messages.recv()).await;
        message.expect("a message in time")
    }

    /// Fails if another message arrives while all tasks run.
    pub async fn expect_silence(&mut self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        if let Some(message) = self.messages.try_recv() {
            panic!("unexpected: {message}");
        }
    }

    /// Creates a session.
    pub async fn create(&mut self) -> u64 {
        let reply = self
            .ask(json!({ "janus": "create", "transaction": "c" }))
            .await;
        id_in(&reply)
    }

    /// Attaches to a plugin.
    pub async fn attach(&mut self, session: u64, package: &str) -> u64 {
        let request = json!({
            "janus": "attach", "transaction": "a", "session_id": session, "plugin": package,
            "opaque_id": "mine",
        });
        id_in(&self.ask(request).await)
    }

    /// Sends a request to the handle of [`TestServer::attach`], and returns the reply.
    pub async fn on_handle(&mut self, verb: &str, members: Value) -> Value {
        let mut request = json!({
            "janus": verb, "transaction": "m", "session_id": self.session, "handle_id": self.handle,
        });
        if let (Some(request), Value::Object(members)) = (request.as_object_mut(), members) {
            request.extend(members);
        }
        self.ask(request).await
    }

    /// Sends a message to the plugin, which must answer immediately, and returns its data.
    pub async fn request(&mut self, body: Value) -> Value {
        let reply = self.on_handle("message", json!({ "body": body })).await;
        assert_eq!(reply.get("janus"), Some(&"success".into()), "{reply}");
        let data = reply.pointer("/plugindata/data").cloned();
        data.expect("a plugin's data")
    }

    /// Sends a message to the plugin, which must acknowledge it.
    pub async fn message(&mut self, body: Value, jsep: Option<Value>) {
        let mut members = json!({ "body": body });
        if let (Some(members), Some(jsep)) = (members.as_object_mut(), jsep) {
            members.insert("jsep".to_owned(), jsep);
        }
        let ack = self.on_handle("message", members).await;
        assert_eq!(ack.get("janus"), Some(&"ack".into()), "{ack}");
    }

    /// Returns the plugin's data in the next message, which must be an event.
    pub async fn event(&mut self) -> Value {
        self.event_with_jsep().await.0
    }

    /// As [`TestClient::event`], with the event's offer or answer.
    pub async fn event_with_jsep(&mut self) -> (Value, Option<Value>) {
        let event = self.next().await;
        assert_eq!(event.get("janus"), Some(&"event".into()), "{event}");
        let data = event.pointer("/plugindata/data").cloned();
        (data.expect("a plugin's data"), event.get("jsep").cloned())
    }
}

fn id_in(reply: &Value) -> u64 {
    let id = reply.pointer("/data/id").and_then(Value::as_u64);
    id.unwrap_or_else(|| panic!("no id in {reply}"))
}

/// An m-line of [`jsep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Opus with in-band FEC, and RED.
    Audio,
    /// VP8, VP9 and H.264 with RTX.
    Video,
    /// As `Video`, with three rids.
    Simulcast,
    /// Data channels.
    Data,
}

/// Makes a `jsep` like a browser's, with an m-line for each of `lines`. `ufrag` distinguishes ICE
/// restarts.
pub fn jsep(kind: &str, ufrag: &str, lines: &[Line]) -> Value {
    let setup = if kind == "offer" { "actpass" } else { "active" };
    let mut sdp = String::from("v=0\r\no=- 4611 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n");
    let mids: Vec<String> = (0..lines.len()).map(|mid| mid.to_string()).collect();
    let _ = write!(sdp, "a=group:BUNDLE {}\r\n", mids.join(" "));
    for (mid, line) in mids.iter().zip(lines) {
        let own = match line {
            Line::Audio => AUDIO,
            Line::Video | Line::Simulcast => VIDEO,
            Line::Data => DATA,
        };
        let fingerprint = vec!["AB"; 32].join(":");
        let _ = write!(
            sdp,
            "{own}a=mid:{mid}\r\na=ice-ufrag:{ufrag}\r\na=ice-pwd:0123456789012345678901\r\n\
             a=fingerprint:sha-256 {fingerprint}\r\na=setup:{setup}\r\n"
        );
        if *line == Line::Simulcast {
            sdp.push_str(RIDS);
        }
    }
    json!({ "type": kind, "sdp": sdp })
}

const AUDIO: &str = "m=audio 9 UDP/TLS/RTP/SAVPF 111 63\r\nc=IN IP4 0.0.0.0\r\n\
    a=sendrecv\r\na=rtcp-mux\r\na=msid:s a\r\n\
    a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\n\
    a=rtpmap:63 red/48000/2\r\na=fmtp:63 111/111\r\n\
    a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level\r\n\
    a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid\r\n";

const VIDEO: &str = "m=video 9 UDP/TLS/RTP/SAVPF 96 97 98 99 102 103\r\nc=IN IP4 0.0.0.0\r\n\
    a=sendrecv\r\na=rtcp-mux\r\na=msid:s v\r\n\
    a=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\n\
    a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n\
    a=rtpmap:98 VP9/90000\r\na=rtcp-fb:98 nack\r\na=fmtp:98 profile-id=0\r\n\
    a=rtpmap:99 rtx/90000\r\na=fmtp:99 apt=98\r\n\
    a=rtpmap:102 H264/90000\r\na=rtcp-fb:102 nack\r\n\
    a=fmtp:102 packetization-mode=1;profile-level-id=42e01f\r\n\
    a=rtpmap:103 rtx/90000\r\na=fmtp:103 apt=102\r\n\
    a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid\r\n\
    a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n\
    a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id\r\n";

const RIDS: &str = "a=rid:h send\r\na=rid:m send\r\na=rid:l send\r\na=simulcast:send h;m;l\r\n";

const DATA: &str = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\n\
    a=sctp-port:5000\r\na=max-message-size:262144\r\n";
