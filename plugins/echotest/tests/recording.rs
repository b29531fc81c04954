//! Recordings of a client.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use portunus_core::media::{CloseReason, Event};
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_core::sdp::{Codec, Kind};
use portunus_core::testing::{Line, TestClient, TestServer, jsep};
use portunus_core::{CoreConfig, HandleId, SessionId};
use portunus_echotest::EchoTest;
use serde_json::{Value, json};

const LINES: [Line; 3] = [Line::Audio, Line::Video, Line::Data];

struct Stage {
    folder: tempfile::TempDir,
    server: TestServer,
    recorder: Recorder,
    client: TestClient,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new(RecorderConfig {
            dir: Some(folder.path().to_owned()),
            keep_free_mb: 0,
            ..RecorderConfig::default()
        });
        let plugins = vec![Arc::new(EchoTest) as _];
        let server = TestServer::recording(recorder.clone(), CoreConfig::default(), plugins);
        let client = server.attach("janus.plugin.echotest").await;
        Self {
            folder,
            server,
            recorder,
            client,
        }
    }

    /// Sends a request, with an offer of `lines` if there are any. Returns the `ok`.
    async fn ask(&mut self, body: Value, lines: &[Line]) {
        let offer = (!lines.is_empty()).then(|| jsep("offer", "abcd", lines));
        self.client.message(body, offer).await;
        let (data, _) = self.client.event_with_jsep().await;
        assert_eq!(data, json!({ "echotest": "event", "result": "ok" }));
    }

    async fn recording(&self) -> Value {
        let (session, handle) = (SessionId(self.client.session), HandleId(self.client.handle));
        let state = self.server.gateway.query(session, handle).await.unwrap();
        state["recording"].clone()
    }

    /// The gates of the taps, by m-line.
    fn gates(&self) -> Vec<(String, bool)> {
        let outlets = self.server.requested().outlets.into_iter();
        let gate = |outlet: portunus_core::media::testing::RequestedOutlet| {
            let mid = outlet.from.track().unwrap().mid;
            (mid.as_str().to_owned(), outlet.options.enabled)
        };
        outlets.map(gate).collect()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// All but the manifests.
fn recordings(folder: &Path) -> Vec<String> {
    let mut names = names(folder);
    names.retain(|name| !name.ends_with(".json"));
    names
}

#[tokio::test]
async fn a_file_for_each_kind_until_it_is_stopped() {
    let mut stage = Stage::new().await;
    // Without media there is nothing to record.
    stage
        .ask(json!({ "record": true, "filename": "x" }), &[])
        .await;
    assert_eq!(stage.recording().await, Value::Null);
    let body = json!({ "record": true, "filename": "mine/echo", "video": false });
    stage.ask(body, &LINES).await;
    let files = json!({
        "audio": "echo-audio.mjr", "video": "echo-video.mjr", "data": "echo-data.mjr",
    });
    assert_eq!(stage.recording().await, files);
    let gate = |mid: &str, open| (mid.to_owned(), open);
    let expected = [gate("0", true), gate("1", false), gate("2", true)];
    assert_eq!(stage.gates(), expected);
    let sound = [0x80, 111, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, b's'];
    let tap = stage.server.requested().outlets[0].clone();
    assert!(tap.pretend_packet(&sound, Codec::Opus, Instant::now()));
    drop(tap);
    let outlets = stage.server.requested().outlets;
    assert!(outlets[1].pretend_first(Kind::Video) && outlets[2].pretend_first(Kind::Data));
    drop(outlets);

    // Mute only closes a gate: the files continue.
    stage
        .ask(json!({ "audio": false, "video": true }), &[])
        .await;
    let expected = [gate("0", false), gate("1", true), gate("2", true)];
    assert_eq!(stage.gates(), expected);
    stage
        .ask(json!({ "record": true, "filename": "y" }), &[])
        .await;
    assert_eq!(stage.gates().len(), 3);
    stage.ask(json!({ "record": false }), &[]).await;
    assert_eq!(stage.recording().await, Value::Null);
    stage.recorder.finished().await;
    let files = names(&stage.folder.path().join("mine"));
    assert_eq!(files.len(), 4, "{files:?}");
    assert!(files.contains(&"echo.json".to_owned()));
    let files = recordings(&stage.folder.path().join("mine"));
    assert_eq!(files, ["echo-audio.mjr", "echo-data.mjr", "echo-video.mjr"]);
    assert!(stage.recorder.totals().frames > 0);
    // Stopped is stopped.
    stage.ask(json!({ "record": false }), &[]).await;
}

#[tokio::test]
async fn files_without_a_name_get_one_and_a_hangup_ends_them() {
    let mut stage = Stage::new().await;
    stage.ask(json!({ "record": true }), &LINES[..1]).await;
    assert!(stage.server.requested().outlets[0].pretend_first(Kind::Audio));
    let peer = stage.server.peers()[0];
    let gone = Event::Closed(CloseReason::DtlsAlert);
    stage.server.happen(peer, gone).await;
    assert_eq!(stage.client.event().await["result"], "done");
    stage.recorder.finished().await;
    let names = recordings(stage.folder.path());
    let [name] = names.as_slice() else {
        panic!("{names:?}");
    };
    let prefix = format!("echotest-{}-", stage.client.handle);
    assert!(
        name.starts_with(&prefix) && name.ends_with("-audio.mjr"),
        "{name}"
    );
}

#[tokio::test]
async fn what_cannot_be_recorded_is_told_and_the_echo_goes_on() {
    let mut stage = Stage::new().await;
    std::fs::write(stage.folder.path().join("file"), "").unwrap();
    let bad = json!({ "record": true, "filename": "/etc/x", "audio": false });
    stage.client.message(bad, None).await;
    let error = stage.client.event().await;
    assert_eq!(error["error_code"], 413);
    stage
        .ask(json!({ "record": true, "filename": "file/x" }), &LINES[..1])
        .await;
    let event = stage.client.event().await;
    assert_eq!(event["event"], "recording_failed", "{event}");
    assert_eq!(event["media"], "audio");
    assert_eq!(stage.server.requested().routes.len(), 1);
    // It can be tried again.
    stage
        .ask(json!({ "record": true, "filename": "x" }), &[])
        .await;
    assert_eq!(stage.recording().await, json!({ "audio": "x-audio.mjr" }));
}

#[tokio::test]
async fn the_client_says_what_files_are_like() {
    let mut stage = Stage::new().await;
    for wrong in [json!("avi"), json!("MJR"), json!(5)] {
        let body = json!({ "record": true, "record_format": wrong });
        stage.client.message(body, None).await;
        assert_eq!(stage.client.event().await["error_code"], 413);
    }
    // Data goes to its own file.
    let body = json!({ "record": true, "filename": "echo", "record_format": "webm" });
    stage.ask(body, &LINES).await;
    let files = json!({ "files": ["echo.webm", "echo-data.mjr"] });
    assert_eq!(stage.recording().await, files);
    assert_eq!(stage.gates().len(), 3);
    stage.ask(json!({ "audio": false }), &[]).await;
    let gates = stage.gates();
    assert!(gates.contains(&("0".to_owned(), false)), "{gates:?}");
    assert!(gates.contains(&("1".to_owned(), true)), "{gates:?}");
    let outlets = stage.server.requested().outlets;
    let is_data = |mid: &str| {
        outlets
            .iter()
            .find(|it| it.from.track().is_some_and(|it| it.mid.as_str() == mid))
    };
    assert!(is_data("2").unwrap().pretend_first(Kind::Data));
    drop(outlets);
    // The file may be complete before the request is answered.
    stage.client.message(json!({ "record": false }), None).await;
    let told = [stage.client.event().await, stage.client.event().await];
    let done = told.iter().find(|event| event["event"] == "recording_done");
    let done = done.unwrap();
    assert_eq!(done["echotest"], "event");
    assert_eq!(done["file"], "echo-data.mjr");
    assert_eq!(done["end"], "stopped");
    assert!(told.iter().any(|event| event["result"] == "ok"), "{told:?}");
    stage.recorder.finished().await;

    let body = json!({ "record": true, "filename": "sound", "record_format": "opus" });
    stage.ask(body, &[]).await;
    let files = json!({ "files": ["sound.opus"] });
    assert_eq!(stage.recording().await, files);
}
