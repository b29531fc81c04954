use portunus_sip::agent::Cause;
use serde_json::json;

use super::world::{PHONE, World};

/// What is counted and not 0.
fn counted(world: &World) -> Vec<(&'static str, u64)> {
    let counters = world.server.gateway.plugin_counters().into_iter();
    let counters = counters.map(|(plugin, counter)| {
        assert_eq!(plugin, "sip");
        (counter.name, counter.value)
    });
    counters.filter(|(_, value)| *value > 0).collect()
}

#[tokio::test]
async fn calls_are_counted() {
    let mut world = World::new();
    let (mut page, account) = world.page("alice", json!({})).await;
    assert_eq!(counted(&world), []);
    let call = world.ring(account, 7, PHONE).await;
    page.event().await;
    assert_eq!(counted(&world), [("incoming_calls", 1)]);
    world.command().await;
    world.end(call, Cause::Cancelled, 487, "x").await;
    assert_eq!(page.event().await["result"]["event"], "hangup");
    assert_eq!(page.next().await["janus"], "hangup");
    world.talk(&mut page).await;
    assert_eq!(
        counted(&world),
        [("incoming_calls", 1), ("answered_calls", 1)]
    );
}

#[tokio::test]
async fn what_there_is_at_present_is_told() {
    let world = World::new();
    let gauges = world.server.gateway.plugin_gauges().into_iter();
    let names: Vec<_> = gauges
        .map(|(plugin, gauge)| (plugin, gauge.name, gauge.value))
        .collect();
    assert!(names.contains(&("sip", "calls", 0)), "{names:?}");
}
