//! A webhook with failing backends.

use std::time::{Duration, Instant};

use portunus_events::Webhook;
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};

use crate::backend::{Answer, Backend};
use crate::lifecycle::{Running, start, until};

/// Failures after which the same events are sent again.
const PASSING: [(&str, Answer, &str); 10] = [
    (
        "500",
        Answer::Says("HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n"),
        "500",
    ),
    (
        "503",
        Answer::SaysAndCloses("HTTP/1.1 503 Oh\r\nconnection: close\r\n\r\nlater"),
        "503",
    ),
    (
        "429",
        Answer::Says("HTTP/1.1 429 Oh\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n"),
        "429",
    ),
    (
        "408",
        Answer::SaysAndCloses("HTTP/1.1 408 Oh\r\nconnection: close\r\n\r\n"),
        "408",
    ),
    (
        "garbage",
        Answer::SaysAndCloses("\x01\x02 SSH-2.0-no HTTP\r\n\r\n"),
        "no HTTP",
    ),
    (
        "an answer without end",
        Answer::SaysAndCloses("HTTP/1.1 200"),
        "broke off",
    ),
    (
        "a body that is cut",
        Answer::SaysAndCloses("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok"),
        "broke off",
    ),
    ("no answer", Answer::Closes, "broke off"),
    ("a reset", Answer::Resets, "broke off"),
    ("silence", Answer::Hangs, "in time"),
];

async fn to(url: &str, keys: &str) -> Running {
    let keys = format!("backend = \"{url}\"\ntimeout = 1\nretransmissions_backoff = 1\n{keys}");
    start::<Webhook>(&keys).await
}

/// Returns the numbers without immediate repetitions.
fn once(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[tokio::test]
async fn events_are_sent_again_in_order_after_each_failure_that_may_pass() {
    for (what, answer, error) in PASSING {
        let backend = Backend::start([answer]).await;
        let webhook = to(&backend.url(), "").await;
        webhook.publish(0..150);
        webhook.until("sent", 150).await;
        let requests = backend.requests();
        let delivery = |n: usize| requests[n].header("x-portunus-delivery");
        assert_eq!(delivery(0), delivery(1), "{what}");
        assert_ne!(delivery(1), delivery(2), "{what}");
        assert_eq!(requests[0].body, requests[1].body, "{what}");
        let mut numbers = backend.numbers();
        let again = crate::lifecycle::numbers(&requests[0].body).len();
        numbers.drain(..again);
        assert_eq!(numbers, Vec::from_iter(0..150), "{what}");
        for (counter, value) in [("failed", 1), ("retried", 1), ("lost", 0)] {
            assert_eq!(webhook.counter(counter), value, "{what}: {counter}");
        }
        let told = webhook.last_error();
        assert!(told.contains(error), "{what}: {told}");
    }
}

#[tokio::test]
async fn a_backend_that_refuses_connections_gets_the_events_once_it_is_there() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let url = format!("http://{address}/events");
    let webhook = to(&url, "max_retransmissions = 100\n").await;
    webhook.publish(0..150);
    until(|| webhook.counter("failed") >= 3, || webhook.last_error()).await;
    assert!(webhook.last_error().contains("cannot be reached"));
    let backend = Backend::on(socket.listen(8).unwrap(), []);
    webhook.until("sent", 150).await;
    assert_eq!(backend.numbers(), Vec::from_iter(0..150));
    assert_eq!(webhook.counter("lost"), 0);
}

#[tokio::test]
async fn what_will_not_pass_is_not_tried_again_and_later_events_arrive() {
    let elsewhere = Backend::start([]).await;
    let redirect = format!(
        "HTTP/1.1 307 Elsewhere\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
        elsewhere.url()
    );
    for (answer, error) in [
        ("HTTP/1.1 400 Oh\r\ncontent-length: 0\r\n\r\n", "400"),
        ("HTTP/1.1 401 Oh\r\ncontent-length: 0\r\n\r\n", "401"),
        ("HTTP/1.1 404 Oh\r\ncontent-length: 0\r\n\r\n", "404"),
        (redirect.clone().leak(), "redirect"),
    ] {
        let backend = Backend::start([Answer::Says(answer)]).await;
        let webhook = to(&backend.url(), "").await;
        webhook.publish([1]);
        webhook.until("lost", 1).await;
        webhook.publish([2]);
        webhook.until("sent", 1).await;
        assert_eq!(backend.numbers(), [1, 2]);
        assert_eq!(webhook.counter("retried"), 0);
        let told = webhook.last_error();
        assert!(told.contains(error), "{told}");
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn events_are_given_up_after_the_last_attempt_and_counted() {
    let oh = Answer::Says("HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n");
    let backend = Backend::start([oh; 4]).await;
    let keys = "max_retransmissions = 3\ngrouping = false\n";
    let webhook = to(&backend.url(), keys).await;
    webhook.publish([1, 2]);
    webhook.until("sent", 1).await;
    assert_eq!(backend.numbers(), [1, 1, 1, 1, 2]);
    for (counter, value) in [("failed", 4), ("retried", 3), ("lost", 1)] {
        assert_eq!(webhook.counter(counter), value, "{counter}");
    }
}

#[tokio::test]
async fn attempts_are_further_and_further_apart() {
    let oh = Answer::Says("HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n");
    let backend = Backend::start([oh; 3]).await;
    let webhook = to(&backend.url(), "").await;
    let first_wait = serde_json::json!({ "retransmissions_backoff": 50 });
    assert_eq!(webhook.tweak(first_wait), Ok(()));
    webhook.publish([1]);
    let requests = backend.until_requests(4).await;
    for (pair, wait) in requests.windows(2).zip([50, 100, 200]) {
        let waited = pair[1].at - pair[0].at;
        assert!(
            waited >= Duration::from_millis(wait),
            "{waited:?} for {wait} ms"
        );
    }
}

#[tokio::test]
async fn the_end_of_the_server_waits_for_no_backend_that_fails() {
    let later = Answer::Says("HTTP/1.1 503 Oh\r\nretry-after: 60\r\ncontent-length: 0\r\n\r\n");
    let backend = Backend::start([later; 10]).await;
    let webhook = to(&backend.url(), "").await;
    webhook.publish([1]);
    webhook.until("failed", 1).await;
    let begun = Instant::now();
    webhook.bus.end().await;
    // The bus would wait for 2 s.
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(backend.numbers(), [1, 1]);
    assert_eq!(webhook.counter("lost"), 1);
}

#[tokio::test]
async fn a_backend_may_say_when_to_come_again() {
    let later = Answer::Says("HTTP/1.1 503 Oh\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n");
    let backend = Backend::start([later]).await;
    let webhook = to(&backend.url(), "").await;
    webhook.publish([1]);
    let requests = backend.until_requests(2).await;
    assert!(requests[1].at - requests[0].at >= Duration::from_secs(1));
    webhook.until("sent", 1).await;
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4_096]).await;
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        while stream.write_all(b"5\r\nevent\r\n").await.is_ok() {}
    });
    let webhook = to(&format!("http://{address}/"), "").await;
    webhook.publish([1]);
    webhook.until("sent", 1).await;
}

#[tokio::test]
async fn a_backend_that_hangs_delays_nobody_and_what_is_lost_is_told() {
    let backend = Backend::start([Answer::Hangs]).await;
    let webhook = to(&backend.url(), "queue = 100\n").await;
    webhook.publish([0]);
    backend.until_requests(1).await;
    let begun = Instant::now();
    webhook.publish(1..100_001);
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(webhook.dropped(), 99_900);
    webhook.until("sent", 102).await;
    let numbers = once(backend.numbers());
    let expected: Vec<u64> = std::iter::once(0).chain(99_901..100_001).collect();
    assert_eq!(numbers, expected);
    let requests = backend.requests();
    let told = requests.iter().flat_map(|request| {
        let events: Vec<Value> = serde_json::from_slice(&request.body).unwrap();
        events
            .into_iter()
            .filter(|event| event["event"]["status"] == "missed")
    });
    let told: Vec<Value> = told.collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["event"]["count"], 99_900);
}
