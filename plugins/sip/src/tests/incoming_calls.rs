use std::sync::Arc;

use portunus_sip::agent::{AgentEvent, Cause, Command};
use serde_json::{Value, json};

use super::world::{PHONE, World, answer, ask, dialog, flow, offer, request};

#[tokio::test]
async fn an_incoming_call_is_accepted() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    let _call = world.ring(account, 7, PHONE).await;
    let event = page.next().await;
    assert_eq!(event["transaction"], Value::Null);
    assert_eq!(event["jsep"]["type"], "offer");
    assert_eq!(
        event["plugindata"]["data"],
        json!({ "sip": "event", "call_id": "in-7", "result": {
            "event": "incomingcall", "username": "sip:carol@example.org", "call_id": "in-7",
            "displayname": "\"Carol\"", "callee": "sip:alice@example.org",
        } })
    );
    assert!(matches!(
        world.command().await,
        Command::Progress { code: 180, .. }
    ));
    // `hangup` is for calls that stand.
    page.message(json!({ "request": "hangup" }), None).await;
    page.expect_silence().await;
    let (data, _) = ask(&mut page, json!({ "request": "accept" }), None).await;
    assert_eq!(data["error_code"], 448);
    let mandatory = json!({ "request": "accept", "srtp": "sdes_mandatory" });
    let (data, _) = ask(&mut page, mandatory, Some(answer())).await;
    assert_eq!(data["error_code"], 452, "{data}");
}

#[tokio::test]
async fn early_media_are_sent_before_the_call_is_accepted() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    let call = world.ring(account, 7, PHONE).await;
    page.event().await;
    assert!(matches!(
        world.command().await,
        Command::Progress { code: 180, .. }
    ));
    let progress = json!({ "request": "progress", "headers": { "X-A": "b" } });
    let (data, is_reply) = ask(&mut page, progress, Some(answer())).await;
    assert!(is_reply);
    assert_eq!(data["result"], json!({ "event": "progressed" }));
    let Command::Progress {
        code,
        body,
        headers,
        ..
    } = world.command().await
    else {
        panic!()
    };
    assert_eq!((code, headers.len()), (183, 1));
    let early = body.unwrap();
    let (data, _) = ask(&mut page, json!({ "request": "send_ringing" }), None).await;
    assert_eq!(data, json!({ "sip": "event", "call_id": "in-7" }));
    assert!(matches!(
        world.command().await,
        Command::Progress { code: 180, .. }
    ));
    let (data, _) = ask(&mut page, json!({ "request": "accept" }), None).await;
    assert_eq!(data["result"], json!({ "event": "accepted" }));
    let Command::Accept { call: it, body, .. } = world.command().await else {
        panic!()
    };
    assert_eq!((it, body.unwrap()), (call, early));
}

#[tokio::test]
async fn an_incoming_call_is_declined() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    for (number, code, sent) in [
        (1, json!(null), 603),
        (2, json!(480), 480),
        (3, json!(200), 486),
    ] {
        let call = world.ring(account, number, PHONE).await;
        page.event().await;
        world.command().await;
        let mut body = json!({ "request": "decline" });
        if code.is_number() {
            body["code"] = code;
        }
        let (data, _) = ask(&mut page, body, None).await;
        let id = format!("in-{number}");
        assert_eq!(
            data["result"],
            json!({ "event": "declining", "code": sent, "call_id": id })
        );
        assert!(matches!(world.command().await, Command::Reject { code, .. } if code == sent));
        world.end(call, Cause::Declined, sent, "x").await;
        let data = page.event().await;
        assert_eq!(
            (&data["result"]["event"], &data["result"]["code"]),
            (&json!("hangup"), &json!(sent))
        );
        assert_eq!(page.next().await["janus"], "hangup");
    }
    // There is nothing to decline.
    page.message(json!({ "request": "decline" }), None).await;
    page.expect_silence().await;
}

#[tokio::test]
async fn a_caller_gives_up() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    let call = world.ring(account, 7, PHONE).await;
    page.event().await;
    world.end(call, Cause::Cancelled, 487, "x").await;
    let result = page.event().await["result"].clone();
    let expected = json!({ "event": "hangup", "code": 487, "reason": "Request Terminated" });
    assert_eq!(result, expected);
}

/// Another telephone of the account, such as a page of another node, and the proxy's word for it.
#[tokio::test]
async fn a_call_is_answered_or_declined_by_another_telephone() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    for (number, reason, ended) in [
        (
            7,
            "SIP;cause=200;text=\"Call completed elsewhere\"",
            (200, "Accepted elsewhere"),
        ),
        (
            8,
            "Q.850;cause=26, sip;cause=603",
            (603, "Declined elsewhere"),
        ),
        (9, "SIP;cause=487", (487, "Request Terminated")),
    ] {
        let call = world.ring(account, number, PHONE).await;
        page.event().await;
        world.cancel(call, reason).await;
        let result = page.event().await["result"].clone();
        let (code, text) = ended;
        assert_eq!(
            (&result["code"], &result["reason"]),
            (&json!(code), &json!(text))
        );
        assert!(result["reason_header_cause"].is_string(), "{result}");
        assert_eq!(page.next().await["janus"], "hangup");
    }
}

/// The caller has said by Expires how long it waits.
#[tokio::test]
async fn a_call_that_nobody_answers_in_time_was_not_a_call() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    let call = world.ring(account, 7, PHONE).await;
    page.event().await;
    world
        .end(call, Cause::Hangup, 480, "Temporarily Unavailable")
        .await;
    assert_eq!(
        page.event().await["result"],
        json!({ "event": "hangup", "code": 480, "reason": "Temporarily Unavailable" })
    );
}

#[tokio::test]
async fn who_is_busy_misses_calls() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    world.talk(&mut page).await;
    world.ring(account, 9, PHONE).await;
    assert!(matches!(
        world.command().await,
        Command::Reject { code: 486, .. }
    ));
    let data = page.event().await;
    assert_eq!(
        data,
        json!({ "sip": "event", "call_id": "in-9", "result": {
            "event": "missed_call", "caller": "sip:carol@example.org", "displayname": "\"Carol\"",
            "callee": "sip:alice@example.org",
        } })
    );
}

#[tokio::test]
async fn a_call_that_cannot_be_taken_is_refused() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    world.ring(account, 1, "nonsense").await;
    assert!(matches!(
        world.command().await,
        Command::Reject { code: 488, .. }
    ));
    page.expect_silence().await;
    let nothing = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\nm=text 4000 RTP/AVP 98\r\n";
    world.ring(account, 2, nothing).await;
    assert!(matches!(
        world.command().await,
        Command::Reject { code: 488, .. }
    ));
    let result = page.event().await["result"].clone();
    let expected = json!({ "event": "hangup", "code": 488, "reason": "Not Acceptable Here" });
    assert_eq!(result, expected);
}

#[tokio::test]
async fn a_call_without_an_offer_is_offered_by_the_page() {
    let mut world = World::new();
    let (mut page, account) = world
        .page("alice", json!({ "automatic_ringing": false }))
        .await;
    let call = world.ring(account, 7, "").await;
    let (data, jsep) = page.event_with_jsep().await;
    assert_eq!(
        (&data["result"]["event"], jsep),
        (&json!("incomingcall"), None)
    );
    world.expect_no_command().await;
    let (data, _) = ask(&mut page, json!({ "request": "accept" }), Some(offer())).await;
    assert_eq!(data["result"], json!({ "event": "accepting" }));
    assert!(matches!(
        world.command().await,
        Command::Accept { body: Some(_), .. }
    ));
    world
        .happen(AgentEvent::Acknowledged {
            call,
            request: Arc::new(request("ACK", "", PHONE)),
        })
        .await;
    let event = page.next().await;
    assert_eq!(event["transaction"], "m");
    assert_eq!(event["jsep"]["type"], "answer");
    let result = &event["plugindata"]["data"]["result"];
    assert_eq!(
        result,
        &json!({ "event": "accepted", "username": "sip:carol@example.org" })
    );
}

#[tokio::test]
async fn what_the_caller_says_is_told() {
    let mut world = World::new();
    let prefixes = json!({ "incoming_header_prefixes": ["X-"] });
    let (mut page, account) = world.page("alice", prefixes).await;
    let headers = "X-Ticket: 9\r\nReferred-By: <sip:boss@h>\r\nReplaces: old;to-tag=1;from-tag=2\r\n\
                   Contact: <sip:c@192.0.2.9>;isfocus\r\n";
    let key = "inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";
    let sdp = format!("{PHONE}a=crypto:1 AES_CM_128_HMAC_SHA1_80 {key}\r\n");
    world
        .happen(AgentEvent::Incoming {
            call: portunus_sip::agent::CallId::new(3),
            account: Some(account),
            entrances: Vec::new(),
            flow: flow(),
            dialog: dialog("in-3"),
            replaces: None,
            request: Arc::new(request("INVITE", headers, &sdp)),
        })
        .await;
    let result = page.event().await["result"].clone();
    assert_eq!(result["headers"], json!({ "X-Ticket": "9" }));
    assert_eq!(result["referred_by"], "<sip:boss@h>");
    assert_eq!(result["replaces"], "old");
    assert_eq!(result["srtp"], "sdes_optional");
    assert_eq!(result["isfocus"], true);
}

/// As gateways send it that pass signalling of the telephone network on.
#[tokio::test]
async fn a_description_in_one_of_several_parts_is_found() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    let body = format!(
        "--x\r\nContent-Type: application/sdp\r\n\r\n{PHONE}\r\n--x\r\nContent-Type: application/isup\r\n\r\n1\r\n--x--\r\n"
    );
    let headers = "Content-Type: multipart/mixed; boundary=\"x\"\r\n";
    world
        .happen(AgentEvent::Incoming {
            call: portunus_sip::agent::CallId::new(3),
            account: Some(account),
            entrances: Vec::new(),
            flow: flow(),
            dialog: dialog("in-3"),
            replaces: None,
            request: Arc::new(request("INVITE", headers, &body)),
        })
        .await;
    let (told, offer) = page.event_with_jsep().await;
    assert_eq!(told["result"]["event"], "incomingcall", "{told}");
    assert_eq!(offer.unwrap()["type"], "offer");
}

#[tokio::test]
async fn a_caller_of_another_family_of_addresses_is_refused() {
    let mut world = World::with(crate::SipConfig {
        local_media_ip: Some("127.0.0.1".to_owned()),
        ..crate::SipConfig::default()
    });
    let (mut page, account) = world.page("alice", json!({})).await;
    let by_ipv6 = PHONE.replace("IN IP4 192.0.2.9", "IN IP6 ::1");
    world.ring(account, 7, &by_ipv6).await;
    let Command::Reject { code, .. } = world.command().await else {
        panic!("refused");
    };
    assert_eq!(code, 488);
    let hangup = page.event().await;
    assert_eq!(hangup["result"]["event"], "hangup", "{hangup}");
    assert_eq!(hangup["result"]["code"], 488, "{hangup}");
}

#[tokio::test]
async fn a_caller_is_answered_with_an_address_of_its_own_family() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    let by_ipv6 = PHONE.replace("IN IP4 192.0.2.9", "IN IP6 ::1");
    world.ring(account, 7, &by_ipv6).await;
    page.event().await;
    world.command().await;
    ask(&mut page, json!({ "request": "accept" }), Some(answer())).await;
    let Command::Accept { body, .. } = world.command().await else {
        panic!("accepted");
    };
    let sdp = String::from_utf8(body.unwrap().content).unwrap();
    assert!(
        sdp.contains("c=IN IP6 ::1\r\n") && !sdp.contains("IP4"),
        "{sdp}"
    );
}

#[tokio::test]
async fn a_server_that_is_drained_refuses_callers_until_the_drain_is_undone() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    world.server.gateway.drain(None);
    world.ring(account, 7, PHONE).await;
    let Command::Reject { code, headers, .. } = world.command().await else {
        panic!()
    };
    let later = ("Retry-After".to_owned(), "5".to_owned());
    assert_eq!((code, headers), (503, vec![later]));
    page.expect_silence().await;
    world.server.gateway.undrain().unwrap();
    world.ring(account, 8, PHONE).await;
    assert_eq!(page.event().await["result"]["event"], "incomingcall");
}
