//! Clients with PeerConnections, who send in layers and lose packets.

use portunus_core::record::{Recorder, RecorderConfig};
use portunus_rtp::ExtensionKind;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::layered::{allocation, vp8_layer, vp9_layer, with_rids};
use portunus_tests::shape::Shape;
use portunus_tests::{Caller, Peer, Server};
use serde_json::{Value, json};

/// The m-lines of a client.
pub const AUDIO: usize = 0;
pub const VIDEO: usize = 1;
/// Its encodings, the best first.
pub const RIDS: [&str; 3] = ["h", "m", "l"];

/// The ids of header extensions.
pub const LEVEL: u8 = 1;
const MID: u8 = 4;
const ALLOCATION: u8 = 9;
const RID: u8 = 10;

/// A client with a PeerConnection.
pub struct Member {
    pub caller: Caller,
    pub peer: Peer,
    clock: u32,
    frames: u16,
}

/// The layers of a client's video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layers {
    /// Three encodings of VP8 with three temporal layers.
    Simulcast,
    /// VP9 with three spatial and three temporal layers.
    Svc,
}

/// Returns a recorder into `folder`.
pub fn recorder(folder: &tempfile::TempDir) -> Recorder {
    Recorder::new(RecorderConfig {
        dir: Some(folder.path().to_owned()),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    })
}

/// Returns audio, video and data with this `direction`.
pub fn description(codec: CodecName, direction: Direction) -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, direction);
    let fec = "useinbandfec=1".to_owned();
    audio.add_codec(CodecName::Opus, None, Some(fec));
    audio.extensions = vec![
        (ExtensionKind::AudioLevel, LEVEL),
        (ExtensionKind::Mid, MID),
    ];
    let mut video = MediaOffer::new(Kind::Video, direction);
    let profile = (codec == CodecName::Vp9).then(|| "profile-id=0".to_owned());
    video.add_codec(codec, None, profile);
    video.extensions = vec![
        (ExtensionKind::Mid, MID),
        (ExtensionKind::VideoLayersAllocation, ALLOCATION),
        (ExtensionKind::Rid, RID),
    ];
    let data = MediaOffer::new(Kind::Data, Direction::SendRecv);
    Description::offer(OfferOptions {
        media: vec![audio, video, data],
        ..OfferOptions::default()
    })
}

impl Layers {
    pub const fn codec(self) -> CodecName {
        match self {
            Layers::Simulcast => CodecName::Vp8,
            Layers::Svc => CodecName::Vp9,
        }
    }

    /// Returns a `jsep` with the next offer of `peer`, who sends these layers.
    pub fn offer(self, peer: &mut Peer, direction: Direction) -> Value {
        let sdp = peer.offer(description(self.codec(), direction));
        match self {
            Layers::Simulcast => {
                json!({ "type": "offer", "sdp": with_rids(&sdp, "1", &RIDS) })
            }
            Layers::Svc => {
                json!({ "type": "offer", "sdp": sdp, "svc": [{ "mid": "1", "svc": "L3T3" }] })
            }
        }
    }
}

pub fn sdp(message: &Value) -> &str {
    message["jsep"]["sdp"]
        .as_str()
        .unwrap_or_else(|| panic!("no description in {message}"))
}

impl Member {
    pub fn new(caller: Caller, peer: Peer) -> Self {
        Member {
            caller,
            peer,
            clock: 0,
            frames: 0,
        }
    }

    pub async fn offering(server: &Server, package: &str) -> Self {
        Member::new(server.attach(package).await, Peer::offering().await)
    }

    pub async fn answering(server: &Server, package: &str) -> Self {
        Member::new(server.attach(package).await, Peer::answering().await)
    }

    /// Sends a request. Returns the plugin's next message.
    pub async fn ask(&mut self, body: Value) -> Value {
        self.caller.message(body, None).await;
        self.next().await
    }

    /// Returns the plugin's next message.
    pub async fn next(&mut self) -> Value {
        self.caller.until("/janus", "event").await
    }

    /// Returns the data of the plugin's next message.
    pub async fn data(&mut self) -> Value {
        self.next().await["plugindata"]["data"].clone()
    }

    /// Checks the plugin's next message.
    pub async fn expect(&mut self, shape: &Shape) {
        shape.check(&self.data().await);
    }

    /// Connects, and waits for the server's event about it. Returns the plugin's messages before.
    pub async fn connect(&mut self) -> Vec<Value> {
        let mut said = Vec::new();
        self.peer.connect().await;
        loop {
            tokio::select! {
                message = self.caller.next() => {
                    if message["janus"] == "webrtcup" {
                        return said;
                    }
                    if message["janus"] == "event" {
                        said.push(message["plugindata"]["data"].clone());
                    }
                }
                () = self.peer.run_until(|_| false) => {}
            }
        }
    }

    /// Lets a moment pass.
    pub async fn turn(&mut self) {
        let mut turns = 0;
        let few = |_: &mut Peer| {
            turns += 1;
            turns > 3
        };
        self.peer.run_until(few).await;
    }

    /// Sends a packet of sound of this loudness.
    pub async fn speak(&mut self, level: u8) {
        self.sound(level, b"opus").await;
    }

    /// Sends 20 ms of sound.
    pub async fn sound(&mut self, level: u8, payload: &[u8]) {
        self.clock += 960;
        let level: &[u8] = &[level];
        let extensions = [(LEVEL, level)];
        self.peer
            .send_with(AUDIO, self.clock, &extensions, payload)
            .await;
    }

    /// Sends a picture in all its layers.
    pub async fn picture(&mut self, layers: Layers) {
        let (n, clock) = (self.frames, u32::from(self.frames) * 3_000);
        self.frames += 1;
        let temporal = [0, 2, 1, 2][usize::from(n % 4)];
        let keyframe = n.is_multiple_of(4);
        let peer = &mut self.peer;
        let tells = peer.negotiated().media[VIDEO]
            .extensions
            .id(ExtensionKind::VideoLayersAllocation)
            .is_some();
        match layers {
            Layers::Simulcast => {
                for (stream, rid) in (0..).zip(RIDS) {
                    let told = allocation(stream, 3, 1, 3);
                    let all = [(ALLOCATION, told.as_slice())];
                    let extensions = if tells { &all[..] } else { &[] };
                    let payload = vp8_layer(n, temporal, keyframe);
                    peer.send_encoding((VIDEO, rid), clock, extensions, &payload)
                        .await;
                }
            }
            Layers::Svc => {
                for spatial in 0..3 {
                    let told = allocation(0, 1, 3, 3);
                    let all = [(ALLOCATION, told.as_slice())];
                    let extensions = if tells { &all[..] } else { &[] };
                    let payload = vp9_layer(n, (spatial, temporal), keyframe);
                    peer.send_with(VIDEO, clock, extensions, &payload).await;
                }
            }
        }
    }

    /// Loses ten packets of an m-line on their way to the server, and sends one.
    async fn lose(&mut self, media: usize) {
        self.clock += 960;
        self.peer.skip(media, 10);
        self.peer.send(media, self.clock, b"after").await;
    }

    /// Returns a message of `shape` from the plugin, if it has arrived.
    pub fn has_said(&mut self, shape: &Shape, others: &mut Vec<Value>) -> Option<Value> {
        while let Some(message) = self.caller.pending() {
            if message["janus"] != "event" {
                continue;
            }
            let data = message["plugindata"]["data"].clone();
            if shape.fits(&data) {
                return Some(data);
            }
            others.push(data);
        }
        None
    }
}

/// Repeats until it is so.
pub async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so().await {
            return;
        }
    }
    panic!("it never came so");
}

/// Sends in layers until the plugin sends `to` a message of `shape`. Returns the messages before
/// it.
pub async fn layers_told(
    from: &mut Member,
    layers: Layers,
    to: &mut Member,
    shape: &Shape,
) -> Vec<Value> {
    let mut others = Vec::new();
    for _ in 0..1_000 {
        from.picture(layers).await;
        tokio::join!(from.turn(), to.turn());
        if to.has_said(shape, &mut others).is_some() {
            return others;
        }
    }
    panic!("nothing like {shape:?} in {others:?}");
}

/// Like `layers_told`, if the sender is notified.
pub async fn own_layers_told(member: &mut Member, layers: Layers, shape: &Shape) -> Vec<Value> {
    let mut others = Vec::new();
    for _ in 0..1_000 {
        member.picture(layers).await;
        member.turn().await;
        if member.has_said(shape, &mut others).is_some() {
            return others;
        }
    }
    panic!("nothing like {shape:?} in {others:?}");
}

/// Loses packets of an m-line until the plugin sends a message of `shape`.
pub async fn loss_told(member: &mut Member, media: usize, shape: &Shape) {
    let mut others = Vec::new();
    for _ in 0..1_000 {
        member.lose(media).await;
        member.turn().await;
        if member.has_said(shape, &mut others).is_some() {
            return;
        }
    }
    panic!("nothing like {shape:?} in {others:?}");
}

/// Speaks with this loudness until the plugin sends `to` a message of `shape`.
pub async fn speech_told(from: &mut Member, level: u8, to: &mut Member, shape: &Shape) {
    let mut others = Vec::new();
    for _ in 0..1_000 {
        from.speak(level).await;
        tokio::join!(from.turn(), to.turn());
        if to.has_said(shape, &mut others).is_some() {
            return;
        }
    }
    panic!("nothing like {shape:?} in {others:?}");
}

/// Lets `from` send sound to `to`, who loses most of it, until the plugin sends `to` a message of
/// `shape`.
pub async fn poor_link_told(from: &mut Member, to: &mut Member, shape: &Shape) {
    let mut others = Vec::new();
    to.peer.lose(0.5, 7);
    for _ in 0..2_000 {
        from.speak(50).await;
        tokio::join!(from.turn(), to.turn());
        if to.has_said(shape, &mut others).is_some() {
            to.peer.lose(0.0, 7);
            return;
        }
    }
    panic!("nothing like {shape:?} in {others:?}");
}
