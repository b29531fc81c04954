#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use portunus_core::CoreConfig;
use portunus_core::testing::TestServer;
use portunus_echotest::EchoTest;
use portunus_videocall::VideoCall;

// Each line is a request of one of three users, with 1 for the id of its session and 2 for that of its handle.
fuzz_target!(|script: &str| {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let plugins = vec![Arc::new(EchoTest) as _, Arc::new(VideoCall::default()) as _];
        let server = TestServer::new(CoreConfig::default(), plugins);
        let mut users = [
            server.attach("janus.plugin.echotest").await,
            server.attach("janus.plugin.videocall").await,
            server.attach("janus.plugin.videocall").await,
        ];
        for (line, user) in script.lines().take(50).zip([0, 1, 2].into_iter().cycle()) {
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
