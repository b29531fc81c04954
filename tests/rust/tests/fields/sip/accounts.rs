//! Accounts, helpers, subscriptions, publications, messages outside of calls.

use portunus_sdp::{Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_sip::message::Method;
use portunus_tests::shape::{Shape, is, object};
use serde_json::json;

use super::phone::contact;
use super::{World, ask, error, next, offer, result};

#[tokio::test]
async fn an_account_is_told_of_from_its_registration_to_its_end() {
    let mut world = World::new().await;
    let mut page = world.page().await;
    let identity = world.phone.uri("ann");
    let register = json!({ "request": "register", "username": identity, "secret": "s", "force_udp": true,
                           "incoming_header_prefixes": ["X-To"] });
    let registering = ask(&mut page, register.clone()).await;
    result([("event", is("registering")), ("unique_id", Shape::Text)]).check(&registering);
    let unique = registering["result"]["unique_id"].clone();
    let request = world.phone.request(Method::Register).await;
    world
        .phone
        .answer(&request, 403, &[("X-Told", "no")], "")
        .await;
    let failed = [
        ("event", is("registration_failed")),
        ("code", is(403)),
        ("reason", is("Forbidden")),
    ];
    let headers = ("headers", is(json!({ "X-Told": "no" })));
    let told = object(failed.clone());
    let shape = object([
        ("sip", is("event")),
        ("result", object(failed).and([headers])),
    ]);
    shape.check(&next(&mut page).await);
    told.check(&world.told(&page).await);

    ask(&mut page, register.clone()).await;
    let request = world.phone.request(Method::Register).await;
    let own = contact(request.headers.get("Contact"));
    let granted = [
        ("Contact", &*format!("<{own}>;expires=60")),
        ("X-Told", "1"),
    ];
    world.phone.answer(&request, 200, &granted, "").await;
    let registered = [
        ("event", is("registered")),
        ("username", is("ann")),
        ("register_sent", is(true)),
        ("master_id", Shape::Count),
        ("headers", is(json!({ "X-Told": "1" }))),
    ];
    let shape = result(registered).and([("unique_id", is(unique.clone()))]);
    let event = next(&mut page).await;
    shape.check(&event);
    let master = event["result"]["master_id"].clone();
    object([
        ("event", is("registered")),
        ("identity", is(identity.clone())),
    ])
    .check(&world.told(&page).await);
    error(445, None).check(&ask(&mut page, register).await);

    // A helper, and what it may not do.
    let mut helper = world.page().await;
    let help = |master: serde_json::Value| json!({ "request": "register", "type": "helper", "username": identity, "master_id": master });
    error(453, None).check(&ask(&mut helper, help(json!(1))).await);
    let shape = result([
        ("event", is("registered")),
        ("username", is("ann")),
        ("register_sent", is(false)),
        ("helper", is(true)),
        ("master_id", is(master.clone())),
        ("unique_id", Shape::Text),
    ]);
    // It is of another session, so it needs the secret.
    let mut with_secret = help(master);
    with_secret["secret"] = json!("s");
    shape.check(&ask(&mut helper, with_secret).await);
    let state = world.server.state(&helper).await;
    assert_eq!(state["helper"], true, "{state}");
    let shape = object([
        ("username", is("ann")),
        ("secret", is("(hidden)")),
        ("identity", is(world.phone.uri("ann"))),
        ("registration_status", is("registered")),
    ]);
    shape.check(&state["master"]);

    let unregistering = ask(&mut page, json!({ "request": "unregister" })).await;
    result([("event", is("unregistering"))]).check(&unregistering);
    let request = world.phone.request(Method::Register).await;
    world.phone.answer(&request, 200, &[], "").await;
    let unregistered = [
        ("event", is("unregistered")),
        ("username", is("ann")),
        ("headers", is(json!({}))),
    ];
    let shape = result(unregistered).and([("unique_id", is(unique))]);
    shape.check(&next(&mut page).await);
    object([("event", is("unregistered")), ("username", is("ann"))])
        .check(&world.told(&page).await);
    error(447, None).check(&ask(&mut page, json!({ "request": "unregister" })).await);
}

#[tokio::test]
async fn guests_and_what_is_wrong_are_told() {
    let world = World::new().await;
    let mut page = world.page().await;
    let name = world.phone.uri("guest");
    let guest = json!({ "request": "register", "type": "guest", "username": name });
    let registered = result([
        ("event", is("registered")),
        ("username", is("guest")),
        ("register_sent", is(false)),
        ("master_id", Shape::Count),
        ("unique_id", Shape::Text),
    ]);
    registered.check(&ask(&mut page, guest).await);
    let quiet = json!({ "request": "register", "username": name, "secret": "s", "send_register": false, "refresh": true });
    registered.check(&ask(&mut page, quiet).await);
    let state = world.server.state(&page).await;
    let shape = object([
        ("unique_id", Shape::Text),
        ("helper", is(false)),
        ("username", is("guest")),
        ("secret", is("(hidden)")),
        ("identity", is(name.clone())),
        ("registration_status", is("disabled")),
        // An addition to Janus.
        ("master_id", Shape::Count),
        ("call_status", is("idle")),
        ("helpers", is(0)),
        ("srtp-required", is("no")),
        ("sdes-local-audio", is("no")),
        ("sdes-local-video", is("no")),
        ("sdes-remote-audio", is("no")),
        ("sdes-remote-video", is("no")),
        ("establishing", is(0)),
        ("established", is(0)),
        ("hangingup", is(0)),
        ("destroyed", is(0)),
    ]);
    shape.check(&state);

    for (request, code) in [
        (json!({ "request": "dance" }), 442),
        (json!({}), 443),
        (json!({ "request": "call" }), 443),
        (json!({ "request": "call", "uri": 7 }), 444),
        (
            json!({ "request": "call", "uri": "sip:b@h", "srtp": "x" }),
            444,
        ),
        (json!({ "request": "call", "uri": "tel:1" }), 446),
        (json!({ "request": "call", "uri": "sip:b@h" }), 448),
        (json!({ "request": "accept" }), 447),
        (json!({ "request": "subscribe" }), 443),
        (json!({ "request": "unsubscribe", "event": "x" }), 447),
        (json!({ "request": "unpublish", "event": "x" }), 447),
        (json!({ "request": "decline", "refer_id": 3 }), 447),
        (json!({ "request": "move", "call_id": "x" }), 454),
        (
            json!({ "request": "stop_rtp_forward", "stream_id": 1 }),
            455,
        ),
        (
            json!({ "request": "register", "username": "x", "type": "guest", "send_register": true }),
            444,
        ),
        (
            json!({ "request": "register", "username": "sips:a@b", "secret": "s", "refresh": true }),
            446,
        ),
        (
            json!({ "request": "register", "username": "sip:a@b", "refresh": true }),
            443,
        ),
        (json!({ "request": "unregister" }), 447),
    ] {
        let told = ask(&mut page, request.clone()).await;
        assert!(error(code, None).fits(&told), "{request}: {told}");
    }
    let mut peer = portunus_tests::Peer::offering().await;
    let data = MediaOffer::new(Kind::Data, Direction::SendRecv);
    let description = Description::offer(OfferOptions {
        media: vec![data],
        ..OfferOptions::default()
    });
    let sdp = peer.offer(description);
    page.message(
        json!({ "request": "call", "uri": "sip:b@h" }),
        Some(("offer", &sdp)),
    )
    .await;
    error(448, None).check(&next(&mut page).await);
    let reset = ask(&mut page, json!({ "request": "reset" })).await;
    result([("event", is("reset"))]).check(&reset);
    let listed = ask(&mut page, json!({ "request": "listforwarders" })).await;
    result([
        ("event", is("forwarders")),
        ("rtp_forwarders", is(json!([]))),
    ])
    .check(&listed);
    // It reaches nobody.
    let calling = offer(
        &mut page,
        &mut portunus_tests::Peer::offering().await,
        json!({ "request": "call", "uri": "sip:x@127.0.0.1:9" }),
    )
    .await;
    let call_id = calling["result"]["call_id"].as_str().unwrap().to_owned();
    super::in_call(&call_id, super::hangup(503, "Service Unavailable"))
        .check(&next(&mut page).await);
}

#[tokio::test]
async fn subscriptions_publications_and_messages_are_told() {
    let mut world = World::new().await;
    let (mut page, own) = world.registered("ann", json!({})).await;
    // Accepted.
    let subscribe =
        json!({ "request": "subscribe", "event": "message-summary", "call_id": "mine" });
    let subscribing = ask(&mut page, subscribe).await;
    result([("event", is("subscribing")), ("call_id", is("mine"))]).check(&subscribing);
    let request = world.phone.request(Method::Subscribe).await;
    let mut talk = world
        .phone
        .answer(&request, 200, &[("Expires", "600")], "")
        .await;
    let of = |shape: Shape, id: &str| shape.and([("call_id", is(id))]);
    let succeeded = |expires: u64| {
        result([
            ("event", is("subscribe_succeeded")),
            ("code", is(200)),
            ("expires", is(expires)),
            ("reason", is("OK")),
        ])
    };
    of(succeeded(600), "mine").check(&next(&mut page).await);
    let news = [
        ("Event", "message-summary"),
        ("Subscription-State", "active;expires=600"),
    ];
    world
        .phone
        .ask(
            &mut talk,
            Method::Notify,
            &news,
            (
                "application/simple-message-summary",
                "Messages-Waiting: yes\r\n",
            ),
        )
        .await;
    world.phone.response(200).await;
    let notify = result([
        ("event", is("notify")),
        ("notify", is("message-summary")),
        ("substate", is("active")),
        ("content-type", is("application/simple-message-summary")),
        ("content", is("Messages-Waiting: yes\r\n")),
    ]);
    of(notify, "mine").check(&next(&mut page).await);
    let unsubscribing = ask(
        &mut page,
        json!({ "request": "unsubscribe", "event": "message-summary" }),
    )
    .await;
    result([("event", is("unsubscribing"))]).check(&unsubscribing);
    let request = world.phone.request(Method::Subscribe).await;
    world
        .phone
        .answer(&request, 200, &[("Expires", "0")], "")
        .await;
    of(succeeded(0), "mine").check(&next(&mut page).await);
    // Refused.
    let subscribing = ask(
        &mut page,
        json!({ "request": "subscribe", "event": "presence" }),
    )
    .await;
    result([("event", is("subscribing"))]).check(&subscribing);
    let request = world.phone.request(Method::Subscribe).await;
    world.phone.answer(&request, 489, &[], "").await;
    let failed = [
        ("event", is("subscribe_failed")),
        ("code", is(489)),
        ("reason", is("Bad Event")),
    ];
    result(failed).check(&next(&mut page).await);

    // Publications, which are an addition to Janus.
    let publish = json!({ "request": "publish", "event": "presence", "content": "here", "content_type": "text/plain" });
    for (code, phrase) in [(200, "OK"), (403, "Forbidden")] {
        result([("event", is("publishing"))]).check(&ask(&mut page, publish.clone()).await);
        let request = world.phone.request(Method::Publish).await;
        let granted = [("SIP-ETag", "e1"), ("Expires", "600")];
        world.phone.answer(&request, code, &granted, "").await;
        let told = next(&mut page).await;
        let id = told["call_id"].as_str().map(str::to_owned);
        let shape = match code {
            200 => result([
                ("event", is("publish_succeeded")),
                ("code", is(200)),
                ("expires", is(600)),
                ("reason", is("OK")),
                ("published", is("presence")),
            ]),
            _ => result([
                ("event", is("publish_failed")),
                ("code", is(code)),
                ("reason", is(phrase)),
                ("published", is("presence")),
            ]),
        };
        let shape = match &id {
            Some(id) => of(shape, id),
            None => shape,
        };
        shape.check(&told);
    }

    // Messages.
    let message = json!({ "request": "message", "uri": world.phone.uri("bob"), "content": "hi", "call_id": "m1" });
    let sent = ask(&mut page, message).await;
    result([("event", is("messagesent")), ("call_id", is("m1"))]).check(&sent);
    let request = world.phone.request(Method::Message).await;
    world.phone.answer(&request, 202, &[], "").await;
    let shape = result([
        ("event", is("messagedelivery")),
        ("code", is(202)),
        ("reason", is("Accepted")),
    ]);
    of(shape, "m1").check(&next(&mut page).await);
    let mut talk = world.phone.stranger(&own, "m2");
    let text = ("text/plain;charset=utf-8", "hello");
    world.phone.ask(&mut talk, Method::Message, &[], text).await;
    world.phone.response(200).await;
    let shape = result([
        ("event", is("message")),
        ("sender", is(world.phone.uri("phone"))),
        ("displayname", is("\"Phone\"")),
        ("content", is("hello")),
        ("content_type", is("text/plain")),
    ]);
    shape.check(&next(&mut page).await);
    // A REFER outside of calls.
    let refer = [("Refer-To", "<sip:cleo@example.org>")];
    let mut talk = world.phone.stranger(&own, "r1");
    world
        .phone
        .ask(&mut talk, Method::Refer, &refer, ("", ""))
        .await;
    world.phone.response(202).await;
    let transfer = next(&mut page).await;
    let shape = result([
        ("event", is("transfer")),
        ("refer_id", Shape::Count),
        ("refer_to", is("sip:cleo@example.org")),
        ("referred_by", is(format!("<{}>", world.phone.uri("phone")))),
    ]);
    shape.check(&transfer);
    let refer_id = transfer["result"]["refer_id"].clone();
    let decline = json!({ "request": "decline", "refer_id": refer_id, "code": 480 });
    let shape = result([
        ("event", is("declining")),
        ("refer_id", is(refer_id)),
        ("code", is(480)),
    ]);
    shape.check(&ask(&mut page, decline).await);
}
