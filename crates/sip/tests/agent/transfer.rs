//! Transfers: REFER in both roles, Replaces.

use portunus_sip::agent::{AgentEvent, CallId, Command, ReferId, RequestId};
use portunus_sip::message::{Message, Method, Request};

use crate::races::{invite_by_hand, within};
use crate::renegotiation::with_hand;
use crate::world::*;

fn refer(call: CallId, to: &str) -> Command {
    Command::InDialog {
        call,
        request: RequestId::new(9),
        method: Method::Refer,
        headers: vec![
            ("Refer-To".into(), to.into()),
            ("Referred-By".into(), "<sip:alice@192.0.2.1>".into()),
        ],
        body: None,
    }
}

fn is_refer(event: &AgentEvent) -> Option<ReferId> {
    match event {
        AgentEvent::Refer { refer, .. } => Some(*refer),
        _ => None,
    }
}

fn notify(refer: ReferId, code: u16, last: bool) -> Command {
    Command::NotifyRefer {
        refer,
        code,
        reason: None,
        last,
    }
}

#[test]
fn a_call_is_transferred() {
    for seed in 0..20 {
        let mut world = World::new(Weather::FOUL, seed);
        let alice = world.agent("alice", passive);
        let bob = world.agent("bob", answering);
        let carol = world.agent("carol", answering);
        let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
        world.until(alice, MINUTE, is_accepted);
        world.command(alice, refer(call, "<sip:carol@192.0.2.3>"));
        let asked = world.until(bob, MINUTE, is_refer);
        world.invite(bob, 7, invite("sip:carol@192.0.2.3"));
        world.command(bob, notify(asked, 180, false));
        world.until(bob, MINUTE, is_accepted);
        world.pass(MINUTE);
        world.command(bob, notify(asked, 200, true));
        world.until(alice, MINUTE, |event| {
            (short(event) == "refer notify terminated SIP/2.0 200 OK").then_some(())
        });
        world.pass(MINUTE);
        world.hangup(alice, call);
        world.until(alice, MINUTE, is_ended);
        world.pass(MINUTE);
        assert_eq!(
            (
                world.the_agent(bob).load().calls,
                world.the_agent(carol).load().calls
            ),
            (1, 1),
            "seed {seed}"
        );
        assert_eq!(world.the_agent(bob).load().subscriptions, 0);
        world.assert_idle(alice);
    }
}

#[test]
fn the_transferor_hears_how_it_goes() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.agent("bob", answering);
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.pass(SECOND);
    world.told(alice);
    world.command(alice, refer(call, "<sip:carol@192.0.2.3>"));
    let asked = world.until(bob, SECOND, is_refer);
    world.pass(SECOND);
    world.command(bob, notify(asked, 180, false));
    world.pass(SECOND);
    world.command(bob, notify(asked, 486, true));
    world.pass(SECOND);
    let mut told = world.told(alice);
    told.sort();
    assert_eq!(
        told,
        [
            "refer notify active SIP/2.0 100 Trying",
            "refer notify active SIP/2.0 180 Ringing",
            "refer notify terminated SIP/2.0 486 Busy Here",
            "response 202 Accepted",
        ]
    );
    // It is over: more is not sent.
    world.command(bob, notify(asked, 200, true));
    world.pass(SECOND);
    assert!(world.told(alice).is_empty());
}

#[test]
fn a_transfer_that_nobody_follows_is_forgotten() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.agent("bob", answering);
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.pass(SECOND);
    world.command(alice, refer(call, "<sip:carol@192.0.2.3>"));
    world.pass(MINUTE * 6);
    assert!(
        world
            .told(alice)
            .contains(&"refer notify terminated SIP/2.0 100 Trying".to_owned())
    );
    assert_eq!(world.the_agent(bob).load().subscriptions, 0);
}

#[test]
fn the_transferor_may_hang_up_at_once() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.agent("bob", answering);
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.pass(SECOND);
    world.command(alice, refer(call, "<sip:carol@192.0.2.3>"));
    let asked = world.until(bob, SECOND, is_refer);
    world.hangup(alice, call);
    world.pass(SECOND);
    world.command(bob, notify(asked, 200, true));
    world.pass(MINUTE);
    world.assert_idle(alice);
    world.assert_idle(bob);
}

#[test]
fn replaces_names_the_call_that_is_there() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.agent("bob", answering);
    let carol = world.agent("carol", passive);
    world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    let dialog = world.until(alice, SECOND, |event| match event {
        AgentEvent::Accepted { dialog, .. } => Some(dialog.clone()),
        _ => None,
    });
    let first = world.until(bob, SECOND, is_incoming);
    let replaces = |tag: &str| {
        let value = format!(
            "{};to-tag={};from-tag={tag}",
            dialog.call_id, dialog.remote_tag
        );
        let mut invite = invite("sip:bob@192.0.2.2");
        invite.headers.push(("Replaces".into(), value));
        invite
    };
    let replaced = |event: &AgentEvent| match event {
        AgentEvent::Incoming { replaces, .. } => Some(*replaces),
        _ => None,
    };
    world.invite(carol, 2, replaces(&dialog.local_tag));
    assert_eq!(world.until(bob, SECOND, replaced), Some(first));
    world.invite(carol, 3, replaces("another"));
    assert_eq!(world.until(bob, SECOND, replaced), None);
}

#[test]
fn a_refer_outside_of_calls_is_told_and_answered() {
    let mut world = World::new(Weather::FOUL, 4);
    let alice = world.agent("alice", passive);
    let bob = world.agent("bob", passive);
    world.command(
        alice,
        Command::OutOfDialog {
            account: ACCOUNT,
            request: RequestId::new(1),
            method: Method::Refer,
            uri: uri("sip:bob@192.0.2.2"),
            call_id: None,
            headers: vec![("Refer-To".into(), "<sip:carol@192.0.2.3>".into())],
            body: None,
        },
    );
    world.until(alice, MINUTE, |event| {
        (short(event) == "response 202 Accepted").then_some(())
    });
    world.until(bob, MINUTE, is_refer);
    world.pass(MINUTE * 8);
    world.assert_idle(bob);
}

/// A REFER of a hand outside of calls.
fn refer_by_hand(hand: usize, branch: &str) -> Request {
    let mut request = invite_by_hand(hand, "sip:bob@192.0.2.1", branch);
    request.method = Method::Refer;
    request.headers.set("CSeq", "1 REFER");
    request.headers.push("Refer-To", "<sip:carol@192.0.2.9>");
    request.headers.remove("Content-Type");
    request.body.clear();
    request
}

/// Returns the number of accepted REFERs. The others get 503.
fn taken(world: &mut World, hand: usize, count: usize) -> usize {
    for number in 0..count {
        world.send(hand, 0, refer_by_hand(hand, &format!("{hand}-{number}")));
    }
    let responses = world.responses(hand, SECOND);
    let of = |code| {
        let with = responses.iter().filter(|it| it.status.code() == code);
        with.count()
    };
    assert_eq!(of(202) + of(503), count);
    of(202)
}

#[test]
fn one_stranger_does_not_take_the_room_for_the_refers_of_all() {
    let mut world = World::new(Weather::FAIR, 1);
    let bob = world.agent("bob", passive);
    let (flooding, other) = (world.hand(), world.hand());
    assert_eq!(taken(&mut world, flooding, 40), 16);
    assert_eq!(taken(&mut world, other, 3), 3);
    // A peer that does not answer is forgotten, and may ask again.
    world.pass(MINUTE);
    world.told(bob);
    world.send(flooding, bob, refer_by_hand(flooding, "later"));
    let responses = world.responses(flooding, SECOND);
    assert!(responses.iter().any(|it| it.status.code() == 202));
}

#[test]
fn strangers_who_come_by_a_proxy_do_not_take_the_room_of_other_accounts() {
    let mut world = World::new(Weather::FAIR, 1);
    let mut with = options();
    with.limits.trusted = vec![(address(0).ip(), 24)];
    world.agent_with(with, passive, |_| profile("sip:bob@192.0.2.1"));
    let proxy = world.hand();
    assert_eq!(taken(&mut world, proxy, 90), 64);
}

#[test]
fn a_call_has_a_bound_of_refers_of_its_own() {
    let mut world = World::new(Weather::FAIR, 1);
    let (bob, hand, _, mut dialog) = with_hand(&mut world, |_| {});
    let mut ask = |world: &mut World, numbers: std::ops::Range<u32>| {
        for number in numbers {
            let branch = format!("r{number}");
            let mut refer = within(&mut dialog, Method::Refer, hand, &branch);
            refer.headers.push("Refer-To", "<sip:carol@192.0.2.9>");
            world.send(hand, bob, refer);
            world.pass(SECOND / 10);
        }
        let inbox = world.inbox(hand);
        let of = |code| {
            let is = |message: &&Message| match message {
                Message::Response(response) => response.status.code() == code,
                Message::Request(_) => false,
            };
            inbox.iter().filter(is).count()
        };
        (of(202), of(503))
    };
    assert_eq!(ask(&mut world, 0..10), (8, 2));
    let refers: Vec<ReferId> = world.events(bob).iter().filter_map(is_refer).collect();
    assert_eq!(refers.len(), 8);
    // Nobody answers what was told of them.
    world.pass(MINUTE);
    assert_eq!(ask(&mut world, 10..13), (3, 0));
}
