//! Changes for viewers without their requests.

use portunus_core::media::{CloseReason, Event};
use serde_json::json;

use crate::world::{World, camera, create, status};

#[tokio::test]
async fn a_destroyed_mountpoint_hangs_up_on_all_its_viewers() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let (mut one, _) = world.viewer(json!({ "id": 7 })).await;
    let (mut other, _) = world.viewer(json!({ "id": 7 })).await;
    let mut waiting = world.client().await;
    world.watch(&mut waiting, json!({ "id": 7 })).await;
    admin
        .request(json!({ "request": "destroy", "id": 7 }))
        .await;
    for viewer in [&mut one, &mut other, &mut waiting] {
        assert_eq!(viewer.event().await, status("stopped"));
        let hangup = viewer.next().await;
        assert_eq!(hangup["janus"], "hangup");
        assert_eq!(hangup["reason"], "Close PC");
    }
    assert!(world.server.requested().routes.is_empty());
    assert!(world.server.peers().is_empty());
    create(&mut admin, camera(8)).await;
    let peer = world.watch(&mut one, json!({ "id": 8 })).await;
    world.connect(&mut one, peer).await;
}

#[tokio::test]
async fn viewers_that_were_kicked_may_come_back() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let (mut viewer, _) = world.viewer(json!({ "id": 7 })).await;
    let kicked = admin
        .request(json!({ "request": "kick_all", "id": 7 }))
        .await;
    assert_eq!(kicked, json!({ "streaming": "kicked_all" }));
    assert_eq!(viewer.event().await, status("kicked_all"));
    assert_eq!(viewer.next().await["janus"], "hangup");
    let peer = world.watch(&mut viewer, json!({ "id": 7 })).await;
    world.connect(&mut viewer, peer).await;
    assert_eq!(world.routes(peer).len(), 3);
}

#[tokio::test]
async fn viewers_are_told_of_other_metadata() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let (mut viewer, _) = world.viewer(json!({ "id": 7 })).await;
    let edit = json!({
        "request": "edit", "id": 7, "new_metadata": "evening", "edited_event": true,
    });
    admin.request(edit.clone()).await;
    assert_eq!(
        viewer.event().await,
        json!({ "event": "edited", "id": 7, "metadata": "evening" })
    );
    // Without a change there is no event.
    admin.request(edit).await;
    viewer.expect_silence().await;
}

#[tokio::test]
async fn a_viewer_that_vanishes_is_no_longer_counted() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let (mut viewer, peer) = world.viewer(json!({ "id": 7 })).await;
    world
        .server
        .happen(peer, Event::Closed(CloseReason::DtlsAlert))
        .await;
    assert_eq!(viewer.next().await["janus"], "hangup");
    let (mut other, _) = world.viewer(json!({ "id": 7 })).await;
    other.on_handle("detach", json!({})).await;
    let info = json!({ "request": "info", "id": 7 });
    assert_eq!(admin.request(info).await["info"]["viewers"], 0);
    let state = world.state(&viewer).await;
    assert_eq!(state["state"], "idle");
}

#[tokio::test]
async fn viewers_of_a_disabled_mountpoint_stay() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let (mut viewer, peer) = world.viewer(json!({ "id": 7 })).await;
    admin
        .request(json!({ "request": "disable", "id": 7 }))
        .await;
    viewer.expect_silence().await;
    assert_eq!(world.routes(peer).len(), 3);
    let (_late, _) = world.viewer(json!({ "id": 7 })).await;
}

#[tokio::test]
async fn a_thousand_viewers_leave_nothing_behind() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let mut viewers = Vec::new();
    for _ in 0..1_000 {
        viewers.push(world.viewer(json!({ "id": 7 })).await.0);
    }
    let info = json!({ "request": "info", "id": 7 });
    assert_eq!(admin.request(info).await["info"]["viewers"], 1_000);
    assert_eq!(world.server.requested().routes.len(), 3_000);
    admin
        .request(json!({ "request": "destroy", "id": 7 }))
        .await;
    for viewer in &mut viewers {
        assert_eq!(viewer.event().await, status("stopped"));
        assert_eq!(viewer.next().await["janus"], "hangup");
    }
    assert!(world.server.peers().is_empty());
    let requested = world.server.requested();
    assert!(requested.routes.is_empty() && requested.ingests.is_empty());
}
