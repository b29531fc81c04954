use portunus_core::{Client, CoreConfig, Requester, ServerFacts, StoredToken};
use serde_json::json;

use crate::stage::Stage;
use crate::world::PROBE;

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
async fn administrators_add_and_remove_tokens_while_clients_use_them() {
    let stage = Stage::with(with_tokens(), ServerFacts::default());
    let world = &stage.world;
    let mut client = world.server.connect_stranger();
    let admin = Client::pushed(
        "janus.transport.test",
        Requester::unix(),
        portunus_core::Purse::default(),
    )
    .0;
    let steer = async |verb: &str, members: serde_json::Value| {
        let mut request = json!({ "janus": verb, "transaction": "t" });
        let all = request.as_object_mut().unwrap();
        all.extend(members.as_object().unwrap().clone());
        stage.administration.request_value(&admin, request).await
    };
    let create = json!({ "janus": "create", "transaction": "c", "token": "new" });
    assert_eq!(client.ask(create.clone()).await["error"]["code"], 403);
    let added = steer("add_token", json!({ "token": "new", "plugins": [PROBE] })).await;
    assert_eq!(
        added,
        json!({ "janus": "success", "transaction": "t", "data": { "plugins": [PROBE] } })
    );
    let session = client.ask(create.clone()).await["data"]["id"].clone();
    let request = |verb: &str| {
        json!({
            "janus": verb, "transaction": "a", "session_id": session, "plugin": PROBE, "token": "new",
        })
    };
    assert_eq!(client.ask(request("attach")).await["janus"], "success");
    let only = json!({ "token": "new", "plugins": [PROBE] });
    let left = steer("disallow_token", only.clone()).await;
    assert_eq!(left["data"]["plugins"], json!([]));
    assert_eq!(client.ask(request("attach")).await["error"]["code"], 405);
    let allowed = steer("allow_token", only).await;
    assert_eq!(allowed["data"]["plugins"], json!([PROBE]));
    assert_eq!(client.ask(request("attach")).await["janus"], "success");
    let listed = steer("list_tokens", json!({})).await["data"]["tokens"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 3, "{listed}");
    let removed = steer("remove_token", json!({ "token": "new" })).await;
    assert_eq!(removed, json!({ "janus": "success", "transaction": "t" }));
    let refused = client.ask(request("keepalive")).await;
    assert_eq!(refused["error"]["code"], 403);
    let again = steer("remove_token", json!({ "token": "new" })).await;
    assert_eq!(again["error"]["code"], 490, "{again}");
}
