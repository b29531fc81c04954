//! Captures, as far as no packets are needed: what is refused.

use portunus_admin::AdminConfig;
use portunus_core::testing::{Line, TestClient, jsep};
use serde_json::{Value, json};

use crate::stage::{Stage, code};

fn stage(folder: Option<&std::path::Path>) -> Stage {
    Stage::configured(AdminConfig {
        secret: None,
        capture_folder: folder.map(Into::into),
    })
}

async fn calling(stage: &Stage) -> TestClient {
    let mut client = stage.attach().await;
    let offer = jsep("offer", "abcd", &[Line::Audio]);
    client.message(json!({ "do": "answer" }), Some(offer)).await;
    client.event().await;
    client
}

fn reason(reply: &Value) -> &str {
    assert_eq!(code(reply), 490, "{reply}");
    reply["error"]["reason"].as_str().unwrap()
}

#[tokio::test]
async fn nothing_is_written_where_no_folder_is_named_or_there_is_no_call() {
    let open = stage(None);
    let client = calling(&open).await;
    for verb in ["start_pcap", "start_text2pcap"] {
        let reply = open.ask_of(verb, &client, json!({})).await;
        assert!(reason(&reply).contains("admin.capture_folder"), "{reply}");
    }
    for verb in ["stop_pcap", "stop_text2pcap"] {
        let reply = open.ask_of(verb, &client, json!({})).await;
        assert_eq!(reason(&reply), "Capture not started");
    }
    let folder = tempfile::tempdir().unwrap();
    let named = stage(Some(folder.path()));
    let client = named.attach().await;
    let reply = named.ask_of("start_pcap", &client, json!({})).await;
    assert!(reason(&reply).contains("no PeerConnection"), "{reply}");
    let reply = named.ask_of("stop_pcap", &client, json!({})).await;
    assert_eq!(reason(&reply), "Capture not started");
}

#[tokio::test]
async fn places_outside_of_the_folder_and_wrong_types_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let named = stage(Some(folder.path()));
    let client = calling(&named).await;
    for members in [
        json!({ "folder": "/etc" }),
        json!({ "folder": ".." }),
        json!({ "folder": "missing" }),
        json!({ "filename": "../a" }),
        json!({ "filename": "a/b" }),
    ] {
        let reply = named.ask_of("start_pcap", &client, members.clone()).await;
        assert!(
            reason(&reply).starts_with("Error starting pcap dump: "),
            "{members}"
        );
    }
    for members in [
        json!({ "folder": 1 }),
        json!({ "filename": null }),
        json!({ "truncate": -1 }),
        json!({ "truncate": "all" }),
    ] {
        let reply = named
            .ask_of("start_text2pcap", &client, members.clone())
            .await;
        assert_eq!(code(&reply), 467, "{members}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
