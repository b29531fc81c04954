//! Recordings of users.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;

use portunus_core::record::{Recorder, RecorderConfig};
use portunus_core::sdp::Kind;
use portunus_core::testing::{Line, TestClient, TestServer, jsep};
use portunus_core::{CoreConfig, HandleId, SessionId};
use portunus_videocall::VideoCall;
use serde_json::{Value, json};

const LINES: [Line; 2] = [Line::Audio, Line::Video];

async fn result(client: &mut TestClient, body: Value, jsep: Option<Value>) -> Value {
    client.message(body, jsep).await;
    client.event().await["result"].clone()
}

async fn user(server: &TestServer, name: &str) -> TestClient {
    let mut client = server.attach("janus.plugin.videocall").await;
    let register = json!({ "request": "register", "username": name });
    result(&mut client, register, None).await;
    client
}

async fn recording(server: &TestServer, client: &TestClient) -> Value {
    let (session, handle) = (SessionId(client.session), HandleId(client.handle));
    let state = server.gateway.query(session, handle).await.unwrap();
    state["recording"].clone()
}

#[tokio::test]
async fn each_side_is_recorded_on_its_own_until_the_call_ends() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(RecorderConfig {
        dir: Some(folder.path().to_owned()),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    });
    let plugins = vec![Arc::new(VideoCall::default()) as _];
    let server = TestServer::recording(recorder.clone(), CoreConfig::default(), plugins);
    let (mut al, mut bo) = (user(&server, "al/../x").await, user(&server, "bo").await);

    // Nobody sends anything yet.
    let record = |name: &str| json!({ "request": "set", "record": true, "filename": name });
    let set = json!({ "event": "set" });
    assert_eq!(result(&mut al, record("early"), None).await, set);
    assert_eq!(recording(&server, &al).await, Value::Null);

    let call = json!({ "request": "call", "username": "bo" });
    result(&mut al, call, Some(jsep("offer", "alal", &LINES))).await;
    bo.event_with_jsep().await;
    let answer = Some(jsep("answer", "bobo", &LINES));
    result(&mut bo, json!({ "request": "accept" }), answer).await;
    al.event_with_jsep().await;

    assert_eq!(result(&mut al, record("calls/1"), None).await, set);
    let files = json!({ "audio": "1-audio.mjr", "video": "1-video.mjr" });
    assert_eq!(recording(&server, &al).await, files);
    assert_eq!(recording(&server, &bo).await, Value::Null);
    let mute = json!({ "request": "set", "audio": false });
    result(&mut al, mute, None).await;
    let peers = server.peers();
    let outlets = server.requested().outlets;
    let gates: Vec<_> = outlets.iter().map(|it| it.options.enabled).collect();
    assert_eq!(gates, [false, true]);
    let from = |n: usize| outlets[n].from.track().unwrap().peer;
    assert_eq!((from(0), from(1)), (peers[0], peers[0]));
    for (outlet, kind) in outlets.iter().zip([Kind::Audio, Kind::Video]) {
        assert!(outlet.pretend_first(kind));
    }
    drop(outlets);

    let own = json!({ "request": "set", "record": true });
    assert_eq!(result(&mut bo, own, None).await, set);
    let name = recording(&server, &bo).await["audio"].clone();
    let name = name.as_str().unwrap();
    assert!(name.starts_with("videocall-bo-al____x-"), "{name}");
    assert!(server.requested().outlets[2].pretend_first(Kind::Audio));

    result(&mut al, json!({ "request": "hangup" }), None).await;
    recorder.finished().await;
    assert!(folder.path().join("calls/1-audio.mjr").exists());
    assert!(folder.path().join("calls/1-video.mjr").exists());
    assert!(folder.path().join(name).exists());
    assert!(server.requested().outlets.is_empty());
}

#[tokio::test]
async fn a_user_says_what_files_are_like() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(RecorderConfig {
        dir: Some(folder.path().to_owned()),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    });
    let plugins = vec![Arc::new(VideoCall::default()) as _];
    let server = TestServer::recording(recorder.clone(), CoreConfig::default(), plugins);
    let (mut al, mut bo) = (user(&server, "al").await, user(&server, "bo").await);
    let call = json!({ "request": "call", "username": "bo" });
    result(&mut al, call, Some(jsep("offer", "alal", &LINES))).await;
    bo.event_with_jsep().await;
    let answer = Some(jsep("answer", "bobo", &LINES));
    result(&mut bo, json!({ "request": "accept" }), answer).await;
    al.event_with_jsep().await;
    for wrong in [json!("avi"), json!(5)] {
        let body = json!({ "request": "set", "record": true, "record_format": wrong });
        al.message(body, None).await;
        assert_eq!(al.event().await["error_code"], 474);
        assert_eq!(recording(&server, &al).await, Value::Null);
    }
    let body =
        json!({ "request": "set", "record": true, "filename": "a", "record_format": "webm" });
    assert_eq!(result(&mut al, body, None).await, json!({ "event": "set" }));
    assert_eq!(
        recording(&server, &al).await,
        json!({ "files": ["a.webm"] })
    );
    result(&mut al, json!({ "request": "hangup" }), None).await;
    recorder.finished().await;
}
