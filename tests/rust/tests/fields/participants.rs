//! Video rooms: publishers, and what others see of them.

use portunus_rtp::ExtensionKind;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::shape::{Shape, is, list, object};
use portunus_tests::{Server, Watcher};
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

use crate::world::{AUDIO, Layers, Member, loss_told, recorder, sdp, speech_told};

pub const PACKAGE: &str = "janus.plugin.videoroom";

/// Returns an event of room 7.
pub fn event<const N: usize>(members: [(&'static str, Shape); N]) -> Shape {
    object([("videoroom", is("event")), ("room", is(7))]).and(members)
}

/// Returns an event for event handlers about room 7.
pub fn notice<const N: usize>(name: &str, members: [(&'static str, Shape); N]) -> Shape {
    object([("event", is(name)), ("room", is(7))]).and(members)
}

pub async fn told(watcher: &mut Watcher, member: &Member, shape: &Shape) {
    shape.check(&watcher.told(PACKAGE, Some(&member.caller)).await);
}

pub async fn server(folder: &tempfile::TempDir) -> (Server, Watcher) {
    Server::watched::<VideoRoom>(VideoRoomConfig::default(), recorder(folder)).await
}

/// Creates room 7 with these members.
pub async fn create(admin: &mut Member, watcher: &mut Watcher, members: Value) {
    let mut create = json!({ "request": "create", "room": 7, "secret": "s" });
    let all = create.as_object_mut().unwrap();
    all.extend(members.as_object().unwrap().clone());
    let created = admin.caller.manage(create).await;
    let shape = object([
        ("videoroom", is("created")),
        ("room", is(7)),
        ("permanent", is(false)),
    ]);
    shape.check(&created);
    told(watcher, admin, &notice("created", [])).await;
}

/// Returns the streams of a publisher of these layers, as others see them.
pub fn streams(layers: Layers) -> Vec<Shape> {
    let audio = object([
        ("type", is("audio")),
        ("mindex", is(0)),
        ("mid", is("0")),
        ("codec", is("opus")),
        ("fec", is(true)),
    ]);
    let video = object([("type", is("video")), ("mindex", is(1)), ("mid", is("1"))]);
    let video = match layers {
        Layers::Simulcast => video.and([("codec", is("vp8")), ("simulcast", is(true))]),
        Layers::Svc => video.and([
            ("codec", is("vp9")),
            ("vp9_profile", is("0")),
            ("svc", is(true)),
        ]),
    };
    let data = object([("type", is("data")), ("mindex", is(2)), ("mid", is("2"))]);
    vec![audio, video, data]
}

/// Joins as `id`, publishes, and connects.
pub async fn publisher(server: &Server, watcher: &mut Watcher, id: u64, layers: Layers) -> Member {
    let mut member = Member::offering(server, PACKAGE).await;
    let join = json!({ "request": "join", "room": 7, "ptype": "publisher", "id": id });
    member.ask(join).await;
    watcher.told(PACKAGE, Some(&member.caller)).await;
    publish(&mut member, watcher, layers).await;
    member
}

async fn publish(member: &mut Member, watcher: &mut Watcher, layers: Layers) -> Value {
    let offer = layers.offer(&mut member.peer, Direction::SendOnly);
    let publish = json!({ "request": "publish", "bitrate": 256_000 });
    member.caller.message_with(publish, offer).await;
    let configured = member.next().await;
    member.peer.accept(sdp(&configured));
    watcher.told(PACKAGE, Some(&member.caller)).await;
    let said = member.connect().await;
    assert_eq!(said, [] as [Value; 0]);
    watcher.told(PACKAGE, Some(&member.caller)).await;
    configured["plugindata"]["data"].clone()
}

#[tokio::test]
async fn participants_are_told_from_their_coming_to_their_going() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = server(&folder).await;
    let mut bo = Member::answering(&server, PACKAGE).await;
    let options = json!({ "description": "r", "notify_joining": true, "audiolevel_event": true,
                          "audio_active_packets": 3, "videocodec": "vp8,vp9", "allowed": ["t"] });
    create(&mut bo, &mut watcher, options).await;
    let join = json!({ "request": "join", "room": 7, "ptype": "publisher", "id": 2, "token": "t",
                       "audio_active_packets": 3, "audio_level_average": 30 });
    let joined = bo.ask(join).await["plugindata"]["data"].clone();
    let shape = object([
        ("videoroom", is("joined")),
        ("room", is(7)),
        ("description", is("r")),
        ("id", is(2)),
        ("private_id", Shape::Count),
        ("publishers", list([])),
        ("attendees", list([])),
        ("audio_active_packets", is(3)),
        ("audio_level_average", is(30)),
    ]);
    shape.check(&joined);
    let shape = notice(
        "joined",
        [
            ("id", is(2)),
            ("private_id", is(joined["private_id"].clone())),
            ("token", is("t")),
            ("audio_active_packets", is(3)),
            ("audio_level_average", is(30)),
        ],
    );
    told(&mut watcher, &bo, &shape).await;

    let mut al = Member::offering(&server, PACKAGE).await;
    let join = json!({ "request": "join", "room": 7, "ptype": "publisher", "id": 1, "token": "t",
                       "display": "Al", "metadata": { "m": 1 } });
    let joined = al.ask(join).await["plugindata"]["data"].clone();
    let metadata = || is(json!({ "m": 1 }));
    let named = || {
        [
            ("id", is(1)),
            ("display", is("Al")),
            ("metadata", metadata()),
        ]
    };
    let shape = object([
        ("videoroom", is("joined")),
        ("room", is(7)),
        ("description", is("r")),
        ("id", is(1)),
        ("private_id", Shape::Count),
        ("publishers", list([])),
        ("attendees", list([object([("id", is(2))])])),
    ]);
    shape.check(&joined);
    bo.expect(&event([("joining", object(named()))])).await;
    let private_id = joined["private_id"].clone();
    let shape =
        notice("joined", named()).and([("private_id", is(private_id.clone())), ("token", is("t"))]);
    told(&mut watcher, &al, &shape).await;

    // It publishes.
    let offer = Layers::Simulcast.offer(&mut al.peer, Direction::SendOnly);
    let configure = json!({ "request": "configure", "bitrate": 256_000, "record": true, "filename": "al",
                            "descriptions": [{ "mid": "1", "description": "face" }] });
    al.caller.message_with(configure, offer).await;
    let configured = al.next().await;
    let [audio, video, data] = <[Shape; 3]>::try_from(streams(Layers::Simulcast)).unwrap();
    let face = ("description", is("face"));
    let own = list([
        audio.clone().and([("audiolevel_ext_id", Shape::Count)]),
        video.clone().and([face.clone()]),
        data.clone(),
    ]);
    let shape = event([
        ("configured", is("ok")),
        ("audio_codec", is("opus")),
        ("video_codec", is("vp8")),
        ("streams", own),
    ]);
    shape.check(&configured["plugindata"]["data"]);
    let answer = object([("type", is("answer")), ("sdp", Shape::Begins("v=0"))]);
    answer.check(&configured["jsep"]);
    let shape = notice("configured", [("id", is(1)), ("bitrate", is(256_000))]);
    told(&mut watcher, &al, &shape).await;
    al.peer.accept(sdp(&configured));
    al.connect().await;
    let public = |video: &Shape| list([audio.clone(), video.clone(), data.clone()]);
    let face_of = video.clone().and([face.clone()]);
    let publisher = |streams: Shape| {
        object(named()).and([
            ("audio_codec", is("opus")),
            ("video_codec", is("vp8")),
            ("streams", streams),
        ])
    };
    let published = event([("publishers", list([publisher(public(&face_of))]))]);
    bo.expect(&published).await;
    let shape = notice("published", named()).and([("streams", public(&face_of))]);
    told(&mut watcher, &al, &shape).await;

    // It talks, and stops.
    for (level, name) in [(10, "talking"), (120, "stopped-talking")] {
        let shape = object([
            ("videoroom", is(name)),
            ("room", is(7)),
            ("id", is(1)),
            ("mindex", is(0)),
            ("mid", is("0")),
            ("audio-level-dBov-avg", Shape::Number),
        ]);
        speech_told(&mut al, level, &mut bo, &shape).await;
        told(&mut watcher, &al, &shape).await;
        shape.check(
            &al.caller.until("/plugindata/data/videoroom", name).await["plugindata"]["data"],
        );
    }

    // What new participants, requesters and administrators see.
    let listed = json!({ "request": "listparticipants", "room": 7 });
    let al_listed = object(named()).and([("publisher", is(true)), ("talking", is(false))]);
    let listed = bo.caller.manage(listed).await;
    let people = listed["participants"].as_array().unwrap();
    al_listed.check(people.iter().find(|person| person["id"] == 1).unwrap());
    let mut cy = Member::answering(&server, PACKAGE).await;
    let join = json!({ "request": "join", "room": 7, "ptype": "publisher", "id": 3, "token": "t" });
    let joined = cy.ask(join).await["plugindata"]["data"].clone();
    let talking = list([
        audio.clone().and([("talking", is(false))]),
        face_of.clone(),
        data.clone(),
    ]);
    let shape = publisher(talking).and([("talking", is(false))]);
    list([shape]).check(&joined["publishers"]);
    bo.expect(&event([("joining", object([("id", is(3))]))]))
        .await;
    al.expect(&event([("joining", object([("id", is(3))]))]))
        .await;
    watcher.told(PACKAGE, Some(&cy.caller)).await;
    let recorded = |stream: Shape, file: &'static str| {
        stream.and([("recording", is(file)), ("subscribers", is(0))])
    };
    let state = object([("type", is("publisher")), ("room", is(7))])
        .and(named())
        .and([
            ("private_id", is(private_id)),
            ("bitrate", is(256_000)),
            (
                "streams",
                list([
                    recorded(audio.clone(), "al-audio-0.mjr")
                        .and([("audio-level-dBov", Shape::Number), ("talking", is(false))]),
                    recorded(face_of.clone(), "al-video-1.mjr"),
                    recorded(data.clone(), "al-data-2.mjr"),
                ]),
            ),
            ("hangingup", is(0)),
            ("destroyed", is(0)),
        ]);
    state.check(&server.state(&al.caller).await);

    // Other names.
    let rename = json!({ "request": "configure", "display": "Alan", "metadata": { "m": 2 } });
    al.caller.message(rename, None).await;
    al.expect(&event([("configured", is("ok"))])).await;
    let renamed = || object([("videoroom", is("event")), ("id", is(1))]);
    let metadata = || ("metadata", is(json!({ "m": 2 })));
    let names = [bo.data().await, bo.data().await];
    let old = ("metadata", is(json!({ "m": 1 })));
    renamed()
        .and([("display", is("Alan")), old])
        .check(&names[0]);
    renamed().and([metadata()]).check(&names[1]);
    let shape = notice("configured", [("id", is(1)), ("bitrate", is(256_000))]);
    told(&mut watcher, &al, &shape).await;
    let named = || [("id", is(1)), ("display", is("Alan")), metadata()];
    let publisher = |streams: Shape| {
        object(named()).and([
            ("audio_codec", is("opus")),
            ("video_codec", is("vp8")),
            ("streams", streams),
        ])
    };

    // Another description.
    let describe =
        json!({ "request": "configure", "descriptions": [{ "mid": "1", "description": "hat" }] });
    al.caller.message(describe, None).await;
    al.expect(&event([("configured", is("ok"))])).await;
    let hat = video.clone().and([("description", is("hat"))]);
    bo.expect(&event([("publishers", list([publisher(public(&hat))]))]))
        .await;
    watcher.told(PACKAGE, Some(&al.caller)).await;
    let shape = notice("updated", named()).and([("streams", public(&hat))]);
    told(&mut watcher, &al, &shape).await;

    // Moderated: all are notified.
    let moderate = json!({ "request": "moderate", "room": 7, "secret": "s", "id": 1, "mid": "0", "mute": true });
    object([("videoroom", is("success"))]).check(&bo.caller.manage(moderate).await);
    for member in [&mut al, &mut bo] {
        let shape = event([("id", is(1)), ("mid", is("0")), ("moderation", is("muted"))]);
        member.expect(&shape).await;
    }
    let shape = object([
        ("videoroom", is("moderated")),
        ("room", is(7)),
        ("id", is(1)),
        ("mid", is("0")),
        ("moderation", is("muted")),
    ]);
    told(&mut watcher, &bo, &shape).await;
    let mut dee = Member::answering(&server, PACKAGE).await;
    let join = json!({ "request": "join", "room": 7, "ptype": "publisher", "id": 4, "token": "t" });
    let joined = dee.ask(join).await["plugindata"]["data"].clone();
    assert_eq!(joined["publishers"][0]["streams"][0]["moderated"], true);
    for member in [&mut al, &mut bo] {
        member
            .expect(&event([("joining", object([("id", is(4))]))]))
            .await;
    }
    watcher.told(PACKAGE, Some(&dee.caller)).await;

    let slow = object([
        ("videoroom", is("slow_link")),
        ("current-bitrate", is(256_000)),
    ]);
    loss_told(&mut al, AUDIO, &slow).await;

    // Forwarded, as administrators see it.
    let forward = json!({ "request": "rtp_forward", "room": 7, "secret": "s", "publisher_id": 1, "host": "127.0.0.1",
                          "streams": [{ "mid": "1", "port": 9, "pt": 99, "port_2": 9 }] });
    let forwarding = bo.caller.manage(forward).await;
    let forwarder = |substream: u8| {
        let shape = object([
            ("stream_id", Shape::Count),
            ("type", is("video")),
            ("host", is("127.0.0.1")),
            ("port", is(9)),
        ]);
        match substream {
            0 => shape.and([("pt", is(99))]),
            n => shape.and([("substream", is(n))]),
        }
    };
    let shape = object([
        ("videoroom", is("rtp_forward")),
        ("room", is(7)),
        ("publisher_id", is(1)),
        ("forwarders", list([forwarder(0), forwarder(1)])),
    ]);
    shape.check(&forwarding);
    for substream in [0, 1] {
        let own = forwarder(substream);
        let shape = own.and([
            ("event", is("rtp_forward")),
            ("room", is(7)),
            ("publisher_id", is(1)),
            ("media", is("video")),
            ("codec", is("vp8")),
        ]);
        let shape = match substream {
            0 => shape,
            n => shape.and([("video_substream", is(n))]),
        };
        told(&mut watcher, &bo, &shape).await;
    }
    let number = forwarding["forwarders"][0]["stream_id"].clone();
    let stop = json!({ "request": "stop_rtp_forward", "room": 7, "secret": "s", "publisher_id": 1,
                       "stream_id": number });
    let stopped = || [("publisher_id", is(1)), ("stream_id", is(number.clone()))];
    let shape = object([("videoroom", is("stop_rtp_forward")), ("room", is(7))]);
    shape.and(stopped()).check(&bo.caller.manage(stop).await);
    told(&mut watcher, &bo, &notice("stop_rtp_forward", stopped())).await;

    // It unpublishes and leaves. Another one is kicked. The room ends.
    al.caller
        .message(json!({ "request": "unpublish" }), None)
        .await;
    al.expect(&event([("unpublished", is("ok"))])).await;
    bo.expect(&event([("unpublished", is(1))])).await;
    told(&mut watcher, &al, &notice("unpublished", named())).await;
    al.caller.message(json!({ "request": "leave" }), None).await;
    al.expect(&event([("leaving", is("ok"))])).await;
    let shape = event([("leaving", is(1)), ("display", is("Alan")), metadata()]);
    bo.expect(&shape).await;
    told(&mut watcher, &al, &notice("leaving", named())).await;
    let kick = json!({ "request": "kick", "room": 7, "secret": "s", "id": 4 });
    object([("videoroom", is("success"))]).check(&bo.caller.manage(kick).await);
    let kicked = dee.caller.until("/plugindata/data/leaving", "ok").await;
    let shape = event([("leaving", is("ok")), ("reason", is("kicked"))]);
    shape.check(&kicked["plugindata"]["data"]);
    bo.expect(&event([("kicked", is(4))])).await;
    told(&mut watcher, &bo, &notice("kicked", [("id", is(4))])).await;

    let edit = json!({ "request": "edit", "room": 7, "secret": "s", "new_description": "q" });
    let shape = |name: &str| {
        object([
            ("videoroom", is(name)),
            ("room", is(7)),
            ("permanent", is(false)),
        ])
    };
    shape("edited").check(&bo.caller.manage(edit).await);
    told(&mut watcher, &bo, &notice("edited", [])).await;
    let destroy = json!({ "request": "destroy", "room": 7, "secret": "s" });
    shape("destroyed").check(&bo.caller.manage(destroy).await);
    let ended = object([("videoroom", is("destroyed")), ("room", is(7))]);
    bo.expect(&ended).await;
    told(&mut watcher, &bo, &notice("destroyed", [])).await;
    watcher.expect_silence();
}

#[tokio::test]
async fn encryption_and_profiles_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = server(&folder).await;
    let mut bo = Member::answering(&server, PACKAGE).await;
    let options = json!({ "videocodec": "vp9", "require_e2ee": true });
    create(&mut bo, &mut watcher, options).await;
    let mut al = Member::offering(&server, PACKAGE).await;
    let mut offer = Layers::Svc.offer(&mut al.peer, Direction::SendOnly);
    let join = json!({ "request": "joinandconfigure", "room": 7, "ptype": "publisher", "id": 1 });
    al.caller.message_with(join.clone(), offer.clone()).await;
    let refused = al.data().await;
    let shape = object([
        ("videoroom", is("event")),
        ("error_code", is(433)),
        ("error", Shape::Text),
    ]);
    shape.check(&refused);
    offer["e2ee"] = json!(true);
    al.caller.message_with(join, offer).await;
    let joined = al.next().await;
    assert_eq!(joined["jsep"]["e2ee"], true, "{joined}");
    let [audio, video, data] = <[Shape; 3]>::try_from(streams(Layers::Svc)).unwrap();
    let audio = audio.and([("audiolevel_ext_id", Shape::Count)]);
    let shape = object([
        ("videoroom", is("joined")),
        ("room", is(7)),
        ("description", is("Room 7")),
        ("id", is(1)),
        ("private_id", Shape::Count),
        ("publishers", list([])),
        ("audio_codec", is("opus")),
        ("video_codec", is("vp9")),
        ("streams", list([audio, video, data])),
    ]);
    shape.check(&joined["plugindata"]["data"]);
    let joined = [("id", is(1)), ("private_id", Shape::Count)];
    told(&mut watcher, &al, &notice("joined", joined)).await;
    let configured = [("id", is(1)), ("bitrate", is(0))];
    told(&mut watcher, &al, &notice("configured", configured)).await;
    let state = server.state(&al.caller).await;
    assert_eq!(state["e2ee"], true, "{state}");
    let video = &state["streams"][1];
    assert_eq!(
        (&video["vp9-profile"], &video["svc"]),
        (&json!("0"), &json!(true))
    );
}

/// Returns stereo that pauses, and H.264 with this direction.
fn film(video: Direction) -> Description {
    let mut sound = MediaOffer::new(Kind::Audio, Direction::SendOnly);
    let fmtp = "stereo=1;useinbandfec=1;usedtx=1".to_owned();
    sound.add_codec(CodecName::Opus, None, Some(fmtp));
    let mut picture = MediaOffer::new(Kind::Video, video);
    let fmtp = "packetization-mode=1;profile-level-id=42e01f".to_owned();
    picture.add_codec(CodecName::H264, None, Some(fmtp));
    picture.extensions = vec![
        (ExtensionKind::PlayoutDelay, 12),
        (ExtensionKind::VideoOrientation, 13),
    ];
    Description::offer(OfferOptions {
        media: vec![sound, picture],
        ..OfferOptions::default()
    })
}

#[tokio::test]
async fn parameters_dummies_and_what_is_disabled_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = server(&folder).await;
    let mut bo = Member::answering(&server, PACKAGE).await;
    let options = json!({ "videocodec": "h264", "h264_profile": "42e01f", "opus_dtx": true,
                          "dummy_publisher": true });
    create(&mut bo, &mut watcher, options).await;
    let join = json!({ "request": "join", "room": 7, "ptype": "publisher", "id": 2 });
    let joined = bo.ask(join).await["plugindata"]["data"].clone();
    watcher.told(PACKAGE, Some(&bo.caller)).await;
    let dummy = &joined["publishers"][0];
    let named = || {
        object([
            ("id", Shape::Count),
            ("display", is("Dummy publisher")),
            ("dummy", is(true)),
        ])
    };
    let shape = named().and([
        ("audio_codec", is("opus")),
        ("video_codec", is("h264")),
        ("streams", is(dummy["streams"].clone())),
    ]);
    shape.check(dummy);
    let listed = json!({ "request": "listparticipants", "room": 7 });
    let listed = bo.caller.manage(listed).await;
    let people = listed["participants"].as_array().unwrap();
    let shape = named().and([("publisher", is(true))]);
    shape.check(people.iter().find(|it| it["dummy"] == true).unwrap());

    let mut al = Member::offering(&server, PACKAGE).await;
    let offer = al.peer.offer(film(Direction::SendOnly));
    let join = json!({ "request": "joinandconfigure", "room": 7, "ptype": "publisher", "id": 1 });
    al.caller.message(join, Some(("offer", &offer))).await;
    let joined = al.next().await;
    let stream = |kind: &'static str, index: u8| {
        object([
            ("type", is(kind)),
            ("mindex", is(index)),
            ("mid", is(index.to_string())),
        ])
    };
    let sound = stream("audio", 0).and([
        ("codec", is("opus")),
        ("stereo", is(true)),
        ("fec", is(true)),
        ("dtx", is(true)),
    ]);
    let codec = [("codec", is("h264")), ("h264_profile", is("42e01f"))];
    let picture = stream("video", 1).and(codec);
    let own = picture.clone().and([
        ("playoutdelay_ext_id", is(12)),
        ("videoorient_ext_id", is(13)),
    ]);
    list([sound.clone(), own]).check(&joined["plugindata"]["data"]["streams"]);
    al.peer.accept(sdp(&joined));
    al.connect().await;
    let published = |picture: Shape| {
        object([
            ("id", is(1)),
            ("audio_codec", is("opus")),
            ("streams", list([sound.clone(), picture])),
        ])
    };
    let shape = published(picture.clone()).and([("video_codec", is("h264"))]);
    bo.expect(&event([("publishers", list([shape]))])).await;
    for name in ["joined", "configured", "published"] {
        let data = watcher.told(PACKAGE, Some(&al.caller)).await;
        assert_eq!(data["event"], name);
    }

    // A subscription with a change before its answer.
    let mut cy = Member::answering(&server, PACKAGE).await;
    let join = json!({ "request": "join", "room": 7, "ptype": "subscriber",
                       "streams": [{ "feed": 1, "mid": "1" }] });
    let attached = cy.ask(join).await["plugindata"]["data"].clone();
    assert_eq!(attached["streams"][0]["h264-profile"], "42e01f");
    let restart = json!({ "request": "configure", "restart": true });
    cy.caller.message(restart, None).await;
    let state = server.state(&cy.caller).await;
    for (member, value) in [
        ("answered", false),
        ("pending_offer", true),
        ("pending_restart", true),
    ] {
        assert_eq!(state[member], value, "{member}");
    }
    let state = server.state(&al.caller).await;
    assert_eq!(state["streams"][1]["h264-profile"], "42e01f");
    let delay = json!({ "request": "configure", "mid": "1", "min_delay": 5, "max_delay": 20 });
    al.ask(delay).await;
    watcher.told(PACKAGE, Some(&al.caller)).await;
    let state = server.state(&al.caller).await;
    let delay = object([("min-delay", is(5)), ("max-delay", is(20))]);
    delay.check(&state["streams"][1]["playout-delay"]);

    // The picture is muted and unmuted, and then removed.
    for mute in [true, false] {
        let moderate = json!({ "request": "moderate", "room": 7, "secret": "s", "id": 1, "mid": "1",
                               "mute": mute });
        bo.caller.manage(moderate).await;
        let moderation = if mute { "muted" } else { "unmuted" };
        for member in [&mut al, &mut bo] {
            let shape = event([
                ("id", is(1)),
                ("mid", is("1")),
                ("moderation", is(moderation)),
            ]);
            member.expect(&shape).await;
        }
        let data = watcher.told(PACKAGE, Some(&bo.caller)).await;
        assert_eq!(data["moderation"], moderation);
    }
    let offer = al.peer.offer(film(Direction::Inactive));
    let configure = json!({ "request": "configure" });
    al.caller.message(configure, Some(("offer", &offer))).await;
    let configured = al.next().await;
    let gone = stream("video", 1).and([("disabled", is(true))]);
    list([sound.clone(), gone.clone()]).check(&configured["plugindata"]["data"]["streams"]);
    assert_eq!(configured["plugindata"]["data"]["video_codec"], "none");
    let shape = event([("publishers", list([published(gone.clone())]))]);
    bo.expect(&shape).await;
    watcher.told(PACKAGE, Some(&al.caller)).await;
    let streams = ("streams", list([sound.clone(), gone]));
    let shape = notice("updated", [("id", is(1)), streams]);
    told(&mut watcher, &al, &shape).await;
}
