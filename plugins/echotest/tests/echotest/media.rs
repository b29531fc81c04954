//! The echo: routes, layers, data, bitrates, and the events about them.

use std::time::Duration;

use portunus_core::Mid;
use portunus_core::media::{
    DataMessage, DataPayload, Event, Layer, LayerReason, Reason, RouteOptions, SentLayers,
};
use portunus_core::testing::{Line, jsep};
use serde_json::json;

use crate::world::{LINES, PACKAGE, call, ok, server, state};

/// Why a layer came in these tests.
const BOUND: LayerReason = LayerReason::Chosen(Reason::ClientBound);

#[tokio::test]
async fn each_line_is_routed_to_itself_with_the_settings() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let lines = [Line::Audio, Line::Simulcast, Line::Data, Line::Video];
    call(
        &mut client,
        json!({ "video": false, "substream": 0, "temporal": 1 }),
        &lines,
    )
    .await;
    let routes = server.requested().routes;
    let mids: Vec<_> = routes
        .iter()
        .map(|route| route.from.track().unwrap().mid.to_string())
        .collect();
    assert_eq!(mids, ["0", "1", "3"]);
    assert!(routes.iter().all(|route| route.from == route.to.into()));
    assert_eq!(routes[0].options, RouteOptions::default());
    let simulcast = RouteOptions {
        enabled: false,
        substream: 0,
        temporal: 1,
        ..RouteOptions::default()
    };
    assert_eq!(routes[1].options, simulcast);
    // Only the first simulcast line has layers to choose.
    assert_eq!(
        routes[2].options,
        RouteOptions {
            enabled: false,
            ..RouteOptions::default()
        }
    );

    let change = json!({
        "video": true, "audio": false, "fallback": 7, "min_delay": 20, "max_delay": 10,
    });
    client.message(change, None).await;
    client.event().await;
    let routes = server.requested().routes;
    assert!(!routes[0].options.enabled);
    assert_eq!(routes[1].options.fallback, Duration::from_micros(7));
    assert_eq!(routes[1].options.playout_delay, Some((10, 10)));
    client.message(json!({ "min_delay": -1 }), None).await;
    client.event().await;
    assert_eq!(server.requested().routes[1].options.playout_delay, None);

    call(&mut client, json!({}), &lines).await;
    assert_eq!(
        server.requested().routes.len(),
        3,
        "no second route for a line"
    );
}

#[tokio::test]
async fn the_bitrate_is_capped_at_once_and_at_each_estimate() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    call(&mut client, json!({ "bitrate": 128_000 }), &LINES).await;
    let peer = server.peers()[0];
    client.message(json!({ "bitrate": 0 }), None).await;
    client.event().await;
    server.happen(peer, Event::Remb { bitrate: 1 }).await;
    client.expect_silence().await;
    assert_eq!(
        server.requested().bitrates,
        [(peer, Some(128_000)), (peer, None), (peer, None)]
    );
}

#[tokio::test]
async fn the_client_is_told_which_layers_it_gets() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    call(&mut client, json!({}), &[Line::Audio, Line::Simulcast]).await;
    let (peer, routes) = (server.peers()[0], server.requested().routes);
    let layer = Layer {
        substream: Some(1),
        temporal: Some(0),
        ..Layer::default()
    };
    // Not the audio's.
    server
        .happen(
            peer,
            Event::Layer {
                route: routes[0].id,
                layer,
                reason: BOUND,
            },
        )
        .await;
    server
        .happen(
            peer,
            Event::Layer {
                route: routes[1].id,
                layer,
                reason: BOUND,
            },
        )
        .await;
    let told = json!({ "echotest": "event", "videocodec": "vp8", "substream": 1, "temporal": 0,
                       "reason": "client-bound" });
    assert_eq!(client.event().await, told);
    let layer = Layer {
        sent: Some(SentLayers {
            spatial: 1,
            temporal: 2,
        }),
        ..layer
    };
    server
        .happen(
            peer,
            Event::Layer {
                route: routes[1].id,
                layer,
                reason: BOUND,
            },
        )
        .await;
    let told = json!({ "echotest": "event", "videocodec": "vp8", "substream": 1, "temporal": 0,
                       "tot_temporal_layers": 2, "reason": "client-bound" });
    assert_eq!(client.event().await, told);
    client
        .message(json!({ "substream": 1, "temporal": 0 }), None)
        .await;
    let one =
        |name: &str, layer: u8| json!({ "echotest": "event", "videocodec": "vp8", name: layer });
    assert_eq!(client.event().await, one("substream", 1));
    assert_eq!(client.event().await, one("temporal", 0));
    assert_eq!(client.event().await, ok());
    client.message(json!({ "substream": 2 }), None).await;
    assert_eq!(client.event().await, ok());
    assert_eq!(state(&server, &client).await["substream"], 1);
}

#[tokio::test]
async fn svc_layers_have_names_of_their_own() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let mut offer = jsep("offer", "abcd", &[Line::Video]);
    offer["svc"] = json!([{ "mid": "0", "svc": "L3T3" }]);
    client
        .message(
            json!({ "videocodec": "vp9", "spatial_layer": 1 }),
            Some(offer),
        )
        .await;
    assert_eq!(client.event().await, ok());
    let routes = server.requested().routes;
    assert_eq!(
        (routes[0].options.spatial, routes[0].options.temporal),
        (1, 2)
    );
    let layer = Layer {
        spatial: Some(1),
        temporal: Some(2),
        ..Layer::default()
    };
    server
        .happen(
            server.peers()[0],
            Event::Layer {
                route: routes[0].id,
                layer,
                reason: BOUND,
            },
        )
        .await;
    assert_eq!(
        client.event().await,
        json!({ "echotest": "event", "videocodec": "vp9", "spatial_layer": 1, "temporal_layer": 2,
                "reason": "client-bound" })
    );
    // A change of the client's layers is reported to it.
    let layer = Layer {
        sent: Some(SentLayers {
            spatial: 2,
            temporal: 3,
        }),
        ..layer
    };
    server
        .happen(
            server.peers()[0],
            Event::Layer {
                route: routes[0].id,
                layer,
                reason: BOUND,
            },
        )
        .await;
    assert_eq!(
        client.event().await,
        json!({ "echotest": "event", "videocodec": "vp9", "spatial_layer": 1, "temporal_layer": 2,
                "tot_spatial_layers": 2, "tot_temporal_layers": 3, "reason": "client-bound" })
    );
    client.message(json!({ "spatial_layer": 1 }), None).await;
    assert_eq!(
        client.event().await,
        json!({ "echotest": "event", "videocodec": "vp9", "spatial_layer": 1 })
    );
    assert_eq!(client.event().await, ok());
    let state = state(&server, &client).await;
    assert_eq!(
        (&state["svc"], &state["spatial-layer"]),
        (&json!(true), &json!(1))
    );
}

#[tokio::test]
async fn data_comes_back_on_its_channel() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    call(&mut client, json!({}), &LINES).await;
    let peer = server.peers()[0];
    let message = |payload| DataMessage {
        label: "chat".to_owned(),
        protocol: "p".to_owned(),
        payload,
    };
    for payload in [
        DataPayload::Text("hello".to_owned()),
        DataPayload::Text(String::new()),
        DataPayload::Binary(vec![1, 2]),
        DataPayload::Binary(Vec::new()),
    ] {
        server.happen(peer, Event::Data(message(payload))).await;
    }
    client.expect_silence().await;
    let text = DataPayload::Text("Janus EchoTest here! You wrote: hello".to_owned());
    let expected = [
        (peer, message(text)),
        (peer, message(DataPayload::Binary(vec![1, 2]))),
    ];
    assert_eq!(server.requested().data, expected);
}

#[tokio::test]
async fn missing_packets_of_the_client_are_a_slow_link() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    call(&mut client, json!({ "bitrate": 9_000 }), &LINES).await;
    let peer = server.peers()[0];
    let lost = |audio, uplink| {
        let mid = Mid::new(if audio { "0" } else { "1" }).unwrap();
        Event::SlowLink {
            mid,
            audio,
            uplink,
            lost: 5,
        }
    };
    server.happen(peer, lost(true, true)).await;
    assert_eq!(
        client.event().await,
        json!({ "echotest": "event", "event": "slow_link", "media": "audio" })
    );
    assert_eq!(client.next().await["janus"], "slowlink");
    server.happen(peer, lost(false, true)).await;
    assert_eq!(
        client.event().await,
        json!({
            "echotest": "event", "event": "slow_link", "media": "video", "current-bitrate": 9_000,
        })
    );
    assert_eq!(client.next().await["janus"], "slowlink");
    server.happen(peer, lost(false, false)).await;
    assert_eq!(client.next().await["janus"], "slowlink");
    client.expect_silence().await;
    assert_eq!(state(&server, &client).await["slowlink_count"], 3);
}

#[tokio::test]
async fn the_clients_estimate_is_kept() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    call(&mut client, json!({}), &LINES).await;
    server
        .happen(server.peers()[0], Event::Remb { bitrate: 77_000 })
        .await;
    client.expect_silence().await;
    assert_eq!(state(&server, &client).await["peer-bitrate"], 77_000);
}
