use std::sync::Arc;

use portunus_core::testing::TestClient;
use portunus_sip::agent::{About, AgentEvent, Cause, Command};
use serde_json::{Value, json};

use super::world::{PACKAGE, World, ask, response};

async fn refused(page: &mut TestClient, body: Value) -> u64 {
    let (data, is_reply) = ask(page, body, None).await;
    assert!(is_reply);
    assert_eq!(data["sip"], "event");
    assert!(data["error"].is_string(), "{data}");
    data["error_code"].as_u64().unwrap()
}

#[tokio::test]
async fn an_account_is_registered_and_unregistered() {
    let mut world = World::new();
    let mut page = world.server.attach(PACKAGE).await;
    let body = json!({
        "request": "Register", "username": "sip:a@h", "secret": "pw", "proxy": "sip:h:5060",
        "incoming_header_prefixes": ["X-"],
    });
    let (reply, is_reply) = ask(&mut page, body.clone(), None).await;
    let id = reply["result"]["unique_id"].clone();
    assert!(id.is_string() && is_reply);
    assert_eq!(
        reply,
        json!({ "sip": "event", "result": { "event": "registering", "unique_id": id } })
    );
    assert_eq!(refused(&mut page, body).await, 445);
    let Command::SetAccount { account, profile } = world.command().await else {
        panic!()
    };
    assert_eq!(profile.identity.to_string(), "sip:a@h");
    let registration = profile.registration.unwrap();
    assert_eq!(registration.registrar.unwrap().to_string(), "sip:h:5060");
    for _ in 0..2 {
        let expires = std::time::Duration::from_secs(60);
        let response = Arc::new(response("200 OK", "X-Shelf: 7\r\n", ""));
        world
            .happen(AgentEvent::Registered {
                account,
                expires,
                response,
            })
            .await;
        let event = page.next().await;
        assert_eq!(event["transaction"], Value::Null);
        let data = &event["plugindata"]["data"];
        let master = data["result"]["master_id"].clone();
        assert!(master.is_u64());
        assert_eq!(
            data,
            &json!({
                "sip": "event", "unique_id": id,
                "result": {
                    "event": "registered", "username": "a", "register_sent": true, "master_id": master,
                    "headers": { "X-Shelf": "7" },
                },
            })
        );
    }
    let (reply, _) = ask(&mut page, json!({ "request": "unregister" }), None).await;
    assert_eq!(
        reply,
        json!({ "sip": "event", "result": { "event": "unregistering" } })
    );
    assert!(
        matches!(world.command().await, Command::RemoveAccount { account: it } if it == account)
    );
    world
        .happen(AgentEvent::Unregistered {
            account,
            response: None,
        })
        .await;
    let data = page.event().await;
    assert_eq!(
        data,
        json!({
            "sip": "event", "unique_id": id,
            "result": { "event": "unregistered", "username": "a", "headers": {} },
        })
    );
    assert_eq!(
        refused(&mut page, json!({ "request": "unregister" })).await,
        447
    );
}

#[tokio::test]
async fn a_failure_is_told_and_the_handle_can_register_again() {
    let mut world = World::new();
    let (mut page, account) = world.page("a", json!({})).await;
    world
        .happen(AgentEvent::RegistrationFailed {
            account,
            code: 408,
            reason: "Request Timeout".to_owned(),
            response: None,
            retry: None,
        })
        .await;
    assert_eq!(
        page.event().await,
        json!({ "sip": "event", "result": {
            "event": "registration_failed", "code": 408, "reason": "Request Timeout",
        } })
    );
    assert!(matches!(
        world.command().await,
        Command::RemoveAccount { .. }
    ));
    let body = json!({ "request": "register", "username": "sip:a@h", "secret": "x" });
    let (reply, _) = ask(&mut page, body, None).await;
    assert_eq!(reply["result"]["event"], "registering");
}

#[tokio::test]
async fn guests_send_no_register() {
    let mut world = World::new();
    let mut page = world.server.attach(PACKAGE).await;
    for name in ["one", "two"] {
        let body =
            json!({ "request": "register", "type": "guest", "username": format!("sip:{name}@h") });
        let (reply, is_reply) = ask(&mut page, body, None).await;
        assert!(is_reply);
        let result = &reply["result"];
        assert_eq!(result["event"], "registered", "{reply}");
        assert_eq!(result["username"], name);
        assert_eq!(result["register_sent"], false);
        assert!(result["master_id"].is_u64() && result["unique_id"].is_string());
        let Command::SetAccount { profile, .. } = world.command().await else {
            panic!()
        };
        assert!(profile.registration.is_none() && profile.credentials.is_none());
    }
    assert_eq!(
        refused(&mut page, json!({ "request": "unregister" })).await,
        447
    );
}

#[tokio::test]
async fn pages_with_the_same_secret_share_one_registration() {
    let mut world = World::new();
    let (mut first, account) = world.page("a", json!({})).await;
    let mut second = world.server.attach(PACKAGE).await;
    let body = json!({ "request": "register", "username": "sip:a@example.org", "secret": "s" });
    let (reply, _) = ask(&mut second, body, None).await;
    assert_eq!(reply["result"]["event"], "registering");
    let registered = second.event().await;
    assert_eq!(registered["result"]["event"], "registered");
    world.expect_no_command().await;
    // Both get the refresh.
    world.register(account).await;
    assert_eq!(first.event().await["result"]["event"], "registered");
    assert_eq!(second.event().await["result"]["event"], "registered");
    // Another secret is another account.
    let mut third = world.server.attach(PACKAGE).await;
    let body = json!({ "request": "register", "username": "sip:a@example.org", "secret": "other" });
    let (reply, _) = ask(&mut third, body, None).await;
    assert_eq!(reply["result"]["event"], "registering");
    assert!(
        matches!(world.command().await, Command::SetAccount { account: it, .. } if it != account)
    );
    // The first leaves, the second still has it.
    let (reply, _) = ask(&mut first, json!({ "request": "unregister" }), None).await;
    assert_eq!(reply["result"]["event"], "unregistering");
    assert_eq!(first.event().await["result"]["event"], "unregistered");
    world.expect_no_command().await;
    second.on_handle("detach", json!({})).await;
    assert!(
        matches!(world.command().await, Command::RemoveAccount { account: it } if it == account)
    );
}

#[tokio::test]
async fn helpers_have_the_account_of_their_master() {
    let mut world = World::new();
    let (mut master, account) = world.page("a", json!({})).await;
    world.register(account).await;
    let registered = master.event().await;
    let number = registered["result"]["master_id"].clone();
    let session = master.session;
    let mut helper = world.server.connect();
    helper.session = session;
    helper.handle = master.attach(session, PACKAGE).await;
    // A page of another session has to know the secret.
    let mut stranger = world.server.attach(PACKAGE).await;
    let body = json!({ "request": "register", "type": "helper", "username": "sip:a@h", "master_id": number });
    assert_eq!(refused(&mut stranger, body.clone()).await, 453);
    let mut wrong = body.clone();
    wrong["master_id"] = json!(1);
    assert_eq!(refused(&mut stranger, wrong).await, 453);
    let mut knowing = body;
    knowing["secret"] = json!("s");
    let (reply, _) = ask(&mut stranger, knowing.clone(), None).await;
    let id = reply["result"]["unique_id"].clone();
    assert_eq!(
        reply,
        json!({ "sip": "event", "result": {
            "event": "registered", "username": "a", "register_sent": false, "helper": true,
            "master_id": number, "unique_id": id,
        } })
    );
    assert_eq!(refused(&mut stranger, knowing).await, 453);
    let other = json!({ "request": "register", "username": "sip:a@h", "secret": "s" });
    assert_eq!(refused(&mut stranger, other).await, 453);
    // The helper calls by its master's account.
    let (call, _) = world.call(&mut stranger, json!({})).await;
    let _ = call;
    // The helper ends with its master.
    master.on_handle("detach", json!({})).await;
    loop {
        let event = stranger.next().await;
        if event["janus"] == "detached" {
            break;
        }
    }
}

#[tokio::test]
async fn strangers_have_limits() {
    let config = crate::SipConfig {
        requests_per_minute: 2,
        ..crate::SipConfig::default()
    };
    let world = World::with(config);
    let mut codes = Vec::new();
    for number in 0..3 {
        let mut page = world.server.attach_stranger(PACKAGE).await;
        let body =
            json!({ "request": "register", "username": format!("sip:{number}@h"), "secret": "s" });
        let (reply, _) = ask(&mut page, body, None).await;
        codes.push(reply["error_code"].clone());
    }
    assert_eq!(codes, [Value::Null, Value::Null, json!(444)]);
}

/// Registers at a forbidden address, and returns the event of the page.
async fn sent_nowhere(world: &mut World, page: &mut TestClient) -> Value {
    let body = json!({ "request": "register", "username": "sip:a@10.0.0.1", "secret": "s" });
    let (reply, _) = ask(page, body, None).await;
    assert_eq!(reply["result"]["event"], "registering");
    let Command::SetAccount { account, .. } = world.command().await else {
        panic!()
    };
    world
        .happen(AgentEvent::Forbidden {
            about: About::Registration(account),
            address: [10, 0, 0, 1].into(),
        })
        .await;
    world
        .happen(AgentEvent::RegistrationFailed {
            account,
            code: 503,
            reason: "Service Unavailable".to_owned(),
            response: None,
            retry: None,
        })
        .await;
    let told = page.event().await["result"].clone();
    assert!(matches!(
        world.command().await,
        Command::RemoveAccount { .. }
    ));
    told
}

#[tokio::test]
async fn trusted_pages_are_told_that_sip_may_not_be_sent_there() {
    let mut world = World::new();
    let mut trusted = world.server.attach(PACKAGE).await;
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    let why = "SIP may not be sent to 10.0.0.1: it is not in server.outgoing_networks";
    for (page, reason) in [(&mut trusted, why), (&mut stranger, "Service Unavailable")] {
        let told = sent_nowhere(&mut world, page).await;
        let expected = json!({ "event": "registration_failed", "code": 503, "reason": reason });
        assert_eq!(told, expected);
    }
    // Calls, too. A transferor is no client, and gets the public reason.
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, _) = world.call(&mut page, json!({})).await;
    let (about, address) = (About::Call(call), [10, 0, 0, 1].into());
    world.happen(AgentEvent::Forbidden { about, address }).await;
    world
        .end(call, Cause::Unreachable, 503, "Service Unavailable")
        .await;
    let hangup = page.event().await;
    assert_eq!(hangup["result"]["reason"], why, "{hangup}");
    // A later failure has its own reason.
    let (call, _) = world.call(&mut page, json!({})).await;
    world
        .end(call, Cause::Unreachable, 503, "Service Unavailable")
        .await;
    let hangup = page.event().await;
    assert_eq!(hangup["result"]["reason"], "Service Unavailable");
}
