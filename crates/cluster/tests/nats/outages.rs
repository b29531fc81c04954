//! Deaths of nodes and of the bus.

use std::time::{Duration, Instant};

use portunus_cluster::{Demand, Place};
use tokio::time::sleep;

use crate::site::{Site, room};

#[tokio::test]
async fn a_home_that_dies_is_taken_over_and_the_rest_see_each_other() {
    let Some(site) = Site::start().await else {
        return;
    };
    let [a, b, c] = site.three().await;
    let key = room("x");
    a.open(&key).await;
    a.until_home(&key, None).await;
    b.open(&key).await;
    c.open(&key).await;
    for member in [&a, &b, &c] {
        member.until_others(&key, 2).await;
    }
    let lost = a.cluster.id().clone();
    let died = Instant::now();
    drop(a);
    for member in [&b, &c] {
        member
            .until("the loss", |told| told.lost.contains(&lost))
            .await;
        member.until_others(&key, 1).await;
    }
    println!("the others knew after {:?}", died.elapsed());
    let here = |told: &crate::site::Told| matches!(told.places.get(&key), Some(Place::Here { .. }));
    let taken = async {
        while !here(&b.told.lock().unwrap()) && !here(&c.told.lock().unwrap()) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), taken)
        .await
        .expect("a new home");
    println!("the home was taken over after {:?}", died.elapsed());
    let (home, other) = match here(&b.told.lock().unwrap()) {
        true => ("b", &c),
        false => ("c", &b),
    };
    other.until_home(&key, Some(home)).await;
    other.until_others(&key, 1).await;
    other.until_agreed().await;
}

#[tokio::test]
async fn a_node_that_leaves_hands_over_and_is_gone_at_once() {
    let Some(site) = Site::start().await else {
        return;
    };
    let [a, b, c] = site.three().await;
    let key = room("x");
    a.open(&key).await;
    a.until_home(&key, None).await;
    b.open(&key).await;
    b.until_home(&key, Some("a")).await;
    a.cluster.demand(Demand::Drain(true)).await;
    b.until_home(&key, None).await;
    a.cluster.leave().await;
    let gone = Instant::now();
    c.until("the loss", |told| told.lost.len() == 1).await;
    assert!(
        gone.elapsed() < Duration::from_secs(3),
        "{:?}",
        gone.elapsed()
    );
    let nodes = c.cluster.status().await.unwrap().nodes;
    assert_eq!(nodes.len(), 2, "{nodes:?}");
}

#[tokio::test]
async fn while_the_bus_is_dead_known_rooms_go_on_and_all_is_normal_soon_after_its_return() {
    let Some(mut site) = Site::start().await else {
        return;
    };
    let [a, b, c] = site.three().await;
    let key = room("x");
    a.open(&key).await;
    a.until_home(&key, None).await;
    b.open(&key).await;
    b.until_others(&key, 1).await;
    site.nats.kill();
    for member in [&a, &b, &c] {
        let reason = member.until_degraded(true).await;
        assert!(reason.starts_with("degraded: cluster: "), "{reason}");
    }
    // A join to a known room, and one to a new room.
    c.open(&key).await;
    c.until_others(&key, 2).await;
    let new = room("new");
    c.open(&new).await;
    c.until("a refusal", |told| {
        matches!(told.places.get(&new), Some(Place::Nowhere(_)))
    })
    .await;
    site.nats.run().await;
    let back = Instant::now();
    for member in [&a, &b, &c] {
        member.until_degraded(false).await;
    }
    c.until_home(&new, None).await;
    println!("all was normal after {:?}", back.elapsed());
    assert!(
        [&a, &b, &c]
            .iter()
            .all(|member| member.told.lock().unwrap().lost.is_empty())
    );
    b.until_agreed().await;
}

#[tokio::test]
async fn a_bus_that_is_stopped_and_goes_on_costs_nobody_anything() {
    let Some(site) = Site::start().await else {
        return;
    };
    let [a, b, _c] = site.three().await;
    let key = room("x");
    a.open(&key).await;
    a.until_home(&key, None).await;
    b.open(&key).await;
    b.until_others(&key, 1).await;
    site.nats.signal("STOP");
    a.until_degraded(true).await;
    site.nats.signal("CONT");
    a.until_degraded(false).await;
    b.until_degraded(false).await;
    assert_eq!(b.told.lock().unwrap().items.len(), 1);
    assert!(b.told.lock().unwrap().lost.is_empty());
    a.cluster.demand(Demand::Release(key.clone())).await;
    b.until_others(&key, 0).await;
}
