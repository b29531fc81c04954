//! Drives a gateway by JSON, without a network: for the tests of plugins.
//!
//! The media plane has no workers: negotiation works, but nothing is ever received. [`TestServer::happen`] stands in for
//! what it would report.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::fmt::Write;
use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::sign;
use jsonwebtoken::{Algorithm, EncodingKey};
pub use portunus_media::testing::Requested;
use portunus_media::{CloseReason, Event, MediaPlane, PeerEvent, PeerId, PeerStats};
use portunus_record::{Recorder, RecorderConfig};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::events::{EventFilter, Subscription};
use crate::tokens::SignedToken;
use crate::{
    Client, CoreConfig, Gateway, JwtConfig, JwtVerifier, Networks, Outbox, Plugin, Requester,
    ServerFacts, TokenFault,
};

/// A gateway with plugins under test. Answers follow their acks at once, so that silence can be told at once; but see
/// [`TestServer::pausing`].
#[derive(Debug)]
pub struct TestServer {
    /// The gateway.
    pub gateway: Gateway,
    media: MediaPlane,
    events: mpsc::Sender<PeerEvent>,
}

impl TestServer {
    /// A server as `config` says, which records nothing.
    pub fn new(config: CoreConfig, plugins: Vec<Arc<dyn Plugin>>) -> Self {
        Self::recording(silent(), config, plugins)
    }

    /// The same, with plugins that record with `recorder`.
    pub fn recording(
        recorder: Recorder,
        config: CoreConfig,
        plugins: Vec<Arc<dyn Plugin>>,
    ) -> Self {
        let (media, sender, events) = MediaPlane::detached();
        Self::on(config, media, sender, events, (plugins, recorder))
    }

    /// A server whose plugins are made on its media plane, at once.
    pub fn with(
        config: CoreConfig,
        plugins: impl FnOnce(&MediaPlane) -> Vec<Arc<dyn Plugin>>,
    ) -> Self {
        Self::recording_with(silent(), config, plugins)
    }

    /// The same, with plugins that record with `recorder`.
    pub fn recording_with(
        recorder: Recorder,
        config: CoreConfig,
        plugins: impl FnOnce(&MediaPlane) -> Vec<Arc<dyn Plugin>>,
    ) -> Self {
        let (media, sender, events) = MediaPlane::detached();
        let made = (plugins(&media), recorder);
        Self::on(config, media, sender, events, made)
    }

    /// A server whose plugins are made on its media plane.
    pub async fn with_media<P>(config: CoreConfig, plugins: impl FnOnce(MediaPlane) -> P) -> Self
    where
        P: Future<Output = Vec<Arc<dyn Plugin>>>,
    {
        Self::recording_with_media(silent(), config, plugins).await
    }

    /// The same, with plugins that record with `recorder`.
    pub async fn recording_with_media<P>(
        recorder: Recorder,
        config: CoreConfig,
        plugins: impl FnOnce(MediaPlane) -> P,
    ) -> Self
    where
        P: Future<Output = Vec<Arc<dyn Plugin>>>,
    {
        let (media, sender, events) = MediaPlane::detached();
        let made = (plugins(media.clone()).await, recorder);
        Self::on(config, media, sender, events, made)
    }

    /// A server that was started with `facts`.
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

    /// A server with the pause that `config` has between an ack and its answer.
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
        (plugins, recorder): (Vec<Arc<dyn Plugin>>, Recorder),
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

    /// A new connection of a program on the same machine, which has all rights.
    pub fn connect(&self) -> TestClient {
        self.connect_from(Requester::unix())
    }

    /// A new connection from another address, which has no rights.
    pub fn connect_stranger(&self) -> TestClient {
        self.connect_from(stranger())
    }

    /// A new connection of `requester`.
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

    /// A new connection with a session, attached to the plugin `package`.
    pub async fn attach(&self, package: &str) -> TestClient {
        self.attach_from(Requester::unix(), package).await
    }

    /// The same from another address, without rights.
    pub async fn attach_stranger(&self, package: &str) -> TestClient {
        self.attach_from(stranger(), package).await
    }

    /// The same of `requester`.
    pub async fn attach_from(&self, requester: Requester, package: &str) -> TestClient {
        let mut client = self.connect_from(requester);
        client.session = client.create().await;
        client.handle = client.attach(client.session, package).await;
        client
    }

    /// What is told to event handlers from now on.
    pub fn watch(&self, filter: EventFilter) -> Subscription {
        let events = &self.gateway.context().facts.events;
        events.subscribe("test", filter, 10_000)
    }

    /// The PeerConnections that there are, oldest first.
    pub fn peers(&self) -> Vec<PeerId> {
        self.gateway.peers()
    }

    /// What the media plane was asked for.
    pub fn requested(&self) -> Requested {
        self.media.requested()
    }

    /// Makes these the figures of `peer`.
    pub fn pretend_stats(&self, peer: PeerId, stats: PeerStats) {
        self.media.pretend_stats(peer, stats);
    }

    /// Lets whoever asks for the figures of `peer` wait for ever.
    pub fn withhold_stats(&self, peer: PeerId) {
        self.media.withhold_stats(peer);
    }

    /// Lets the media plane report that `peer` has ended by itself, with its last figures.
    pub async fn end(&self, peer: PeerId, reason: CloseReason, last: PeerStats) {
        let event = PeerEvent::new(peer, Event::Closed(reason)).with_last(Some(Box::new(last)));
        let sent = self.events.send(event).await;
        sent.expect("the gateway takes events");
    }

    /// Lets the media plane report `event` of `peer`.
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

/// Somebody at an address that tests have to themselves (RFC 5737).
pub fn stranger() -> Requester {
    Requester::at(Ipv4Addr::new(192, 0, 2, 77).into(), false)
}

/// All networks: those of tests are not public.
pub fn everywhere() -> Networks {
    let networks = ["0.0.0.0/0", "::/0"].map(|all| all.parse().expect("a network"));
    Networks(networks.into())
}

/// A recorder that refuses to: tests leave no files behind.
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
    /// Sends `request` and returns the next message, which has to be its reply.
    pub async fn ask(&mut self, request: Value) -> Value {
        self.ask_raw(&request.to_string()).await
    }

    /// As [`TestClient::ask`], with any text.
    pub async fn ask_raw(&mut self, request: &str) -> Value {
        self.gateway.submit(&self.client, request.as_bytes()).await;
        self.next().await
    }

    /// The next message.
    pub async fn next(&mut self) -> Value {
        self.try_next().await.expect("an open connection")
    }

    /// The next message; none if the connection was closed.
    pub async fn try_next(&mut self) -> Option<Value> {
        let message = timeout(Duration::from_secs(600), self.messages.recv()).await;
        message.expect("a message in time")
    }

    /// Fails if there is another message once all tasks had their turn.
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

    /// Sends a handle-level request with `members` to the handle of [`TestServer::attach`]; gives the reply.
    pub async fn on_handle(&mut self, verb: &str, members: Value) -> Value {
        let mut request = json!({
            "janus": verb, "transaction": "m", "session_id": self.session, "handle_id": self.handle,
        });
        if let (Some(request), Value::Object(members)) = (request.as_object_mut(), members) {
            request.extend(members);
        }
        self.ask(request).await
    }

    /// Sends a message to the plugin, which has to answer at once; gives its data.
    pub async fn request(&mut self, body: Value) -> Value {
        let reply = self.on_handle("message", json!({ "body": body })).await;
        assert_eq!(reply.get("janus"), Some(&"success".into()), "{reply}");
        let data = reply.pointer("/plugindata/data").cloned();
        data.expect("a plugin's data")
    }

    /// Sends a message to the plugin, which has to acknowledge it.
    pub async fn message(&mut self, body: Value, jsep: Option<Value>) {
        let mut members = json!({ "body": body });
        if let (Some(members), Some(jsep)) = (members.as_object_mut(), jsep) {
            members.insert("jsep".to_owned(), jsep);
        }
        let ack = self.on_handle("message", members).await;
        assert_eq!(ack.get("janus"), Some(&"ack".into()), "{ack}");
    }

    /// The plugin's data in the next message, which has to be an event of it.
    pub async fn event(&mut self) -> Value {
        self.event_with_jsep().await.0
    }

    /// As [`TestClient::event`], with its offer or answer.
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

/// A signed token: `data` is `EXPIRY,REALM[,DESCRIPTOR…]`.
pub fn signed_token(data: &str, secret: &str) -> String {
    crate::tokens::sign(data, secret)
}

/// Whether a signed token opens `descriptor` of `realm` at a time in seconds since 1970.
pub fn signed_token_opens(
    token: &str,
    secret: &str,
    now: u64,
    realm: &str,
    descriptor: &str,
) -> bool {
    let token = SignedToken::verify_at(token, secret, now);
    token.is_ok_and(|token| token.is_for(realm) && token.opens(descriptor))
}

/// What is configured where JSON Web Tokens are signed with `secret`, of 32 bytes at least.
pub fn jwt_verifier(secret: &str) -> JwtVerifier {
    let config = JwtConfig {
        secret: Some(secret.into()),
        ..JwtConfig::default()
    };
    JwtVerifier::load(config).expect("a secret")
}

/// A JSON Web Token with these claims, which may be any text.
pub fn jwt(claims: &str, secret: &str) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let message = format!("{}.{}", part(r#"{"alg":"HS256"}"#), part(claims));
    let key = EncodingKey::from_secret(secret.as_bytes());
    let signature = sign(message.as_bytes(), &key, Algorithm::HS256).expect("a signature");
    format!("{message}.{signature}")
}

/// Whether a JSON Web Token opens a room or mountpoint of a plugin at a time in seconds since 1970.
pub fn jwt_opens_room(
    verifier: &JwtVerifier,
    token: &str,
    now: u64,
    package: &str,
    room: &str,
) -> Result<bool, TokenFault> {
    let claims = verifier.verify(token, now)?;
    Ok(claims.opens_room(package, room))
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

/// A `jsep` as a browser would make it, with an m-line for each of `lines`; `ufrag` tells ICE restarts apart.
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
