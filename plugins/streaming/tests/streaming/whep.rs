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
