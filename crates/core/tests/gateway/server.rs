use portunus_core::{CoreConfig, InfoName};
use serde_json::json;

use crate::world::{PROBE, World};

#[tokio::test]
async fn answers_ping_with_pong() {
    let mut client = World::new().connect();
    let reply = client
        .ask(json!({ "janus": "PING", "transaction": "t" }))
        .await;
    assert_eq!(reply, json!({ "janus": "pong", "transaction": "t" }));
}

#[tokio::test]
async fn info_has_what_clients_look_for() {
    let config = CoreConfig {
        server_name: "mine".to_owned(),
        ..CoreConfig::default()
    };
    let mut client = World::with(config).connect();
    let info = client
        .ask(json!({ "janus": "info", "transaction": "t" }))
        .await;
    assert_eq!(info["janus"], "server_info");
    assert_eq!(info["transaction"], "t");
    assert_eq!(info["server-name"], "mine");
    assert_eq!(info["session-timeout"], 60);
    assert_eq!(info["accepting-new-sessions"], true);
    assert_eq!(info["plugins"][PROBE]["version"], 3);
    assert!(info["transports"].is_object());
    // The Janus whose API it is: clients ask there what they may use.
    assert_eq!(
        (&info["version"], &info["version_string"]),
        (&json!(1402), &json!("1.4.2"))
    );
    assert_eq!(info["portunus-version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(info["name"], "Portunus");
    // Clients of typed languages refuse an object that lacks one.
    for (member, value) in [
        ("ice-nomination", json!("regular")),
        ("min-nack-queue", json!(1000)),
        ("nack-optimizations", json!(false)),
        ("twcc-period", json!(100)),
        ("dtls-mtu", json!(1200)),
        ("static-event-loops", json!(0)),
    ] {
        assert_eq!(info[member], value, "{member}");
    }
}

#[tokio::test]
async fn info_names_janus_where_it_is_to() {
    let config = CoreConfig {
        info_name: InfoName::Janus,
        ..CoreConfig::default()
    };
    let mut client = World::with(config).connect();
    let info = client
        .ask(json!({ "janus": "info", "transaction": "t" }))
        .await;
    assert_eq!(info["name"], "Janus WebRTC Server");
}

#[tokio::test]
async fn a_drained_server_takes_no_new_sessions() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    world.gateway.accept_new_sessions(false);
    let reply = client
        .ask(json!({ "janus": "create", "transaction": "t" }))
        .await;
    assert_eq!(reply["error"]["code"], 472);
    assert_eq!(
        reply["error"]["reason"],
        "Currently not accepting new sessions"
    );
    let keepalive = json!({ "janus": "keepalive", "transaction": "k", "session_id": session });
    assert_eq!(client.ask(keepalive).await["janus"], "ack");
}

#[tokio::test]
async fn sessions_and_handles_can_be_limited() {
    let world = World::with(CoreConfig {
        max_sessions: 3,
        max_sessions_per_connection: 2,
        max_handles_per_session: 1,
        ..CoreConfig::default()
    });
    let create = json!({ "janus": "create", "transaction": "t" });
    let (mut one, mut two) = (world.connect(), world.connect());
    let session = one.create().await;
    one.create().await;
    assert_eq!(one.ask(create.clone()).await["error"]["code"], 472);
    two.create().await;
    assert_eq!(two.ask(create).await["error"]["code"], 472);

    one.attach(session, PROBE).await;
    let attach =
        json!({ "janus": "attach", "transaction": "t", "session_id": session, "plugin": PROBE });
    assert_eq!(one.ask(attach).await["error"]["code"], 461);

    let destroy = json!({ "janus": "destroy", "transaction": "t", "session_id": session });
    assert_eq!(one.ask(destroy).await["janus"], "success");
    two.create().await;
}

#[tokio::test]
async fn a_shutdown_ends_handles_and_tells_their_clients() {
    let world = World::new();
    let mut client = world.connect();
    let session = client.create().await;
    let handle = client.attach(session, PROBE).await;
    world.gateway.shutdown().await;
    let detached = client.next().await;
    assert_eq!(detached["janus"], "detached");
    assert_eq!(detached["sender"], handle);
    let timeout = json!({ "janus": "timeout", "session_id": session });
    assert_eq!(client.next().await, timeout);
    assert_eq!(world.plugin.log(), ["detach"]);
    let counters = world.gateway.counters().snapshot();
    assert_eq!((counters.sessions, counters.handles), (0, 0));
}
