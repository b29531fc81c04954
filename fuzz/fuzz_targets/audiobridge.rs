#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use portunus_audio::{AudioConfig, AudioThreads};
use portunus_audiobridge::{AudioBridge, AudioBridgeConfig};
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_core::testing::{Line, TestServer, jsep};
use portunus_core::{CoreConfig, Plugin};
use serde_json::{Value, json};

// Each line is the body of a request of one of three users of a room, with any JSON in any field.
// Its first byte chooses the user and the description. Each request must be answered, and nothing
// may be left at the end.
fuzz_target!(|script: &str| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let recorder = Recorder::new(RecorderConfig {
            enabled: false,
            ..RecorderConfig::default()
        });
        let mut threads = None;
        let server = TestServer::recording_with(recorder.clone(), CoreConfig::default(), |media| {
            let config = AudioConfig {
                threads: 1,
                pin: false,
            };
            let audio = AudioThreads::new(config, media.clone(), recorder.clone());
            threads = Some(audio.clone());
            let config = AudioBridgeConfig::default();
            let plugin = AudioBridge::new(config, media.clone(), recorder.clone(), audio);
            vec![Arc::new(plugin.expect("a plugin")) as Arc<dyn Plugin>]
        });
        let mut users = Vec::new();
        for _ in 0..3 {
            users.push(server.attach("janus.plugin.audiobridge").await);
        }
        if let Some(first) = users.first_mut() {
            let create = json!({
                "request": "create", "room": 1234, "groups": ["a", "b"], "allow_rtp_participants": true,
            });
            first.request(create).await;
        }
        for line in script.lines().take(40) {
            let mut characters = line.chars();
            let Some(choice) = characters.next() else {
                continue;
            };
            let Ok(body) = serde_json::from_str::<Value>(characters.as_str()) else {
                continue;
            };
            let choice = u32::from(choice) as usize;
            let Some(user) = users.get_mut(choice % 3) else {
                continue;
            };
            let mut request = json!({
                "janus": "message", "transaction": "asked", "session_id": user.session,
                "handle_id": user.handle, "body": body,
            });
            let description = match choice / 3 % 4 {
                0 => Some(jsep("offer", "fuzz", &[Line::Audio])),
                1 => Some(jsep("answer", "fuzz", &[Line::Audio])),
                2 => Some(jsep("offer", "fuzz", &[Line::Video, Line::Audio])),
                _ => None,
            };
            if let (Some(request), Some(description)) = (request.as_object_mut(), description) {
                request.insert("jsep".to_owned(), description);
            }
            server
                .gateway
                .submit(&user.client, request.to_string().as_bytes())
                .await;
            // Events of others may come first.
            while user.next().await["transaction"] != "asked" {}
        }
        server.gateway.shutdown().await;
        let left = server.gateway.counters().snapshot();
        assert_eq!(
            (left.sessions, left.handles, server.peers().len()),
            (0, 0, 0)
        );
        // The thread does it within a frame.
        while threads.as_ref().expect("threads").totals().participants > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    });
});
