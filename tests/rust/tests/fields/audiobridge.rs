//! Audio rooms: participants and administration.

use std::time::Duration;

use portunus_audiobridge::{AudioBridge, AudioBridgeConfig};
use portunus_rtp::ExtensionKind;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::shape::{Shape, is, list, object};
use portunus_tests::{Server, Watcher, ogg_opus};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::world::{LEVEL, Member, recorder, sdp};

const PACKAGE: &str = "janus.plugin.audiobridge";
const FRAME: Duration = Duration::from_millis(20);
/// 20 ms of silence in Opus.
const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];

/// Returns a message of room 7.
fn said<const N: usize>(what: &str, members: [(&'static str, Shape); N]) -> Shape {
    object([("audiobridge", is(what)), ("room", is(7))]).and(members)
}

/// Returns an event of room 7.
fn event<const N: usize>(members: [(&'static str, Shape); N]) -> Shape {
    said("event", members)
}

fn success<const N: usize>(members: [(&'static str, Shape); N]) -> Shape {
    said("success", members)
}

/// Returns an event for event handlers about room 7.
fn notice<const N: usize>(name: &str, members: [(&'static str, Shape); N]) -> Shape {
    object([("event", is(name)), ("room", is(7))]).and(members)
}

/// Returns the event for event handlers of a participant with default settings.
fn heard(name: &str, (id, setup): (u64, bool)) -> Shape {
    notice(name, [("id", is(id)), ("setup", is(setup))]).and([
        ("muted", is(false)),
        ("volume", is(100)),
        ("quality", is(4)),
        ("expected_loss", is(0)),
        ("denoise", is(false)),
    ])
}

/// Returns a participant without a name, as others see it.
fn plain(id: u64, setup: bool) -> Shape {
    object([("id", is(id)), ("setup", is(setup)), ("muted", is(false))])
}

async fn told(watcher: &mut Watcher, member: &Member, shape: &Shape) {
    shape.check(&watcher.told(PACKAGE, Some(&member.caller)).await);
}

async fn server(folder: &TempDir) -> (Server, Watcher) {
    let config = AudioBridgeConfig {
        folders: vec![folder.path().to_owned()],
        ..AudioBridgeConfig::default()
    };
    Server::watched::<AudioBridge>(config, recorder(folder)).await
}

/// Returns a request about room 7, with its secret.
fn request(name: &str, members: Value) -> Value {
    let mut request = json!({ "request": name, "room": 7, "secret": "s" });
    let all = request.as_object_mut().unwrap();
    all.extend(members.as_object().unwrap().clone());
    request
}

/// Sends a request that is answered immediately.
async fn managed(member: &mut Member, name: &str, members: Value, shape: &Shape) {
    shape.check(&member.caller.manage(request(name, members)).await);
}

/// Creates room 7 with these members.
async fn create(admin: &mut Member, watcher: &mut Watcher, members: Value) {
    let shape = said("created", [("permanent", is(false))]);
    managed(admin, "create", members, &shape).await;
    told(watcher, admin, &notice("created", [])).await;
}

/// Joins as `id`, without media.
async fn join(server: &Server, watcher: &mut Watcher, id: u64) -> Member {
    let mut member = Member::offering(server, PACKAGE).await;
    let join = json!({ "request": "join", "room": 7, "id": id });
    let joined = member.ask(join).await;
    assert_eq!(joined["plugindata"]["data"]["id"], id, "{joined}");
    told(watcher, &member, &heard("joined", (id, false))).await;
    member
}

/// Returns an m-line of Opus with the level of each packet.
fn description() -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio.add_codec(CodecName::Opus, None, Some("useinbandfec=1".to_owned()));
    audio.extensions = vec![(ExtensionKind::AudioLevel, LEVEL)];
    Description::offer(OfferOptions {
        media: vec![audio],
        ..OfferOptions::default()
    })
}

/// Speaks with this loudness until the plugin sends `to` a message of `shape`.
async fn speech_told(from: &mut Member, level: u8, to: &mut Member, shape: &Shape) {
    let mut others = Vec::new();
    let (begin, mut deadline) = (Instant::now(), Instant::now());
    while begin.elapsed() < Duration::from_secs(20) {
        deadline += FRAME;
        from.sound(level, &SILENCE).await;
        from.peer.run_until(|_| Instant::now() >= deadline).await;
        if to.has_said(shape, &mut others).is_some() {
            return;
        }
    }
    panic!("nothing like {shape:?} in {others:?}");
}

#[tokio::test]
async fn participants_are_told_from_their_coming_to_their_going() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = server(&folder).await;
    let mut bo = Member::offering(&server, PACKAGE).await;
    let options = json!({ "description": "r", "spatial_audio": true, "groups": ["a", "b"],
                          "audiolevel_event": true, "audio_active_packets": 5 });
    create(&mut bo, &mut watcher, options).await;
    let join = json!({ "request": "join", "room": 7, "id": 2, "group": "b", "muted": true });
    let joined = bo.ask(join).await["plugindata"]["data"].clone();
    let is_bo = || {
        object([
            ("id", is(2)),
            ("setup", is(false)),
            ("muted", is(true)),
            ("spatial_position", is(50)),
        ])
    };
    said("joined", [("id", is(2)), ("participants", list([]))]).check(&joined);
    let place = ("spatial_position", is(50));
    let shape = notice(
        "joined",
        [
            ("id", is(2)),
            ("setup", is(false)),
            ("muted", is(true)),
            ("volume", is(100)),
            ("quality", is(4)),
            ("expected_loss", is(0)),
            ("denoise", is(false)),
            place,
        ],
    );
    told(&mut watcher, &bo, &shape).await;

    let mut al = Member::offering(&server, PACKAGE).await;
    let join = json!({ "request": "join", "room": 7, "id": 1, "display": "Al", "group": "a",
                       "spatial_position": 30, "volume": 80, "quality": 9, "expected_loss": 5 });
    let joined = al.ask(join).await["plugindata"]["data"].clone();
    said("joined", [("id", is(1)), ("participants", list([is_bo()]))]).check(&joined);
    let is_al = |setup: bool| {
        object([
            ("id", is(1)),
            ("display", is("Al")),
            ("setup", is(setup)),
            ("muted", is(false)),
            ("spatial_position", is(30)),
        ])
    };
    bo.expect(&said("joined", [("participants", list([is_al(false)]))]))
        .await;
    let al_heard = |name: &str, setup: bool| {
        notice(name, [("id", is(1)), ("display", is("Al"))]).and([
            ("setup", is(setup)),
            ("muted", is(false)),
            ("volume", is(80)),
            ("quality", is(9)),
            ("expected_loss", is(5)),
            ("denoise", is(false)),
            ("spatial_position", is(30)),
        ])
    };
    told(&mut watcher, &al, &al_heard("joined", false)).await;

    // Its media connects.
    let offer = json!({ "type": "offer", "sdp": al.peer.offer(description()) });
    let configure = json!({ "request": "configure", "record": true, "filename": "al" });
    al.caller.message_with(configure, offer).await;
    let configured = al.next().await;
    let ok = object([("audiobridge", is("event")), ("result", is("ok"))]);
    ok.check(&configured["plugindata"]["data"]);
    let answer = object([("type", is("answer")), ("sdp", Shape::Begins("v=0"))]);
    answer.check(&configured["jsep"]);
    told(&mut watcher, &al, &al_heard("configured", false)).await;
    al.peer.accept(sdp(&configured));
    assert_eq!(al.connect().await, [] as [Value; 0]);
    bo.expect(&event([("participants", list([is_al(true)]))]))
        .await;

    // It talks, and stops.
    for (level, name) in [(10, "talking"), (120, "stopped-talking")] {
        let shape = said(name, [("id", is(1))]);
        speech_told(&mut al, level, &mut bo, &shape).await;
        al.expect(&shape).await;
        told(&mut watcher, &al, &shape).await;
    }

    // What requesters and administrators see.
    let talking = is_al(true).and([("talking", is(false))]);
    let listed = json!({ "request": "listparticipants", "room": 7 });
    let listed = bo.caller.manage(listed).await;
    said("participants", [("participants", list([is_bo(), talking]))])
        .and([("listening_in", object([("recordings", is(1))]))])
        .check(&listed);
    let handle = |offers: bool, started: bool| {
        object([
            ("plugin-offer", is(offers)),
            ("started", is(started)),
            ("hangingup", is(0)),
            ("destroyed", is(0)),
        ])
    };
    let state = handle(false, true).and([
        ("state", is("inroom")),
        ("room", is(7)),
        ("id", is(1)),
        ("group", is("a")),
        ("display", is("Al")),
        ("admin", is(false)),
        ("muted", is(false)),
        ("active", is(true)),
        ("spatial_position", is(30)),
        ("denoise", is(false)),
        ("audio-recording", is("al-audio.mjr")),
        ("talking", is(false)),
        ("fec", is(true)),
        ("expected-loss", is(5)),
        ("opus-bitrate", is(0)),
        ("suspended", is(false)),
        // A member of the mixer.
        ("buffer-in", Shape::Count),
        ("queue-in", Shape::Count),
        ("queue-out", is(0)),
        ("audio-level-dBov", is(120)),
        // Additions to Janus.
        ("received", Shape::Count),
        ("recovered", Shape::Count),
        ("late", Shape::Count),
        ("refused", is(0)),
        ("concealed", Shape::Count),
    ]);
    state.check(&server.state(&al.caller).await);
    let state = handle(false, false).and([
        ("state", is("inroom")),
        ("room", is(7)),
        ("id", is(2)),
        ("group", is("b")),
        ("admin", is(false)),
        ("muted", is(true)),
        ("active", is(false)),
        ("spatial_position", is(50)),
        ("denoise", is(false)),
        ("fec", is(false)),
        ("expected-loss", is(0)),
        ("opus-bitrate", is(0)),
        ("suspended", is(false)),
        // A participant without media is in the mixer, too.
        ("buffer-in", is(0)),
        ("queue-in", is(0)),
        ("queue-out", is(0)),
        ("received", is(0)),
        ("recovered", is(0)),
        ("late", is(0)),
        ("refused", is(0)),
        ("concealed", Shape::Count),
    ]);
    state.check(&server.state(&bo.caller).await);

    // It is configured, renegotiates, and reconnects.
    let configure = json!({ "request": "configure", "display": "Albert", "record": false });
    ok.check(&al.ask(configure).await["plugindata"]["data"]);
    let albert = object([
        ("id", is(1)),
        ("display", is("Albert")),
        ("setup", is(true)),
        ("muted", is(false)),
        ("spatial_position", is(30)),
    ]);
    bo.expect(&event([("participants", list([albert]))])).await;
    watcher.told(PACKAGE, Some(&al.caller)).await;
    let created = json!({ "request": "create", "room": 8 });
    let created = bo.caller.manage(created).await;
    assert_eq!(created["audiobridge"], "created", "{created}");
    watcher.told(PACKAGE, Some(&bo.caller)).await;
    let change = json!({ "request": "changeroom", "room": 8, "id": 3 });
    let changed = al.ask(change).await["plugindata"]["data"].clone();
    let in_8 = |what: &str| object([("audiobridge", is(what)), ("room", is(8)), ("id", is(3))]);
    in_8("roomchanged")
        .and([("participants", list([]))])
        .check(&changed);
    bo.expect(&event([("leaving", is(1))])).await;
    let left = notice("left", [("id", is(1)), ("display", is("Albert"))]);
    told(&mut watcher, &al, &left).await;
    let shape = object([
        ("event", is("joined")),
        ("room", is(8)),
        ("id", is(3)),
        ("setup", is(true)),
        ("muted", is(false)),
        ("volume", is(100)),
        ("quality", is(9)),
        ("expected_loss", is(5)),
        ("denoise", is(false)),
    ]);
    told(&mut watcher, &al, &shape).await;
    let left = al.ask(json!({ "request": "leave" })).await;
    in_8("left").check(&left["plugindata"]["data"]);
    let shape = object([("event", is("left")), ("room", is(8)), ("id", is(3))]);
    told(&mut watcher, &al, &shape).await;
    let idle = handle(false, true).and([("state", is("idle"))]);
    idle.check(&server.state(&al.caller).await);
    let hangup = al.ask(json!({ "request": "hangup" })).await;
    object([("audiobridge", is("hangingup"))]).check(&hangup["plugindata"]["data"]);
    watcher.expect_silence();
}

#[tokio::test]
async fn whoever_manages_a_room_is_answered_and_those_in_it_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = server(&folder).await;
    let mut admin = Member::offering(&server, PACKAGE).await;
    create(&mut admin, &mut watcher, json!({ "pin": "p" })).await;
    let edited = said("edited", [("permanent", is(false))]);
    let edit = json!({ "new_description": "d", "new_pin": "" });
    managed(&mut admin, "edit", edit, &edited).await;
    told(&mut watcher, &admin, &notice("edited", [])).await;
    let tokens = json!({ "action": "add", "allowed": ["t"] });
    let allowed = success([("allowed", list([is("t")]))]);
    managed(&mut admin, "allowed", tokens, &allowed).await;
    let off = json!({ "action": "disable" });
    managed(&mut admin, "allowed", off, &success([])).await;
    let exists = success([("exists", is(true))]);
    managed(&mut admin, "exists", json!({}), &exists).await;

    let mut al = join(&server, &mut watcher, 1).await;
    let mut bo = join(&server, &mut watcher, 2).await;
    al.expect(&said("joined", [("participants", list([plain(2, false)]))]))
        .await;
    let nothing_new = object([("audiobridge", is("success"))]);
    let of_bo = || json!({ "id": 2 });
    for (name, muted) in [("mute", true), ("unmute", false)] {
        managed(&mut admin, name, of_bo(), &success([])).await;
        managed(&mut admin, name, of_bo(), &nothing_new).await;
        let seen = object([("id", is(2)), ("setup", is(false)), ("muted", is(muted))]);
        let shape = event([("participants", list([seen]))]);
        al.expect(&shape).await;
        bo.expect(&shape).await;
        told(&mut watcher, &admin, &notice(name, [("id", is(2))])).await;
    }
    for (name, muted) in [("mute_room", true), ("unmute_room", false)] {
        managed(&mut admin, name, json!({}), &success([])).await;
        managed(&mut admin, name, json!({}), &nothing_new).await;
        let shape = event([("muted", is(muted))]);
        al.expect(&shape).await;
        bo.expect(&shape).await;
        told(&mut watcher, &admin, &notice(name, [])).await;
    }
    managed(&mut admin, "denoise_enable", of_bo(), &success([])).await;
    managed(&mut admin, "denoise_disable", of_bo(), &success([])).await;

    let paused = json!({ "id": 2, "pause_events": true });
    managed(&mut admin, "suspend", paused, &nothing_new).await;
    let suspended = event([("suspended", is(2))]);
    al.expect(&suspended).await;
    bo.expect(&suspended).await;
    told(&mut watcher, &admin, &notice("suspended", [("id", is(2))])).await;
    let is_suspended = plain(2, false).and([("suspended", is(true))]);
    let shape = said(
        "participants",
        [("participants", list([plain(1, false), is_suspended]))],
    );
    managed(&mut admin, "listparticipants", json!({}), &shape).await;
    managed(&mut admin, "resume", of_bo(), &nothing_new).await;
    al.expect(&event([("resumed", is(2))])).await;
    let recap = list([plain(1, false)]);
    bo.expect(&event([("resumed", is(2)), ("participants", recap)]))
        .await;
    told(&mut watcher, &admin, &notice("resumed", [("id", is(2))])).await;

    // The mix is forwarded.
    let to = json!({ "host": "127.0.0.1", "port": 9, "codec": "pcmu", "ssrc": 5 });
    let forwarded = admin.caller.manage(request("rtp_forward", to)).await;
    let stream = || ("stream_id", is(forwarded["stream_id"].clone()));
    let shape = [
        ("stream_id", Shape::Count),
        ("host", is("127.0.0.1")),
        ("port", is(9)),
    ];
    success(shape).check(&forwarded);
    let forwarder = object([
        stream(),
        ("ip", is("127.0.0.1")),
        ("port", is(9)),
        ("ssrc", is(5)),
        ("codec", is("pcmu")),
        ("ptype", is(0)),
        ("always_on", is(false)),
    ]);
    let shape = said("forwarders", [("rtp_forwarders", list([forwarder]))]);
    managed(&mut admin, "listforwarders", json!({}), &shape).await;
    let stop = json!({ "stream_id": forwarded["stream_id"] });
    managed(&mut admin, "stop_rtp_forward", stop, &success([stream()])).await;

    // The room is recorded.
    for record in [true, false] {
        let shape = object([("audiobridge", is("success")), ("record", is(record))]);
        let members = json!({ "record": record, "record_file": "mix" });
        managed(&mut admin, "enable_recording", members, &shape).await;
        let shape = object([("audiobridge", is("success")), ("mjrs", is(record))]);
        managed(&mut admin, "enable_mjrs", json!({ "mjrs": record }), &shape).await;
    }
    let done = notice("recordingdone", [("record_file", is("mix.wav"))]);
    done.check(&watcher.told(PACKAGE, None).await);

    // A file is played to the room.
    let path = folder.path().join("bell.opus");
    ogg_opus(&path, (0..100).map(|_| SILENCE.to_vec()));
    let file = || ("file_id", is("bell"));
    let play = json!({ "filename": path, "file_id": "bell", "loop": true });
    managed(&mut admin, "play_file", play, &success([file()])).await;
    let started = said("announcement-started", [file()]);
    al.expect(&started).await;
    bo.expect(&started).await;
    notice("announcement-started", [file()]).check(&watcher.told(PACKAGE, None).await);
    let of_bell = || json!({ "file_id": "bell" });
    let shape = success([file(), ("playing", is(true))]);
    managed(&mut admin, "is_playing", of_bell(), &shape).await;
    let announcement = object([
        file(),
        ("filename", is(path.display().to_string())),
        ("playing", is(true)),
        ("loop", is(true)),
    ]);
    let shape = said("announcements", [("announcements", list([announcement]))]);
    managed(&mut admin, "listannouncements", json!({}), &shape).await;
    managed(&mut admin, "stop_file", of_bell(), &success([file()])).await;
    let stopped = said("announcement-stopped", [file()]);
    al.expect(&stopped).await;
    bo.expect(&stopped).await;
    notice("announcement-stopped", [file()]).check(&watcher.told(PACKAGE, None).await);
    let shape = success([("file_id_list", list([]))]);
    managed(&mut admin, "stop_all_files", json!({}), &shape).await;

    // Participants are kicked, and the room ends.
    let room = object([
        ("room", is(7)),
        ("description", is("d")),
        ("sampling_rate", is(16_000)),
        ("spatial_audio", is(false)),
        ("pin_required", is(false)),
        ("record", is(false)),
        ("muted", is(false)),
        ("num_participants", is(2)),
    ]);
    let shape = object([("audiobridge", is("success")), ("list", list([room]))]);
    shape.check(&admin.caller.manage(json!({ "request": "list" })).await);
    managed(&mut admin, "kick", of_bo(), &nothing_new).await;
    let kicked = event([("kicked", is(2))]);
    al.expect(&kicked).await;
    bo.expect(&kicked).await;
    al.expect(&event([("leaving", is(2))])).await;
    told(&mut watcher, &admin, &notice("kicked", [("id", is(2))])).await;
    told(&mut watcher, &bo, &notice("left", [("id", is(2))])).await;
    managed(&mut admin, "kick_all", json!({}), &nothing_new).await;
    al.expect(&event([("kicked_all", is(1))])).await;
    told(&mut watcher, &admin, &notice("kicked_all", [("id", is(1))])).await;
    let mut cy = join(&server, &mut watcher, 3).await;
    let shape = object([("audiobridge", is("success")), ("record", is(true))]);
    let members = json!({ "record": true, "record_file": "last" });
    managed(&mut admin, "enable_recording", members, &shape).await;
    let destroyed = said("destroyed", [("permanent", is(false))]);
    managed(&mut admin, "destroy", json!({}), &destroyed).await;
    cy.expect(&said("destroyed", [])).await;
    told(&mut watcher, &admin, &notice("destroyed", [])).await;
    let done = notice("recordingdone", [("record_file", is("last.wav"))]);
    done.check(&watcher.told(PACKAGE, None).await);
    watcher.expect_silence();
}

#[tokio::test]
async fn plain_rtp_and_listeners_are_told_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = server(&folder).await;
    let mut al = Member::offering(&server, PACKAGE).await;
    create(
        &mut al,
        &mut watcher,
        json!({ "allow_rtp_participants": true }),
    )
    .await;
    let mut bo = join(&server, &mut watcher, 2).await;
    let rtp = json!({ "ip": "127.0.0.1", "port": 9, "payload_type": 111, "fec": true });
    let join = json!({ "request": "join", "room": 7, "id": 1, "rtp": rtp });
    let joined = al.ask(join).await["plugindata"]["data"].clone();
    let port = || is(joined["rtp"]["port"].clone());
    let rtp = object([
        ("ip", is("127.0.0.1")),
        ("port", Shape::Count),
        ("payload_type", is(111)),
    ]);
    let others = ("participants", list([plain(2, false)]));
    said("joined", [("id", is(1)), others, ("rtp", rtp)]).check(&joined);
    told(&mut watcher, &al, &heard("joined", (1, true))).await;
    bo.expect(&said("joined", [("participants", list([plain(1, false)]))]))
        .await;
    bo.expect(&event([("participants", list([plain(1, true)]))]))
        .await;
    let rtp = object([
        ("local-ip", is("127.0.0.1")),
        ("local-port", port()),
        ("remote-ip", is("127.0.0.1")),
        ("remote-port", is(9)),
        ("local-ssrc", Shape::Count),
    ]);
    let state = object([
        ("state", is("inroom")),
        ("room", is(7)),
        ("id", is(1)),
        ("admin", is(false)),
        ("muted", is(false)),
        ("active", is(true)),
        ("denoise", is(false)),
        ("fec", is(true)),
        ("expected-loss", is(0)),
        ("opus-bitrate", is(0)),
        ("plain-rtp", rtp),
        ("suspended", is(false)),
        ("plugin-offer", is(false)),
        ("started", is(false)),
        ("hangingup", is(0)),
        ("destroyed", is(0)),
        ("buffer-in", Shape::Count),
        ("queue-in", Shape::Count),
        ("queue-out", is(0)),
        ("received", is(0)),
        ("recovered", is(0)),
        ("late", is(0)),
        ("refused", is(0)),
        ("concealed", Shape::Count),
    ]);
    state.check(&server.state(&al.caller).await);
    al.caller.request("detach", json!({})).await;
    bo.expect(&event([("leaving", is(1))])).await;
    told(&mut watcher, &al, &notice("left", [("id", is(1))])).await;

    // The plugin offers to a participant that only listens.
    let mut eve = Member::answering(&server, PACKAGE).await;
    let listening = eve.ask(json!({ "request": "listen", "room": 7 })).await;
    said("listening", []).check(&listening["plugindata"]["data"]);
    let offer = object([("type", is("offer")), ("sdp", Shape::Begins("v=0"))]);
    offer.check(&listening["jsep"]);
    let answer = json!({ "type": "answer", "sdp": eve.peer.answer(sdp(&listening)) });
    let configure = json!({ "request": "configure" });
    eve.caller.message_with(configure, answer).await;
    let ok = object([("audiobridge", is("event")), ("result", is("ok"))]);
    eve.expect(&ok).await;
    assert_eq!(eve.connect().await, [] as [Value; 0]);
    let state = object([
        ("state", is("listening")),
        ("room", is(7)),
        ("plugin-offer", is(true)),
        ("started", is(true)),
        ("hangingup", is(0)),
        ("destroyed", is(0)),
    ]);
    state.check(&server.state(&eve.caller).await);
    let listed = bo.caller.manage(json!({ "request": "list" })).await;
    assert_eq!(listed["list"][0]["num_listeners"], 1, "{listed}");
    assert_eq!(listed["list"][0]["num_participants"], 1, "{listed}");
    watcher.expect_silence();
}
