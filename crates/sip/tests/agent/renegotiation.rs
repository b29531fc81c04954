//! Other offers, reliable provisional answers, session timers.

use portunus_sip::agent::{AgentEvent, CallId, Cause, Command};
use portunus_sip::dialog::Dialog;
use portunus_sip::message::{Message, Method};

use crate::races::{ack, answer, invite_by_hand, within};
use crate::world::*;

pub fn reinvite(call: CallId) -> Command {
    Command::Reinvite {
        call,
        headers: Vec::new(),
        body: Some(sdp("again")),
    }
}

pub fn is_renegotiated(event: &AgentEvent) -> Option<bool> {
    match event {
        AgentEvent::ReinviteAccepted { .. } => Some(true),
        AgentEvent::ReinviteRejected { .. } => Some(false),
        _ => None,
    }
}

/// Two agents in a call; their calls.
pub fn in_call(world: &mut World, options: portunus_sip::agent::Options) -> (CallId, CallId) {
    let own = profile("sip:alice@192.0.2.1");
    world.agent_with(options.clone(), answering, |_| own);
    let own = profile("sip:bob@192.0.2.2");
    world.agent_with(options, answering, |_| own);
    let call = world.invite(0, 1, invite("sip:bob@192.0.2.2"));
    let theirs = world.until(1, MINUTE, is_incoming);
    world.until(1, MINUTE, |event| {
        matches!(event, AgentEvent::Acknowledged { .. }).then_some(())
    });
    (call, theirs)
}

#[test]
fn either_side_makes_another_offer() {
    for seed in 0..20 {
        let mut world = World::new(Weather::FOUL, seed);
        let (call, theirs) = in_call(&mut world, options());
        world.command(0, reinvite(call));
        assert!(world.until(0, MINUTE * 2, is_renegotiated), "seed {seed}");
        world.pass(MINUTE);
        assert_eq!(
            world.told(1),
            ["reinvite again", "acknowledged"],
            "seed {seed}"
        );
        world.command(1, reinvite(theirs));
        assert!(world.until(1, MINUTE * 2, is_renegotiated), "seed {seed}");
        world.pass(MINUTE);
        assert_eq!(
            world.told(0),
            ["reinvite again", "acknowledged"],
            "seed {seed}"
        );
        assert_eq!(
            (
                world.the_agent(0).load().calls,
                world.the_agent(1).load().calls
            ),
            (1, 1)
        );
    }
}

#[test]
fn offers_that_cross_are_both_answered_in_the_end() {
    for seed in 0..40 {
        let weather = if seed % 2 == 0 {
            Weather::FAIR
        } else {
            Weather::FOUL
        };
        let mut world = World::new(weather, seed);
        let (call, theirs) = in_call(&mut world, options());
        world.command(0, reinvite(call));
        world.command(1, reinvite(theirs));
        assert!(world.until(0, MINUTE * 5, is_renegotiated), "seed {seed}");
        assert!(world.until(1, MINUTE * 5, is_renegotiated), "seed {seed}");
        world.pass(MINUTE * 2);
        assert!(!world.told(0).iter().any(|event| event.starts_with("ended")));
    }
}

#[test]
fn a_refused_offer_leaves_the_call_as_it_is() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.agent("bob", |event| match event {
        AgentEvent::Reinvite { call, .. } => {
            vec![Command::RejectReinvite {
                call: *call,
                code: 488,
                headers: Vec::new(),
            }]
        }
        _ => answering(event),
    });
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.pass(SECOND);
    world.command(alice, reinvite(call));
    world.pass(MINUTE);
    assert_eq!(world.told(alice).last().unwrap(), "reinvite rejected 488");
    world.hangup(alice, call);
    world.pass(MINUTE);
    assert_eq!(
        world.told(bob).last().unwrap(),
        "ended Bye 200 Session Terminated"
    );
    world.assert_idle(alice);
    world.assert_idle(bob);
}

#[test]
fn an_offer_may_be_asked_for() {
    let mut world = World::new(Weather::FAIR, 1);
    let (call, _) = in_call(&mut world, options());
    world.told(1);
    world.command(
        0,
        Command::Reinvite {
            call,
            headers: Vec::new(),
            body: None,
        },
    );
    world.pass(SECOND);
    assert_eq!(world.told(0).last().unwrap(), "reinvite accepted");
    assert_eq!(world.told(1), ["reinvite"]);
    world.command(
        0,
        Command::Acknowledge {
            call,
            body: sdp("answer"),
        },
    );
    world.pass(SECOND);
    assert_eq!(world.told(1), ["acknowledged answer"]);
}

/// Bob, in a call with a hand.
pub fn with_hand(
    world: &mut World,
    change: impl FnOnce(&mut portunus_sip::message::Request),
) -> (usize, usize, CallId, Dialog) {
    let bob = world.agent("bob", |event| match event {
        AgentEvent::Reinvite { .. } => Vec::new(),
        _ => answering(event),
    });
    let hand = world.hand();
    let mut invite = invite_by_hand(hand, "sip:bob@192.0.2.1", "1");
    change(&mut invite);
    world.send(hand, bob, invite.clone());
    let responses = world.responses(hand, SECOND / 10);
    let dialog = Dialog::of_response(&invite, responses.last().unwrap()).unwrap();
    world.send(hand, bob, ack(&dialog, 1, hand, "2"));
    world.pass(SECOND / 10);
    let call = world.events(bob).iter().find_map(is_incoming).unwrap();
    world.told(bob);
    (bob, hand, call, dialog)
}

#[test]
fn a_second_offer_waits_for_the_first() {
    let mut world = World::new(Weather::FAIR, 1);
    let (bob, hand, call, mut dialog) = with_hand(&mut world, |_| {});
    let mut first = within(&mut dialog, Method::Invite, hand, "10");
    first.set_body("application/sdp", "one");
    world.send(hand, bob, first);
    let mut second = within(&mut dialog, Method::Invite, hand, "11");
    second.set_body("application/sdp", "two");
    world.pass(SECOND / 10);
    world.send(hand, bob, second);
    let responses = world.responses(hand, SECOND / 10);
    let codes: Vec<u16> = responses
        .iter()
        .map(|response| response.status.code())
        .collect();
    assert_eq!(codes, [100, 500]);
    assert!(responses[1].headers.has("Retry-After"));
    // Bob's own waits, too.
    world.command(bob, reinvite(call));
    assert_eq!(world.told(bob), ["reinvite one"]);
    assert!(world.requests(hand, SECOND).is_empty());
    // The first is taken back.
    let mut cancel = within(&mut dialog, Method::Cancel, hand, "10");
    cancel.headers.set("CSeq", "2 CANCEL");
    world.send(hand, bob, cancel);
    let codes: Vec<u16> = world
        .responses(hand, SECOND / 10)
        .iter()
        .map(|response| response.status.code())
        .collect();
    assert_eq!(codes, [200, 487]);
    assert_eq!(world.told(bob), ["reinvite cancelled"]);
    let own = world.next_request(hand, SECOND);
    let own = (own.method, own.body);
    assert_eq!(own, (Method::Invite, b"again".to_vec()));
}

#[test]
fn the_target_moves_with_an_offer() {
    let mut world = World::new(Weather::FAIR, 1);
    let (bob, hand, call, mut dialog) = with_hand(&mut world, |_| {});
    let elsewhere = world.hand();
    let mut again = within(&mut dialog, Method::Invite, hand, "10");
    again
        .headers
        .set("Contact", format!("<sip:hand@{}>", address(elsewhere)));
    again.set_body("application/sdp", "two");
    world.send(hand, bob, again);
    world.pass(SECOND / 10);
    world.command(
        bob,
        Command::AcceptReinvite {
            call,
            headers: Vec::new(),
            body: Some(sdp("answer")),
        },
    );
    world.send(hand, bob, ack(&dialog, 2, hand, "12"));
    world.pass(SECOND / 10);
    world.hangup(bob, call);
    assert_eq!(
        world.requests(elsewhere, SECOND / 10)[0].method,
        Method::Bye
    );
}

#[test]
fn a_call_that_the_peer_has_forgotten_is_ended() {
    let mut world = World::new(Weather::FAIR, 1);
    let (bob, hand, call, _) = with_hand(&mut world, |_| {});
    world.command(bob, reinvite(call));
    let offer = world.requests(hand, SECOND / 10).remove(0);
    world.send(hand, bob, answer(&offer, 481, "", hand));
    let requests = world.requests(hand, SECOND / 10);
    assert_eq!(
        requests
            .iter()
            .map(|one| one.method.as_str())
            .collect::<Vec<_>>(),
        ["ACK", "BYE"]
    );
    world.send(hand, bob, answer(&requests[1], 481, "", hand));
    world.pass(SECOND);
    assert_eq!(
        world.told(bob),
        ["reinvite rejected 481", "ended Lost 481 Call Lost"]
    );
}

#[test]
fn provisional_answers_are_reliable_where_the_caller_requires_it() {
    for seed in 0..30 {
        let mut world = World::new(Weather::FOUL, seed);
        let alice = world.agent("alice", passive);
        let bob = world.agent("bob", |event| match event {
            AgentEvent::Incoming { call, .. } => vec![
                Command::Progress {
                    call: *call,
                    code: 183,
                    headers: Vec::new(),
                    body: Some(sdp("early")),
                },
                Command::Progress {
                    call: *call,
                    code: 180,
                    headers: Vec::new(),
                    body: None,
                },
                Command::Accept {
                    call: *call,
                    headers: Vec::new(),
                    body: None,
                },
            ],
            _ => Vec::new(),
        });
        let mut reliable = invite("sip:bob@192.0.2.2");
        reliable.headers.push(("Require".into(), "100rel".into()));
        let call = world.invite(alice, 1, reliable);
        world.until(alice, MINUTE * 2, |event| {
            (short(event) == "provisional 183").then_some(())
        });
        world.until(alice, MINUTE * 2, is_accepted);
        world.hangup(alice, call);
        world.until(bob, MINUTE * 2, is_ended);
        world.pass(MINUTE * 2);
        world.assert_idle(alice);
        world.assert_idle(bob);
    }
}

#[test]
fn a_reliable_answer_that_is_not_acknowledged_ends_the_call() {
    let mut world = World::new(Weather::FAIR, 1);
    let bob = world.agent("bob", |event| match event {
        AgentEvent::Incoming { call, .. } => {
            vec![Command::Progress {
                call: *call,
                code: 183,
                headers: Vec::new(),
                body: Some(sdp("early")),
            }]
        }
        _ => Vec::new(),
    });
    let hand = world.hand();
    let mut invite = invite_by_hand(hand, "sip:bob@192.0.2.1", "1");
    invite.headers.push("Require", "100rel");
    world.send(hand, bob, invite);
    let codes: Vec<u16> = world
        .responses(hand, SECOND * 40)
        .iter()
        .map(|response| response.status.code())
        .collect();
    assert_eq!(codes[..7], [100, 183, 183, 183, 183, 183, 183]);
    assert_eq!(codes[codes.len() - 2..], [504, 504]);
    assert_eq!(
        world.told(bob),
        ["incoming", "ended Declined 504 Server Time-out"]
    );
}

#[test]
fn a_session_is_refreshed_as_the_peer_asks() {
    let mut world = World::new(Weather::FAIR, 1);
    let (bob, hand, _, _) = with_hand(&mut world, |invite| {
        invite.headers.push("Session-Expires", "600;refresher=uas");
        invite.headers.push("Supported", "timer");
    });
    world.pass(SECOND * 299);
    assert!(world.inbox(hand).is_empty());
    let refresh = world.requests(hand, SECOND * 2).remove(0);
    assert_eq!(refresh.method, Method::Invite);
    assert_eq!(refresh.body, b"answer");
    assert_eq!(
        refresh.headers.get("Session-Expires"),
        Some("600;refresher=uac")
    );
    let mut response = answer(&refresh, 200, "", hand);
    response
        .headers
        .push("Session-Expires", "600;refresher=uac");
    response.headers.push("Require", "timer");
    response.set_body("application/sdp", "offer");
    world.send(hand, bob, response);
    world.pass(SECOND);
    assert!(world.told(bob).is_empty());
    // Nobody answers the next.
    world.pass(MINUTE * 8);
    assert_eq!(world.told(bob).last().unwrap(), "ended Lost 408 Call Lost");
    world.assert_idle(bob);
}

#[test]
fn a_refresh_that_is_refused_is_tried_again() {
    let mut world = World::new(Weather::FAIR, 1);
    let (bob, hand, _, _) = with_hand(&mut world, |invite| {
        invite.headers.push("Session-Expires", "600;refresher=uas");
        invite.headers.push("Supported", "timer");
    });
    let invites = |world: &mut World, time| {
        let requests = world.requests(hand, time).into_iter();
        let mut invites = requests.filter(|request| request.method == Method::Invite);
        invites.next().unwrap()
    };
    let refresh = invites(&mut world, SECOND * 301);
    world.send(hand, bob, answer(&refresh, 503, "", hand));
    let again = invites(&mut world, SECOND * 100);
    let mut response = answer(&again, 200, "", hand);
    response
        .headers
        .push("Session-Expires", "600;refresher=uac");
    response.set_body("application/sdp", "offer");
    world.send(hand, bob, response);
    world.pass(SECOND * 299);
    assert!(world.told(bob).is_empty());
}

#[test]
fn a_call_that_is_not_accepted_cannot_be_changed() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.agent("bob", ringing);
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    let theirs = world.until(bob, SECOND, is_incoming);
    for (node, call) in [(alice, call), (bob, theirs)] {
        world.command(node, reinvite(call));
        assert!(!world.until(node, SECOND, is_renegotiated));
    }
}

#[test]
fn a_session_that_the_peer_does_not_refresh_is_over() {
    let mut world = World::new(Weather::FAIR, 1);
    let (bob, hand, _, _) = with_hand(&mut world, |invite| {
        invite.headers.push("Session-Expires", "600;refresher=uac");
        invite.headers.push("Supported", "timer");
    });
    world.pass(SECOND * 560);
    assert!(world.inbox(hand).is_empty());
    let bye = world.requests(hand, SECOND * 10).remove(0);
    assert_eq!(bye.method, Method::Bye);
    assert_eq!(bye.headers.reasons().unwrap()[0].cause(), Some(408));
    world.send(hand, bob, answer(&bye, 200, "", hand));
    world.pass(SECOND);
    assert_eq!(world.told(bob), ["ended Lost 408 Session Expired"]);
}

#[test]
fn a_session_that_is_too_short_is_refused() {
    let mut world = World::new(Weather::FAIR, 1);
    let bob = world.agent("bob", answering);
    let hand = world.hand();
    let mut invite = invite_by_hand(hand, "sip:bob@192.0.2.1", "1");
    invite.headers.push("Session-Expires", "30");
    world.send(hand, bob, invite);
    let responses = world.responses(hand, SECOND / 10);
    assert_eq!(
        (
            responses[0].status.code(),
            responses[0].headers.get("Min-SE")
        ),
        (422, Some("90"))
    );
}

/// Answers each request of a method with 422 and a larger Min-SE. Returns the number of requests.
fn never_long_enough(world: &mut World, (hand, other): (usize, usize), method: Method) -> u64 {
    let mut asked = 0;
    for _ in 0..1_000 {
        let requests = world.requests(hand, SECOND / 10).into_iter();
        for request in requests.filter(|request| request.method == method) {
            asked += 1;
            let mut refused = answer(&request, 422, "", hand);
            refused.headers.push("Min-SE", 1_000 + asked);
            world.send(hand, other, refused);
        }
    }
    asked
}

#[test]
fn a_peer_that_wants_ever_longer_sessions_is_not_called_for_ever() {
    let mut world = World::new(Weather::FAIR, 1);
    let mut with = options();
    with.session.offer = Some(SECOND * 200);
    let alice = world.agent_with(with, passive, |_| profile("sip:alice@192.0.2.1"));
    let hand = world.hand();
    world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    let asked = never_long_enough(&mut world, (hand, alice), Method::Invite);
    assert_eq!(asked, 9);
    assert_eq!(
        world.told(alice),
        ["ended Rejected 422 Session Interval Too Small"]
    );
    world.assert_idle(alice);
}

#[test]
fn a_session_that_each_proxy_wants_longer_is_refreshed() {
    for update in [false, true] {
        let mut world = World::new(Weather::FAIR, 1);
        let (bob, hand, _, _) = with_hand(&mut world, |invite| {
            invite.headers.push("Session-Expires", "600;refresher=uas");
            invite.headers.push("Supported", "timer");
            if update {
                invite.headers.push("Allow", "INVITE, ACK, BYE, UPDATE");
            }
        });
        world.pass(SECOND * 299);
        let method = [Method::Invite, Method::Update][usize::from(update)].clone();
        let mut intervals = Vec::new();
        for least in ["700", "800", ""] {
            let refresh = world
                .requests(hand, SECOND * 2)
                .into_iter()
                .find(|request| request.method == method)
                .unwrap();
            let asked = refresh.headers.session_expires().unwrap().unwrap();
            intervals.push(asked.interval.as_secs());
            let code = if least.is_empty() { 200 } else { 422 };
            let mut response = answer(&refresh, code, "", hand);
            if code == 200 {
                let agreed = "800;refresher=uac";
                response.headers.push("Session-Expires", agreed);
                response.set_body("application/sdp", "offer");
            } else {
                response.headers.push("Min-SE", least);
            }
            world.send(hand, bob, response);
        }
        assert_eq!(intervals, [600, 700, 800], "update {update}");
        // The next is due after half of that.
        world.pass(SECOND * 395);
        let is_refresh = |request: &portunus_sip::message::Request| request.method == method;
        assert!(
            !world.inbox(hand).iter().any(
                |it| matches!(it, portunus_sip::message::Message::Request(it) if is_refresh(it))
            )
        );
        let requests = world.requests(hand, SECOND * 10);
        assert!(requests.iter().any(is_refresh), "update {update}");
    }
}

#[test]
fn a_refresh_that_is_never_long_enough_is_given_up() {
    let mut world = World::new(Weather::FAIR, 1);
    let (bob, hand, _, _) = with_hand(&mut world, |invite| {
        invite.headers.push("Session-Expires", "100;refresher=uas");
        invite.headers.push("Supported", "timer");
    });
    let asked = never_long_enough(&mut world, (hand, bob), Method::Invite);
    assert!((9..20).contains(&asked), "{asked}");
    world.pass(MINUTE);
    assert_eq!(world.told(bob), ["ended Lost 408 Session Expired"]);
}

#[test]
fn a_session_of_two_agents_lasts_as_long_as_both_are_there() {
    for update in [false, true] {
        let mut world = World::new(Weather::FOUL, 5);
        let mut with = options();
        with.session.offer = Some(SECOND * 200);
        with.update = update;
        let (call, _) = in_call(&mut world, with);
        world.pass(MINUTE * 60);
        assert_eq!(
            (
                world.the_agent(0).load().calls,
                world.the_agent(1).load().calls
            ),
            (1, 1),
            "update {update}"
        );
        assert_eq!(
            world
                .told(1)
                .iter()
                .any(|event| event.starts_with("reinvite")),
            !update
        );
        // One vanishes.
        world.silent.push(address(1));
        let (cause, _) = world.until(0, MINUTE * 6, is_ended);
        assert_eq!(cause, Cause::Lost, "{call}");
    }
}

#[test]
fn update_is_taken_only_where_it_is_allowed() {
    let mut world = World::new(Weather::FAIR, 1);
    let (bob, hand, _, mut dialog) = with_hand(&mut world, |_| {});
    world.send(hand, bob, within(&mut dialog, Method::Update, hand, "10"));
    let responses = world.responses(hand, SECOND / 10);
    assert_eq!(responses[0].status.code(), 405);
    assert!(
        !responses[0]
            .headers
            .get("Allow")
            .unwrap()
            .contains("UPDATE")
    );
    let mut world = World::new(Weather::FAIR, 1);
    let mut with = options();
    with.update = true;
    let bob = world.agent_with(with, answering, |_| profile("sip:bob@192.0.2.1"));
    let hand = world.hand();
    let invite = invite_by_hand(hand, "sip:bob@192.0.2.1", "1");
    world.send(hand, bob, invite.clone());
    let responses = world.responses(hand, SECOND / 10);
    let mut dialog = Dialog::of_response(&invite, responses.last().unwrap()).unwrap();
    world.send(hand, bob, ack(&dialog, 1, hand, "2"));
    let mut update = within(&mut dialog, Method::Update, hand, "10");
    update.set_body("application/sdp", "new");
    world.send(hand, bob, update);
    world.pass(SECOND / 10);
    let answers: Vec<Message> = world.inbox(hand);
    assert!(
        matches!(&answers[0], Message::Response(response) if response.status.code() == 200 && response.body == b"answer")
    );
    assert!(world.told(bob).contains(&"reinvite new".to_owned()));
}
