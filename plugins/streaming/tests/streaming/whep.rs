//! Watching by the client's offer.

use portunus_core::testing::{Line, jsep};
use serde_json::{Value, json};

use crate::world::{World, camera, create, sections, status};

fn watch() -> Value {
    json!({ "request": "watch", "id": 7 })
}

#[tokio::test]
async fn the_offer_is_answered_and_media_flows_without_a_start() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let offer = jsep(
        "offer",
        "abcd",
        &[Line::Video, Line::Audio, Line::Video, Line::Data],
    );
    client.message(watch(), Some(offer)).await;
    let (data, answer) = client.event_with_jsep().await;
    assert_eq!(data, status("starting"));
    let answer = answer.unwrap();
    assert_eq!(answer["type"], "answer");
    let sdp = answer["sdp"].as_str().unwrap();
    let lines = sections(sdp);
    assert!(
        lines[0][0].starts_with("m=video 9 UDP/TLS/RTP/SAVPF 96"),
        "{sdp}"
    );
    assert!(lines[0].contains(&"a=sendonly"), "{sdp}");
    assert!(lines[1].contains(&"a=sendonly"), "{sdp}");
    // There is no second video.
    assert!(lines[2].contains(&"a=inactive"), "{sdp}");
    assert!(lines[3][0].starts_with("m=application 9"), "{sdp}");
    let peer = world.last_peer();
    world.connect(&mut client, peer).await;
    let mids: Vec<_> = world
        .routes(peer)
        .into_iter()
        .map(|route| route.1)
        .collect();
    assert_eq!(mids, ["0", "1", "3"]);
    // Streams are still named by the mountpoint.
    let body = json!({ "request": "configure", "mid": "v", "send": false });
    client.message(body, None).await;
    client.event().await;
    assert!(!world.routes(peer)[0].2);
}

#[tokio::test]
async fn the_profile_of_the_stream_is_chosen() {
    let world = World::new().await;
    let mut client = world.client().await;
    let mut body = camera(7);
    body["media"] = json!([{
        "type": "video", "mid": "v", "port": 0, "pt": 125, "codec": "h264",
        "fmtp": "profile-level-id=42e01f;packetization-mode=1",
    }]);
    create(&mut client, body).await;
    let offer = jsep("offer", "abcd", &[Line::Video]);
    client.message(watch(), Some(offer)).await;
    let (_, answer) = client.event_with_jsep().await;
    let answer = answer.unwrap();
    let sdp = answer["sdp"].as_str().unwrap();
    assert!(sdp.contains("m=video 9 UDP/TLS/RTP/SAVPF 102"), "{sdp}");
    assert!(
        sdp.contains("a=fmtp:102 profile-level-id=42e01f;packetization-mode=1"),
        "{sdp}"
    );
}

#[tokio::test]
async fn an_answer_is_no_way_to_watch() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    client.message(watch(), None).await;
    client.event().await;
    let answer = jsep("answer", "abcd", &[Line::Audio, Line::Video, Line::Data]);
    client.message(watch(), Some(answer)).await;
    assert_eq!(client.event().await["error_code"], 461);
}

/// The header extensions of the answered picture, for an offer that has them all.
async fn accepted(world: &World, id: u64) -> Vec<String> {
    let mut client = world.client().await;
    let mut offer = jsep("offer", "abcd", &[Line::Video]);
    let extensions = "a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time\r\n\
        a=extmap:5 http://www.webrtc.org/experiments/rtp-hdrext/playout-delay\r\n\
        a=extmap:6 http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time\r\n\
        a=extmap:7 urn:3gpp:video-orientation\r\n";
    offer["sdp"] = format!("{}{extensions}", offer["sdp"].as_str().unwrap()).into();
    let watch = json!({ "request": "watch", "id": id });
    client.message(watch, Some(offer)).await;
    let answer = client.event_with_jsep().await.1.unwrap();
    let lines = answer["sdp"].as_str().unwrap().lines();
    let numbers = lines.filter_map(|line| line.strip_prefix("a=extmap:")?.split_once(' '));
    let mut numbers: Vec<_> = numbers.map(|(number, _)| number.to_owned()).collect();
    numbers.sort_unstable();
    numbers
}

#[tokio::test]
async fn a_viewer_who_offers_gets_the_extensions_that_janus_answers() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    // mid, abs-send-time, playout-delay and abs-capture-time, whatever the mountpoint has.
    assert_eq!(accepted(&world, 7).await, ["2", "4", "5", "6"]);
    let published = json!({ "request": "create", "type": "whip", "id": 8,
                            "media": [{ "type": "video", "mid": "v", "codec": "vp8" }] });
    create(&mut client, published).await;
    // The video orientation of phones is passed on.
    assert_eq!(accepted(&world, 8).await, ["2", "4", "5", "6", "7"]);
}

#[tokio::test]
async fn a_codec_with_other_channels_is_another_codec() {
    let world = World::new().await;
    let mut client = world.client().await;
    let mut body = camera(7);
    body["media"] = json!([{ "type": "audio", "mid": "a", "port": 0, "codec": "pcma" }]);
    create(&mut client, body).await;
    let mut offer = jsep("offer", "abcd", &[Line::Audio]);
    let sdp = offer["sdp"].as_str().unwrap();
    let lines = sdp.split_inclusive("\r\n").map(|line| match line {
        line if line.starts_with("m=audio") => {
            "m=audio 9 UDP/TLS/RTP/SAVPF 96 8\r\na=rtpmap:96 PCMA/8000/2\r\na=rtpmap:8 PCMA/8000\r\n"
        }
        line if line.starts_with("a=rtpmap:") || line.starts_with("a=fmtp:") => "",
        line => line,
    });
    let sdp: String = lines.collect();
    offer["sdp"] = sdp.into();
    client.message(watch(), Some(offer)).await;
    let (_, answer) = client.event_with_jsep().await;
    let answer = answer.unwrap();
    let sdp = answer["sdp"].as_str().unwrap();
    assert!(sdp.contains("m=audio 9 UDP/TLS/RTP/SAVPF 8\r\n"), "{sdp}");
    assert!(!sdp.contains("PCMA/8000/2"), "{sdp}");
}

#[tokio::test]
async fn redundant_audio_is_answered_where_it_is_offered_and_its_opus_everywhere() {
    let world = World::new().await;
    let mut client = world.client().await;
    let mut body = camera(7);
    body["media"] = json!([
        { "type": "audio", "mid": "a", "port": 0, "codec": "red", "pt": 100, "fmtp": "102/102" },
    ]);
    create(&mut client, body).await;
    for (red, line) in [(true, "63 111"), (false, "111")] {
        let mut viewer = world.client().await;
        let mut offer = jsep("offer", "abcd", &[Line::Audio]);
        if !red {
            let sdp = offer["sdp"].as_str().unwrap();
            let others = |line: &&str| !line.contains(":63 ");
            let sdp: String = sdp.split_inclusive("\r\n").filter(others).collect();
            offer["sdp"] = sdp.replace("SAVPF 111 63", "SAVPF 111").into();
        }
        viewer.message(watch(), Some(offer)).await;
        let (data, answer) = viewer.event_with_jsep().await;
        assert_eq!(data, status("starting"));
        let answer = answer.unwrap();
        let sdp = answer["sdp"].as_str().unwrap();
        let lines = sections(sdp);
        let expected = format!("m=audio 9 UDP/TLS/RTP/SAVPF {line}");
        assert_eq!(lines[0][0], expected, "{sdp}");
        assert!(lines[0].contains(&"a=sendonly"), "{sdp}");
    }
}
