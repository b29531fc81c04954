//! Calls from a page.

use portunus_core::configuration::PortRange;
use portunus_sip::message::Method;
use portunus_tests::Peer;
use portunus_tests::shape::{Shape, is, object};
use serde_json::json;

use super::{World, ask, error, hangup, in_call, next, offer, until};

#[tokio::test]
async fn a_call_is_told_of_from_its_start_to_its_end() {
    let mut world = World::new().await;
    let prefixes = json!({ "incoming_header_prefixes": ["X-"] });
    let (mut page, _) = world.registered("ann", prefixes).await;
    world.told(&page).await;
    let bob = world.phone.uri("bob");
    let call = json!({ "request": "call", "uri": bob, "call_id": "c1", "headers": { "X-A": "b" } });
    let calling = offer(&mut page, &mut Peer::offering().await, call.clone()).await;
    in_call("c1", [("event", is("calling")), ("call_id", is("c1"))]).check(&calling);
    let told = [
        ("event", is("calling")),
        ("callee", is(bob.clone())),
        ("call-id", is("c1")),
    ];
    object(told).check(&world.told(&page).await);
    error(447, Some("c1")).check(&ask(&mut page, call).await);
    let invite = world.phone.request(Method::Invite).await;
    assert_eq!(invite.headers.get("X-A"), Some("b"));
    let headers = || ("headers", is(json!({ "X-B": "c" })));
    let told = [("X-B", "c")];
    world.phone.answer(&invite, 180, &told, "").await;
    in_call("c1", [("event", is("ringing")), headers()]).check(&next(&mut page).await);
    in_call("c1", [("event", is("proceeding")), ("code", is(180))]).check(&next(&mut page).await);
    object([("event", is("proceeding")), ("code", is(180))]).check(&world.told(&page).await);
    let sdp = world.phone.sdp();
    world.phone.answer(&invite, 183, &told, &sdp).await;
    let event = page.until("/janus", "event").await;
    let shape = in_call(
        "c1",
        [
            ("event", is("progress")),
            ("username", is(bob.clone())),
            headers(),
        ],
    );
    shape.check(&event["plugindata"]["data"]);
    object([("type", is("answer")), ("sdp", Shape::Begins("v=0"))]).check(&event["jsep"]);
    in_call("c1", [("event", is("proceeding")), ("code", is(183))]).check(&next(&mut page).await);
    object([("event", is("progress")), ("code", is(183))]).check(&world.told(&page).await);
    let focus = format!("<{}>;isfocus", world.phone.uri("phone"));
    let taken = [("X-B", "c"), ("Contact", focus.as_str())];
    let mut talk = world.phone.answer(&invite, 200, &taken, &sdp).await;
    world.phone.request(Method::Ack).await;
    let accepted = [
        ("event", is("accepted")),
        ("username", is(bob.clone())),
        headers(),
        ("isfocus", is(true)),
    ];
    in_call("c1", accepted).check(&next(&mut page).await);
    object([("event", is("accepted")), ("username", is(bob.clone()))])
        .check(&world.told(&page).await);

    let state = world.server.state(&page).await;
    let expected = [
        ("call_status", json!("incall")),
        ("call_id", json!("c1")),
        ("callee", json!(bob)),
        ("established", json!(1)),
    ];
    for (member, value) in expected {
        assert_eq!(state[member], value, "{state}");
    }
    let because = [("Reason", "Q.850;cause=16;text=\"bye bye\""), ("X-B", "c")];
    world
        .phone
        .ask(&mut talk, Method::Bye, &because, ("", ""))
        .await;
    world.phone.response(200).await;
    let shape = object(hangup(200, "Session Terminated")).and([
        ("reason_header", is("bye bye")),
        ("reason_header_protocol", is("Q.850")),
        ("reason_header_cause", is("16")),
        headers(),
    ]);
    let shape = object([
        ("sip", is("event")),
        ("result", shape),
        ("call_id", is("c1")),
    ]);
    shape.check(&next(&mut page).await);
    let told = world.told(&page).await;
    assert_eq!(
        (&told["event"], &told["code"]),
        (&json!("hangup"), &json!(200)),
        "{told}"
    );
}

#[tokio::test]
async fn calls_that_come_to_nothing_are_told() {
    let mut world = World::new().await;
    let (mut page, _) = world.registered("ann", json!({})).await;
    let call = json!({ "request": "call", "uri": world.phone.uri("bob"), "call_id": "c2" });
    // Refused.
    offer(&mut page, &mut Peer::offering().await, call.clone()).await;
    let invite = world.phone.request(Method::Invite).await;
    world.phone.answer(&invite, 486, &[], "").await;
    world.phone.request(Method::Ack).await;
    in_call("c2", hangup(486, "Busy Here")).check(&next(&mut page).await);
    // Cancelled.
    offer(&mut page, &mut Peer::offering().await, call.clone()).await;
    let invite = world.phone.request(Method::Invite).await;
    world.phone.answer(&invite, 180, &[], "").await;
    until(&mut page, "proceeding").await;
    let hangingup = ask(&mut page, json!({ "request": "hangup" })).await;
    in_call("c2", [("event", is("hangingup"))]).check(&hangingup);
    let cancel = world.phone.request(Method::Cancel).await;
    world.phone.answer(&cancel, 200, &[], "").await;
    world.phone.answer(&invite, 487, &[], "").await;
    world.phone.request(Method::Ack).await;
    in_call("c2", hangup(487, "Request Terminated")).check(&next(&mut page).await);
    // Without SRTP although it is mandatory.
    let mut secure = call;
    secure["srtp"] = json!("sdes_mandatory");
    offer(&mut page, &mut Peer::offering().await, secure).await;
    let invite = world.phone.request(Method::Invite).await;
    let sdp = world.phone.sdp();
    world.phone.answer(&invite, 200, &[], &sdp).await;
    world.phone.request(Method::Ack).await;
    let bye = world.phone.request(Method::Bye).await;
    world.phone.answer(&bye, 200, &[], "").await;
    // An addition of ours says why.
    let [event, code, reason] = hangup(200, "to BYE");
    let missing = is("SDES-SRTP required, but there is no key for audio");
    in_call("c2", [event, code, reason, ("text", missing)]).check(&next(&mut page).await);
    // The secret is refused.
    let call = json!({ "request": "call", "uri": world.phone.uri("bob"), "call_id": "c3" });
    offer(&mut page, &mut Peer::offering().await, call).await;
    let challenge = [("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\"")];
    for _ in 0..2 {
        let invite = world.phone.request(Method::Invite).await;
        world.phone.answer(&invite, 401, &challenge, "").await;
        world.phone.request(Method::Ack).await;
    }
    let refused = "Operation has no matching challenge";
    let told = next(&mut page).await;
    assert_eq!(told["result"]["code"], 904, "{told}");
    assert!(
        told["result"]["reason"]
            .as_str()
            .unwrap()
            .starts_with(refused),
        "{told}"
    );
}

#[tokio::test]
async fn who_finds_no_ports_is_told() {
    // A pair of ports, of which the second one is in use.
    let taken = std::iter::repeat_with(|| std::net::UdpSocket::bind("0.0.0.0:0").unwrap());
    let is_odd = |socket: &std::net::UdpSocket| socket.local_addr().unwrap().port() % 2 == 1;
    let taken = taken.take(1_000).find(is_odd).unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = portunus_sip_plugin::SipConfig {
        rtp_port_range: PortRange::new(port - 1, port),
        ..portunus_sip_plugin::SipConfig::default()
    };
    let mut world = World::with(config).await;
    let (mut page, _) = world.registered("ann", json!({})).await;
    let call = json!({ "request": "call", "uri": world.phone.uri("bob") });
    error(450, None).check(&offer(&mut page, &mut Peer::offering().await, call).await);
}
