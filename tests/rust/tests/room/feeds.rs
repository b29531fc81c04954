//! Feeds, and their viewers.

use serde_json::json;

use crate::world::{AUDIO, LEVEL, VIDEO, flow, keyframe, publisher, server, viewer};

#[tokio::test]
async fn many_feeds_come_on_one_connection_as_they_come_and_go() {
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let media = |feed: u64| json!([{ "feed": feed, "mid": "0" }, { "feed": feed, "mid": "1" }]);
    let mut viewer = viewer(&server, media(1)).await;
    flow(&mut al, AUDIO, &mut viewer, 0, b"al says").await;
    flow(&mut al, VIDEO, &mut viewer, 1, &keyframe(1)).await;

    viewer
        .change(json!({ "request": "subscribe", "streams": media(2) }))
        .await;
    flow(&mut bo, AUDIO, &mut viewer, 2, b"bo says").await;
    flow(&mut bo, VIDEO, &mut viewer, 3, &keyframe(2)).await;
    flow(&mut al, VIDEO, &mut viewer, 1, &keyframe(3)).await;

    // Al leaves, and another publisher takes his places.
    al.ask(json!({ "request": "leave" }), "leaving").await;
    let updated = viewer
        .caller
        .until("/plugindata/data/videoroom", "updated")
        .await;
    viewer.answer(&updated).await;
    assert!(!viewer.peer.negotiated().media[0].recv);
    let mut cy = publisher(&server, 3).await;
    viewer
        .change(json!({ "request": "subscribe", "streams": media(3) }))
        .await;
    assert_eq!(viewer.peer.negotiated().media.len(), 4);
    flow(&mut cy, AUDIO, &mut viewer, 0, b"cy was here!").await;
    flow(&mut cy, VIDEO, &mut viewer, 1, &keyframe(4)).await;
    flow(&mut bo, AUDIO, &mut viewer, 2, b"bo as well?").await;
}

#[tokio::test]
async fn switches_and_pauses_leave_no_gaps() {
    let server = server(1).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    let streams = json!([{ "feed": 1, "mid": "0" }, { "feed": 1, "mid": "1" }]);
    let mut viewer = viewer(&server, streams).await;
    flow(&mut al, VIDEO, &mut viewer, 1, &keyframe(1)).await;
    let switch = json!({ "request": "switch", "streams": [
        { "feed": 2, "mid": "1", "sub_mid": "1" },
        { "feed": 2, "mid": "0", "sub_mid": "0" },
    ]});
    viewer.ask(switch, "switched").await;
    al.send(VIDEO, &keyframe(9)).await;
    flow(&mut bo, VIDEO, &mut viewer, 1, &keyframe(2)).await;
    viewer.ask(json!({ "request": "pause" }), "paused").await;
    for _ in 0..5 {
        bo.send(VIDEO, &keyframe(8)).await;
        bo.turn().await;
    }
    viewer.ask(json!({ "request": "start" }), "started").await;
    flow(&mut bo, VIDEO, &mut viewer, 1, &keyframe(3)).await;
    let mute = |send: bool| json!({ "request": "configure", "video": send });
    bo.ask(mute(false), "configured").await;
    for _ in 0..5 {
        bo.send(VIDEO, &keyframe(7)).await;
        bo.turn().await;
    }
    bo.ask(mute(true), "configured").await;
    flow(&mut bo, VIDEO, &mut viewer, 1, &keyframe(4)).await;
    for mark in [9, 8, 7] {
        assert!(!viewer.got(1, &[mark]), "{mark} came through");
    }
    let numbers = viewer.numbers(1);
    let expected: Vec<_> = (numbers[0]..).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test]
async fn whoever_talks_is_heard_without_anybody_watching() {
    let server = server(2).await;
    let mut al = publisher(&server, 1).await;
    let mut bo = publisher(&server, 2).await;
    for (level, told) in [(10, "talking"), (100, "stopped-talking")] {
        for _ in 0..3 {
            al.clock += 960;
            let level: &[u8] = &[level];
            al.peer
                .send_with(AUDIO, al.clock, &[(LEVEL, level)], b"opus")
                .await;
        }
        al.turn().await;
        let event = bo.caller.until("/plugindata/data/videoroom", told).await;
        let data = &event["plugindata"]["data"];
        assert_eq!((&data["id"], &data["mid"]), (&json!(1), &json!("0")));
    }
}
