//! Switching to another mountpoint without a negotiation.

use portunus_core::media::SourceRef;
use serde_json::{Value, json};

use crate::world::{World, ask, camera, create, refused, result};

fn switch(id: u64) -> Value {
    json!({ "request": "switch", "id": id })
}

#[tokio::test]
async fn streams_change_their_sources_by_place() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let mut other = camera(8);
    other["media"][1]["mid"] = json!("front");
    create(&mut admin, other).await;
    let ingests = world.server.requested().ingests;
    let (mut client, peer) = world.viewer(json!({ "id": 7, "media": ["v"] })).await;
    for (id, index) in [(8, 4), (7, 1), (8, 4)] {
        let switched = ask(&mut client, switch(id)).await;
        assert_eq!(switched, result(json!({ "switched": "ok", "id": id })));
        let source = SourceRef::from(ingests[index].id);
        assert_eq!(world.routes(peer), [(source, "v".to_owned(), true)]);
    }
    let viewers = async |admin: &mut portunus_core::testing::TestClient, id: u64| {
        let info = json!({ "request": "info", "id": id });
        admin.request(info).await["info"]["viewers"].clone()
    };
    assert_eq!(viewers(&mut admin, 7).await, 0);
    assert_eq!(viewers(&mut admin, 8).await, 1);
    // The stream has the other mountpoint's name now, and the m-line keeps its own.
    for mid in ["front", "v"] {
        let body = json!({ "request": "configure", "mid": mid, "send": mid == "v" });
        ask(&mut client, body).await;
        assert_eq!(world.routes(peer)[0].2, mid == "v");
    }
}

#[tokio::test]
async fn what_cannot_take_its_place_is_refused() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, camera(7)).await;
    let mut vp9 = camera(8);
    vp9["media"][1]["codec"] = json!("vp9");
    create(&mut admin, vp9).await;
    let mut secret = camera(9);
    secret["pin"] = json!("1234");
    create(&mut admin, secret).await;
    let (mut client, peer) = world.viewer(json!({ "id": 7 })).await;
    assert_eq!(refused(&mut client, switch(8)).await, 458);
    assert_eq!(refused(&mut client, switch(10)).await, 455);
    assert_eq!(
        refused(&mut client, json!({ "request": "switch" })).await,
        453
    );
    assert_eq!(refused(&mut client, switch(9)).await, 453);
    let mut right = switch(9);
    right["pin"] = json!("1234");
    let before = world.routes(peer);
    assert_eq!(ask(&mut client, right).await["result"]["id"], 9);
    assert_ne!(world.routes(peer), before);
}
