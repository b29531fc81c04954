#![no_main]

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use portunus_api::testing::whip_router;
use portunus_core::record::Recorder;
use portunus_core::testing::TestServer;
use portunus_core::{CoreConfig, Plugin};
use portunus_streaming::{ConfiguredMountpoint, Streaming, StreamingConfig};
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt;

// Requests separated by `=====`: a line with method and path, headers, an empty line, a body.
// RESOURCE and ETAG stand for those of the last answer. Nothing panics, and errors have an
// explanation.
fuzz_target!(|script: &str| {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let server = TestServer::with_media(CoreConfig::default(), async |media| {
            let mountpoint = json!({
                "name": "stage", "type": "whip", "id": 7, "token": "t",
                "media": [{ "type": "audio", "mid": "a" }, { "type": "video", "mid": "v" }],
            });
            let Value::Object(members) = mountpoint else {
                unreachable!()
            };
            let config = StreamingConfig {
                mountpoints: vec![
                    ConfiguredMountpoint::read(&members, false).expect("a mountpoint"),
                ],
                ..StreamingConfig::default()
            };
            let streaming = Streaming::start(config, media, Recorder::default()).await;
            vec![Arc::new(streaming.expect("a plugin")) as Arc<dyn Plugin>]
        })
        .await;
        let router = whip_router(server.gateway.clone());
        let (mut resource, mut etag) = (String::new(), String::new());
        for text in script.split("=====").take(6) {
            let text = text
                .trim_start_matches('\n')
                .replace("RESOURCE", &resource)
                .replace("ETAG", &etag);
            let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
            let mut lines = head.lines();
            let (method, path) = lines
                .next()
                .and_then(|line| line.split_once(' '))
                .unwrap_or(("POST", "/whip/7"));
            let Ok(method) = Method::from_bytes(method.as_bytes()) else {
                return;
            };
            let mut request = Request::builder().method(method).uri(path);
            for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
                request = request.header(name, value);
            }
            let Ok(request) = request.body(Body::from(body.replace('\n', "\r\n"))) else {
                return;
            };
            let answer = router.clone().oneshot(request).await.expect("an answer");
            assert_ne!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR, "{text}");
            let header = |name: &str| {
                let value = answer.headers().get(name);
                value
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or_default()
                    .to_owned()
            };
            if answer.status() == StatusCode::CREATED {
                (resource, etag) = (header("location"), header("etag"));
                assert!(!resource.is_empty() && !etag.is_empty());
            } else if answer.status().is_client_error()
                && header("content-type") == "application/problem+json"
            {
                let body = axum::body::to_bytes(answer.into_body(), 100_000)
                    .await
                    .expect("a body");
                let problem: Value = serde_json::from_slice(&body).expect("JSON");
                assert!(
                    problem["detail"]
                        .as_str()
                        .is_some_and(|detail| !detail.is_empty())
                );
            }
        }
        server.gateway.shutdown().await;
    });
});
