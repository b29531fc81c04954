//! Users call each other, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod support;

use portunus_core::media::{CloseReason, Event};
use portunus_core::testing::{Line, TestClient, TestServer, jsep};
use serde_json::{Value, json};
use support::{Call, LINES, PACKAGE, ask, error, result, server, state, user};

#[tokio::test]
async fn names_are_registered_once_and_freed_by_detach() {
    let server = server();
    let mut al = user(&server, "al").await;
    let mut other = server.attach(PACKAGE).await;
    let register = |name: &str| json!({ "request": "REGISTER", "username": name });
    assert_eq!(
        ask(&mut other, register("al"), None).await,
        error(476, "Username 'al' already taken")
    );
    assert_eq!(
        ask(&mut al, register("ally"), None).await,
        error(477, "Already registered (al)")
    );
    let list = json!({ "request": "list" });
    assert_eq!(
        ask(&mut other, list, None).await,
        result(json!({ "list": ["al"] }))
    );
    al.on_handle("detach", json!({})).await;
    assert_eq!(al.next().await["janus"], "detached");
    ask(&mut other, register("al"), None).await;
    assert_eq!(state(&server, &other).await["username"], "al");
}

#[tokio::test]
async fn every_error_has_its_code_and_text() {
    let server = server();
    let mut al = user(&server, "al").await;
    let _bo = user(&server, "bo").await;
    for (body, code, text) in [
        (json!({}), 475, "Missing mandatory element (request)"),
        (
            json!({ "request": 1 }),
            474,
            "Invalid element type (request should be a string)",
        ),
        (
            json!({ "request": "dance" }),
            472,
            "Unknown request (dance)",
        ),
        (
            json!({ "request": "register" }),
            475,
            "Missing mandatory element (username)",
        ),
        (
            json!({ "request": "register", "username": 1 }),
            474,
            "Invalid element type (username should be a string)",
        ),
        (
            json!({ "request": "call" }),
            475,
            "Missing mandatory element (username)",
        ),
        (
            json!({ "request": "call", "username": "al" }),
            479,
            "You can't call yourself... use the EchoTest for that",
        ),
        (
            json!({ "request": "call", "username": "cy" }),
            478,
            "Username 'cy' doesn't exist",
        ),
        (
            json!({ "request": "call", "username": "bo" }),
            482,
            "Missing SDP",
        ),
        (
            json!({ "request": "accept" }),
            481,
            "No incoming call to accept",
        ),
        (
            json!({ "request": "set", "audio": 1 }),
            474,
            "Invalid element type (audio should be a boolean)",
        ),
        (
            json!({ "request": "set", "bitrate": -1 }),
            474,
            "Invalid element type (bitrate should be a positive integer)",
        ),
        (
            json!({ "request": "set", "substream": "x" }),
            474,
            "Invalid value (substream should be 0, 1 or 2)",
        ),
        (
            json!({ "request": "set", "temporal": 3 }),
            474,
            "Invalid value (temporal should be 0, 1 or 2)",
        ),
        (
            json!({ "request": "set", "fallback": -1 }),
            474,
            "Invalid element type (fallback should be a positive integer)",
        ),
        (
            json!({ "request": "set", "restart": 1 }),
            474,
            "Invalid element type (restart should be a boolean)",
        ),
        (
            json!({ "request": "set", "record": true, "audio": false }),
            474,
            "Cannot record: recording is switched off (recording.enabled)",
        ),
    ] {
        assert_eq!(
            ask(&mut al, body.clone(), None).await,
            error(code, text),
            "{body}"
        );
    }
    let mut stranger = server.attach(PACKAGE).await;
    let call = json!({ "request": "call", "username": "al" });
    assert_eq!(
        ask(&mut stranger, call, None).await,
        error(473, "Register a username first")
    );
}

#[tokio::test]
async fn a_busy_user_is_not_disturbed() {
    let call = Call::new(&LINES).await;
    let mut cy = user(&call.server, "cy").await;
    let offer = jsep("offer", "cycy", &LINES);
    let reply = ask(
        &mut cy,
        json!({ "request": "call", "username": "bo" }),
        Some(offer),
    )
    .await;
    let busy = json!({ "event": "hangup", "username": "cy", "reason": "User busy" });
    assert_eq!(reply, result(busy));
    assert_eq!(cy.next().await["reason"], "Close PC");
    assert_eq!(call.server.peers().len(), 2);
    let mut bo = call.bo;
    bo.expect_silence().await;
}

#[tokio::test]
async fn a_refused_call_closes_the_callers_peer_connection() {
    let server = server();
    let mut al = user(&server, "al").await;
    for (name, code) in [("al", 479), ("cy", 478)] {
        let offer = jsep("offer", "alal", &LINES);
        let call = json!({ "request": "call", "username": name });
        assert_eq!(ask(&mut al, call, Some(offer)).await["error_code"], code);
        assert_eq!(al.next().await["reason"], "Close PC");
        assert!(server.peers().is_empty());
    }
}

#[tokio::test]
async fn calling_during_a_call_ends_it() {
    let mut call = Call::new(&LINES).await;
    let again = json!({ "request": "call", "username": "bo" });
    assert_eq!(
        ask(&mut call.al, again, None).await,
        error(480, "Already in a call")
    );
    assert_eq!(call.al.next().await["reason"], "Close PC");
    assert_eq!(
        call.bo.event().await,
        result(json!({ "event": "hangup", "username": "al", "reason": "Remote WebRTC hangup" }))
    );
    assert_eq!(call.bo.next().await["reason"], "Close PC");
    call.expect_idle().await;
}

#[tokio::test]
async fn either_side_may_hang_up() {
    for reason in [None, Some("bye")] {
        let mut call = Call::new(&LINES).await;
        let body = json!({ "request": "hangup", "reason": reason });
        let own = json!({ "event": "hangup", "username": "bo", "reason": "Explicit hangup" });
        assert_eq!(ask(&mut call.bo, body, None).await, result(own));
        assert_eq!(call.bo.next().await["janus"], "hangup");
        let reason = reason.unwrap_or("We did the hangup");
        let other = json!({ "event": "hangup", "username": "bo", "reason": reason });
        assert_eq!(call.al.event().await, result(other));
        assert_eq!(call.al.next().await["janus"], "hangup");
        call.expect_idle().await;
    }
}

#[tokio::test]
async fn a_call_can_be_rejected_and_another_made() {
    let server = server();
    let (mut al, mut bo) = (user(&server, "al").await, user(&server, "bo").await);
    for _ in 0..3 {
        let call = json!({ "request": "call", "username": "bo" });
        ask(&mut al, call, Some(jsep("offer", "alal", &LINES))).await;
        assert_eq!(bo.event().await["result"]["event"], "incomingcall");
        ask(&mut bo, json!({ "request": "hangup" }), None).await;
        assert_eq!(bo.next().await["janus"], "hangup");
        assert_eq!(al.event().await["result"]["event"], "hangup");
        assert_eq!(al.next().await["janus"], "hangup");
    }
    assert!(server.peers().is_empty());
}

#[tokio::test]
async fn a_hangup_without_a_call_is_fine() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let reply = ask(
        &mut client,
        json!({ "request": "hangup", "reason": 7 }),
        None,
    )
    .await;
    assert_eq!(
        reply,
        result(json!({ "event": "hangup", "reason": "Explicit hangup" }))
    );
    client.expect_silence().await;
}

#[tokio::test]
async fn losing_a_side_ends_the_call() {
    let mut call = Call::new(&LINES).await;
    let (al, _) = call.peers();
    let lost = CloseReason::IceFailed(Box::default());
    call.server.happen(al, Event::Closed(lost)).await;
    assert_eq!(call.al.next().await["reason"], "ICE failed");
    let hangup = json!({ "event": "hangup", "username": "al", "reason": "Remote WebRTC hangup" });
    assert_eq!(call.bo.event().await, result(hangup.clone()));
    assert_eq!(call.bo.next().await["reason"], "Close PC");
    call.expect_idle().await;

    let mut call = Call::new(&LINES).await;
    call.al.on_handle("detach", json!({})).await;
    assert_eq!(call.al.next().await["janus"], "detached");
    assert_eq!(call.bo.event().await, result(hangup));
    assert_eq!(call.bo.next().await["reason"], "Close PC");
    assert!(call.server.peers().is_empty());
}

#[tokio::test]
async fn an_offer_that_is_refused_leaves_nothing_behind() {
    let mut call = Call::new(&LINES).await;
    let offer = |ufrag: &str| Some(jsep("offer", ufrag, &LINES));
    // The other side can still offer anew.
    for (body, code) in [
        (json!({ "request": "set", "audio": 1 }), 474),
        (json!({ "request": "dance" }), 472),
        (json!({ "request": "accept" }), 481),
    ] {
        let refused = ask(&mut call.al, body, offer("alal")).await;
        assert_eq!(refused["error_code"], code);
        let listed = ask(&mut call.al, json!({ "request": "list" }), offer("alal")).await;
        assert!(listed["result"]["list"].is_array());
        let set = ask(&mut call.bo, json!({ "request": "set" }), offer("bobo")).await;
        assert_eq!(set, result(json!({ "event": "set" })));
        let (update, offered) = call.al.event_with_jsep().await;
        assert_eq!(update, result(json!({ "event": "update" })));
        assert_eq!(offered.unwrap()["type"], "offer");
        let answer = Some(jsep("answer", "alal", &LINES));
        ask(&mut call.al, json!({ "request": "set" }), answer).await;
        assert_eq!(call.bo.event().await, update);
    }
    let mut cy = user(&call.server, "cy").await;
    let before = call.server.peers().len();
    for body in [
        json!({ "request": "set" }),
        json!({ "request": "set", "audio": 1 }),
    ] {
        ask(&mut cy, body, offer("cycy")).await;
        assert_eq!(call.server.peers().len(), before);
    }
}

/// al calls bo, who has not answered yet.
async fn ringing() -> (TestServer, TestClient, TestClient) {
    let server = server();
    let (mut al, mut bo) = (user(&server, "al").await, user(&server, "bo").await);
    let call = json!({ "request": "call", "username": "bo" });
    let calling = ask(&mut al, call, Some(jsep("offer", "alal", &LINES))).await;
    assert_eq!(calling, result(json!({ "event": "calling" })));
    assert_eq!(bo.event().await["result"]["event"], "incomingcall");
    (server, al, bo)
}

/// Sends a description that cannot be read.
async fn send_rubbish(client: &mut TestClient, body: Value, kind: &str) {
    let message = json!({ "body": body, "jsep": { "type": kind, "sdp": "v=1" } });
    let refused = client.on_handle("message", message).await;
    assert_eq!(refused["error"]["code"], 465, "{refused}");
}

#[tokio::test]
async fn a_call_with_an_offer_that_cannot_be_read_rings_nowhere() {
    let server = server();
    let (mut al, mut bo) = (user(&server, "al").await, user(&server, "bo").await);
    let call = json!({ "request": "call", "username": "bo" });
    send_rubbish(&mut al, call.clone(), "offer").await;
    bo.expect_silence().await;
    assert!(server.peers().is_empty());
    let calling = ask(&mut al, call, Some(jsep("offer", "alal", &LINES))).await;
    assert_eq!(calling, result(json!({ "event": "calling" })));
}

#[tokio::test]
async fn descriptions_that_cannot_be_read_leave_a_call_ringing() {
    let (server, mut al, mut bo) = ringing().await;
    send_rubbish(&mut al, json!({ "request": "set" }), "offer").await;
    send_rubbish(&mut bo, json!({ "request": "set" }), "offer").await;
    send_rubbish(&mut bo, json!({ "request": "accept" }), "answer").await;
    al.expect_silence().await;
    bo.expect_silence().await;
    let accept = json!({ "request": "accept" });
    let accepted = ask(&mut bo, accept, Some(jsep("answer", "bobo", &LINES))).await;
    assert_eq!(accepted, result(json!({ "event": "accepted" })));
    let (accepted, answer) = al.event_with_jsep().await;
    assert_eq!(accepted["result"]["event"], "accepted");
    assert!(answer.is_some());
    assert_eq!(server.peers().len(), 2);
}

/// Both sides get the end of the call, and can make another.
async fn expect_ended(server: &TestServer, al: &mut TestClient, bo: &mut TestClient) {
    assert_eq!(bo.next().await["reason"], "Close PC");
    let hangup = json!({ "event": "hangup", "username": "bo", "reason": "Remote WebRTC hangup" });
    assert_eq!(al.event().await, result(hangup));
    assert_eq!(al.next().await["reason"], "Close PC");
    assert!(server.peers().is_empty());
    let call = json!({ "request": "call", "username": "al" });
    let calling = ask(bo, call, Some(jsep("offer", "bobo", &LINES))).await;
    assert_eq!(calling, result(json!({ "event": "calling" })));
    assert_eq!(al.event().await["result"]["event"], "incomingcall");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_ends_the_call_for_both() {
    let (server, mut al, mut bo) = ringing().await;
    // The offer has changed meanwhile.
    let offer = jsep("offer", "alal", &[Line::Video, Line::Audio, Line::Data]);
    ask(&mut al, json!({ "request": "list" }), Some(offer)).await;
    let accept = json!({ "request": "accept" });
    let refused = ask(&mut bo, accept, Some(jsep("answer", "bobo", &LINES))).await;
    assert_eq!(refused["error_code"], 483, "{refused}");
    expect_ended(&server, &mut al, &mut bo).await;
}

#[tokio::test]
async fn an_offer_of_who_is_called_ends_the_call_that_it_can_no_longer_accept() {
    for (body, code) in [
        (json!({ "request": "set" }), Some(483)),
        (json!({ "request": "accept" }), Some(483)),
        (json!({ "request": "dance" }), Some(472)),
        (json!({ "request": "list" }), None),
    ] {
        let (server, mut al, mut bo) = ringing().await;
        let answered = ask(&mut bo, body, Some(jsep("offer", "bobo", &LINES))).await;
        assert_eq!(answered["error_code"].as_u64(), code, "{answered}");
        expect_ended(&server, &mut al, &mut bo).await;
    }
}
