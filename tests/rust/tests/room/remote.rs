//! Publishers in rooms of other servers.

use serde_json::{Value, json};

use crate::world::{AUDIO, LEVEL, ROOM, VIDEO, flow, keyframe, publisher, server, viewer};

#[tokio::test]
async fn a_publisher_of_another_server_is_seen_read_and_heard() {
    let (here, there) = (server(2).await, server(2).await);
    let mut al = publisher(&here, 1).await;
    let mut bo = publisher(&there, 2).await;
    // The answer to its offer, without the ids of extensions that nobody needs.
    let streams = json!([
        { "type": "audio", "mid": "0", "mindex": 0, "codec": "opus", "audiolevel_ext_id": LEVEL },
        { "type": "video", "mid": "1", "mindex": 1, "codec": "vp8" },
        { "type": "data", "mid": "2", "mindex": 2 },
    ]);
    let add =
        json!({ "request": "add_remote_publisher", "room": ROOM, "id": 9, "streams": streams });
    let added = bo.caller.manage(add).await;
    assert_eq!(added["videoroom"], "success", "{added}");
    let publish = json!({ "request": "publish_remotely", "room": ROOM, "publisher_id": 1, "remote_id": "there",
                          "host": "127.0.0.1", "port": added["port"], "rtcp_port": added["rtcp_port"] });
    let published = al.caller.manage(publish).await;
    assert_eq!(published["videoroom"], "success", "{published}");
    let mut viewer = viewer(&there, json!([{ "feed": 9 }])).await;
    flow(&mut al, VIDEO, &mut viewer, 1, &keyframe(1)).await;
    flow(&mut al, AUDIO, &mut viewer, 0, b"al, from afar").await;
    for n in 0..20 {
        al.peer.send_text("chat", &n.to_string());
        al.turn().await;
    }
    viewer
        .peer
        .run_until(|peer| peer.texts("9").len() >= 20)
        .await;
    let expected: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    assert_eq!(viewer.peer.texts("9"), expected);
    for (level, told) in [(10, "talking"), (100, "stopped-talking")] {
        for _ in 0..3 {
            al.clock += 960;
            let level: &[u8] = &[level];
            let clock = al.clock;
            al.peer
                .send_with(AUDIO, clock, &[(LEVEL, level)], b"opus")
                .await;
        }
        al.turn().await;
        let event = bo.caller.until("/plugindata/data/videoroom", told).await;
        let data = &event["plugindata"]["data"];
        assert_eq!((&data["id"], &data["mid"]), (&json!(9), &json!("0")));
    }
    // The other server learns of its end only by a request.
    al.ask(json!({ "request": "unpublish" }), "unpublished")
        .await;
    let remove = json!({ "request": "remove_remote_publisher", "room": ROOM, "id": 9 });
    let removed: Value = bo.caller.manage(remove).await;
    assert_eq!(removed["videoroom"], "success", "{removed}");
    viewer
        .caller
        .until("/plugindata/data/videoroom", "updated")
        .await;
    viewer
        .peer
        .run_until(|peer| peer.has_lost_channel("9"))
        .await;
}
