use std::sync::Arc;

use portunus_core::testing::{Line, jsep};
use portunus_sip::agent::{AgentEvent, Command};
use portunus_sip::message::Method;
use serde_json::json;

use super::world::{PHONE, World, ask, offer, request, response};

#[tokio::test]
async fn requests_in_a_call_want_a_call() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    for request in [
        "info",
        "dtmf_info",
        "message",
        "transfer",
        "recording",
        "keyframe",
        "send_ringing",
        "update",
        "rtp_forward",
        "accept",
        "progress",
    ] {
        let (data, _) = ask(&mut page, json!({ "request": request }), None).await;
        assert_eq!(data["error_code"], 447, "{request}: {data}");
    }
    for request in ["hold", "unhold", "hangup", "decline"] {
        page.message(json!({ "request": request }), None).await;
    }
    page.expect_silence().await;
    for (request, event) in [("reset", "reset"), ("listforwarders", "forwarders")] {
        let (data, _) = ask(&mut page, json!({ "request": request }), None).await;
        assert_eq!(data["result"]["event"], event);
    }
    let (data, _) = ask(&mut page, json!({ "request": "dance" }), None).await;
    assert_eq!(
        (&data["error_code"], &data["error"]),
        (&json!(442), &json!("Unknown request (dance)"))
    );
}

#[tokio::test]
async fn info_and_digits_are_sent() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    world.talk(&mut page).await;
    let body =
        json!({ "request": "info", "type": "text/x", "content": "hi", "headers": { "X-A": "1" } });
    let (data, _) = ask(&mut page, body, None).await;
    assert_eq!(data["result"], json!({ "event": "infosent" }));
    let Command::InDialog {
        method,
        headers,
        body,
        ..
    } = world.command().await
    else {
        panic!()
    };
    let body = body.unwrap();
    assert_eq!((method, headers.len()), (Method::Info, 1));
    assert_eq!(
        (body.content_type.as_str(), &*body.content),
        ("text/x", &b"hi"[..])
    );
    for (duration, sent) in [
        (json!(null), 160),
        (json!(0), 160),
        (json!(5_001), 160),
        (json!(300), 300),
    ] {
        let mut body = json!({ "request": "dtmf_info", "digit": "5" });
        if duration.is_number() {
            body["duration"] = duration;
        }
        let (data, _) = ask(&mut page, body, None).await;
        assert_eq!(data["result"], json!({ "event": "dtmfsent" }));
        let Command::InDialog { body, .. } = world.command().await else {
            panic!()
        };
        let body = body.unwrap();
        assert_eq!(body.content_type, "application/dtmf-relay");
        assert_eq!(
            body.content,
            format!("Signal=5\r\nDuration={sent}").into_bytes()
        );
    }
    for body in [
        json!({ "digit": "55" }),
        json!({ "digit": "" }),
        json!({ "digit": 5 }),
        json!({ "digit": "5", "duration": -1 }),
    ] {
        let mut body = body;
        body["request"] = json!("dtmf_info");
        let (data, _) = ask(&mut page, body, None).await;
        assert_eq!(data["error_code"], 444, "{data}");
    }
}

#[tokio::test]
async fn messages_are_sent_and_their_delivery_is_told() {
    let mut world = World::new();
    let (mut page, account) = world.page("a", json!({})).await;
    let body =
        json!({ "request": "message", "uri": "sip:b@h", "content": "hello", "call_id": "mine" });
    let (data, _) = ask(&mut page, body, None).await;
    assert_eq!(
        data["result"],
        json!({ "event": "messagesent", "call_id": "mine" })
    );
    let Command::OutOfDialog {
        account: by,
        request: id,
        uri,
        call_id,
        body,
        ..
    } = world.command().await
    else {
        panic!()
    };
    assert_eq!(
        (by, uri.to_string(), call_id.as_deref()),
        (account, "sip:b@h".to_owned(), Some("mine"))
    );
    assert_eq!(body.unwrap().content_type, "text/plain");
    world
        .happen(AgentEvent::Response {
            request: id,
            code: 404,
            reason: "Not Found".to_owned(),
            response: None,
        })
        .await;
    assert_eq!(
        page.event().await,
        json!({ "sip": "event", "call_id": "mine", "result": {
            "event": "messagedelivery", "code": 404, "reason": "Not Found",
        } })
    );
    let (call, call_id) = world.talk(&mut page).await;
    let (data, _) = ask(
        &mut page,
        json!({ "request": "message", "content": "x" }),
        None,
    )
    .await;
    assert_eq!(data["result"]["call_id"], call_id.as_str());
    assert!(
        matches!(world.command().await, Command::InDialog { call: it, method: Method::Message, .. } if it == call)
    );
    let bad = json!({ "request": "message", "uri": "bob", "content": "x" });
    assert_eq!(ask(&mut page, bad, None).await.0["error_code"], 446);
}

#[tokio::test]
async fn what_peers_say_is_told() {
    let mut world = World::new();
    let (mut page, account) = world.page("a", json!({})).await;
    let told = |call, method: &str, kind: &str, body: &str| AgentEvent::Request {
        account: Some(account),
        call,
        flow: super::world::flow(),
        request: Arc::new(request(method, &format!("Content-Type: {kind}\r\n"), body)),
    };
    world
        .happen(told(None, "MESSAGE", "text/plain", "hi"))
        .await;
    assert_eq!(
        page.event().await,
        json!({ "sip": "event", "result": {
            "event": "message", "sender": "sip:bob@example.org", "content": "hi", "content_type": "text/plain",
        } })
    );
    let (call, call_id) = world.talk(&mut page).await;
    world
        .happen(told(Some(call), "INFO", "text/x", "yes"))
        .await;
    assert_eq!(
        page.event().await,
        json!({ "sip": "event", "call_id": call_id, "result": {
            "event": "info", "sender": "sip:bob@example.org", "type": "text/x", "content": "yes",
        } })
    );
}

/// A menu that is heard before the call is accepted.
#[tokio::test]
async fn a_call_with_early_media_is_held_once_it_is_accepted() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, call_id) = world.call(&mut page, json!({})).await;
    world
        .happen(AgentEvent::Provisional {
            call,
            dialog: super::world::dialog(&call_id),
            response: Arc::new(response("183 Session Progress", "", PHONE)),
        })
        .await;
    for event in ["progress", "proceeding"] {
        assert_eq!(page.event().await["result"]["event"], event);
    }
    page.message(json!({ "request": "hold" }), None).await;
    let (data, _) = ask(&mut page, json!({ "request": "update" }), Some(offer())).await;
    assert_eq!(data["error_code"], 447, "{data}");
    world.expect_no_command().await;
    world.accept(call, &call_id, PHONE).await;
    for event in ["accepted", "holding"] {
        assert_eq!(page.event().await["result"]["event"], event);
    }
    assert!(matches!(world.command().await, Command::Reinvite { .. }));
    world
        .happen(AgentEvent::ReinviteAccepted {
            call,
            response: Arc::new(response("200 OK", "", PHONE)),
        })
        .await;
    let (data, _) = ask(&mut page, json!({ "request": "unhold" }), None).await;
    assert_eq!(data["result"]["event"], "resuming", "{data}");
    assert!(matches!(world.command().await, Command::Reinvite { .. }));
}

#[tokio::test]
async fn a_call_is_held_and_goes_on() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, _) = world.talk(&mut page).await;
    let wrong = json!({ "request": "hold", "direction": "sendrecv" });
    assert_eq!(ask(&mut page, wrong, None).await.0["error_code"], 444);
    for (request, event, direction) in [
        ("hold", "holding", "a=sendonly"),
        ("unhold", "resuming", "a=sendrecv"),
    ] {
        let (data, _) = ask(&mut page, json!({ "request": request }), None).await;
        assert_eq!(data["result"], json!({ "event": event }));
        let Command::Reinvite { body, .. } = world.command().await else {
            panic!()
        };
        let sdp = String::from_utf8(body.unwrap().content).unwrap();
        assert!(sdp.contains(direction), "{sdp}");
        // While it is under way, the same again changes nothing, and nothing is told.
        page.message(json!({ "request": request }), None).await;
        page.expect_silence().await;
        world
            .happen(AgentEvent::ReinviteAccepted {
                call,
                response: Arc::new(response("200 OK", "", PHONE)),
            })
            .await;
        page.expect_silence().await;
        // Once more changes nothing.
        let (data, _) = ask(&mut page, json!({ "request": request }), None).await;
        assert_eq!(data["result"], json!({ "event": event }));
        world.expect_no_command().await;
    }
}

/// The direction that the peer is offered next.
async fn offered_direction(world: &mut World) -> &'static str {
    let Command::Reinvite { body, .. } = world.command().await else {
        panic!()
    };
    let sdp = String::from_utf8(body.unwrap().content).unwrap();
    let directions = ["a=sendrecv", "a=sendonly", "a=inactive"];
    directions.into_iter().find(|it| sdp.contains(it)).unwrap()
}

#[tokio::test]
async fn a_call_that_is_taken_up_again_before_the_peer_has_answered_goes_on() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, call_id) = world.talk(&mut page).await;
    let accepted = || AgentEvent::ReinviteAccepted {
        call,
        response: Arc::new(response("200 OK", "", PHONE)),
    };
    let rejected = |code| AgentEvent::ReinviteRejected {
        call,
        code,
        reason: String::new(),
        response: None,
    };
    let (holding, resuming) = (json!("holding"), json!("resuming"));
    ask(&mut page, json!({ "request": "hold" }), None).await;
    assert_eq!(offered_direction(&mut world).await, "a=sendonly");
    // The peer has not answered: of what is wanted then, the last counts.
    for request in ["unhold", "hold", "unhold"] {
        page.message(json!({ "request": request }), None).await;
    }
    page.expect_silence().await;
    world.happen(accepted()).await;
    let told = page.next().await;
    assert_eq!(told["plugindata"]["data"]["result"]["event"], resuming);
    assert_eq!(told["plugindata"]["data"]["call_id"], call_id);
    assert_eq!(told["transaction"], "m");
    assert_eq!(offered_direction(&mut world).await, "a=sendrecv");
    // The peer refuses: it is asked again when the page asks again.
    world.happen(rejected(500)).await;
    let (data, _) = ask(&mut page, json!({ "request": "unhold" }), None).await;
    assert_eq!(data["result"]["event"], resuming);
    assert_eq!(offered_direction(&mut world).await, "a=sendrecv");
    // What comes to nothing is not told: to hold, and not to.
    for request in ["hold", "unhold"] {
        page.message(json!({ "request": request }), None).await;
    }
    page.expect_silence().await;
    world.happen(accepted()).await;
    page.expect_silence().await;
    world.expect_no_command().await;
    // One that is refused is followed by what waits, too.
    let inactive = json!({ "request": "hold", "direction": "inactive" });
    let (data, _) = ask(&mut page, inactive, None).await;
    assert_eq!(data["result"]["event"], holding);
    assert_eq!(offered_direction(&mut world).await, "a=inactive");
    page.message(json!({ "request": "unhold" }), None).await;
    page.expect_silence().await;
    world.happen(rejected(488)).await;
    assert_eq!(page.event().await["result"]["event"], resuming);
    assert_eq!(offered_direction(&mut world).await, "a=sendrecv");
}

#[tokio::test]
async fn changes_of_the_peer_are_accepted_or_asked_for() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, _) = world.talk(&mut page).await;
    let moved = PHONE.replace("4000", "4444").replace("1 1 IN", "1 2 IN");
    world
        .happen(AgentEvent::Reinvite {
            call,
            request: Arc::new(request("INVITE", "", &moved)),
        })
        .await;
    let Command::AcceptReinvite { body, .. } = world.command().await else {
        panic!()
    };
    assert!(
        String::from_utf8(body.unwrap().content)
            .unwrap()
            .contains("opus")
    );
    page.expect_silence().await;
    let update = json!({ "request": "update" });
    assert_eq!(
        ask(&mut page, update.clone(), None).await.0["error"],
        "Missing SDP update"
    );
    // Its own change.
    let (data, _) = ask(
        &mut page,
        update.clone(),
        Some(jsep("offer", "abcd", &[Line::Audio])),
    )
    .await;
    assert_eq!(data["result"], json!({ "event": "updating" }), "{data}");
    assert!(matches!(world.command().await, Command::Reinvite { .. }));
    world
        .happen(AgentEvent::ReinviteAccepted {
            call,
            response: Arc::new(response("200 OK", "", PHONE)),
        })
        .await;
    let (data, answer) = page.event_with_jsep().await;
    assert_eq!(data["result"]["event"], "accepted");
    assert_eq!(answer.unwrap()["type"], "answer");
}

#[tokio::test]
async fn a_page_that_wants_it_is_asked_about_changes() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    let (call, call_id) = world
        .call(&mut page, json!({ "autoaccept_reinvites": false }))
        .await;
    world.accept(call, &call_id, PHONE).await;
    page.event().await;
    world
        .happen(AgentEvent::Reinvite {
            call,
            request: Arc::new(request("INVITE", "", PHONE)),
        })
        .await;
    let (data, jsep) = page.event_with_jsep().await;
    assert_eq!(data["result"]["event"], "updatingcall");
    assert_eq!(jsep.unwrap()["type"], "offer");
    let (data, _) = ask(
        &mut page,
        json!({ "request": "update" }),
        Some(super::world::answer()),
    )
    .await;
    assert_eq!(data["result"], json!({ "event": "updated" }), "{data}");
    assert!(matches!(
        world.command().await,
        Command::AcceptReinvite { body: Some(_), .. }
    ));
    // One that asks for an offer.
    world
        .happen(AgentEvent::Reinvite {
            call,
            request: Arc::new(request("INVITE", "", "")),
        })
        .await;
    let (data, jsep) = page.event_with_jsep().await;
    assert_eq!(
        (&data["result"]["event"], jsep),
        (&json!("updatingcall"), None)
    );
    let (data, _) = ask(&mut page, json!({ "request": "update" }), Some(offer())).await;
    assert_eq!(data["result"], json!({ "event": "updating" }), "{data}");
    assert!(matches!(
        world.command().await,
        Command::AcceptReinvite { .. }
    ));
    world
        .happen(AgentEvent::Acknowledged {
            call,
            request: Arc::new(request("ACK", "", PHONE)),
        })
        .await;
    let (data, jsep) = page.event_with_jsep().await;
    assert_eq!(data["result"]["event"], "accepted");
    assert_eq!(jsep.unwrap()["type"], "answer");
}

#[tokio::test]
async fn recordings_and_forwarders_are_checked() {
    let mut world = World::new();
    let (mut page, _) = world.page("a", json!({})).await;
    world.talk(&mut page).await;
    for (body, code) in [
        (json!({ "request": "recording" }), 443),
        (
            json!({ "request": "recording", "action": "dance", "audio": true }),
            444,
        ),
        (json!({ "request": "recording", "action": "stop" }), 451),
        (json!({ "request": "rtp_forward" }), 443),
        (json!({ "request": "rtp_forward", "streams": [] }), 443),
        (
            json!({ "request": "rtp_forward", "streams": [{ "type": "x", "host": "h", "port": 1 }] }),
            444,
        ),
        (
            json!({ "request": "stop_rtp_forward", "stream_id": 7 }),
            455,
        ),
    ] {
        let (data, _) = ask(&mut page, body.clone(), None).await;
        assert_eq!(data["error_code"], code, "{body}: {data}");
    }
    let body = json!({ "request": "rtp_forward", "streams": [
        { "type": "peer_audio", "host": "192.0.2.7", "port": 5_000, "pt": 100 },
    ] });
    let (data, is_reply) = ask(&mut page, body, None).await;
    assert!(is_reply);
    let forwarder = &data["result"]["forwarders"][0];
    assert_eq!(
        (&forwarder["type"], &forwarder["port"]),
        (&json!("peer_audio"), &json!(5_000))
    );
    let id = forwarder["stream_id"].clone();
    let (data, _) = ask(
        &mut page,
        json!({ "request": "stop_rtp_forward", "stream_id": id }),
        None,
    )
    .await;
    assert_eq!(
        data["result"],
        json!({ "event": "stop_rtp_forward", "stream_id": id })
    );
    let stop = json!({ "request": "recording", "action": "stop", "audio": true });
    assert_eq!(
        ask(&mut page, stop, None).await.0["result"],
        json!({ "event": "recordingupdated" })
    );
    let keyframe = json!({ "request": "keyframe", "user": true, "peer": true });
    assert_eq!(
        ask(&mut page, keyframe, None).await.0["result"],
        json!({ "event": "keyframesent" })
    );
}

#[tokio::test]
async fn keyframes_are_asked_for_by_info_where_the_peer_takes_no_rtcp_for_it() {
    let mut world = World::new();
    let (mut page, account) = world.page("a", json!({})).await;
    let video = "m=video 4002 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\n";
    for (feedback, by_info) in [("", true), ("a=rtcp-fb:96 nack pli\r\n", false)] {
        let body = json!({ "request": "call", "uri": "sip:bob@example.org" });
        let offer = jsep("offer", "abcd", &[Line::Audio, Line::Video]);
        let (calling, _) = ask(&mut page, body, Some(offer)).await;
        let call_id = calling["result"]["call_id"].as_str().unwrap().to_owned();
        let Command::Invite { call, .. } = world.command().await else {
            panic!()
        };
        let sdp = format!("{PHONE}{video}{feedback}");
        world.accept(call, &call_id, &sdp).await;
        page.event().await;
        let keyframe = json!({ "request": "keyframe", "peer": true });
        ask(&mut page, keyframe, None).await;
        if by_info {
            let Command::InDialog { method, body, .. } = world.command().await else {
                panic!()
            };
            let body = body.unwrap();
            assert_eq!(method, Method::Info);
            assert_eq!(body.content_type, "application/media_control+xml");
            let text = String::from_utf8(body.content).unwrap();
            assert!(text.contains("<picture_fast_update/>"), "{text}");
        }
        world.expect_no_command().await;
        // The peer asks the page, which is told as of any INFO.
        let headers = "Content-Type: application/media_control+xml\r\n";
        let text = "<media_control><vc_primitive><to_encoder><picture_fast_update/>";
        world
            .happen(AgentEvent::Request {
                account: Some(account),
                call: Some(call),
                flow: super::world::flow(),
                request: Arc::new(request("INFO", headers, text)),
            })
            .await;
        assert_eq!(page.event().await["result"]["event"], "info");
        page.message(json!({ "request": "hangup" }), None).await;
        page.event().await;
        world.command().await;
        let cause = portunus_sip::agent::Cause::Hangup;
        world.end(call, cause, 200, "to BYE").await;
        while page.next().await["janus"] != "hangup" {}
    }
}
