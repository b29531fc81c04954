//! Calls to a page.

use portunus_sip::message::Method;
use portunus_tests::shape::{Shape, is, object};
use portunus_tests::{Caller, Peer};
use serde_json::{Value, json};

use super::phone::Talk;
use super::{World, ask, error, hangup, in_call, next, offer, result, until};

/// Returns the event of an incoming call.
fn incoming(world: &World, call_id: &str) -> Shape {
    object([
        ("event", is("incomingcall")),
        ("username", is(world.phone.uri("phone"))),
        ("call_id", is(call_id)),
        ("displayname", is("\"Phone\"")),
        ("callee", is("sip:ann@portunus.test")),
    ])
}

fn told(shape: Shape, call_id: &str) -> Shape {
    object([
        ("sip", is("event")),
        ("result", shape),
        ("call_id", is(call_id)),
    ])
}

async fn answer(page: &mut Caller, incoming: &Value, body: Value) -> Value {
    let sdp = incoming["jsep"]["sdp"].as_str().expect("an offer");
    let answer = Peer::answering().await.answer(sdp);
    page.message(body, Some(("answer", &answer))).await;
    next(page).await
}

async fn ended(world: &mut World, page: &mut Caller, talk: &mut Talk) {
    world.phone.ask(talk, Method::Bye, &[], ("", "")).await;
    world.phone.response(200).await;
    until(page, "hangup").await;
}

#[tokio::test]
async fn a_call_is_told_with_all_that_is_known_of_it() {
    let mut world = World::new().await;
    let prefixes = json!({ "incoming_header_prefixes": ["X-"] });
    let (mut page, contact) = world.registered("ann", prefixes).await;
    world.told(&page).await;
    let plain = world.phone.sdp();
    let secure = plain.replace("RTP/AVP", "RTP/SAVP").replace(
        "\r\na=rtpmap",
        "\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj\r\na=rtpmap",
    );
    let optional = secure.replace("RTP/SAVP", "RTP/AVP");
    let focus = format!("<{}>;isfocus", world.phone.uri("phone"));
    let more = [
        ("Referred-By", "<sip:boss@h>"),
        ("Replaces", "other;to-tag=a;from-tag=b"),
        ("Contact", focus.as_str()),
        ("X-A", "1"),
    ];
    for (call_id, sdp, srtp) in [
        ("i1", &plain, None),
        ("i2", &optional, Some("sdes_optional")),
        ("i3", &secure, Some("sdes_mandatory")),
    ] {
        let (invite, mut talk) = world.phone.call(&contact, call_id, &more, sdp).await;
        world.phone.response(180).await;
        let event = page.until("/janus", "event").await;
        let shape = incoming(&world, call_id).and([
            ("referred_by", is("<sip:boss@h>")),
            ("replaces", is("other")),
            ("isfocus", is(true)),
            ("headers", is(json!({ "X-A": "1" }))),
        ]);
        let shape = match srtp {
            Some(srtp) => shape.and([("srtp", is(srtp))]),
            None => shape,
        };
        told(shape.clone(), call_id).check(&event["plugindata"]["data"]);
        object([("type", is("offer")), ("sdp", Shape::Begins("v=0"))]).check(&event["jsep"]);
        shape.check(&world.told(&page).await);
        // It is cancelled.
        world.phone.cancel(&invite, &talk).await;
        let terminated = loop {
            match world.phone.response_of().await {
                response if response.status.code() == 487 => break response,
                response => assert_eq!(response.status.code(), 200),
            }
        };
        world.phone.acknowledge(&mut talk, &terminated, "").await;
        let shape = object(hangup(487, "Request Terminated")).and([("headers", is(json!({})))]);
        let event = next(&mut page).await;
        assert_eq!(event["result"]["code"], 487, "{event}");
        told(shape, call_id).check(&event);
        assert_eq!(world.told(&page).await["event"], "hangup");
    }
}

#[tokio::test]
async fn answers_to_calls_are_told() {
    let mut world = World::new().await;
    let (mut page, contact) = world.registered("ann", json!({})).await;
    world.told(&page).await;
    let sdp = world.phone.sdp();
    // Early media, and then accepted.
    let (_, mut talk) = world.phone.call(&contact, "i1", &[], &sdp).await;
    let event = page.until("/janus", "event").await;
    told(incoming(&world, "i1"), "i1").check(&event["plugindata"]["data"]);
    world.told(&page).await;
    let rings = ask(&mut page, json!({ "request": "send_ringing" })).await;
    object([("sip", is("event")), ("call_id", is("i1"))]).check(&rings);
    error(448, Some("i1")).check(&ask(&mut page, json!({ "request": "accept" })).await);
    let progressed = answer(&mut page, &event, json!({ "request": "progress" })).await;
    in_call("i1", [("event", is("progressed"))]).check(&progressed);
    object([("event", is("progressed"))]).check(&world.told(&page).await);
    world.phone.response(183).await;
    let accepted = ask(&mut page, json!({ "request": "accept" })).await;
    in_call("i1", [("event", is("accepted"))]).check(&accepted);
    let peer = world.phone.uri("phone");
    object([("event", is("accepted")), ("username", is(peer.clone()))])
        .check(&world.told(&page).await);
    let ok = world.phone.response(200).await;
    world.phone.acknowledge(&mut talk, &ok, "").await;
    // The page is busy for another caller.
    let (_, mut other) = world.phone.call(&contact, "i2", &[], &sdp).await;
    let busy = world.phone.response(486).await;
    world.phone.acknowledge(&mut other, &busy, "").await;
    let missed = [
        ("event", is("missed_call")),
        ("caller", is(peer.clone())),
        ("displayname", is("\"Phone\"")),
        ("callee", is("sip:ann@portunus.test")),
    ];
    in_call("i2", missed.clone()).check(&next(&mut page).await);
    object(missed).check(&world.told(&page).await);
    ended(&mut world, &mut page, &mut talk).await;
    world.told(&page).await;

    // Declined.
    let (_, mut talk) = world.phone.call(&contact, "i3", &[], &sdp).await;
    let event = until(&mut page, "incomingcall").await;
    world.told(&page).await;
    let strict = json!({ "request": "accept", "srtp": "sdes_mandatory" });
    error(452, Some("i3")).check(&answer(&mut page, &event, strict).await);
    let declining = ask(&mut page, json!({ "request": "decline" })).await;
    let shape = [
        ("event", is("declining")),
        ("code", is(603)),
        ("call_id", is("i3")),
    ];
    in_call("i3", shape).check(&declining);
    object([("event", is("declined")), ("code", is(603))]).check(&world.told(&page).await);
    let refusal = world.phone.response(603).await;
    world.phone.acknowledge(&mut talk, &refusal, "").await;
    in_call("i3", hangup(603, "Decline")).check(&next(&mut page).await);

    // Without an offer.
    let (_, mut talk) = world.phone.call(&contact, "i4", &[], "").await;
    let event = page.until("/janus", "event").await;
    told(incoming(&world, "i4"), "i4").check(&event["plugindata"]["data"]);
    assert!(event.get("jsep").is_none(), "{event}");
    let accept = json!({ "request": "accept" });
    let accepting = offer(&mut page, &mut Peer::offering().await, accept).await;
    in_call("i4", [("event", is("accepting"))]).check(&accepting);
    let ok = world.phone.response(200).await;
    world.phone.acknowledge(&mut talk, &ok, &sdp).await;
    let event = page.until("/janus", "event").await;
    in_call("i4", [("event", is("accepted")), ("username", is(peer))])
        .check(&event["plugindata"]["data"]);
    object([("type", is("answer")), ("sdp", Shape::Begins("v=0"))]).check(&event["jsep"]);
    ended(&mut world, &mut page, &mut talk).await;

    // Nothing usable: nobody is called, but the end is reported.
    let none = sdp.replace("c=IN IP4 127.0.0.1\r\n", "");
    let (_, mut talk) = world.phone.call(&contact, "i5", &[], &none).await;
    let refusal = world.phone.response(488).await;
    world.phone.acknowledge(&mut talk, &refusal, "").await;
    in_call("i5", hangup(488, "Not Acceptable Here")).check(&next(&mut page).await);
}

#[tokio::test]
async fn pages_that_share_an_account_are_told_of_each_other() {
    let mut world = World::new().await;
    let lines = |name: &str| json!({ "lines": true, "name": name });
    let mut desk = world.page().await;
    let contact = world.register(&mut desk, "ann", lines("desk")).await;
    until(&mut desk, "lines").await;
    let mut sofa = world.page().await;
    let mut register = json!({ "request": "register", "username": world.phone.uri("ann"), "secret": "s", "force_udp": true });
    register
        .as_object_mut()
        .unwrap()
        .extend(lines("sofa").as_object().unwrap().clone());
    sofa.message(register, None).await;
    until(&mut sofa, "registered").await;
    let line = |name: &'static str, own: bool, status: &'static str| {
        object([
            ("id", Shape::Count),
            ("name", is(name)),
            ("self", is(own)),
            ("helper", is(false)),
            ("call_status", is(status)),
        ])
    };
    let list = |lines: [Shape; 2]| ("lines", Shape::List(lines.into()));
    let idle = result([
        ("event", is("lines")),
        list([line("desk", true, "idle"), line("sofa", false, "idle")]),
    ]);
    let listed = ask(&mut desk, json!({ "request": "lines" })).await;
    if !idle.fits(&listed) {
        // The event of the other page's arrival.
        idle.check(&next(&mut desk).await);
    }
    // It rings at both. One accepts the call, and the other one takes it over.
    let sdp = world.phone.sdp();
    let (_, mut talk) = world.phone.call(&contact, "i1", &[], &sdp).await;
    let event = desk
        .until("/plugindata/data/result/event", "incomingcall")
        .await;
    until(&mut sofa, "incomingcall").await;
    let answer_sdp = Peer::answering()
        .await
        .answer(event["jsep"]["sdp"].as_str().unwrap());
    desk.message(
        json!({ "request": "accept" }),
        Some(("answer", &answer_sdp)),
    )
    .await;
    let ok = world.phone.response(200).await;
    world.phone.acknowledge(&mut talk, &ok, "").await;
    until(&mut desk, "accepted").await;
    let elsewhere = until(&mut sofa, "hangup").await;
    in_call("i1", hangup(200, "Accepted elsewhere")).check(&elsewhere["plugindata"]["data"]);
    let shape = |own: bool, status: &'static str, call: bool| {
        let shape = line(if own { "sofa" } else { "desk" }, own, status);
        match call {
            true => shape.and([
                ("call_id", is("i1")),
                ("peer", is(world.phone.uri("phone"))),
                ("displayname", is("\"Phone\"")),
                ("outgoing", is(false)),
                ("since", Shape::Count),
            ]),
            false => shape,
        }
    };
    let busy = result([
        ("event", is("lines")),
        list([shape(false, "incall", true), shape(true, "idle", false)]),
    ]);
    let mut said = ask(&mut sofa, json!({ "request": "lines" })).await;
    while !busy.fits(&said) {
        said = next(&mut sofa).await;
    }
    sofa.message(json!({ "request": "move", "call_id": "i1" }), None)
        .await;
    let moving = until(&mut sofa, "moving").await;
    in_call("i1", [("event", is("moving"))]).check(&moving["plugindata"]["data"]);
    let moved = until(&mut sofa, "moved").await;
    let shape = [
        ("event", is("moved")),
        ("call_id", is("i1")),
        ("username", is(world.phone.uri("phone"))),
        ("displayname", is("\"Phone\"")),
    ];
    in_call("i1", shape).check(&moved["plugindata"]["data"]);
    answer(&mut sofa, &moved, json!({ "request": "accept" })).await;
    let gone = until(&mut desk, "hangup").await;
    in_call("i1", hangup(200, "Moved elsewhere")).check(&gone["plugindata"]["data"]);
    ended(&mut world, &mut sofa, &mut talk).await;
}
