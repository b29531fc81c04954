//! Calls that are held and resumed at once, while messages are lost: in the end the peer has to
//! know the state.

use portunus_sip::agent::{AgentEvent, CallId, Command};
use portunus_sip::message::Method;

use crate::races::answer;
use crate::renegotiation::{in_call, is_renegotiated, reinvite, with_hand};
use crate::world::*;

fn offer(call: CallId, body: &str) -> Command {
    Command::Reinvite {
        call,
        headers: Vec::new(),
        body: Some(sdp(body)),
    }
}

/// The last offer that an agent was told of.
fn last_offer(world: &mut World, node: usize) -> Option<String> {
    let told = world.told(node);
    let mut offers = told
        .iter()
        .filter_map(|told| told.strip_prefix("reinvite "));
    let last = offers.rfind(|it| !it.starts_with("accepted"));
    last.map(str::to_owned)
}

#[test]
fn whichever_messages_are_lost_the_peer_knows_that_a_call_goes_on() {
    // Each of the first ten messages, and each two of them that follow each other.
    for first in 0..10 {
        for together in 1..=3 {
            let mut world = World::new(Weather::FAIR, first);
            let (call, _) = in_call(&mut world, options());
            world.told(1);
            world.doomed = (first..first + together).collect();
            world.command(0, offer(call, "held"));
            assert!(
                world.until(0, MINUTE, is_renegotiated),
                "{first} {together}"
            );
            world.command(0, offer(call, "on"));
            assert!(
                world.until(0, MINUTE, is_renegotiated),
                "{first} {together}"
            );
            world.pass(MINUTE);
            assert_eq!(
                last_offer(&mut world, 1).as_deref(),
                Some("on"),
                "{first} {together}"
            );
        }
    }
}

#[test]
fn offers_of_both_sides_at_once_are_made_whichever_messages_are_lost() {
    for first in 0..12 {
        let mut world = World::new(Weather::FAIR, first);
        let (call, theirs) = in_call(&mut world, options());
        world.told(1);
        world.doomed = vec![first];
        world.command(0, offer(call, "held"));
        world.command(1, offer(theirs, "theirs"));
        assert!(world.until(0, MINUTE, is_renegotiated), "{first}");
        world.command(0, offer(call, "on"));
        assert!(world.until(0, MINUTE, is_renegotiated), "{first}");
        world.pass(MINUTE);
        assert_eq!(last_offer(&mut world, 1).as_deref(), Some("on"), "{first}");
    }
}

#[test]
fn an_offer_waits_for_the_end_of_a_refresh() {
    let mut world = World::new(Weather::FAIR, 1);
    let (bob, hand, call, _) = with_hand(&mut world, |invite| {
        invite.headers.push("Session-Expires", "600;refresher=uas");
        invite.headers.push("Supported", "timer");
    });
    let refresh = world.next_request(hand, MINUTE * 6);
    assert_eq!(refresh.body, b"answer");
    world.command(bob, reinvite(call));
    let bodies = |requests: Vec<portunus_sip::message::Request>| {
        let bodies = requests.into_iter().map(|request| request.body);
        bodies.collect::<Vec<_>>()
    };
    assert_eq!(
        bodies(world.requests(hand, SECOND / 4)),
        Vec::<Vec<u8>>::new()
    );
    let mut response = answer(&refresh, 200, "", hand);
    response.set_body("application/sdp", "offer");
    world.send(hand, bob, response);
    let requests = world.requests(hand, SECOND / 10);
    assert_eq!(requests[0].method, Method::Ack);
    assert_eq!(requests[1].body, b"again");
    assert!(world.told(bob).is_empty());
}

#[test]
fn a_peer_that_is_busy_with_an_offer_is_asked_again() {
    let mut world = World::new(Weather::FAIR, 1);
    let (bob, hand, call, _) = with_hand(&mut world, |_| {});
    world.command(bob, reinvite(call));
    let first = world.next_request(hand, SECOND);
    let mut later = answer(&first, 500, "", hand);
    later.headers.push("Retry-After", "3");
    world.send(hand, bob, later);
    let requests = world.requests(hand, SECOND * 2);
    assert_eq!(requests.len(), 1, "its ACK only");
    let again = world.next_request(hand, SECOND * 2);
    assert_eq!(
        (again.method.clone(), &*again.body),
        (Method::Invite, &b"again"[..])
    );
    let mut taken = answer(&again, 200, "", hand);
    taken.set_body("application/sdp", "answer");
    world.send(hand, bob, taken);
    world.pass(SECOND);
    assert_eq!(world.told(bob), ["reinvite accepted"]);
    assert!(
        !world
            .events(bob)
            .iter()
            .any(|event| matches!(event, AgentEvent::Ended { .. }))
    );
}
