//! Registrars that refuse, that grant short intervals, and that redirect.

use std::time::Duration;

use portunus_sip::agent::{Command, Local, Registration};
use portunus_sip::flow::Transport;

use crate::registrar::Registrar;
use crate::registration::{account, bound, registration, world};
use crate::world::*;

/// Answers each REGISTER by hand with the given status. Returns the times of the requests.
fn asked_by(
    world: &mut World,
    (registrar, agent): (usize, usize),
    time: Duration,
    mut answer: impl FnMut(&mut portunus_sip::message::Response),
) -> Vec<Duration> {
    let begin = world.now;
    let mut asked = Vec::new();
    while world.now < begin + time {
        for request in world.requests(registrar, SECOND / 10) {
            let mut response = crate::races::answer(&request, 200, "r", registrar);
            response.headers.remove("Contact");
            answer(&mut response);
            asked.push(world.now - begin);
            world.send(registrar, agent, response);
        }
    }
    asked
}

#[test]
fn a_registrar_that_grants_next_to_nothing_is_not_asked_all_the_time() {
    for seconds in [0, 1, 4] {
        let mut world = World::new(Weather::FAIR, 1);
        let registrar = world.hand();
        let alice = world.agent_with(options(), passive, |_| account(registration()));
        let asked = asked_by(&mut world, (registrar, alice), MINUTE * 60, |response| {
            response.headers.push("Expires", seconds)
        });
        // After half a minute, a minute, two and so on.
        assert!((5..=10).contains(&asked.len()), "{seconds}: {asked:?}");
        assert!(asked[1] >= SECOND * 15, "{asked:?}");
        // Calls can be made, as by one that is registered.
        let told = world.told(alice);
        let expected = format!("registered {seconds}");
        assert!(told.iter().all(|event| *event == expected), "{told:?}");
        // A registrar that has come to its senses is asked as others are.
        let asked = asked_by(&mut world, (registrar, alice), MINUTE * 60, |response| {
            response.headers.push("Expires", 600)
        });
        assert!((4..=11).contains(&asked.len()), "{seconds}: {asked:?}");
    }
}

#[test]
fn a_refused_registration_is_tried_again_slowly_where_that_is_wanted() {
    let mut world = world(Weather::FAIR, 1, |registrar, profile| {
        registrar.code = Some(403);
        profile.registration = Some(Registration {
            retry: true,
            ..registration()
        });
    });
    world.pass(MINUTE * 60 * 6);
    let told = world.told(1);
    assert!((7..=16).contains(&told.len()), "{told:?}");
    assert!(
        told.iter()
            .all(|event| event == "registration failed 403 Forbidden")
    );
    let times: Vec<_> = world.the_registrar(0).take_log();
    assert!(times[1].0 - times[0].0 >= SECOND * 150);
    // The account is let in again.
    world.the_registrar(0).code = None;
    world.pass(MINUTE * 61);
    let told = world.told(1);
    assert!(!told.is_empty() && told.iter().all(|event| event == "registered 60"));
}

#[test]
fn a_refused_registration_is_tried_again_at_once_by_command() {
    let mut world = world(Weather::FAIR, 1, |registrar, profile| {
        registrar.code = Some(403);
        profile.registration = Some(Registration {
            retry: true,
            ..registration()
        });
    });
    world.pass(SECOND);
    assert_eq!(world.told(1), ["registration failed 403 Forbidden"]);
    world.the_registrar(0).code = None;
    let again = || Command::Register { account: ACCOUNT };
    world.command(1, again());
    world.pass(SECOND);
    assert_eq!(world.told(1), ["registered 60"]);
    // It goes on from there.
    world.pass(MINUTE);
    assert_eq!(world.told(1), ["registered 60"]);
    // An account that leaves is not registered again.
    world.command(1, Command::RemoveAccount { account: ACCOUNT });
    world.command(1, again());
    world.pass(MINUTE);
    assert_eq!(world.told(1), ["unregistered"]);
    assert_eq!(bound(&mut world).len(), 0);
}

/// Node 0 sends alice elsewhere, where a registrar is at node 2.
fn redirected(contacts: &'static [&'static str], registrar_uri: &str) -> World {
    let mut world = World::new(Weather::FAIR, 1);
    let redirector = world.hand();
    world.hand();
    let mut with = options();
    let local = with.locals[0].clone();
    with.locals.push(Local {
        transport: Transport::Tls,
        ..local
    });
    let mut profile = account(Registration {
        registrar: Some(uri(registrar_uri)),
        ..registration()
    });
    profile.identity = uri("sip:alice@office.test");
    let registrar = Registrar::new(world.now, &[("alice", "secret")]);
    assert_eq!(world.registrar(registrar), 2);
    let alice = world.agent_with(with, passive, |_| profile);
    for _ in 0..4 {
        for request in world.requests(redirector, SECOND / 10) {
            let mut response = crate::races::answer(&request, 302, "r", redirector);
            response.headers.remove("Contact");
            for contact in contacts {
                response.headers.push("Contact", contact);
            }
            world.send(redirector, alice, response);
        }
    }
    world.pass(SECOND * 40);
    world
}

#[test]
fn a_registrar_may_send_us_to_another_one() {
    for (contacts, registrar) in [
        (&["<sip:192.0.2.3>"][..], "sip:192.0.2.1"),
        // The best first; one that is not there is passed over.
        (
            &["<sip:192.0.2.3>;q=0.5, <sip:alice@192.0.2.77>;q=0.9"],
            "sip:192.0.2.1",
        ),
        // An account with TLS is not sent anywhere in the clear.
        (&["<sip:192.0.2.3>"], "sip:192.0.2.1:5060;transport=tls"),
    ] {
        let is_secure = registrar.contains("tls");
        let contacts: &'static [&'static str] = if is_secure {
            &[
                "<sip:192.0.2.77:5060;transport=udp>",
                "<sip:192.0.2.3:5060>",
            ]
        } else {
            contacts
        };
        let mut world = redirected(contacts, registrar);
        assert_eq!(world.told(3), ["registered 60"], "{contacts:?}");
        let log = world.the_registrar(2).take_log();
        let last = &log.last().unwrap().1;
        let via = last.headers.get("Via").unwrap();
        let expected = if is_secure {
            "SIP/2.0/TLS"
        } else {
            "SIP/2.0/UDP"
        };
        assert!(via.starts_with(expected), "{via}");
        assert_eq!(
            last.headers.to().unwrap().unwrap().uri,
            uri("sip:alice@office.test")
        );
        // That one has the account, and is told of its end.
        world.command(3, Command::RemoveAccount { account: ACCOUNT });
        world.pass(SECOND);
        assert_eq!(world.told(3), ["unregistered"]);
        let now = world.now;
        let mut bindings = world.the_registrar(2).bindings.values().flatten();
        assert!(bindings.all(|(_, until)| *until <= now));
    }
}

#[test]
fn registrars_that_send_us_round_in_a_circle_are_a_failure() {
    for contacts in [
        &["<sip:192.0.2.1>"][..],
        &["<sip:192.0.2.1:5060;transport=udp>"],
        &["<tel:+123>"],
        &["<mailto:a@b>"],
        &[],
    ] {
        let mut world = redirected(contacts, "sip:192.0.2.1");
        let told = world.told(3);
        assert_eq!(told.len(), 1, "{contacts:?}: {told:?}");
        assert!(told[0].starts_with("registration failed 302"), "{told:?}");
        world.assert_idle(3);
    }
}
