//! Calls in a good and in a bad network.

use portunus_sip::agent::{AgentEvent, Cause, Command};
use portunus_sip::flow::Transport;
use portunus_sip::message::Method;

use crate::world::*;

#[test]
fn a_call_is_made_and_hung_up_by_the_caller() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.agent("bob", answering);
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.pass(SECOND);
    assert_eq!(world.told(alice), ["provisional 180", "accepted"]);
    assert_eq!(world.told(bob), ["incoming", "acknowledged"]);
    world.hangup(alice, call);
    world.pass(SECOND);
    assert_eq!(world.told(alice), ["ended Hangup 200 to BYE"]);
    assert_eq!(world.told(bob), ["ended Bye 200 Session Terminated"]);
    world.pass(MINUTE);
    world.assert_idle(alice);
    world.assert_idle(bob);
}

#[test]
fn a_call_is_hung_up_by_the_callee() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let mut world = World::new(Weather::FAIR, 1);
        let alice = world.agent("alice", passive);
        let bob = world.agent("bob", answering);
        world.invite(
            alice,
            1,
            invite(&format!(
                "sip:bob@192.0.2.2;transport={}",
                transport.param()
            )),
        );
        world.pass(SECOND);
        let call = world.events(bob).iter().find_map(is_incoming).unwrap();
        world.told(bob);
        world.hangup(bob, call);
        world.pass(SECOND);
        assert_eq!(
            world.told(alice).last().unwrap(),
            "ended Bye 200 Session Terminated"
        );
        assert_eq!(world.told(bob), ["ended Hangup 200 to BYE"]);
        world.pass(MINUTE);
        world.assert_idle(alice);
        world.assert_idle(bob);
    }
}

#[test]
fn calls_work_though_a_third_of_all_messages_is_lost() {
    for seed in 0..60 {
        let mut world = World::new(Weather::FOUL, seed);
        let alice = world.agent("alice", passive);
        let bob = world.agent("bob", answering);
        let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
        world.until(alice, MINUTE, is_accepted);
        world.pass(MINUTE);
        assert!(
            world.told(bob).iter().any(|event| event == "acknowledged"),
            "seed {seed}"
        );
        world.hangup(alice, call);
        assert_eq!(
            world.until(alice, MINUTE, is_ended),
            (Cause::Hangup, 200),
            "seed {seed}"
        );
        assert_eq!(
            world.until(bob, MINUTE, is_ended),
            (Cause::Bye, 200),
            "seed {seed}"
        );
        world.pass(MINUTE * 2);
        world.assert_idle(alice);
        world.assert_idle(bob);
    }
}

#[test]
fn a_call_without_an_offer_is_answered_in_ack() {
    for seed in 0..20 {
        let mut world = World::new(Weather::FOUL, seed);
        let alice = world.agent("alice", |event| match event {
            AgentEvent::Accepted { call, response, .. } => {
                assert_eq!(response.body, b"offer");
                vec![Command::Acknowledge {
                    call: *call,
                    body: sdp("answer"),
                }]
            }
            _ => Vec::new(),
        });
        let bob = world.agent("bob", answering);
        let mut offerless = invite("sip:bob@192.0.2.2");
        offerless.offer = None;
        world.invite(alice, 1, offerless);
        world.until(bob, MINUTE * 2, |event| {
            (short(event) == "acknowledged answer").then_some(())
        });
        world.pass(MINUTE * 2);
        assert!(
            !world
                .told(alice)
                .iter()
                .any(|event| event.starts_with("ended")),
            "seed {seed}"
        );
    }
}

#[test]
fn a_refusal_is_told_with_its_words() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.agent("bob", |event| match event {
        AgentEvent::Incoming { call, .. } => {
            vec![Command::Reject {
                call: *call,
                code: 486,
                reason: Some("Later".into()),
                headers: Vec::new(),
            }]
        }
        _ => Vec::new(),
    });
    world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.pass(MINUTE);
    assert_eq!(world.told(alice), ["ended Rejected 486 Later"]);
    assert_eq!(world.told(bob), ["incoming", "ended Declined 486 Later"]);
    world.assert_idle(alice);
    world.assert_idle(bob);
}

#[test]
fn who_cannot_be_reached_is_told_as_what_it_is() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    world.silent.push("192.0.2.77:5060".parse().unwrap());
    for (to, told) in [
        ("sip:bob@192.0.2.77", "ended Timeout 408 Request Timeout"),
        (
            "sip:bob@192.0.2.88",
            "ended Unreachable 503 Service Unavailable",
        ),
        ("sip:bob@nowhere.test", "ended Unreachable 503 DNS Error"),
        ("tel:+123", "ended Refused 416 Unsupported URI Scheme"),
    ] {
        world.invite(alice, 1, invite(to));
        world.pass(MINUTE);
        assert_eq!(world.told(alice), [told], "{to}");
    }
    world.assert_idle(alice);
}

#[test]
fn a_busy_address_gives_way_to_the_next() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let full = world.hand();
    let bob = world.agent("bob", answering);
    world
        .names
        .insert("office.test".into(), vec![address(full), address(bob)]);
    world.invite(alice, 1, invite("sip:bob@office.test"));
    let invite = world.requests(full, SECOND / 10).remove(0);
    let mut response = portunus_sip::message::Response::to(
        &invite,
        portunus_sip::message::StatusCode::SERVICE_UNAVAILABLE,
    );
    response.headers.set_to_tag("x");
    world.send(full, alice, response);
    world.pass(SECOND);
    assert_eq!(world.told(alice), ["provisional 180", "accepted"]);
}

#[test]
fn a_redirection_is_followed_within_bounds() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let moved = |to: &'static str| {
        move |event: &AgentEvent| match event {
            AgentEvent::Incoming { call, .. } => vec![Command::Reject {
                call: *call,
                code: 302,
                reason: None,
                headers: vec![("Contact".into(), to.into())],
            }],
            _ => Vec::new(),
        }
    };
    let bob = world.agent(
        "bob",
        moved("<sip:x@192.0.2.9>;q=0.1, <sip:carol@192.0.2.3>;q=0.9"),
    );
    let carol = world.agent("carol", answering);
    world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.pass(SECOND);
    assert_eq!(world.told(alice), ["provisional 180", "accepted"]);
    assert_eq!(
        world.told(bob),
        ["incoming", "ended Declined 302 Moved Temporarily"]
    );
    assert_eq!(world.told(carol), ["incoming", "acknowledged"]);
    // Redirections in a circle.
    let dave = world.agent("dave", moved("<sip:dave@192.0.2.4;n=1>, <sip:dave@192.0.2.4;n=2>, <sip:dave@192.0.2.4;n=3>, <sip:dave@192.0.2.4;n=4>, <sip:dave@192.0.2.4;n=5>, <sip:dave@192.0.2.4;n=6>, <sip:dave@192.0.2.4>"));
    world.invite(alice, 2, invite("sip:dave@192.0.2.4"));
    world.pass(MINUTE);
    assert_eq!(world.told(alice), ["ended Rejected 302 Moved Temporarily"]);
    assert!(world.told(dave).len() <= 12);
}

#[test]
fn a_message_within_and_outside_of_calls_is_delivered() {
    let mut world = World::new(Weather::FOUL, 3);
    let alice = world.agent("alice", passive);
    let bob = world.agent("bob", answering);
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.until(alice, MINUTE, is_accepted);
    let text = |text: &str| {
        Some(portunus_sip::agent::Body {
            content_type: "text/plain".into(),
            content: text.into(),
        })
    };
    world.command(
        alice,
        Command::InDialog {
            call,
            request: portunus_sip::agent::RequestId::new(1),
            method: Method::Info,
            headers: vec![("X-A".into(), "1".into())],
            body: text("in"),
        },
    );
    world.command(
        alice,
        Command::OutOfDialog {
            account: ACCOUNT,
            request: portunus_sip::agent::RequestId::new(2),
            method: Method::Message,
            uri: uri("sip:bob@192.0.2.2"),
            call_id: Some("mine".into()),
            headers: Vec::new(),
            body: text("out"),
        },
    );
    world.pass(MINUTE);
    let mut told = world.told(bob);
    told.retain(|event| event.starts_with("INFO") || event.starts_with("MESSAGE"));
    told.sort();
    assert_eq!(told, ["INFO in", "MESSAGE out"]);
    let mut told = world.told(alice);
    told.retain(|event| event.starts_with("response"));
    assert_eq!(told, ["response 200 OK"; 2]);
}

#[test]
fn what_is_asked_for_is_traced() {
    let mut world = World::new(Weather::FAIR, 1);
    let mut traced = profile("sip:alice@192.0.2.1");
    traced.trace = true;
    let alice = world.agent_with(options(), passive, |_| traced);
    world.agent("bob", answering);
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.pass(SECOND);
    world.hangup(alice, call);
    world.pass(SECOND);
    let mut told = world.told(alice);
    told.retain(|event| event.starts_with("sent") || event.starts_with("received"));
    // Bob's Contact has a random part.
    for event in &mut told {
        if let Some((before, after)) = event.split_once("sip:bob-") {
            *event = format!("{before}sip:bob{}", &after[16..]);
        }
    }
    assert_eq!(
        told,
        [
            "sent INVITE sip:bob@192.0.2.2 SIP/2.0",
            "received SIP/2.0 100 Trying",
            "received SIP/2.0 180 Ringing",
            "received SIP/2.0 200 OK",
            "sent ACK sip:bob@192.0.2.2:5060;transport=udp SIP/2.0",
            "sent BYE sip:bob@192.0.2.2:5060;transport=udp SIP/2.0",
            "received SIP/2.0 200 OK",
        ]
    );
}

#[test]
fn two_accounts_of_one_agent_call_each_other() {
    let mut world = World::new(Weather::FOUL, 2);
    let both = world.agent("alice", answering);
    let bob = portunus_sip::agent::AccountId::new(2);
    world.command(
        both,
        Command::SetAccount {
            account: bob,
            profile: Box::new(profile("sip:bob@192.0.2.1")),
        },
    );
    let call = world.invite(both, 1, invite("sip:bob@192.0.2.1"));
    let (theirs, account) = world.until(both, MINUTE, |event| match event {
        AgentEvent::Incoming { call, account, .. } => Some((*call, *account)),
        _ => None,
    });
    assert_eq!(account, Some(bob));
    world.until(both, MINUTE, |event| {
        (short(event) == "acknowledged answer" || short(event) == "acknowledged").then_some(())
    });
    world.pass(MINUTE);
    world.hangup(both, call);
    let mut ended = Vec::new();
    for _ in 0..2 {
        ended.push(world.until(both, MINUTE, |event| match event {
            AgentEvent::Ended { call, cause, .. } => Some((*call, *cause)),
            _ => None,
        }));
    }
    ended.sort_by_key(|(call, _)| *call);
    assert_eq!(ended, [(call, Cause::Hangup), (theirs, Cause::Bye)]);
    world.pass(MINUTE * 2);
    world.assert_idle(both);
}

#[test]
fn a_hangup_says_why() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.agent("bob", ringing);
    let reason = |event: &AgentEvent| match event {
        AgentEvent::Ended {
            message: Some(message),
            ..
        } => Some(
            message
                .headers()
                .reasons()
                .unwrap()
                .first()
                .map(|reason| reason.text().unwrap().into_owned()),
        ),
        _ => None,
    };
    let why = || {
        vec![(
            "Reason".to_owned(),
            "SIP;cause=200;text=\"Call completed elsewhere\"".to_owned(),
        )]
    };
    let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    world.pass(SECOND);
    world.command(
        alice,
        Command::Hangup {
            call,
            headers: why(),
        },
    );
    assert_eq!(
        world.until(bob, SECOND, reason).as_deref(),
        Some("Call completed elsewhere")
    );
    let call = world.invite(alice, 2, invite("sip:bob@192.0.2.2"));
    let theirs = world.until(bob, SECOND, is_incoming);
    world.command(
        bob,
        Command::Accept {
            call: theirs,
            headers: Vec::new(),
            body: Some(sdp("answer")),
        },
    );
    world.pass(SECOND);
    world.command(
        alice,
        Command::Hangup {
            call,
            headers: why(),
        },
    );
    assert_eq!(
        world.until(bob, SECOND, reason).as_deref(),
        Some("Call completed elsewhere")
    );
}

#[test]
fn headers_of_the_owner_do_not_replace_our_own() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.hand();
    let mut odd = invite("sip:bob@192.0.2.2?Subject=x");
    odd.call_id = Some("given".into());
    for (name, value) in [
        ("X-Good", "1"),
        ("v", "SIP/2.0/UDP evil"),
        ("CSeq", "7 BYE"),
        ("X-Split", "a\r\nEvil: 1"),
        ("no token", "1"),
        ("Contact", "<sip:evil>"),
    ] {
        odd.headers.push((name.into(), value.into()));
    }
    world.invite(alice, 1, odd);
    let request = world.next_request(bob, SECOND);
    let text = String::from_utf8(request.to_bytes()).unwrap();
    assert!(
        text.contains("X-Good: 1")
            && !text.to_lowercase().contains("evil")
            && !text.contains("token")
    );
    assert_eq!(
        (request.headers.call_id(), request.uri.to_string()),
        (Some("given"), "sip:bob@192.0.2.2".to_owned())
    );
    assert_eq!(request.headers.get("CSeq"), Some("1 INVITE"));
}

#[test]
fn reliable_provisional_answers_are_acknowledged_once() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let bob = world.hand();
    world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
    let request = world.next_request(bob, SECOND);
    assert!(request.headers.has_token("Supported", "100rel"));
    // 11 comes too early, and 10 twice.
    for rseq in [9, 11, 9, 10, 10] {
        let mut response = crate::races::answer(&request, 180, "bob", bob);
        response.headers.push("Require", "100rel");
        response.headers.push("RSeq", rseq);
        world.send(bob, alice, response);
    }
    let pracks: Vec<String> = world
        .requests(bob, SECOND / 4)
        .iter()
        .map(|request| {
            format!(
                "{} {}",
                request.method,
                request.headers.get("RAck").unwrap()
            )
        })
        .collect();
    assert_eq!(pracks, ["PRACK 9 1 INVITE", "PRACK 10 1 INVITE"]);
    assert_eq!(world.told(alice), ["provisional 180"; 2]);
}

#[test]
fn a_name_that_is_never_resolved_is_given_up() {
    let mut world = World::new(Weather::FAIR, 1);
    let alice = world.agent("alice", passive);
    let now = world.now;
    let agent = world.the_agent(alice);
    let call = portunus_sip::agent::CallId::new(1);
    agent.command(
        now,
        Command::Invite {
            account: ACCOUNT,
            call,
            invite: Box::new(invite("sip:bob@slow.test")),
        },
    );
    while agent.poll().is_some() {}
    world.pass(MINUTE);
    assert_eq!(world.told(alice), ["ended Unreachable 503 DNS Error"]);
    world.assert_idle(alice);
}

#[test]
fn many_requests_in_a_call_arrive_in_their_order() {
    for seed in 0..10 {
        let mut world = World::new(Weather::FOUL, seed);
        let alice = world.agent("alice", passive);
        let bob = world.agent("bob", answering);
        let call = world.invite(alice, 1, invite("sip:bob@192.0.2.2"));
        world.until(alice, MINUTE, is_accepted);
        let press = |number: u64| Command::InDialog {
            call,
            request: portunus_sip::agent::RequestId::new(number),
            method: Method::Info,
            headers: Vec::new(),
            body: Some(portunus_sip::agent::Body {
                content_type: "application/dtmf-relay".into(),
                content: number.to_string().into_bytes(),
            }),
        };
        for number in 0..9 {
            world.command(alice, press(number));
        }
        world.pass(MINUTE * 3);
        let mut told = world.told(bob);
        told.retain(|event| event.starts_with("INFO"));
        assert_eq!(
            told,
            (0..9)
                .map(|number| format!("INFO {number}"))
                .collect::<Vec<_>>(),
            "seed {seed}"
        );
        // Requests that wait at the end of the call get their answer before the end.
        world.told(alice);
        world.command(alice, press(20));
        world.command(alice, press(21));
        world.hangup(alice, call);
        world.pass(MINUTE * 2);
        let told = world.told(alice);
        assert_eq!(
            told.iter()
                .filter(|event| event.starts_with("response"))
                .count(),
            2,
            "{told:?}"
        );
        assert!(
            told.contains(&"ended Hangup 200 to BYE".to_owned()),
            "{told:?}"
        );
    }
}
