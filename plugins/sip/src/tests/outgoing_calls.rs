use std::sync::Arc;

use portunus_core::testing::{Line, TestClient, jsep};
use portunus_sip::agent::{AgentEvent, CallId, Cause, Command};
use portunus_sip::dialog::DialogId;
use serde_json::{Value, json};

use super::world::{PACKAGE, PHONE, World, ask, dialog, offer, response};

async fn provisional(world: &World, call: CallId, call_id: &str, line: &str, sdp: &str) {
    world
        .happen(AgentEvent::Provisional {
            call,
            dialog: dialog(call_id),
            response: Arc::new(response(line, "", sdp)),
        })
        .await;
}

#[tokio::test]
async fn a_call_is_told_step_by_step() {
    let mut world = World::new();
    let (mut page, account) = world.page("a", json!({})).await;
    let body = json!({ "request": "call", "uri": "sip:b@h", "headers": { "X-Failure": "fun" } });
    let (calling, is_reply) = ask(&mut page, body, Some(offer())).await;
    assert!(is_reply);
    let call_id = calling["call_id"].as_str().unwrap().to_owned();
    assert_eq!(call_id.len(), 23);
    assert_eq!(
        calling,
        json!({ "sip": "event", "call_id": call_id, "result": { "event": "calling", "call_id": call_id } })
    );
    let Command::Invite {
        account: by,
        call,
        invite,
    } = world.command().await
    else {
        panic!()
    };
    assert_eq!(by, account);
    assert_eq!(invite.uri.to_string(), "sip:b@h");
    assert_eq!(invite.headers, [("X-Failure".to_owned(), "fun".to_owned())]);
    let sdp = String::from_utf8(invite.offer.unwrap().content).unwrap();
    assert!(
        sdp.contains("RTP/AVP") && sdp.contains("opus/48000/2"),
        "{sdp}"
    );
    assert!(
        !sdp.contains("ice-ufrag") && !sdp.contains("fingerprint"),
        "{sdp}"
    );
    provisional(&world, call, &call_id, "180 Ringing", "").await;
    for result in [
        json!({ "event": "ringing" }),
        json!({ "event": "proceeding", "code": 180 }),
    ] {
        let event = page.next().await;
        assert_eq!(event["transaction"], "m");
        let data = json!({ "sip": "event", "result": result, "call_id": call_id });
        assert_eq!(event["plugindata"]["data"], data);
    }
    provisional(&world, call, &call_id, "183 Session Progress", PHONE).await;
    let (progress, answer) = page.event_with_jsep().await;
    assert_eq!(
        progress["result"],
        json!({ "event": "progress", "username": "sip:b@h" })
    );
    assert_eq!(answer.unwrap()["type"], "answer");
    assert_eq!(page.event().await["result"]["code"], 183);
    world.accept(call, &call_id, PHONE).await;
    let (accepted, answer) = page.event_with_jsep().await;
    assert_eq!(
        accepted["result"],
        json!({ "event": "accepted", "username": "sip:b@h" })
    );
    assert_eq!(answer, None);
    let (hangingup, _) = ask(&mut page, json!({ "request": "hangup" }), None).await;
    assert_eq!(
        hangingup,
        json!({ "sip": "event", "result": { "event": "hangingup" }, "call_id": call_id })
    );
    assert!(matches!(world.command().await, Command::Hangup { call: it, .. } if it == call));
    world.end(call, Cause::Hangup, 200, "OK").await;
    let event = page.next().await;
    assert_eq!(event["transaction"], "m");
    assert_eq!(
        event["plugindata"]["data"],
        json!({ "sip": "event", "call_id": call_id,
                "result": { "event": "hangup", "code": 200, "reason": "to BYE" } })
    );
    assert_eq!(page.next().await["janus"], "hangup");
}

/// The response of a fork, except for the words of the status line.
async fn of_fork(world: &World, call: CallId, (call_id, tag): (&str, &str), line: &str, sdp: &str) {
    let dialog = DialogId {
        remote_tag: tag.to_owned(),
        ..dialog(call_id)
    };
    let response = Arc::new(response(line, "", sdp));
    world
        .happen(match line.starts_with('2') {
            true => AgentEvent::Accepted {
                call,
                dialog,
                response,
            },
            false => AgentEvent::Provisional {
                call,
                dialog,
                response,
            },
        })
        .await;
}

#[tokio::test]
async fn of_telephones_that_are_heard_before_one_accepts_that_one_is_heard() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, call_id) = world.call(&mut page, json!({})).await;
    let at = |port: &str| PHONE.replace("4000", port);
    let far = |world: &World| {
        let legs = world.server.requested().legs;
        let mut ports = legs.iter().filter_map(|leg| leg.remote.as_ref()?.rtp);
        ports.next().map(|address| address.port())
    };
    let says = async |page: &mut TestClient, line, tag, sdp: &str, events: &[&str], port| {
        of_fork(&world, call, (&call_id, tag), line, sdp).await;
        for expected in events {
            assert_eq!(page.event().await["result"]["event"], *expected);
        }
        assert_eq!(far(&world), Some(port), "{line} {tag}");
    };
    let page = &mut page;
    let (progress, heard) = (["progress", "proceeding"], ["proceeding"]);
    says(page, "183 P", "a", &at("4000"), &progress, 4000).await;
    // Another one rings without a sound: nothing changes.
    says(page, "183 P", "b", "", &["ringing", "proceeding"], 4000).await;
    says(page, "183 P", "c", &at("4002"), &heard, 4002).await;
    // As a fork may that has described its media reliably (RFC 3262).
    says(page, "200 OK", "a", "", &["accepted"], 4000).await;
}

#[tokio::test]
async fn who_accepts_with_a_description_of_its_own_is_heard() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, call_id) = world.call(&mut page, json!({})).await;
    of_fork(&world, call, (&call_id, "a"), "183 P", PHONE).await;
    for expected in ["progress", "proceeding"] {
        assert_eq!(page.event().await["result"]["event"], expected);
    }
    let other = PHONE.replace("4000", "4002");
    of_fork(&world, call, (&call_id, "b"), "200 OK", &other).await;
    assert_eq!(page.event().await["result"]["event"], "accepted");
    let legs = world.server.requested().legs;
    let far = legs.iter().find_map(|leg| leg.remote.as_ref()?.rtp);
    assert_eq!(far.map(|address| address.port()), Some(4002));
}

#[tokio::test]
async fn ends_have_their_codes() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    for (cause, code, reason, told) in [
        (Cause::Rejected, 486, "Busy Here", (486, "Busy Here")),
        (
            Cause::Timeout,
            408,
            "Request Timeout",
            (408, "Request Timeout"),
        ),
        (
            Cause::Rejected,
            904,
            "Operation has no matching challenge",
            (904, "Operation has no matching challenge"),
        ),
        (Cause::Bye, 200, "OK", (200, "Session Terminated")),
        (
            Cause::Unreachable,
            503,
            "Service Unavailable",
            (503, "Service Unavailable"),
        ),
    ] {
        let (call, _) = world.call(&mut page, json!({})).await;
        world.end(call, cause, code, reason).await;
        let data = page.event().await;
        let (code, reason) = told;
        assert_eq!(
            data["result"],
            json!({ "event": "hangup", "code": code, "reason": reason })
        );
    }
}

#[tokio::test]
async fn a_call_is_checked_in_order() {
    let mut world = World::new();
    let mut page = world.server.attach(PACKAGE).await;
    let call = |more: Value| {
        let mut body = json!({ "request": "call" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let (data, _) = ask(&mut page, call(json!({})), None).await;
    assert_eq!(data["error_code"], 447);
    let (mut page, _) = world.page("a", json!({})).await;
    for (more, jsep, code) in [
        (json!({}), None, 443),
        (json!({ "uri": 7 }), None, 444),
        (
            json!({ "uri": "x", "secret": "a", "ha1_secret": "b" }),
            None,
            444,
        ),
        (json!({ "uri": "x", "srtp": "maybe" }), None, 444),
        (json!({ "uri": "x" }), None, 446),
        (json!({ "uri": "sips:b@h" }), None, 446),
        (json!({ "uri": "sip:b@h" }), None, 448),
        (json!({ "uri": "sip:b@h" }), Some(super::world::offer()), 0),
    ] {
        if code == 0 {
            continue;
        }
        let (data, is_reply) = ask(&mut page, call(more.clone()), jsep).await;
        assert!(is_reply);
        assert_eq!(data["error_code"], code, "{more}: {data}");
    }
    let data = jsep("offer", "abcd", &[Line::Audio, Line::Data]);
    let (data, _) = ask(&mut page, call(json!({ "uri": "sip:b@h" })), Some(data)).await;
    assert_eq!(
        data["error"],
        "The SIP plugin does not support DataChannels"
    );
    world.expect_no_command().await;
    let _ = world.call(&mut page, json!({})).await;
    let (data, _) = ask(&mut page, call(json!({})), None).await;
    assert_eq!(
        data["error"],
        "Wrong state (already in a call? status=inviting)"
    );
    assert!(data["call_id"].is_string());
}

#[tokio::test]
async fn a_call_whose_connection_is_lost_ends() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, _) = world.talk(&mut page).await;
    let reply = page.on_handle("hangup", json!({})).await;
    assert_eq!(reply["janus"], "success");
    let mut hangingup = page.next().await;
    if hangingup["janus"] == "hangup" {
        hangingup = page.next().await;
    }
    assert_eq!(hangingup["transaction"], Value::Null);
    assert_eq!(
        hangingup["plugindata"]["data"]["result"]["event"],
        "hangingup"
    );
    assert!(matches!(world.command().await, Command::Hangup { call: it, .. } if it == call));
}

#[tokio::test]
async fn a_peer_that_answers_with_another_codec_is_hung_up() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, call_id) = world.call(&mut page, json!({})).await;
    let other = PHONE
        .replace("111", "0")
        .replace("opus/48000/2", "PCMU/8000");
    world.accept(call, &call_id, &other).await;
    assert!(matches!(world.command().await, Command::Hangup { call: it, .. } if it == call));
    page.expect_silence().await;
}

#[tokio::test]
async fn srtp_that_is_a_must_ends_a_call_without() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, call_id) = world
        .call(&mut page, json!({ "srtp": "sdes_mandatory" }))
        .await;
    world.accept(call, &call_id, PHONE).await;
    assert!(matches!(world.command().await, Command::Hangup { call: it, .. } if it == call));
    world.end(call, Cause::Hangup, 200, "OK").await;
    let result = page.event().await["result"].clone();
    assert_eq!(
        result,
        json!({
            "event": "hangup", "code": 200, "reason": "to BYE",
            "text": "SDES-SRTP required, but there is no key for audio",
        })
    );
}
