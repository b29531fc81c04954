//! Refusals and floods.

use portunus_sip::agent::{AccountId, AgentEvent, Cause, Command};
use portunus_sip::message::{Request, Response};

use crate::races::invite_by_hand;
use crate::world::*;

fn world() -> (World, usize, usize) {
    let mut world = World::new(Weather::FAIR, 1);
    let bob = world.agent("bob", ringing);
    let hand = world.hand();
    (world, bob, hand)
}

/// The answer to an INVITE after a change.
fn answered(change: impl FnOnce(&mut Request)) -> Response {
    let (mut world, bob, hand) = world();
    let mut invite = invite_by_hand(hand, "sip:bob@192.0.2.1", "1");
    change(&mut invite);
    world.send(hand, bob, invite);
    let mut responses = world.responses(hand, SECOND / 10);
    assert_eq!(responses.len(), 1, "{responses:?}");
    assert!(world.told(bob).is_empty());
    world.pass(MINUTE);
    world.assert_idle(bob);
    responses.remove(0)
}

fn with_method(request: &mut Request, method: &str) {
    request.method = method.parse().unwrap();
    request.headers.set("CSeq", format!("1 {method}"));
}

#[test]
fn what_we_do_not_know_is_refused_with_what_we_know() {
    let response = answered(|request| with_method(request, "NEWMETHOD"));
    assert_eq!(response.status.code(), 405);
    assert_eq!(
        response.headers.get("Allow"),
        Some("INVITE, ACK, BYE, CANCEL, OPTIONS, REFER, MESSAGE, INFO, NOTIFY, PRACK")
    );
    for method in ["REGISTER", "SUBSCRIBE", "PUBLISH"] {
        assert_eq!(
            answered(|request| with_method(request, method))
                .status
                .code(),
            405,
            "{method}"
        );
    }
    let response = answered(|request| {
        request
            .headers
            .push("Require", "100rel, nothing, timer, else")
    });
    assert_eq!(
        (response.status.code(), response.headers.get("Unsupported")),
        (420, Some("nothing, else"))
    );
    let response = answered(|request| request.set_body("application/weird", "x"));
    assert_eq!(
        (response.status.code(), response.headers.get("Accept")),
        (415, Some("application/sdp"))
    );
    let response = answered(|request| request.headers.push("Content-Encoding", "gzip"));
    assert_eq!(
        (
            response.status.code(),
            response.headers.get("Accept-Encoding")
        ),
        (415, Some("identity"))
    );
    assert_eq!(
        answered(|request| request.uri = uri("tel:+123"))
            .status
            .code(),
        416
    );
    assert_eq!(
        answered(|request| request.uri = uri("sip:nobody@192.0.2.1"))
            .status
            .code(),
        404
    );
    assert_eq!(
        answered(|request| request.headers.remove("Contact"))
            .status
            .code(),
        400
    );
}

#[test]
fn requests_for_dialogs_that_are_not_there_are_refused() {
    for method in [
        "BYE", "INFO", "PRACK", "UPDATE", "NOTIFY", "INVITE", "MESSAGE", "REFER",
    ] {
        let response = answered(|request| {
            with_method(request, method);
            request.headers.set("To", "<sip:bob@192.0.2.1>;tag=gone");
        });
        assert_eq!(response.status.code(), 481, "{method}");
    }
    for method in ["BYE", "INFO", "NOTIFY", "CANCEL"] {
        assert_eq!(
            answered(|request| with_method(request, method))
                .status
                .code(),
            481,
            "{method}"
        );
    }
    // ACK is never answered.
    let (mut world, bob, hand) = world();
    let mut ack = invite_by_hand(hand, "sip:bob@192.0.2.1", "1");
    with_method(&mut ack, "ACK");
    world.send(hand, bob, ack);
    assert!(world.responses(hand, MINUTE).is_empty());
}

#[test]
fn a_refusal_without_a_transaction_is_the_same_each_time() {
    let (mut world, bob, hand) = world();
    let invite = invite_by_hand(hand, "sip:nobody@192.0.2.1", "1");
    world.send(hand, bob, invite.clone());
    world.send(hand, bob, invite);
    let responses = world.responses(hand, SECOND / 10);
    assert_eq!(responses[0], responses[1]);
    assert_eq!(responses[0].status.code(), 404);
}

#[test]
fn a_call_that_comes_on_two_ways_rings_once() {
    let (mut world, bob, hand) = world();
    let invite = invite_by_hand(hand, "sip:bob@192.0.2.1", "1");
    world.send(hand, bob, invite.clone());
    let mut copy = invite;
    copy.headers
        .set_first_via("SIP/2.0/UDP 192.0.2.2;branch=z9hG4bK2");
    world.send(hand, bob, copy);
    let codes: Vec<u16> = world
        .responses(hand, SECOND / 10)
        .iter()
        .map(|response| response.status.code())
        .collect();
    assert_eq!(codes, [100, 180, 482]);
    assert_eq!(world.told(bob), ["incoming"]);
}

/// A proxy rings a group of which two are here.
#[test]
fn a_call_that_is_forked_to_two_accounts_rings_at_both() {
    let (mut world, bob, hand) = world();
    let carol = AccountId::new(2);
    world.command(
        bob,
        Command::SetAccount {
            account: carol,
            profile: Box::new(profile("sip:carol@192.0.2.1")),
        },
    );
    let invite = invite_by_hand(hand, "sip:bob@192.0.2.1", "1");
    let mut fork = invite.clone();
    fork.uri = uri("sip:carol@192.0.2.1");
    fork.headers
        .set_first_via("SIP/2.0/UDP 192.0.2.2;branch=z9hG4bK2");
    world.send(hand, bob, invite);
    world.send(hand, bob, fork);
    world.pass(SECOND / 10);
    let called = world.events(bob).iter().filter_map(|event| match event {
        AgentEvent::Incoming { account, .. } => *account,
        _ => None,
    });
    assert_eq!(called.collect::<Vec<_>>(), [ACCOUNT, carol]);
}

/// By gateways and by numbers that were ported (RFC 4904, RFC 4694).
#[test]
fn an_account_with_a_number_is_called_whatever_else_the_user_part_says() {
    for called in [
        "sip:1600;tgrp=g1;trunk-context=example.com@192.0.2.1",
        "sip:1600;npdi;rn=+49199@192.0.2.1",
        "sip:1600;phone-context=+4930@192.0.2.1;user=phone",
        "sip:16-00@192.0.2.1;user=phone",
    ] {
        let mut world = World::new(Weather::FAIR, 1);
        let bob = world.agent("1600", ringing);
        let hand = world.hand();
        world.send(hand, bob, invite_by_hand(hand, called, "1"));
        world.pass(SECOND / 10);
        assert_eq!(world.told(bob), ["incoming"], "{called}");
    }
}

#[test]
fn options_say_what_we_can() {
    let (mut world, bob, hand) = world();
    for (branch, to, code) in [
        ("1", "sip:bob@192.0.2.1", 200),
        ("2", "sip:192.0.2.1", 200),
        ("3", "sip:no@192.0.2.1", 404),
    ] {
        let mut options = invite_by_hand(hand, to, branch);
        options.body.clear();
        options.headers.set("Max-Forwards", 0);
        with_method(&mut options, "OPTIONS");
        world.send(hand, bob, options);
        let responses = world.responses(hand, SECOND / 10);
        assert_eq!(responses[0].status.code(), code, "{to}");
        assert!(responses[0].headers.has("Allow") && responses[0].headers.has("Accept"));
    }
}

#[test]
fn strangers_are_told_where_that_is_wanted() {
    let mut world = World::new(Weather::FAIR, 1);
    let mut with = options();
    with.strangers = true;
    let bob = world.agent_with(with, answering, |_| profile("sip:bob@192.0.2.1"));
    let hand = world.hand();
    world.send(hand, bob, invite_by_hand(hand, "sip:1234@192.0.2.1", "1"));
    let (account, source) = world.until(bob, SECOND, |event| match event {
        AgentEvent::Incoming { account, flow, .. } => Some((*account, flow.remote)),
        _ => None,
    });
    assert_eq!((account, source), (None, address(hand)));
    let responses = world.responses(hand, SECOND / 10);
    assert_eq!(responses.last().unwrap().status.code(), 200);
    assert_eq!(
        responses.last().unwrap().headers.get("Contact"),
        Some("<sip:1234@192.0.2.1:5060;transport=udp>")
    );
}

#[test]
fn a_flood_is_bounded_and_disturbs_no_call() {
    let mut world = World::new(Weather::FAIR, 1);
    let mut with = options();
    with.limits = limits();
    with.limits.burst = 1_000_000;
    let alice = world.agent("alice", passive);
    let bob = world.agent_with(
        with,
        |event| match event {
            AgentEvent::Incoming { request, .. }
                if request.headers.get("From").unwrap().contains("alice") =>
            {
                answering(event)
            }
            _ => ringing(event),
        },
        |_| profile("sip:bob@192.0.2.2"),
    );
    let hand = world.hand();
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.until(alice, SECOND, is_accepted);
    world.pass(SECOND);
    for number in 0..8_000 {
        let mut request = invite_by_hand(hand, "sip:bob@192.0.2.2", &format!("flood-{number}"));
        match number % 4 {
            0 => with_method(&mut request, "REGISTER"),
            1 => with_method(&mut request, "MESSAGE"),
            2 => with_method(&mut request, "BYE"),
            _ => {}
        }
        world.send(hand, bob, request);
    }
    world.pass(SECOND);
    let load = world.the_agent(bob).load();
    assert_eq!(load.calls, 21);
    assert!(load.transactions <= 300, "{load:?}");
    let counters = world.the_agent(bob).counters();
    assert!(
        counters.full > 3_000 && counters.unknown == 2_000,
        "{counters:?}"
    );
    // The call can still be hung up.
    world.hangup(alice, call);
    assert_eq!(world.until(alice, SECOND, is_ended), (Cause::Hangup, 200));
    // All is forgotten in the end.
    world.pass(MINUTE * 70);
    world.assert_idle(bob);
}

#[test]
fn one_address_may_ask_only_so_often() {
    let mut world = World::new(Weather::FAIR, 1);
    let mut with = options();
    with.limits.burst = 10;
    with.limits.rate = 5;
    let bob = world.agent_with(with, ringing, |_| profile("sip:bob@192.0.2.1"));
    let hand = world.hand();
    for number in 0..1000 {
        world.send(
            hand,
            bob,
            invite_by_hand(hand, "sip:nobody@192.0.2.1", &format!("flood-{number}")),
        );
    }
    assert_eq!(world.responses(hand, SECOND).len(), 10);
    assert_eq!(world.the_agent(bob).counters().limited, 990);
    world.send(
        hand,
        bob,
        invite_by_hand(hand, "sip:bob@192.0.2.1", "later"),
    );
    assert_eq!(world.responses(hand, SECOND).len(), 2);
}

#[test]
fn what_is_no_message_is_answered_if_it_can_be() {
    let (mut world, bob, hand) = world();
    let bytes = invite_by_hand(hand, "sip:bob@192.0.2.1", "1").to_bytes();
    let text = String::from_utf8(bytes)
        .unwrap()
        .replace("Max-Forwards: 70", "Max-Forwards: x");
    world.send_bytes(hand, bob, text.into_bytes());
    world.send_bytes(hand, bob, b"\r\n\r\n".to_vec());
    world.send_bytes(hand, bob, vec![0xff; 2000]);
    let codes: Vec<u16> = world
        .responses(hand, SECOND / 10)
        .iter()
        .map(|response| response.status.code())
        .collect();
    assert_eq!(codes, [400]);
    assert_eq!(world.the_agent(bob).counters().malformed, 3);
}
