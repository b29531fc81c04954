//! Spatial and temporal layers of one encoding.

use portunus_core::media::{Event, Layer, LayerReason, Reason, RouteOptions};
use portunus_core::testing::jsep;
use serde_json::{Value, json};

use crate::world::{AV, ROOM, Viewer, World, ask, merge};

const SVC: &str = "L3T3";

fn offer(svc: Value) -> Value {
    let mut offer = jsep("offer", "alal", &AV);
    merge(&mut offer, json!({ "svc": svc }));
    offer
}

/// The options of the route of the viewer's picture.
fn picture(world: &World, viewer: &Viewer) -> (RouteOptions, Event) {
    let routes = world.requested().routes;
    let video = |route: &&_| {
        let portunus_core::media::testing::RequestedRoute { to, .. } = route;
        to.peer == viewer.peer && to.mid.as_str() == "1"
    };
    let route = routes.iter().find(video).unwrap();
    let relayed = Event::Layer {
        route: route.id,
        layer: Layer {
            spatial: Some(1),
            temporal: Some(2),
            ..Layer::default()
        },
        reason: LayerReason::Chosen(Reason::ClientBound),
    };
    (route.options.clone(), relayed)
}

async fn told_of_layers(viewer: &mut Viewer) {
    for (name, value) in [("spatial_layer", 1), ("temporal_layer", 2)] {
        let event = json!({ "videoroom": "event", "room": ROOM, "mid": "1", name: value,
                           "reason": "client-bound" });
        assert_eq!(viewer.client.event().await, event);
    }
}

#[tokio::test]
async fn layers_of_svc_are_chosen_and_told() {
    let world = World::new(json!({ "videocodec": "vp9" })).await;
    let svc = json!([{ "mid": "1", "svc": SVC }]);
    let _al = world.publisher_with(json!({ "id": 1 }), offer(svc)).await;
    let want = json!({ "streams": [{ "feed": 1, "spatial_layer": 1 }] });
    let mut viewer = world.viewer(want).await;
    let summary = |spatial: i8, temporal: i8| {
        json!({ "spatial-layer": spatial, "target-spatial-layer": 1,
                "temporal-layer": temporal, "target-temporal-layer": 2 })
    };
    assert_eq!(viewer.event["streams"][1]["svc"], summary(-1, -1));
    let (options, relayed) = picture(&world, &viewer);
    assert_eq!((options.spatial, options.temporal), (1, 2));
    world.server.happen(viewer.peer, relayed).await;
    told_of_layers(&mut viewer).await;
    let mut now = summary(1, 2);
    now["reason"] = json!("client-bound");
    let state = world.state(&viewer.client).await;
    assert_eq!(state["streams"][1]["svc"], now);
    // The answer is followed by the present layers, as nothing will change.
    let configure =
        json!({ "request": "configure", "mid": "1", "spatial_layer": 1, "temporal_layer": 0 });
    let event = ask(&mut viewer.client, configure).await;
    assert_eq!(event["spatial_layer"], 1, "{event}");
    assert_eq!(viewer.client.event().await["configured"], "ok");
    assert_eq!(picture(&world, &viewer).0.temporal, 0);
}

#[tokio::test]
async fn svc_is_not_forgotten_when_its_publisher_negotiates_again() {
    let world = World::new(json!({ "videocodec": "vp9,vp8" })).await;
    let svc = json!([{ "mid": "1", "svc": SVC }]);
    let mut al = world
        .publisher_with(json!({ "id": 1 }), offer(svc.clone()))
        .await;
    for (request, svc, expected) in [
        (json!({}), json!([]), json!(true)),
        // It names another m-line only.
        (json!({}), json!([{ "mid": "0", "svc": SVC }]), Value::Null),
        (json!({}), svc, json!(true)),
        (json!({ "videocodec": "vp8" }), json!([]), Value::Null),
    ] {
        let mut configure = json!({ "request": "configure" });
        merge(&mut configure, request);
        al.client.message(configure, Some(offer(svc.clone()))).await;
        let configured = al.client.event().await;
        assert_eq!(configured["streams"][1]["svc"], expected, "{svc}");
    }
}

#[tokio::test]
async fn svc_that_nobody_told_of_is_found_in_the_stream() {
    let world = World::new(json!({ "videocodec": "vp9" })).await;
    let _al = world.publisher(1, &AV).await;
    let (mut bo, _) = world.join(json!({ "id": 2 })).await;
    let want = json!({ "streams": [{ "feed": 1, "spatial_layer": 1, "temporal_layer": 0 }] });
    let mut viewer = world.viewer(want.clone()).await;
    let other = world.viewer(want).await;
    assert_eq!(viewer.event["streams"][1].get("svc"), None);
    let (options, relayed) = picture(&world, &viewer);
    assert_eq!((options.spatial, options.temporal), (2, 2));
    world.server.happen(viewer.peer, relayed).await;
    told_of_layers(&mut viewer).await;
    let event = bo.event().await;
    assert_eq!(event["publishers"][0]["streams"][1]["svc"], true, "{event}");
    for viewer in [&viewer, &other] {
        let (options, _) = picture(&world, viewer);
        assert_eq!((options.spatial, options.temporal), (1, 0));
    }
}
