#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use portunus_core::media::{DataMessage, DataPayload, Event};
use portunus_core::testing::{Line, TestServer, jsep};
use portunus_core::{CoreConfig, Plugin};
use portunus_textroom::{TextRoom, TextRoomConfig};
use serde_json::{Value, json};

// Each line is a message of one of three users on a data channel. Its first byte chooses the user,
// and text or bytes. All messages of the server are JSON of the plugin, and nothing may be left at
// the end.
fuzz_target!(|script: &str| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let plugin = TextRoom::new(TextRoomConfig::default()).expect("a plugin");
        let plugin: Arc<dyn Plugin> = Arc::new(plugin);
        let server = TestServer::new(CoreConfig::default(), vec![plugin]);
        let mut users = Vec::new();
        for _ in 0..3 {
            let mut user = server.attach("janus.plugin.textroom").await;
            user.message(json!({ "request": "setup" }), None).await;
            user.event().await;
            let answer = jsep("answer", "fuzz", &[Line::Data]);
            user.message(json!({ "request": "ack" }), Some(answer))
                .await;
            user.event().await;
            users.push(user);
        }
        let peers = server.peers();
        if let Some(first) = users.first_mut() {
            let create = json!({ "request": "create", "room": 1234, "history": 5 });
            first.request(create).await;
        }
        for line in script.lines().take(40) {
            let mut characters = line.chars();
            let Some(choice) = characters.next() else {
                continue;
            };
            let choice = u32::from(choice) as usize;
            let text = characters.as_str().to_owned();
            let payload = match choice / 3 % 8 {
                0 => DataPayload::Binary(text.into_bytes()),
                _ => DataPayload::Text(text),
            };
            let message = DataMessage {
                label: "any".to_owned(),
                protocol: String::new(),
                payload,
            };
            if let Some(peer) = peers.get(choice % 3) {
                server.happen(*peer, Event::Data(message)).await;
            }
        }
        // All messages have been processed when each user has an answer to a later one.
        for user in &mut users {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            user.request(json!({ "request": "list" })).await;
        }
        for (_, message) in server.requested().data {
            let DataPayload::Text(text) = message.payload else {
                panic!("bytes are sent: {message:?}");
            };
            let message: Value = serde_json::from_str(&text).expect("JSON");
            assert!(message["textroom"].is_string(), "{message}");
        }
        server.gateway.shutdown().await;
        let left = server.gateway.counters().snapshot();
        assert_eq!(
            (left.sessions, left.handles, server.peers().len()),
            (0, 0, 0)
        );
    });
});
