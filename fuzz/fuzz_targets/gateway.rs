#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_core::testing::TestServer;
use portunus_core::{CoreConfig, Plugin};
use portunus_echotest::EchoTest;
use portunus_streaming::{Streaming, StreamingConfig};
use portunus_videocall::VideoCall;
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use portunus_voicemail::{VoiceMail, VoiceMailConfig};

/// The users, who take turns.
const USERS: [&str; 8] = [
    "echotest",
    "videocall",
    "videocall",
    "streaming",
    "streaming",
    "videoroom",
    "videoroom",
    "voicemail",
];

// Each line is a request of one of the users, with 1 for the id of its session and 2 for that of
// its handle.
fuzz_target!(|script: &str| {
    // No connections to other hosts, in any spelling, and no files.
    let lower = script.to_ascii_lowercase();
    if ["rtsp", "host", "\\u", "filename"]
        .iter()
        .any(|word| lower.contains(word))
    {
        return;
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime
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
            let mail = VoiceMail::new(VoiceMailConfig::default(), media.clone(), &recorder);
            let room = VideoRoom::new(VideoRoomConfig::default(), media.clone(), recorder.clone());
            let streaming = Streaming::start(StreamingConfig::default(), media, recorder).await;
            vec![
                Arc::new(EchoTest) as Arc<dyn Plugin>,
                Arc::new(VideoCall::default()) as _,
                Arc::new(streaming.expect("a plugin")) as _,
                Arc::new(room.expect("a plugin")) as _,
                Arc::new(mail) as _,
            ]
        })
        .await;
        let mut users = Vec::new();
        for plugin in USERS {
            users.push(server.attach(&format!("janus.plugin.{plugin}")).await);
        }
        for (line, user) in script.lines().take(50).zip((0..USERS.len()).cycle()) {
            let user = &mut users[user];
            let request = line
                .replace(
                    "\"session_id\":1",
                    &format!("\"session_id\":{}", user.session),
                )
                .replace("\"handle_id\":2", &format!("\"handle_id\":{}", user.handle));
            server
                .gateway
                .submit(&user.client, request.as_bytes())
                .await;
        }
        server.gateway.shutdown().await;
        let left = server.gateway.counters().snapshot();
        assert_eq!(
            (left.sessions, left.handles, server.peers().len()),
            (0, 0, 0)
        );
    });
});
