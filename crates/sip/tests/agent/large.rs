//! Requests that are too large for UDP (RFC 3261 section 18.1.1).

use portunus_sip::agent::{Body, Invite};
use portunus_sip::flow::Transport;

use crate::world::*;

fn large() -> Invite {
    Invite {
        offer: Some(Body {
            content_type: "application/sdp".into(),
            content: vec![b'x'; 1_200],
        }),
        ..invite("sip:bob@192.0.2.2")
    }
}

/// The transports of the INVITEs that bob gets when alice calls him once more.
fn transports(world: &mut World, call: u64) -> Vec<String> {
    let call = world.invite(0, call, large());
    world.pass(SECOND * 2);
    let vias: Vec<String> = world
        .events(1)
        .iter()
        .filter_map(|event| match event {
            portunus_sip::agent::AgentEvent::Incoming { request, .. } => {
                let via = request.headers.get("Via")?;
                Some(via.split_whitespace().next()?.to_owned())
            }
            _ => None,
        })
        .collect();
    let told = world.told(0);
    assert!(told.iter().any(|it| it == "accepted"), "{told:?}");
    world.hangup(0, call);
    world.pass(MINUTE);
    assert!(world.told(1).iter().any(|it| it.starts_with("ended Bye")));
    vias
}

#[test]
fn a_large_request_goes_by_tcp() {
    let mut world = World::new(Weather::FAIR, 1);
    world.agent("alice", passive);
    world.agent("bob", answering);
    assert_eq!(transports(&mut world, 1), ["SIP/2.0/TCP"]);
    world.assert_idle(0);
    world.assert_idle(1);
}

#[test]
fn where_tcp_is_refused_it_goes_by_udp_and_that_is_remembered() {
    let mut world = World::new(Weather::FAIR, 1);
    world.agent("alice", passive);
    world.agent("bob", answering);
    world.without_tcp = vec![address(1)];
    for call in 1..=2 {
        let before = world.refused;
        assert_eq!(transports(&mut world, call), ["SIP/2.0/UDP"]);
        assert_eq!(world.refused - before, u64::from(call == 1));
    }
    world.assert_idle(0);
    world.assert_idle(1);
}

#[test]
fn an_account_that_wants_udp_gets_it() {
    let mut world = World::new(Weather::FAIR, 1);
    let mut own = profile("sip:alice@192.0.2.1");
    own.transport = Some(Transport::Udp);
    world.agent_with(options(), passive, |_| own);
    world.agent("bob", answering);
    assert_eq!(transports(&mut world, 1), ["SIP/2.0/UDP"]);
}
