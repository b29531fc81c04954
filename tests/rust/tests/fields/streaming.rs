//! Mountpoints and their viewers.

use std::net::{SocketAddr, UdpSocket};

use portunus_rtp::ExtensionKind;
use portunus_streaming::{Streaming, StreamingConfig};
use portunus_tests::layered::{vp8_layer, vp9_layer};
use portunus_tests::shape::{Shape, is, list, object};
use portunus_tests::{Sender, Server, Watcher};
use serde_json::{Value, json};

use crate::world::{Member, recorder, sdp, until};

const PACKAGE: &str = "janus.plugin.streaming";

fn result<const N: usize>(members: [(&'static str, Shape); N]) -> Shape {
    let result = object(members);
    object([("streaming", is("event")), ("result", result)])
}

fn status(status: &str) -> Shape {
    result([("status", is(status))])
}

async fn told<const N: usize>(
    watcher: &mut Watcher,
    member: &Member,
    members: [(&'static str, Shape); N],
) {
    let data = watcher.told(PACKAGE, Some(&member.caller)).await;
    object(members).check(&data);
}

fn of(status: &str, id: u64) -> [(&'static str, Shape); 2] {
    [("status", is(status)), ("id", is(id))]
}

/// The senders to the ports of a stream, the highest encoding first.
struct Feed {
    senders: Vec<Sender>,
    frames: u16,
}

impl Feed {
    fn new(ports: &Value, names: &[&str]) -> Self {
        let sender = |(name, ssrc): (&&str, u32)| {
            let port = u16::try_from(ports[*name].as_u64().unwrap()).unwrap();
            Sender::new(SocketAddr::from(([127, 0, 0, 1], port)), ssrc)
        };
        Feed {
            senders: names.iter().zip(100..).map(sender).collect(),
            frames: 0,
        }
    }

    /// Sends a picture: VP8 in an encoding for each sender, or VP9 in three spatial layers.
    fn picture(&mut self, svc: bool) {
        let n = self.frames;
        self.frames += 1;
        let temporal = [0, 2, 1, 2][usize::from(n % 4)];
        let keyframe = n.is_multiple_of(4);
        for sender in &mut self.senders {
            let spatial_layers = if svc { 0..3 } else { 0..1 };
            for spatial in spatial_layers {
                let payload = match svc {
                    true => vp9_layer(n, (spatial, temporal), keyframe),
                    false => vp8_layer(n, temporal, keyframe),
                };
                let packet = sender.packet(spatial == 2 || !svc, &payload);
                sender.send(&packet);
            }
            sender.timestamp = sender.timestamp.wrapping_add(3_000);
        }
    }

    /// Sends until the viewer receives a message of `shape`. Returns the messages before it.
    async fn until(&mut self, svc: bool, viewer: &mut Member, shape: &Shape) -> Vec<Value> {
        let mut others = Vec::new();
        for _ in 0..1_000 {
            self.picture(svc);
            viewer.turn().await;
            while let Some(message) = viewer.caller.pending() {
                if message["janus"] != "event" {
                    continue;
                }
                let data = message["plugindata"]["data"].clone();
                if shape.fits(&data) {
                    return others;
                }
                others.push(data);
            }
        }
        panic!("nothing like {shape:?} in {others:?}");
    }
}

async fn server(folder: &tempfile::TempDir) -> (Server, Watcher) {
    Server::watched::<Streaming>(StreamingConfig::default(), recorder(folder)).await
}

fn port(kind: &'static str, mid: &'static str) -> Shape {
    object([("type", is(kind)), ("mid", is(mid)), ("port", Shape::Count)])
}

/// Watches mountpoint 7, and connects.
async fn watch(server: &Server, watcher: &mut Watcher) -> Member {
    let mut viewer = Member::answering(server, PACKAGE).await;
    viewer.peer.extensions = vec![ExtensionKind::Mid];
    let preparing = viewer.ask(json!({ "request": "watch", "id": 7 })).await;
    status("preparing").check(&preparing["plugindata"]["data"]);
    let offer = object([("type", is("offer")), ("sdp", Shape::Begins("v=0"))]);
    offer.check(&preparing["jsep"]);
    let answer = viewer.peer.answer(sdp(&preparing));
    let start = json!({ "request": "start" });
    viewer
        .caller
        .message(start, Some(("answer", &answer)))
        .await;
    viewer.expect(&status("starting")).await;
    told(watcher, &viewer, of("starting", 7)).await;
    let said = viewer.connect().await;
    assert_eq!(said.len(), 1, "{said:?}");
    status("started").check(&said[0]);
    told(watcher, &viewer, of("started", 7)).await;
    viewer
}

#[tokio::test]
async fn a_mountpoint_in_simulcast_is_told_from_its_creation_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = server(&folder).await;
    let mut admin = Member::answering(&server, PACKAGE).await;
    let create = json!({
        "request": "create", "type": "rtp", "id": 7, "name": "cam", "secret": "s",
        "media": [
            { "type": "audio", "mid": "a", "label": "sound", "port": 0, "pt": 111, "codec": "opus" },
            { "type": "video", "mid": "v", "label": "picture", "port": 0, "port2": 0, "port3": 0, "pt": 100,
              "codec": "vp8", "simulcast": true },
            { "type": "data", "mid": "d", "label": "words", "port": 0 },
        ],
    });
    let created = admin.caller.manage(create).await;
    let video = port("video", "v").and([("port_2", Shape::Count), ("port_3", Shape::Count)]);
    let ports = list([port("audio", "a"), video, port("data", "d")]);
    let stream = object([
        ("id", is(7)),
        ("type", is("live")),
        ("description", is("cam")),
        ("is_private", is(false)),
        ("ports", ports),
    ]);
    let shape = object([
        ("streaming", is("created")),
        ("created", is("cam")),
        ("permanent", is(false)),
        ("stream", stream),
    ]);
    shape.check(&created);
    let event = [
        ("event", is("created")),
        ("id", is(7)),
        ("type", is("live")),
    ];
    told(&mut watcher, &admin, event).await;

    let media = |mid: &'static str, kind: &'static str, label: &'static str| {
        object([
            ("mid", is(mid)),
            ("type", is(kind)),
            ("label", is(label)),
            ("age_ms", Shape::Count),
            // An addition to Janus: nothing has arrived so far.
            ("waiting", is(true)),
        ])
    };
    let entry = object([
        ("id", is(7)),
        ("type", is("live")),
        ("description", is("cam")),
        ("enabled", is(true)),
        (
            "media",
            list([
                media("a", "audio", "sound"),
                media("v", "video", "picture"),
                media("d", "data", "words"),
            ]),
        ),
    ]);
    let listed = object([("streaming", is("list")), ("list", list([entry]))]);
    listed.check(&admin.caller.manage(json!({ "request": "list" })).await);

    let mut viewer = watch(&server, &mut watcher).await;
    let mut feed = Feed::new(
        &created["stream"]["ports"][1],
        &["port_3", "port_2", "port"],
    );
    let layer = |name: &'static str, layer: u8| {
        // The reason is an addition to Janus.
        result([("mid", is("v")), (name, is(layer)), ("reason", Shape::Text)])
    };
    feed.until(false, &mut viewer, &layer("substream", 2)).await;
    feed.until(false, &mut viewer, &layer("temporal", 2)).await;
    let configure = json!({ "request": "configure", "mid": "v", "substream": 1, "temporal": 1 });
    viewer.caller.message(configure.clone(), None).await;
    viewer.expect(&result([("event", is("configured"))])).await;
    feed.until(false, &mut viewer, &layer("substream", 1)).await;
    until(async || {
        feed.picture(false);
        viewer.turn().await;
        let state = server.state(&viewer.caller).await;
        state["media"][1]["simulcast"]["temporal-layer"] == 1
    })
    .await;
    while viewer.caller.pending().is_some() {}
    viewer.caller.message(configure, None).await;
    for name in ["substream", "temporal"] {
        let there = result([("mid", is("v")), (name, is(1))]);
        viewer.expect(&there).await;
    }
    viewer.expect(&result([("event", is("configured"))])).await;

    let line = |kind: &'static str, index: u8, mid: &'static str| {
        // Whether it is sent is an addition to Janus.
        object([
            ("type", is(kind)),
            ("mindex", is(index)),
            ("mid", is(mid)),
            ("send", is(true)),
        ])
    };
    let simulcast = object([
        ("substream", is(1)),
        ("substream-target", is(1)),
        ("temporal-layer", is(1)),
        ("temporal-layer-target", is(1)),
        ("fallback", is(250_000)),
    ]);
    let video = line("video", 1, "v").and([("simulcast", simulcast)]);
    let watching = |paused: u8| {
        object([
            ("state", is("watching")),
            ("mountpoint_id", is(7)),
            ("mountpoint_name", is("cam")),
            ("mountpoint_viewers", is(1)),
            (
                "media",
                list([line("audio", 0, "a"), video.clone(), line("data", 2, "d")]),
            ),
            ("hangingup", is(0)),
            ("started", is(1)),
            ("dataready", is(0)),
            ("paused", is(paused)),
            ("stopping", is(0)),
            ("destroyed", is(0)),
        ])
    };
    watching(0).check(&server.state(&viewer.caller).await);
    viewer
        .caller
        .message(json!({ "request": "pause" }), None)
        .await;
    viewer.expect(&status("pausing")).await;
    told(&mut watcher, &viewer, of("pausing", 7)).await;
    watching(1).check(&server.state(&viewer.caller).await);
    viewer
        .caller
        .message(json!({ "request": "start" }), None)
        .await;
    viewer.expect(&status("started")).await;
    told(&mut watcher, &viewer, of("started", 7)).await;

    // The channel opens with the first message.
    let words = &created["stream"]["ports"][2]["port"];
    let words = u16::try_from(words.as_u64().unwrap()).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    until(async || {
        sender.send_to(b"words", ("127.0.0.1", words)).unwrap();
        viewer.turn().await;
        server.state(&viewer.caller).await["dataready"] == 1
    })
    .await;

    // Recordings, and information about the mountpoint.
    let recording = json!({ "request": "recording", "id": 7, "secret": "s", "action": "start",
                            "media": [{ "mid": "v", "filename": "cam" }] });
    let recorded = admin.caller.manage(recording).await;
    object([("streaming", is("ok"))]).check(&recorded);
    let info = |kind: &'static str, index: u8, mid: &'static str, label: &'static str| {
        object([
            ("mindex", is(index)),
            ("type", is(kind)),
            ("mid", is(mid)),
            ("label", is(label)),
            ("port", Shape::Count),
            ("age_ms", Shape::Count),
        ])
    };
    let codec = |pt: u8, codec: &'static str, rtpmap: &'static str| {
        [("pt", is(pt)), ("codec", is(codec)), ("rtpmap", is(rtpmap))]
    };
    let streams = list([
        info("audio", 0, "a", "sound")
            .and(codec(111, "opus", "opus/48000/2"))
            .and([("waiting", is(true))]),
        info("video", 1, "v", "picture")
            .and(codec(100, "vp8", "VP8/90000"))
            .and([
                ("videosimulcast", is(true)),
                ("port2", Shape::Count),
                ("port3", Shape::Count),
                ("recording", is("cam.mjr")),
            ]),
        info("data", 2, "d", "words").and([("datatype", is("text"))]),
    ]);
    let known = object([
        ("id", is(7)),
        ("name", is("cam")),
        ("description", is("cam")),
        // An addition to Janus.
        ("secret_required", is(true)),
        ("secret", is("s")),
        ("viewers", is(1)),
        ("enabled", is(true)),
        ("type", is("live")),
        ("media", streams),
    ]);
    let ask = json!({ "request": "info", "id": 7, "secret": "s" });
    let told_of = admin.caller.manage(ask).await;
    object([("streaming", is("info")), ("info", known)]).check(&told_of);

    // Edited: viewers and event handlers are notified.
    let edit = json!({ "request": "edit", "id": 7, "secret": "s", "new_metadata": "{}", "edited_event": true });
    let edited = admin.caller.manage(edit).await;
    let shape = object([
        ("streaming", is("edited")),
        ("id", is(7)),
        ("permanent", is(false)),
    ]);
    shape.check(&edited);
    let event = [
        ("event", is("edited")),
        ("id", is(7)),
        ("metadata", is("{}")),
    ];
    viewer.expect(&object(event.clone())).await;
    told(&mut watcher, &admin, event).await;

    for request in ["disable", "enable"] {
        let body = json!({ "request": request, "id": 7, "secret": "s" });
        object([("streaming", is("ok"))]).check(&admin.caller.manage(body).await);
    }
    let kick = json!({ "request": "kick_all", "id": 7, "secret": "s" });
    object([("streaming", is("kicked_all"))]).check(&admin.caller.manage(kick).await);
    viewer.expect(&status("kicked_all")).await;
    let event = [("event", is("kicked_all")), ("id", is(7))];
    told(&mut watcher, &admin, event).await;
    let idle = object([
        ("state", is("idle")),
        ("hangingup", is(0)),
        ("started", is(0)),
        ("dataready", is(0)),
        ("paused", is(0)),
        ("stopping", is(0)),
        ("destroyed", is(0)),
    ]);
    idle.check(&server.state(&viewer.caller).await);

    let mut last = watch(&server, &mut watcher).await;
    let destroy = json!({ "request": "destroy", "id": 7, "secret": "s" });
    let destroyed = admin.caller.manage(destroy).await;
    object([("streaming", is("destroyed")), ("destroyed", is(7))]).check(&destroyed);
    last.expect(&status("stopped")).await;
    let event = [("event", is("destroyed")), ("id", is(7))];
    told(&mut watcher, &admin, event).await;
    watcher.expect_silence();
}

#[tokio::test]
async fn svc_is_told_and_viewers_are_switched_and_stop() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = server(&folder).await;
    let mut admin = Member::answering(&server, PACKAGE).await;
    let mut ports = Vec::new();
    for id in [7, 8] {
        let create = json!({
            "request": "create", "type": "rtp", "id": id, "playoutdelay_ext": true,
            "abscapturetime_src_ext_id": 3,
            "media": [{ "type": "video", "mid": "v", "port": 0, "pt": 100, "codec": "vp9", "svc": true }],
        });
        let created = admin.caller.manage(create).await;
        ports.push(created["stream"]["ports"][0].clone());
        watcher.told(PACKAGE, Some(&admin.caller)).await;
    }
    let mut viewer = watch(&server, &mut watcher).await;
    let mut feed = Feed::new(&ports[0], &["port"]);
    // The first message has both.
    let layer = |name: &'static str, layer: u8| {
        result([("mid", is("v")), (name, is(layer)), ("reason", Shape::Text)])
    };
    let temporal = layer("temporal_layer", 2);
    let said = feed.until(true, &mut viewer, &temporal).await;
    let first = said[0]["result"].as_object().unwrap();
    assert!(first.contains_key("spatial_layer"), "{said:?}");
    let configure = json!({ "request": "configure", "streams": [{ "mid": "v", "spatial_layer": 1, "temporal_layer": 0,
                            "min_delay": 5, "max_delay": 20 }] });
    viewer.caller.message(configure.clone(), None).await;
    viewer
        .caller
        .until("/plugindata/data/result/event", "configured")
        .await;
    let lowered = |state: &Value| {
        let svc = &state["media"][0]["svc"];
        (svc["spatial-layer"].clone(), svc["temporal-layer"].clone()) == (json!(1), json!(0))
    };
    until(async || {
        feed.picture(true);
        viewer.turn().await;
        lowered(&server.state(&viewer.caller).await)
    })
    .await;
    while viewer.caller.pending().is_some() {}
    viewer.caller.message(configure, None).await;
    for (name, layer) in [("spatial_layer", 1), ("temporal_layer", 0)] {
        viewer
            .expect(&result([("mid", is("v")), (name, is(layer))]))
            .await;
    }
    viewer.expect(&result([("event", is("configured"))])).await;
    let svc = object([
        ("spatial-layer", is(1)),
        ("target-spatial-layer", is(1)),
        ("temporal-layer", is(0)),
        ("target-temporal-layer", is(0)),
    ]);
    let delay = object([("min-delay", is(5)), ("max-delay", is(20))]);
    let line = object([
        ("type", is("video")),
        ("mindex", is(0)),
        ("mid", is("v")),
        ("send", is(true)),
        ("svc", svc),
        ("playout-delay", delay),
        ("abs-capture-time-src-ext-id", is(3)),
    ]);
    let state = server.state(&viewer.caller).await;
    list([line]).check(&state["media"]);

    // Offered again, with the same streams.
    let again = viewer.ask(json!({ "request": "watch", "id": 7 })).await;
    status("preparing").check(&again["plugindata"]["data"]);
    let answer = viewer.peer.answer(sdp(&again));
    let start = json!({ "request": "start" });
    viewer
        .caller
        .message(start, Some(("answer", &answer)))
        .await;
    viewer.expect(&status("started")).await;
    told(&mut watcher, &viewer, of("started", 7)).await;
    let restart = json!({ "request": "watch", "id": 7, "restart": true });
    let again = viewer.ask(restart).await;
    status("updating").check(&again["plugindata"]["data"]);
    assert_eq!(again["jsep"]["type"], "offer");

    viewer
        .caller
        .message(json!({ "request": "switch", "id": 8 }), None)
        .await;
    viewer
        .expect(&result([("switched", is("ok")), ("id", is(8))]))
        .await;
    told(&mut watcher, &viewer, of("switching", 8)).await;
    viewer
        .caller
        .message(json!({ "request": "stop" }), None)
        .await;
    viewer.expect(&status("stopping")).await;
    told(&mut watcher, &viewer, of("stopping", 8)).await;
    viewer.caller.until("/janus", "hangup").await;
    viewer
        .caller
        .message(json!({ "request": "stop" }), None)
        .await;
    viewer.expect(&status("idle")).await;
    watcher.expect_silence();
}

#[tokio::test]
async fn files_and_public_views_are_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tone.alaw"), [0xd5; 16_000]).unwrap();
    let config = StreamingConfig {
        folders: vec![folder.path().to_owned()],
        ..StreamingConfig::default()
    };
    let (server, mut watcher) = Server::watched::<Streaming>(config, recorder(&folder)).await;
    let mut admin = Member::answering(&server, PACKAGE).await;
    for (kind, told_as) in [("ondemand", "on demand"), ("live", "live")] {
        let file = folder.path().join("tone.alaw");
        let create = json!({ "request": "create", "type": kind, "id": 7, "name": "tone", "secret": "s",
                             "metadata": "m", "filename": file });
        let created = admin.caller.manage(create).await;
        assert_eq!(created["stream"]["type"], told_as, "{created}");
        let event = [
            ("event", is("created")),
            ("id", is(7)),
            ("type", is(told_as)),
        ];
        told(&mut watcher, &admin, event).await;
        let entry = object([
            ("id", is(7)),
            ("type", is(told_as)),
            ("description", is("tone")),
            ("metadata", is("m")),
            ("enabled", is(true)),
        ]);
        let listed = admin.caller.manage(json!({ "request": "list" })).await;
        list([entry.clone()]).check(&listed["list"]);
        let stream = object([
            ("type", is("audio")),
            ("pt", is(8)),
            ("codec", is("pcma")),
            ("rtpmap", is("PCMA/8000")),
        ]);
        // The duration, and whether there is a secret, are additions to Janus.
        let public = entry.and([("secret_required", is(true)), ("media", list([stream]))]);
        let public = match kind {
            "ondemand" => public.and([("duration", is(2.0))]),
            _ => public,
        };
        let info = admin
            .caller
            .manage(json!({ "request": "info", "id": 7 }))
            .await;
        public.check(&info["info"]);
        let own = json!({ "request": "info", "id": 7, "secret": "s" });
        let own = admin.caller.manage(own).await["info"].clone();
        let more = public.and([
            ("name", is("tone")),
            ("secret", is("s")),
            ("viewers", is(0)),
            ("filename", Shape::Text),
        ]);
        more.check(&own);
        let destroy = json!({ "request": "destroy", "id": 7, "secret": "s" });
        admin.caller.manage(destroy).await;
        let event = [("event", is("destroyed")), ("id", is(7))];
        told(&mut watcher, &admin, event).await;
    }
}

#[tokio::test]
async fn publishers_of_mountpoints_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = server(&folder).await;
    let mut publisher = Member::offering(&server, PACKAGE).await;
    let create = json!({ "request": "create", "type": "whip", "id": 7, "e2ee": true,
                         "media": [{ "type": "audio", "mid": "a" }, { "type": "video", "mid": "v" }] });
    publisher.caller.manage(create).await;
    watcher.told(PACKAGE, Some(&publisher.caller)).await;
    let layers = crate::world::Layers::Simulcast;
    let offer = layers.offer(&mut publisher.peer, portunus_sdp::Direction::SendOnly);
    let publish = json!({ "request": "publish", "id": 7 });
    publisher.caller.message_with(publish, offer).await;
    let answer = publisher.next().await;
    status("publishing").check(&answer["plugindata"]["data"]);
    told(&mut watcher, &publisher, of("publishing", 7)).await;
    publisher.peer.accept(sdp(&answer));
    publisher.connect().await;
    let state = server.state(&publisher.caller).await;
    assert_eq!(state["state"], "publishing");
    let mut viewer = Member::answering(&server, PACKAGE).await;
    let preparing = viewer.ask(json!({ "request": "watch", "id": 7 })).await;
    assert_eq!(preparing["jsep"]["e2ee"], true);
    assert_eq!(server.state(&viewer.caller).await["e2ee"], true);
    publisher
        .caller
        .message(json!({ "request": "unpublish" }), None)
        .await;
    publisher.expect(&status("unpublished")).await;
    told(&mut watcher, &publisher, of("unpublished", 7)).await;
}
