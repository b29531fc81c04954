//! RabbitMQ. It takes seconds to start, so all tests share one.

use futures_util::StreamExt;
use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::broker::{Broker, Kind};
use crate::correspondent::{Correspondent, Message, Wire};
use crate::scenario::{self, Told};
use crate::site::Site;

const TOLD: Told = Told {
    core: "janus-events",
    external: "janus-events",
    transports: "janus-events",
    labelled: false,
    kept: true,
};

struct Amqp {
    connection: Connection,
    channel: Channel,
    inbox: Option<String>,
    messages: mpsc::UnboundedReceiver<Message>,
}

impl Amqp {
    async fn connect(port: u16, inbox: Option<&str>) -> Self {
        let url = format!("amqp://127.0.0.1:{port}/%2f");
        let connection = Connection::connect(&url, ConnectionProperties::default()).await;
        let connection = connection.unwrap();
        let channel = connection.create_channel().await.unwrap();
        let (sender, messages) = mpsc::unbounded_channel();
        let places = ["from-janus", "from-janus-admin", "janus-events"]
            .into_iter()
            .chain(inbox);
        for place in places {
            let declared = channel.queue_declare(
                place.into(),
                QueueDeclareOptions::default(),
                FieldTable::default(),
            );
            declared.await.unwrap();
            let options = BasicConsumeOptions {
                no_ack: true,
                ..BasicConsumeOptions::default()
            };
            let consumed =
                channel.basic_consume(place.into(), "".into(), options, FieldTable::default());
            let mut consumer = consumed.await.unwrap();
            let (sender, place) = (sender.clone(), place.to_owned());
            tokio::spawn(async move {
                while let Some(Ok(delivery)) = consumer.next().await {
                    let body: Value = serde_json::from_slice(&delivery.data).unwrap();
                    let correlation = delivery.properties.correlation_id();
                    let correlation = correlation.as_ref().map(ToString::to_string);
                    let events = match body {
                        Value::Array(events) => events,
                        body => vec![body],
                    };
                    for body in events {
                        let (place, correlation) = (place.clone(), correlation.clone());
                        // Nobody receives at the end.
                        let _ = sender.send(Message {
                            place,
                            body,
                            correlation,
                        });
                    }
                }
            });
        }
        Amqp {
            connection,
            channel,
            inbox: inbox.map(str::to_owned),
            messages,
        }
    }
}

impl Wire for Amqp {
    fn inbox(&self) -> Option<String> {
        self.inbox.clone()
    }

    fn correlates(&self) -> bool {
        true
    }

    async fn send(&mut self, place: &str, body: String, correlation: &str) {
        let mut properties = BasicProperties::default().with_correlation_id(correlation.into());
        if let Some(inbox) = &self.inbox {
            properties = properties.with_reply_to(inbox.as_str().into());
        }
        let options = BasicPublishOptions::default();
        let sent = self.channel.basic_publish(
            "".into(),
            place.into(),
            options,
            body.as_bytes(),
            properties,
        );
        sent.await.unwrap();
    }

    async fn next(&mut self) -> Message {
        self.messages.recv().await.expect("a connection")
    }

    /// Otherwise, it would go on to take messages from the queues.
    async fn close(self) {
        self.connection.close(200, "OK".into()).await.unwrap();
    }
}

fn config(port: u16, more: &str, queues: &str) -> String {
    format!(
        "[rabbitmq]\nenabled = true\nadmin_enabled = true\nmax_message = 500000\nport = {port}\nhost = \"localhost\"\n{more}\n{queues}\n\
         [events.rabbitmq]\nenabled = true\nport = {port}\nhost = \"localhost\"\n{more}\n"
    )
}

#[tokio::test]
async fn calls_and_events_go_by_rabbitmq_and_outlive_its_end() {
    let Some(mut broker) = Broker::start(Kind::RabbitMq).await else {
        return;
    };
    let text = config(broker.port, "", "");
    let package = "janus.transport.rabbitmq";
    let connect = async |broker: &Broker| Amqp::connect(broker.port, None).await;
    scenario::everything(&mut broker, &text, package, TOLD, false, connect).await;
    reply_to(&broker).await;
    refused_replies(&broker).await;
    by_tls(&broker).await;
}

/// A reply to a queue to which the server may not write is lost, and nothing else is.
async fn refused_replies(broker: &Broker) {
    let text = format!(
        "[rabbitmq]\nenabled = true\nport = {}\nhost = \"localhost\"\nusername = \"narrow\"\npassword = \"narrow\"\n\
         janus_exchange = \"janus\"\nuse_reply_to = true\n\
         [events.rabbitmq]\nenabled = true\nport = {}\nhost = \"localhost\"\n",
        broker.port, broker.port
    );
    let site = Site::start(&text).await;
    let mut far = Correspondent::new(Amqp::connect(broker.port, None).await);
    let connected = |event: &Value| event["event"]["data"]["event"] == "connected";
    far.event(TOLD.transports, connected).await;
    let bound = far.wire().channel.queue_bind(
        "from-janus".into(),
        "janus".into(),
        "".into(),
        QueueBindOptions::default(),
        FieldTable::default(),
    );
    bound.await.unwrap();
    let ping = |transaction: &str| format!(r#"{{"janus":"ping","transaction":"{transaction}"}}"#);
    for n in 0..3 {
        far.wire().inbox = Some("answers".to_owned());
        far.say("to-janus", ping("refused"), "refused").await;
        far.wire().inbox = None;
        let transaction = format!("allowed{n}");
        far.say("to-janus", ping(&transaction), "allowed").await;
        let pong = far.until(|message| message.body["transaction"] == *transaction);
        assert_eq!(pong.await.place, "from-janus");
    }
    site.until_api_counted(3, 3).await;
    let counters = site.transports().counters();
    assert_eq!(counters.broker_connections.value(), 1);
    far.close().await;
    site.end().await;
}

/// If configured, a reply goes to the queue that its request names.
async fn reply_to(broker: &Broker) {
    let site = Site::start(&config(broker.port, "", "use_reply_to = true")).await;
    let mut far = Correspondent::new(Amqp::connect(broker.port, Some("answers")).await);
    let pong = far
        .ask("to-janus", serde_json::json!({ "janus": "ping" }))
        .await;
    assert_eq!(pong["janus"], "pong");
    far.close().await;
    site.end().await;
}

async fn by_tls(broker: &Broker) {
    let more = format!(
        "tls_enable = true\ntls_cacert = \"{}\"",
        broker.certificate()
    );
    let site = Site::start(&config(broker.tls_port, &more, "")).await;
    let mut far = Correspondent::new(Amqp::connect(broker.port, None).await);
    let pong = far
        .ask("to-janus", serde_json::json!({ "janus": "ping" }))
        .await;
    assert_eq!(pong["janus"], "pong");
    site.publish(100..101);
    far.event(TOLD.core, |event| event["event"]["n"] == 100)
        .await;
    far.close().await;
    site.end().await;
}
