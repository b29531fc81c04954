//! A video room, end to end: publishers and viewers with PeerConnections, on several workers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::sync::Arc;

use portunus_core::Plugin;
use portunus_rtp::ExtensionKind;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Caller, Peer, Server};
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

const PACKAGE: &str = "janus.plugin.videoroom";
const ROOM: u64 = 1234;

/// A VP8 keyframe of 16 by 16 pixels in one packet, as far as anybody looks at it.
const KEYFRAME: [u8; 12] = [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, 7];

/// The m-lines of a publisher.
const AUDIO: usize = 0;
const VIDEO: usize = 1;
/// The number of the extension that says how loud a packet is.
const LEVEL: u8 = 1;

fn description() -> Description {
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

/// A keyframe that ends with `mark`.
fn keyframe(mark: u8) -> Vec<u8> {
    let mut frame = KEYFRAME.to_vec();
    frame.push(mark);
    frame
}

/// Someone in the room, with a PeerConnection.
struct Member {
    caller: Caller,
    peer: Peer,
    /// What its next packet says of the time.
    clock: u32,
}

async fn server(workers: usize) -> Server {
    let plugin = async |media| {
        let plugin: Arc<dyn Plugin> =
            Arc::new(VideoRoom::new(VideoRoomConfig::default(), media).unwrap());
        plugin
    };
    let server = Server::start_with(workers, plugin).await;
    let mut caller = server.attach(PACKAGE).await;
    let create = json!({ "request": "create", "room": ROOM, "audiolevel_event": true,
                         "audio_active_packets": 3 });
    let created = caller.request("message", json!({ "body": create })).await;
    assert_eq!(created["plugindata"]["data"]["videoroom"], "created");
    server
}

async fn publisher(server: &Server, id: u64) -> Member {
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

async fn viewer(server: &Server, streams: Value) -> Member {
    let mut caller = server.attach(PACKAGE).await;
    let join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber",
                       "streams": streams });
    caller.message(join, None).await;
    let attached = caller.until("/plugindata/data/videoroom", "attached").await;
    let mut viewer = Member {
        caller,
        peer: Peer::answering().await,
        clock: 0,
    };
    viewer.answer(&attached).await;
    viewer.peer.connect().await;
    viewer.caller.until("/janus", "webrtcup").await;
    viewer
}

fn sdp(message: &Value) -> &str {
    message["jsep"]["sdp"]
        .as_str()
        .unwrap_or_else(|| panic!("no description in {message}"))
}

impl Member {
    /// Answers the offer in `message`.
    async fn answer(&mut self, message: &Value) {
        let answer = self.peer.answer(sdp(message));
        let start = json!({ "request": "start" });
        self.caller.message(start, Some(("answer", &answer))).await;
        self.caller.until("/plugindata/data/started", "ok").await;
    }

    /// Sends a request that is answered with an offer, and answers that.
    async fn change(&mut self, body: Value) {
        self.caller.message(body, None).await;
        let updated = self
            .caller
            .until("/plugindata/data/videoroom", "updated")
            .await;
        self.answer(&updated).await;
    }

    async fn ask(&mut self, body: Value, done: &str) {
        self.caller.message(body, None).await;
        let pointer = format!("/plugindata/data/{done}");
        self.caller.until(&pointer, "ok").await;
    }

    async fn send(&mut self, media: usize, payload: &[u8]) {
        self.clock += 960;
        self.peer.send(media, self.clock, payload).await;
    }

    /// Lets a moment pass.
    async fn turn(&mut self) {
        let mut turns = 0;
        self.peer
            .run_until(|_| {
                turns += 1;
                turns > 3
            })
            .await;
    }

    fn got(&self, media: usize, payload: &[u8]) -> bool {
        let last = payload.last();
        let mut packets = self.peer.packets.iter();
        packets.any(|packet| packet.media == media && packet.payload.last() == last)
    }

    /// The numbers of the packets that came on an m-line.
    fn numbers(&self, media: usize) -> Vec<u64> {
        let packets = self.peer.packets.iter();
        let own = packets.filter(|packet| packet.media == media);
        own.map(|packet| packet.seq).collect()
    }
}

/// Sends until the viewer has got it on m-line `to`.
async fn flow(from: &mut Member, media: usize, viewer: &mut Member, to: usize, payload: &[u8]) {
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

#[tokio::test]
async fn many_feeds_come_on_one_connection_as_they_come_and_go() {
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let media = |feed: u64| json!([{ "feed": feed, "mid": "0" }, { "feed": feed, "mid": "1" }]);
    let mut viewer = viewer(&server, media(1)).await;
    flow(&mut al, AUDIO, &mut viewer, 0, b"al says").await;
    flow(&mut al, VIDEO, &mut viewer, 1, &keyframe(1)).await;

    viewer
        .change(json!({ "request": "subscribe", "streams": media(2) }))
        .await;
    flow(&mut bo, AUDIO, &mut viewer, 2, b"bo says").await;
    flow(&mut bo, VIDEO, &mut viewer, 3, &keyframe(2)).await;
    flow(&mut al, VIDEO, &mut viewer, 1, &keyframe(3)).await;

    // Al goes; his places are taken by somebody else.
    al.ask(json!({ "request": "leave" }), "leaving").await;
    let updated = viewer
        .caller
        .until("/plugindata/data/videoroom", "updated")
        .await;
    viewer.answer(&updated).await;
    assert!(!viewer.peer.negotiated().media[0].recv);
    let mut cy = publisher(&server, 3).await;
    viewer
        .change(json!({ "request": "subscribe", "streams": media(3) }))
        .await;
    assert_eq!(viewer.peer.negotiated().media.len(), 4);
    flow(&mut cy, AUDIO, &mut viewer, 0, b"cy was here!").await;
    flow(&mut cy, VIDEO, &mut viewer, 1, &keyframe(4)).await;
    flow(&mut bo, AUDIO, &mut viewer, 2, b"bo as well?").await;
}

#[tokio::test]
async fn switches_and_pauses_leave_no_gaps() {
    let server = server(1).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let streams = json!([{ "feed": 1, "mid": "0" }, { "feed": 1, "mid": "1" }]);
    let mut viewer = viewer(&server, streams).await;
    flow(&mut al, VIDEO, &mut viewer, 1, &keyframe(1)).await;
    let switch = json!({ "request": "switch", "streams": [
        { "feed": 2, "mid": "1", "sub_mid": "1" },
        { "feed": 2, "mid": "0", "sub_mid": "0" },
    ]});
    viewer.ask(switch, "switched").await;
    al.send(VIDEO, &keyframe(9)).await;
    flow(&mut bo, VIDEO, &mut viewer, 1, &keyframe(2)).await;
    viewer.ask(json!({ "request": "pause" }), "paused").await;
    for _ in 0..5 {
        bo.send(VIDEO, &keyframe(8)).await;
        bo.turn().await;
    }
    viewer.ask(json!({ "request": "start" }), "started").await;
    flow(&mut bo, VIDEO, &mut viewer, 1, &keyframe(3)).await;
    let mute = |send: bool| json!({ "request": "configure", "video": send });
    bo.ask(mute(false), "configured").await;
    for _ in 0..5 {
        bo.send(VIDEO, &keyframe(7)).await;
        bo.turn().await;
    }
    bo.ask(mute(true), "configured").await;
    flow(&mut bo, VIDEO, &mut viewer, 1, &keyframe(4)).await;
    for mark in [9, 8, 7] {
        assert!(!viewer.got(1, &[mark]), "{mark} came through");
    }
    let numbers = viewer.numbers(1);
    let expected: Vec<_> = (numbers[0]..).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test]
async fn data_goes_to_all_who_subscribed() {
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let all = json!([{ "feed": 1, "mid": "2" }, { "feed": 2, "mid": "2" }]);
    let mut viewers = [
        viewer(&server, all.clone()).await,
        viewer(&server, all).await,
    ];
    al.peer.send_text("chat", "from al");
    bo.peer.send_text("chat", "from bo");
    al.turn().await;
    bo.turn().await;
    for viewer in &mut viewers {
        for (from, text) in [(&mut al, ("1", "from al")), (&mut bo, ("2", "from bo"))] {
            for _ in 0..200 {
                viewer.turn().await;
                from.turn().await;
                if !viewer.peer.texts(text.0).is_empty() {
                    break;
                }
            }
            assert_eq!(viewer.peer.texts(text.0), [text.1]);
        }
    }
}

#[tokio::test]
async fn whoever_talks_is_heard_without_anybody_watching() {
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    for (level, told) in [(10, "talking"), (100, "stopped-talking")] {
        for _ in 0..3 {
            al.clock += 960;
            let level: &[u8] = &[level];
            al.peer
                .send_with(AUDIO, al.clock, &[(LEVEL, level)], b"opus")
                .await;
        }
        al.turn().await;
        let event = bo.caller.until("/plugindata/data/videoroom", told).await;
        let data = &event["plugindata"]["data"];
        assert_eq!((&data["id"], &data["mid"]), (&json!(1), &json!("0")));
    }
}
