//! MQTT, by mosquitto. The other side is rumqttc with its own connection.

use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::broker::{Broker, Kind};
use crate::correspondent::{Correspondent, Message, Wire};
use crate::scenario::{self, Told};
use crate::site::Site;

const TOLD: Told = Told {
    core: "/janus/events/core",
    external: "/janus/events/external",
    transports: "/janus/events/transports",
    labelled: true,
    kept: true,
};

const PLACES: [&str; 4] = [
    "from-janus",
    "from-janus-admin",
    "/janus/events/#",
    "status",
];

/// The size of the largest packet.
const MAX_PACKET: usize = 4 << 20;

#[derive(Debug)]
struct V3 {
    client: AsyncClient,
    messages: mpsc::UnboundedReceiver<Message>,
}

impl V3 {
    /// Subscribes to all places, with a session that the broker keeps.
    async fn connect(port: u16) -> Self {
        let mut options = MqttOptions::new("far", "127.0.0.1", port);
        options.set_clean_session(false);
        options.set_max_packet_size(MAX_PACKET, MAX_PACKET);
        let (client, mut events) = AsyncClient::new(options, 10);
        let (sender, messages) = mpsc::unbounded_channel();
        let (ready, subscribed) = tokio::sync::oneshot::channel();
        for place in PLACES {
            client.subscribe(place, QoS::AtLeastOnce).await.unwrap();
        }
        tokio::spawn(async move {
            let mut ready = Some(ready);
            let mut subscriptions = 0;
            while let Ok(event) = events.poll().await {
                match event {
                    Event::Incoming(Packet::SubAck(_)) => subscriptions += 1,
                    Event::Incoming(Packet::Publish(publish)) => {
                        let message = Message {
                            place: publish.topic,
                            body: serde_json::from_slice(&publish.payload).unwrap(),
                            correlation: None,
                        };
                        if sender.send(message).is_err() {
                            return;
                        }
                    }
                    _ => {}
                }
                if subscriptions == PLACES.len() {
                    ready.take().map(|ready| ready.send(()));
                }
            }
        });
        subscribed.await.unwrap();
        V3 { client, messages }
    }
}

impl Wire for V3 {
    fn inbox(&self) -> Option<String> {
        None
    }

    fn correlates(&self) -> bool {
        false
    }

    async fn send(&mut self, place: &str, body: String, _: &str) {
        let sent = self.client.publish(place, QoS::AtLeastOnce, false, body);
        sent.await.unwrap();
    }

    async fn next(&mut self) -> Message {
        self.messages.recv().await.expect("a connection")
    }
}

/// With MQTT 5, a request names the place of its reply.
mod five {
    use rumqttc::v5::mqttbytes::QoS;
    use rumqttc::v5::mqttbytes::v5::{Packet, PublishProperties};
    use rumqttc::v5::{AsyncClient, Event, MqttOptions};

    use super::*;

    const INBOX: &str = "answers/far";

    #[derive(Debug)]
    pub struct V5 {
        client: AsyncClient,
        messages: mpsc::UnboundedReceiver<Message>,
    }

    impl V5 {
        pub async fn connect(port: u16) -> Self {
            let mut options = MqttOptions::new("far", "127.0.0.1", port);
            options.set_clean_start(false);
            options.set_session_expiry_interval(Some(3_600));
            options.set_max_packet_size(u32::try_from(MAX_PACKET).ok());
            let (client, mut events) = AsyncClient::new(options, 10);
            let (sender, messages) = mpsc::unbounded_channel();
            let (ready, subscribed) = tokio::sync::oneshot::channel();
            let places = PLACES.into_iter().chain([INBOX]);
            let wanted = places.clone().count();
            for place in places {
                client.subscribe(place, QoS::AtLeastOnce).await.unwrap();
            }
            tokio::spawn(async move {
                let mut ready = Some(ready);
                let mut subscriptions = 0;
                while let Ok(event) = events.poll().await {
                    match event {
                        Event::Incoming(Packet::SubAck(_)) => subscriptions += 1,
                        Event::Incoming(Packet::Publish(publish)) => {
                            let properties = publish.properties.unwrap_or_default();
                            let correlation = properties.correlation_data;
                            let message = Message {
                                place: String::from_utf8(publish.topic.to_vec()).unwrap(),
                                body: serde_json::from_slice(&publish.payload).unwrap(),
                                correlation: correlation
                                    .map(|data| String::from_utf8(data.to_vec()).unwrap()),
                            };
                            if sender.send(message).is_err() {
                                return;
                            }
                        }
                        _ => {}
                    }
                    if subscriptions == wanted {
                        ready.take().map(|ready| ready.send(()));
                    }
                }
            });
            subscribed.await.unwrap();
            V5 { client, messages }
        }
    }

    impl Wire for V5 {
        fn inbox(&self) -> Option<String> {
            Some(INBOX.to_owned())
        }

        fn correlates(&self) -> bool {
            true
        }

        async fn send(&mut self, place: &str, body: String, correlation: &str) {
            let properties = PublishProperties {
                response_topic: Some(INBOX.to_owned()),
                correlation_data: Some(correlation.to_owned().into()),
                ..PublishProperties::default()
            };
            let qos = QoS::AtLeastOnce;
            let sent = self
                .client
                .publish_with_properties(place, qos, false, body, properties);
            sent.await.unwrap();
        }

        async fn next(&mut self) -> Message {
            self.messages.recv().await.expect("a connection")
        }
    }
}

fn config(url: &str, version: &str, more: &str) -> String {
    format!(
        "[mqtt]\nenabled = true\nadmin_enabled = true\nmax_message = 500000\nurl = \"{url}\"\nmqtt_version = \"{version}\"\n{more}\n\
         [events.mqtt]\nenabled = true\nurl = \"{url}\"\nmqtt_version = \"{version}\"\n{more}\n"
    )
}

#[tokio::test]
async fn calls_and_events_go_by_mqtt_and_outlive_a_restart_of_the_broker() {
    let Some(mut broker) = Broker::start(Kind::Mosquitto).await else {
        return;
    };
    let url = format!("tcp://127.0.0.1:{}", broker.port);
    let config = config(&url, "3.1.1", "");
    let package = "janus.transport.mqtt";
    let connect = async |broker: &Broker| V3::connect(broker.port).await;
    scenario::everything(&mut broker, &config, package, TOLD, true, connect).await;
}

#[tokio::test]
async fn with_mqtt_5_replies_go_where_their_requests_say() {
    let Some(mut broker) = Broker::start(Kind::Mosquitto).await else {
        return;
    };
    let url = format!("mqtt://127.0.0.1:{}", broker.port);
    let config = config(&url, "5", "");
    let package = "janus.transport.mqtt";
    let connect = async |broker: &Broker| five::V5::connect(broker.port).await;
    scenario::everything(&mut broker, &config, package, TOLD, true, connect).await;
}

#[tokio::test]
async fn by_tls_the_broker_has_to_be_the_one_that_is_meant() {
    let Some(broker) = Broker::start(Kind::Mosquitto).await else {
        return;
    };
    let mut far = Correspondent::new(V3::connect(broker.port).await);
    let url = format!("ssl://localhost:{}", broker.tls_port);
    let authority = format!("tls_cacert = \"{}\"", broker.certificate());
    let site = Site::start(&config(&url, "3.1.1", &authority)).await;
    site.until_counted("connects", 1).await;
    site.publish(0..1);
    far.event(TOLD.core, |event| event["event"]["n"] == 0).await;
    site.end().await;

    // The certificate does not match an address, which must be allowed.
    let url = format!("ssl://127.0.0.1:{}", broker.tls_port);
    let any_name = format!("{authority}\ntls_verify_hostname = false");
    for (more, reached) in [
        (&*authority, false),
        (&any_name, true),
        ("tls_verify_peer = false", true),
    ] {
        let plain = format!("tcp://127.0.0.1:{}", broker.port);
        let text = format!(
            "[mqtt]\nenabled = true\nurl = \"{url}\"\n{more}\n[events.mqtt]\nenabled = true\nurl = \"{plain}\"\n"
        );
        let site = Site::start(&text).await;
        let name = if reached { "connected" } else { "failed" };
        let told = |event: &Value| event["event"]["data"]["event"] == name;
        let event = far.event(TOLD.transports, told).await;
        let reason = event["event"]["data"]["reason"]
            .as_str()
            .unwrap_or_default();
        assert_eq!(reason.contains("certificate"), !reached, "{event}");
        site.end().await;
    }
}

#[tokio::test]
async fn others_see_when_the_server_comes_and_goes() {
    let Some(broker) = Broker::start(Kind::Mosquitto).await else {
        return;
    };
    let mut far = Correspondent::new(V3::connect(broker.port).await);
    let text = format!(
        "[mqtt]\nenabled = true\nurl = \"tcp://127.0.0.1:{0}\"\nstatus_enabled = true\n\
         connect_message = '{{\"online\":true}}'\ndisconnect_message = '{{\"online\":false}}'\n\
         [events.mqtt]\nenabled = true\nurl = \"tcp://127.0.0.1:{0}\"\n",
        broker.port
    );
    let site = Site::start(&text).await;
    far.event("status", |status| status["online"] == true).await;
    let status = "/janus/events/status";
    far.event(status, |status| status["event"] == "connected")
        .await;
    site.end().await;
    far.event("status", |status| status["online"] == false)
        .await;
    far.event(status, |status| status["event"] == "disconnected")
        .await;
}

#[tokio::test]
async fn who_asks_by_a_broker_is_a_stranger_unless_the_broker_is_trusted() {
    let Some(broker) = Broker::start(Kind::Mosquitto).await else {
        return;
    };
    let mut far = Correspondent::new(V3::connect(broker.port).await);
    for trusted in [false, true] {
        let text = format!(
            "[mqtt]\nenabled = true\ntrusted = {trusted}\nurl = \"tcp://127.0.0.1:{}\"\n\
             [events.mqtt]\nenabled = true\nurl = \"tcp://127.0.0.1:{}\"\n",
            broker.port, broker.port
        );
        let site = Site::start(&text).await;
        let connected = |event: &Value| event["event"]["data"]["event"] == "connected";
        far.event(TOLD.transports, connected).await;
        let created = far.ask("to-janus", json!({ "janus": "create" })).await;
        // Texts of strangers have a limit.
        let attach = json!({
            "janus": "attach", "session_id": created["data"]["id"], "plugin": "janus.plugin.echotest",
            "opaque_id": "x".repeat(10_000),
        });
        let reply = far.ask("to-janus", attach).await;
        assert_eq!(reply["janus"], if trusted { "success" } else { "error" });
        site.end().await;
    }
}

/// Requests to the Admin API that arrive faster than replies leave end neither it nor the calls by
/// the same broker.
#[tokio::test]
async fn a_flood_of_requests_to_the_admin_api_ends_no_session() {
    const FLOOD: usize = 6_000;
    let Some(broker) = Broker::start(Kind::Mosquitto).await else {
        return;
    };
    let mut far = Correspondent::new(V3::connect(broker.port).await);
    let text = format!(
        "[mqtt]\nenabled = true\nadmin_enabled = true\nurl = \"tcp://127.0.0.1:{0}\"\nmax_inflight = 1\n\
         admin_subscribe_qos = 0\n[events.mqtt]\nenabled = true\nurl = \"tcp://127.0.0.1:{0}\"\n",
        broker.port
    );
    let site = Site::start(&text).await;
    let connected = |event: &Value| event["event"]["data"]["event"] == "connected";
    far.event(TOLD.transports, connected).await;
    let created = far.ask("to-janus", json!({ "janus": "create" })).await;
    let mut options = MqttOptions::new("flood", "127.0.0.1", broker.port);
    options.set_max_packet_size(MAX_PACKET, MAX_PACKET);
    let (client, mut events) = AsyncClient::new(options, 100);
    let polling = tokio::spawn(async move { while events.poll().await.is_ok() {} });
    let ping = r#"{"janus":"ping","transaction":"flood"}"#;
    for _ in 0..FLOOD {
        let sent = client.publish("to-janus-admin", QoS::AtMostOnce, false, ping);
        sent.await.unwrap();
    }
    let alive = json!({ "janus": "keepalive", "session_id": created["data"]["id"] });
    assert_eq!(far.ask("to-janus", alive).await["janus"], "ack");
    assert_eq!(site.transports().counters().slow_clients.value(), 0);
    polling.abort();
    site.end().await;
}
