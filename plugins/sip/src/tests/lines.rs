use portunus_core::testing::TestClient;
use portunus_sip::agent::{AccountId, Cause, Command};
use serde_json::{Value, json};

use super::world::{PACKAGE, PHONE, World, answer, ask};

/// Another page of `sip:alice@example.org`.
async fn another(world: &World, more: Value) -> TestClient {
    let mut page = world.server.attach(PACKAGE).await;
    let mut body =
        json!({ "request": "register", "username": "sip:alice@example.org", "secret": "s" });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let (reply, _) = ask(&mut page, body, None).await;
    assert_eq!(reply["result"]["event"], "registering", "{reply}");
    assert_eq!(page.event().await["result"]["event"], "registered");
    page
}

/// Two pages of one account.
async fn two(world: &mut World) -> (TestClient, TestClient, AccountId) {
    let (one, account) = world.page("alice", json!({})).await;
    let other = another(world, json!({})).await;
    (one, other, account)
}

/// The next event of this name; others are lines, or what is told of PeerConnections.
async fn event(page: &mut TestClient, name: &str) -> Value {
    loop {
        let event = page.next().await;
        let data = event["plugindata"]["data"].clone();
        if data["result"]["event"] == name {
            return event;
        }
        assert!(
            data.is_null() || data["result"]["event"] == "lines",
            "{event}"
        );
    }
}

/// Sends a message; what has happened to lines meanwhile may be told before it is acknowledged.
async fn say(page: &mut TestClient, members: Value) {
    let mut reply = page.on_handle("message", members).await;
    while reply["janus"] != "ack" {
        assert_eq!(
            reply["plugindata"]["data"]["result"]["event"], "lines",
            "{reply}"
        );
        reply = page.next().await;
    }
}

#[tokio::test]
async fn a_call_rings_at_all_pages_and_the_first_has_it() {
    let mut world = World::new();
    let (mut one, mut other, account) = two(&mut world).await;
    let call = world.ring(account, 7, PHONE).await;
    for page in [&mut one, &mut other] {
        assert_eq!(page.event().await["result"]["event"], "incomingcall");
    }
    assert!(matches!(
        world.command().await,
        Command::Progress { code: 180, .. }
    ));
    let (data, _) = ask(&mut other, json!({ "request": "accept" }), Some(answer())).await;
    assert_eq!(data["result"], json!({ "event": "accepted" }));
    assert!(matches!(world.command().await, Command::Accept { call: it, .. } if it == call));
    let data = one.event().await;
    assert_eq!(
        data,
        json!({ "sip": "event", "call_id": "in-7", "result": {
            "event": "hangup", "code": 200, "reason": "Accepted elsewhere",
        } })
    );
    assert_eq!(one.next().await["janus"], "hangup");
    let (data, _) = ask(&mut one, json!({ "request": "accept" }), None).await;
    assert_eq!(data["error_code"], 447);
    // One is free again, the other talks.
    let second = world.ring(account, 8, PHONE).await;
    assert_eq!(one.event().await["call_id"], "in-8");
    world.command().await;
    other.expect_silence().await;
    world.end(call, Cause::Bye, 200, "OK").await;
    assert_eq!(
        other.event().await["result"]["reason"],
        "Session Terminated"
    );
    world.end(second, Cause::Cancelled, 487, "").await;
    assert_eq!(one.event().await["result"]["code"], 487);
}

#[tokio::test]
async fn a_page_declines_for_itself_or_for_all() {
    let mut world = World::new();
    let (mut one, mut other, account) = two(&mut world).await;
    let call = world.ring(account, 7, PHONE).await;
    one.event().await;
    other.event().await;
    world.command().await;
    let (data, _) = ask(&mut one, json!({ "request": "decline", "code": 486 }), None).await;
    assert_eq!(data["result"]["event"], "declining");
    assert_eq!(one.event().await["result"]["code"], 486);
    assert_eq!(one.next().await["janus"], "hangup");
    world.expect_no_command().await;
    other.expect_silence().await;
    let (data, _) = ask(&mut other, json!({ "request": "decline" }), None).await;
    assert_eq!(data["result"]["code"], 603);
    assert!(matches!(
        world.command().await,
        Command::Reject { code: 603, .. }
    ));
    world.end(call, Cause::Declined, 603, "").await;
    assert_eq!(other.event().await["result"]["code"], 603);
    assert_eq!(other.next().await["janus"], "hangup");
    world.ring(account, 8, PHONE).await;
    one.event().await;
    other.event().await;
    world.command().await;
    ask(&mut one, json!({ "request": "decline" }), None).await;
    let data = other.event().await;
    assert_eq!(data["result"]["reason"], "Declined elsewhere", "{data}");
}

#[tokio::test]
async fn pages_are_told_who_has_which_call() {
    let mut world = World::new();
    let more = json!({ "lines": true, "name": "desk" });
    let mut desk = world.server.attach(PACKAGE).await;
    let mut body =
        json!({ "request": "register", "username": "sip:alice@example.org", "secret": "s" });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    ask(&mut desk, body, None).await;
    let Command::SetAccount { account, .. } = world.command().await else {
        panic!()
    };
    world.register(account).await;
    event(&mut desk, "registered").await;
    let lines = event(&mut desk, "lines").await["plugindata"]["data"]["result"]["lines"].clone();
    let id = desk.handle;
    assert_eq!(
        lines,
        json!([{ "id": id, "name": "desk", "self": true, "helper": false, "call_status": "idle" }])
    );
    let mut plain = another(&world, json!({})).await;
    let lines = event(&mut desk, "lines").await["plugindata"]["data"]["result"]["lines"].clone();
    assert_eq!(lines.as_array().unwrap().len(), 2);
    let (call, call_id) = world.talk(&mut plain).await;
    let calling =
        event(&mut desk, "lines").await["plugindata"]["data"]["result"]["lines"][1].clone();
    assert_eq!(calling["call_status"], "inviting");
    let talking =
        event(&mut desk, "lines").await["plugindata"]["data"]["result"]["lines"][1].clone();
    assert_eq!(talking["call_status"], "incall");
    assert_eq!(
        (&talking["call_id"], &talking["outgoing"]),
        (&json!(call_id), &json!(true))
    );
    assert_eq!(talking["peer"], "sip:bob@example.org");
    assert!(talking["since"].is_u64());
    // The desk takes the call over.
    let unknown = json!({ "request": "move", "call_id": "no" });
    assert_eq!(ask(&mut desk, unknown, None).await.0["error_code"], 454);
    let (moving, _) = ask(
        &mut desk,
        json!({ "request": "move", "call_id": call_id }),
        None,
    )
    .await;
    assert_eq!(moving["result"], json!({ "event": "moving" }));
    let moved = event(&mut desk, "moved").await;
    assert_eq!(moved["jsep"]["type"], "offer");
    assert_eq!(
        moved["plugindata"]["data"]["result"]["username"],
        "sip:bob@example.org"
    );
    let (accepted, _) = ask(&mut desk, json!({ "request": "accept" }), Some(answer())).await;
    assert_eq!(accepted["result"], json!({ "event": "accepted" }));
    let lost = event(&mut plain, "hangup").await["plugindata"]["data"]["result"].clone();
    assert_eq!(
        lost,
        json!({ "event": "hangup", "code": 200, "reason": "Moved elsewhere" })
    );
    world.expect_no_command().await;
    world.end(call, Cause::Bye, 200, "OK").await;
    event(&mut desk, "hangup").await;
}

#[tokio::test]
async fn a_page_that_is_loaded_again_finds_its_call() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({ "lines": true })).await;
    let (call, call_id) = {
        event(&mut page, "lines").await;
        let (call, call_id) = world.call(&mut page, json!({})).await;
        event(&mut page, "lines").await;
        world.accept(call, &call_id, PHONE).await;
        event(&mut page, "accepted").await;
        (call, call_id)
    };
    page.on_handle("detach", json!({})).await;
    world.expect_no_command().await;
    let mut again = world.server.attach(PACKAGE).await;
    let body = json!({
        "request": "register", "username": "sip:alice@example.org", "secret": "s", "lines": true,
    });
    ask(&mut again, body, None).await;
    let registered = event(&mut again, "registered").await;
    let resumable = &registered["plugindata"]["data"]["result"]["resumable"];
    assert_eq!(resumable[0]["call_id"], call_id.as_str(), "{registered}");
    world.expect_no_command().await;
    say(
        &mut again,
        json!({ "body": { "request": "move", "call_id": call_id } }),
    )
    .await;
    event(&mut again, "moving").await;
    let moved = event(&mut again, "moved").await;
    assert_eq!(moved["jsep"]["type"], "offer");
    say(
        &mut again,
        json!({ "body": { "request": "accept" }, "jsep": answer() }),
    )
    .await;
    event(&mut again, "accepted").await;
    world.expect_no_command().await;
    // Without somebody who takes it, the call ends.
    again.on_handle("detach", json!({})).await;
    world.expect_no_command().await;
    let _ = (call, account);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_takes_ends() {
    let config = crate::SipConfig {
        reconnect_grace: std::time::Duration::from_secs(1),
        ..crate::SipConfig::default()
    };
    let mut world = World::with(config);
    let (mut page, account) = world.page("alice", json!({ "lines": true })).await;
    event(&mut page, "lines").await;
    let (call, call_id) = world.call(&mut page, json!({})).await;
    event(&mut page, "lines").await;
    world.accept(call, &call_id, PHONE).await;
    event(&mut page, "accepted").await;
    page.on_handle("detach", json!({})).await;
    let mut ended = [false; 2];
    while ended != [true, true] {
        match world.command().await {
            Command::Hangup { call: it, .. } => ended[0] = it == call,
            Command::RemoveAccount { account: it } => ended[1] = it == account,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_page_that_does_not_ask_for_lines_hangs_up_when_it_is_gone() {
    let mut world = World::new();
    let (mut page, _) = world.page("alice", json!({})).await;
    let (call, _) = world.talk(&mut page).await;
    page.on_handle("detach", json!({})).await;
    assert!(matches!(world.command().await, Command::Hangup { call: it, .. } if it == call));
    assert!(matches!(
        world.command().await,
        Command::RemoveAccount { .. }
    ));
}
