//! Keep-alives, and sessions that end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portunus_rtsp::{Config, Login, MediumKind, Transport};

use crate::server::{config, good, packet, reply, server};
use crate::support::{Pull, Told};

#[tokio::test]
async fn udp_is_refused_then_tcp_and_keep_alives_hold_the_session() {
    let asked = Arc::new(AtomicUsize::new(0));
    let torn_down = Arc::new(AtomicUsize::new(0));
    let (counts, ends) = (asked.clone(), torn_down.clone());
    let url = server(move |method, number, text| {
        match method {
            "OPTIONS" => {
                assert!(text.contains("Session: abc\r\n"));
                counts.fetch_add(1, Ordering::SeqCst);
                // A sign of life in the stream too.
                return [reply(number, "200 OK", "", ""), packet()].concat();
            }
            "TEARDOWN" => drop(ends.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        }
        good(method, number, text)
    })
    .await;
    let mut pulled = Pull::start(Config {
        reconnect_delay: Duration::from_secs(5),
        ..config(url)
    });
    let connected =
        |told: &Told| matches!(told, Told::Connected(kinds) if kinds == &[MediumKind::Video]);
    pulled.until("a session", connected).await;
    for _ in 0..3 {
        // One packet with the answer to PLAY, and one with each answer to a keep-alive.
        let is_packet = |told: &Told| *told == Told::Packet(0, 96);
        pulled.until("a packet", is_packet).await;
    }
    assert!(asked.load(Ordering::SeqCst) >= 2);
    pulled.stop().await;
    assert_eq!(torn_down.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn keep_alives_without_answer_end_nothing_that_plays() {
    let asked = Arc::new(AtomicUsize::new(0));
    let described = Arc::new(AtomicUsize::new(0));
    let (counts, descriptions) = (asked.clone(), described.clone());
    let url = server(move |method, number, text| {
        match method {
            // It continues without an answer, and then stops.
            "OPTIONS" | "GET_PARAMETER" => match counts.fetch_add(1, Ordering::SeqCst) {
                0..3 => return packet(),
                _ => return Vec::new(),
            },
            "DESCRIBE" => drop(descriptions.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        }
        good(method, number, text)
    })
    .await;
    let mut pulled = Pull::start(Config {
        transport: Transport::Tcp,
        reconnect_delay: Duration::from_secs(3),
        ..config(url)
    });
    let is_news = |told: &Told| !matches!(told, Told::Connected(_));
    for _ in 0..4 {
        assert_eq!(pulled.until("news", is_news).await, Told::Packet(0, 96));
    }
    assert_eq!(described.load(Ordering::SeqCst), 1);
    let lost = Told::Lost("no packet for 3s".to_owned());
    assert_eq!(pulled.until("news", is_news).await, lost);
    pulled.stop().await;
}

#[tokio::test]
async fn keep_alives_that_want_a_login_end_nothing_that_plays() {
    let url = server(|method, number, text| match method {
        "OPTIONS" | "GET_PARAMETER" => {
            let challenge = "WWW-Authenticate: Basic realm=\"x\"\r\n";
            let refusal = reply(number, "401 Unauthorized", challenge, "");
            [refusal, packet()].concat()
        }
        _ => good(method, number, text),
    })
    .await;
    let mut pulled = Pull::start(Config {
        reconnect_delay: Duration::from_secs(5),
        ..config(url)
    });
    let is_news = |told: &Told| !matches!(told, Told::Connected(_));
    for _ in 0..3 {
        assert_eq!(pulled.until("news", is_news).await, Told::Packet(0, 96));
    }
    pulled.stop().await;
}

#[tokio::test]
async fn a_server_that_knows_but_the_other_keep_alive_gets_that() {
    // It plays on for who keeps the session alive.
    let url = server(|method, number, text| match method {
        "OPTIONS" => reply(number, "501 Not Implemented", "", ""),
        "GET_PARAMETER" => [reply(number, "200 OK", "", ""), packet()].concat(),
        _ => good(method, number, text),
    })
    .await;
    let mut pulled = Pull::start(Config {
        reconnect_delay: Duration::from_secs(4),
        ..config(url)
    });
    let is_news = |told: &Told| !matches!(told, Told::Connected(_));
    for _ in 0..4 {
        assert_eq!(pulled.until("news", is_news).await, Told::Packet(0, 96));
    }
    pulled.stop().await;
}

#[tokio::test]
async fn keep_alives_with_a_stale_nonce_are_sent_again_at_once() {
    // Each nonce is valid for one keep-alive, and only accepted keep-alives bring packets.
    let nonces = Arc::new(AtomicUsize::new(0));
    let url = server(move |method, number, text| match method {
        "SETUP" => {
            let lines =
                "Session: abc;timeout=4\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
            reply(number, "200 OK", lines, "")
        }
        "OPTIONS" => {
            let nonce = nonces.load(Ordering::SeqCst);
            if nonce > 0 && text.contains(&format!("nonce=\"n{nonce}\"")) {
                nonces.fetch_add(1, Ordering::SeqCst);
                return [reply(number, "200 OK", "", ""), packet()].concat();
            }
            let nonce = nonce.max(1);
            nonces.store(nonce, Ordering::SeqCst);
            let challenge = format!("WWW-Authenticate: Digest realm=\"x\", nonce=\"n{nonce}\"\r\n");
            reply(number, "401 Unauthorized", &challenge, "")
        }
        _ => good(method, number, text),
    })
    .await;
    let mut pulled = Pull::start(Config {
        transport: Transport::Tcp,
        login: Some(Login {
            user: "me".to_owned(),
            password: "secret".to_owned(),
        }),
        // Keep-alives are due every 2 s.
        reconnect_delay: Duration::from_secs(3),
        ..config(url)
    });
    let is_news = |told: &Told| !matches!(told, Told::Connected(_));
    for _ in 0..5 {
        assert_eq!(pulled.until("news", is_news).await, Told::Packet(0, 96));
    }
    pulled.stop().await;
}

#[tokio::test]
async fn silence_and_breaks_lead_to_new_sessions() {
    let url = server(good).await;
    let mut pulled = Pull::start(config(url));
    for _ in 0..3 {
        pulled
            .until("a session", |told| matches!(told, Told::Connected(_)))
            .await;
        let lost = pulled.until("its end", |told| matches!(told, Told::Lost(_)));
        assert_eq!(lost.await, Told::Lost("no packet for 300ms".to_owned()));
    }
    pulled.stop().await;
}
