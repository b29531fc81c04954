//! Messages that cross, arrive twice, too late or never.

use std::time::Duration;

use portunus_sip::agent::{AgentEvent, CallId, Cause, Command};
use portunus_sip::dialog::Dialog;
use portunus_sip::message::{Method, Request, Response, StatusCode, Uri, Via};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::world::*;

/// The answer of a hand.
pub fn answer(request: &Request, code: u16, tag: &str, node: usize) -> Response {
    let mut response = Response::to(request, StatusCode::new(code).unwrap());
    response.headers.set_to_tag(tag);
    for route in request.headers.all("Record-Route") {
        response.headers.push("Record-Route", route);
    }
    response
        .headers
        .push("Contact", format!("<sip:{tag}@{}>", address(node)));
    response
}

/// An INVITE by a hand.
pub fn invite_by_hand(node: usize, to: &str, branch: &str) -> Request {
    let mut request = Request::new(Method::Invite, to.parse::<Uri>().unwrap());
    let via = Via::new(
        "UDP",
        address(node).ip().into(),
        Some(5060),
        &format!("z9hG4bK{branch}"),
    );
    request.headers.push("Via", via);
    request.headers.push("Max-Forwards", 70);
    request
        .headers
        .push("From", "<sip:hand@hand.test>;tag=hand");
    request.headers.push("To", format!("<{to}>"));
    request.headers.push("Call-ID", format!("by-hand-{branch}"));
    request.headers.push("CSeq", "1 INVITE");
    request
        .headers
        .push("Contact", format!("<sip:hand@{}>", address(node)));
    request.set_body("application/sdp", "offer");
    request
}

/// A request of a hand within its dialog.
pub fn within(dialog: &mut Dialog, method: Method, node: usize, branch: &str) -> Request {
    let mut request = dialog.request(method);
    let via = Via::new(
        "UDP",
        address(node).ip().into(),
        Some(5060),
        &format!("z9hG4bK{branch}"),
    );
    request.headers.push_first("Via", via);
    request
        .headers
        .push("Contact", format!("<sip:hand@{}>", address(node)));
    request
}

/// The ACK of a hand to the 2xx with that number.
pub fn ack(dialog: &Dialog, number: u32, node: usize, branch: &str) -> Request {
    let mut request = dialog.ack(number);
    let via = Via::new(
        "UDP",
        address(node).ip().into(),
        Some(5060),
        &format!("z9hG4bK{branch}"),
    );
    request.headers.push_first("Via", via);
    request
}

fn methods(requests: &[Request]) -> Vec<&str> {
    requests
        .iter()
        .map(|request| request.method.as_str())
        .collect()
}

#[test]
fn a_call_is_taken_back_while_it_rings() {
    for seed in 0..40 {
        let mut world = World::new(Weather::FOUL, seed);
        let alice = world.agent("alice", passive);
        let bob = world.agent("bob", ringing);
        let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
        world.until(bob, MINUTE, is_incoming);
        world.hangup(alice, call);
        assert_eq!(
            world.until(alice, MINUTE * 2, is_ended),
            (Cause::Cancelled, 487),
            "seed {seed}"
        );
        assert_eq!(
            world.until(bob, MINUTE * 2, is_ended),
            (Cause::Cancelled, 487),
            "seed {seed}"
        );
        world.pass(MINUTE * 2);
        world.assert_idle(alice);
        world.assert_idle(bob);
    }
}

#[test]
fn cancel_waits_for_a_provisional_answer_unless_told_otherwise() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.hand();
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.hangup(alice, call);
    world.hangup(alice, call);
    let requests = world.requests(bob, SECOND / 4);
    assert_eq!(methods(&requests), ["INVITE"]);
    world.send(bob, alice, answer(&requests[0], 100, "bob", bob));
    assert_eq!(methods(&world.requests(bob, SECOND / 4)), ["CANCEL"]);
    // It ends without any response.
    world.pass(MINUTE);
    assert_eq!(
        world.told(alice),
        ["ended Cancelled 487 Request Terminated"]
    );
    let mut early = invite("sip:bob@192.0.2.2");
    early.cancel_early = true;
    let call = world.invite(alice, 2, early);
    world.requests(bob, SECOND / 10);
    world.hangup(alice, call);
    assert_eq!(methods(&world.requests(bob, SECOND / 10)), ["CANCEL"]);
}

#[test]
fn a_call_that_was_never_sent_is_cancelled_at_once() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", |event| match event {
        AgentEvent::Ended { .. } => Vec::new(),
        _ => panic!("{event:?}"),
    });
    // The name is being resolved when it is taken back.
    let now = world.now;
    let agent = world.the_agent(alice);
    let call = CallId::new(1);
    agent.command(
        now,
        Command::Invite {
            account: ACCOUNT,
            call,
            invite: Box::new(invite("sip:bob@slow.test")),
        },
    );
    agent.command(
        now,
        Command::Hangup {
            call,
            headers: Vec::new(),
        },
    );
    world.drain(alice);
    assert_eq!(
        world.told(alice),
        ["ended Cancelled 487 Request Terminated"]
    );
    world.assert_idle(alice);
}

#[test]
fn a_hangup_crosses_an_answer() {
    for seed in 0..150 {
        let mut random = StdRng::seed_from_u64(seed);
        let weather = Weather {
            loss: 0.2,
            ..Weather::FOUL
        };
        let mut world = World::new(weather, seed);
        let alice = world.agent("alice", passive);
        let bob = world.agent("bob", ringing);
        let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
        let theirs = world.until(bob, MINUTE, is_incoming);
        world.pass(Duration::from_millis(random.random_range(0..500)));
        world.command(
            bob,
            Command::Accept {
                call: theirs,
                headers: Vec::new(),
                body: Some(sdp("answer")),
            },
        );
        world.pass(Duration::from_millis(random.random_range(0..500)));
        world.hangup(alice, call);
        if seed % 3 == 0 {
            world.hangup(bob, theirs);
        }
        world.until(alice, MINUTE * 3, is_ended);
        world.until(bob, MINUTE * 3, is_ended);
        world.pass(MINUTE * 3);
        for node in [alice, bob] {
            world.assert_idle(node);
            assert!(
                !world
                    .told(node)
                    .iter()
                    .any(|event| event.starts_with("ended")),
                "told twice, seed {seed}"
            );
        }
    }
}

/// Each would be acknowledged and hung up.
#[test]
fn of_forks_without_end_some_are_answered() {
    let mut world = World::new(Weather::FAIR, 1);
    let hand = world.hand();
    let alice = world.agent("alice", passive);
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.1"));
    let invite = world.next_request(hand, SECOND);
    for tag in 0..100 {
        world.send(hand, alice, answer(&invite, 200, &format!("t{tag}"), hand));
    }
    let requests = world.requests(hand, SECOND / 10);
    let acks = requests.iter().filter(|it| it.method == Method::Ack);
    assert_eq!(acks.count(), options().limits.forks);
    world.hangup(alice, call);
    world.pass(MINUTE * 2);
    world.assert_idle(alice);
}

#[test]
fn requests_before_the_call_is_taken_go_to_the_fork_that_is_heard() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let proxy = world.hand();
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    let invite = world.next_request(proxy, SECOND);
    for (number, (code, tag, sdp, expected)) in [
        (180, "one", "", "one"),
        (180, "two", "", "two"),
        (183, "one", "answer", "one"),
        // It rings without a sound.
        (183, "two", "", "one"),
        (183, "three", "answer", "three"),
        (180, "one", "", "three"),
        (183, "one", "answer", "one"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut response = answer(&invite, code, tag, proxy);
        if !sdp.is_empty() {
            response.set_body("application/sdp", sdp);
        }
        world.send(proxy, alice, response);
        world.pass(SECOND / 100);
        world.command(
            alice,
            Command::InDialog {
                call,
                request: portunus_sip::agent::RequestId::new(number as u64),
                method: Method::Info,
                headers: Vec::new(),
                body: None,
            },
        );
        let info = world.next_request(proxy, SECOND);
        let to = info.headers.to().unwrap().unwrap();
        assert_eq!(to.tag(), Some(expected), "{number}");
        world.send(proxy, alice, answer(&info, 200, expected, proxy));
        world.pass(SECOND / 100);
    }
}

#[test]
fn of_several_forks_that_answer_one_is_taken() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let proxy = world.hand();
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    let invite = world.requests(proxy, SECOND / 10).remove(0);
    for (code, tag) in [
        (180, "one"),
        (183, "two"),
        (200, "two"),
        (200, "one"),
        (200, "two"),
        (200, "three"),
    ] {
        world.send(proxy, alice, answer(&invite, code, tag, proxy));
        world.pass(SECOND / 100);
    }
    let requests = world.requests(proxy, SECOND / 10);
    let got: Vec<String> = requests
        .iter()
        .map(|request| {
            format!(
                "{} {}",
                request.method,
                request.headers.to().unwrap().unwrap().tag().unwrap()
            )
        })
        .collect();
    assert_eq!(
        got,
        [
            "ACK two",
            "ACK one",
            "BYE one",
            "ACK two",
            "ACK three",
            "BYE three"
        ]
    );
    assert_eq!(
        world.told(alice),
        ["provisional 180", "provisional 183", "accepted"]
    );
    world.hangup(alice, call);
    let bye = world.requests(proxy, SECOND / 10).remove(0);
    assert_eq!(
        (bye.method.as_str(), bye.uri.to_string()),
        ("BYE", format!("sip:two@{}", address(proxy)))
    );
}

#[test]
fn a_2xx_is_repeated_until_it_is_acknowledged() {
    let mut world = World::new(Weather::FAIR, 1);
    let bob = world.agent("bob", answering);
    let hand = world.hand();
    let invite = invite_by_hand(hand, "sip:bob@192.0.2.1", "1");
    world.send(hand, bob, invite.clone());
    let mut responses = world.responses(hand, SECOND * 2);
    let codes: Vec<u16> = responses
        .iter()
        .map(|response| response.status.code())
        .collect();
    assert_eq!(codes, [100, 180, 200, 200, 200]);
    let dialog = Dialog::of_response(&invite, &responses.remove(2)).unwrap();
    world.send(hand, bob, ack(&dialog, 1, hand, "2"));
    assert!(world.responses(hand, MINUTE).is_empty());
    assert_eq!(world.told(bob), ["incoming", "acknowledged"]);
}

#[test]
fn a_call_whose_ack_never_comes_is_ended() {
    let mut world = World::new(Weather::FAIR, 1);
    let bob = world.agent("bob", answering);
    let hand = world.hand();
    world.send(hand, bob, invite_by_hand(hand, "sip:bob@192.0.2.1", "1"));
    world.pass(SECOND * 33);
    let messages = world.inbox(hand);
    assert!(messages.iter().any(|message| matches!(message, portunus_sip::message::Message::Request(bye) if bye.method == Method::Bye)));
    world.pass(SECOND * 60);
    assert_eq!(world.told(bob), ["incoming", "ended NoAck 200 to BYE"]);
    world.assert_idle(bob);
}

#[test]
fn who_takes_a_call_and_hangs_up_at_once_sends_bye_after_ack() {
    let mut world = World::new(Weather::FAIR, 1);
    let bob = world.agent("bob", answering);
    let hand = world.hand();
    let invite = invite_by_hand(hand, "sip:bob@192.0.2.1", "1");
    world.send(hand, bob, invite.clone());
    let responses = world.responses(hand, SECOND / 10);
    let call = world.events(bob).iter().find_map(is_incoming).unwrap();
    world.hangup(bob, call);
    assert!(world.requests(hand, SECOND / 10).is_empty());
    let dialog = Dialog::of_response(&invite, responses.last().unwrap()).unwrap();
    world.send(hand, bob, ack(&dialog, 1, hand, "2"));
    assert_eq!(methods(&world.requests(hand, SECOND / 10)), ["BYE"]);
}

#[test]
fn both_hang_up_at_once() {
    for seed in 0..20 {
        let mut world = World::new(Weather::FOUL, seed);
        let alice = world.agent("alice", passive);
        let bob = world.agent("bob", answering);
        let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
        let theirs = world.until(bob, MINUTE, is_incoming);
        world.until(bob, MINUTE, |event| {
            matches!(event, AgentEvent::Acknowledged { .. }).then_some(())
        });
        world.hangup(alice, call);
        world.hangup(bob, theirs);
        world.until(alice, MINUTE, is_ended);
        world.until(bob, MINUTE, is_ended);
        world.pass(MINUTE * 2);
        world.assert_idle(alice);
        world.assert_idle(bob);
    }
}

#[test]
fn bye_for_a_call_that_rings_ends_it() {
    let mut world = World::new(Weather::FAIR, 1);
    let bob = world.agent("bob", ringing);
    let hand = world.hand();
    let invite = invite_by_hand(hand, "sip:bob@192.0.2.1", "1");
    world.send(hand, bob, invite.clone());
    let responses = world.responses(hand, SECOND / 10);
    let mut dialog = Dialog::of_response(&invite, responses.last().unwrap()).unwrap();
    world.send(hand, bob, within(&mut dialog, Method::Bye, hand, "2"));
    let codes: Vec<u16> = world
        .responses(hand, SECOND / 10)
        .iter()
        .map(|response| response.status.code())
        .collect();
    assert_eq!(codes, [200, 487]);
    assert_eq!(
        world.told(bob),
        ["incoming", "ended Cancelled 487 Request Terminated"]
    );
}

#[test]
fn a_call_that_nobody_takes_ends_and_is_said_to_ring_until_then() {
    let mut world = World::new(Weather::FAIR, 1);
    let mut short = options();
    short.limits.unanswered = SECOND * 200;
    let bob = world.agent_with(short, ringing, |_| profile("sip:bob@192.0.2.1"));
    let hand = world.hand();
    world.send(hand, bob, invite_by_hand(hand, "sip:bob@192.0.2.1", "1"));
    let codes: Vec<u16> = world
        .responses(hand, SECOND * 201)
        .iter()
        .map(|response| response.status.code())
        .collect();
    assert_eq!(codes[..5], [100, 180, 180, 180, 180]);
    assert_eq!(codes[5], 480);
    assert_eq!(
        world.told(bob),
        ["incoming", "ended Hangup 480 Temporarily Unavailable"]
    );
}
