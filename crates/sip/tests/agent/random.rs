//! Random input: nothing panics, memory is bounded, and every call ends.

use portunus_sip::agent::{Body, Command, RequestId, SubscriptionId};
use portunus_sip::message::Method;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::world::*;

/// Changes some octets, lines and lengths.
pub fn mangle(random: &mut StdRng, bytes: &mut Vec<u8>) {
    for _ in 0..random.random_range(1..6) {
        let at = random.random_range(0..bytes.len().max(1));
        match random.random_range(0..5) {
            0 if !bytes.is_empty() => bytes[at] = random.random(),
            1 => bytes.truncate(at),
            2 => bytes.insert(at.min(bytes.len()), random.random()),
            3 => {
                let piece: Vec<u8> = bytes
                    .iter()
                    .skip(at)
                    .take(random.random_range(0..40))
                    .copied()
                    .collect();
                bytes.extend(piece);
            }
            _ => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                let mut lines: Vec<&str> = text.split("\r\n").collect();
                let (one, other) = (
                    random.random_range(0..lines.len()),
                    random.random_range(0..lines.len()),
                );
                lines.swap(one, other);
                *bytes = lines.join("\r\n").into_bytes();
            }
        }
        if bytes.is_empty() {
            return;
        }
    }
}

/// Commands at random, for calls that may or may not be there.
fn command(random: &mut StdRng, calls: &[portunus_sip::agent::CallId]) -> Option<Command> {
    let call = *calls.get(random.random_range(0..calls.len().max(1)))?;
    let headers = Vec::new();
    let body = random.random_bool(0.5).then(|| sdp("random"));
    Some(match random.random_range(0..10) {
        0 => Command::Hangup { call, headers },
        1 => Command::Reinvite {
            call,
            headers,
            body,
        },
        2 => Command::AcceptReinvite {
            call,
            headers,
            body,
        },
        3 => Command::RejectReinvite {
            call,
            code: 488,
            headers,
        },
        4 => Command::Accept {
            call,
            headers,
            body,
        },
        5 => Command::Progress {
            call,
            code: 183,
            headers,
            body,
        },
        6 => Command::Reject {
            call,
            code: 486,
            reason: None,
            headers,
        },
        7 => Command::Acknowledge {
            call,
            body: sdp("random"),
        },
        8 => Command::InDialog {
            call,
            request: RequestId::new(1),
            method: Method::Info,
            headers,
            body,
        },
        _ => Command::InDialog {
            call,
            request: RequestId::new(2),
            method: Method::Refer,
            headers: vec![("Refer-To".into(), "<sip:carol@192.0.2.3>".into())],
            body,
        },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn agents_survive_a_network_that_mangles_messages(seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let weather = Weather { loss: 0.2, ..Weather::FOUL };
        let mut world = World::new(weather, seed);
        world.mangled = 0.2;
        let mut with = options();
        with.limits = limits();
        with.update = random.random();
        with.session.offer = random.random::<bool>().then_some(SECOND * 90);
        let mut calls = Vec::new();
        for name in ["alice", "bob", "carol"] {
            world.agent_with(with.clone(), if name == "bob" { answering } else { ringing }, |node| {
                profile(&format!("sip:{name}@{}", address(node).ip()))
            });
        }
        for number in 0..60_u64 {
            let node = random.random_range(0..3);
            let mut to = invite(["sip:alice@192.0.2.1", "sip:bob@192.0.2.2", "sip:carol@192.0.2.3"][random.random_range(0..3)]);
            if random.random() {
                to.offer = None;
            }
            if random.random_bool(0.3) {
                to.headers.push(("Require".into(), "100rel".into()));
            }
            calls.push((node, world.invite(node, number, to)));
            for node in 0..3 {
                let found: Vec<_> = world.events(node).iter().filter_map(is_incoming).collect();
                world.events(node).clear();
                calls.extend(found.into_iter().map(|call| (node, call)));
                let own: Vec<_> = calls.iter().filter(|(at, _)| *at == node).map(|(_, call)| *call).collect();
                for _ in 0..3 {
                    if let Some(command) = command(&mut random, &own) {
                        world.command(node, command);
                    }
                }
            }
            world.pass(SECOND * random.random_range(0..4) / 2);
            for node in 0..3 {
                let load = world.the_agent(node).load();
                prop_assert!(load.calls <= 50 && load.transactions <= 400, "{:?}", load);
            }
        }
        for (node, call) in calls {
            world.hangup(node, call);
        }
        world.pass(MINUTE * 10);
        for (node, call) in (0..3).flat_map(|node| world.left(node).into_iter().map(move |call| (node, call))).collect::<Vec<_>>() {
            world.hangup(node, call);
        }
        world.pass(MINUTE * 70);
        for node in 0..3 {
            let load = world.the_agent(node).load();
            prop_assert_eq!((load.calls, load.subscriptions, load.transactions, load.exchanges), (0, 0, 0, 0));
        }
    }

    #[test]
    fn an_agent_takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300), seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut world = World::new(Weather::FAIR, seed);
        let bob = world.agent("bob", answering);
        let hand = world.hand();
        world.send_bytes(hand, bob, bytes);
        for vector in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rfc4475")).unwrap() {
            let whole = std::fs::read(vector.unwrap().path()).unwrap();
            let mut mangled = whole.clone();
            mangle(&mut random, &mut mangled);
            world.send_bytes(hand, bob, whole);
            world.send_bytes(hand, bob, mangled);
        }
        world.command(bob, Command::Subscribe {
            account: ACCOUNT,
            subscription: SubscriptionId::new(1),
            subscribe: Box::new(portunus_sip::agent::Subscribe {
                uri: uri("sip:hand@192.0.2.2"),
                event: "presence".into(),
                accept: None,
                expires: SECOND * 60,
                call_id: None,
                headers: Vec::new(),
                body: Some(Body { content_type: "text/plain".into(), content: Vec::new() }),
            }),
        });
        world.pass(MINUTE * 70);
        world.assert_idle(bob);
    }
}
