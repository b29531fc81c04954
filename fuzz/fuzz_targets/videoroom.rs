#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_core::testing::{Line, TestServer, jsep};
use portunus_core::{CoreConfig, Plugin};
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

// Each line is the body of a request of one of three users of a room, with any JSON in any field.
// Its first byte chooses the user and the description. Each request must be answered, and nothing
// may be left at the end.
fuzz_target!(|script: &str| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let server = TestServer::with_media(CoreConfig::default(), async |media| {
            let recorder = Recorder::new(RecorderConfig {
                enabled: false,
                ..RecorderConfig::default()
            });
            let plugin = VideoRoom::new(VideoRoomConfig::default(), media, recorder);
            vec![Arc::new(plugin.expect("a plugin")) as Arc<dyn Plugin>]
        })
        .await;
        let mut users = Vec::new();
        for _ in 0..3 {
            users.push(server.attach("janus.plugin.videoroom").await);
        }
        if let Some(first) = users.first_mut() {
            first
                .request(json!({ "request": "create", "room": 1234 }))
                .await;
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
            let mut members = json!({ "body": body });
            let description = match choice / 3 % 4 {
                0 => Some(jsep("offer", "fuzz", &[Line::Audio, Line::Video])),
                1 => Some(jsep("answer", "fuzz", &[Line::Audio, Line::Video])),
                2 => Some(jsep("offer", "fuzz", &[Line::Simulcast, Line::Data])),
                _ => None,
            };
            if let (Some(members), Some(description)) = (members.as_object_mut(), description) {
                members.insert("jsep".to_owned(), description);
            }
            let mut request = json!({
                "janus": "message", "transaction": "asked", "session_id": user.session,
                "handle_id": user.handle,
            });
            if let (Some(request), Value::Object(members)) = (request.as_object_mut(), members) {
                request.extend(members);
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
        assert!(server.requested().routes.is_empty());
    });
});
