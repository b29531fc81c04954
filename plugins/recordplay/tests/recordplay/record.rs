//! Recording: answers, files, and the end.

use std::time::{Duration, Instant};

use portunus_core::media::testing::Requested;
use portunus_core::sdp::{Codec, Kind};
use portunus_core::testing::Line;
use portunus_files::{Play, Playback};
use serde_json::json;

use crate::world::{World, ask, offer, play, record, result, say, show};

#[tokio::test]
async fn what_is_recorded_can_be_listed_and_played() {
    let world = World::new().await;
    let mut client = world.attach().await;
    let (status, answer) =
        record(&mut client, &[Line::Audio, Line::Video], json!({ "id": 7 })).await;
    assert_eq!(
        status,
        json!({ "status": "recording", "id": 7, "is_private": false })
    );
    assert!(answer.contains("s=Recording 7\r\n"), "{answer}");
    assert_eq!(answer.matches("a=recvonly").count(), 2);
    assert!(answer.contains("opus/48000/2") && answer.contains("VP8/90000"));
    assert!(!answer.contains(" red/"));
    let files = ["7.nfo.recording", "rec-7-audio.mjr", "rec-7-video.mjr"];
    assert_eq!(world.files(), files);
    assert!(world.list().await.is_empty());
    world.up(&mut client).await;
    say(&world.taps()[0], 0..100);
    let stopped = ask(&mut client, json!({ "request": "Stop" })).await;
    assert_eq!(
        stopped,
        json!({ "status": "stopped", "id": 7, "is_private": 0 })
    );
    let done = result(&mut client).await;
    assert_eq!(done, json!({ "status": "done", "id": 7, "is_private": 0 }));
    let hangup = client.next().await;
    assert_eq!(
        (&hangup["janus"], &hangup["reason"]),
        (&json!("hangup"), &json!("Close PC"))
    );

    let list = world.list().await;
    let [entry] = &list[..] else {
        panic!("{list:?}")
    };
    assert_eq!((&entry["id"], &entry["name"]), (&json!(7), &json!("demo")));
    assert_eq!(entry["audio_codec"], "opus");
    assert_eq!(entry["duration"], 99 * 20);
    assert_eq!(entry["video"], false, "nothing came of it");
    assert_eq!(world.files(), ["7.nfo", "rec-7-audio.mjr"]);
    let nfo = std::fs::read_to_string(world.path("7.nfo")).unwrap();
    assert!(
        nfo.starts_with("[7]\r\nname = demo\r\nprivate = false\r\ndate = 20"),
        "{nfo}"
    );
    let (playback, _) = Playback::open(&[world.path("rec-7-audio.mjr")]).unwrap();
    assert_eq!(playback.duration(), Some(Duration::from_millis(1_980)));
    assert_eq!(world.counter("recordings"), 1);
}

#[tokio::test]
async fn a_file_that_becomes_too_long_ends_the_recording_whichever_it_is() {
    let world = World::with(|_| {}, |recording| recording.max_file_bytes = 1_000).await;
    let mut client = world.attach().await;
    record(&mut client, &[Line::Audio, Line::Video], json!({ "id": 8 })).await;
    world.up(&mut client).await;
    let taps = world.taps();
    say(&taps[0], 0..10);
    // 5 s are left out, because there is no keyframe.
    show(&taps[1], 0..400);
    let done = result(&mut client).await;
    assert_eq!(done, json!({ "status": "done", "id": 8, "is_private": 0 }));
    assert_eq!(client.next().await["janus"], "hangup");
    let list = world.list().await;
    assert_eq!(list[0]["duration"].as_u64().map(|it| it > 100), Some(true));
}

#[tokio::test]
async fn a_lost_connection_ends_the_recording() {
    let world = World::new().await;
    let mut client = world.attach().await;
    record(
        &mut client,
        &[Line::Audio],
        json!({ "id": 1, "is_private": true }),
    )
    .await;
    world.up(&mut client).await;
    say(&world.taps()[0], 0..50);
    world.lose().await;
    let done = result(&mut client).await;
    assert_eq!(done, json!({ "status": "done", "id": 1, "is_private": 1 }));
    assert_eq!(client.next().await["janus"], "hangup");
    assert!(world.list().await.is_empty(), "it is private");
    assert!(world.files().contains(&"1.nfo".to_owned()));
    // Another one can follow.
    record(&mut client, &[Line::Audio], json!({ "id": 2 })).await;
}

#[tokio::test]
async fn a_client_that_goes_leaves_a_recording() {
    let world = World::new().await;
    let mut client = world.attach().await;
    record(&mut client, &[Line::Audio], json!({})).await;
    say(&world.taps()[0], 0..50);
    client.on_handle("detach", json!({})).await;
    assert_eq!(world.list().await.len(), 1);
}

#[tokio::test]
async fn names_codecs_and_redundancy_are_the_clients_to_choose() {
    let world = World::new().await;
    let mut client = world.attach().await;
    let wishes = json!({
        "id": 3, "filename": "mine", "videocodec": "VP9", "videoprofile": "0", "opusred": true,
    });
    let (_, answer) = record(&mut client, &[Line::Audio, Line::Video], wishes).await;
    assert!(
        answer.contains("VP9/90000") && !answer.contains("VP8"),
        "{answer}"
    );
    assert!(answer.contains(" red/48000/2"), "{answer}");
    assert_eq!(world.files()[1..], ["mine-audio.mjr", "mine-video.mjr"]);
    for line in [
        "urn:ietf:params:rtp-hdrext:ssrc-audio-level",
        "urn:ietf:params:rtp-hdrext:sdes:mid",
    ] {
        assert!(answer.contains(line), "{line}");
    }
}

#[tokio::test]
async fn only_the_first_of_each_kind_is_taken_and_what_is_not_sent_is_not_recorded() {
    let world = World::new().await;
    let mut client = world.attach().await;
    let lines = [Line::Audio, Line::Audio, Line::Video];
    let mut several = offer(&lines);
    let sdp = several["sdp"].as_str().unwrap();
    let video = sdp.rfind("a=sendrecv").unwrap();
    let sdp = format!("{}a=recvonly{}", &sdp[..video], &sdp[video + 10..]);
    several["sdp"] = json!(sdp);
    let body = json!({ "request": "record", "name": "n", "id": 4 });
    client.message(body, Some(several)).await;
    let (data, answer) = client.event_with_jsep().await;
    assert_eq!(data["result"]["id"], 4, "{data}");
    let answer = answer.unwrap()["sdp"].as_str().unwrap().to_owned();
    assert_eq!(answer.matches("m=audio 0 ").count(), 1, "{answer}");
    assert_eq!(world.files(), ["4.nfo.recording", "rec-4-audio.mjr"]);
}

#[tokio::test]
async fn messages_of_data_channels_are_recorded() {
    let world = World::new().await;
    let mut client = world.attach().await;
    let (_, answer) = record(&mut client, &[Line::Audio, Line::Data], json!({ "id": 5 })).await;
    assert!(!answer.contains("m=application 0"), "{answer}");
    assert!(world.files().contains(&"rec-5-data.mjr".to_owned()));
}

#[tokio::test]
async fn a_renegotiation_goes_on_with_the_same_recording() {
    let world = World::new().await;
    let mut client = world.attach().await;
    let version = |sdp: &str| -> u64 {
        let origin = sdp.lines().find(|line| line.starts_with("o=")).unwrap();
        origin.split(' ').nth(2).unwrap().parse().unwrap()
    };
    let (_, first) = record(&mut client, &[Line::Audio], json!({ "id": 6 })).await;
    let more = json!({ "id": 9, "update": true });
    let (status, second) = record(&mut client, &[Line::Audio, Line::Video], more).await;
    assert_eq!(status["id"], 6);
    assert_eq!(version(&second), version(&first) + 1);
    assert!(second.contains("s=Recording 6\r\n"));
    // The new tracks are recorded from here on.
    assert!(second.contains("VP8/90000"));
    while !world.files().contains(&"rec-6-video.mjr".to_owned()) {
        tokio::task::yield_now().await;
    }
    assert!(world.taps()[1].pretend_first(Kind::Video));
    assert_eq!(world.state(&client).await["recording_id"], 6);
    // A crash from now on loses none of them, because the next start reads this file.
    let word = world.path("6.nfo.recording");
    let is_told = || {
        let word = std::fs::read_to_string(&word).unwrap();
        word.contains("audio = rec-6-audio.mjr\r\nvideo = rec-6-video.mjr\r\n")
    };
    let told = async {
        while !is_told() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), told)
        .await
        .unwrap();
    ask(&mut client, json!({ "request": "stop" })).await;
    assert!(world.list().await[0]["video"].as_bool().unwrap());
    assert_eq!(world.files()[0], "6.nfo", "{:?}", world.files());
    assert!(!word.exists());
}

#[tokio::test]
async fn the_sender_is_asked_for_a_bitrate_and_for_keyframes() {
    let world = World::new().await;
    let mut client = world.attach().await;
    record(&mut client, &[Line::Audio, Line::Video], json!({})).await;
    // Files are made by a thread with another clock.
    tokio::time::pause();
    world.up(&mut client).await;
    let asked = || {
        let Requested {
            bitrates,
            keyframes,
            ..
        } = world.server.requested();
        (bitrates.len(), bitrates.last().copied(), keyframes.len())
    };
    let mut seen = Vec::new();
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let (_, bitrate, _) = asked();
        if seen.last() != Some(&bitrate) {
            seen.push(bitrate);
        }
    }
    let bitrates: Vec<_> = seen
        .into_iter()
        .flatten()
        .map(|(_, bitrate)| bitrate)
        .collect();
    let expected = [4, 3, 2, 1].map(|share| Some(1_048_576 / share));
    assert_eq!(bitrates, expected);
    let before = asked().2;
    tokio::time::sleep(Duration::from_secs(46)).await;
    assert_eq!(asked().2 - before, 3);
    let settings = json!({ "request": "configure", "video-bitrate-max": 500_000, "video-keyframe-interval": 1_000 });
    client.request(settings).await;
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    assert_eq!(asked().2 - before, 6);
    assert_eq!(asked().1.unwrap().1, Some(500_000));
}

#[tokio::test]
async fn a_pause_closes_the_gates() {
    let world = World::new().await;
    let mut client = world.attach().await;
    record(&mut client, &[Line::Audio], json!({ "id": 8 })).await;
    world.up(&mut client).await;
    for (request, status) in [
        ("pause", "paused"),
        ("pause", "paused"),
        ("resume", "resumed"),
    ] {
        let told = ask(&mut client, json!({ "request": request })).await;
        assert_eq!(told, json!({ "status": status, "id": 8 }));
        let open = world.taps()[0].options.enabled;
        assert_eq!(open, request == "resume");
    }
}

#[tokio::test]
async fn a_container_has_all_in_one_file() {
    let world = World::new().await;
    let mut client = world.attach().await;
    let webm = json!({ "id": 9, "record_format": "webm" });
    let (status, _) = record(&mut client, &[Line::Audio, Line::Video], webm).await;
    assert_eq!(status["id"], 9);
}

/// Records a container whose audio has another codec for a second: three files.
async fn in_parts(world: &World, id: u64) {
    let mut client = world.attach().await;
    let webm = json!({ "id": id, "record_format": "webm" });
    record(&mut client, &[Line::Audio], webm).await;
    let tap = world.taps().pop().unwrap();
    let begun = Instant::now();
    for sequence in 0..150_u16 {
        let at = begun + Duration::from_millis(20) * sequence.into();
        let mut packet = vec![0x80, 111];
        packet.extend_from_slice(&sequence.to_be_bytes());
        let (codec, rate) = match sequence {
            50..100 => (Codec::Pcmu, 160),
            _ => (Codec::Opus, 960),
        };
        packet.extend_from_slice(&(u32::from(sequence) * rate).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 7, 0xfc, 1, 2]);
        packet.resize(172, 0xff);
        assert!(tap.pretend_packet(&packet, codec, at));
    }
    client.on_handle("detach", json!({})).await;
}

#[tokio::test]
async fn a_recording_in_parts_is_listed_and_played_as_one() {
    let world = World::new().await;
    in_parts(&world, 9).await;
    let list = world.list().await;
    let names = ["9.nfo", "rec-9-2.mkv", "rec-9-3.webm", "rec-9.webm"];
    assert_eq!(world.files(), names);
    let entry = &list[0];
    let parts = entry["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2, "{entry}");
    // The second file has another codec than the offer.
    let duration = entry["duration"].as_u64().unwrap();
    assert!((1_900..2_100).contains(&duration), "{entry}");
    let bytes = names[1..].iter().map(|name| world.path(name).metadata());
    let bytes: u64 = bytes.map(|file| file.unwrap().len()).sum();
    assert_eq!(entry["bytes"], bytes);
    let mut client = world.attach().await;
    let (preparing, _) = play(&mut client, 9).await;
    assert_eq!(preparing["duration"], duration);
    let warning = preparing["warning"].as_str().unwrap();
    assert!(warning.contains("does not go on"), "{warning}");
}

#[tokio::test]
async fn parts_and_names_of_before_the_end_are_taken_up_after_a_crash() {
    let world = World::new().await;
    in_parts(&world, 9).await;
    world.list().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("recordplay")).unwrap();
    let to = |name: &str| folder.path().join("recordplay").join(name);
    // The state of the disk if the server is killed while the third part is written.
    let nfo = std::fs::read_to_string(world.path("9.nfo")).unwrap();
    let nfo: Vec<_> = nfo.lines().filter(|line| !line.contains("parts")).collect();
    std::fs::write(to("9.nfo.recording"), nfo.join("\n")).unwrap();
    std::fs::write(to("9.nfo.recording.new"), "").unwrap();
    for (from, name) in [
        ("rec-9.webm", "rec-9.webm"),
        ("rec-9-2.mkv", "rec-9-2.mkv"),
        ("rec-9-3.webm", "rec-9-3.webm.part"),
    ] {
        std::fs::copy(world.path(from), to(name)).unwrap();
    }
    let after = World::on(
        folder,
        |_| {},
        |config| config.temporary = "part".to_owned(),
    )
    .await;
    let names = ["9.nfo", "rec-9-2.mkv", "rec-9-3.webm", "rec-9.webm"];
    assert_eq!(after.files(), names);
    let list = after.list().await;
    assert_eq!(list[0]["parts"].as_array().unwrap().len(), 2);
    assert!(list[0]["duration"].as_u64().unwrap() > 1_900, "{list:?}");
}

#[tokio::test]
async fn an_update_loses_no_recording_that_just_ends() {
    let world = World::new().await;
    for id in 1..=10 {
        let mut client = world.attach().await;
        record(&mut client, &[Line::Audio], json!({ "id": id })).await;
        say(world.taps().last().unwrap(), 0..50);
        let mut other = world.attach().await;
        client.on_handle("detach", json!({})).await;
        for _ in 0..20 {
            let updated = other.request(json!({ "request": "update" })).await;
            assert_eq!(updated["recordplay"], "ok");
        }
        let list = world.list().await;
        assert_eq!(list.len(), id, "{list:?}");
    }
}

#[tokio::test]
async fn a_recording_that_ends_at_once_leaves_nothing() {
    let world = World::new().await;
    for id in 1..=10 {
        let mut client = world.attach().await;
        let body = json!({ "request": "record", "name": "demo", "id": id });
        client.message(body, Some(offer(&[Line::Audio]))).await;
        client.on_handle("detach", json!({})).await;
    }
    let begun = Instant::now();
    while world
        .files()
        .iter()
        .any(|name| !name.ends_with(".mjr") && !name.ends_with(".nfo"))
    {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{:?}",
            world.files()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_a_crash_left_is_listed_at_the_next_start() {
    let world = World::new().await;
    let mut client = world.attach().await;
    record(&mut client, &[Line::Audio], json!({ "id": 10 })).await;
    say(&world.taps()[0], 0..50);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("recordplay")).unwrap();
    let left = ["10.nfo.recording", "rec-10-audio.mjr"];
    client.on_handle("detach", json!({})).await;
    world.list().await;
    // The state of the disk if the server is killed.
    let nfo = std::fs::read_to_string(world.path("10.nfo")).unwrap();
    let to = |name: &str| folder.path().join("recordplay").join(name);
    std::fs::write(to(left[0]), nfo).unwrap();
    std::fs::copy(world.path(left[1]), to(left[1])).unwrap();
    let after = World::on(folder, |_| {}, |_| {}).await;
    assert_eq!(after.list().await[0]["id"], 10);
    assert_eq!(after.files(), ["10.nfo", "rec-10-audio.mjr"]);
}
