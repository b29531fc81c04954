//! The first picture, and its publisher.

use serde_json::{Value, json};

use crate::world::{
    AUDIO, LEVEL, Member, VIDEO, flow, keyframe, publisher, server_with, viewer, viewer_with,
};

/// Returns a VP8 frame that is no keyframe.
fn delta(mark: u8) -> Vec<u8> {
    vec![0x10, 0x11, 0, 0, mark]
}

#[tokio::test]
async fn a_new_subscriber_gets_what_was_sent_since_the_last_keyframe() {
    let server = server_with(2, json!({ "bufferkf_ms": 10_000 })).await;
    let mut al = publisher(&server, 1).await;
    let want = json!([{ "feed": 1, "mid": "1" }]);
    let mut first = viewer(&server, want.clone()).await;
    for old in 1..4 {
        flow(&mut al, VIDEO, &mut first, 0, &keyframe(old)).await;
    }
    let frames = [keyframe(10), delta(11), delta(12)];
    for frame in &frames {
        al.send(VIDEO, frame).await;
        al.turn().await;
    }
    // One viewer on each worker. The publisher sends nothing more, and no keyframe is requested.
    for _ in 0..2 {
        let mut late = viewer(&server, want.clone()).await;
        late.peer.run_until(|peer| peer.packets.len() >= 3).await;
        let got = late.peer.packets.iter();
        let got: Vec<_> = got.map(|packet| packet.payload.clone()).collect();
        assert_eq!(got, frames);
        let numbers = late.numbers(0);
        assert!(numbers.is_sorted_by(|a, b| a + 1 == *b), "{numbers:?}");
    }
    // Packets sent while it was muted reach nobody.
    let send = |send: bool| json!({ "request": "configure", "video": send });
    al.ask(send(false), "configured").await;
    al.send(VIDEO, &keyframe(20)).await;
    al.turn().await;
    al.ask(send(true), "configured").await;
    let mut last = viewer(&server, want).await;
    al.send(VIDEO, &delta(21)).await;
    flow(&mut al, VIDEO, &mut last, 0, &keyframe(22)).await;
    assert!(!last.got(0, &[20]) && !last.got(0, &[12]));
}

/// Speaks, louder or not, until `heard`.
async fn speak(
    speakers: &mut [(&mut Member, u8)],
    viewer: &mut Member,
    mut heard: impl FnMut(&Value) -> bool,
) -> Value {
    for _ in 0..1_000 {
        for (speaker, level) in speakers.iter_mut() {
            speaker.clock += 960;
            let level: &[u8] = &[*level];
            let clock = speaker.clock;
            speaker
                .peer
                .send_with(AUDIO, clock, &[(LEVEL, level)], b"opus")
                .await;
            speaker.turn().await;
        }
        viewer.turn().await;
        while let Some(message) = viewer.caller.pending() {
            if heard(&message["plugindata"]["data"]) {
                return message["plugindata"]["data"].clone();
            }
        }
    }
    panic!("nobody is heard");
}

#[tokio::test]
async fn seats_follow_who_speaks_and_their_numbers_go_on() {
    const LOUD: u8 = 15;
    const SILENT: u8 = 127;
    let server = server_with(2, json!({ "dominant_speaker": true })).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let mut viewer = viewer_with(&server, json!({ "last_n": 1 })).await;
    let negotiated = viewer.peer.negotiated().media.len();
    assert_eq!(negotiated, 2);
    flow(&mut al, VIDEO, &mut viewer, 1, &keyframe(1)).await;
    let sits = |feed: u64| move |data: &Value| data["seats"][0]["feed_id"] == feed;
    let mut speakers = [(&mut al, SILENT), (&mut bo, LOUD)];
    let told = speak(&mut speakers, &mut viewer, sits(2)).await;
    assert_eq!(told["dominant"], 2, "{told}");
    flow(&mut bo, VIDEO, &mut viewer, 1, &keyframe(2)).await;
    let mut speakers = [(&mut al, LOUD), (&mut bo, SILENT)];
    speak(&mut speakers, &mut viewer, sits(1)).await;
    flow(&mut al, VIDEO, &mut viewer, 1, &keyframe(3)).await;
    // When a publisher leaves, the other one follows immediately.
    al.ask(json!({ "request": "leave" }), "leaving").await;
    flow(&mut bo, VIDEO, &mut viewer, 1, &keyframe(4)).await;
    let numbers = viewer.numbers(1);
    assert!(numbers.is_sorted_by(|a, b| a + 1 == *b), "{numbers:?}");
    assert_eq!(viewer.peer.negotiated().media.len(), negotiated);
}
