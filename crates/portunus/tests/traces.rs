//! Traces of requests, as a collector gets them by OTLP.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod server;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{self, Receiver};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use prost::Message;
use serde_json::json;
use server::{PATIENCE, post, signal, start};

/// A collector that accepts all traces; its address, and the batches that come.
fn collector() -> (String, Receiver<ExportTraceServiceRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let (sender, batches) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = BufReader::new(connection.unwrap());
            let mut len = 0;
            loop {
                let mut line = String::new();
                connection.read_line(&mut line).unwrap();
                let line = line.trim_end().to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    len = value.trim().parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; len];
            connection.read_exact(&mut body).unwrap();
            sender
                .send(ExportTraceServiceRequest::decode(&*body).unwrap())
                .unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            connection.get_mut().write_all(answer).unwrap();
        }
    });
    (url, batches)
}

fn spans(batches: &Receiver<ExportTraceServiceRequest>) -> Vec<Span> {
    let mut spans = Vec::new();
    while let Ok(batch) = batches.try_recv() {
        for resource in batch.resource_spans {
            let attributes = resource.resource.unwrap().attributes;
            assert!(attributes.iter().any(|it| it.key == "service.name"));
            spans.extend(resource.scope_spans.into_iter().flat_map(|it| it.spans));
        }
    }
    spans
}

#[test]
fn each_request_is_a_span_of_the_trace_that_its_client_names() {
    let folder = tempfile::tempdir().unwrap();
    let (url, batches) = collector();
    let (mut server, api) = start(folder.path(), &format!("[traces]\nurl = {url:?}\n"));
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let session = post(
        &api,
        &json!({
            "janus": "create", "transaction": "one",
            "traceparent": format!("00-{trace}-b7ad6b7169203331-01"),
        }),
    );
    let session = format!("{api}/{}", session["data"]["id"]);
    let attach =
        json!({ "janus": "attach", "transaction": "two", "plugin": "janus.plugin.echotest" });
    let handle = format!("{session}/{}", post(&session, &attach)["data"]["id"]);
    let body = json!({ "request": "unheard of" });
    post(
        &handle,
        &json!({ "janus": "message", "transaction": "three", "body": body }),
    );
    let wrong = json!({ "janus": "attach", "transaction": "four", "plugin": "janus.plugin.none" });
    let refused = post(&session, &wrong);
    signal(&server, "-TERM");
    assert!(server.0.wait().unwrap().success());
    let spans = spans(&batches);
    let named = |name: &str, transaction: &str| {
        let of = |span: &&Span| {
            span.name == name
                && (span.attributes.iter()).any(|it| {
                    it.key == "janus.transaction" && format!("{:?}", it.value).contains(transaction)
                })
        };
        spans
            .iter()
            .find(of)
            .unwrap_or_else(|| panic!("{name}: {spans:?}"))
    };
    let create = named("create", "one");
    assert_eq!(hex(&create.trace_id), trace);
    assert_eq!(hex(&create.parent_span_id), "b7ad6b7169203331");
    assert_eq!(create.kind, SpanKind::Server as i32);
    assert!(create.end_time_unix_nano >= create.start_time_unix_nano);
    assert!(named("attach", "two").parent_span_id.is_empty());
    named("message unheard of", "three");
    let status = named("attach", "four").status.as_ref().unwrap();
    assert_eq!(status.code, StatusCode::Error as i32);
    assert_eq!(status.message, refused["error"]["reason"]);
}

#[test]
fn a_collector_that_is_not_there_disturbs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let traces = format!("[traces]\nurl = \"http://{gone}/v1/traces\"\n");
    let (mut server, api) = start(folder.path(), &traces);
    for number in 0..100 {
        let answer = post(
            &api,
            &json!({ "janus": "create", "transaction": format!("{number}") }),
        );
        assert_eq!(answer["janus"], "success");
    }
    signal(&server, "-TERM");
    let begun = std::time::Instant::now();
    assert!(server.0.wait().unwrap().success());
    assert!(begun.elapsed() < PATIENCE);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
