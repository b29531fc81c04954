//! Registrations.

use std::time::Duration;

use portunus_sip::agent::{Command, Local, Profile, Registration};
use portunus_sip::digest::Credentials;
use portunus_sip::flow::Transport;
use portunus_sip::message::Method;

use crate::registrar::Registrar;
use crate::world::*;

pub fn registration() -> Registration {
    Registration {
        registrar: None,
        expires: Duration::from_secs(60),
        headers: vec![("X-Extra".into(), "yes".into())],
        keepalive: None,
        retry: false,
    }
}

pub fn account(registration: Registration) -> Profile {
    Profile {
        credentials: Some(Credentials::password("alice", "secret")),
        registration: Some(registration),
        ..profile("sip:alice@192.0.2.1")
    }
}

/// A registrar at node 0, and alice at node 1 who registers there.
pub fn world(
    weather: Weather,
    seed: u64,
    change: impl FnOnce(&mut Registrar, &mut Profile),
) -> World {
    let mut world = World::new(weather, seed);
    let mut registrar = Registrar::new(world.now, &[("alice", "secret")]);
    let mut profile = account(registration());
    change(&mut registrar, &mut profile);
    world.registrar(registrar);
    world.agent_with(options(), passive, |_| profile);
    world
}

/// A Contact without the random part of its user part.
fn without_random(contact: &str) -> String {
    let (before, after) = contact.split_once("alice-").unwrap();
    let (random, after) = after.split_at(16);
    assert!(random.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    format!("{before}alice{after}")
}

pub fn bound(world: &mut World) -> Vec<String> {
    let now = world.now;
    let bindings = &world.the_registrar(0).bindings;
    let bindings = bindings
        .values()
        .flatten()
        .filter(|(_, until)| *until > now);
    bindings.map(|(contact, _)| contact.clone()).collect()
}

#[test]
fn an_account_registers_and_refreshes_before_it_expires() {
    let mut world = world(Weather::FAIR, 1, |_, _| {});
    world.pass(SECOND * 300);
    // At about 0, 42, 84, 126, 168, 210, 252 and perhaps 294 s.
    let times = world.told(1).len();
    assert!((7..=8).contains(&times), "{times}");
    let log = world.the_registrar(0).take_log();
    // One challenge; then the nonce serves for all.
    assert_eq!(log.len(), times + 1);
    let first = &log[0].1;
    assert_eq!(first.uri.to_string(), "sip:192.0.2.1");
    assert_eq!(first.headers.get("X-Extra"), Some("yes"));
    let contact = first.headers.get("Contact").unwrap();
    assert_eq!(
        without_random(contact),
        "<sip:alice@192.0.2.2:5060;transport=udp>;expires=60"
    );
    let call_ids: std::collections::HashSet<_> = log
        .iter()
        .map(|(_, one)| one.headers.call_id().unwrap().to_owned())
        .collect();
    assert_eq!(call_ids.len(), 1);
    let numbers: Vec<u32> = log
        .iter()
        .map(|(_, one)| one.headers.cseq().unwrap().unwrap().number)
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{numbers:?}"
    );
}

#[test]
fn a_registration_holds_though_a_third_of_all_messages_is_lost() {
    for seed in 0..20 {
        let mut world = world(Weather::FOUL, seed, |_, _| {});
        world.pass(MINUTE);
        for _ in 0..30 {
            world.pass(SECOND * 20);
            assert_eq!(bound(&mut world).len(), 1, "seed {seed}");
        }
        assert!(
            world.told(1).iter().all(|event| event == "registered 60"),
            "seed {seed}"
        );
        world.command(1, Command::RemoveAccount { account: ACCOUNT });
        world.pass(MINUTE);
        assert_eq!(world.told(1), ["unregistered"], "seed {seed}");
        assert_eq!(bound(&mut world).len(), 0, "seed {seed}");
        world.assert_idle(1);
        assert_eq!(world.the_agent(1).deadline(), None);
    }
}

#[test]
fn a_wrong_secret_is_refused_once() {
    let mut world = world(Weather::FAIR, 1, |_, profile| {
        profile.credentials = Some(Credentials::password("alice", "wrong"));
    });
    world.pass(MINUTE * 10);
    assert_eq!(
        world.told(1),
        ["registration failed 904 Operation has no matching challenge"]
    );
    assert_eq!(world.the_registrar(0).log.len(), 2);
}

#[test]
fn without_a_secret_the_challenge_is_the_answer() {
    let mut world = world(Weather::FAIR, 1, |_, profile| profile.credentials = None);
    world.pass(MINUTE);
    assert_eq!(world.told(1), ["registration failed 401 Unauthorized"]);
}

#[test]
fn a_stale_nonce_is_no_refusal() {
    let mut world = world(Weather::FAIR, 1, |registrar, _| registrar.forgetful = true);
    world.pass(SECOND);
    assert_eq!(world.told(1), ["registered 60"]);
}

#[test]
fn a_registrar_may_want_more_time_or_grant_less() {
    let mut world = world(Weather::FAIR, 1, |registrar, _| {
        registrar.least = SECOND * 600
    });
    world.pass(SECOND * 300);
    assert_eq!(world.told(1), ["registered 600"]);
    let mut world = self::world(Weather::FAIR, 1, |registrar, _| registrar.most = SECOND * 8);
    world.pass(SECOND * 12);
    assert_eq!(world.told(1), ["registered 8"; 3]);
}

#[test]
fn a_registrar_that_is_not_there_is_told_as_what_it_is() {
    let failed = |world: &mut World| {
        world.pass(MINUTE * 5);
        world.told(1)
    };
    // Nobody answers.
    let mut silent = world(Weather::FAIR, 1, |_, _| {});
    silent.silent.push(address(0));
    assert_eq!(
        failed(&mut silent),
        ["registration failed 408 Request Timeout"]
    );
    // Nothing listens.
    let mut closed = world(Weather::FAIR, 1, |_, profile| {
        profile.identity = uri("sip:alice@192.0.2.99")
    });
    assert_eq!(
        failed(&mut closed),
        ["registration failed 503 Service Unavailable"]
    );
    // There is no such name.
    let mut nowhere = world(Weather::FAIR, 1, |_, profile| {
        profile.identity = uri("sip:alice@nowhere.test")
    });
    assert_eq!(failed(&mut nowhere), ["registration failed 503 DNS Error"]);
    // It refuses.
    let mut refusing = world(Weather::FAIR, 1, |registrar, _| registrar.code = Some(403));
    assert_eq!(failed(&mut refusing), ["registration failed 403 Forbidden"]);
    for mut world in [silent, closed, nowhere, refusing] {
        world.assert_idle(1);
        assert_eq!(world.the_agent(1).deadline(), None);
    }
}

#[test]
fn the_next_address_of_a_name_is_tried() {
    let mut world = world(Weather::FAIR, 1, |_, profile| {
        profile.identity = uri("sip:alice@office.test")
    });
    let mut world_names = world.names.clone();
    world_names.insert(
        "office.test".into(),
        vec!["192.0.2.99:5060".parse().unwrap(), address(0)],
    );
    world.names = world_names;
    // The first try was made without DNS.
    world.command(
        1,
        Command::SetAccount {
            account: ACCOUNT,
            profile: Box::new(Profile {
                identity: uri("sip:alice@office.test"),
                ..account(registration())
            }),
        },
    );
    world.pass(SECOND);
    assert!(world.told(1).contains(&"registered 60".to_owned()));
}

#[test]
fn a_registrar_that_vanishes_and_comes_back_is_found_again() {
    let mut world = world(Weather::FAIR, 1, |_, profile| {
        profile.registration = Some(Registration {
            retry: true,
            ..registration()
        });
    });
    world.pass(SECOND * 5);
    assert_eq!(world.told(1), ["registered 60"]);
    world.silent.push(address(0));
    world.pass(MINUTE * 60);
    let told = world.told(1);
    assert!(told.len() > 3 && told.len() < 12, "{told:?}");
    assert!(
        told.iter()
            .all(|event| event == "registration failed 408 Request Timeout")
    );
    world.silent.clear();
    world.pass(MINUTE * 32);
    let told = world.told(1);
    assert!(
        !told.is_empty() && told.iter().all(|event| event == "registered 60"),
        "{told:?}"
    );
    assert_eq!(bound(&mut world).len(), 1);
}

#[test]
fn keep_alives_find_out_that_the_registrar_is_gone() {
    let mut world = world(Weather::FAIR, 1, |registrar, profile| {
        registrar.most = SECOND * 3600;
        let keepalive = Some(SECOND * 30);
        profile.registration = Some(Registration {
            keepalive,
            expires: SECOND * 3600,
            ..registration()
        });
    });
    world.pass(MINUTE * 5);
    let log = world.the_registrar(0).take_log();
    assert_eq!(
        log.iter()
            .filter(|(_, request)| request.method == Method::Options)
            .count(),
        9
    );
    assert_eq!(world.told(1), ["registered 3600"]);
    world.silent.push(address(0));
    world.pass(MINUTE * 3);
    assert_eq!(world.told(1), ["registration failed 408 Request Timeout"]);
}

#[test]
fn behind_nat_the_address_is_registered_that_the_registrar_sees() {
    let mut world = world(Weather::FAIR, 1, |registrar, profile| {
        registrar.seen_as = Some("203.0.113.5:40000".parse().unwrap());
        profile.behind_nat = true;
    });
    world.pass(MINUTE * 5);
    let shown = |world: &mut World| -> Vec<String> {
        let bound = bound(world);
        bound.iter().map(|it| without_random(it)).collect()
    };
    assert_eq!(
        shown(&mut world),
        ["sip:alice@203.0.113.5:40000;transport=udp"]
    );
    assert!(world.told(1).iter().all(|event| event == "registered 60"));
    // Its address changes.
    world.the_registrar(0).seen_as = Some("203.0.113.5:50000".parse().unwrap());
    world.pass(MINUTE);
    assert_eq!(
        shown(&mut world),
        ["sip:alice@203.0.113.5:50000;transport=udp"]
    );
}

#[test]
fn requests_go_by_the_service_route() {
    let mut world = world(Weather::FAIR, 1, |registrar, _| {
        registrar.service_route = Some("<sip:192.0.2.3;lr>")
    });
    let proxy = world.hand();
    world.pass(SECOND);
    world.invite(1, 1, invite("sip:bob@far.test"));
    let requests = world.requests(proxy, SECOND / 10);
    assert_eq!(requests[0].headers.get("Route"), Some("<sip:192.0.2.3;lr>"));
    assert_eq!(requests[0].uri.to_string(), "sip:bob@far.test");
}

#[test]
fn an_outbound_proxy_gets_all_requests() {
    let mut world = world(Weather::FAIR, 1, |_, profile| {
        profile.identity = uri("sip:alice@far.test");
        profile.outbound_proxy = Some(uri("sip:192.0.2.1"));
    });
    world.pass(SECOND);
    assert_eq!(world.told(1), ["registered 60"]);
    let log = world.the_registrar(0).take_log();
    assert_eq!(log[0].1.uri.to_string(), "sip:far.test");
    assert!(!log[0].1.headers.has("Route"));
}

#[test]
fn contact_parameters_and_names_are_registered() {
    let mut world = world(Weather::FAIR, 1, |_, profile| {
        profile.display_name = "Alice \"A\"".into();
        profile.contact_params = vec![
            ("line".into(), "7".into()),
            ("ob".into(), String::new()),
            ("b d".into(), "x".into()),
        ];
    });
    world.pass(SECOND);
    let log = world.the_registrar(0).take_log();
    let contact = log[0].1.headers.get("Contact").unwrap();
    assert_eq!(
        without_random(contact),
        "\"Alice \\\"A\\\"\" <sip:alice@192.0.2.2:5060;transport=udp;line=7;ob>;expires=60"
    );
}

#[test]
fn a_connection_that_closes_is_registered_anew() {
    let mut world = world(Weather::FAIR, 1, |registrar, profile| {
        registrar.most = SECOND * 3600;
        profile.registration = Some(Registration {
            expires: SECOND * 3600,
            ..registration()
        });
        profile.transport = Some(Transport::Tcp);
    });
    world.pass(SECOND);
    assert_eq!(world.told(1), ["registered 3600"]);
    world.close(1, 0);
    world.pass(SECOND * 5);
    assert_eq!(world.told(1), ["registered 3600"]);
    let bound = bound(&mut world);
    assert_eq!(
        (without_random(&bound[0]).as_str(), bound.len()),
        ("sip:alice@192.0.2.2:5060;transport=tcp", 1)
    );
}

#[test]
fn a_new_profile_registers_anew() {
    let mut world = world(Weather::FAIR, 1, |_, _| {});
    world.pass(SECOND);
    let mut profile = account(registration());
    profile.registration = Some(Registration {
        expires: SECOND * 120,
        ..registration()
    });
    world.command(
        1,
        Command::SetAccount {
            account: ACCOUNT,
            profile: Box::new(profile),
        },
    );
    world.pass(SECOND);
    assert_eq!(world.told(1), ["registered 60", "registered 120"]);
    assert_eq!(bound(&mut world).len(), 1);
}

#[test]
fn who_leaves_while_it_registers_is_not_left_behind() {
    let mut world = world(Weather::FAIR, 1, |_, _| {});
    world.pass(Duration::from_millis(15));
    world.command(1, Command::RemoveAccount { account: ACCOUNT });
    world.pass(MINUTE);
    assert_eq!(world.told(1), ["unregistered"]);
    assert_eq!(bound(&mut world).len(), 0);
}

#[test]
fn the_registrar_may_show_the_contact_as_it_sees_it() {
    let mut world = World::new(Weather::FAIR, 1);
    let registrar = world.hand();
    let alice = world.agent_with(options(), passive, |_| account(registration()));
    let register = world.next_request(registrar, SECOND);
    let mut response = crate::races::answer(&register, 200, "r", registrar);
    let seen = "<sip:alice@203.0.113.9:1024;transport=udp>;expires=20";
    response.headers.set("Contact", seen);
    world.send(registrar, alice, response);
    world.pass(SECOND);
    assert_eq!(world.told(alice), ["registered 20"]);
}

#[test]
fn accounts_with_the_same_user_part_are_told_apart() {
    let mut world = World::new(Weather::FAIR, 1);
    let mut registrar = Registrar::new(world.now, &[("alice", "secret")]);
    registrar.most = SECOND * 60;
    world.registrar(registrar);
    let alice = world.agent_with(options(), passive, |_| account(registration()));
    let second = portunus_sip::agent::AccountId::new(2);
    let mut other = account(registration());
    other.identity = uri("sip:alice@other.test");
    other.outbound_proxy = Some(uri("sip:192.0.2.1"));
    world.command(
        alice,
        Command::SetAccount {
            account: second,
            profile: Box::new(other),
        },
    );
    world.pass(SECOND);
    assert_eq!(world.told(alice), ["registered 60"; 2]);
    let of = |world: &mut World, identity: &str| {
        let contacts = &world.the_registrar(0).bindings[identity];
        contacts[0].0.clone()
    };
    let contacts = [
        (of(&mut world, "sip:alice@192.0.2.1"), ACCOUNT),
        (of(&mut world, "sip:alice@other.test"), second),
    ];
    assert_ne!(contacts[0].0, contacts[1].0);
    let caller = world.hand();
    for (number, (contact, expected)) in contacts.iter().enumerate() {
        let mut call = crate::races::invite_by_hand(caller, contact, &format!("n{number}"));
        call.headers
            .set("From", format!("<sip:x@hand.test>;tag={number}"));
        world.send(caller, alice, call);
        let account = world.until(alice, SECOND, |event| match event {
            portunus_sip::agent::AgentEvent::Incoming { account, .. } => *account,
            _ => None,
        });
        assert_eq!(account, *expected);
    }
}

/// The transports and Request-URIs of the requests at the registrar's address, except REGISTER.
fn reached(world: &mut World, node: usize) -> Vec<String> {
    let requests = world.requests(node, SECOND).into_iter();
    let first = |request: &portunus_sip::message::Request| {
        let via = request.headers.get("Via").unwrap();
        via.split_whitespace().next().unwrap().to_owned()
    };
    let mut told: Vec<String> = requests
        .filter(|request| request.method != Method::Register)
        .map(|request| format!("{} {} {}", request.method, request.uri, first(&request)))
        .collect();
    told.dedup();
    told
}

#[test]
fn calls_to_the_accounts_own_server_go_as_its_registrar_is_reached() {
    for (registrar, called, expected) in [
        // Without a transport all is as DNS says, or by UDP.
        ("sip:192.0.2.1", "sip:bob@192.0.2.1", "UDP"),
        ("sip:192.0.2.1;transport=tcp", "sip:bob@192.0.2.1", "TCP"),
        (
            "sip:192.0.2.1:5060;transport=TLS",
            "sip:bob@192.0.2.1",
            "TLS",
        ),
        ("sip:192.0.2.1:5060;transport=ws", "sip:bob@192.0.2.1", "WS"),
        (
            "sip:192.0.2.1:5060;transport=wss",
            "sip:bob@192.0.2.1",
            "WSS",
        ),
        ("sips:192.0.2.1:5060", "sip:bob@192.0.2.1", "TLS"),
        (
            "sips:192.0.2.1:5060;transport=tcp",
            "sip:bob@192.0.2.1",
            "TLS",
        ),
        (
            "sips:192.0.2.1:5060;transport=ws",
            "sip:bob@192.0.2.1",
            "WSS",
        ),
        // The domain of the identity is the same server.
        (
            "sip:192.0.2.1:5060;transport=tls",
            "sip:bob@home.test",
            "TLS",
        ),
        // What the URI itself says comes first, as does another port.
        (
            "sip:192.0.2.1:5060;transport=tls",
            "sip:bob@192.0.2.1:5060;transport=tcp",
            "TCP",
        ),
        (
            "sip:192.0.2.1:5061;transport=tls",
            "sip:bob@192.0.2.1:5060",
            "UDP",
        ),
        // Elsewhere its transport says nothing.
        (
            "sip:192.0.2.1:5060;transport=tls",
            "sip:bob@other.test",
            "UDP",
        ),
    ] {
        let mut world = World::new(Weather::FAIR, 1);
        for name in ["home.test", "other.test"] {
            world.names.insert(name.into(), vec![address(0)]);
        }
        let node = world.hand();
        let mut with = options();
        for transport in [Transport::Tls, Transport::Ws, Transport::Wss] {
            let local = with.locals[0].clone();
            with.locals.push(Local { transport, ..local });
        }
        world.agent_with(with, passive, |_| Profile {
            registration: Some(Registration {
                registrar: Some(uri(registrar)),
                ..registration()
            }),
            ..profile("sip:alice@home.test")
        });
        world.invite(1, 1, invite(called));
        let told = reached(&mut world, node);
        let expected = format!("INVITE {called} SIP/2.0/{expected}");
        assert_eq!(told, [expected], "{registrar}");
    }
}

#[test]
fn an_outbound_proxy_is_the_way_whatever_the_registrar_is_reached_by() {
    let mut world = World::new(Weather::FAIR, 1);
    let (_, proxy) = (world.hand(), world.hand());
    world.agent_with(options(), passive, |_| Profile {
        registration: Some(Registration {
            registrar: Some(uri("sip:192.0.2.1;transport=tcp")),
            ..registration()
        }),
        outbound_proxy: Some(uri("sip:192.0.2.2")),
        ..profile("sip:alice@192.0.2.1")
    });
    world.invite(2, 1, invite("sip:bob@192.0.2.1"));
    let told = reached(&mut world, proxy);
    assert_eq!(told, ["INVITE sip:bob@192.0.2.1 SIP/2.0/UDP"]);
}
