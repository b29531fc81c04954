//! Publishers of other servers here, and our publishers on other servers.

use portunus_core::media::ingest::{Heard, Sound};
use portunus_core::media::{Encodings, Framing, IngestFeed, IngestMedia, SourceRef};
use portunus_core::sdp::{Codec, Kind};
use portunus_core::testing::Line;
use portunus_core::{ExtensionKind, Ssrc};
use serde_json::{Value, json};

use crate::world::{AV, ROOM, World, ask, code, merge, sync};

fn add(members: Value) -> Value {
    let streams = json!([
        { "type": "audio", "mid": "a", "mindex": 0, "codec": "opus", "fec": true, "audiolevel_ext_id": 5 },
        { "type": "video", "mid": "v", "mindex": 1, "codec": "vp8", "simulcast": true },
        { "type": "data", "mid": "d", "mindex": 2 },
    ]);
    let mut request = json!({ "request": "add_remote_publisher", "room": ROOM, "id": 9, "display": "afar",
                              "streams": streams });
    merge(&mut request, members);
    request
}

fn with(name: &str, members: Value) -> Value {
    let mut request = json!({ "request": name, "room": ROOM });
    merge(&mut request, members);
    request
}

#[tokio::test]
async fn a_remote_publisher_is_published_at_once() {
    let world = World::new(json!({})).await;
    let (mut watching, _) = world.join(json!({ "id": 7 })).await;
    let mut admin = world.attach().await;
    let added = sync(&mut admin, add(json!({}))).await;
    let port = added["port"].as_u64().unwrap();
    let rtcp_port = added["rtcp_port"].as_u64().unwrap();
    let expected = json!({ "videoroom": "success", "room": ROOM, "id": 9, "port": port, "rtcp_port": rtcp_port });
    assert_eq!(added, expected);
    assert!(port >= 10_000 && rtcp_port >= 10_000 && port != rtcp_port);

    let event = watching.event().await;
    let streams = json!([
        { "type": "audio", "mindex": 0, "mid": "0", "codec": "opus", "fec": true },
        { "type": "video", "mindex": 1, "mid": "1", "codec": "vp8", "simulcast": true },
        { "type": "data", "mindex": 2, "mid": "2" },
    ]);
    let publisher = json!({ "id": 9, "display": "afar", "audio_codec": "opus", "video_codec": "vp8",
                            "streams": streams });
    assert_eq!(event["publishers"], json!([publisher]));
    let people = sync(&mut admin, with("listparticipants", json!({}))).await;
    let people = people["participants"].as_array().unwrap().clone();
    let remote = people.iter().find(|person| person["id"] == 9).unwrap();
    assert_eq!(
        (&remote["remote"], &remote["publisher"]),
        (&json!(true), &json!(true))
    );

    let ingests = world.requested().ingests;
    let mut ssrcs = Vec::new();
    for ingest in &ingests {
        let IngestFeed::Shared {
            rtp,
            rtcp,
            ssrc,
            encodings,
        } = &ingest.options.feed
        else {
            panic!("{:?}", ingest.options);
        };
        assert_eq!(u64::from(rtp.port()), port);
        assert_eq!(u64::from(rtcp.as_ref().unwrap().port()), rtcp_port);
        ssrcs.push((*ssrc, *encodings));
    }
    assert_eq!(
        ssrcs,
        [(Ssrc(1_000), 1), (Ssrc(1_010), 3), (Ssrc(1_020), 1)]
    );
    let IngestMedia::Rtp(audio) = &ingests[0].options.media else {
        panic!("no audio");
    };
    assert_eq!((audio.codec, audio.clock_rate), (Codec::Opus, 48_000));
    assert_eq!(audio.extensions.id(ExtensionKind::AudioLevel), Some(5));
    assert!(matches!(&ingests[2].options.media, IngestMedia::Data(data) if data.framed));
}

#[tokio::test]
async fn it_may_be_listened_to_on_one_interface_or_in_a_group() {
    let world = World::new(json!({})).await;
    let mut admin = world.attach().await;
    let local = json!({ "id": 1, "iface": "127.0.0.1" });
    let added = sync(&mut admin, add(local)).await;
    assert_eq!(
        (&added["id"], &added["ip"]),
        (&json!(1), &json!("127.0.0.1"))
    );
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let group = json!({ "id": 2, "mcast": "239.1.2.3", "iface": "127.0.0.1", "port": port });
    let added = sync(&mut admin, add(group)).await;
    assert_eq!(
        (&added["id"], &added["ip"]),
        (&json!(2), &json!("239.1.2.3"))
    );
}

#[tokio::test]
async fn its_media_goes_to_subscribers_and_ends_with_it() {
    let world = World::new(json!({})).await;
    let mut admin = world.attach().await;
    sync(&mut admin, add(json!({}))).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 9 }] })).await;
    let requested = world.requested();
    let from: Vec<SourceRef> = requested.routes.iter().map(|route| route.from).collect();
    let ingests: Vec<SourceRef> = requested.ingests.iter().map(|i| i.id.into()).collect();
    assert_eq!(from, ingests);
    let keyframe = with("moderate", json!({ "id": 9, "mid": "1", "mute": true }));
    sync(&mut admin, keyframe).await;
    let gates = world
        .requested()
        .routes
        .into_iter()
        .map(|route| route.options.enabled);
    assert_eq!(gates.collect::<Vec<_>>(), [true, false, true]);

    let (mut watching, _) = world.join(json!({ "id": 7 })).await;
    let removed = sync(
        &mut admin,
        with("remove_remote_publisher", json!({ "id": 9 })),
    )
    .await;
    assert_eq!(removed, json!({ "videoroom": "success" }));
    assert_eq!(watching.event().await["leaving"], 9);
    assert_eq!(viewer.offered().await["videoroom"], "updated");
    assert_eq!(viewer.directions(), ["inactive", "inactive", "inactive"]);
    let requested = world.requested();
    assert!(requested.ingests.is_empty() && requested.routes.is_empty());
}

#[tokio::test]
async fn messages_come_on_a_channel_with_its_name() {
    let world = World::new(json!({})).await;
    let mut admin = world.attach().await;
    sync(&mut admin, add(json!({}))).await;
    let viewer = world
        .viewer(json!({ "streams": [{ "feed": 9, "mid": "2" }] }))
        .await;
    let requested = world.requested();
    let route = requested.routes.first().unwrap();
    let ingest = requested
        .ingests
        .iter()
        .find(|ingest| SourceRef::from(ingest.id) == route.from);
    assert!(matches!(
        ingest.unwrap().options.media,
        IngestMedia::Data(_)
    ));
    assert_eq!(route.to.peer, viewer.peer);
    assert_eq!(route.options.label.as_deref(), Some("9"));
}

#[tokio::test]
async fn who_talks_afar_is_heard_like_anybody() {
    let world = World::new(json!({ "audiolevel_event": true, "dominant_speaker": true })).await;
    let (mut watching, _) = world.join(json!({ "id": 1 })).await;
    let mut admin = world.attach().await;
    sync(&mut admin, add(json!({}))).await;
    assert_eq!(watching.event().await["publishers"][0]["id"], 9);
    let listening = world.requested().listening;
    assert_eq!(listening.len(), 1);
    let (ingest, ears) = listening.into_iter().next().unwrap();
    assert!(ears.speech && ears.talking.is_some());
    let talking = |talking, average| Heard {
        ingest,
        sound: Sound::Talking { talking, average },
    };
    ears.tell.send(talking(true, 2_050)).await.unwrap();
    let event = json!({ "videoroom": "talking", "room": ROOM, "id": 9, "mindex": 0, "mid": "0",
                       "audio-level-dBov-avg": 20.5 });
    assert_eq!(watching.event().await, event);
    let list = json!({ "request": "listparticipants", "room": ROOM });
    let listed = sync(&mut admin, list).await;
    let people = listed["participants"].as_array().unwrap().iter();
    let afar = people.clone().find(|person| person["id"] == 9).unwrap();
    assert_eq!(afar["talking"], true, "{listed}");
    let mute = json!({ "request": "moderate", "room": ROOM, "id": 9, "mid": "0", "mute": true });
    sync(&mut admin, mute).await;
    assert_eq!(watching.event().await["videoroom"], "stopped-talking");
    assert_eq!(watching.event().await["moderation"], "muted");
    assert!(world.requested().listening.is_empty());
    // A late report is ignored.
    ears.tell.send(talking(true, 1_000)).await.unwrap();
    watching.expect_silence().await;
}

#[tokio::test]
async fn what_comes_from_afar_is_recorded_and_kept_like_that_of_anybody() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path(), json!({ "bufferkf_ms": 2_000 })).await;
    let mut admin = world.attach().await;
    let streams = json!([{ "type": "video", "mid": "0", "mindex": 0, "codec": "vp8" },
                         { "type": "audio", "mid": "1", "mindex": 1, "codec": "opus" }]);
    sync(&mut admin, add(json!({ "streams": streams }))).await;
    let requested = world.requested();
    assert_eq!(requested.kept.len(), 1);
    assert!(requested.outlets.is_empty());
    let record = |on: bool| json!({ "request": "enable_recording", "room": ROOM, "record": on });
    sync(&mut admin, record(true)).await;
    let requested = world.requested();
    let recorded = requested.outlets.iter().map(|outlet| outlet.from);
    let ingests = requested
        .ingests
        .iter()
        .map(|ingest| SourceRef::from(ingest.id));
    assert!(recorded.eq(ingests));
    let more = json!({ "request": "update_remote_publisher", "room": ROOM, "id": 9, "streams": [
        { "type": "data", "mid": "2", "mindex": 2 },
    ]});
    sync(&mut admin, more).await;
    let outlets = world.requested().outlets;
    assert_eq!(outlets.len(), 3);
    for (outlet, kind) in outlets.iter().zip([Kind::Video, Kind::Audio, Kind::Data]) {
        assert!(outlet.pretend_first(kind));
    }
    drop(outlets);
    sync(&mut admin, record(false)).await;
    world.recorder.finished().await;
    let names: Vec<String> = folder
        .path()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".json"))
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for kind in ["-video-0.mjr", "-audio-1.mjr", "-data-2.mjr"] {
        let prefix = format!("videoroom-{ROOM}-user-9-");
        let is = |name: &&String| name.starts_with(&prefix) && name.ends_with(kind);
        assert!(names.iter().any(|name| is(&name)), "{kind}: {names:?}");
    }
}

#[tokio::test]
async fn its_streams_change_and_become_more() {
    let world = World::new(json!({})).await;
    let mut admin = world.attach().await;
    let streams = json!([{ "type": "video", "mid": "0", "mindex": 0, "codec": "vp8" }]);
    sync(&mut admin, add(json!({ "streams": streams }))).await;
    let (mut watching, _) = world.join(json!({ "id": 7 })).await;
    let mut update = async |members: Value| {
        let mut request = with("update_remote_publisher", json!({ "id": 9, "streams": [] }));
        merge(&mut request, members);
        sync(&mut admin, request).await
    };
    let success = json!({ "videoroom": "success" });
    assert_eq!(update(json!({ "display": "further" })).await, success);
    let event = watching.event().await;
    assert_eq!(
        (&event["id"], &event["display"]),
        (&json!(9), &json!("further"))
    );
    assert_eq!(update(json!({ "display": "further" })).await, success);

    let streams = json!([
        { "type": "video", "mid": "0", "mindex": 0, "codec": "vp8", "disabled": true },
        { "type": "audio", "mid": "1", "mindex": 1, "codec": "opus", "description": "new" },
    ]);
    assert_eq!(update(json!({ "streams": streams })).await, success);
    let event = watching.event().await;
    let expected = json!([
        { "type": "video", "mindex": 0, "mid": "0", "disabled": true },
        { "type": "audio", "mindex": 1, "mid": "1", "codec": "opus", "description": "new" },
    ]);
    assert_eq!(event["publishers"][0]["streams"], expected);
    assert_eq!(world.requested().ingests.len(), 2);
    // A repetition is not a change.
    assert_eq!(update(json!({ "streams": streams })).await, success);
    let beyond = json!([{ "type": "audio", "mid": "3", "mindex": 3, "codec": "opus" }]);
    assert_eq!(code(&update(json!({ "streams": beyond })).await), 430);
    watching.expect_silence().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let world = World::new(json!({ "publishers": 2 })).await;
    let _al = world.publisher(1, &AV).await;
    let mut admin = world.attach().await;
    let stream = |change: Value| {
        let mut stream = json!({ "type": "audio", "mid": "0", "mindex": 0, "codec": "opus" });
        merge(&mut stream, change);
        json!({ "streams": [stream] })
    };
    for (members, expected) in [
        (json!({ "id": 1 }), 436),
        (json!({ "id": "x" }), 430),
        (json!({ "streams": [] }), 430),
        (json!({ "streams": {} }), 430),
        (stream(json!({ "codec": "mp3" })), 429),
        (stream(json!({ "type": "x" })), 430),
        (stream(json!({ "mid": 0 })), 430),
        (json!({ "port": 65_536 }), 430),
        (json!({ "mcast": "no address" }), 430),
        (json!({ "mcast": "10.0.0.1", "port": 5_000 }), 499),
        (json!({ "iface": "no-such-interface" }), 499),
        (json!({ "srtp_suite": 1, "srtp_crypto": "" }), 430),
    ] {
        let answer = sync(&mut admin, add(members.clone())).await;
        assert_eq!(code(&answer), expected, "{members}: {answer}");
    }
    for (name, members, expected) in [
        (
            "update_remote_publisher",
            json!({ "id": 1, "streams": [] }),
            430,
        ),
        (
            "update_remote_publisher",
            json!({ "id": 5, "streams": [] }),
            428,
        ),
        ("remove_remote_publisher", json!({ "id": 1 }), 430),
        ("remove_remote_publisher", json!({}), 429),
    ] {
        let answer = sync(&mut admin, with(name, members.clone())).await;
        assert_eq!(code(&answer), expected, "{name} {members}: {answer}");
    }
    // Two publishers are all that the room has place for.
    assert_eq!(
        sync(&mut admin, add(json!({}))).await["videoroom"],
        "success"
    );
    assert_eq!(code(&sync(&mut admin, add(json!({ "id": 10 }))).await), 432);
    assert_eq!(world.requested().ingests.len(), 3);
}

#[tokio::test]
async fn a_publisher_of_ours_goes_elsewhere_stream_by_stream() {
    let world = World::new(json!({})).await;
    let mut al = world
        .publisher(1, &[Line::Audio, Line::Video, Line::Data])
        .await;
    let mut admin = world.attach().await;
    let publish = |members: Value| {
        let mut request = with(
            "publish_remotely",
            json!({ "publisher_id": 1, "remote_id": "b", "host": "127.0.0.1", "port": 6_000, "rtcp_port": 6_001 }),
        );
        merge(&mut request, members);
        request
    };
    let reply = sync(&mut admin, publish(json!({}))).await;
    let expected = json!({ "videoroom": "success", "room": ROOM, "id": 1, "remote_id": "b" });
    assert_eq!(reply, expected);
    let outlets = world.requested().outlets;
    let asked: Vec<_> = outlets.iter().map(|o| o.forward().unwrap()).collect();
    let ssrcs: Vec<_> = asked.iter().map(|o| o.ssrc).collect();
    assert_eq!(ssrcs, [Some(Ssrc(1_000)), Some(Ssrc(1_010)), None]);
    assert_eq!(asked[2].messages, Framing::Rtp(Ssrc(1_020)));
    assert_eq!(asked[1].encodings, Encodings::Only(0));
    // One socket serves the RTCP of all.
    let ports: Vec<_> = asked
        .iter()
        .map(|o| o.rtcp.as_ref().map(|r| r.local_port()))
        .collect();
    assert!(ports[0].is_some() && ports[0] == ports[1] && ports[2].is_none());

    let list = with("listremotes", json!({ "publisher_id": 1 }));
    let listed = sync(&mut admin, list).await;
    let remotes =
        json!([{ "remote_id": "b", "host": "127.0.0.1", "port": 6_000, "rtcp_port": 6_001 }]);
    assert_eq!(
        listed,
        json!({ "videoroom": "success", "room": ROOM, "id": 1, "list": remotes })
    );
    let listed = sync(&mut admin, with("listforwarders", json!({}))).await;
    assert_eq!(listed["publishers"], json!([]));
    for (members, expected) in [
        (json!({}), 436),
        (json!({ "remote_id": "c", "port": 0 }), 430),
        (json!({ "remote_id": 1 }), 430),
        (json!({ "publisher_id": 5 }), 428),
    ] {
        let answer = sync(&mut admin, publish(members.clone())).await;
        assert_eq!(code(&answer), expected, "{members}: {answer}");
    }
    sync(&mut admin, add(json!({}))).await;
    assert_eq!(al.client.event().await["publishers"][0]["id"], 9);
    let remote = publish(json!({ "publisher_id": 9, "remote_id": "c" }));
    assert_eq!(code(&sync(&mut admin, remote).await), 430);

    let unpublish = with(
        "unpublish_remotely",
        json!({ "publisher_id": 1, "remote_id": "b" }),
    );
    let done = sync(&mut admin, unpublish.clone()).await;
    assert_eq!(
        done,
        json!({ "videoroom": "success", "room": ROOM, "id": 1 })
    );
    let left = world.requested().outlets;
    assert!(left.iter().all(|outlet| outlet.forward().is_none()));
    assert_eq!(code(&sync(&mut admin, unpublish).await), 428);
    sync(&mut admin, publish(json!({}))).await;
    ask(&mut al.client, json!({ "request": "unpublish" })).await;
    let list = with("list_remotes", json!({ "publisher_id": 1 }));
    assert_eq!(sync(&mut admin, list).await["list"], json!([]));
}

#[tokio::test]
async fn to_kick_a_remote_publisher_again_is_no_mistake() {
    let world = World::new(json!({})).await;
    let mut admin = world.attach().await;
    let success = json!({ "videoroom": "success" });
    let kick = with("kick", json!({ "id": 9 }));
    for _ in 0..2 {
        sync(&mut admin, add(json!({}))).await;
        for _ in 0..2 {
            assert_eq!(sync(&mut admin, kick.clone()).await, success);
        }
    }
    assert!(world.requested().ingests.is_empty());
    // It came back and left by itself, so nobody can be kicked.
    sync(&mut admin, add(json!({}))).await;
    sync(
        &mut admin,
        with("remove_remote_publisher", json!({ "id": 9 })),
    )
    .await;
    assert_eq!(code(&sync(&mut admin, kick).await), 428);
}

#[tokio::test]
async fn a_remote_publisher_may_be_encrypted_end_to_end() {
    let world = World::new(json!({ "require_e2ee": true })).await;
    let mut admin = world.attach().await;
    for members in [json!({}), json!({ "e2ee": false })] {
        assert_eq!(code(&sync(&mut admin, add(members)).await), 433);
    }
    assert_eq!(
        code(&sync(&mut admin, add(json!({ "e2ee": 1 }))).await),
        430
    );
    sync(&mut admin, add(json!({ "e2ee": true }))).await;
    let IngestMedia::Rtp(video) = &world.requested().ingests[1].options.media.clone() else {
        panic!("no video");
    };
    assert!(video.opaque, "no keyframe can be event");
    let mut client = world.attach().await;
    let join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber",
                       "streams": [{ "feed": 9 }] });
    client.message(join, None).await;
    let (_, offer) = client.event_with_jsep().await;
    assert_eq!(offer.unwrap()["e2ee"], true);
    let update = |e2ee: bool| {
        with(
            "update_remote_publisher",
            json!({ "id": 9, "e2ee": e2ee, "streams": [] }),
        )
    };
    assert_eq!(code(&sync(&mut admin, update(false)).await), 433);
    assert_eq!(sync(&mut admin, update(true)).await["videoroom"], "success");
}
