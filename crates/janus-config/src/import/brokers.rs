//! The transports over message brokers: MQTT and RabbitMQ.

use super::convert::Kind::{Flag, Number, Text};
use super::rules::{Rule, json, missing, not_needed, take};
use super::translator::Translator;

const PROPERTIES: &str = "requests and their replies carry no properties of MQTT 5";

const MQTT: &[Rule] = &[
    take("general.enabled", "mqtt.enabled", Flag),
    take("general.enable", "mqtt.enabled", Flag),
    take("general.events", "mqtt.events", Flag),
    json("general.json"),
    take("general.url", "mqtt.url", Text),
    take("general.mqtt_version", "mqtt.mqtt_version", Text),
    take("general.client_id", "mqtt.client_id", Text),
    take("general.username", "mqtt.username", Text),
    take("general.password", "mqtt.password", Text),
    take(
        "general.keep_alive_interval",
        "mqtt.keep_alive_interval",
        Number,
    ),
    take("general.cleansession", "mqtt.cleansession", Flag),
    take("general.max_inflight", "mqtt.max_inflight", Number),
    not_needed(
        "general.max_buffered",
        "queues to the broker have fixed bounds",
    ),
    take(
        "general.disconnect_timeout",
        "mqtt.disconnect_timeout",
        Number,
    ),
    take("general.subscribe_topic", "mqtt.subscribe_topic", Text),
    take("general.subscribe_qos", "mqtt.subscribe_qos", Number),
    take("general.publish_topic", "mqtt.publish_topic", Text),
    take("general.publish_qos", "mqtt.publish_qos", Number),
    take("general.ssl_enabled", "mqtt.tls_enable", Flag),
    take("general.ssl_enable", "mqtt.tls_enable", Flag),
    take("general.verify_peer", "mqtt.tls_verify_peer", Flag),
    take("general.cacertfile", "mqtt.tls_cacert", Text),
    take("general.certfile", "mqtt.tls_client_cert", Text),
    take("general.keyfile", "mqtt.tls_client_key", Text),
    not_needed("general.vacuum_interval", PROPERTIES),
    missing("general.proxy_transaction_user_properties", &[], PROPERTIES),
    missing("general.add_transaction_user_properties", &[], PROPERTIES),
    take("general.admin_enable", "mqtt.admin_enabled", Flag),
    take("admin.admin_enabled", "mqtt.admin_enabled", Flag),
    take("admin.subscribe_topic", "mqtt.admin_subscribe_topic", Text),
    take("admin.subscribe_qos", "mqtt.admin_subscribe_qos", Number),
    take("admin.publish_topic", "mqtt.admin_publish_topic", Text),
    take("admin.publish_qos", "mqtt.admin_publish_qos", Number),
    take("status.enabled", "mqtt.status_enabled", Flag),
    take("status.connect_message", "mqtt.connect_message", Text),
    take("status.disconnect_message", "mqtt.disconnect_message", Text),
    take("status.topic", "mqtt.status_topic", Text),
    take("status.qos", "mqtt.status_qos", Number),
    take("status.retain", "mqtt.status_retain", Flag),
];

const RABBITMQ: &[Rule] = &[
    take("general.enabled", "rabbitmq.enabled", Flag),
    take("general.enable", "rabbitmq.enabled", Flag),
    take("general.events", "rabbitmq.events", Flag),
    json("general.json"),
    take("general.host", "rabbitmq.host", Text),
    take("general.port", "rabbitmq.port", Number),
    take("general.username", "rabbitmq.username", Text),
    take("general.password", "rabbitmq.password", Text),
    take("general.vhost", "rabbitmq.vhost", Text),
    take("general.janus_exchange", "rabbitmq.janus_exchange", Text),
    take(
        "general.janus_exchange_type",
        "rabbitmq.janus_exchange_type",
        Text,
    ),
    take("general.queue_name", "rabbitmq.queue_name", Text),
    take("general.to_janus", "rabbitmq.to_janus", Text),
    take("general.from_janus", "rabbitmq.from_janus", Text),
    take(
        "general.declare_outgoing_queue",
        "rabbitmq.declare_outgoing_queue",
        Flag,
    ),
    take("general.queue_durable", "rabbitmq.queue_durable", Flag),
    take(
        "general.queue_autodelete",
        "rabbitmq.queue_autodelete",
        Flag,
    ),
    take("general.queue_exclusive", "rabbitmq.queue_exclusive", Flag),
    take("general.heartbeat", "rabbitmq.heartbeat", Number),
    take("general.ssl_enabled", "rabbitmq.tls_enable", Flag),
    take("general.ssl_enable", "rabbitmq.tls_enable", Flag),
    take("general.ssl_verify_peer", "rabbitmq.tls_verify_peer", Flag),
    take(
        "general.ssl_verify_hostname",
        "rabbitmq.tls_verify_hostname",
        Flag,
    ),
    take("general.ssl_cacert", "rabbitmq.tls_cacert", Text),
    take("general.ssl_cert", "rabbitmq.tls_client_cert", Text),
    take("general.ssl_key", "rabbitmq.tls_client_key", Text),
    take("general.admin_enable", "rabbitmq.admin_enabled", Flag),
    take("admin.admin_enabled", "rabbitmq.admin_enabled", Flag),
    take("admin.queue_name_admin", "rabbitmq.queue_name_admin", Text),
    take("admin.to_janus_admin", "rabbitmq.to_janus_admin", Text),
    take("admin.from_janus_admin", "rabbitmq.from_janus_admin", Text),
    take(
        "admin.declare_outgoing_queue_admin",
        "rabbitmq.declare_outgoing_queue_admin",
        Flag,
    ),
    take(
        "admin.queue_durable_admin",
        "rabbitmq.queue_durable_admin",
        Flag,
    ),
    take(
        "admin.queue_autodelete_admin",
        "rabbitmq.queue_autodelete_admin",
        Flag,
    ),
    take(
        "admin.queue_exclusive_admin",
        "rabbitmq.queue_exclusive_admin",
        Flag,
    ),
];

/// Returns all rules.
pub(super) fn tables() -> Vec<&'static [Rule]> {
    vec![MQTT, RABBITMQ]
}

pub(super) fn translate(translator: &mut Translator<'_>) {
    for (subject, module, rules) in [
        ("janus.transport.mqtt", "mqtt", MQTT),
        ("janus.transport.rabbitmq", "rabbitmq", RABBITMQ),
    ] {
        let Some(file) = translator.file(subject) else {
            continue;
        };
        match translator.is_disabled("transports", module) {
            true => translator.disabled(file),
            false => translator.apply(file, rules),
        }
    }
}
