//! The extensions in our requests, and the requests that peers want changed (420, 421).

use portunus_sip::agent::{AgentEvent, Cause, Command, RequestId};
use portunus_sip::message::{Method, Request};

use crate::races::{answer, invite_by_hand, within};
use crate::renegotiation::with_hand;
use crate::world::*;

fn calling() -> (World, usize, usize) {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.hand();
    world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    (world, alice, bob)
}

fn number(request: &Request) -> u32 {
    request.headers.cseq().unwrap().unwrap().number
}

/// Returns the INVITE after a refusal with these header fields, or `None` if the call ends.
fn asked_again(code: u16, headers: &[(&str, &str)]) -> Option<(Request, Request)> {
    let (mut world, alice, bob) = calling();
    let first = world.next_request(bob, SECOND);
    let mut refusal = answer(&first, code, "bob", bob);
    for (name, value) in headers {
        refusal.headers.push(name, value);
    }
    world.send(bob, alice, refusal);
    assert_eq!(world.next_request(bob, SECOND).method, Method::Ack);
    let Some(again) = world.requests(bob, SECOND).into_iter().next() else {
        let (cause, ended) = world.until(alice, SECOND, is_ended);
        assert_eq!((cause, ended), (Cause::Rejected, code));
        return None;
    };
    assert_eq!(again.method, Method::Invite);
    assert_eq!(number(&again), number(&first) + 1);
    assert_eq!(again.headers.call_id(), first.headers.call_id());
    let mut ok = answer(&again, 200, "bob", bob);
    ok.set_body("application/sdp", "answer");
    world.send(bob, alice, ok);
    world.until(alice, SECOND, is_accepted);
    Some((first, again))
}

#[test]
fn a_call_of_ours_says_what_we_can() {
    let (mut world, _, bob) = calling();
    let invite = world.next_request(bob, SECOND);
    for one in ["replaces", "timer", "100rel"] {
        assert!(invite.headers.has_token("Supported", one), "{one}");
    }
    let allowed = invite.headers.allow().unwrap();
    for method in [Method::Bye, Method::Info, Method::Refer, Method::Prack] {
        assert!(allowed.contains(&method), "{method}");
    }
}

/// An offer in a reliable provisional answer would go unanswered.
#[test]
fn a_call_without_an_offer_asks_for_no_reliable_answers() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.hand();
    let mut offerless = invite("sip:bob@192.0.2.2");
    offerless.offer = None;
    world.invite(alice, 1, offerless);
    let invite = world.next_request(bob, SECOND);
    assert!(!invite.headers.has_token("Supported", "100rel"));
    assert!(invite.headers.has_token("Supported", "timer"));
}

#[test]
fn what_we_say_within_a_call_and_beside_it_names_what_we_can() {
    let mut world = World::new(Weather::FAIR, 1);
    let (alice, bob, call, _) = with_hand(&mut world, |_| {});
    let message = |body: &str| Command::InDialog {
        call,
        request: RequestId::new(1),
        method: Method::Message,
        headers: Vec::new(),
        body: Some(sdp(body)),
    };
    world.command(alice, message("hello"));
    let message = world.next_request(bob, SECOND);
    world.send(bob, alice, answer(&message, 200, "hand", bob));
    world.pass(SECOND);
    world.hangup(alice, call);
    let bye = world.requests(bob, SECOND).pop().unwrap();
    assert_eq!(bye.method, Method::Bye);
    for request in [message, bye] {
        assert!(request.headers.has_token("Supported", "timer"));
        assert!(request.headers.has("Allow"), "{}", request.method);
    }
}

#[test]
fn a_peer_that_insists_on_what_we_can_is_called_again_with_that() {
    let (first, again) = asked_again(421, &[("Require", "timer, 100REL")]).unwrap();
    assert!(!first.headers.has("Require"));
    assert_eq!(again.headers.get("Require"), Some("timer, 100REL"));
    // It wants an unknown extension, or names none.
    assert!(asked_again(421, &[("Require", "timer, precondition")]).is_none());
    assert!(asked_again(421, &[]).is_none());
}

#[test]
fn a_peer_that_does_not_take_what_we_can_is_called_again_without_it() {
    let (_, again) = asked_again(420, &[("Unsupported", "100rel, timer")]).unwrap();
    assert_eq!(again.headers.get("Supported"), Some("replaces"));
    assert!(asked_again(420, &[("Unsupported", "something")]).is_none());
    assert!(asked_again(420, &[]).is_none());
}

#[test]
fn a_peer_that_always_wants_something_else_is_not_asked_for_ever() {
    let (mut world, alice, bob) = calling();
    let mut asked = 0;
    for round in 0..20 {
        let Some(invite) = world
            .requests(bob, SECOND)
            .into_iter()
            .find(|request| request.method == Method::Invite)
        else {
            break;
        };
        asked += 1;
        let mut refusal = answer(&invite, if round % 2 == 0 { 421 } else { 420 }, "bob", bob);
        refusal.headers.push("Require", "timer");
        refusal.headers.push("Unsupported", "timer");
        world.send(bob, alice, refusal);
    }
    assert!((2..=4).contains(&asked), "{asked}");
    world.until(alice, SECOND, is_ended);
}

#[test]
fn a_change_of_a_call_is_asked_for_again_with_what_the_peer_insists_on() {
    let mut world = World::new(Weather::FAIR, 1);
    let (alice, bob, call, _) = with_hand(&mut world, |_| {});
    world.command(
        alice,
        Command::Reinvite {
            call,
            headers: Vec::new(),
            body: Some(sdp("held")),
        },
    );
    let first = world.next_request(bob, SECOND);
    let mut refusal = answer(&first, 421, "bob", bob);
    refusal.headers.push("Require", "timer");
    world.send(bob, alice, refusal);
    assert_eq!(world.next_request(bob, SECOND).method, Method::Ack);
    let again = world.next_request(bob, SECOND);
    assert_eq!(again.headers.get("Require"), Some("timer"));
    assert_eq!(number(&again), number(&first) + 1);
}

/// Trunks: nobody is called on behalf of a telephone.
#[test]
fn a_transfer_that_nobody_would_make_is_refused_at_once() {
    let mut world = World::new(Weather::FAIR, 1);
    let mut with = options();
    with.strangers = true;
    let room = world.agent_with(with, answering, |_| {
        let mut profile = profile("sip:trunk@192.0.2.1");
        profile.refers = false;
        profile
    });
    let hand = world.hand();
    // By a call for nobody whom we know, and by one for the account.
    for (branch, called) in [("1", "sip:1234@192.0.2.1"), ("2", "sip:trunk@192.0.2.1")] {
        let invite = invite_by_hand(hand, called, branch);
        world.send(hand, room, invite.clone());
        let ok = world.responses(hand, SECOND / 10).pop().unwrap();
        assert_eq!(ok.status.code(), 200);
        assert!(
            !ok.headers.get("Allow").unwrap().contains("REFER"),
            "{called}"
        );
        let mut dialog = portunus_sip::dialog::Dialog::of_response(&invite, &ok).unwrap();
        let ack = crate::races::ack(&dialog, 1, hand, &format!("a{branch}"));
        world.send(hand, room, ack);
        let mut refer = within(&mut dialog, Method::Refer, hand, &format!("r{branch}"));
        refer.headers.push("Refer-To", "<sip:carol@192.0.2.3>");
        world.send(hand, room, refer);
        let refused = world.responses(hand, SECOND).pop().unwrap();
        assert_eq!(refused.status.code(), 405, "{called}");
        assert!(!refused.headers.get("Allow").unwrap().contains("REFER"));
    }
    let mut alone = invite_by_hand(hand, "sip:trunk@192.0.2.1", "3");
    alone.method = Method::Refer;
    alone.headers.set("CSeq", "1 REFER");
    alone.headers.push("Refer-To", "<sip:carol@192.0.2.3>");
    alone.body.clear();
    world.send(hand, room, alone);
    let refused = world.responses(hand, SECOND).pop().unwrap();
    assert_eq!(refused.status.code(), 405);
    let told = world.events(room).iter();
    let refers = told.filter(|event| matches!(event, AgentEvent::Refer { .. }));
    assert_eq!(refers.count(), 0);
    assert_eq!(world.the_agent(room).load().subscriptions, 0);
}
