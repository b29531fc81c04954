//! A webhook with a working backend.

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use flate2::read::GzDecoder;
use openssl::asn1::Asn1Time;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use openssl::sign::Signer;
use openssl::x509::extension::SubjectAlternativeName;
use openssl::x509::{X509, X509NameBuilder};
use portunus_core::configuration;
use portunus_events::Webhook;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::backend::{Backend, serve_well};
use crate::lifecycle::{Running, numbers, start};

async fn to(backend: &Backend, keys: &str) -> Running {
    start::<Webhook>(&format!("backend = \"{}\"\n{keys}", backend.url())).await
}

#[tokio::test]
async fn events_come_in_order_as_arrays() {
    let backend = Backend::start([]).await;
    let webhook = to(&backend, "").await;
    webhook.publish(0..250);
    webhook.until("sent", 250).await;
    let requests = backend.requests();
    for request in &requests {
        assert_eq!(request.line(), "POST /events HTTP/1.1");
        assert_eq!(request.header("content-type").unwrap(), "application/json");
        assert_eq!(request.header("authorization"), None);
        assert_eq!(request.header("x-portunus-signature"), None);
        let events: Value = serde_json::from_slice(&request.body).unwrap();
        assert!(events.as_array().unwrap().len() <= 100);
        assert_eq!(events[0]["emitter"], "here");
        assert_eq!(events[0]["type"], 256);
    }
    assert_eq!(backend.numbers(), Vec::from_iter(0..250));
    let mut deliveries: Vec<_> = requests
        .iter()
        .map(|request| request.header("x-portunus-delivery").unwrap())
        .collect();
    deliveries.dedup();
    assert_eq!(deliveries.len(), requests.len());
    assert_eq!(webhook.counter("failed"), 0);
}

#[tokio::test]
async fn events_that_happen_in_quick_succession_come_together() {
    let backend = Backend::start([]).await;
    let webhook = to(&backend, "batch_pause_ms = 300\n").await;
    webhook.publish([0]);
    webhook.until("sent", 1).await;
    for n in 1..=20 {
        webhook.publish([n]);
        tokio::task::yield_now().await;
    }
    webhook.until("sent", 21).await;
    let requests = backend.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].at - requests[0].at >= Duration::from_millis(290));
}

#[tokio::test]
async fn without_grouping_each_event_comes_by_itself() {
    let backend = Backend::start([]).await;
    let webhook = to(&backend, "grouping = false\njson = \"indented\"\n").await;
    webhook.publish(0..3);
    webhook.until("sent", 3).await;
    for (n, request) in (0..).zip(backend.requests()) {
        assert!(request.body.starts_with(b"{\n   \""));
        assert_eq!(numbers(&request.body), [n]);
    }
}

#[tokio::test]
async fn bodies_are_compressed_if_that_is_wanted() {
    let backend = Backend::start([]).await;
    let webhook = to(&backend, "compress = true\ncompression = 9\n").await;
    webhook.publish([7]);
    let request = backend.until_requests(1).await.remove(0);
    assert_eq!(request.header("content-encoding").unwrap(), "gzip");
    let mut body = Vec::new();
    GzDecoder::new(&request.body[..])
        .read_to_end(&mut body)
        .unwrap();
    assert_eq!(numbers(&body), [7]);
}

#[tokio::test]
async fn the_server_says_who_it_is() {
    for (keys, expected) in [
        (
            "backend_user = \"ada\"\nbackend_pwd = \"lovelace\"\n",
            "Basic YWRhOmxvdmVsYWNl",
        ),
        ("bearer = \"t0ken\"\n", "Bearer t0ken"),
    ] {
        let backend = Backend::start([]).await;
        let webhook = to(&backend, keys).await;
        webhook.publish([1]);
        let request = backend.until_requests(1).await.remove(0);
        assert_eq!(request.header("authorization").unwrap(), expected);
    }
}

#[tokio::test]
async fn signatures_are_of_the_time_and_the_body() {
    let backend = Backend::start([]).await;
    let webhook = to(&backend, "hmac_secret = \"s3cret\"\ncompress = true\n").await;
    webhook.publish([1]);
    let request = backend.until_requests(1).await.remove(0);
    let header = request.header("x-portunus-signature").unwrap();
    let (time, signature) = header.split_once(",v1=").unwrap();
    let time = time.strip_prefix("t=").unwrap();
    let key = PKey::hmac(b"s3cret").unwrap();
    let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
    signer.update(format!("{time}.").as_bytes()).unwrap();
    signer.update(&request.body).unwrap();
    let expected: String = signer
        .sign_to_vec()
        .unwrap()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(signature, expected);
    let signed_at = SystemTime::UNIX_EPOCH + Duration::from_secs(time.parse().unwrap());
    assert!(signed_at.elapsed().unwrap() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_certificate_of_an_own_authority_is_taken_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let (certificate, key) = certificate();
    std::fs::write(&ca, certificate.to_pem().unwrap()).unwrap();
    let chain = vec![CertificateDer::from(certificate.to_der().unwrap())];
    let key = PrivatePkcs8KeyDer::from(key.private_key_to_pkcs8().unwrap());
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let noted = requests.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                serve_well(stream, &noted).await;
            }
        }
    });
    let backend = format!("backend = \"https://{address}/\"\nmax_retransmissions = 0\n");
    let stranger = start::<Webhook>(&backend).await;
    stranger.publish([1]);
    stranger.until("lost", 1).await;
    let error = stranger.last_error();
    assert!(error.contains("certificate"), "{error}");
    let ca = ca.display();
    let webhook = start::<Webhook>(&format!("{backend}ca = \"{ca}\"\n")).await;
    webhook.publish([2]);
    webhook.until("sent", 1).await;
    let taken: Vec<u64> = requests
        .lock()
        .unwrap()
        .iter()
        .flat_map(|it| numbers(&it.body))
        .collect();
    assert_eq!(taken, [2]);
}

fn certificate() -> (X509, PKey<openssl::pkey::Private>) {
    let key = PKey::from_rsa(Rsa::generate(2_048).unwrap()).unwrap();
    let mut name = X509NameBuilder::new().unwrap();
    name.append_entry_by_nid(Nid::COMMONNAME, "backend")
        .unwrap();
    let name = name.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(&name).unwrap();
    builder.set_pubkey(&key).unwrap();
    let (from, to) = (Asn1Time::days_from_now(0), Asn1Time::days_from_now(1));
    builder.set_not_before(&from.unwrap()).unwrap();
    builder.set_not_after(&to.unwrap()).unwrap();
    let names = SubjectAlternativeName::new()
        .ip("127.0.0.1")
        .build(&builder.x509v3_context(None, None))
        .unwrap();
    builder.append_extension(names).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    (builder.build(), key)
}

#[tokio::test]
async fn an_authority_that_cannot_be_read_is_said_at_the_start() {
    let keys = "backend = \"https://127.0.0.1/\"\nca = \"/nowhere/ca.pem\"\n";
    let bus = portunus_core::events::EventBus::default();
    let config = crate::lifecycle::read::<Webhook>(keys).unwrap();
    let error = config.start(&bus).await.unwrap_err().to_string();
    assert!(
        error.contains("webhook") && error.contains("/nowhere/ca.pem"),
        "{error}"
    );
}

#[tokio::test]
async fn a_tweak_changes_what_comes_next_and_wrong_ones_change_nothing() {
    let (first, second) = (Backend::start([]).await, Backend::start([]).await);
    let webhook = to(&first, "").await;
    for (name, wrong) in [
        ("events", json!(1)),
        ("grouping", json!("yes")),
        ("backend", json!(7)),
        ("backend", json!("ftp://example.org")),
        ("backend_user", json!([])),
        ("backend_pwd", json!(1)),
        ("compress", json!(1)),
        ("compression", json!(10)),
        ("compression", json!("9")),
        ("max_retransmissions", json!(-1)),
        ("max_retransmissions", json!(101)),
        ("retransmissions_backoff", json!(0.5)),
        ("retransmissions_backoff", json!(0)),
    ] {
        let mut members = json!({ "events": "none", "grouping": false });
        members[name] = wrong.clone();
        assert_eq!(webhook.tweak(members), Err(413), "{name}: {wrong}");
    }
    webhook.publish([1]);
    webhook.until("sent", 1).await;
    let events: Value = serde_json::from_slice(&first.requests()[0].body).unwrap();
    assert!(events.is_array());

    let right = json!({
        "events": "core", "grouping": false, "backend": second.url(), "backend_user": "u", "backend_pwd": "p",
        "compress": true, "compression": 1, "max_retransmissions": 0, "retransmissions_backoff": 1,
    });
    assert_eq!(webhook.tweak(right), Ok(()));
    webhook.publish([2]);
    webhook.until("sent", 2).await;
    let request = second.requests().remove(0);
    assert_eq!(request.header("content-encoding").unwrap(), "gzip");
    assert_eq!(request.header("authorization").unwrap(), "Basic dTpw");
    assert_eq!(webhook.ask(json!({ "request": "dance" })), Err(411));
    assert_eq!(webhook.ask(json!({})), Err(412));
}

#[tokio::test]
async fn another_server_gets_no_secrets_but_those_of_the_same_tweak() {
    const LOGIN: &str = "backend_user = \"ada\"\nbackend_pwd = \"lovelace\"\n";
    let secrets = |request: &crate::backend::Request| {
        let header = |name| request.header(name).is_some();
        (header("authorization"), header("x-portunus-signature"))
    };
    for keys in [LOGIN, "bearer = \"t0ken\"\n"] {
        let (own, other) = (Backend::start([]).await, Backend::start([]).await);
        let webhook = to(&own, &format!("hmac_secret = \"s3cret\"\n{keys}")).await;
        let leave = json!({ "backend": other.url() });
        assert_eq!(webhook.tweak(leave), Ok(()));
        webhook.publish([1]);
        webhook.until("sent", 1).await;
        assert_eq!(secrets(&other.requests()[0]), (false, false), "{keys}");
        let login = json!({ "backend_user": "u", "backend_pwd": "p" });
        assert_eq!(webhook.tweak(login), Ok(()));
        webhook.publish([2]);
        webhook.until("sent", 2).await;
        let shown = other.requests()[1].header("authorization");
        assert_eq!(shown.as_deref(), Some("Basic dTpw"), "{keys}");
        // The configured backend gets the configured credentials again.
        let come_back = json!({ "backend": format!("{}/elsewhere", own.url()) });
        assert_eq!(webhook.tweak(come_back), Ok(()));
        webhook.publish([3]);
        webhook.until("sent", 3).await;
        let request = own.requests().remove(0);
        assert_eq!(secrets(&request), (true, true), "{keys}");
        assert_ne!(
            request.header("authorization").unwrap(),
            "Basic dTpw",
            "{keys}"
        );
    }
}

#[tokio::test]
async fn a_user_beside_a_bearer_token_is_refused() {
    let backend = Backend::start([]).await;
    let webhook = to(&backend, "bearer = \"t0ken\"\n").await;
    let login = json!({ "backend_user": "u", "backend_pwd": "p" });
    assert_eq!(webhook.tweak(login), Err(413));
    webhook.publish([1]);
    let request = backend.until_requests(1).await.remove(0);
    assert_eq!(request.header("authorization").unwrap(), "Bearer t0ken");
}

#[tokio::test]
async fn at_the_end_of_the_server_what_waits_is_still_sent() {
    let backend = Backend::start([]).await;
    let webhook = to(&backend, "batch_pause_ms = 100\n").await;
    webhook.publish(0..150);
    webhook.bus.end().await;
    assert_eq!(backend.numbers(), Vec::from_iter(0..150));
}

#[test]
fn a_webhook_that_is_not_enabled_needs_no_backend() {
    let handler = portunus_core::events::EventHandlerRegistration::of::<Webhook>();
    let read = configuration::read("[events.webhook]\nenabled = false\n", |file| {
        file.section("events", |events| handler.read(events).is_enabled())
    });
    assert!(!read.unwrap());
}
