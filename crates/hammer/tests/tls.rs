//! The Janus API and WHIP of a server at `wss://` and `https://`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up has failed"
)]

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use portunus_admin::{AdminOptions, Administration};
use portunus_api::testing::write_certificate;
use portunus_api::{ApiConfig, Transports};
use portunus_core::record::Recorder;
use portunus_core::testing::{Line, TestServer, jsep};
use portunus_core::{CoreConfig, Plugin};
use portunus_hammer::client::{Broadcast, ClientError, Connection, Credentials, Trust};
use portunus_streaming::{Streaming, StreamingConfig};
use serde_json::json;

/// Starts a server with the streaming plugin at `wss://` and `https://`. Returns these two ports.
async fn start(folder: &Path) -> (TestServer, Transports, u16, u16) {
    let server = TestServer::with_media(CoreConfig::default(), async |media| {
        let plugin = Streaming::start(StreamingConfig::default(), media, Recorder::default());
        vec![Arc::new(plugin.await.unwrap()) as Arc<dyn Plugin>]
    })
    .await;
    let mut config = ApiConfig::default();
    let bind = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    (config.http.bind, config.http.port) = (bind.clone(), 0);
    (config.websocket.bind, config.websocket.port) = (bind, 0);
    (config.http.https, config.http.https_port) = (true, 0);
    (config.websocket.wss, config.websocket.wss_port) = (true, 0);
    config.admin.enabled = false;
    config.tls.certificate = Some(folder.join("cert.pem"));
    config.tls.key = Some(folder.join("key.pem"));
    let transports = Transports::start(
        config,
        Administration::new(server.gateway.clone(), AdminOptions::default()),
        Vec::new(),
    );
    let transports = transports.await.unwrap();
    let (wss, https) = (transports.wss()[0].port(), transports.https()[0].port());
    (server, transports, wss, https)
}

#[tokio::test]
async fn sessions_and_broadcasts_go_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let root = write_certificate(folder.path());
    let (_server, _transports, wss, https) = start(folder.path()).await;
    for (id, trust) in [(7, Trust::only([root])), (8, Trust::anybody())] {
        let url = format!("wss://localhost:{wss}");
        let connection = Connection::open(&url, Credentials::default(), &trust).await;
        let connection = connection.unwrap();
        assert_eq!(connection.info().await.unwrap()["janus"], "server_info");
        let session = connection.create().await.unwrap();
        let handle = session.attach("janus.plugin.streaming").await.unwrap();
        let body = json!({
            "request": "create", "type": "whip", "id": id,
            "media": [{ "type": "video", "mid": "v" }],
        });
        handle.message(body, None).await.unwrap();
        let offer = jsep("offer", "abcd", &[Line::Video]);
        let offer = offer["sdp"].as_str().unwrap().to_owned();
        let url = format!("https://localhost:{https}/whip/{id}");
        let broadcast = Broadcast::offer(&url, None, &trust, offer).await.unwrap();
        assert!(broadcast.answer.contains("m=video 9 "));
        broadcast.end().await.unwrap();
    }
}

#[tokio::test]
async fn certificates_that_nobody_vouches_for_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_certificate(folder.path());
    let (_server, _transports, wss, https) = start(folder.path()).await;
    for trust in [Trust::system(), Trust::only([])] {
        let url = format!("wss://localhost:{wss}");
        let refused = Connection::open(&url, Credentials::default(), &trust).await;
        let url = format!("https://localhost:{https}/whip/7");
        let offered = Broadcast::offer(&url, None, &trust, "v=0".to_owned()).await;
        for error in [refused.map(drop).unwrap_err(), offered.unwrap_err()] {
            let ClientError::Connect { reason, .. } = &error else {
                panic!("{error}");
            };
            assert!(reason.contains("--insecure"), "{error}");
        }
    }
}

/// The program has the same options. It gets as far as requesting what the server lacks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_takes_self_signed_certificates_if_told_to() {
    let folder = tempfile::tempdir().unwrap();
    write_certificate(folder.path());
    let (_server, _transports, wss, _) = start(folder.path()).await;
    let url = format!("wss://localhost:{wss}");
    let run = |options: &[&str], file: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portunus-hammer"));
        command.args(["echo", "--peers", "1", "--duration", "0.1", "--settle", "0"]);
        command
            .args(["--connections", "1", "--janus", &url])
            .args(options);
        if let Some(file) = file {
            command.env("SSL_CERT_FILE", file);
        }
        let output = tokio::task::block_in_place(|| command.output().unwrap());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let refused = run(&[], None);
    assert!(refused.contains("--insecure takes any"), "{refused}");
    // The server has no echo test plugin.
    for (options, file) in [
        (&["--insecure"][..], None),
        (&[], Some(folder.path().join("cert.pem"))),
    ] {
        let nobody = run(options, file.as_deref());
        assert!(nobody.contains("No such plugin"), "{options:?}: {nobody}");
    }
}
