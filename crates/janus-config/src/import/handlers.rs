//! Event handlers.

use super::convert::Kind::{Flag, Number, Pairs, Text};
use super::convert::convert;
use super::remark::Weight;
use super::rules::{CIPHERS, Rule, elsewhere, missing, not_needed, take};
use super::translator::Translator;

const WEBHOOK: &[Rule] = &[
    elsewhere("general.enabled"),
    take("general.events", "events.webhook.events", Text),
    take("general.grouping", "events.webhook.grouping", Flag),
    take("general.json", "events.webhook.json", Text),
    take("general.compress", "events.webhook.compress", Flag),
    take("general.compression", "events.webhook.compression", Number),
    take("general.backend", "events.webhook.backend", Text),
    take("general.backend_user", "events.webhook.backend_user", Text),
    take("general.backend_pwd", "events.webhook.backend_pwd", Text),
    take(
        "general.max_retransmissions",
        "events.webhook.max_retransmissions",
        Number,
    ),
    take(
        "general.retransmissions_backoff",
        "events.webhook.retransmissions_backoff",
        Number,
    ),
];

const WEBSOCKET: &[Rule] = &[
    elsewhere("general.enabled"),
    take("general.events", "events.websocket.events", Text),
    take("general.grouping", "events.websocket.grouping", Flag),
    take("general.json", "events.websocket.json", Text),
    take("general.backend", "events.websocket.backend", Text),
    take("general.subprotocol", "events.websocket.subprotocol", Text),
    take(
        "general.events_cap_on_reconnect",
        "events.websocket.events_cap_on_reconnect",
        Number,
    ),
    not_needed("general.ws_logging", "log.filter has the levels of modules"),
];

const GELF: &[Rule] = &[
    elsewhere("general.enabled"),
    take("general.events", "events.gelf.events", Text),
    take("general.backend", "events.gelf.backend", Text),
    take("general.port", "events.gelf.port", Number),
    take("general.protocol", "events.gelf.protocol", Text),
    take(
        "general.max_message_len",
        "events.gelf.max_message_len",
        Number,
    ),
    take("general.compress", "events.gelf.compress", Flag),
    take("general.compression", "events.gelf.compression", Number),
];

const NANOMSG: &[Rule] = &[
    elsewhere("general.enabled"),
    take("general.events", "events.nanomsg.events", Text),
    take("general.grouping", "events.nanomsg.grouping", Flag),
    take("general.json", "events.nanomsg.json", Text),
    take("general.mode", "events.nanomsg.mode", Text),
    take("general.address", "events.nanomsg.address", Text),
];

const MQTT: &[Rule] = &[
    elsewhere("general.enabled"),
    take("general.events", "events.mqtt.events", Text),
    take("general.json", "events.mqtt.json", Text),
    take("general.url", "events.mqtt.url", Text),
    take("general.mqtt_version", "events.mqtt.mqtt_version", Text),
    take("general.client_id", "events.mqtt.client_id", Text),
    take("general.username", "events.mqtt.username", Text),
    take("general.password", "events.mqtt.password", Text),
    take(
        "general.keep_alive_interval",
        "events.mqtt.keep_alive_interval",
        Number,
    ),
    take("general.cleansession", "events.mqtt.cleansession", Flag),
    take("general.max_inflight", "events.mqtt.max_inflight", Number),
    not_needed(
        "general.max_buffered",
        "events.mqtt.queue bounds the events that wait",
    ),
    take(
        "general.disconnect_timeout",
        "events.mqtt.disconnect_timeout",
        Number,
    ),
    take("general.topic", "events.mqtt.topic", Text),
    take("general.addevent", "events.mqtt.addevent", Flag),
    take("general.retain", "events.mqtt.retain", Flag),
    take("general.qos", "events.mqtt.qos", Number),
    take("general.connect_status", "events.mqtt.connect_status", Text),
    take(
        "general.disconnect_status",
        "events.mqtt.disconnect_status",
        Text,
    ),
    take("general.will_enabled", "events.mqtt.will_enabled", Flag),
    take("general.will_retain", "events.mqtt.will_retain", Flag),
    take("general.will_qos", "events.mqtt.will_qos", Number),
    take(
        "general.add_user_properties",
        "events.mqtt.add_user_properties",
        Pairs,
    ),
    take("general.tls_enable", "events.mqtt.tls_enable", Flag),
    take(
        "general.tls_verify_peer",
        "events.mqtt.tls_verify_peer",
        Flag,
    ),
    take(
        "general.tls_verify_hostname",
        "events.mqtt.tls_verify_hostname",
        Flag,
    ),
    take("general.tls_cacert", "events.mqtt.tls_cacert", Text),
    take(
        "general.tls_client_cert",
        "events.mqtt.tls_client_cert",
        Text,
    ),
    take("general.tls_client_key", "events.mqtt.tls_client_key", Text),
    missing("general.tls_ciphers", &[""], CIPHERS),
    missing("general.tls_version", &[""], CIPHERS),
    take("general.ssl_enable", "events.mqtt.tls_enable", Flag),
    take(
        "general.ssl_verify_peer",
        "events.mqtt.tls_verify_peer",
        Flag,
    ),
    take(
        "general.ssl_verify_hostname",
        "events.mqtt.tls_verify_hostname",
        Flag,
    ),
    take("general.ssl_cacert", "events.mqtt.tls_cacert", Text),
    take(
        "general.ssl_client_cert",
        "events.mqtt.tls_client_cert",
        Text,
    ),
    take("general.ssl_client_key", "events.mqtt.tls_client_key", Text),
];

const RABBITMQ: &[Rule] = &[
    elsewhere("general.enabled"),
    take("general.events", "events.rabbitmq.events", Text),
    take("general.grouping", "events.rabbitmq.grouping", Flag),
    take("general.json", "events.rabbitmq.json", Text),
    take("general.host", "events.rabbitmq.host", Text),
    take("general.port", "events.rabbitmq.port", Number),
    take("general.username", "events.rabbitmq.username", Text),
    take("general.password", "events.rabbitmq.password", Text),
    take("general.vhost", "events.rabbitmq.vhost", Text),
    take("general.exchange", "events.rabbitmq.exchange", Text),
    take(
        "general.exchange_type",
        "events.rabbitmq.exchange_type",
        Text,
    ),
    take("general.route_key", "events.rabbitmq.route_key", Text),
    take("general.heartbeat", "events.rabbitmq.heartbeat", Number),
    take(
        "general.declare_outgoing_queue",
        "events.rabbitmq.declare_outgoing_queue",
        Flag,
    ),
    take("general.ssl_enable", "events.rabbitmq.tls_enable", Flag),
    take("general.ssl_enabled", "events.rabbitmq.tls_enable", Flag),
    take(
        "general.ssl_verify_peer",
        "events.rabbitmq.tls_verify_peer",
        Flag,
    ),
    take(
        "general.ssl_verify_hostname",
        "events.rabbitmq.tls_verify_hostname",
        Flag,
    ),
    take("general.ssl_cacert", "events.rabbitmq.tls_cacert", Text),
    take("general.ssl_cert", "events.rabbitmq.tls_client_cert", Text),
    take("general.ssl_key", "events.rabbitmq.tls_client_key", Text),
];

/// An event handler of Janus.
struct Handler {
    /// The name of its file, without the extension.
    file: &'static str,
    /// Its name in `events.disable`.
    module: &'static str,
    /// The name of its section in our configuration.
    section: &'static str,
    rules: &'static [Rule],
}

const HANDLERS: [Handler; 6] = [
    Handler {
        file: "janus.eventhandler.sampleevh",
        module: "sampleevh",
        section: "events.webhook",
        rules: WEBHOOK,
    },
    Handler {
        file: "janus.eventhandler.wsevh",
        module: "wsevh",
        section: "events.websocket",
        rules: WEBSOCKET,
    },
    Handler {
        file: "janus.eventhandler.gelfevh",
        module: "gelfevh",
        section: "events.gelf",
        rules: GELF,
    },
    Handler {
        file: "janus.eventhandler.nanomsgevh",
        module: "nanomsgevh",
        section: "events.nanomsg",
        rules: NANOMSG,
    },
    Handler {
        file: "janus.eventhandler.mqttevh",
        module: "mqttevh",
        section: "events.mqtt",
        rules: MQTT,
    },
    Handler {
        file: "janus.eventhandler.rabbitmqevh",
        module: "rabbitmqevh",
        section: "events.rabbitmq",
        rules: RABBITMQ,
    },
];

/// Returns all rules.
pub(super) fn tables() -> Vec<&'static [Rule]> {
    HANDLERS.iter().map(|handler| handler.rules).collect()
}

/// Translates event handlers. In Janus they run only if `events.broadcast` is on.
pub(super) fn translate(translator: &mut Translator<'_>) {
    let core = translator.file("janus");
    let is_quiet = core.is_some_and(|file| !file.group("events").is_on("broadcast"));
    for handler in &HANDLERS {
        let Some(file) = translator.file(handler.file) else {
            continue;
        };
        translator.apply(file, handler.rules);
        let general = file.group("general");
        let Some(setting) = general.get("enabled") else {
            continue;
        };
        let off = match is_quiet {
            true => Some("events.broadcast is off in janus.jcfg, which has all event handlers off"),
            false => translator
                .is_disabled("events", handler.module)
                .then_some("events.disable of janus.jcfg has it off"),
        };
        match off {
            None => {
                let switch = format!("{}.enabled", handler.section);
                match convert(Flag, &setting.value) {
                    Ok(value) => translator.put("general", setting, &switch, value),
                    Err(reason) => translator.missing(setting, "general", &reason),
                }
            }
            Some(reason) if general.is_on("enabled") => {
                translator.not_needed(setting, "general", reason);
            }
            Some(_) => {}
        }
    }
    logger(translator);
}

/// Translates the JSON logger.
fn logger(translator: &mut Translator<'_>) {
    let Some(file) = translator.file("janus.logger.jsonlog") else {
        return;
    };
    let is_on = file.group("general").is_on("enabled");
    let (weight, reason) = match is_on && !translator.is_disabled("loggers", "jsonlog") {
        true => (
            Weight::Attention,
            "log.format = \"json\" makes each line of the log JSON; it goes to the standard error",
        ),
        false => (
            Weight::NotNeeded,
            "log.format = \"json\" does the same, and the file has it off",
        ),
    };
    translator.about(&file.start(), weight, reason);
}
