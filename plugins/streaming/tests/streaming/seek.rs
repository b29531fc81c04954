//! `seek`, where each viewer has a position.

use std::time::Duration;

use portunus_core::media::ingest::IngestFeed;
use serde_json::{Value, json};

use crate::world::{World, ask, camera, create, refused, result};

/// Mountpoint 1: a second of a tone, on demand.
fn tone(kind: &str) -> Value {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/files/tests/data");
    // A name must not leave the folder.
    let folder = std::fs::canonicalize(file).unwrap();
    let file = folder.join("tone.alaw").display().to_string();
    json!({ "request": "create", "type": kind, "id": 1, "filename": file })
}

#[tokio::test]
async fn a_viewer_of_a_file_on_demand_goes_to_another_position() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, tone("ondemand")).await;
    let info = admin.request(json!({ "request": "info", "id": 1 })).await;
    assert_eq!(info["info"]["duration"], 1.0, "{info}");

    // It may set and change the start before media can flow.
    let mut client = world.client().await;
    let peer = world.watch(&mut client, json!({ "id": 1 })).await;
    for position in [json!(0.5), json!(0.25)] {
        let seek = json!({ "request": "seek", "position": position });
        let expected = json!({ "status": "seeking", "position": position });
        assert_eq!(ask(&mut client, seek).await, result(expected));
    }
    world.connect(&mut client, peer).await;
    for position in [json!(0.0), json!(1.0)] {
        let seek = json!({ "request": "seek", "position": position });
        let expected = json!({ "status": "seeking", "position": position });
        assert_eq!(ask(&mut client, seek).await, result(expected));
    }
    assert_eq!(world.routes(peer).len(), 1, "on the same route");
}

#[tokio::test(start_paused = true)]
async fn a_file_on_demand_is_held_while_it_is_paused_or_its_mountpoint_disabled() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, tone("ondemand")).await;
    let (mut viewer, peer) = world.viewer(json!({ "id": 1 })).await;
    // Packets of a second.
    let played = async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let ingests = world.server.requested().ingests;
        let IngestFeed::Packets(receiver) = &ingests[0].options.feed else {
            panic!("a file's packets")
        };
        std::iter::from_fn(|| receiver.take_packet()).count()
    };
    assert!(played().await >= 45);
    let asked = ask(&mut viewer, json!({ "request": "pause" })).await;
    assert_eq!(asked, result(json!({ "status": "pausing" })));
    assert!(played().await <= 1);
    assert_eq!(played().await, 0);
    // A paused viewer stays paused.
    for request in ["disable", "enable"] {
        admin.request(json!({ "request": request, "id": 1 })).await;
        assert_eq!(played().await, 0);
    }
    let asked = ask(&mut viewer, json!({ "request": "start" })).await;
    assert_eq!(asked, result(json!({ "status": "started" })));
    assert!(played().await >= 45);
    for (request, flows) in [("disable", false), ("enable", true)] {
        admin.request(json!({ "request": request, "id": 1 })).await;
        played().await;
        assert_eq!(played().await >= 45, flows, "{request}");
    }
    assert!(world.routes(peer)[0].2);
}

#[tokio::test]
async fn positions_that_cannot_be() {
    let world = World::new().await;
    let mut client = world.client().await;
    let seek = |position: Value| json!({ "request": "seek", "position": position });
    assert_eq!(refused(&mut client, seek(json!(0))).await, 455);
    create(&mut client, tone("ondemand")).await;
    let (mut viewer, _) = world.viewer(json!({ "id": 1 })).await;
    assert_eq!(
        refused(&mut viewer, json!({ "request": "seek" })).await,
        453
    );
    for position in [
        json!("1"),
        json!(-0.1),
        json!(1e300),
        json!(1.001),
        json!(null),
    ] {
        assert_eq!(refused(&mut viewer, seek(position)).await, 454);
    }
    assert_eq!(
        ask(&mut viewer, seek(json!(1))).await["result"]["status"],
        "seeking"
    );
}

#[tokio::test]
async fn what_all_watch_together_has_no_position() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, tone("live")).await;
    create(&mut admin, camera(7)).await;
    for (id, kind) in [(1, "live"), (7, "rtp")] {
        let (mut viewer, _) = world.viewer(json!({ "id": id })).await;
        viewer
            .message(json!({ "request": "seek", "position": 0.5 }), None)
            .await;
        let data = viewer.event().await;
        assert_eq!(data["error_code"], 452, "{data}");
        let error = data["error"].as_str().unwrap();
        assert!(
            error.contains("ondemand") && error.ends_with(kind),
            "{error}"
        );
    }
}
