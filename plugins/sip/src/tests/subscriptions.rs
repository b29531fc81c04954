use std::sync::Arc;
use std::time::Duration;

use portunus_sip::agent::{AgentEvent, Command};
use serde_json::json;

use super::world::{PACKAGE, World, ask, request, response};

#[tokio::test]
async fn a_page_subscribes_and_is_told_the_news() {
    let mut world = World::new();
    let mut stranger = world.server.attach(PACKAGE).await;
    let body = json!({ "request": "subscribe", "event": "presence", "to": "sip:b@h", "accept": "application/pidf+xml" });
    assert_eq!(
        ask(&mut stranger, body.clone(), None).await.0["error_code"],
        447
    );
    let (mut page, _) = world.page("a", json!({})).await;
    let (data, _) = ask(&mut page, body.clone(), None).await;
    assert_eq!(data["result"], json!({ "event": "subscribing" }));
    let Command::Subscribe {
        subscription,
        subscribe,
        ..
    } = world.command().await
    else {
        panic!()
    };
    assert_eq!(subscribe.uri.to_string(), "sip:b@h");
    assert_eq!(subscribe.expires, Duration::from_secs(3_600));
    world
        .happen(AgentEvent::Subscribed {
            subscription,
            expires: Duration::from_secs(60),
            response: Arc::new(response("202 Accepted", "", "")),
        })
        .await;
    assert_eq!(
        page.event().await,
        json!({ "sip": "event", "call_id": "c", "result": {
            "event": "subscribe_succeeded", "code": 202, "expires": 60, "reason": "Accepted",
        } })
    );
    let headers = "Event: presence;id=1\r\nSubscription-State: active;expires=9\r\nContent-Type: application/pidf+xml\r\n";
    world
        .happen(AgentEvent::Notify {
            subscription,
            request: Arc::new(request("NOTIFY", headers, "<x/>")),
        })
        .await;
    assert_eq!(
        page.event().await,
        json!({ "sip": "event", "call_id": "c", "result": {
            "event": "notify", "notify": "presence", "substate": "active",
            "content-type": "application/pidf+xml", "content": "<x/>",
        } })
    );
    // Again in the same dialog.
    ask(&mut page, body, None).await;
    assert!(
        matches!(world.command().await, Command::Subscribe { subscription: it, .. } if it == subscription)
    );
    let other = json!({ "request": "unsubscribe", "event": "presence.winfo" });
    let (data, _) = ask(&mut page, other, None).await;
    assert_eq!(data["error"], "Wrong state (not subscribed to this event)");
    let (data, _) = ask(
        &mut page,
        json!({ "request": "unsubscribe", "event": "presence" }),
        None,
    )
    .await;
    assert_eq!(data["result"], json!({ "event": "unsubscribing" }));
    assert!(
        matches!(world.command().await, Command::Unsubscribe { subscription: it } if it == subscription)
    );
    world
        .happen(AgentEvent::SubscriptionFailed {
            subscription,
            code: 489,
            reason: "Bad Event".to_owned(),
            response: None,
        })
        .await;
    let result = page.event().await["result"].clone();
    assert_eq!(
        result,
        json!({ "event": "subscribe_failed", "code": 489, "reason": "Bad Event" })
    );
}

#[tokio::test]
async fn a_page_publishes_its_state() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let body = json!({ "request": "publish", "event": "presence", "content": "<x/>", "content_type": "a/b" });
    let (data, _) = ask(&mut page, body, None).await;
    assert_eq!(data["result"], json!({ "event": "publishing" }));
    let Command::Publish {
        publish,
        publication,
        ..
    } = world.command().await
    else {
        panic!()
    };
    assert_eq!(publish.uri.to_string(), "sip:a@example.org");
    world
        .happen(AgentEvent::Subscribed {
            subscription: publication,
            expires: Duration::from_secs(60),
            response: Arc::new(response("200 OK", "", "")),
        })
        .await;
    let result = page.event().await["result"].clone();
    assert_eq!(
        (&result["event"], &result["published"]),
        (&json!("publish_succeeded"), &json!("presence"))
    );
    let (data, _) = ask(
        &mut page,
        json!({ "request": "unpublish", "event": "presence" }),
        None,
    )
    .await;
    assert_eq!(data["result"], json!({ "event": "unpublishing" }));
    assert!(matches!(world.command().await, Command::Unpublish { .. }));
    // A page that is gone removes its publications.
    let body = json!({ "request": "subscribe", "event": "dialog" });
    ask(&mut page, body, None).await;
    world.command().await;
    page.on_handle("detach", json!({})).await;
    assert!(matches!(world.command().await, Command::Unsubscribe { .. }));
}
