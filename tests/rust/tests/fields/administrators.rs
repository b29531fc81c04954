//! Requests of administrators to plugins (`message_plugin`), with all rights.

use std::sync::Arc;

use portunus_audio::{AudioConfig, AudioThreads};
use portunus_core::events::{EventBus, EventFilter};
use portunus_core::record::Recorder;
use portunus_core::{ConfiguredPlugin, Networks, Plugin, PluginContext, Reply, Services};
use portunus_echotest::EchoTest;
use portunus_media::MediaPlane;
use portunus_streaming::{Streaming, StreamingConfig};
use portunus_telephony::Telephony;
use portunus_tests::shape::{Shape, is, list, object};
use portunus_videocall::VideoCall;
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

/// Starts a plugin as a server does, with a watcher of its events.
async fn plugin<P: ConfiguredPlugin>(
    config: P::Config,
) -> (Arc<dyn Plugin>, portunus_core::events::Subscription) {
    let (media, ..) = MediaPlane::detached();
    let events = EventBus::default();
    let watcher = events.subscribe("test", EventFilter::ALL, 100);
    let recorder = Recorder::default();
    let services = Services::default()
        .with(AudioThreads::new(
            AudioConfig::default(),
            media.clone(),
            recorder.clone(),
        ))
        .with(Telephony::default());
    let context = PluginContext {
        media,
        recorder,
        outgoing: Networks::default(),
        events,
        services,
    };
    let plugin = P::from_config(config, context).await;
    (Arc::new(plugin.unwrap()), watcher)
}

async fn ask(plugin: &Arc<dyn Plugin>, request: Value) -> Value {
    match plugin.admin(request) {
        Some(Reply::Success(reply)) => reply,
        Some(Reply::Later(later)) => later.result().await,
        other => panic!("{other:?}"),
    }
}

/// Checks the answers to something that is no object, has no request, or an unknown one.
/// `unsupported` is one of clients only.
async fn wrong(plugin: &Arc<dyn Plugin>, name: &'static str, codes: [u16; 4], unsupported: &str) {
    for (request, code) in [
        json!([]),
        json!({}),
        json!({ "request": 1 }),
        json!({ "request": unsupported }),
    ]
    .into_iter()
    .zip(codes)
    {
        let shape = object([
            (name, is("event")),
            ("error_code", is(code)),
            ("error", Shape::Text),
        ]);
        shape.check(&ask(plugin, request).await);
    }
}

#[tokio::test]
async fn the_echo_test_echoes_and_the_video_call_has_no_answer() {
    let (echo, _) = plugin::<EchoTest>(()).await;
    let any = json!({ "a": [1, { "b": null }] });
    assert_eq!(ask(&echo, any.clone()).await, any);
    let (call, _) = plugin::<VideoCall>(()).await;
    assert!(call.admin(any).is_none());
}

#[tokio::test]
async fn mountpoints_are_managed() {
    let (streaming, watcher) = plugin::<Streaming>(StreamingConfig::default()).await;
    wrong(&streaming, "streaming", [451, 453, 454, 452], "watch").await;
    let create = json!({ "request": "CREATE", "type": "whip", "id": 7, "secret": "s", "is_private": true,
                         "media": [{ "type": "audio", "mid": "a" }] });
    let created = ask(&streaming, create).await;
    assert_eq!(created["streaming"], "created", "{created}");
    // Private rooms are visible to administrators.
    let listed = ask(&streaming, json!({ "request": "list" })).await;
    assert_eq!(listed["streaming"], "list");
    assert_eq!(listed["list"][0]["id"], 7, "{listed}");
    for (request, answer) in [
        (json!({ "request": "info", "id": 7, "secret": "s" }), "info"),
        (
            json!({ "request": "edit", "id": 7, "secret": "s", "new_metadata": "m" }),
            "edited",
        ),
        (
            json!({ "request": "disable", "id": 7, "secret": "s" }),
            "ok",
        ),
        (json!({ "request": "enable", "id": 7, "secret": "s" }), "ok"),
        (
            json!({ "request": "kick_all", "id": 7, "secret": "s" }),
            "kicked_all",
        ),
    ] {
        let answered = ask(&streaming, request).await;
        assert_eq!(answered["streaming"], answer, "{answered}");
    }
    // Administrators need secrets, too.
    for (secret, code) in [(json!(null), 454), (json!("x"), 457)] {
        let destroy = json!({ "request": "destroy", "id": 7, "secret": secret });
        assert_eq!(ask(&streaming, destroy).await["error_code"], code);
    }
    let recording = json!({ "request": "recording", "id": 7, "secret": "s", "action": "start",
                            "audio": "file" });
    let refused = ask(&streaming, recording).await;
    assert_eq!(refused["error_code"], 459, "nothing comes yet: {refused}");
    let destroyed = ask(
        &streaming,
        json!({ "request": "destroy", "id": 7, "secret": "s" }),
    )
    .await;
    object([("streaming", is("destroyed")), ("destroyed", is(7))]).check(&destroyed);

    // The events concern nobody's handle.
    for expected in [
        json!({ "event": "created", "id": 7, "type": "live" }),
        json!({ "event": "edited", "id": 7, "metadata": "m" }),
        json!({ "event": "kicked_all", "id": 7 }),
        json!({ "event": "destroyed", "id": 7 }),
    ] {
        let event = watcher.try_recv().unwrap();
        assert_eq!((event.address.session, event.address.handle), (None, None));
        assert_eq!(event.body()["data"], expected);
    }
    assert_eq!(watcher.try_recv(), None);
}

#[tokio::test]
async fn rooms_are_managed() {
    let (rooms, watcher) = plugin::<VideoRoom>(VideoRoomConfig::default()).await;
    wrong(&rooms, "videoroom", [422, 429, 430, 423], "join").await;
    let create = json!({ "request": "create", "room": 7, "secret": "s", "allowed": ["t"], "rec_dir": "d", "is_private": true });
    let created = ask(&rooms, create).await;
    assert_eq!(created["videoroom"], "created", "{created}");
    let listed = ask(&rooms, json!({ "request": "list" })).await;
    assert_eq!(listed["list"][0]["rec_dir"], "d", "{listed}");
    let secret = |mut request: Value| {
        request["room"] = json!(7);
        request["secret"] = json!("s");
        request
    };
    let remote = json!({ "request": "add_remote_publisher", "id": 3, "streams": [
        { "type": "audio", "mid": "0", "mindex": 0, "codec": "opus" },
    ]});
    for (request, answer) in [
        (json!({ "request": "exists" }), "success"),
        (json!({ "request": "listparticipants" }), "participants"),
        (json!({ "request": "listforwarders" }), "forwarders"),
        (
            json!({ "request": "edit", "new_description": "d" }),
            "edited",
        ),
        (
            json!({ "request": "allowed", "action": "add", "allowed": ["u"] }),
            "success",
        ),
        (
            json!({ "request": "enable_recording", "record": false }),
            "success",
        ),
        (remote, "success"),
        (
            json!({ "request": "moderate", "id": 3, "mid": "0", "mute": true }),
            "success",
        ),
        (json!({ "request": "kick", "id": 3 }), "success"),
        (json!({ "request": "destroy" }), "destroyed"),
    ] {
        let answered = ask(&rooms, secret(request.clone())).await;
        assert_eq!(answered["videoroom"], answer, "{request}: {answered}");
    }
    let streams = list([object([
        ("type", is("audio")),
        ("mindex", is(0)),
        ("mid", is("0")),
        ("codec", is("opus")),
    ])]);
    let of_room = |name: &str| object([("event", is(name)), ("room", is(7))]);
    let moderated = object([
        ("videoroom", is("moderated")),
        ("room", is(7)),
        ("id", is(3)),
        ("mid", is("0")),
        ("moderation", is("muted")),
    ]);
    for expected in [
        of_room("created"),
        of_room("edited"),
        of_room("published").and([("id", is(3)), ("streams", streams)]),
        moderated,
        of_room("kicked").and([("id", is(3))]),
        of_room("destroyed"),
    ] {
        let event = watcher.try_recv().unwrap();
        assert_eq!((event.address.session, event.address.handle), (None, None));
        expected.check(&event.body()["data"]);
    }
    assert_eq!(watcher.try_recv(), None);
}
