//! A server with a room, and its participants.

use std::sync::Arc;

use portunus_core::Plugin;
use portunus_core::record::Recorder;
use portunus_core::testing::everywhere;
use portunus_rtp::ExtensionKind;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Caller, Peer, Server};
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

pub const PACKAGE: &str = "janus.plugin.videoroom";
pub const ROOM: u64 = 1234;

/// The headers of a VP8 keyframe of 16 by 16 pixels, in one packet.
pub const KEYFRAME: [u8; 12] = [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, 7];

/// The m-lines of a publisher.
pub const AUDIO: usize = 0;
pub const VIDEO: usize = 1;
/// The id of the extension with a packet's level.
pub const LEVEL: u8 = 1;

pub fn description() -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendOnly);
    audio.add_codec(CodecName::Opus, None, None);
    audio.extensions.push((ExtensionKind::AudioLevel, LEVEL));
    let mut video = MediaOffer::new(Kind::Video, Direction::SendOnly);
    video.add_codec(CodecName::Vp8, None, None);
    let data = MediaOffer::new(Kind::Data, Direction::SendRecv);
    Description::offer(OfferOptions {
        media: vec![audio, video, data],
        ..Default::default()
    })
}

/// Returns a keyframe that ends with `mark`.
pub fn keyframe(mark: u8) -> Vec<u8> {
    let mut frame = KEYFRAME.to_vec();
    frame.push(mark);
    frame
}

/// A participant of the room, with a PeerConnection.
pub struct Member {
    pub caller: Caller,
    pub peer: Peer,
    /// The timestamp of its next packet.
    pub clock: u32,
}

pub async fn server(workers: usize) -> Server {
    server_with(workers, json!({})).await
}

/// Starts a server whose room has these options, too.
pub async fn server_with(workers: usize, options: Value) -> Server {
    let config = VideoRoomConfig {
        outgoing: everywhere(),
        ..VideoRoomConfig::default()
    };
    let plugin = async |media| {
        let plugin: Arc<dyn Plugin> =
            Arc::new(VideoRoom::new(config, media, Recorder::default()).unwrap());
        plugin
    };
    let server = Server::start_with(workers, plugin).await;
    let mut caller = server.attach(PACKAGE).await;
    let mut create = json!({ "request": "create", "room": ROOM, "audiolevel_event": true,
                             "audio_active_packets": 3 });
    merge(&mut create, options);
    let created = caller.manage(create).await;
    assert_eq!(created["videoroom"], "created", "{created}");
    server
}

pub async fn publisher(server: &Server, id: u64) -> Member {
    let mut caller = server.attach(PACKAGE).await;
    let mut peer = Peer::offering().await;
    let offer = peer.offer(description());
    let join = json!({ "request": "joinandconfigure", "room": ROOM, "ptype": "publisher",
                       "id": id });
    caller.message(join, Some(("offer", &offer))).await;
    let joined = caller.until("/plugindata/data/videoroom", "joined").await;
    peer.accept(sdp(&joined));
    peer.connect().await;
    caller.until("/janus", "webrtcup").await;
    Member {
        caller,
        peer,
        clock: 0,
    }
}

pub async fn viewer(server: &Server, streams: Value) -> Member {
    viewer_with(server, json!({ "streams": streams })).await
}

/// Returns a viewer whose `join` has these members.
pub async fn viewer_with(server: &Server, members: Value) -> Member {
    let (mut viewer, attached) = joining(server, members).await;
    viewer.answer(&attached).await;
    viewer.peer.connect().await;
    viewer.caller.until("/janus", "webrtcup").await;
    viewer
}

/// Returns a viewer who has not answered yet, and the plugin's message.
pub async fn joining(server: &Server, members: Value) -> (Member, Value) {
    let mut caller = server.attach(PACKAGE).await;
    let mut join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber" });
    merge(&mut join, members);
    caller.message(join, None).await;
    let attached = caller.until("/plugindata/data/videoroom", "attached").await;
    let viewer = Member {
        caller,
        peer: Peer::answering().await,
        clock: 0,
    };
    (viewer, attached)
}

fn merge(target: &mut Value, members: Value) {
    let members = members.as_object().unwrap().clone();
    target.as_object_mut().unwrap().extend(members);
}

pub fn sdp(message: &Value) -> &str {
    message["jsep"]["sdp"]
        .as_str()
        .unwrap_or_else(|| panic!("no description in {message}"))
}

impl Member {
    /// Answers the offer in `message`.
    pub async fn answer(&mut self, message: &Value) {
        let answer = self.peer.answer(sdp(message));
        let start = json!({ "request": "start" });
        self.caller.message(start, Some(("answer", &answer))).await;
        self.caller.until("/plugindata/data/started", "ok").await;
    }

    /// Sends a request that is answered with an offer, and answers that.
    pub async fn change(&mut self, body: Value) {
        self.caller.message(body, None).await;
        let updated = self
            .caller
            .until("/plugindata/data/videoroom", "updated")
            .await;
        self.answer(&updated).await;
    }

    pub async fn ask(&mut self, body: Value, done: &str) {
        self.caller.message(body, None).await;
        let pointer = format!("/plugindata/data/{done}");
        self.caller.until(&pointer, "ok").await;
    }

    pub async fn send(&mut self, media: usize, payload: &[u8]) {
        self.clock += 960;
        self.peer.send(media, self.clock, payload).await;
    }

    /// Lets a moment pass.
    pub async fn turn(&mut self) {
        let mut turns = 0;
        self.peer
            .run_until(|_| {
                turns += 1;
                turns > 3
            })
            .await;
    }

    pub fn got(&self, media: usize, payload: &[u8]) -> bool {
        let last = payload.last();
        let mut packets = self.peer.packets.iter();
        packets.any(|packet| packet.media == media && packet.payload.last() == last)
    }

    /// Returns the numbers of the packets received on an m-line.
    pub fn numbers(&self, media: usize) -> Vec<u64> {
        let packets = self.peer.packets.iter();
        let own = packets.filter(|packet| packet.media == media);
        own.map(|packet| packet.seq).collect()
    }
}

/// Sends until the viewer has received it on m-line `to`.
pub async fn flow(from: &mut Member, media: usize, viewer: &mut Member, to: usize, payload: &[u8]) {
    for _ in 0..200 {
        from.send(media, payload).await;
        viewer.turn().await;
        from.turn().await;
        if viewer.got(to, payload) {
            return;
        }
    }
    panic!("nothing comes on m-line {to}: {:?}", viewer.peer.packets);
}
