//! Playing: offers, the order of packets, and the end.

use std::time::Duration;

use portunus_core::media::ingest::{IngestFeed, IngestMedia};
use portunus_core::sdp::Codec;
use portunus_files::bitstream::Setup;
use portunus_files::container::{
    Container, Edits, FileInfo, FrameOut, Rotation, TrackSetup, writer,
};
use portunus_files::mjr::{FrameWriter, Info, Medium, UnixMicros};
use serde_json::{Value, json};

use crate::world::{World, answer_to, ask, expect, opus, play, record, result, start};

/// The number of packets sent to the ingests, in the order of the tracks.
fn fed(world: &World) -> Vec<usize> {
    let ingests = world.server.requested().ingests;
    let count = |options: &portunus_core::media::ingest::IngestOptions| match &options.feed {
        IngestFeed::Packets(feed) => std::iter::from_fn(|| feed.take_packet()).count(),
        other => panic!("{other:?}"),
    };
    ingests.iter().map(|it| count(&it.options)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_recording_plays_by_its_clock_to_its_end() {
    let world = World::new().await;
    world.shelve(1, |_| {});
    let mut client = world.attach().await;
    client.request(json!({ "request": "update" })).await;
    let (told, offer) = play(&mut client, 1).await;
    assert_eq!(
        told,
        json!({ "status": "preparing", "id": 1, "duration": 980 })
    );
    let sdp = offer["sdp"].as_str().unwrap();
    assert!(
        sdp.contains("s=Recording 1\r\n") && sdp.contains("a=sendonly"),
        "{sdp}"
    );
    assert!(sdp.contains("a=rtpmap:111 opus/48000/2"), "{sdp}");
    assert!(!sdp.contains("m=video"), "{sdp}");
    let numbers = sdp
        .lines()
        .filter_map(|line| line.strip_prefix("a=extmap:"));
    let numbers: Vec<_> = numbers
        .map(|rest| rest.split(' ').next().unwrap())
        .collect();
    assert_eq!(numbers, ["4"], "browsers take 1 to 14");
    start(&mut client, &offer).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    client.expect_silence().await;
    assert!(
        world.server.requested().ingests.is_empty(),
        "it is not up yet"
    );

    world.up(&mut client).await;
    tokio::time::sleep(Duration::from_millis(410)).await;
    let ingest = world.server.requested().ingests[0].options.clone();
    let IngestMedia::Rtp(rtp) = &ingest.media else {
        panic!("{ingest:?}")
    };
    assert_eq!((rtp.codec, rtp.clock_rate), (Codec::Opus, 48_000));
    let came = fed(&world);
    assert!((19..=21).contains(&came[0]), "{came:?}");
    let done = result(&mut client).await;
    assert_eq!(done, json!({ "status": "done", "id": 1, "is_private": 0 }));
    let hangup = client.next().await;
    assert_eq!(
        (&hangup["janus"], &hangup["reason"]),
        (&json!("hangup"), &json!("Close PC"))
    );
    assert!(world.server.requested().ingests.is_empty());
    assert_eq!(world.counter("playouts"), 1);
    assert_eq!(world.state(&client).await["type"], "none");
}

/// A client that plays recording 1, which has so many packets of 20 ms.
async fn playing(world: &World, packets: u16) -> portunus_core::testing::TestClient {
    world.shelve(1, |_| {});
    std::fs::write(world.path("rec-1-audio.mjr"), opus(packets)).unwrap();
    let mut client = world.attach().await;
    client.request(json!({ "request": "update" })).await;
    let (_, offer) = play(&mut client, 1).await;
    start(&mut client, &offer).await;
    world.up(&mut client).await;
    client
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_all_who_play_it() {
    let world = World::new().await;
    let mut one = playing(&world, 500).await;
    let mut other = world.attach().await;
    let (_, offer) = play(&mut other, 1).await;
    start(&mut other, &offer).await;
    world.up(&mut other).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for (request, status) in [("pause", "paused"), ("pause", "paused")] {
        let told = ask(&mut one, json!({ "request": request })).await;
        assert_eq!(told, json!({ "status": status, "id": 1 }));
    }
    fed(&world);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(fed(&world), [0, 0]);
    let told = ask(&mut other, json!({ "request": "resume" })).await;
    assert_eq!(told, json!({ "status": "resumed", "id": 1 }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(fed(&world).iter().all(|came| (48..=52).contains(came)));
    // A pause ends with the last player.
    ask(&mut one, json!({ "request": "pause" })).await;
    for client in [&mut one, &mut other] {
        assert_eq!(
            ask(client, json!({ "request": "stop" })).await["status"],
            "stopped"
        );
        assert_eq!(result(client).await["status"], "done");
        expect(client, "hangup").await;
    }
    let (_, offer) = play(&mut one, 1).await;
    start(&mut one, &offer).await;
    world.up(&mut one).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(fed(&world)[0] > 40);
}

#[tokio::test(start_paused = true)]
async fn a_seek_goes_to_another_place() {
    let world = World::new().await;
    let mut client = playing(&world, 1_000).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let told = ask(
        &mut client,
        json!({ "request": "seek", "position": 19_000 }),
    )
    .await;
    assert_eq!(
        told,
        json!({ "status": "seeking", "id": 1, "position": 19_000 })
    );
    tokio::time::sleep(Duration::from_millis(2_000)).await;
    assert_eq!(result(&mut client).await["status"], "done");
    expect(&mut client, "hangup").await;
    // Also before it starts.
    let (_, offer) = play(&mut client, 1).await;
    ask(
        &mut client,
        json!({ "request": "seek", "position": 15_000 }),
    )
    .await;
    start(&mut client, &offer).await;
    world.up(&mut client).await;
    tokio::time::sleep(Duration::from_millis(6_000)).await;
    assert_eq!(result(&mut client).await["status"], "done");
}

#[tokio::test]
async fn another_recording_is_played_on_the_same_connection() {
    let world = World::new().await;
    let mut client = playing(&world, 500).await;
    world.shelve(2, |nfo| {
        nfo.files.video = Some("rec-2-video.mjr".to_owned())
    });
    std::fs::write(world.path("rec-2-video.mjr"), vp8(50)).unwrap();
    client.request(json!({ "request": "update" })).await;
    let (told, offer) = play(&mut client, 2).await;
    assert_eq!(told["id"], 2);
    let sdp = offer["sdp"].as_str().unwrap();
    assert!(sdp.contains("a=rtpmap:100 VP8/90000"), "{sdp}");
    assert_eq!(sdp.matches("a=sendonly").count(), 2);
    start(&mut client, &offer).await;
    let ingests = world.server.requested().ingests;
    assert_eq!(ingests.len(), 2, "those of the first one are gone");
    assert_eq!(world.server.requested().routes.len(), 2);

    let restarted = {
        let body = json!({ "request": "play", "id": 2, "restart": true });
        client.message(body, None).await;
        client.event_with_jsep().await
    };
    assert_eq!(
        restarted.0["result"],
        json!({ "status": "restarting", "id": 2 })
    );
    let ufrag = |offer: &Value| {
        let sdp = offer["sdp"].as_str().unwrap().to_owned();
        sdp.lines()
            .find(|line| line.starts_with("a=ice-ufrag"))
            .unwrap()
            .to_owned()
    };
    assert_ne!(ufrag(&restarted.1.unwrap()), ufrag(&offer));
}

fn vp8(pictures: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let start = 1_700_000_000_000_000;
    let info = Info::new(Medium::Video, "vp8", UnixMicros(start));
    let mut writer = FrameWriter::new(info, &mut bytes);
    for number in 0..pictures {
        let mut packet = vec![0x80, 0x80 | 96];
        packet.extend_from_slice(&number.to_be_bytes());
        packet.extend_from_slice(&(u32::from(number) * 3_600).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 9, 0x10, 0x10, 0, 0, 0x9d, 1, 0x2a, 0, 1, 0, 1]);
        let at = UnixMicros(start + u64::from(number) * 40_000);
        writer.packet(at, &packet, &mut bytes).unwrap();
    }
    bytes
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_told() {
    let world = World::new().await;
    world.shelve(1, |nfo| {
        nfo.files.video = Some("rec-1-video.mjr".to_owned())
    });
    std::fs::write(world.path("rec-1-video.mjr"), "no recording").unwrap();
    world.shelve(2, |nfo| nfo.files.video = Some("missing.mjr".to_owned()));
    let mut client = world.attach().await;
    client.request(json!({ "request": "update" })).await;
    for id in [1, 2] {
        let (told, _) = play(&mut client, id).await;
        let warning = told["warning"].as_str().unwrap();
        assert!(warning.starts_with("Not played: video: "), "{warning}");
        assert!(
            !warning.contains(world.folder.path().to_str().unwrap()),
            "{warning}"
        );
    }
    std::fs::write(world.path("rec-1-audio.mjr"), "").unwrap();
    client
        .message(json!({ "request": "play", "id": 1 }), None)
        .await;
    assert_eq!(client.event().await["error_code"], 417);
}

#[tokio::test(start_paused = true)]
async fn messages_are_sent_on_a_data_channel() {
    let world = World::new().await;
    world.shelve(1, |nfo| nfo.files.data = Some("rec-1-data.mjr".to_owned()));
    let mut bytes = Vec::new();
    let start_at = 1_700_000_000_000_000;
    let info = Info::new(Medium::Data, "text", UnixMicros(start_at));
    let mut writer = FrameWriter::new(info, &mut bytes);
    let at = UnixMicros(start_at + 500_000);
    writer.message(at, b"hello", &mut bytes).unwrap();
    std::fs::write(world.path("rec-1-data.mjr"), bytes).unwrap();
    let mut client = world.attach().await;
    client.request(json!({ "request": "update" })).await;
    let (_, offer) = play(&mut client, 1).await;
    assert!(
        offer["sdp"]
            .as_str()
            .unwrap()
            .contains("webrtc-datachannel")
    );
    start(&mut client, &offer).await;
    world.up(&mut client).await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    let data = world.server.requested().data;
    let payload = portunus_core::media::DataPayload::Text("hello".to_owned());
    assert_eq!((data.len(), &data[0].1.payload), (1, &payload));
}

#[tokio::test]
async fn a_recording_of_another_plugin_plays_by_its_name() {
    let world = World::new().await;
    let put = |name: &str, bytes: &[u8]| std::fs::write(world.folder.path().join(name), bytes);
    put("room-1-audio.mjr", &opus(50)).unwrap();
    put("room-1-video.mjr", &vp8(50)).unwrap();
    put("alone.mjr", &opus(50)).unwrap();
    let mut client = world.attach().await;
    for (name, lines) in [
        ("room-1", 2),
        ("room-1-audio.mjr", 1),
        ("alone.mjr", 1),
        ("alone", 1),
    ] {
        client
            .message(json!({ "request": "play", "file": name }), None)
            .await;
        let (data, offer) = client.event_with_jsep().await;
        assert_eq!(data["result"]["file"], name, "{data}");
        let offer = offer.unwrap();
        let sdp = offer["sdp"].as_str().unwrap();
        assert_eq!(sdp.matches("a=sendonly").count(), lines, "{name}");
        let answer = Some(answer_to(&offer));
        client.message(json!({ "request": "start" }), answer).await;
        assert_eq!(result(&mut client).await["status"], "playing");
    }
    for name in ["nothing", "../secret", "/etc/passwd", "room-1-data.mjr"] {
        client
            .message(json!({ "request": "play", "file": name }), None)
            .await;
        assert_eq!(client.event().await["error_code"], 416, "{name}");
    }
    let mut stranger = world.server.attach_stranger(crate::world::PACKAGE).await;
    stranger
        .message(json!({ "request": "play", "file": "alone" }), None)
        .await;
    assert_eq!(stranger.event().await["error_code"], 440);
}

#[tokio::test]
async fn what_is_being_recorded_is_not_played() {
    let world = World::new().await;
    let mut client = world.attach().await;
    let lines = [portunus_core::testing::Line::Audio];
    record(&mut client, &lines, json!({ "id": 1 })).await;
    let mut other = world.attach().await;
    other
        .message(json!({ "request": "play", "id": 1 }), None)
        .await;
    let data = other.event().await;
    assert_eq!(
        (&data["error_code"], &data["error"]),
        (&json!(416), &json!("No such recording"))
    );
}

/// The start of a container by [`webm`].
const BEGUN: u64 = 1_700_000_000_000_000;

/// A container with so many audio packets.
fn webm(packets: u64) -> Vec<u8> {
    let info = FileInfo {
        title: None,
        started_us: BEGUN,
        tracks: 1,
    };
    let mut writer = writer(Container::WebM, info);
    let mut edits = Edits::default();
    let setup = TrackSetup {
        setup: Setup::Opus { channels: 2 },
        picture: None,
        rotation: Rotation::R0,
        name: None,
    };
    writer.set_track(0, setup, &mut edits).unwrap();
    for number in 0..packets {
        let frame = FrameOut {
            track: 0,
            at: Duration::from_millis(number * 20),
            duration: Duration::from_millis(20),
            keyframe: true,
            data: &[0xf8, 1, 2],
        };
        writer.frame(&frame, &mut edits).unwrap();
    }
    writer.finish(&mut edits);
    let mut bytes = edits.append;
    for (at, patch) in edits.patches {
        let at = at as usize;
        bytes[at..at + patch.len()].copy_from_slice(&patch);
    }
    bytes
}

#[tokio::test(start_paused = true)]
async fn messages_beside_a_container_come_with_it_over_pauses_and_seeks() {
    let world = World::new().await;
    world.shelve(1, |nfo| {
        nfo.files.audio = Some("rec-1.webm".to_owned());
        nfo.files.data = Some("rec-1-data.mjr".to_owned());
    });
    let mut bytes = Vec::new();
    let first = BEGUN + 500_000;
    let info = Info::new(Medium::Data, "text", UnixMicros(first));
    let mut writer = FrameWriter::new(info, &mut bytes);
    for (ms, text) in [(0, "0.5"), (1_000, "1.5"), (8_500, "9.0")] {
        let at = UnixMicros(first + ms * 1_000);
        writer.message(at, text.as_bytes(), &mut bytes).unwrap();
    }
    std::fs::write(world.path("rec-1-data.mjr"), bytes).unwrap();
    std::fs::write(world.path("rec-1.webm"), webm(500)).unwrap();
    let mut client = world.attach().await;
    client.request(json!({ "request": "update" })).await;
    let (told, offer) = play(&mut client, 1).await;
    let expected = json!({ "status": "preparing", "id": 1, "duration": 10_000 });
    assert_eq!(told, expected, "and no warning");
    let sdp = offer["sdp"].as_str().unwrap();
    assert!(sdp.contains("webrtc-datachannel"), "{sdp}");
    start(&mut client, &offer).await;
    world.up(&mut client).await;
    let said = || {
        let data = world.server.requested().data;
        let text = data.into_iter().map(|(_, message)| message.payload);
        text.collect::<Vec<_>>()
    };
    let text = |text: &str| portunus_core::media::DataPayload::Text(text.to_owned());
    let wait = async |ms: u64| tokio::time::sleep(Duration::from_millis(ms)).await;
    wait(480).await;
    assert_eq!(said(), []);
    wait(100).await;
    assert_eq!(said(), [text("0.5")]);
    ask(&mut client, json!({ "request": "pause" })).await;
    wait(20_000).await;
    assert_eq!(said(), [text("0.5")]);
    ask(&mut client, json!({ "request": "resume" })).await;
    wait(800).await;
    assert_eq!(said(), [text("0.5")]);
    wait(200).await;
    assert_eq!(said(), [text("0.5"), text("1.5")]);
    let seek = json!({ "request": "seek", "position": 8_000 });
    assert_eq!(ask(&mut client, seek).await["status"], "seeking");
    wait(950).await;
    assert_eq!(said().len(), 2);
    wait(100).await;
    assert_eq!(said().last(), Some(&text("9.0")));
    assert_eq!(result(&mut client).await["status"], "done");
    expect(&mut client, "hangup").await;

    // An empty data channel causes no warning, and a name plays with its other files.
    std::fs::write(world.path("rec-1-data.mjr"), "MJR00002").unwrap();
    let (told, _) = play(&mut client, 1).await;
    assert_eq!(told.get("warning"), None);
    let body = json!({ "request": "play", "file": "recordplay/rec-1" });
    client.message(body, None).await;
    let (data, _) = client.event_with_jsep().await;
    assert_eq!(data["result"]["duration"], 10_000, "{data}");
}

#[tokio::test]
async fn only_so_many_play_and_who_stops_makes_room() {
    let world = World::new().await;
    world.shelve(1, |_| {});
    let mut clients = Vec::new();
    for _ in 0..1_000 {
        let mut client = world.attach().await;
        if clients.is_empty() {
            client.request(json!({ "request": "update" })).await;
        }
        play(&mut client, 1).await;
        clients.push(client);
    }
    let body = json!({ "request": "play", "id": 1 });
    let mut late = world.attach().await;
    late.message(body.clone(), None).await;
    let refused = late.event().await;
    assert_eq!(refused["error_code"], 499, "{refused}");
    // A player may play another recording. A failure takes no place.
    play(&mut clients[0], 1).await;
    let unknown = json!({ "request": "play", "id": 7 });
    ask(&mut clients[1], json!({ "request": "stop" })).await;
    for _ in 0..2 {
        late.message(unknown.clone(), None).await;
        assert_eq!(late.event().await["error_code"], 416);
    }
    play(&mut late, 1).await;
}
