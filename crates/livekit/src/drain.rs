//! The end of a drain: clients are sent elsewhere, one after another.

use std::time::Duration;

use livekit_protocol::{
    DisconnectReason, LeaveRequest, RegionInfo, RegionSettings, leave_request, signal_response,
};
use portunus_core::OtherNode;

/// How long before the deadline of a drain the first client is sent elsewhere.
const SPREAD: Duration = Duration::from_secs(10);

/// The interval in which some of the clients are sent.
pub(crate) const TURN: Duration = Duration::from_millis(100);

/// Returns the probability, 0 to 1, with which a client that is still there is sent in this turn,
/// so that all go evenly until the deadline. `left` is the time until then, or `None` for never.
pub(crate) fn chance(left: Option<Duration>) -> f64 {
    let Some(left) = left.filter(|left| *left <= SPREAD) else {
        return 0.0;
    };
    // The last turn is before the deadline, at which the server ends all that is left.
    let left = left.saturating_sub(TURN);
    match left <= TURN {
        true => 1.0,
        false => TURN.div_duration_f64(left),
    }
}

/// Returns the message that has a client join anew because the server is drained: at one of `nodes`,
/// the best first, or at the same URL if there are none.
pub(crate) fn farewell(nodes: Vec<OtherNode>) -> signal_response::Message {
    let regions = nodes
        .into_iter()
        .filter_map(|node| Some((node.region, node.name, node.livekit_url?)));
    let regions: Vec<_> = (0..)
        .zip(regions)
        .map(|(distance, (region, name, url))| RegionInfo {
            region: if region.is_empty() { name } else { region },
            url,
            distance,
        })
        .collect();
    let has_some = !regions.is_empty();
    signal_response::Message::Leave(LeaveRequest {
        can_reconnect: true,
        reason: DisconnectReason::ServerShutdown.into(),
        action: leave_request::Action::Reconnect.into(),
        regions: has_some.then_some(RegionSettings { regions }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_go_evenly_and_all_before_the_deadline() {
        let (mut present, mut gone) = (1_000.0, Vec::new());
        for turn in 0..110_u32 {
            let left = Duration::from_secs(11) - turn * TURN;
            let going = present * chance(Some(left));
            present -= going;
            gone.push(going);
        }
        assert_eq!(present, 0.0);
        let of_second = |second: usize| gone.iter().skip(second * 10).take(10).sum::<f64>();
        assert_eq!(of_second(0), 0.0);
        for second in 1..10 {
            let count = of_second(second);
            assert!((90.0..115.0).contains(&count), "{count} in second {second}");
        }
    }

    #[test]
    fn clients_are_told_the_nodes_that_have_this_door_the_best_first() {
        let node = |name: &str, region: &str, url: Option<&str>| OtherNode {
            name: name.to_owned(),
            region: region.to_owned(),
            livekit_url: url.map(str::to_owned),
            ..OtherNode::default()
        };
        let regions = |nodes| match farewell(nodes) {
            signal_response::Message::Leave(leave) => leave.regions.map(|it| it.regions),
            _ => None,
        };
        let nodes = vec![
            node("b", "", Some("ws://b")),
            node("c", "north", None),
            node("d", "north", Some("ws://d")),
        ];
        let info = |region: &str, url: &str, distance| RegionInfo {
            region: region.to_owned(),
            url: url.to_owned(),
            distance,
        };
        let expected = vec![info("b", "ws://b", 0), info("north", "ws://d", 1)];
        assert_eq!(regions(nodes), Some(expected));
        assert_eq!(regions(Vec::new()), None);
    }

    #[test]
    fn without_a_deadline_nobody_goes() {
        assert_eq!(chance(None), 0.0);
    }
}
