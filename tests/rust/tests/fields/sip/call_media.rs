//! Requests, media and changes in calls.

use portunus_sip::message::Method;
use portunus_tests::Peer;
use portunus_tests::shape::{Shape, is, list, object};
use serde_json::json;

use super::{World, ask, error, hangup, in_call, next, offer, result, until};

#[tokio::test]
async fn requests_in_a_call_are_answered() {
    let mut world = World::new().await;
    let call = json!({ "autoaccept_reinvites": false });
    let (mut page, call_id, mut talk, offered) = world.talking(call).await;
    let id = call_id.as_str();
    let simple = |event: &'static str| in_call(id, [("event", is(event))]);

    // INFO and MESSAGE both ways.
    for (request, event, method) in [
        (
            json!({ "request": "info", "type": "text/x", "content": "y" }),
            "infosent",
            Method::Info,
        ),
        (
            json!({ "request": "dtmf_info", "digit": "5" }),
            "dtmfsent",
            Method::Info,
        ),
    ] {
        simple(event).check(&ask(&mut page, request).await);
        let request = world.phone.request(method).await;
        world.phone.answer(&request, 200, &[], "").await;
    }
    let sent = ask(&mut page, json!({ "request": "message", "content": "hi" })).await;
    in_call(id, [("event", is("messagesent")), ("call_id", is(id))]).check(&sent);
    let request = world.phone.request(Method::Message).await;
    world.phone.answer(&request, 200, &[], "").await;
    let delivered = [
        ("event", is("messagedelivery")),
        ("code", is(200)),
        ("reason", is("OK")),
    ];
    in_call(id, delivered).check(&next(&mut page).await);
    for (method, kind, name, type_name) in [
        (Method::Info, "text/x", "info", "type"),
        (Method::Message, "text/plain", "message", "content_type"),
    ] {
        world.phone.ask(&mut talk, method, &[], (kind, "yes")).await;
        world.phone.response(200).await;
        let shape = [
            ("event", is(name)),
            ("sender", is(world.phone.uri("bob"))),
            ("content", is("yes")),
            (type_name, is(kind)),
        ];
        in_call(id, shape).check(&next(&mut page).await);
    }
    // A telephone key within the sound.
    world.phone.press_five(&offered).await;
    let shape = [
        ("event", is("dtmf")),
        ("sender", is(world.phone.uri("bob"))),
        ("signal", is("5")),
        ("duration", is(800)),
    ];
    in_call(id, shape).check(&next(&mut page).await);

    // Hold and resume.
    let sdp = world.phone.sdp();
    for (request, event) in [("hold", "holding"), ("unhold", "resuming")] {
        simple(event).check(&ask(&mut page, json!({ "request": request })).await);
        let invite = world.phone.request(Method::Invite).await;
        world.phone.answer(&invite, 200, &[], &sdp).await;
        world.phone.request(Method::Ack).await;
    }
    // The peer changes the call.
    let again = sdp.replace("o=- 1 1", "o=- 1 2");
    world
        .phone
        .ask(&mut talk, Method::Invite, &[], ("application/sdp", &again))
        .await;
    let event = page.until("/janus", "event").await;
    let shape = [
        ("event", is("updatingcall")),
        ("username", is(world.phone.uri("bob"))),
        ("call_id", is(id)),
        ("displayname", is("")),
        ("callee", is(world.phone.uri("ann"))),
    ];
    in_call(id, shape).check(&event["plugindata"]["data"]);
    object([("type", is("offer")), ("sdp", Shape::Begins("v=0"))]).check(&event["jsep"]);
    error(448, Some(id)).check(&ask(&mut page, json!({ "request": "update" })).await);

    // Transfers, both ways.
    error(454, Some(id)).check(
        &ask(
            &mut page,
            json!({ "request": "transfer", "uri": "sip:c@h", "replace": "x" }),
        )
        .await,
    );
    error(446, Some(id)).check(&ask(&mut page, json!({ "request": "transfer", "uri": "c" })).await);
    simple("transferring").check(
        &ask(
            &mut page,
            json!({ "request": "transfer", "uri": "sip:c@h" }),
        )
        .await,
    );
    let refer = world.phone.request(Method::Refer).await;
    assert_eq!(refer.headers.get("Refer-To"), Some("<sip:c@h>"));
    world.phone.answer(&refer, 202, &[], "").await;
    let news = [
        ("Event", "refer"),
        ("Subscription-State", "terminated;reason=noresource"),
    ];
    let fragment = ("message/sipfrag;version=2.0", "SIP/2.0 200 OK\r\n");
    world
        .phone
        .ask(&mut talk, Method::Notify, &news, fragment)
        .await;
    world.phone.response(200).await;
    let shape = [
        ("event", is("notify")),
        ("notify", is("refer")),
        ("substate", is("terminated")),
        ("content-type", is("message/sipfrag")),
        ("content", is("SIP/2.0 200 OK")),
    ];
    in_call(id, shape).check(&next(&mut page).await);
    let refer = [
        (
            "Refer-To",
            "<sip:cleo@h?replaces=other%3Bto-tag%3Da%3Bfrom-tag%3Db>",
        ),
        ("Referred-By", "<sip:boss@h>"),
    ];
    world
        .phone
        .ask(&mut talk, Method::Refer, &refer, ("", ""))
        .await;
    world.phone.response(202).await;
    let shape = result([
        ("event", is("transfer")),
        ("refer_id", Shape::Count),
        ("refer_to", is("sip:cleo@h")),
        ("referred_by", is("<sip:boss@h>")),
        ("replaces", is("other")),
    ]);
    shape.check(&until(&mut page, "transfer").await["plugindata"]["data"]);
    page.message(json!({ "request": "hangup" }), None).await;
    until(&mut page, "hangingup").await;
}

#[tokio::test]
async fn recordings_forwarders_and_wrong_requests_are_answered() {
    let mut world = World::new().await;
    let (mut page, call_id, _talk, _) = world.talking(json!({})).await;
    let id = call_id.as_str();
    let simple = |event: &'static str| in_call(id, [("event", is(event))]);
    for (request, code) in [
        (
            json!({ "request": "register", "username": "sip:a@h", "secret": "s" }),
            445,
        ),
        (json!({ "request": "info", "type": "text/x" }), 443),
        (json!({ "request": "info", "type": 1, "content": "x" }), 444),
        (json!({ "request": "dtmf_info", "digit": "12" }), 444),
        (json!({ "request": "message" }), 443),
        (json!({ "request": "hold", "direction": "sendrecv" }), 444),
        (
            json!({ "request": "recording", "action": "x", "audio": true }),
            444,
        ),
        (json!({ "request": "recording", "action": "start" }), 451),
        (json!({ "request": "rtp_forward", "streams": [] }), 443),
        (
            json!({ "request": "rtp_forward", "streams": [{ "type": "x", "host": "127.0.0.1", "port": 9 }] }),
            444,
        ),
        (
            json!({ "request": "stop_rtp_forward", "stream_id": 3 }),
            455,
        ),
        (json!({ "request": "progress" }), 447),
        (json!({ "request": "send_ringing" }), 447),
        (json!({ "request": "update" }), 448),
        (json!({ "request": "call", "uri": "sip:b@h" }), 447),
        (json!({ "request": "transfer" }), 443),
    ] {
        let told = ask(&mut page, request.clone()).await;
        assert!(error(code, Some(id)).fits(&told), "{request}: {told}");
    }
    let stop = json!({ "request": "recording", "action": "stop", "peer_audio": true });
    simple("recordingupdated").check(&ask(&mut page, stop).await);
    let keyframe = json!({ "request": "keyframe", "user": true, "peer": true });
    simple("keyframesent").check(&ask(&mut page, keyframe).await);
    let streams = json!([
        { "type": "audio", "host": "127.0.0.1", "port": 9 },
        { "type": "peer_video", "host": "127.0.0.1", "port": 11, "pt": 99, "ssrc": 7,
          "srtp_suite": 80, "srtp_crypto": "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj" },
    ]);
    let forward = json!({ "request": "rtp_forward", "streams": streams });
    let forwarded = ask(&mut page, forward).await;
    let stream = |kind: &'static str, media: &'static str, port: u16| {
        object([
            ("stream_id", Shape::Count),
            ("type", is(kind)),
            ("host", is("127.0.0.1")),
            ("port", is(port)),
            ("media", is(media)),
        ])
    };
    let both = || {
        let sealed = stream("peer_video", "video", 11);
        let sealed = sealed.and([("pt", is(99)), ("ssrc", is(7)), ("srtp", is(true))]);
        list([stream("audio", "audio", 9), sealed])
    };
    in_call(id, [("event", is("rtp_forward")), ("forwarders", both())]).check(&forwarded);
    let listed = ask(&mut page, json!({ "request": "listforwarders" })).await;
    in_call(
        id,
        [("event", is("forwarders")), ("rtp_forwarders", both())],
    )
    .check(&listed);
    let stream = forwarded["result"]["forwarders"][0]["stream_id"].clone();
    let stopped = ask(
        &mut page,
        json!({ "request": "stop_rtp_forward", "stream_id": stream }),
    )
    .await;
    in_call(
        id,
        [("event", is("stop_rtp_forward")), ("stream_id", is(stream))],
    )
    .check(&stopped);

    // The connection of the page is lost.
    let reply = page.request("hangup", json!({})).await;
    assert_eq!(reply["janus"], "success", "{reply}");
    let lost = until(&mut page, "hangingup").await;
    simple("hangingup").check(&lost["plugindata"]["data"]);
    assert!(lost.get("transaction").is_none(), "{lost}");
    let bye = world.phone.request(Method::Bye).await;
    world.phone.answer(&bye, 200, &[], "").await;
    let told = until(&mut page, "hangup").await;
    in_call(id, hangup(200, "to BYE")).check(&told["plugindata"]["data"]);
}

#[tokio::test]
async fn changes_that_a_page_makes_are_told() {
    let mut world = World::new().await;
    let (mut page, contact) = world.registered("ann", json!({})).await;
    let sdp = world.phone.sdp();
    let (_, mut talk) = world.phone.call(&contact, "u1", &[], &sdp).await;
    let incoming = until(&mut page, "incomingcall").await;
    let mut peer = Peer::answering().await;
    let answer = peer.answer(incoming["jsep"]["sdp"].as_str().unwrap());
    page.message(
        json!({ "request": "accept", "autoaccept_reinvites": false }),
        Some(("answer", &answer)),
    )
    .await;
    until(&mut page, "accepted").await;
    let ok = world.phone.response(200).await;
    world.phone.acknowledge(&mut talk, &ok, "").await;
    // The page's change.
    let updating = offer(&mut page, &mut peer, json!({ "request": "update" })).await;
    in_call("u1", [("event", is("updating"))]).check(&updating);
    let invite = world.phone.request(Method::Invite).await;
    world
        .phone
        .answer(&invite, 200, &[], &sdp.replace("o=- 1 1", "o=- 1 2"))
        .await;
    world.phone.request(Method::Ack).await;
    let event = page.until("/janus", "event").await;
    let shape = [
        ("event", is("accepted")),
        ("username", is(world.phone.uri("phone"))),
    ];
    in_call("u1", shape).check(&event["plugindata"]["data"]);
    object([("type", is("answer")), ("sdp", Shape::Begins("v=0"))]).check(&event["jsep"]);
    peer.accept(event["jsep"]["sdp"].as_str().unwrap());
    // The peer's change.
    let again = sdp.replace("o=- 1 1", "o=- 1 3");
    world
        .phone
        .ask(&mut talk, Method::Invite, &[], ("application/sdp", &again))
        .await;
    let updating = until(&mut page, "updatingcall").await;
    let answer = peer.answer(updating["jsep"]["sdp"].as_str().unwrap());
    page.message(json!({ "request": "update" }), Some(("answer", &answer)))
        .await;
    in_call("u1", [("event", is("updated"))]).check(&next(&mut page).await);
    world.phone.response(200).await;
}

#[tokio::test]
async fn keys_are_told_of_a_call_that_is_transcoded() {
    let config = portunus_sip_plugin::SipConfig {
        transcoding: true,
        ..portunus_sip_plugin::SipConfig::default()
    };
    let mut world = World::with(config).await;
    let (mut page, _) = world.registered("ann", json!({})).await;
    let mut peer = Peer::offering().await;
    let sdp = peer.offer(super::described(portunus_sdp::CodecName::Opus));
    let call = json!({ "request": "call", "uri": world.phone.uri("bob"), "call_id": "t1" });
    page.message(call, Some(("offer", &sdp))).await;
    let invite = world.phone.request(Method::Invite).await;
    let offered = String::from_utf8(invite.body.clone()).unwrap();
    let far = world.phone.sdp();
    world.phone.answer(&invite, 200, &[], &far).await;
    world.phone.request(Method::Ack).await;
    until(&mut page, "accepted").await;
    world.phone.press_five(&offered).await;
    let told = until(&mut page, "dtmf").await;
    assert_eq!(
        told["plugindata"]["data"]["result"]["signal"], "5",
        "{told}"
    );
}

/// The headers of a VP8 keyframe of 16 by 16 pixels, in one packet.
const KEYFRAME: [u8; 12] = [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, 7];

/// RFC 5168: some telephones have no RTCP for it.
#[tokio::test]
async fn a_keyframe_that_is_asked_for_by_info_is_asked_of_the_browser() {
    let mut world = World::new().await;
    let (mut page, _) = world.registered("ann", json!({})).await;
    let mut peer = Peer::offering().await;
    let call = json!({ "request": "call", "uri": world.phone.uri("bob") });
    offer(&mut page, &mut peer, call).await;
    let invite = world.phone.request(Method::Invite).await;
    let sdp = world.phone.sdp();
    let mut talk = world.phone.answer(&invite, 200, &[], &sdp).await;
    world.phone.request(Method::Ack).await;
    let accepted = until(&mut page, "accepted").await;
    peer.accept(accepted["jsep"]["sdp"].as_str().unwrap());
    peer.connect().await;
    // A receiver with a keyframe requests no further one.
    for timestamp in (0..).step_by(9_000) {
        peer.keyframes_asked.clear();
        peer.send(1, timestamp, &KEYFRAME).await;
        peer.run_for(std::time::Duration::from_millis(300)).await;
        if peer.keyframes_asked.is_empty() {
            break;
        }
    }
    let wanted = "<media_control><vc_primitive><to_encoder><picture_fast_update/></to_encoder></vc_primitive></media_control>";
    let body = ("application/media_control+xml", wanted);
    world.phone.ask(&mut talk, Method::Info, &[], body).await;
    world.phone.response(200).await;
    peer.run_until(|peer| peer.keyframes_asked.contains(&1))
        .await;
}
