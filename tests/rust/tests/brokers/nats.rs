//! NATS, by nats-server. The other side is async-nats.

use async_nats::{Client, HeaderMap};
use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all};
use portunus_core::events::{EventFilter, EventKind, EventMask};
use serde_json::Value;

use crate::broker::{Broker, Kind};
use crate::correspondent::{Correspondent, Message, Wire};
use crate::scenario::{self, Told};
use crate::site::Site;

const TOLD: Told = Told {
    core: "janus.events.core",
    external: "janus.events.external",
    transports: "janus.events.transports",
    labelled: false,
    kept: false,
};

#[derive(Debug)]
struct Nats {
    client: Client,
    inbox: String,
    messages: SelectAll<async_nats::Subscriber>,
}

impl Nats {
    async fn connect(port: u16) -> Self {
        let client = async_nats::connect(format!("127.0.0.1:{port}"))
            .await
            .unwrap();
        let inbox = client.new_inbox();
        let mut messages = Vec::new();
        for subject in ["from-janus", "from-janus-admin", "janus.events.>", &inbox] {
            messages.push(client.subscribe(subject.to_owned()).await.unwrap());
        }
        client.flush().await.unwrap();
        Nats {
            client,
            inbox,
            messages: select_all(messages),
        }
    }
}

impl Wire for Nats {
    fn inbox(&self) -> Option<String> {
        Some(self.inbox.clone())
    }

    fn correlates(&self) -> bool {
        false
    }

    async fn send(&mut self, place: &str, body: String, _: &str) {
        let (place, inbox) = (place.to_owned(), self.inbox.clone());
        // The library refuses what is too long for the broker.
        let headers = HeaderMap::new();
        let sent = self
            .client
            .publish_with_reply_and_headers(place, inbox, headers, body.into());
        let _ = sent.await;
    }

    async fn next(&mut self) -> Message {
        let message = self.messages.next().await.expect("a connection");
        Message {
            place: message.subject.to_string(),
            body: serde_json::from_slice(&message.payload).unwrap(),
            correlation: None,
        }
    }
}

fn config(url: &str, more: &str) -> String {
    format!(
        "[nats]\nenabled = true\nadmin_enabled = true\nurl = \"{url}\"\nmax_message = 500000\n{more}\n\
         [events.nats]\nenabled = true\nurl = \"{url}\"\n{more}\n"
    )
}

#[tokio::test]
async fn calls_and_events_go_by_nats_and_outlive_a_restart_of_the_broker() {
    let Some(mut broker) = Broker::start(Kind::Nats).await else {
        return;
    };
    let config = config(&format!("nats://127.0.0.1:{}", broker.port), "");
    let package = "janus.transport.nats";
    let connect = async |broker: &Broker| Nats::connect(broker.port).await;
    scenario::everything(&mut broker, &config, package, TOLD, false, connect).await;
}

#[tokio::test]
async fn by_tls_and_all_on_one_subject() {
    let Some(broker) = Broker::start(Kind::Nats).await else {
        return;
    };
    let url = format!("nats://localhost:{}", broker.tls_port);
    let more = format!(
        "tls_enable = true\ntls_cacert = \"{}\"",
        broker.certificate()
    );
    let site = Site::start(&(config(&url, &more) + "addevent = false\n")).await;
    site.until_counted("connects", 1).await;
    site.publish(0..5);
    site.until_counted("messages", 1).await;
    site.end().await;
}

#[tokio::test]
async fn a_request_without_a_reply_subject_is_answered_where_events_come() {
    let Some(broker) = Broker::start(Kind::Nats).await else {
        return;
    };
    let site = Site::start(&config(&format!("nats://127.0.0.1:{}", broker.port), "")).await;
    let wire = Nats::connect(broker.port).await;
    let client = wire.client.clone();
    let mut far = Correspondent::new(wire);
    let ping = r#"{"janus":"ping","transaction":"p"}"#;
    // Before the server has subscribed, messages are lost.
    let reply = loop {
        client.publish("to-janus", ping.into()).await.unwrap();
        let pong = far.until(|message| message.body["janus"] == "pong");
        let wait = std::time::Duration::from_millis(200);
        if let Ok(reply) = tokio::time::timeout(wait, pong).await {
            break reply;
        }
    };
    assert_eq!(
        (&*reply.place, &reply.body["transaction"]),
        ("from-janus", &Value::from("p"))
    );
    site.end().await;
}

/// A client may name a subject for the reply where the server may not publish.
#[tokio::test]
async fn a_reply_that_nats_refuses_is_counted_and_is_no_failed_connection() {
    let Some(broker) = Broker::start(Kind::Nats).await else {
        return;
    };
    let site = Site::start(&config(&format!("nats://127.0.0.1:{}", broker.port), "")).await;
    let events = site.bus().subscribe(
        "test",
        EventFilter {
            kinds: EventMask::ALL,
            plugins: Vec::new(),
        },
        1_000,
    );
    let wire = Nats::connect(broker.port).await;
    let mut far = Correspondent::new(wire);
    let client = far.wire().client.clone();
    let ask = async |transaction: &str, reply_to: &str| {
        let body = format!(r#"{{"janus":"ping","transaction":"{transaction}"}}"#);
        let sent = client.publish_with_reply("to-janus", reply_to.to_owned(), body.into());
        sent.await.unwrap();
    };
    let inbox = far.wire().inbox.clone();
    // Before the server has subscribed, messages are lost.
    loop {
        let ping = r#"{"janus":"ping","transaction":"first"}"#;
        client.publish("to-janus", ping.into()).await.unwrap();
        let pong = far.until(|message| message.body["transaction"] == "first");
        let wait = std::time::Duration::from_millis(200);
        if tokio::time::timeout(wait, pong).await.is_ok() {
            break;
        }
    }
    ask("refused", "forbidden.place").await;
    site.until_api_counted(2, 1).await;
    ask("last", &inbox).await;
    far.until(|message| message.body["transaction"] == "last")
        .await;
    let metrics = site.metrics().await;
    let lost = "portunus_broker_lost_messages_total{broker=\"nats\"} 1\n";
    assert!(metrics.contains(lost), "{metrics}");
    site.end().await;
    let mut names = Vec::new();
    while let Some(event) = events.try_recv() {
        if event.kind == EventKind::Transports {
            names.push(event.body()["data"]["event"].clone());
        }
    }
    assert!(!names.contains(&"failed".into()), "{names:?}");
}
