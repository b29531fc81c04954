#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
use std::net::IpAddr;
use std::thread;

use super::*;

const KEYS: BudgetKeys = BudgetKeys {
    whole: "whole",
    address: "address",
};

fn budget(whole: usize, address: usize, reserve: usize) -> Budget {
    let limits = BudgetLimits {
        whole,
        address,
        reserve,
    };
    let shared = ["192.0.2.8/30", "2001:db8:5::7", "127.0.0.0/8", "::1"]
        .map(|network| network.parse().unwrap());
    Budget::new(limits, &shared, KEYS)
}

fn at(address: &str) -> ClientAddress {
    address.parse::<IpAddr>().unwrap().into()
}

#[test]
fn limits_that_change_hold_for_those_who_are_there() {
    let budget = budget(1_000, 100, 0);
    let (one, other) = (
        budget.purse(at("198.51.100.1")),
        budget.purse(at("198.51.100.2")),
    );
    let held = one.take(100).unwrap();
    assert!(one.take(1).is_err());
    let limits = |whole, address| BudgetLimits {
        whole,
        address,
        reserve: 0,
    };
    budget.set_limits(limits(1_000, 200));
    let more = one.take(100).unwrap();
    budget.set_limits(limits(150, 150));
    assert!(one.take(1).is_err() && other.take(1).is_err());
    assert_eq!(budget.totals().limit, 150);
    drop((held, more));
    assert!(other.take(150).is_ok());
}

#[test]
fn a_budget_is_nearly_used_up_when_strangers_have_hardly_anything_left() {
    let budget = budget(1_000, 1_000, 100);
    let purse = budget.purse(at("198.51.100.1"));
    let held = purse.take(889).unwrap();
    assert!(!budget.is_nearly_used_up());
    let more = purse.take(1).unwrap();
    assert!(budget.is_nearly_used_up());
    drop((held, more));
    assert!(!budget.is_nearly_used_up());
}

#[test]
fn an_address_has_its_share_and_others_have_theirs() {
    let budget = budget(100, 40, 0);
    let (one, other) = (at("198.51.100.1"), at("2001:db8:1:2::3"));
    let held = budget.purse(one).take(30).unwrap();
    let refused = budget.purse(one).take(11).unwrap_err();
    assert_eq!(refused, OverBudget::Address(one));
    let more = budget.purse(one).take(10).unwrap();
    let theirs = budget.purse(other).take(40).unwrap();
    // Machines of one IPv6 network are one client.
    let beside = at("2001:db8:1:2:ffff::");
    assert!(budget.purse(beside).take(1).is_err());
    let last = budget.purse(at("198.51.100.2")).take(20).unwrap();
    let refused = budget.purse(at("198.51.100.3")).take(1).unwrap_err();
    assert_eq!(refused, OverBudget::All);
    assert_eq!(
        budget.totals(),
        BudgetTotals {
            used: 100,
            limit: 100,
            refused_to_address: 2,
            refused_to_all: 1,
        }
    );
    drop((held, more, theirs, last));
    assert_eq!(budget.totals().used, 0);
    assert_eq!(budget.inner.purses().len(), 4);
    budget.forget();
    assert_eq!(budget.inner.purses().len(), 0);
}

#[test]
fn only_the_whole_bounds_addresses_that_many_clients_share() {
    let proxies = [
        at("127.0.0.1"),
        at("127.4.5.6"),
        at("::1"),
        at("192.0.2.9"),
        at("2001:db8:5::7"),
        ClientAddress::Unix,
        ClientAddress::Broker("mqtt"),
    ];
    for address in proxies {
        let budget = budget(100, 10, 20);
        let held = budget.purse(address).take(80);
        assert!(held.is_ok(), "{address}");
        assert_eq!(budget.purse(address).take(1).err(), Some(OverBudget::All));
        // The reserve is for the trusted.
        let reserve = budget.trusted().take(20);
        assert!(reserve.is_ok());
        assert!(budget.trusted().take(1).is_err());
    }
    for address in ["192.0.2.12", "2001:db8:6::7", "::2:0:0:0:1"] {
        assert!(budget(100, 10, 0).purse(at(address)).take(11).is_err());
    }
}

#[test]
fn a_connection_has_what_it_prepaid_even_when_nothing_is_left() {
    let budget = budget(100, 100, 0);
    let address = budget.purse(at("198.51.100.1"));
    let connection = address.open(30, 10).unwrap();
    let rest = address.take(70).unwrap();
    let mut little = connection.take(6).unwrap();
    assert!(connection.take(5).is_err());
    assert!(little.grow(5).is_err());
    little.grow(4).unwrap();
    drop(rest);
    little.resize(80).unwrap();
    assert_eq!(budget.totals().used, 100);
    little.resize(8).unwrap();
    assert_eq!(budget.totals().used, 30);
    // A share outlives the other owners of its purse.
    drop((connection, address));
    budget.forget();
    assert_eq!(budget.totals().used, 30);
    drop(little);
    assert_eq!(budget.totals().used, 0);
    assert!(budget.purse(at("198.51.100.1")).open(101, 0).is_err());
}

#[test]
fn nothing_is_lost_or_won_when_many_take_at_once() {
    let budget = budget(1_000, 700, 100);
    let connection = budget.purse(at("198.51.100.1")).open(100, 60).unwrap();
    thread::scope(|scope| {
        for seed in 0..4_usize {
            let (budget, connection) = (&budget, &connection);
            scope.spawn(move || {
                let mut shares = Vec::new();
                for step in 0..20_000 {
                    let amount = (step * 7 + seed * 13) % 97;
                    let other = budget.purse(at("198.51.100.2"));
                    shares.extend(connection.take(amount));
                    shares.extend(other.take(amount));
                    assert!(budget.totals().used <= 1_000);
                    if step % 3 == seed % 3 {
                        shares.clear();
                    }
                }
            });
        }
    });
    assert_eq!(budget.totals().used, 100);
    drop(connection);
    assert_eq!(budget.totals().used, 0);
}

#[test]
fn a_payment_that_the_whole_refuses_loses_nothing_of_others() {
    let budget = budget(100, 100, 0);
    let address = budget.purse(at("198.51.100.1"));
    let connection = address.open(60, 60).unwrap();
    let _rest = address.take(40).unwrap();
    thread::scope(|scope| {
        // Each of the two fits into what is prepaid, and both do not.
        for amount in [60, 10] {
            let connection = &connection;
            scope.spawn(move || (0..50_000).for_each(|_| drop(connection.take(amount))));
        }
    });
    assert_eq!(budget.totals().used, 100);
}

#[test]
fn a_purse_without_a_budget_has_no_bound() {
    let purse = Purse::default();
    let mut share = purse.take(usize::MAX).unwrap();
    share.resize(0).unwrap();
    assert_eq!(purse.open(1, 1).unwrap().used(), 0);
}
