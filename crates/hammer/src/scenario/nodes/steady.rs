//! Viewers of one source, at one server alone and at all nodes.

use std::collections::HashMap;
use std::time::Duration;

use super::feeds::Feeds;
use super::seat::{Measured, Seat, measure};
use super::{Demand, Place};
use crate::record::{Delays, NodeLoad};
use crate::scenario::ScenarioError;
use crate::source::Delayed;

/// Joins under way at a time.
const AT_A_TIME: usize = 50;

/// Measures one server with the viewers of one node.
pub(crate) async fn alone(place: &Place, demand: &Demand) -> Result<NodeLoad, ScenarioError> {
    let mut all = at_all(std::slice::from_ref(place), demand).await?;
    let none = || ScenarioError::Nobody("nothing was measured".to_owned());
    all.pop().ok_or_else(none)
}

/// Measures all nodes while each has its viewers of one source at the first node.
pub(crate) async fn spread(
    places: &[Place],
    demand: &Demand,
) -> Result<Vec<NodeLoad>, ScenarioError> {
    at_all(places, demand).await
}

async fn at_all(places: &[Place], demand: &Demand) -> Result<Vec<NodeLoad>, ScenarioError> {
    let mut seats = Vec::new();
    for place in places {
        seats.push(Seat::open(place, demand, demand.check_share).await?);
    }
    let none = || ScenarioError::Nobody("there is no node".to_owned());
    let feeds = Feeds::start(seats.first().ok_or_else(none)?, demand, 1).await?;
    let mut acts = Vec::new();
    for seat in &seats {
        feeds.known_at(seat).await?;
        let own = feeds.acts(seat);
        // The first viewer always decrypts.
        seat.join(own.clone(), 1, 1).await?;
        acts.push(own);
    }
    // What a hop adds is seen best when nobody else is there.
    let hops = match seats.len() {
        0 | 1 => Vec::new(),
        _ => hops(&measure(&mut seats, demand).await?),
    };
    for (seat, own) in seats.iter().zip(acts) {
        let more = demand.viewers.saturating_sub(1);
        seat.join(own, more, AT_A_TIME).await?;
    }
    let measured = measure(&mut seats, demand).await?;
    let each = seats.iter().zip(measured).enumerate();
    let each = each.map(|(index, (seat, measured))| {
        let hop = hops.get(index).copied().flatten();
        node_load(&seat.name, measured, hop)
    });
    let each = each.collect();
    for seat in &seats {
        seat.crowd.leave(seat.crowd.len(), false).await;
    }
    feeds.finish().await;
    Ok(each)
}

fn node_load(node: &str, mut measured: Measured, hop: Option<Delays>) -> NodeLoad {
    let delays = std::mem::take(&mut measured.findings.delays);
    let mut delays_us: Vec<f64> = delays.iter().map(|delayed| delayed.us).collect();
    NodeLoad {
        node: node.to_owned(),
        viewers: measured.viewers,
        cpu_cores: measured.cpu_cores,
        delivered_share: measured.delivered_share(),
        lost_share: measured.lost_share(),
        received_bps: measured.received_bps(),
        delay: Delays::of(&mut delays_us),
        round_trip_us: None,
        hop,
    }
}

/// Returns what each node adds to the delays of the packets at the first one. `None` for the first.
fn hops(measured: &[Measured]) -> Vec<Option<Delays>> {
    let near = measured.first().map(|first| &*first.findings.delays);
    let near = by_packet(near.unwrap_or_default());
    let of = |far: &Measured| Delays::of(&mut added_us(&near, &far.findings.delays));
    let others = measured.iter().skip(1).map(of);
    std::iter::once(None).chain(others).collect()
}

/// Returns the least delay of each packet, by the time when it was sent, in µs.
fn by_packet(delays: &[Delayed]) -> HashMap<Duration, f64> {
    let mut least = HashMap::new();
    for delayed in delays {
        let us = least.entry(delayed.sent).or_insert(f64::MAX);
        *us = delayed.us.min(*us);
    }
    least
}

/// Returns what is added to the delay of each packet that came to both nodes.
fn added_us(near: &HashMap<Duration, f64>, far: &[Delayed]) -> Vec<f64> {
    let far = by_packet(far).into_iter();
    let added = far.filter_map(|(sent, us)| Some(us - near.get(&sent)?));
    added.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::viewer::Findings;

    #[test]
    fn a_hop_adds_what_the_same_packet_needs_more() {
        let delayed = |n, us| Delayed {
            sent: Duration::from_millis(n),
            us,
        };
        let of = |delays| Measured {
            findings: Findings {
                delays,
                ..Findings::default()
            },
            ..Measured::default()
        };
        let near = of(vec![delayed(1, 100.0), delayed(2, 5_000.0)]);
        // A packet that came to one of them only says nothing.
        let far = of(vec![
            delayed(1, 350.0),
            delayed(2, 5_200.0),
            delayed(3, 90_000.0),
        ]);
        let hops = hops(&[near, far]);
        assert_eq!(hops.len(), 2);
        assert_eq!(hops.first(), Some(&None));
        let hop = hops.get(1).copied().flatten().unwrap();
        assert_eq!((hop.count, hop.min_us, hop.max_us), (2, 200.0, 250.0));
    }

    #[test]
    fn lost_packets_are_those_with_missing_numbers() {
        let share = |packets, lost| {
            let findings = Findings {
                packets,
                lost,
                ..Findings::default()
            };
            let measured = Measured {
                findings,
                ..Measured::default()
            };
            measured.lost_share()
        };
        assert_eq!(
            [share(990, 10), share(990, 0), share(0, 0)],
            [0.01, 0.0, 0.0]
        );
        // More of the losses of the time before came late than were lost in this one.
        assert_eq!(share(990, -1), 0.0);
    }
}
