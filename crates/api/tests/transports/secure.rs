//! HTTPS and secure WebSocket.

use std::sync::Arc;

use portunus_admin::{AdminOptions, Administration};
use portunus_api::testing::write_certificate;
use portunus_api::{StartError, Transports};
use portunus_core::CoreConfig;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::server::{Socket, config, request, start, start_with};

async fn connect(
    address: std::net::SocketAddr,
    trusted: &CertificateDer<'static>,
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let client = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(client))
        .connect(name, stream)
        .await
        .unwrap()
}

#[tokio::test]
async fn https_and_wss_serve_what_http_and_ws_serve() {
    let folder = tempfile::tempdir().unwrap();
    let trusted = write_certificate(folder.path());
    let mut config = config();
    config.http.https = true;
    config.http.https_port = 0;
    config.websocket.wss = true;
    config.websocket.wss_port = 0;
    config.tls.certificate = Some(folder.path().join("cert.pem"));
    config.tls.key = Some(folder.path().join("key.pem"));
    let server = start_with(CoreConfig::default(), config).await;

    let stream = connect(server.transports.https()[0], &trusted).await;
    let answer = request(stream, "GET", "/janus/ping", &[], b"").await;
    assert_eq!(answer.json()["janus"], "pong");

    let stream = connect(server.transports.wss()[0], &trusted).await;
    Socket::open(stream, Some("janus-protocol"))
        .await
        .unwrap()
        .ping()
        .await;

    // Plain HTTP on the port of HTTPS ends that connection only.
    let stream = TcpStream::connect(server.transports.https()[0])
        .await
        .unwrap();
    tokio::spawn(request(stream, "GET", "/", &[], b""))
        .await
        .unwrap_err();
    let stream = connect(server.transports.https()[0], &trusted).await;
    assert_eq!(
        request(stream, "GET", "/healthz", &[], b"").await.status,
        200
    );
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_is_an_error_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    write_certificate(folder.path());
    std::fs::write(folder.path().join("empty.pem"), "").unwrap();
    let gateway = start().await.core.gateway;
    for (certificate, key, part) in [
        (
            None,
            None,
            "http.https needs a certificate: set tls.certificate and tls.key",
        ),
        (Some("cert.pem"), None, "needs a certificate"),
        (Some("none.pem"), Some("key.pem"), "the certificate: "),
        (Some("empty.pem"), Some("key.pem"), "holds none"),
        (Some("cert.pem"), Some("empty.pem"), "the key: "),
        (
            Some("key.pem"),
            Some("cert.pem"),
            "cannot use the certificate",
        ),
    ] {
        let mut config = config();
        config.http.https = true;
        config.http.https_port = 0;
        config.tls.certificate = certificate.map(|name| folder.path().join(name));
        config.tls.key = key.map(|name| folder.path().join(name));
        let error = Transports::start(
            config,
            Administration::new(gateway.clone(), AdminOptions::default()),
            Vec::new(),
        )
        .await
        .unwrap_err();
        assert!(matches!(
            error,
            StartError::NoCertificate(_) | StartError::Certificate { .. }
        ));
        assert!(error.to_string().contains(part), "{error}");
    }
}
