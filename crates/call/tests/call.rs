//! The media of calls without a plugin: the descriptions for far ends and the requests to media
//! planes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::{Arc, Mutex};

use portunus_call::{
    CallError, CallMedia, CallNews, CallSettings, LegEvent, LegSide, LegTones, RecordingAction,
    RecordingRequest, Sides,
};
use portunus_core::configuration::PortRange;
use portunus_core::media::MediaPlane;
use portunus_core::media::leg::{LegGates, LegNews};
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_core::sdp::{Description, Direction, Kind};
use portunus_core::testing::{Line, TestClient, TestServer, everywhere, jsep};
use portunus_core::{
    CoreConfig, Handle, Message, Networks, PendingOffer, Plugin, PluginHandle, PluginInfo, Reply,
};
use serde_json::{Value, json};

const PACKAGE: &str = "janus.plugin.test";

/// A plugin that does nothing by itself: tests use its handles.
#[derive(Default, Clone)]
struct Idle(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    handles: Vec<Handle>,
    descriptions: Vec<Description>,
    offers: Vec<PendingOffer>,
}

struct Attached(Idle);

impl Plugin for Idle {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: PACKAGE,
            name: "test",
            description: "A test.",
            version: 1,
            version_string: "1",
        }
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        self.0.lock().unwrap().handles.push(handle);
        Box::new(Attached(self.clone()))
    }
}

impl PluginHandle for Attached {
    fn message(&mut self, message: Message) -> Reply {
        let jsep = message.jsep.unwrap();
        let mut seen = self.0.0.lock().unwrap();
        seen.descriptions.push(jsep.description);
        // The test answers it later.
        seen.offers.extend(message.offer);
        Reply::Ack(None)
    }
}

struct World {
    server: TestServer,
    idle: Idle,
    settings: Arc<CallSettings>,
    _disk: tempfile::TempDir,
}

impl World {
    fn new(networks: Networks) -> Self {
        let idle = Idle::default();
        let disk = tempfile::tempdir().unwrap();
        let recorder = Recorder::new(RecorderConfig {
            dir: Some(disk.path().to_owned()),
            keep_free_mb: 0,
            ..RecorderConfig::default()
        });
        let mut plane: Option<MediaPlane> = None;
        let server = TestServer::recording_with(recorder, CoreConfig::default(), |media| {
            plane = Some(media.clone());
            vec![Arc::new(idle.clone()) as Arc<dyn Plugin>]
        });
        let settings = CallSettings {
            media: plane.unwrap(),
            interface: Some("127.0.0.1".to_owned()),
            address: "127.0.0.1".parse().unwrap(),
            ports: PortRange::default(),
            dscp_audio: 46,
            dscp_video: 0,
            latching: true,
            networks,
            one_of_each: true,
            transcodes: false,
            audio: None,
            silence: None,
            hears_client: true,
        };
        World {
            server,
            idle,
            settings: Arc::new(settings),
            _disk: disk,
        }
    }

    /// A client, and its handle.
    async fn client(&self) -> (TestClient, Handle) {
        let client = self.server.attach(PACKAGE).await;
        let handle = self.idle.0.lock().unwrap().handles.last().cloned();
        (client, handle.unwrap())
    }

    /// The client sends a description, which the plugin gets so.
    async fn said(&self, client: &mut TestClient, kind: &str, lines: &[Line]) -> Description {
        client
            .message(json!({}), Some(jsep(kind, "aaaa", lines)))
            .await;
        let last = self.idle.0.lock().unwrap().descriptions.pop();
        last.unwrap()
    }

    /// A call that a client has made to a far end.
    async fn call(&self, lines: &[Line]) -> (TestClient, CallMedia) {
        let (mut client, handle) = self.client().await;
        let mut call = CallMedia::new(Arc::clone(&self.settings), handle, |_| {});
        let offer = self.said(&mut client, "offer", lines).await;
        call.offer(&offer, None).unwrap();
        call.accept_answer(&far(6000, "sendrecv"), None).unwrap();
        (client, call)
    }

    fn gates(&self) -> Vec<(bool, bool)> {
        let legs = self.server.requested().legs;
        legs.iter()
            .map(|leg| (leg.gates.send, leg.gates.receive))
            .collect()
    }
}

fn far(port: u16, direction: &str) -> String {
    format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
         m=audio {port} RTP/AVP 111\r\na=rtpmap:111 opus/48000/2\r\na={direction}\r\n\
         m=video {} RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\na={direction}\r\n",
        port + 2
    )
}

const BOTH: [Line; 2] = [Line::Audio, Line::Video];

/// Gateways do this against RFC 3264 section 6.1.
#[tokio::test]
async fn a_far_end_may_send_by_the_numbers_of_its_own_answer() {
    let world = World::new(everywhere());
    let (_client, mut call) = world.call(&BOTH).await;
    let answer = far(6000, "sendrecv").replace("111", "107");
    call.accept_answer_alone(&answer, None).unwrap();
    let legs = world.server.requested().legs;
    let remote = legs[0].remote.as_ref().unwrap();
    let numbers = |payloads: &[portunus_core::media::leg::LegPayload]| -> Vec<u8> {
        payloads.iter().map(|payload| payload.pt.0).collect()
    };
    assert_eq!(numbers(&remote.outgoing), [107]);
    assert_eq!(numbers(&remote.incoming), [111, 107]);
}

#[tokio::test]
async fn a_held_call_is_open_in_one_direction_only() {
    let world = World::new(everywhere());
    let (_client, mut call) = world.call(&BOTH).await;
    assert_eq!(world.gates(), [(true, true); 2]);
    let legs = world.server.requested().legs;
    assert!(legs[0].new.hears_source && !legs[1].new.hears_source);
    let offer = call.hold(Direction::SendOnly).unwrap();
    assert_eq!(offer.matches("a=sendonly").count(), 2, "{offer}");
    assert_eq!(world.gates(), [(true, false); 2]);
    call.accept_answer_alone(&far(6000, "recvonly"), None)
        .unwrap();
    assert_eq!(world.gates(), [(true, false); 2]);
    // The far end asks for something meanwhile: the call stays held.
    let answer = call.answer_alone(&far(6000, "sendrecv")).unwrap();
    assert_eq!(answer.matches("a=sendonly").count(), 2, "{answer}");
    let offer = call.unhold().unwrap();
    assert_eq!(offer.matches("a=sendrecv").count(), 2, "{offer}");
    call.accept_answer_alone(&far(6000, "sendrecv"), None)
        .unwrap();
    assert_eq!(world.gates(), [(true, true); 2]);
    // The far end holds, and moves, without the client being asked.
    let answer = call.answer_alone(&far(7000, "sendonly")).unwrap();
    assert_eq!(answer.matches("a=recvonly").count(), 2, "{answer}");
    assert_eq!(world.gates(), [(false, true); 2]);
    let legs = world.server.requested().legs;
    let remote = legs[0].remote.as_ref().unwrap();
    assert_eq!(remote.rtp.unwrap().port(), 7000);
    assert!(remote.latching);
    assert_eq!(call.held(), None);
}

#[tokio::test]
async fn an_error_leaves_the_call_as_it_was() {
    let world = World::new(Networks::default());
    let (mut client, handle) = world.client().await;
    let mut call = CallMedia::new(Arc::clone(&world.settings), handle, |_| {});
    let offer = world.said(&mut client, "offer", &BOTH).await;
    call.offer(&offer, None).unwrap();
    let refused = call.accept_answer(&far(6000, "sendrecv"), None);
    assert!(matches!(refused, Err(CallError::Network(_))), "{refused:?}");
    let elsewhere = far(6000, "sendrecv").replace("127.0.0.1", "1.1.1.1");
    let damaged = elsewhere.replace("m=video", "m=text");
    assert!(call.accept_answer(&damaged, None).is_err());
    assert!(call.agreed().is_empty());
    call.accept_answer(&elsewhere, None).unwrap();
    assert_eq!(call.agreed().len(), 2);
    assert!(call.answer_alone("nonsense").is_err());
    assert_eq!(call.agreed().len(), 2);
    // The client knows no such audio: what there is goes on.
    let other = elsewhere.replace("RTP/AVP 111", "RTP/AVP 18");
    assert!(call.answer_alone(&other).is_err());
    assert_eq!(call.agreed().len(), 2);
    let without = other.replace("m=audio 6000", "m=audio 0");
    call.answer_alone(&without).unwrap();
    assert_eq!(call.agreed().len(), 1);
}

#[tokio::test]
async fn a_call_moves_to_another_client() {
    let world = World::new(everywhere());
    let (mut one, mut call) = world.call(&BOTH).await;
    let (mut two, handle) = world.client().await;
    let peers = world.server.peers();
    let jsep = call.offer_to(&handle).unwrap();
    assert!(jsep.sdp().contains("opus/48000/2"), "{}", jsep.sdp());
    let answer = world.said(&mut two, "answer", &BOTH).await;
    // Until then it is where it was.
    let from = |world: &World| {
        let legs = world.server.requested().legs;
        let from = legs[0].from.as_ref().unwrap().0;
        from.track().unwrap().peer
    };
    assert_eq!(from(&world), peers[0]);
    call.move_to(handle, &answer);
    assert_ne!(from(&world), peers[0]);
    let requested = world.server.requested();
    assert_eq!(requested.routes.len(), 2);
    assert!(
        requested
            .routes
            .iter()
            .all(|route| route.to.peer != peers[0])
    );
    // The far end knows the same ports as before.
    let offer = call.offer_again().unwrap();
    assert!(offer.contains(" RTP/AVP 111\r\n"), "{offer}");
    drop(call);
    let requested = world.server.requested();
    assert!(requested.legs.is_empty() && requested.routes.is_empty());
    one.expect_silence().await;
}

#[tokio::test]
async fn four_streams_are_recorded_by_name() {
    let world = World::new(everywhere());
    let (_client, mut call) = world.call(&BOTH).await;
    let request = |action, filename: Option<&str>, format| RecordingRequest {
        action,
        sides: Sides {
            audio: true,
            video: true,
            peer_audio: true,
            peer_video: false,
        },
        filename: filename.map(str::to_owned),
        default_name: "call-1".to_owned(),
        format,
        tell: |event| json!({ "result": Value::from(event) }),
    };
    let start = |filename, format| request(RecordingAction::Start, filename, format);
    call.record(&start(Some("a/b"), None)).unwrap();
    assert_eq!(world.server.requested().outlets.len(), 3);
    let shown = call.recordings().unwrap();
    let ends = |name: &str, end: &str| {
        let shown = shown[name].as_str().unwrap();
        assert!(shown.ends_with(end), "{shown}");
    };
    ends("audio", "b-user-audio.mjr");
    ends("video", "b-user-video.mjr");
    ends("audio-peer", "b-peer-audio.mjr");
    // Again is not twice.
    call.record(&start(Some("other"), None)).unwrap();
    assert_eq!(world.server.requested().outlets.len(), 3);
    call.record(&request(RecordingAction::Pause, None, None))
        .unwrap();
    let closed = world.server.requested().outlets;
    assert!(closed.iter().all(|outlet| !outlet.options.enabled));
    call.record(&request(RecordingAction::Resume, None, None))
        .unwrap();
    let open = world.server.requested().outlets;
    assert!(open.iter().all(|outlet| outlet.options.enabled));
    call.record(&request(RecordingAction::Stop, None, None))
        .unwrap();
    assert_eq!(call.recordings(), None);
    // Of each side one file.
    let webm = Some("webm".parse().unwrap());
    call.record(&start(None, webm)).unwrap();
    let shown = call.recordings().unwrap();
    assert!(
        shown["files"][0].as_str().unwrap().contains("call-1-own"),
        "{shown}"
    );
    assert!(
        shown["files-peer"][0]
            .as_str()
            .unwrap()
            .contains("call-1-peer"),
        "{shown}"
    );
    let outside = call.record(&start(Some("../../x"), None));
    assert!(
        matches!(outside, Err(CallError::Recording(_))),
        "{outside:?}"
    );
}

#[tokio::test]
async fn keys_are_pressed_and_news_are_told() {
    let world = World::new(everywhere());
    let (mut client, handle) = world.client().await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let mut call = CallMedia::new(Arc::clone(&world.settings), handle, move |news| {
        tell.send(news).unwrap();
    });
    let offer = world.said(&mut client, "offer", &BOTH).await;
    call.offer(&offer, None).unwrap();
    call.accept_answer(&far(6000, "sendrecv"), None).unwrap();
    call.send_tones(LegTones::new(&[5], LegSide::FarEnd));
    let legs = world.server.requested().legs;
    assert_eq!(legs[0].tones.len(), 1);
    let event = LegEvent::Bye;
    let leg = legs[1].id;
    legs[1].new.tell.send(LegNews { leg, event }).await.unwrap();
    let kind = Kind::Video;
    assert_eq!(told.recv().await, Some(CallNews { kind, event }));
    assert_eq!(legs[0].gates, LegGates::OPEN);
    // Plugins refuse calls by an answer without media in use.
    let mut none = CallMedia::new(Arc::clone(&world.settings), world.client().await.1, |_| {});
    let unknown = far(6000, "sendrecv").replace("opus/48000/2", "G729/8000");
    let unknown = unknown.replace("VP8", "H261");
    none.take_offer(&unknown, None).unwrap();
    let answer = none.answer(&Description::default(), None).unwrap();
    assert!(
        answer.contains("m=audio 0 ") && none.agreed().is_empty(),
        "{answer}"
    );
}

/// RFC 6157: who sends by IPv6 cannot send to an address of IPv4.
#[tokio::test]
async fn a_far_end_is_answered_with_an_address_of_its_own_family() {
    let by_ipv6 = far(6000, "sendrecv").replace("IN IP4 127.0.0.1", "IN IP6 ::1");
    let world = World::new(everywhere());
    let (mut client, handle) = world.client().await;
    // The interface has no IPv6.
    let mut call = CallMedia::new(Arc::clone(&world.settings), handle.clone(), |_| {});
    let refused = call.take_offer(&by_ipv6, None).unwrap_err();
    assert!(matches!(refused, CallError::Family(_)), "{refused}");
    let settings = CallSettings {
        interface: None,
        ..CallSettings::clone(&world.settings)
    };
    let mut call = CallMedia::new(Arc::new(settings), handle, |_| {});
    call.take_offer(&by_ipv6, None).unwrap();
    let said = world.said(&mut client, "answer", &BOTH).await;
    let answer = call.answer(&said, None).unwrap();
    assert!(answer.contains("c=IN IP6 ::1\r\n"), "{answer}");
    assert!(!answer.contains("IP4"), "{answer}");
    assert_eq!(call.agreed().len(), 2);
    // A change that the client is not asked about, and one of ours.
    let answer = call.answer_alone(&by_ipv6.replace("6000", "7000")).unwrap();
    assert!(answer.contains("c=IN IP6 ::1\r\n"), "{answer}");
    let offer = call.hold(Direction::SendOnly).unwrap();
    assert!(offer.contains("c=IN IP6 ::1\r\n"), "{offer}");
    call.discard();
    let answer = call.answer_alone(&far(6000, "sendrecv")).unwrap();
    assert!(answer.contains("c=IN IP4 127.0.0.1\r\n"), "{answer}");
}
