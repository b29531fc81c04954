use std::sync::Arc;

use portunus_core::testing::TestClient;
use portunus_sip::agent::{AccountId, AgentEvent, CallId, Command, ReferId};
use portunus_sip::message::Method;
use serde_json::{Value, json};

use super::world::{PHONE, World, ask, offer, request};

#[tokio::test]
async fn a_call_is_transferred_blindly() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, call_id) = world.talk(&mut page).await;
    let transfer = |more: Value| {
        let mut body = json!({ "request": "transfer" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    for (more, code) in [
        (json!({}), 443),
        (json!({ "uri": "bob" }), 446),
        (json!({ "uri": "sip:c@h", "replace": "no" }), 454),
        (json!({ "uri": "sip:c@h", "replace": call_id }), 454),
    ] {
        let (data, _) = ask(&mut page, transfer(more), None).await;
        assert_eq!(data["error_code"], code, "{data}");
    }
    let (data, _) = ask(&mut page, transfer(json!({ "uri": "sip:c@h" })), None).await;
    assert_eq!(data["result"], json!({ "event": "transferring" }));
    let Command::InDialog {
        call: it,
        method,
        headers,
        ..
    } = world.command().await
    else {
        panic!()
    };
    assert_eq!((it, method), (call, Method::Refer));
    assert!(headers.contains(&("Refer-To".to_owned(), "<sip:c@h>".to_owned())));
    let headers = "Event: refer\r\nSubscription-State: terminated;reason=noresource\r\nContent-Type: message/sipfrag;version=2.0\r\n";
    world
        .happen(AgentEvent::ReferNotify {
            call,
            request: Arc::new(request("NOTIFY", headers, "SIP/2.0 200 OK\r\n")),
        })
        .await;
    assert_eq!(
        page.event().await["result"],
        json!({
            "event": "notify", "notify": "refer", "substate": "terminated",
            "content-type": "message/sipfrag", "content": "SIP/2.0 200 OK",
        })
    );
}

#[tokio::test]
async fn a_call_is_transferred_to_another_of_the_account() {
    let mut world = World::new();
    let (mut page, account) = world.page("a", json!({})).await;
    world.register(account).await;
    let number = page.event().await["result"]["master_id"].clone();
    let mut helper = world.server.attach(super::world::PACKAGE).await;
    let body = json!({
        "request": "register", "type": "helper", "username": "sip:a@h", "master_id": number, "secret": "s",
    });
    ask(&mut helper, body, None).await;
    let (call, _) = world.talk(&mut page).await;
    let (_, other) = world.talk(&mut helper).await;
    let body = json!({ "request": "transfer", "uri": "sip:c@h", "replace": other });
    let (data, _) = ask(&mut page, body, None).await;
    assert_eq!(data["result"]["event"], "transferring", "{data}");
    let Command::InDialog {
        call: it, headers, ..
    } = world.command().await
    else {
        panic!()
    };
    assert_eq!(it, call);
    let refer_to = headers.iter().find(|(name, _)| name == "Refer-To").unwrap();
    let expected = format!("<sip:c@h?Replaces={other}%3Bto-tag%3Dtheirs%3Bfrom-tag%3Dours>");
    assert_eq!(refer_to.1, expected);
}

#[tokio::test]
async fn a_transfer_of_the_peer_is_followed_or_declined() {
    let mut world = World::new();
    let (mut page, account) = world.page("a", json!({})).await;
    let (call, _) = world.talk(&mut page).await;
    for number in [1, 2] {
        let refer = ReferId::new(number);
        let headers = "Refer-To: <sip:c@h?Replaces=x%3Bto-tag%3D1%3Bfrom-tag%3D2>\r\n";
        world
            .happen(AgentEvent::Refer {
                refer,
                account: Some(account),
                call: Some(call),
                request: Arc::new(request("REFER", headers, "")),
            })
            .await;
        let data = page.event().await;
        assert_eq!(
            data,
            json!({ "sip": "event", "result": {
                "event": "transfer", "refer_id": number, "refer_to": "sip:c@h", "replaces": "x",
                "referred_by": "<sip:bob@example.org>",
            } })
        );
    }
    let decline = json!({ "request": "decline", "refer_id": 1 });
    let (data, _) = ask(&mut page, decline.clone(), None).await;
    assert_eq!(
        data["result"],
        json!({ "event": "declining", "refer_id": 1, "code": 603 })
    );
    assert!(matches!(
        world.command().await,
        Command::NotifyRefer {
            code: 603,
            last: true,
            ..
        }
    ));
    let (data, _) = ask(&mut page, decline, None).await;
    assert_eq!(data["error"], "Wrong state (no transfer?)");
    // Nobody else can follow it, whatever number it guesses.
    let (mut stranger, _) = world.page("mallory", json!({})).await;
    let body = json!({ "request": "call", "uri": "sip:c@h", "refer_id": 2 });
    let (data, _) = ask(&mut stranger, body, Some(offer())).await;
    assert_eq!(data["error"], "Wrong state (no transfer?)", "{data}");
    // Another page of the account follows the second one.
    let mut other = world.server.attach(super::world::PACKAGE).await;
    let body = json!({ "request": "register", "username": "sip:a@example.org", "secret": "s" });
    ask(&mut other, body, None).await;
    other.event().await;
    let body = json!({ "request": "call", "uri": "sip:c@h", "refer_id": 2 });
    let (data, _) = ask(&mut other, body, Some(offer())).await;
    assert_eq!(data["result"]["event"], "calling", "{data}");
    let Command::Invite { call, invite, .. } = world.command().await else {
        panic!()
    };
    let header = |name: &str| {
        let mut headers = invite.headers.iter();
        headers
            .find(|(it, _)| it == name)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(header("Replaces"), Some("x;to-tag=1;from-tag=2"));
    assert_eq!(header("Referred-By"), Some("<sip:bob@example.org>"));
    world.accept(call, "c", PHONE).await;
    assert!(matches!(
        world.command().await,
        Command::NotifyRefer {
            code: 200,
            last: true,
            ..
        }
    ));
}

/// Returns the number of transfers that a page gets. The others are declined at once.
async fn told_of(
    world: &mut World,
    (page, account): &mut (TestClient, AccountId),
    call: Option<CallId>,
    numbers: std::ops::Range<u64>,
) -> u64 {
    let mut told = 0;
    for number in numbers {
        let headers = "Refer-To: <sip:c@h>\r\n";
        world
            .happen(AgentEvent::Refer {
                refer: ReferId::new(number),
                account: Some(*account),
                call,
                request: Arc::new(request("REFER", headers, "")),
            })
            .await;
        tokio::select! {
            event = page.event() => {
                assert_eq!(event["result"]["event"], "transfer", "{event}");
                told += 1;
            }
            command = world.command() => {
                let is_declined = matches!(command, Command::NotifyRefer { code: 603, last: true, .. });
                assert!(is_declined, "{command:?}");
            }
        }
    }
    told
}

#[tokio::test]
async fn strangers_do_not_take_the_room_for_the_transfers_of_others() {
    let mut world = World::new();
    let mut told = Vec::new();
    let mut number = 0;
    let mut pages = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        let mut page = world.page(name, json!({})).await;
        // Of one account, and of all together.
        let numbers = number..number + 70;
        told.push(told_of(&mut world, &mut page, None, numbers).await);
        number += 70;
        pages.push(page);
    }
    assert_eq!(told, [64, 64, 64, 64, 64, 64, 64, 52, 0]);
    // A REFER in a call still has room.
    let page = pages.last_mut().unwrap();
    let (call, _) = world.talk(&mut page.0).await;
    let numbers = number..number + 5;
    assert_eq!(told_of(&mut world, page, Some(call), numbers).await, 5);
}
