#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
use std::sync::atomic::AtomicBool;

use portunus_core::ClientAddress;
use serde_json::{Map, Value};

use super::*;

/// A resource whose use is a flag.
#[derive(Debug)]
struct Thing {
    id: Id,
    is_used: AtomicBool,
    has_ended: AtomicBool,
}

#[derive(Debug, Clone)]
struct WrittenThing;

impl Written for WrittenThing {
    const ONE: &'static str = "thing";
    const MANY: &'static str = "things";

    fn key(&self) -> Id {
        Id::Number(0)
    }

    fn id(&self) -> Option<&Id> {
        None
    }

    fn read(_: &Map<String, Value>, _: Ids) -> Result<Self, String> {
        Ok(WrittenThing)
    }

    fn to_members(&self) -> Map<String, Value> {
        Map::new()
    }
}

impl Resource for Thing {
    type Written = WrittenThing;

    const MEMBER: &'static str = "thing";

    fn id(&self) -> &Id {
        &self.id
    }

    fn is_private(&self) -> bool {
        false
    }

    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    async fn end_unused(self: Arc<Self>) -> bool {
        !self.has_ended.swap(true, Ordering::Relaxed)
    }
}

fn registry(limits: Limits) -> Arc<Registry<Thing>> {
    Arc::new(Registry::new(limits))
}

fn client(last: u8) -> Maker {
    Maker::Client(ClientAddress::Ipv4([192, 0, 2, last].into()))
}

fn make(registry: &Arc<Registry<Thing>>, id: u64, maker: Maker) -> Result<Arc<Thing>, Refusal> {
    let reservation = registry.reserve(Some(Id::Number(id)), Ids::Numbers, maker)?;
    let thing = Arc::new(Thing {
        id: reservation.id().clone(),
        is_used: AtomicBool::new(false),
        has_ended: AtomicBool::new(false),
    });
    reservation.keep(thing.clone());
    Ok(thing)
}

fn operators(registry: &Arc<Registry<Thing>>, id: u64) -> Arc<Thing> {
    make(registry, id, Maker::Operator).unwrap()
}

#[test]
fn an_id_is_taken_while_its_resource_is_made_and_free_if_that_fails() {
    let registry = registry(Limits::default());
    let seven = Id::Number(7);
    let reserve = || registry.reserve(Some(seven.clone()), Ids::Numbers, Maker::Operator);
    let reservation = reserve().unwrap();
    assert_eq!(reserve().unwrap_err(), Refusal::Exists(seven.clone()));
    let missing = registry.get(&seven).unwrap_err();
    assert_eq!(missing, Refusal::NoSuch(seven.clone()));
    drop(reservation);
    assert!(reserve().is_ok());
    assert!(registry.all().is_empty());
}

#[test]
fn lists_have_the_order_of_creation() {
    let registry = registry(Limits::default());
    let made = [5, 3, 9, 1].map(|id| operators(&registry, id));
    registry.remove(&Id::Number(3), &made[1]).unwrap();
    let ids: Vec<_> = registry.all().iter().map(|it| it.id.to_string()).collect();
    assert_eq!(ids, ["5", "9", "1"]);
}

#[test]
fn what_has_taken_its_id_since_is_not_removed() {
    let registry = registry(Limits::default());
    let one = Id::Number(1);
    let first = operators(&registry, 1);
    registry.remove(&one, &first).unwrap();
    let second = operators(&registry, 1);
    assert!(registry.remove(&one, &first).is_err());
    assert!(Arc::ptr_eq(&registry.get(&one).unwrap(), &second));
}

#[test]
fn clients_have_limits_and_whoever_runs_the_server_has_none() {
    let registry = registry(Limits {
        max_per_client: 2,
        max_from_clients: 3,
        ..Limits::default()
    });
    let first = make(&registry, 1, client(1)).unwrap();
    let second = make(&registry, 2, client(1)).unwrap();
    let own = make(&registry, 3, client(1)).unwrap_err();
    assert_eq!(own, Refusal::TooMany(TooMany::OfClient(2)));
    // A reservation counts as well.
    let reserved = registry.reserve(None, Ids::Numbers, client(2)).unwrap();
    let all = make(&registry, 3, client(3)).unwrap_err();
    assert_eq!(all, Refusal::TooMany(TooMany::OfClients(3)));
    assert_eq!(registry.counts(), (2, 0));
    for id in 10..20 {
        operators(&registry, id);
    }
    drop(reserved);
    make(&registry, 3, client(3)).unwrap();
    // A destroyed or permanent resource makes room for another.
    registry.remove(&Id::Number(1), &first).unwrap();
    // A resource with the same id is another one.
    registry.adopt(&Id::Number(2), &first);
    assert!(make(&registry, 4, client(2)).is_ok());
    let full = make(&registry, 5, client(2)).unwrap_err();
    assert_eq!(full, Refusal::TooMany(TooMany::OfClients(3)));
    registry.adopt(&Id::Number(2), &second);
    make(&registry, 5, client(1)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_clients_made_ends_once_it_was_unused_for_the_time() {
    let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
    let registry = registry(Limits {
        unused_timeout: minutes(60),
        ..Limits::default()
    });
    let unused = make(&registry, 1, client(1)).unwrap();
    let used = make(&registry, 2, client(1)).unwrap();
    let named = make(&registry, 3, client(1)).unwrap();
    let kept = operators(&registry, 4);
    used.is_used.store(true, Ordering::Relaxed);
    tokio::time::sleep(minutes(50)).await;
    registry.get_to_use(&Id::Number(3)).unwrap();
    tokio::time::sleep(minutes(9)).await;
    assert_eq!(registry.all().len(), 4);
    used.is_used.store(false, Ordering::Relaxed);
    tokio::time::sleep(minutes(3)).await;
    assert!(unused.has_ended.load(Ordering::Relaxed));
    assert_eq!(registry.all().len(), 3);
    assert_eq!(registry.counts(), (0, 1));
    tokio::time::sleep(minutes(62)).await;
    assert!(used.has_ended.load(Ordering::Relaxed));
    assert!(named.has_ended.load(Ordering::Relaxed));
    // The checks start again after there was nothing to check.
    make(&registry, 5, client(1)).unwrap();
    tokio::time::sleep(minutes(62)).await;
    assert_eq!(registry.counts(), (0, 4));
    assert!(!kept.has_ended.load(Ordering::Relaxed));
    assert_eq!(registry.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_time_it_stays() {
    let registry = registry(Limits {
        unused_timeout: Duration::ZERO,
        ..Limits::default()
    });
    make(&registry, 1, client(1)).unwrap();
    tokio::time::sleep(Duration::from_secs(365 * 24 * 3_600)).await;
    assert_eq!(registry.all().len(), 1);
}
