//! Each codec through each plugin, end to end: descriptions contain what receivers need, and
//! packets arrive.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;

use portunus_core::Plugin;
use portunus_core::record::Recorder;
use portunus_echotest::EchoTest;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_streaming::{Streaming, StreamingConfig};
use portunus_tests::{Caller, Peer, Server};
use portunus_videocall::VideoCall;
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

/// A codec as browsers offer it.
struct Case {
    codec: CodecName,
    /// The channels of audio, unless they are the codec's usual ones.
    channels: Option<u8>,
    fmtp: Option<&'static str>,
    /// The parameters that a receiver needs.
    needed: &'static [&'static str],
    /// A packet, which is a keyframe if it is video.
    payload: &'static [u8],
}

const fn audio(
    codec: CodecName,
    fmtp: Option<&'static str>,
    needed: &'static [&'static str],
) -> Case {
    Case {
        codec,
        channels: None,
        fmtp,
        needed,
        payload: b"sound",
    }
}

/// Returns the codec with an unusual number of channels.
const fn channels(codec: CodecName, channels: u8, fmtp: Option<&'static str>) -> Case {
    Case {
        channels: Some(channels),
        ..audio(codec, fmtp, &["channel_mapping", "num_streams"])
    }
}

const CASES: [Case; 17] = [
    audio(
        CodecName::Opus,
        Some("minptime=10;stereo=1;useinbandfec=1;usedtx=1"),
        &["stereo", "useinbandfec", "usedtx"],
    ),
    audio(
        CodecName::MultiOpus,
        Some(
            "channel_mapping=0,4,1,2,3,5;coupled_streams=2;minptime=10;num_streams=4;useinbandfec=1",
        ),
        &["channel_mapping", "coupled_streams", "num_streams"],
    ),
    channels(
        CodecName::MultiOpus,
        8,
        Some("channel_mapping=0,6,1,2,3,4,5,7;coupled_streams=3;num_streams=5"),
    ),
    audio(CodecName::Pcmu, None, &[]),
    audio(CodecName::Pcma, None, &[]),
    audio(CodecName::G722, None, &[]),
    audio(CodecName::Isac32, None, &[]),
    audio(CodecName::Isac16, None, &[]),
    audio(CodecName::L16Wide, None, &[]),
    audio(CodecName::L16, None, &[]),
    channels(CodecName::L16Wide, 2, None),
    channels(CodecName::L16, 2, None),
    Case {
        codec: CodecName::Vp8,
        channels: None,
        fmtp: None,
        needed: &[],
        payload: &[0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, 7],
    },
    Case {
        codec: CodecName::Vp9,
        channels: None,
        fmtp: Some("profile-id=2"),
        needed: &["profile-id"],
        payload: &[0x0c, 0x82, 0x49, 0x83, 0x42, 7],
    },
    Case {
        codec: CodecName::H264,
        channels: None,
        fmtp: Some("level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"),
        needed: &["packetization-mode", "profile-level-id"],
        payload: &[0x65, 0x88, 0x84, 7],
    },
    Case {
        codec: CodecName::Av1,
        channels: None,
        fmtp: Some("level-idx=5;profile=0;tier=0"),
        needed: &[],
        payload: &[0x18, 0x0a, 0x01, 0x00, 7],
    },
    Case {
        codec: CodecName::H265,
        channels: None,
        fmtp: Some("level-id=93;profile-id=1;tier-flag=0;tx-mode=SRST"),
        needed: &[],
        payload: &[0x26, 0x01, 0xaf, 7],
    },
];

impl Case {
    fn description(&self, direction: Direction) -> Description {
        let mut line = MediaOffer::new(self.codec.kind(), direction);
        line.add_codec(self.codec, None, self.fmtp.map(str::to_owned));
        let spec = &mut line.codecs[0];
        spec.channels = self.channels.unwrap_or(spec.channels);
        Description::offer(OfferOptions {
            media: vec![line],
            ..OfferOptions::default()
        })
    }

    /// Returns `audio` or `video`.
    fn kind(&self) -> &'static str {
        match self.codec.kind() {
            Kind::Audio => "audio",
            Kind::Video => "video",
            Kind::Data => panic!("no medium"),
        }
    }

    /// Returns the value of `a=rtpmap`, such as `opus/48000/2`.
    fn rtpmap(&self) -> String {
        let (encoding, rate) = (self.codec.encoding(), self.codec.clock_rate());
        match self.channels.unwrap_or(self.codec.channels()) {
            0 => format!("{encoding}/{rate}"),
            channels => format!("{encoding}/{rate}/{channels}"),
        }
    }

    /// Returns the description in `message`, which must contain the codec and the needed
    /// parameters.
    fn checked<'m>(&self, message: &'m Value) -> &'m str {
        let name = self.codec.name();
        let sdp = message["jsep"]["sdp"].as_str();
        let sdp = sdp.unwrap_or_else(|| panic!("{name}: no description in {message}"));
        let rtpmap = self.rtpmap();
        let maps = sdp
            .lines()
            .filter_map(|line| line.strip_prefix("a=rtpmap:"));
        let mut own =
            maps.filter_map(|map| Some(map.split_once(' ')?).filter(|(_, map)| *map == rtpmap));
        let (pt, _) = own.next().unwrap_or_else(|| panic!("no {rtpmap} in {sdp}"));
        let prefix = format!("a=fmtp:{pt} ");
        let fmtp = sdp.lines().find_map(|line| line.strip_prefix(&prefix));
        let answered: Vec<&str> = fmtp.unwrap_or_default().split(';').collect();
        for parameter in self.fmtp.unwrap_or_default().split(';') {
            let (key, _) = parameter.split_once('=').unwrap_or((parameter, ""));
            if self.needed.contains(&key) {
                assert!(
                    answered.contains(&parameter),
                    "{name} needs {parameter}: {sdp}"
                );
            }
        }
        sdp
    }

    /// Sends from one to the other until it receives something.
    async fn flows(&self, from: &mut Peer, to: &mut Peer) {
        for n in 0..200 {
            from.send(0, n * 960, self.payload).await;
            tokio::join!(few_turns(from), few_turns(to));
            if self.has_come(to) {
                return;
            }
        }
        panic!("nothing of {} comes", self.codec.name());
    }

    fn has_come(&self, to: &Peer) -> bool {
        let mut packets = to.packets.iter();
        packets.any(|packet| packet.payload.last() == self.payload.last())
    }
}

async fn few_turns(peer: &mut Peer) {
    let mut turns = 0;
    let few = |_: &mut Peer| {
        turns += 1;
        turns > 3
    };
    peer.run_until(few).await;
}

/// Sends `body` with an offer of `case`. Returns the event with the answer.
async fn offering(caller: &mut Caller, body: Value, (peer, case): (&mut Peer, &Case)) {
    let offer = peer.offer(case.description(Direction::SendRecv));
    caller.message(body, Some(("offer", &offer))).await;
}

/// Returns the next message with a description.
async fn described(caller: &mut Caller) -> Value {
    loop {
        let message = caller.next().await;
        assert!(
            message.pointer("/plugindata/data/error").is_none(),
            "{message}"
        );
        if message.get("jsep").is_some() {
            return message;
        }
    }
}

#[tokio::test]
async fn the_echo_test_echoes_each_codec() {
    let server = Server::start(1, Arc::new(EchoTest));
    for case in &CASES {
        let mut caller = server.attach("janus.plugin.echotest").await;
        let mut peer = Peer::offering().await;
        offering(&mut caller, json!({ "audio": true }), (&mut peer, case)).await;
        let answer = described(&mut caller).await;
        peer.accept(case.checked(&answer));
        peer.connect().await;
        for n in 0..200 {
            peer.send(0, n * 960, case.payload).await;
            few_turns(&mut peer).await;
            if case.has_come(&peer) {
                break;
            }
        }
        assert!(case.has_come(&peer), "{}", case.codec.name());
    }
}

#[tokio::test]
async fn video_calls_have_each_codec() {
    let server = Server::start(1, Arc::new(VideoCall::default()));
    for case in &CASES {
        let name = format!("{} {:?}", case.codec.name(), case.channels);
        let mut sides = Vec::new();
        for side in ["al", "bo"] {
            let mut caller = server.attach("janus.plugin.videocall").await;
            let username = format!("{side} {name}");
            let register = json!({ "request": "register", "username": username });
            caller.message(register, None).await;
            let event = "/plugindata/data/result/event";
            caller.until(event, "registered").await;
            sides.push(caller);
        }
        let [al, bo] = &mut sides[..] else {
            unreachable!()
        };
        let (mut caller, mut callee) = (Peer::offering().await, Peer::answering().await);
        let call = json!({ "request": "call", "username": format!("bo {name}") });
        offering(al, call, (&mut caller, case)).await;
        let incoming = described(bo).await;
        let answer = callee.answer(case.checked(&incoming));
        let accept = json!({ "request": "accept" });
        bo.message(accept, Some(("answer", &answer))).await;
        let accepted = described(al).await;
        caller.accept(accepted["jsep"]["sdp"].as_str().unwrap());
        tokio::join!(caller.connect(), callee.connect());
        case.flows(&mut caller, &mut callee).await;
        case.flows(&mut callee, &mut caller).await;
    }
}

#[tokio::test]
async fn mountpoints_take_and_give_each_codec() {
    let server = Server::start_with(1, async |media| {
        let plugin = Streaming::start(StreamingConfig::default(), media, Recorder::default()).await;
        Arc::new(plugin.unwrap()) as Arc<dyn Plugin>
    })
    .await;
    let package = "janus.plugin.streaming";
    let mut admin = server.attach(package).await;
    for (id, case) in (1..).zip(&CASES) {
        let media = json!([{ "type": case.kind(), "mid": "m", "codec": case.codec.name() }]);
        let create = json!({ "request": "create", "type": "whip", "id": id, "media": media });
        let created = admin.manage(create).await;
        assert_eq!(created["streaming"], "created", "{created}");
        let mut publisher = server.attach(package).await;
        let mut from = Peer::offering().await;
        let publish = json!({ "request": "publish", "id": id });
        offering(&mut publisher, publish, (&mut from, case)).await;
        let answer = described(&mut publisher).await;
        from.accept(case.checked(&answer));
        from.connect().await;
        publisher.until("/janus", "webrtcup").await;

        let info = admin.manage(json!({ "request": "info", "id": id })).await;
        assert_eq!(info["info"]["media"][0]["rtpmap"], case.rtpmap());

        // Watched with an offer of the server, and with one of the viewer.
        let watch = json!({ "request": "watch", "id": id });
        let mut viewer = server.attach(package).await;
        let mut to = Peer::answering().await;
        viewer.message(watch.clone(), None).await;
        let offer = described(&mut viewer).await;
        let answer = to.answer(case.checked(&offer));
        let start = json!({ "request": "start" });
        viewer.message(start, Some(("answer", &answer))).await;
        to.connect().await;
        case.flows(&mut from, &mut to).await;

        let mut viewer = server.attach(package).await;
        let mut to = Peer::offering().await;
        offering(&mut viewer, watch, (&mut to, case)).await;
        let answer = described(&mut viewer).await;
        to.accept(case.checked(&answer));
        to.connect().await;
        case.flows(&mut from, &mut to).await;
    }
}

#[tokio::test]
async fn rooms_take_and_give_each_codec() {
    let server = Server::start_with(1, async |media| {
        let room = VideoRoom::new(VideoRoomConfig::default(), media, Recorder::default());
        Arc::new(room.unwrap()) as Arc<dyn Plugin>
    })
    .await;
    let package = "janus.plugin.videoroom";
    let mut admin = server.attach(package).await;
    for (room, case) in (1..).zip(&CASES) {
        let codecs = format!("{}codec", case.kind());
        let create = json!({ "request": "create", "room": room, "opus_fec": true, "opus_dtx": true,
                             codecs: case.codec.name() });
        let created = admin.manage(create).await;
        assert_eq!(created["videoroom"], "created", "{created}");
        let mut publisher = server.attach(package).await;
        let mut from = Peer::offering().await;
        let join =
            json!({ "request": "joinandconfigure", "room": room, "ptype": "publisher", "id": 1 });
        offering(&mut publisher, join, (&mut from, case)).await;
        let joined = described(&mut publisher).await;
        from.accept(case.checked(&joined));
        from.connect().await;
        publisher.until("/janus", "webrtcup").await;

        let mut viewer = server.attach(package).await;
        let mut to = Peer::answering().await;
        let join = json!({ "request": "join", "room": room, "ptype": "subscriber",
                           "streams": [{ "feed": 1 }] });
        viewer.message(join, None).await;
        let attached = described(&mut viewer).await;
        let answer = to.answer(case.checked(&attached));
        let start = json!({ "request": "start" });
        viewer.message(start, Some(("answer", &answer))).await;
        to.connect().await;
        case.flows(&mut from, &mut to).await;
    }
}
