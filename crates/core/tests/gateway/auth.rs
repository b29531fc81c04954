use portunus_core::{CoreConfig, Credentials, Requester, StoredToken};
use serde_json::json;

use crate::world::{PROBE, World};

fn with_secret() -> CoreConfig {
    CoreConfig {
        api_secret: Some("s3cret".into()),
        ..CoreConfig::default()
    }
}

fn with_tokens() -> CoreConfig {
    let token = |token: &str, plugins: &[&str]| StoredToken {
        token: token.to_owned(),
        plugins: plugins.iter().map(|plugin| (*plugin).to_owned()).collect(),
        rights: Vec::new(),
    };
    let tokens = vec![token("all", &[]), token("echo", &["janus.plugin.echotest"])];
    CoreConfig {
        token_auth: true,
        tokens,
        ..CoreConfig::default()
    }
}

#[tokio::test]
async fn requests_need_the_api_secret() {
    let world = World::with(with_secret());
    let mut client = world.connect();
    let refused = json!({
        "code": 403, "reason": "Unauthorized request (wrong or missing secret/token)",
    });
    for secret in [json!(null), json!("wrong1"), json!("s3cre"), json!(7)] {
        let create = json!({ "janus": "create", "transaction": "c", "apisecret": secret });
        assert_eq!(client.ask(create).await["error"], refused);
    }
    let create = json!({ "janus": "create", "transaction": "c", "apisecret": "s3cret" });
    let session = client.ask(create).await["data"]["id"].as_u64().unwrap();
    let mut keepalive = json!({ "janus": "keepalive", "transaction": "k", "session_id": session });
    assert_eq!(client.ask(keepalive.clone()).await["error"], refused);
    keepalive["apisecret"] = "s3cret".into();
    assert_eq!(client.ask(keepalive).await["janus"], "ack");
    for open in ["info", "ping"] {
        let reply = client
            .ask(json!({ "janus": open, "transaction": "o" }))
            .await;
        assert_eq!(reply.get("error"), None);
    }
}

#[tokio::test]
async fn polls_need_the_api_secret() {
    let world = World::with(with_secret());
    let wait = std::time::Duration::ZERO;
    let poll = |shown| world.gateway.poll(1, Requester::unix(), shown, 1, wait);
    let refused = poll(Credentials::default()).await;
    assert_eq!(refused.unwrap_err()["error"]["code"], 403);
    let known = Credentials {
        api_secret: Some("s3cret"),
        token: None,
    };
    let missing = poll(known).await;
    assert_eq!(missing.unwrap_err()["error"]["code"], 458);
}

#[tokio::test]
async fn a_token_opens_its_plugins_only() {
    let world = World::with(with_tokens());
    let mut client = world.connect();
    let create = json!({ "janus": "create", "transaction": "c", "token": "none" });
    assert_eq!(client.ask(create).await["error"]["code"], 403);
    let create = json!({ "janus": "create", "transaction": "c", "token": "echo" });
    let session = client.ask(create).await["data"]["id"].as_u64().unwrap();
    let attach = |token: &str| {
        json!({
            "janus": "attach", "transaction": "a", "session_id": session, "plugin": PROBE,
            "token": token,
        })
    };
    assert_eq!(
        client.ask(attach("echo")).await["error"],
        json!({
            "code": 405, "reason": "Provided token can't access plugin 'janus.plugin.probe'",
        })
    );
    assert_eq!(client.ask(attach("all")).await["janus"], "success");
}

#[tokio::test]
async fn the_secret_stands_in_for_a_token() {
    let config = CoreConfig {
        api_secret: Some("s3cret".into()),
        ..with_tokens()
    };
    let mut client = World::with(config).connect();
    for shown in [json!({ "apisecret": "s3cret" }), json!({ "token": "all" })] {
        let mut create = json!({ "janus": "create", "transaction": "c" });
        create
            .as_object_mut()
            .unwrap()
            .extend(shown.as_object().unwrap().clone());
        assert_eq!(client.ask(create).await["janus"], "success");
    }
}
