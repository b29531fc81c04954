//! JSON Web Tokens, as clients and administrators see them.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use portunus_core::testing::{TestServer, jwt, jwt_verifier};
use portunus_core::{CoreConfig, Credentials, ServerFacts};
use serde_json::{Value, json};

use crate::world::{PROBE, Probe, World};

const SECRET: &str = "a secret of more than thirty-two bytes";

/// A server that lets in who shows a token.
fn closed() -> World {
    closed_as(CoreConfig {
        token_auth: true,
        ..CoreConfig::default()
    })
}

fn closed_as(config: CoreConfig) -> World {
    let plugin = Arc::new(Probe::default());
    let facts = ServerFacts {
        jwt: jwt_verifier(SECRET),
        ..ServerFacts::default()
    };
    let server = TestServer::knowing(facts, config, vec![plugin.clone()]);
    World {
        gateway: server.gateway.clone(),
        plugin,
        server,
    }
}

/// A server with a rate.
fn limited() -> World {
    closed_as(CoreConfig {
        request_rate: 1,
        request_burst: 3,
        token_auth: true,
        ..CoreConfig::default()
    })
}

/// A token with these claims, which ends in `seconds`.
fn ending_in(seconds: i64, mut claims: Value) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    claims["exp"] = (now.as_secs() as i64 + seconds).into();
    jwt(&claims.to_string(), SECRET)
}

fn valid(claims: Value) -> String {
    ending_in(600, claims)
}

/// How many tokens were refused for `reason`.
fn refused(world: &World, reason: &str) -> u64 {
    let counted = world.gateway.token_totals().refused;
    let found = counted.into_iter().find(|(name, _)| *name == reason);
    found.unwrap().1
}

#[tokio::test]
async fn a_token_lets_in_until_it_ends_and_the_log_knows_why_not() {
    let world = closed();
    // On this machine the limit of texts does not hold, but a token is needed all the same.
    let mut client = world.connect();
    let mut create = async |token: &str| {
        let create = json!({ "janus": "create", "transaction": "c", "token": token });
        client.ask(create).await["error"].clone()
    };
    assert_eq!(create(&valid(json!({}))).await, Value::Null);
    let forged = jwt(
        r#"{"exp":99999999999}"#,
        "another secret of more than thirty-two",
    );
    let nothing = json!({
        "code": 403, "reason": "Unauthorized request (wrong or missing secret/token)",
    });
    for (token, reason) in [
        (ending_in(-31, json!({})), "expired"),
        (valid(json!({ "nbf": 99_999_999_999_u64 })), "not_yet"),
        (forged, "signature"),
        (jwt("{}", SECRET), "malformed"),
        (jwt("not JSON", SECRET), "malformed"),
        (format!("{}.e30.", "eyJhbGciOiJub25lIn0"), "algorithm"),
        ("x".repeat(4_097), "too_long"),
        ("stored elsewhere".to_owned(), "unknown"),
    ] {
        let before = refused(&world, reason);
        assert_eq!(create(&token).await, nothing, "{reason}");
        assert_eq!(refused(&world, reason), before + 1, "{reason}");
    }
}

#[tokio::test]
async fn a_token_opens_the_plugins_that_it_names() {
    let world = closed();
    let mut client = world.server.connect_stranger();
    let mut attach = async |claims: Value| {
        let token = valid(claims);
        let create = json!({ "janus": "create", "transaction": "c", "token": token });
        let session = client.ask(create).await["data"]["id"].clone();
        let attach = json!({
            "janus": "attach", "transaction": "a", "session_id": session, "plugin": PROBE,
            "token": token,
        });
        client.ask(attach).await["error"]["code"].clone()
    };
    assert_eq!(attach(json!({})).await, Value::Null);
    assert_eq!(attach(json!({ "plugins": ["probe"] })).await, Value::Null);
    assert_eq!(attach(json!({ "plugins": [PROBE] })).await, Value::Null);
    assert_eq!(attach(json!({ "plugins": ["other"] })).await, 405);
}

#[tokio::test]
async fn a_token_gives_its_rights_where_it_opens_the_plugin() {
    let world = closed();
    for (claims, expected) in [
        (json!({}), json!([])),
        (
            json!({ "rights": ["forward", "record"] }),
            json!(["record", "forward"]),
        ),
        (
            json!({ "rights": ["forward"], "plugins": ["probe"] }),
            json!(["forward"]),
        ),
    ] {
        let shown = valid(claims.clone());
        let mut client = world.server.connect_stranger();
        let create = json!({ "janus": "create", "transaction": "c", "token": shown });
        client.session = client.ask(create).await["data"]["id"].as_u64().unwrap();
        let attach = json!({
            "janus": "attach", "transaction": "a", "session_id": client.session, "plugin": PROBE,
            "token": shown,
        });
        client.handle = client.ask(attach).await["data"]["id"].as_u64().unwrap();
        let mut told = async |token: &str| {
            let tell = json!({ "token": token, "body": { "do": "tell rights" } });
            let reply = client.on_handle("message", tell).await;
            reply["plugindata"]["data"]["rights"].clone()
        };
        assert_eq!(told(&shown).await, expected, "{claims}");
        let elsewhere = valid(json!({ "rights": ["forward"], "plugins": ["other"] }));
        assert_eq!(told(&elsewhere).await, json!([]));
    }
}

#[tokio::test]
async fn administrators_see_whom_a_token_is_about_and_never_the_token() {
    let world = closed();
    for (claims, expected) in [
        (json!({ "sub": "alice" }), json!("alice")),
        (json!({}), Value::Null),
    ] {
        let token = valid(claims);
        let mut client = world.server.connect_stranger();
        let create = json!({ "janus": "create", "transaction": "c", "token": token });
        client.session = client.ask(create).await["data"]["id"].as_u64().unwrap();
        let attach = json!({
            "janus": "attach", "transaction": "a", "session_id": client.session, "plugin": PROBE,
            "token": token,
        });
        client.handle = client.ask(attach).await["data"]["id"].as_u64().unwrap();
        let tell = json!({ "token": token, "body": { "do": "tell token" } });
        let reply = client.on_handle("message", tell).await;
        assert_eq!(reply["plugindata"]["data"]["token"], expected);
    }
}

#[tokio::test]
async fn what_lets_clients_in_by_itself_asks_of_the_token_what_it_opens() {
    let world = closed();
    let shown = |token: &str| {
        let credentials = Credentials {
            api_secret: None,
            token: Some(token),
        };
        let admitted = world.gateway.admits(credentials, PROBE).is_ok();
        let scope = world.gateway.scope(credentials, PROBE);
        admitted.then(|| scope.check(Some(&json!(1234)), false).is_ok())
    };
    assert_eq!(shown(&valid(json!({}))), Some(true));
    assert_eq!(shown(&valid(json!({ "rooms": ["1234"] }))), Some(true));
    assert_eq!(shown(&valid(json!({ "rooms": [5] }))), Some(false));
    assert_eq!(shown(&valid(json!({ "plugins": [] }))), None);
    assert_eq!(shown(&ending_in(-60, json!({}))), None);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_made_up_are_verified_at_the_rate_of_requests() {
    let world = limited();
    let mut client = world.server.connect_stranger();
    let mut code = async |token: String| {
        let ping =
            json!({ "janus": "keepalive", "transaction": "t", "session_id": 1, "token": token });
        client.ask(ping).await["error"]["code"].clone()
    };
    let boss = valid(json!({ "rights": ["administer"] }));
    // Once it is known, it is not counted.
    for _ in 0..10 {
        assert_eq!(code(boss.clone()).await, 458);
    }
    let made_up = |number: u32| {
        let claims = json!({ "exp": 99_999_999_999_u64, "number": number });
        jwt(
            &claims.to_string(),
            "another secret of more than thirty-two",
        )
    };
    for number in 0..20 {
        let expected = if number < 2 { 403 } else { 450 };
        assert_eq!(code(made_up(number)).await, expected, "{number}");
    }
    assert_eq!(refused(&world, "signature"), 2);
    assert_eq!(code(boss).await, 458);
}
