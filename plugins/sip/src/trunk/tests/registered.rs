//! Registered trunks: their calls and registrations.

use std::sync::Arc;
use std::time::Duration;

use portunus_sip::agent::{AccountId, AgentEvent, Command};

use super::{World, invite, response};
use crate::trunk::TrunkConfig;

fn registering(name: &str, prefix: &str) -> TrunkConfig {
    TrunkConfig {
        prefix: prefix.to_owned(),
        server: "sip:203.0.113.9".to_owned(),
        identity: format!("sip:{name}@provider.example"),
        register: true,
        ..TrunkConfig::default()
    }
}

impl World {
    /// The account that a trunk is registered with.
    async fn account(&mut self) -> AccountId {
        match self.command().await {
            Command::SetAccount { account, profile } => {
                assert!(profile.entrance);
                account
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_trunk_is_called_from_where_it_is_registered_and_from_its_networks() {
    let mut world = World::new(TrunkConfig {
        room: "9".to_owned(),
        ..registering("+4930", "")
    });
    let account = world.account().await;
    let called = invite("+4930");
    let elsewhere = world.call_account((None, &[]), "198.51.100.1", &called);
    assert!(elsewhere.is_some());
    for (by, from) in [
        ((Some(account), &[account][..]), "203.0.113.9"),
        ((None, &[account]), "203.0.113.9"),
        ((None, &[]), "192.0.2.1"),
    ] {
        assert!(world.call_account(by, from, &called).is_none());
        let taken = world.command().await;
        assert!(matches!(taken, Command::Accept { .. }), "{taken:?}");
    }
    // Pages have accounts of their own.
    let page = (Some(AccountId::new(7)), &[][..]);
    assert!(world.call_account(page, "192.0.2.1", &called).is_some());
}

#[tokio::test]
async fn trunks_of_one_registrar_are_told_apart_by_their_numbers() {
    let trunks = [("+4930", 1), ("+4940", 2)].map(|(prefix, lines)| TrunkConfig {
        max_calls: lines,
        ..registering(prefix, prefix)
    });
    let mut world = World::with(trunks.into());
    let accounts = [world.account().await, world.account().await];
    for (called, expected) in [("+49309", [1, 0]), ("+49409", [1, 1])] {
        let by = (None, &accounts[..]);
        assert!(
            world
                .call_account(by, "203.0.113.9", &invite(called))
                .is_none()
        );
        let taken = world.command().await;
        assert!(matches!(taken, Command::Accept { .. }), "{taken:?}");
        let list = world.trunks.list();
        let calls = [0, 1].map(|at| list[at]["calls"].as_u64().unwrap());
        assert_eq!(calls, expected, "{called}");
    }
}

#[tokio::test]
async fn administrators_see_why_a_trunk_is_not_registered_and_register_it_again() {
    let mut world = World::with(vec![registering("+4930", ""), TrunkConfig::default()]);
    let account = world.account().await;
    let facts = |world: &World| world.trunks.list()[0].clone();
    assert_eq!(facts(&world)["registration"], "registering");
    let failed = AgentEvent::RegistrationFailed {
        account,
        code: 403,
        reason: "Forbidden".to_owned(),
        response: None,
        retry: Some(Duration::from_secs(300)),
    };
    assert!(world.trunks.take(failed).is_none());
    let shown = facts(&world);
    assert_eq!(
        (&shown["registration"], &shown["code"], &shown["reason"]),
        (&"failed".into(), &403.into(), &"Forbidden".into())
    );
    assert!((298..=300).contains(&shown["again_in"].as_u64().unwrap()));
    assert_eq!(world.trunks.unregistered(), 1);

    world.trunks.register("office 0").unwrap();
    let command = world.command().await;
    assert!(matches!(command, Command::Register { account: it } if it == account));
    let registered = AgentEvent::Registered {
        account,
        expires: Duration::from_secs(60),
        response: Arc::new(response("200 OK", "", "")),
    };
    assert!(world.trunks.take(registered).is_none());
    let shown = facts(&world);
    assert_eq!(shown["registration"], "registered");
    assert!(shown.get("code").is_none(), "{shown}");
    assert_eq!(world.trunks.unregistered(), 0);
    // One that does not register, and one that is not there.
    let refused = |name: &str| {
        let refusal = world.trunks.register(name).unwrap_err();
        (refusal.code(), refusal.to_string())
    };
    assert_eq!(refused("office 1").0, 447);
    let none = (456, "No such trunk (other)".to_owned());
    assert_eq!(refused("other"), none);
}
