//! The receivers of requests outside of dialogs: each row of the table in
//! docs/sip.md#who-is-called, and attempts to get calls of others by lies.

use std::net::SocketAddr;

use portunus_sip::agent::{AccountId, AgentEvent, Command, Options, Profile, Registration};
use portunus_sip::message::{Method, Request};

use crate::races::{answer, invite_by_hand};
use crate::world::*;

const ALICE: AccountId = AccountId::new(1);
const MALLORY: AccountId = AccountId::new(2);
const BOB: AccountId = AccountId::new(3);
const TRUNK: AccountId = AccountId::new(9);

/// A provider with two addresses in DNS and one that is not there, an exchange with a trunk,
/// Mallory's own server, and a stranger.
const PROVIDER: usize = 0;
const SECOND_OF_PROVIDER: usize = 1;
const UNLISTED: usize = 2;
const EXCHANGE: usize = 3;
const EVIL: usize = 4;
const STRANGER: usize = 5;
const SERVER: usize = 6;

struct Table {
    world: World,
    calls: u32,
}

fn at(node: usize) -> SocketAddr {
    address(node)
}

/// `sip:USER@` the server's own address.
fn ours(user: &str) -> String {
    format!("sip:{user}@{}", at(SERVER))
}

fn registered(identity: &str) -> Profile {
    Profile {
        registration: Some(Registration {
            registrar: None,
            expires: SECOND * 3600,
            headers: Vec::new(),
            keepalive: None,
            retry: false,
        }),
        ..profile(identity)
    }
}

/// Registers at a server that is not that of the identity.
fn by_proxy(identity: &str, node: usize) -> Profile {
    Profile {
        outbound_proxy: Some(uri(&format!("sip:{}", at(node)))),
        ..registered(identity)
    }
}

impl Table {
    /// The exchange has a trunk by its network.
    fn new() -> Self {
        Self::with(|options| {
            options.strangers = true;
            options.limits.trusted = vec![(at(EXCHANGE).ip(), 32)];
        })
    }

    fn with(change: impl FnOnce(&mut Options)) -> Self {
        let mut world = World::new(Weather::FAIR, 1);
        let names = [
            ("provider.test", vec![at(PROVIDER), at(SECOND_OF_PROVIDER)]),
            // The owner of a domain chooses its addresses.
            (
                "evil.test",
                vec![
                    at(EVIL),
                    at(PROVIDER),
                    at(SECOND_OF_PROVIDER),
                    at(UNLISTED),
                    at(EXCHANGE),
                ],
            ),
        ];
        for (name, addresses) in names {
            world.names.insert(name.to_owned(), addresses);
        }
        for _ in 0..SERVER {
            world.hand();
        }
        let mut options = Options {
            direct: Vec::new(),
            ..options()
        };
        change(&mut options);
        let server = world.agent_with(options, passive, |_| profile("sip:bystander@far.test"));
        assert_eq!((server, ACCOUNT), (SERVER, ALICE));
        world.command(server, Command::RemoveAccount { account: ALICE });
        world.told(server);
        Table { world, calls: 0 }
    }

    fn set(&mut self, account: AccountId, profile: Profile) {
        let profile = Box::new(profile);
        self.world
            .command(SERVER, Command::SetAccount { account, profile });
    }

    /// Registers an account at a node that accepts it. Returns its Contact.
    fn register(&mut self, account: AccountId, profile: Profile, node: usize) -> String {
        self.set(account, profile);
        let request = self.world.next_request(node, SECOND);
        assert_eq!(request.method, Method::Register);
        let contact = request.headers.contact().unwrap().unwrap().uri.to_string();
        self.world
            .send(node, SERVER, answer(&request, 200, "r", node));
        self.world.until(SERVER, SECOND, |event| match event {
            AgentEvent::Registered { account: it, .. } => (*it == account).then_some(()),
            _ => None,
        });
        contact
    }

    /// The receivers of a request: an account, and the trunks of its source.
    fn reaches(&mut self, from: usize, request: Request) -> (Option<AccountId>, Vec<AccountId>) {
        self.world.told(SERVER);
        self.world.send(from, SERVER, request);
        self.world.pass(SECOND);
        let events = self.world.events(SERVER).drain(..);
        let mut reached = events.filter_map(|event| match event {
            AgentEvent::Incoming {
                account, entrances, ..
            } => Some((account, entrances)),
            AgentEvent::Request { account, .. } | AgentEvent::Refer { account, .. } => {
                Some((account, Vec::new()))
            }
            _ => None,
        });
        reached.next().unwrap_or_default()
    }

    fn request(&mut self, from: usize, method: &str, uri: &str, to: &str) -> Request {
        self.calls += 1;
        let mut request = invite_by_hand(from, uri, &format!("n{}", self.calls));
        request.method = method.parse().unwrap();
        request.headers.set("CSeq", format!("1 {method}"));
        request.headers.set("To", format!("<{to}>"));
        request
            .headers
            .set("From", format!("<sip:x@hand.test>;tag={}", self.calls));
        if method == "REFER" {
            request.headers.push("Refer-To", "<sip:x@hand.test>");
        }
        request
    }

    /// The account that an INVITE reaches.
    fn called(&mut self, from: usize, uri: &str, to: &str) -> Option<AccountId> {
        let request = self.request(from, "INVITE", uri, to);
        self.reaches(from, request).0
    }

    /// The same of an INVITE whose To is its Request-URI.
    fn call(&mut self, from: usize, uri: &str) -> Option<AccountId> {
        self.called(from, uri, uri)
    }
}

/// Row: from anywhere, to the Contact.
#[test]
fn whoever_knows_the_contact_calls_its_account() {
    let mut table = Table::new();
    let contact = table.register(ALICE, registered("sip:alice@provider.test"), PROVIDER);
    assert!(contact.starts_with("sip:alice-"), "{contact}");
    let user = contact["sip:".len()..]
        .split('@')
        .next()
        .unwrap()
        .to_owned();
    // Mallory has the same name at our own host, and even the name of the Contact.
    table.set(MALLORY, profile(&ours("alice")));
    table.set(BOB, profile(&ours(&user)));
    for from in [PROVIDER, SECOND_OF_PROVIDER, UNLISTED, STRANGER, EXCHANGE] {
        assert_eq!(table.call(from, &contact), Some(ALICE), "{from}");
    }
    // Each account has a Contact of its own, that of a guest too: who was called may call back.
    let (first, second) = (
        table.register(BOB, registered("sip:alice@evil.test"), EVIL),
        contact,
    );
    assert_ne!(first, second);
}

#[test]
fn a_contact_of_before_is_nobodys() {
    let mut table = Table::new();
    let old = table.register(ALICE, registered("sip:alice@provider.test"), PROVIDER);
    table.register(BOB, registered("sip:bob@provider.test"), PROVIDER);
    // It has vanished without a message.
    table.set(ALICE, profile("sip:elsewhere@far.test"));
    table
        .world
        .command(SERVER, Command::RemoveAccount { account: ALICE });
    let user = old["sip:".len()..].split('@').next().unwrap().to_owned();
    table.set(MALLORY, profile(&ours(&user)));
    // The only other account of the provider is not called in its place, and no guest.
    for to in [old.as_str(), "sip:alice@provider.test"] {
        assert_eq!(table.called(PROVIDER, &old, to), None);
    }
    // A trunk's calls are to numbers: this is none.
    let exchange = table.register(BOB, registered("sip:bob@192.0.2.4"), EXCHANGE);
    table
        .world
        .command(SERVER, Command::RemoveAccount { account: BOB });
    table.world.pass(MINUTE);
    let request = table.request(EXCHANGE, "INVITE", &exchange, &exchange);
    table.world.inbox(EXCHANGE);
    table.world.told(SERVER);
    table.world.send(EXCHANGE, SERVER, request);
    let responses = table.world.responses(EXCHANGE, SECOND);
    assert_eq!(responses[0].status.code(), 404);
    assert!(table.world.told(SERVER).is_empty());
    // The present owner of its name is not called either: it has its own Contact.
    table.register(ALICE, registered("sip:alice@provider.test"), PROVIDER);
    assert_eq!(
        table.called(PROVIDER, &old, "sip:alice@provider.test"),
        None
    );
}

/// Row: from a network of a trunk, to anything but a Contact.
#[test]
fn what_comes_from_a_network_of_a_trunk_is_the_trunks() {
    let mut table = Table::new();
    let number = "+491234";
    let called = [
        ours(number),
        format!("sip:{number}@{}", at(EXCHANGE)),
        format!("sip:{number}@evil.test"),
    ];
    let none = |table: &mut Table| {
        for uri in &called {
            let request = table.request(EXCHANGE, "INVITE", uri, uri);
            let reached = table.reaches(EXCHANGE, request);
            assert_eq!(reached, (None, Vec::new()), "{uri}");
        }
    };
    none(&mut table);
    // A guest at our own host.
    table.set(MALLORY, profile(&ours(number)));
    none(&mut table);
    // A guest at the trunk's host.
    table.set(MALLORY, profile(&called[1]));
    none(&mut table);
    // An account at a registrar of its own, whose name has the exchange's address, too.
    table.register(MALLORY, registered(&called[2]), EVIL);
    none(&mut table);
    // An account of the exchange by a server of its own.
    table.register(BOB, by_proxy(&called[1], EVIL), EVIL);
    none(&mut table);
    // One that the exchange itself has taken: it is called by its Contact.
    let contact = table.register(BOB, registered(&called[1]), EXCHANGE);
    none(&mut table);
    assert_eq!(table.call(EXCHANGE, &contact), Some(BOB));
}

/// Row: from where a trunk is registered, to anything but a Contact.
#[test]
fn what_comes_from_where_a_trunk_is_registered_is_the_trunks() {
    let mut table = Table::with(|options| options.strangers = true);
    let trunk = Profile {
        entrance: true,
        ..registered("sip:+4930@provider.test")
    };
    let contact = table.register(TRUNK, trunk, PROVIDER);
    assert!(contact.starts_with("sip:+4930@"), "{contact}");
    table.set(MALLORY, profile(&ours("+491234")));
    table.register(BOB, registered("sip:+491234@evil.test"), EVIL);
    let alice = table.register(ALICE, registered("sip:+491234@provider.test"), PROVIDER);
    // The provider has several addresses: its name is in the configuration, so all are believed.
    for from in [PROVIDER, SECOND_OF_PROVIDER] {
        for uri in [contact.clone(), ours("+491234"), ours("+4930")] {
            let request = table.request(from, "INVITE", &uri, &uri);
            let reached = table.reaches(from, request);
            assert_eq!(reached, (Some(TRUNK), vec![TRUNK]), "{from} {uri}");
        }
        assert_eq!(table.call(from, &alice), Some(ALICE));
    }
    // Nobody else calls the trunk by its name.
    for from in [UNLISTED, STRANGER] {
        for uri in [&contact, &ours("+4930")] {
            let request = table.request(from, "INVITE", uri, uri);
            assert_eq!(table.reaches(from, request), (None, Vec::new()), "{from}");
        }
    }
    // Though a refresh is refused, the provider's calls are the trunk's.
    table
        .world
        .command(SERVER, Command::Register { account: TRUNK });
    let refresh = table.world.next_request(PROVIDER, SECOND);
    table
        .world
        .send(PROVIDER, SERVER, answer(&refresh, 403, "r", PROVIDER));
    assert_eq!(table.call(PROVIDER, &ours("+491234")), Some(TRUNK));
}

/// Row: from the registrar, to the name.
#[test]
fn a_registrar_calls_its_accounts_by_their_names() {
    let mut table = Table::new();
    table.register(ALICE, registered("sip:alice@provider.test"), PROVIDER);
    table.register(BOB, registered("sip:bob@provider.test"), PROVIDER);
    let of_provider = "sip:alice@provider.test";
    let calls = |table: &mut Table| {
        [
            table.call(PROVIDER, &ours("alice")),
            table.call(PROVIDER, of_provider),
            // A number that only the provider can assign.
            table.called(PROVIDER, &ours("4930"), of_provider),
        ]
    };
    assert_eq!(calls(&mut table), [Some(ALICE); 3]);
    // An account with the same identity at another server.
    for profile in [
        profile(&ours("alice")),
        profile(of_provider),
        registered("sip:alice@evil.test"),
        by_proxy(of_provider, EVIL),
        Profile {
            registration: Some(Registration {
                registrar: Some(uri("sip:evil.test")),
                ..registered(of_provider).registration.unwrap()
            }),
            ..registered(of_provider)
        },
    ] {
        match profile.registration {
            Some(_) => drop(table.register(MALLORY, profile, EVIL)),
            None => table.set(MALLORY, profile),
        }
        assert_eq!(calls(&mut table), [Some(ALICE); 3]);
    }
    // Its own server calls it.
    assert_eq!(table.call(EVIL, &ours("alice")), Some(MALLORY));
    // By TCP, the registrar has another port.
    table.world.by_hand = portunus_sip::flow::Transport::Tcp;
    assert_eq!(table.call(PROVIDER, &ours("alice")), Some(ALICE));
}

#[test]
fn a_name_that_two_accounts_of_a_registrar_have_is_that_of_the_called_domain() {
    let mut table = Table::new();
    let proxy = |identity| by_proxy(identity, PROVIDER);
    table.register(ALICE, proxy("sip:100@a.test"), PROVIDER);
    table.register(BOB, proxy("sip:100@b.test"), PROVIDER);
    let name = ours("100");
    assert_eq!(table.called(PROVIDER, &name, "sip:100@a.test"), Some(ALICE));
    assert_eq!(table.called(PROVIDER, &name, "sip:100@b.test"), Some(BOB));
    assert_eq!(table.called(PROVIDER, &name, "sip:100@c.test"), None);
    assert_eq!(table.call(PROVIDER, &name), None);
}

/// Row: from another address of the registrar's domain, to the name in that domain.
#[test]
fn other_addresses_of_a_registrars_domain_call_by_names_of_the_domain() {
    let mut table = Table::new();
    table.register(ALICE, registered("sip:alice@provider.test"), PROVIDER);
    let calls = |table: &mut Table| {
        let domain = "sip:alice@provider.test";
        [
            table.called(SECOND_OF_PROVIDER, &ours("alice"), domain),
            table.called(UNLISTED, &ours("alice"), domain),
            table.call(SECOND_OF_PROVIDER, &ours("alice")),
        ]
    };
    assert_eq!(calls(&mut table), [Some(ALICE), None, None]);
    // Mallory's domain says to be there, too, and its registrar is there before Alice is.
    for identity in ["sip:alice@evil.test", "sip:alice@provider.test"] {
        let liar = Profile {
            registration: Some(Registration {
                registrar: Some(uri("sip:evil.test")),
                ..registered(identity).registration.unwrap()
            }),
            ..registered(identity)
        };
        table.register(MALLORY, liar, EVIL);
        assert_eq!(calls(&mut table), [Some(ALICE), None, None], "{identity}");
    }
    // Alice is gone: her calls are nobody's.
    table.set(ALICE, profile("sip:elsewhere@far.test"));
    assert_eq!(calls(&mut table), [None, None, None]);
    assert_eq!(table.call(PROVIDER, &ours("alice")), None);
}

/// Row: from the registrar, to a number that it alone knows, if no other account is registered
/// there.
#[test]
fn a_number_that_only_the_registrar_knows_is_its_only_accounts() {
    let mut table = Table::new();
    table.register(ALICE, registered("sip:alice@provider.test"), PROVIDER);
    let number = ours("+4930123456");
    assert_eq!(table.call(PROVIDER, &number), Some(ALICE));
    for from in [SECOND_OF_PROVIDER, UNLISTED, STRANGER, EVIL] {
        assert_eq!(table.call(from, &number), None, "{from}");
    }
    // The name of another account at the same registrar is no such number.
    table.register(BOB, registered("sip:bob@provider.test"), PROVIDER);
    assert_eq!(table.call(PROVIDER, &number), None);
}

/// Row: from elsewhere, to a name.
#[test]
fn from_elsewhere_no_account_is_called_by_its_name() {
    let mut table = Table::new();
    table.register(ALICE, registered("sip:alice@provider.test"), PROVIDER);
    for guest in [ours("alice"), "sip:alice@provider.test".to_owned()] {
        table.set(MALLORY, profile(&guest));
        for from in [UNLISTED, STRANGER, EVIL] {
            assert_eq!(table.call(from, &ours("alice")), None, "{guest}");
            assert_eq!(table.call(from, &guest), None, "{guest}");
        }
    }
}

/// Row: from the networks that are configured for it, to the name of an account without a
/// registration.
#[test]
fn guests_are_called_by_their_names_from_where_that_is_allowed() {
    let mut table = Table::with(|options| {
        options.direct = vec![
            (at(STRANGER).ip(), 32),
            (at(PROVIDER).ip(), 32),
            (at(SECOND_OF_PROVIDER).ip(), 32),
        ];
    });
    table.set(BOB, profile("sip:bob@far.test"));
    assert_eq!(table.call(STRANGER, &ours("bob")), Some(BOB));
    assert_eq!(table.call(UNLISTED, &ours("bob")), None);
    assert_eq!(table.call(STRANGER, &ours("nobody")), None);
    // Registered accounts are called by their registrar, and a registrar calls only its own
    // accounts.
    table.register(ALICE, registered("sip:alice@provider.test"), PROVIDER);
    table.set(MALLORY, profile(&ours("alice")));
    assert_eq!(table.call(PROVIDER, &ours("alice")), Some(ALICE));
    assert_eq!(table.call(PROVIDER, &ours("bob")), Some(ALICE));
    assert_eq!(table.call(SECOND_OF_PROVIDER, &ours("alice")), None);
}

/// A page may become somebody else with the account that it has.
#[test]
fn an_account_that_becomes_another_one_is_not_registered_where_it_was() {
    let mut table = Table::new();
    table.register(MALLORY, registered("sip:mallory@provider.test"), PROVIDER);
    assert_eq!(table.call(PROVIDER, &ours("mallory")), Some(MALLORY));
    let silent = by_proxy("sip:alice@provider.test", EVIL);
    for becomes in [
        profile("sip:alice@provider.test"),
        silent.clone(),
        Profile {
            outbound_proxy: None,
            ..silent
        },
    ] {
        table.register(MALLORY, registered("sip:mallory@provider.test"), PROVIDER);
        table.set(MALLORY, becomes);
        assert_eq!(table.call(PROVIDER, &ours("alice")), None);
        table.world.told(SERVER);
    }
}

/// The rule holds for all requests outside of dialogs.
#[test]
fn messages_transfers_and_options_follow_the_same_rule() {
    let mut table = Table::new();
    let contact = table.register(ALICE, registered("sip:alice@provider.test"), PROVIDER);
    table.set(MALLORY, profile(&ours("alice")));
    table.register(BOB, registered("sip:alice@evil.test"), EVIL);
    let (name, domain) = (ours("alice"), "sip:alice@provider.test");
    for method in ["MESSAGE", "REFER"] {
        for (from, uri, to, expected) in [
            (STRANGER, &contact, contact.as_str(), Some(ALICE)),
            (PROVIDER, &name, name.as_str(), Some(ALICE)),
            (SECOND_OF_PROVIDER, &name, domain, Some(ALICE)),
            (UNLISTED, &name, domain, None),
            (EXCHANGE, &name, name.as_str(), None),
            (EVIL, &name, name.as_str(), Some(BOB)),
        ] {
            let request = table.request(from, method, uri, to);
            let reached = table.reaches(from, request).0;
            assert_eq!(reached, expected, "{method} from {from} to {uri}");
        }
    }
    // Requests for nobody are not reported. OPTIONS show who is there.
    let mut table = Table::with(|_| {});
    let contact = table.register(ALICE, registered("sip:alice@provider.test"), PROVIDER);
    table.set(MALLORY, profile(&name));
    for (method, from, uri, code) in [
        ("OPTIONS", STRANGER, &contact, 200),
        ("OPTIONS", PROVIDER, &name, 200),
        ("OPTIONS", STRANGER, &name, 404),
        ("MESSAGE", STRANGER, &name, 404),
        ("REFER", STRANGER, &name, 404),
        ("INVITE", STRANGER, &name, 404),
        // Neither has a place outside of dialogs here.
        ("SUBSCRIBE", PROVIDER, &contact, 405),
        ("NOTIFY", PROVIDER, &contact, 481),
    ] {
        let request = table.request(from, method, uri, uri);
        table.world.inbox(from);
        table.world.send(from, SERVER, request);
        let responses = table.world.responses(from, SECOND);
        assert_eq!(responses[0].status.code(), code, "{method} from {from}");
    }
}

#[test]
fn to_register_somewhere_lifts_no_limit_there() {
    let mut table = Table::with(|options| {
        options.limits.burst = 10;
        options.limits.rate = 5;
    });
    let flood = |table: &mut Table| {
        let before = table.world.the_agent(SERVER).counters().limited;
        for _ in 0..200 {
            let request = table.request(EVIL, "INVITE", &ours("nobody"), &ours("nobody"));
            table.world.send(EVIL, SERVER, request);
        }
        table.world.pass(SECOND);
        200 - (table.world.the_agent(SERVER).counters().limited - before)
    };
    assert_eq!(flood(&mut table), 10);
    table.world.pass(MINUTE);
    table.register(MALLORY, registered("sip:mallory@evil.test"), EVIL);
    // A registrar has more to send, the more accounts it has.
    assert_eq!(flood(&mut table), 10 + 4);
}
