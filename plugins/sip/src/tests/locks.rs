//! Accounts do not wait for each other, and pages that move between them find their calls.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portunus_core::testing::TestClient;
use portunus_sip::agent::{AccountId, Cause, Command};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio::time::timeout;

use super::world::{PACKAGE, PHONE, World, ask, offer};
use crate::config::SipConfig;

/// Makes a page register an identity, whatever it had before.
async fn register(page: &mut TestClient, name: &str) {
    let body = json!({
        "request": "register", "username": format!("sip:{name}@example.org"), "secret": "s",
        "refresh": true,
    });
    page.message(body, None).await;
}

/// Returns the data of the next event with this name.
async fn event(page: &mut TestClient, name: &str) -> Value {
    loop {
        let message = page.next().await;
        let data = &message["plugindata"]["data"];
        if data["result"]["event"] == name {
            if name == "hangup" {
                // Its PeerConnection is closed as well.
                assert_eq!(page.next().await["janus"], "hangup");
            }
            return data.clone();
        }
    }
}

/// Takes the commands to the SIP stack until there is an account to set.
async fn set_account(world: &mut World) -> AccountId {
    loop {
        if let Command::SetAccount { account, .. } = world.command().await {
            return account;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stuck_request_of_one_account_holds_up_no_other() {
    let (entered, mut is_stuck) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let mut world = World::watched(SipConfig::default(), move |command| {
        if let Command::Invite { invite, .. } = command
            && invite.call_id.as_deref() == Some("stuck")
        {
            entered.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
        }
    });
    let (mut alice, _) = world.page("alice", json!({})).await;
    let (mut bob, account) = world.page("bob", json!({})).await;
    let stuck = tokio::spawn(async move {
        let body = json!({ "request": "call", "uri": "sip:c@h", "call_id": "stuck" });
        ask(&mut alice, body, Some(offer())).await
    });
    is_stuck.recv().await.unwrap();
    // Her request is under way, and her lock is held. He calls, is called, and registers again.
    let his = async {
        let (call, _) = world.talk(&mut bob).await;
        world.end(call, Cause::Bye, 200, "OK").await;
        event(&mut bob, "hangup").await;
        let call = world.ring(account, 1_007, PHONE).await;
        event(&mut bob, "incomingcall").await;
        world.end(call, Cause::Cancelled, 487, "").await;
        event(&mut bob, "hangup").await;
        register(&mut bob, "carol").await;
        event(&mut bob, "registering").await;
        world.server.attach(PACKAGE).await;
    };
    timeout(Duration::from_secs(30), his).await.unwrap();
    assert!(!stuck.is_finished());
    release.send(()).unwrap();
    let (calling, _) = stuck.await.unwrap();
    assert_eq!(calling["result"]["event"], "calling");
}

#[tokio::test]
async fn a_call_goes_along_with_a_page_that_moves_to_another_account() {
    let mut world = World::new();
    let (mut other, bobs) = world.page("bob", json!({})).await;
    let (mut page, alices) = world.page("alice", json!({})).await;
    let (call, call_id) = world.talk(&mut page).await;
    register(&mut page, "bob").await;
    event(&mut page, "registered").await;
    let left = world.command().await;
    assert!(matches!(left, Command::RemoveAccount { account } if account == alices));
    // The page is one of bob's, and his other page is the free one.
    world.ring(bobs, 1_007, PHONE).await;
    event(&mut other, "incomingcall").await;
    world.command().await;
    let (hold, _) = ask(&mut page, json!({ "request": "hold" }), None).await;
    assert_eq!(hold["result"]["event"], "holding", "{hold}");
    world.end(call, Cause::Bye, 200, "OK").await;
    assert_eq!(event(&mut page, "hangup").await["call_id"], call_id);
    world.ring(bobs, 1_008, PHONE).await;
    assert_eq!(event(&mut page, "incomingcall").await["call_id"], "in-1008");
}

#[tokio::test]
async fn a_page_that_moves_rings_no_more() {
    let mut world = World::new();
    let (mut one, account) = world.page("alice", json!({})).await;
    let mut other = world.server.attach(PACKAGE).await;
    register(&mut other, "alice").await;
    event(&mut other, "registered").await;
    world.ring(account, 1_007, PHONE).await;
    event(&mut one, "incomingcall").await;
    event(&mut other, "incomingcall").await;
    register(&mut other, "bob").await;
    assert_eq!(event(&mut other, "hangup").await["result"]["code"], 480);
    event(&mut other, "registering").await;
    let answer = super::world::answer();
    let (accepted, _) = ask(&mut one, json!({ "request": "accept" }), Some(answer)).await;
    assert_eq!(accepted["result"]["event"], "accepted", "{accepted}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pages_that_register_one_identity_at_once_share_its_account() {
    const PAGES: usize = 8;
    let mut world = World::new();
    for round in 0..20 {
        let start = Arc::new(Barrier::new(PAGES));
        let mut pages = Vec::new();
        for _ in 0..PAGES {
            let (mut page, start) = (world.server.attach(PACKAGE).await, start.clone());
            pages.push(tokio::spawn(async move {
                start.wait().await;
                register(&mut page, &format!("alice-{round}")).await;
                event(&mut page, "registering").await;
                page
            }));
        }
        let mut registered = Vec::new();
        for page in pages {
            registered.push(page.await.unwrap());
        }
        let account = set_account(&mut world).await;
        world.register(account).await;
        for page in &mut registered {
            event(page, "registered").await;
        }
        world.expect_no_command().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pages_that_cross_between_accounts_leave_nothing_behind() {
    let mut world = World::new();
    let mut stays = Vec::new();
    for name in ["alice", "bob"] {
        stays.push(world.page(name, json!({})).await);
    }
    let mut pages = Vec::new();
    for names in [["alice", "bob"], ["bob", "alice"]] {
        let mut page = world.server.attach(PACKAGE).await;
        pages.push(tokio::spawn(async move {
            for round in 0..200 {
                register(&mut page, names[round % 2]).await;
                event(&mut page, "registered").await;
            }
            page
        }));
    }
    let mut all = Vec::new();
    for page in pages {
        let page = timeout(Duration::from_secs(60), page).await;
        all.push(page.expect("no deadlock").unwrap());
    }
    world.expect_no_command().await;
    // Two pages at each account.
    for (account, number) in [(stays[0].1, 1_007), (stays[1].1, 1_008)] {
        world.ring(account, number, PHONE).await;
    }
    let accounts = stays.iter().map(|(_, account)| *account);
    let accounts: Vec<AccountId> = accounts.collect();
    all.extend(stays.into_iter().map(|(page, _)| page));
    for page in &mut all {
        event(page, "incomingcall").await;
    }
    assert_eq!(world.shared.phones().len().0, 2);
    for mut page in all {
        page.on_handle("detach", json!({})).await;
    }
    for account in accounts {
        world.unregister(account).await;
    }
    for number in [1_007, 1_008] {
        let call = portunus_sip::agent::CallId::new(number);
        world.end(call, Cause::Declined, 480, "").await;
    }
    // An event that is answered shows that the ones before were handled.
    world.ring(AccountId::new(999_999), 1_009, PHONE).await;
    loop {
        let command = world.command().await;
        if matches!(command, Command::Reject { code: 404, .. }) {
            break;
        }
    }
    assert_eq!(world.shared.phones().len(), (0, 0));
}

#[tokio::test]
async fn a_page_that_is_gone_leaves_no_entries() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    let (call, _) = world.talk(&mut page).await;
    for body in [
        json!({ "request": "message", "content": "hello" }),
        json!({ "request": "subscribe", "event": "presence" }),
        json!({ "request": "publish", "event": "presence", "content": "x", "content_type": "text/plain" }),
    ] {
        ask(&mut page, body, None).await;
        world.command().await;
    }
    let (_, entries) = world.shared.phones().len();
    page.on_handle("detach", json!({})).await;
    // The account and the call wait for their ends.
    assert!(world.shared.phones().len().1 < entries);
    world.end(call, Cause::Hangup, 200, "").await;
    world.unregister(account).await;
    world.ring(AccountId::new(999_999), 1_009, PHONE).await;
    while !matches!(world.command().await, Command::Reject { code: 404, .. }) {}
    assert_eq!(world.shared.phones().len(), (0, 0));
}
