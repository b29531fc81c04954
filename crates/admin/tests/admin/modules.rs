//! Messages to plugins, transports, event handlers and loggers; events and lines of administrators.

use std::sync::Arc;

use portunus_admin::{AdminConfig, TransportControl};
use portunus_core::events::{
    EventBus, EventFilter, EventHandler, EventHandlerInfo, EventKind, Handling, Subscription,
    TweakError,
};
use portunus_core::{CoreConfig, Fields, ServerFacts, TransportInfo};
use serde_json::{Map, Value, json};

use crate::stage::{Stage, TALKER, code};
use crate::world::PROBE;

#[tokio::test(start_paused = true)]
async fn plugins_answer_administrators() {
    let stage = Stage::new();
    let talk = |request: Value| {
        stage.ask(
            "message_plugin",
            json!({ "plugin": TALKER, "request": request }),
        )
    };
    let reply = talk(json!({ "request": "list", "n": 1 })).await;
    let expected = json!({ "janus": "success", "transaction": "t",
        "response": { "request": "list", "n": 1 } });
    assert_eq!(reply, expected);
    let later = talk(json!({ "request": "later" })).await;
    assert_eq!(later["response"], json!({ "later": true }));
    assert_eq!(code(&talk(json!({ "request": "refuse" })).await), 490);
    // Without a request the plugin gets nothing.
    let reply = stage
        .ask("message_plugin", json!({ "plugin": TALKER }))
        .await;
    assert_eq!(reply["response"], Value::Null);
    let reply = stage
        .ask("message_plugin", json!({ "plugin": "janus.plugin.none" }))
        .await;
    assert_eq!(code(&reply), 460);
    assert_eq!(reply["error"]["reason"], "Invalid plugin");
    let reply = stage
        .ask("message_plugin", json!({ "plugin": PROBE, "request": {} }))
        .await;
    assert_eq!(code(&reply), 490);
    assert_eq!(
        reply["error"]["reason"],
        "Plugin doesn't support Admin API messages"
    );
}

struct Sink;

impl EventHandler for Sink {
    fn info(&self) -> EventHandlerInfo {
        EventHandlerInfo {
            package: "janus.eventhandler.sink",
            name: "Sink",
            description: "Takes events.",
            version: 1,
            version_string: "0.0.1",
        }
    }

    fn run(self: Arc<Self>, events: Subscription) -> Handling {
        Box::pin(async move { while events.recv().await.is_some() {} })
    }

    fn tweak(&self, members: Fields<'_>) -> Result<(), TweakError> {
        members.positive("size")?;
        Ok(())
    }
}

fn facts(bus: EventBus) -> ServerFacts {
    ServerFacts {
        events: bus,
        transports: vec![TransportInfo {
            package: "janus.transport.test",
            name: "Test",
            description: "For tests.",
        }],
        ..ServerFacts::default()
    }
}

#[tokio::test(start_paused = true)]
async fn event_handlers_are_tweaked() {
    let bus = EventBus::default();
    bus.start(Arc::new(Sink), EventFilter::ALL, 10);
    let stage = Stage::knowing(facts(bus));
    let query = |request: Value| {
        let members = json!({ "handler": "janus.eventhandler.sink", "request": request });
        stage.ask("query_eventhandler", members)
    };
    let reply = query(json!({ "request": "tweak" })).await;
    assert_eq!(reply["response"], json!({ "result": 200 }));
    let reply = query(json!({ "request": "fly" })).await;
    let expected = json!({ "error_code": 411, "error": "Unknown request" });
    assert_eq!(reply["response"], expected);
    assert_eq!(query(json!({})).await["response"]["error_code"], 412);
    let wrong = json!({ "request": "tweak", "size": "x" });
    assert_eq!(query(wrong).await["response"]["error_code"], 413);
    let reply = stage
        .ask("query_eventhandler", json!({ "handler": "none" }))
        .await;
    assert_eq!(code(&reply), 460);
    assert_eq!(reply["error"]["reason"], "Invalid event handler");
    let overview = stage.ask("overview", json!({})).await;
    assert_eq!(
        overview["handlers"][0]["package"],
        "janus.eventhandler.sink"
    );
    assert_eq!(overview["handlers"][0]["dropped"], 0);
    assert_eq!(overview["handlers"][0]["running"], true);
}

struct Line;

impl TransportControl for Line {
    fn query(&self, _request: &Map<String, Value>) -> Result<Value, TweakError> {
        Ok(json!({ "connections": 3 }))
    }
}

#[tokio::test(start_paused = true)]
async fn transports_and_loggers_are_asked() {
    let bus = EventBus::default();
    let stage = Stage::knowing(facts(bus.clone()));
    let query = |request: Value| {
        let members = json!({ "transport": "janus.transport.test", "request": request });
        stage.ask("query_transport", members)
    };
    // One that answers nothing of its own can be configured all the same.
    let connections = json!({ "request": "connections" });
    let reply = query(connections.clone()).await;
    assert_eq!(reply["response"]["error_code"], 411);
    let reply = query(json!({ "request": "configure", "events": false })).await;
    assert_eq!(reply["response"]["result"], 200);
    assert!(bus.is_muted("janus.transport.test"));
    let reply = query(json!({ "request": "configure", "events": 1 })).await;
    assert_eq!(reply["response"]["error_code"], 413);
    // Members that are left out stay as they are.
    query(json!({ "request": "configure", "json": "compact" })).await;
    assert!(bus.is_muted("janus.transport.test"));
    query(json!({ "request": "configure", "events": true })).await;
    assert!(!bus.is_muted("janus.transport.test"));
    stage
        .administration
        .add_transport("janus.transport.test", Arc::new(Line));
    let reply = query(connections).await;
    assert_eq!(
        reply["response"],
        json!({ "result": 200, "connections": 3 })
    );
    let reply = stage
        .ask("query_transport", json!({ "transport": "none" }))
        .await;
    assert_eq!(code(&reply), 460);
    assert_eq!(reply["error"]["reason"], "Invalid transport");
    let reply = stage.ask("query_logger", json!({ "logger": "none" })).await;
    assert_eq!(code(&reply), 460);
    assert_eq!(reply["error"]["reason"], "Invalid logger");
}

#[tokio::test(start_paused = true)]
async fn administrators_tell_events_and_lines() {
    let bus = EventBus::default();
    let external = EventFilter {
        kinds: EventKind::External.into(),
        plugins: Vec::new(),
    };
    let events = bus.subscribe("test", external, 10);
    let stage = Stage::knowing(facts(bus));
    let event = json!({ "schema": "mine", "data": { "n": 1 } });
    let reply = stage.ask("custom_event", event.clone()).await;
    assert_eq!(reply, json!({ "janus": "success", "transaction": "t" }));
    let told = events.recv().await.unwrap();
    assert_eq!((told.kind, told.body()), (EventKind::External, event));
    for level in [None, Some(0), Some(4), Some(7), Some(99)] {
        let mut line = json!({ "line": "a line\nof \u{1b}[31mmine" });
        if let Some(level) = level {
            line["level"] = level.into();
        }
        let reply = stage.ask("custom_logline", line).await;
        assert_eq!(code(&reply), 0, "{level:?}");
    }
    let reply = stage.ask("loops_info", json!({})).await;
    assert_eq!(reply["loops"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn nobody_subscribes_to_events_for_all_who_share_a_broker() {
    let bus = EventBus::default();
    let config = AdminConfig {
        secret: Some("s3".into()),
        ..AdminConfig::default()
    };
    let stage = Stage::start(CoreConfig::default(), facts(bus.clone()), config);
    let by_broker = portunus_core::Requester::by_broker("mqtt");
    let (client, mut outbox) =
        portunus_core::Client::pushed("test", by_broker, portunus_core::Purse::default());
    let request = json!({ "janus": "subscribe_events", "transaction": "t", "admin_secret": "s3" });
    let request = request.to_string();
    let administration = &stage.administration;
    administration.submit(&client, request.as_bytes()).await;
    assert_eq!(code(&outbox.recv().await.unwrap()), 450);
    assert!(!bus.wants(EventKind::Core));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_its_connection_and_keeps_to_its_filter() {
    let bus = EventBus::default();
    let stage = Stage::knowing(facts(bus.clone()));
    let gateway = &stage.world.gateway;
    let (client, mut outbox) = portunus_core::Client::pushed(
        "test",
        portunus_core::Requester::unix(),
        portunus_core::Purse::default(),
    );
    let ask = |members: Value| {
        let mut request = json!({ "janus": "subscribe_events", "transaction": "t" });
        let request = request.as_object_mut().unwrap();
        request.extend(members.as_object().unwrap().clone());
        let request = Value::from(request.clone()).to_string();
        let (administration, client) = (stage.administration.clone(), client.clone());
        async move { administration.submit(&client, request.as_bytes()).await }
    };
    for wrong in [
        json!({ "events": "madia" }),
        json!({ "events": 1 }),
        json!({ "plugins": "x" }),
    ] {
        ask(wrong).await;
        assert_eq!(outbox.recv().await.unwrap()["error"]["code"], 467);
    }
    assert!(!bus.wants(EventKind::Core));
    ask(json!({ "events": "external,plugins", "plugins": ["one"] })).await;
    assert_eq!(outbox.recv().await.unwrap()["events"], "external,plugins");
    bus.of_plugin("two").notify(|| json!(2));
    bus.of_plugin("one").notify(|| json!(1));
    let told = outbox.recv().await.unwrap();
    assert_eq!(
        told["event"]["event"],
        json!({ "plugin": "one", "data": 1 })
    );
    // Another takes its place.
    ask(json!({ "events": "core" })).await;
    outbox.recv().await.unwrap();
    // The first one's end takes a moment.
    while bus.wants(EventKind::Plugins) {
        tokio::task::yield_now().await;
    }
    gateway.client_gone(&client);
    while bus.wants(EventKind::Core) {
        tokio::task::yield_now().await;
    }
}
