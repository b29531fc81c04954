//! The `configure` of viewers, and the events of layers.

use portunus_core::media::{Event, Layer, LayerReason, Reason, RouteOptions};
use portunus_core::testing::TestClient;
use serde_json::{Value, json};

use crate::world::{World, ask, camera, create, refused, result};

/// Why a layer came in these tests.
const BOUND: LayerReason = LayerReason::Chosen(Reason::ClientBound);

fn layered() -> Value {
    let mut body = camera(7);
    body["playoutdelay_ext"] = json!(true);
    body["media"] = json!([
        { "type": "audio", "mid": "a", "port": 0, "codec": "opus" },
        { "type": "video", "mid": "v", "port": 0, "port2": 0, "port3": 0, "simulcast": true, "codec": "vp8" },
        { "type": "video", "mid": "s", "port": 0, "svc": true, "codec": "vp9" },
    ]);
    body
}

fn options(world: &World, mid: &str) -> RouteOptions {
    let routes = world.server.requested().routes;
    let route = routes.into_iter().find(|r| r.to.mid.as_str() == mid);
    route.expect("a route").options
}

fn configured() -> Value {
    result(json!({ "event": "configured" }))
}

async fn configure(client: &mut TestClient, members: Value) -> Value {
    let mut body = json!({ "request": "configure" });
    let object = body.as_object_mut().unwrap();
    object.extend(members.as_object().unwrap().clone());
    ask(client, body).await
}

#[tokio::test]
async fn streams_are_configured_by_mid_all_at_once_or_in_a_list() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, layered()).await;
    let watch = json!({ "id": 7, "substream": 1, "temporal_layer": 0 });
    let (mut client, _) = world.viewer(watch).await;
    assert_eq!(options(&world, "v").substream, 1);
    assert_eq!(options(&world, "v").temporal, 2);
    assert_eq!(options(&world, "s").temporal, 0);
    assert_eq!(options(&world, "s").spatial, 2);

    let one = json!({ "mid": "v", "substream": 0, "temporal": 1, "fallback": 500_000 });
    assert_eq!(configure(&mut client, one).await, configured());
    let now = options(&world, "v");
    assert_eq!((now.substream, now.temporal), (0, 1));
    assert_eq!(now.fallback.as_millis(), 500);
    assert_eq!(options(&world, "s").spatial, 2);

    let list = json!({ "streams": [
        { "mid": "v", "send": false }, { "mid": "s", "spatial_layer": 1, "min_delay": 5, "max_delay": 9 },
    ] });
    assert_eq!(configure(&mut client, list).await, configured());
    assert!(!options(&world, "v").enabled);
    assert_eq!(options(&world, "s").spatial, 1);
    assert_eq!(options(&world, "s").playout_delay, Some((5, 9)));
    let off = json!({ "mid": "s", "min_delay": -1 });
    assert_eq!(configure(&mut client, off).await, configured());
    assert_eq!(options(&world, "s").playout_delay, None);

    assert_eq!(
        configure(&mut client, json!({ "send": true })).await,
        configured()
    );
    assert!(options(&world, "v").enabled);
    let unknown = json!({ "mid": "none", "send": false });
    assert_eq!(configure(&mut client, unknown).await, configured());
    assert!(options(&world, "v").enabled);
}

#[tokio::test]
async fn the_older_switches_are_by_kind() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, layered()).await;
    let (mut client, _) = world.viewer(json!({ "id": 7 })).await;
    let gates = json!({ "audio": false, "video": true });
    assert_eq!(configure(&mut client, gates).await, configured());
    assert!(!options(&world, "a").enabled);
    assert!(options(&world, "v").enabled);
}

#[tokio::test]
async fn mistakes_change_nothing() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, layered()).await;
    let (mut client, _) = world.viewer(json!({ "id": 7 })).await;
    for body in [
        json!({ "request": "configure", "substream": 3 }),
        json!({ "request": "configure", "temporal": "1" }),
        json!({ "request": "configure", "send": "no" }),
        json!({ "request": "configure", "audio": "no" }),
        json!({ "request": "configure", "streams": [{ "send": false }, { "mid": "v" }] }),
        json!({ "request": "configure", "streams": {} }),
        json!({ "request": "configure", "streams": [{ "mid": "v", "send": false }, 7] }),
    ] {
        assert_eq!(refused(&mut client, body.clone()).await, 454, "{body}");
    }
    assert!(options(&world, "v").enabled);
}

#[tokio::test]
async fn layers_that_change_are_told() {
    let world = World::new().await;
    let mut admin = world.client().await;
    create(&mut admin, layered()).await;
    let (mut client, peer) = world.viewer(json!({ "id": 7 })).await;
    let route = |mid: &str| {
        let routes = world.server.requested().routes;
        let route = routes.into_iter().find(|r| r.to.mid.as_str() == mid);
        route.unwrap().id
    };
    let relayed = async |mid: &str, layer: Layer| {
        let route = route(mid);
        world
            .server
            .happen(
                peer,
                Event::Layer {
                    route,
                    layer,
                    reason: BOUND,
                },
            )
            .await;
    };
    let told = |mut event: Value| {
        event["reason"] = "client-bound".into();
        result(event)
    };
    let simulcast = |substream, temporal| Layer {
        substream: Some(substream),
        temporal: Some(temporal),
        ..Layer::default()
    };
    relayed("v", simulcast(1, 0)).await;
    assert_eq!(
        client.event().await,
        told(json!({ "mid": "v", "substream": 1 }))
    );
    assert_eq!(
        client.event().await,
        told(json!({ "mid": "v", "temporal": 0 }))
    );
    relayed("v", simulcast(2, 0)).await;
    assert_eq!(
        client.event().await,
        told(json!({ "mid": "v", "substream": 2 }))
    );
    let svc = |spatial, temporal| Layer {
        spatial: Some(spatial),
        temporal: Some(temporal),
        ..Layer::default()
    };
    relayed("s", svc(0, 1)).await;
    let both = json!({ "mid": "s", "spatial_layer": 0, "temporal_layer": 1 });
    assert_eq!(client.event().await, told(both));
    relayed("s", svc(0, 2)).await;
    assert_eq!(
        client.event().await,
        told(json!({ "mid": "s", "temporal_layer": 2 }))
    );

    // A request for the present layer is answered by an event before the answer.
    let same = json!({ "mid": "v", "substream": 2 });
    assert_eq!(
        configure(&mut client, same).await,
        result(json!({ "mid": "v", "substream": 2 }))
    );
    assert_eq!(client.event().await, configured());
    let state = world.state(&client).await;
    assert_eq!(state["media"][1]["simulcast"]["substream"], 2);
    assert_eq!(state["media"][2]["svc"]["temporal-layer"], 2);
}
