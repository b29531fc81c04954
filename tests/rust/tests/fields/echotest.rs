//! The echo test.

use portunus_echotest::EchoTest;
use portunus_sdp::Direction;
use portunus_tests::shape::{Shape, is, object};
use portunus_tests::{Server, Watcher};
use serde_json::json;

use crate::world::{AUDIO, Layers, Member, VIDEO, loss_told, own_layers_told, recorder, sdp};

const PACKAGE: &str = "janus.plugin.echotest";

fn event<const N: usize>(members: [(&'static str, Shape); N]) -> Shape {
    object([("echotest", is("event"))]).and(members)
}

fn ok() -> Shape {
    event([("result", is("ok"))])
}

/// Returns a connected client, which sends these layers.
async fn call(server: &Server, watcher: &mut Watcher, layers: Layers) -> Member {
    let mut member = Member::offering(server, PACKAGE).await;
    let offer = layers.offer(&mut member.peer, Direction::SendRecv);
    let body = json!({ "audio": true, "video": true, "bitrate": 512_000 });
    member.caller.message_with(body, offer).await;
    let answer = member.next().await;
    ok().check(&answer["plugindata"]["data"]);
    member.peer.accept(sdp(&answer));
    assert_eq!(member.connect().await, [] as [serde_json::Value; 0]);
    let configured = object([
        ("audio_active", is(true)),
        ("video_active", is(true)),
        ("bitrate", is(512_000)),
    ]);
    let simulcast = object([("substream", is(-1)), ("temporal-layer", is(-1))]);
    let configured = match layers {
        Layers::Simulcast => configured.and([("simulcast", simulcast)]),
        Layers::Svc => configured,
    };
    configured.check(&watcher.told(PACKAGE, Some(&member.caller)).await);
    member
}

#[tokio::test]
async fn simulcast_recordings_and_losses_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = Server::watched::<EchoTest>((), recorder(&folder)).await;
    let mut al = call(&server, &mut watcher, Layers::Simulcast).await;
    let layers = |substream: u8, temporal: u8| {
        event([
            ("videocodec", is("vp8")),
            ("substream", is(substream)),
            ("temporal", is(temporal)),
            ("tot_temporal_layers", is(3)),
            // An addition to Janus.
            ("reason", Shape::Text),
        ])
    };
    own_layers_told(&mut al, Layers::Simulcast, &layers(2, 2)).await;
    al.caller
        .message(json!({ "substream": 1, "temporal": 1 }), None)
        .await;
    al.expect(&ok()).await;
    own_layers_told(&mut al, Layers::Simulcast, &layers(1, 1)).await;
    // Events about present packets precede the answer.
    let body =
        json!({ "substream": 1, "temporal": 1, "audio": false, "record": true, "filename": "al" });
    al.caller.message(body, None).await;
    al.expect(&event([("videocodec", is("vp8")), ("substream", is(1))]))
        .await;
    al.expect(&event([("videocodec", is("vp8")), ("temporal", is(1))]))
        .await;
    al.expect(&ok()).await;
    watcher.told(PACKAGE, Some(&al.caller)).await;
    let files = object([
        ("audio", is("al-audio.mjr")),
        ("video", is("al-video.mjr")),
        ("data", is("al-data.mjr")),
    ]);
    let simulcast = object([("substream", is(1)), ("temporal-layer", is(1))]);
    let configured = object([
        ("audio_active", is(false)),
        ("video_active", is(true)),
        ("bitrate", is(512_000)),
        ("simulcast", simulcast),
        ("recording", files.clone()),
    ]);
    configured.check(&watcher.told(PACKAGE, Some(&al.caller)).await);

    let slow = event([("event", is("slow_link")), ("media", is("audio"))]);
    loss_told(&mut al, AUDIO, &slow).await;
    let state = object([
        ("audio_active", is(false)),
        ("video_active", is(true)),
        ("audio_codec", is("opus")),
        ("video_codec", is("vp8")),
        ("bitrate", is(512_000)),
        ("peer-bitrate", Shape::Count),
        ("simulcast", is(true)),
        ("substream", is(1)),
        ("substream-target", is(1)),
        ("temporal-layer", is(1)),
        ("temporal-layer-target", is(1)),
        ("fallback", is(250_000)),
        ("recording", files),
        ("slowlink_count", Shape::Count),
        ("hangingup", is(0)),
        ("destroyed", is(0)),
    ]);
    state.check(&server.state(&al.caller).await);

    al.caller.request("hangup", json!({})).await;
    al.caller.until("/plugindata/data/result", "done").await;
    watcher.expect_silence();
}

#[tokio::test]
async fn svc_is_told_with_all_that_the_sender_has() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = Server::watched::<EchoTest>((), recorder(&folder)).await;
    let mut al = call(&server, &mut watcher, Layers::Svc).await;
    let layers = |spatial: u8, temporal: u8| {
        event([
            ("videocodec", is("vp9")),
            ("spatial_layer", is(spatial)),
            ("temporal_layer", is(temporal)),
            ("tot_spatial_layers", is(3)),
            ("tot_temporal_layers", is(3)),
            ("reason", Shape::Text),
        ])
    };
    own_layers_told(&mut al, Layers::Svc, &layers(2, 2)).await;
    let body = json!({ "spatial_layer": 1, "temporal_layer": 0 });
    al.caller.message(body.clone(), None).await;
    al.expect(&ok()).await;
    own_layers_told(&mut al, Layers::Svc, &layers(1, 0)).await;
    al.caller.message(body, None).await;
    al.expect(&event([
        ("videocodec", is("vp9")),
        ("spatial_layer", is(1)),
    ]))
    .await;
    al.expect(&event([
        ("videocodec", is("vp9")),
        ("temporal_layer", is(0)),
    ]))
    .await;
    al.expect(&ok()).await;
    let state = server.state(&al.caller).await;
    for (member, value) in [
        ("svc", json!(true)),
        ("spatial-layer", json!(1)),
        ("spatial-layer-target", json!(1)),
        ("temporal-layer", json!(0)),
        ("temporal-layer-target", json!(0)),
    ] {
        assert_eq!(state[member], value, "{member}");
    }
    let slow = event([
        ("event", is("slow_link")),
        ("media", is("video")),
        ("current-bitrate", is(512_000)),
    ]);
    loss_told(&mut al, VIDEO, &slow).await;
}

#[tokio::test]
async fn encrypted_and_redundant_media_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _watcher) = Server::watched::<EchoTest>((), recorder(&folder)).await;
    let mut al = Member::offering(&server, PACKAGE).await;
    let sdp = al.peer.offer(redundant());
    let offer = json!({ "type": "offer", "sdp": sdp, "e2ee": true });
    al.caller
        .message_with(json!({ "opusred": true }), offer)
        .await;
    let answer = al.next().await;
    ok().check(&answer["plugindata"]["data"]);
    assert_eq!(answer["jsep"]["e2ee"], true);
    let state = server.state(&al.caller).await;
    for (member, value) in [
        ("audio_codec", json!("opus")),
        ("audio_red", json!(true)),
        ("e2ee", json!(true)),
    ] {
        assert_eq!(state[member], value, "{member}");
    }
    assert!(state.get("video_codec").is_none(), "{state}");
}

/// Returns audio with redundancy (RFC 2198).
fn redundant() -> portunus_sdp::Description {
    use portunus_rtp::Pt;
    use portunus_sdp::{CodecName, Description, Kind, MediaOffer, OfferOptions};
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio.add_codec(CodecName::Opus, None, None);
    audio.add_red(Pt(63), Pt(111));
    Description::offer(OfferOptions {
        media: vec![audio],
        ..OfferOptions::default()
    })
}
