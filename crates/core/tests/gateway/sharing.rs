//! A client that many share.

use std::collections::HashMap;

use portunus_core::{Client, Purse, Requester};
use serde_json::json;

use crate::world::{PROBE, World};

#[tokio::test]
async fn each_reply_of_a_shared_client_says_which_request_it_answers_and_no_event_does() {
    let world = World::new();
    let (client, mut outbox) =
        Client::pushed("test", Requester::by_broker("test"), Purse::default());
    let gateway = &world.gateway;
    let ask = async |number, request: serde_json::Value| {
        let asking = client.asking(number);
        gateway
            .submit(&asking, request.to_string().as_bytes())
            .await;
    };
    ask(
        1,
        json!({ "janus": "create", "transaction": "same", "id": 7 }),
    )
    .await;
    assert_eq!(outbox.recv_posted().await.unwrap().answers, Some(1));
    let attach =
        json!({ "janus": "attach", "transaction": "same", "session_id": 7, "plugin": PROBE });
    ask(2, attach).await;
    let attached = outbox.recv_posted().await.unwrap();
    assert_eq!(attached.answers, Some(2));
    let handle = attached.message.into_value()["data"]["id"].clone();
    let message = |told: &str| {
        json!({
            "janus": "message", "transaction": "same", "session_id": 7, "handle_id": handle,
            "body": { "do": told },
        })
    };
    // The session was made by the first request, whose number its events do not have.
    ask(3, message("answer later")).await;
    ask(4, message("succeed")).await;
    ask(
        5,
        json!({ "janus": "keepalive", "transaction": "same", "session_id": 8 }),
    )
    .await;
    let mut replies = HashMap::new();
    while replies.len() < 3 {
        let posted = outbox.recv_posted().await.unwrap();
        let told = posted.message.into_value()["janus"].clone();
        match posted.answers {
            Some(number) => drop(replies.insert(number, told)),
            None => assert_eq!(told, "event"),
        }
    }
    assert_eq!(replies[&4], "success");
    assert_eq!(replies[&5], "error");
    assert!(replies.contains_key(&3));
}

#[tokio::test]
async fn a_trusted_client_has_all_rights_wherever_it_is() {
    let world = World::new();
    for (is_trusted, rights) in [(false, 0), (true, 4)] {
        let (client, mut outbox) =
            Client::pushed("test", Requester::by_broker("mqtt"), Purse::default());
        let client = if is_trusted { client.trusted() } else { client };
        let mut ask = async |request: serde_json::Value| {
            let request = request.to_string();
            world.gateway.submit(&client, request.as_bytes()).await;
            outbox.recv().await.unwrap()
        };
        let created = ask(json!({ "janus": "create", "transaction": "c" })).await;
        let session = created["data"]["id"].clone();
        let attach = json!({
            "janus": "attach", "transaction": "a", "session_id": session, "plugin": PROBE,
        });
        let handle = ask(attach).await["data"]["id"].clone();
        let told = ask(json!({
            "janus": "message", "transaction": "m", "session_id": session, "handle_id": handle,
            "body": { "do": "tell rights" },
        }));
        let data = told.await["plugindata"]["data"].clone();
        assert_eq!(data["from"], "mqtt");
        assert_eq!(data["rights"].as_array().unwrap().len(), rights);
    }
}

#[tokio::test]
async fn who_asks_by_a_broker_is_no_local_client_and_all_are_one() {
    let one = Requester::by_broker("mqtt");
    assert!(!one.is_local());
    assert_eq!(one.address(), Requester::by_broker("mqtt").address());
    assert_ne!(one.address(), Requester::by_broker("nats").address());
    assert_eq!(one.address().to_string(), "mqtt");
}
