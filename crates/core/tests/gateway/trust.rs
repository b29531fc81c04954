//! The rights of clients, and the limits of clients without rights.

use std::time::Duration;

use portunus_core::testing::{TestClient, signed_token, stranger};
use portunus_core::{Client, CoreConfig, Requester, Right, StoredToken};
use serde_json::{Value, json};

use crate::world::{PROBE, World};

/// The rights of a request that shows `members`.
async fn rights(client: &mut TestClient, members: Value) -> Value {
    let mut request = json!({ "body": { "do": "tell rights" } });
    request
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    let reply = client.on_handle("message", request).await;
    reply["plugindata"]["data"]["rights"].clone()
}

fn with_tokens() -> CoreConfig {
    let token = |token: &str, plugin: Option<&str>, rights: &[Right]| StoredToken {
        token: token.to_owned(),
        plugins: plugin.into_iter().map(str::to_owned).collect(),
        rights: rights.to_vec(),
    };
    CoreConfig {
        tokens: vec![
            token("recorder", None, &[Right::Record]),
            token("here", Some(PROBE), &[Right::Create, Right::Forward]),
            token("elsewhere", Some("janus.plugin.other"), &Right::ALL),
        ],
        token_auth_secret: Some("s1gn".into()),
        ..CoreConfig::default()
    }
}

fn all() -> Value {
    json!(["create", "record", "forward", "administer"])
}

#[tokio::test]
async fn strangers_have_no_rights_and_this_machine_has_all() {
    let world = World::new();
    let mut client = world.server.attach_stranger(PROBE).await;
    assert_eq!(rights(&mut client, json!({})).await, json!([]));
    let mut client = world.server.attach(PROBE).await;
    assert_eq!(rights(&mut client, json!({})).await, all());
    let loopback = Requester::at("127.0.0.1".parse().unwrap(), true);
    let mut client = world.server.attach_from(loopback, PROBE).await;
    assert_eq!(rights(&mut client, json!({})).await, all());

    let world = World::with(CoreConfig {
        trust_loopback: false,
        ..CoreConfig::default()
    });
    let mut client = world.server.attach_from(loopback, PROBE).await;
    assert_eq!(rights(&mut client, json!({})).await, json!([]));
}

#[tokio::test]
async fn the_api_secret_gives_all_rights() {
    let world = World::with(CoreConfig {
        api_secret: Some("s3cret".into()),
        token_auth: true,
        ..with_tokens()
    });
    let mut client = world.server.connect_stranger();
    for (members, expected) in [
        (json!({ "apisecret": "s3cret" }), all()),
        (json!({ "token": "recorder" }), json!(["record"])),
    ] {
        let with = |verb: &str, more: Value| {
            let mut request = json!({ "janus": verb, "transaction": "t" });
            let request_members = request.as_object_mut().unwrap();
            request_members.extend(members.as_object().unwrap().clone());
            request_members.extend(more.as_object().unwrap().clone());
            request
        };
        let created = client.ask(with("create", json!({}))).await;
        let session = &created["data"]["id"];
        let attach = json!({ "session_id": session, "plugin": PROBE });
        let attached = client.ask(with("attach", attach)).await;
        client.session = session.as_u64().unwrap();
        client.handle = attached["data"]["id"].as_u64().unwrap();
        assert_eq!(rights(&mut client, members).await, expected);
    }
    // Where there is no secret, none is right.
    let world = World::new();
    let mut client = world.server.attach_stranger(PROBE).await;
    let nothing = json!({ "apisecret": "", "token": "" });
    assert_eq!(rights(&mut client, nothing).await, json!([]));
}

#[tokio::test]
async fn a_token_gives_its_rights_in_its_plugins_request_by_request() {
    let world = World::with(with_tokens());
    let mut client = world.server.attach_stranger(PROBE).await;
    let signed = |data: &str, secret| signed_token(&format!("99999999999,{data}"), secret);
    for (token, expected) in [
        ("recorder".to_owned(), json!(["record"])),
        ("here".to_owned(), json!(["create", "forward"])),
        ("elsewhere".to_owned(), json!([])),
        ("unknown".to_owned(), json!([])),
        (
            signed(&format!("janus,{PROBE},right=record,right=create"), "s1gn"),
            json!(["create", "record"]),
        ),
        (signed("janus,right=record", "s1gn"), json!([])),
        (
            signed(&format!("janus,{PROBE},right=record"), "other"),
            json!([]),
        ),
        (signed(&format!("{PROBE},right=record"), "s1gn"), json!([])),
        (
            signed_token(&format!("1,janus,{PROBE},right=record"), "s1gn"),
            json!([]),
        ),
    ] {
        let shown = json!({ "token": token });
        assert_eq!(rights(&mut client, shown).await, expected, "{token}");
    }
    assert_eq!(rights(&mut client, json!({})).await, json!([]));
}

#[tokio::test]
async fn a_client_that_polls_is_whoever_asks() {
    let world = World::new();
    let http = Client::polled("janus.transport.http");
    let ask = async |requester, request: Value| {
        let client = http.on_behalf_of(requester);
        world.gateway.request_value(&client, request).await
    };
    let create = json!({ "janus": "create", "transaction": "c" });
    let session = ask(stranger(), create).await["data"]["id"].clone();
    let attach = json!({
        "janus": "attach", "transaction": "a", "session_id": session, "plugin": PROBE,
    });
    let handle = ask(stranger(), attach).await["data"]["id"].clone();
    for (requester, expected, from) in [
        (stranger(), json!([]), "192.0.2.77"),
        (Requester::unix(), all(), "unix"),
    ] {
        let tell = json!({
            "janus": "message", "transaction": "m", "session_id": session, "handle_id": handle,
            "body": { "do": "tell rights" },
        });
        let told = ask(requester, tell).await["plugindata"]["data"].clone();
        assert_eq!(told, json!({ "rights": expected, "from": from }));
    }
}

#[tokio::test]
async fn who_speaks_for_others_has_the_rights_that_they_showed() {
    let world = World::new();
    let rights = [Right::Record].into_iter().collect();
    let (client, _messages) = Client::internal("test", stranger(), rights);
    let ask = async |request: Value| world.gateway.request_value(&client, request).await;
    let create = json!({ "janus": "create", "transaction": "c" });
    let session = ask(create).await["data"]["id"].clone();
    let attach = json!({
        "janus": "attach", "transaction": "a", "session_id": session, "plugin": PROBE,
    });
    let handle = ask(attach).await["data"]["id"].clone();
    let tell = json!({
        "janus": "message", "transaction": "m", "session_id": session, "handle_id": handle,
        "body": { "do": "tell rights" },
    });
    let told = ask(tell).await["plugindata"]["data"].clone();
    assert_eq!(told, json!({ "rights": ["record"], "from": "192.0.2.77" }));
}

fn limited() -> CoreConfig {
    CoreConfig {
        request_rate: 2,
        request_burst: 10,
        max_text: 100,
        api_secret: None,
        tokens: vec![StoredToken {
            token: "boss".to_owned(),
            plugins: vec!["janus.plugin.other".to_owned()],
            rights: vec![Right::Administer],
        }],
        ..CoreConfig::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_stranger_asks_at_a_rate() {
    let world = World::with(limited());
    let (mut one, mut again) = (
        world.server.connect_stranger(),
        world.server.connect_stranger(),
    );
    let ping = json!({ "janus": "ping", "transaction": "p" });
    for _ in 0..5 {
        assert_eq!(one.ask(ping.clone()).await["janus"], "pong");
        assert_eq!(again.ask_raw("{}").await["error"]["code"], 456);
    }
    let refused = one.ask(ping.clone()).await;
    assert_eq!(refused["error"]["code"], 450);
    assert_eq!(refused["transaction"], "p");
    let reason = refused["error"]["reason"].as_str().unwrap();
    assert!(reason.contains("at most 2 per second"), "{reason}");
    assert_eq!(again.ask_raw("{}").await["error"]["code"], 450);
    let counted = world.gateway.counters().snapshot().bad_requests;
    let rate = counted.iter().find(|(kind, _)| kind.as_str() == "rate");
    assert_eq!(rate.unwrap().1, 2);

    // Others are not concerned, nor is who may administer.
    let elsewhere = Requester::at("192.0.2.78".parse().unwrap(), false);
    let mut other = world.server.connect_from(elsewhere);
    assert_eq!(other.ask(ping.clone()).await["janus"], "pong");
    let boss = json!({ "janus": "ping", "transaction": "p", "token": "boss" });
    let mut local = world.connect();
    for _ in 0..50 {
        assert_eq!(local.ask(ping.clone()).await["janus"], "pong");
        assert_eq!(one.ask(boss.clone()).await["janus"], "pong");
    }

    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(one.ask(ping.clone()).await["janus"], "pong");
    assert_eq!(one.ask(ping.clone()).await["janus"], "pong");
    assert_eq!(one.ask(ping).await["error"]["code"], 450);
}

#[tokio::test(start_paused = true)]
async fn polls_have_the_same_rate() {
    let world = World::with(limited());
    let poll = async || {
        let wait = Duration::ZERO;
        let polled = world
            .gateway
            .poll(1, stranger(), Default::default(), 1, wait);
        polled.await.unwrap_err()["error"]["code"].clone()
    };
    for _ in 0..10 {
        assert_eq!(poll().await, 458);
    }
    assert_eq!(poll().await, 450);
}

#[tokio::test(start_paused = true)]
async fn texts_of_strangers_are_short() {
    let world = World::with(limited());
    let mut client = world.server.attach_stranger(PROBE).await;
    let with = |text: &str| json!({ "body": { "do": "succeed", "list": [{ "note": text }] } });
    let (fits, long) = ("x".repeat(100), "x".repeat(101));
    let reply = client.on_handle("message", with(&fits)).await;
    assert_eq!(reply["janus"], "success", "{reply}");
    let reply = client.on_handle("message", with(&long)).await;
    assert_eq!(
        reply["error"],
        json!({ "code": 467, "reason": "Invalid element (note should have 100 bytes at most)" })
    );
    let mut local = world.server.attach(PROBE).await;
    let reply = local.on_handle("message", with(&long)).await;
    assert_eq!(reply["janus"], "success", "{reply}");
}
