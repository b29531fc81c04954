//! Sources that cross to one other node: what they cost, and how soon their first packets come.

use super::feeds::Feeds;
use super::seat::{Measured, Seat, measure};
use super::{Demand, Place};
use crate::record::{Delays, RelayCost};
use crate::scenario::ScenarioError;

/// So many more viewers of each source tell what one costs.
const VIEWERS: u32 = 4;

/// Joins of these under way at a time.
const AT_A_TIME: usize = 20;

/// Compares relayed sources with viewers at the node of the sources. Returns `None` if CPU times are
/// not known.
pub(crate) async fn relays(
    near: &Place,
    far: &Place,
    demand: &Demand,
) -> Result<Option<RelayCost>, ScenarioError> {
    let mut seats = [
        Seat::open(near, demand, demand.check_share).await?,
        Seat::open(far, demand, demand.check_share).await?,
    ];
    let [here, there] = &seats;
    // The last one keeps the link in use.
    let feeds = Feeds::start(here, demand, demand.sources.saturating_add(1)).await?;
    feeds.known_at(there).await?;
    let (mut near_acts, mut far_acts) = (feeds.acts(here), feeds.acts(there));
    near_acts.pop();
    let warm: Vec<_> = far_acts.pop().into_iter().collect();
    there.join(warm, 1, 1).await?;
    let mut first_here = here.join(near_acts.clone(), demand.sources, 1).await?;
    let base = measure(&mut seats, demand).await?;
    let [_, there] = &seats;
    let mut first_there = there.join(far_acts, demand.sources, 1).await?;
    let relayed = measure(&mut seats, demand).await?;
    let [here, _] = &seats;
    let viewers = demand.sources.saturating_mul(VIEWERS);
    here.join(near_acts, viewers, AT_A_TIME).await?;
    let more = measure(&mut seats, demand).await?;
    for seat in &seats {
        seat.crowd.leave(seat.crowd.len(), false).await;
    }
    feeds.finish().await;
    let of_one = |before: &[Measured], after: &[Measured], node: usize, count: u32| {
        let cpu = |all: &[Measured]| all.get(node)?.cpu_cores;
        Some((cpu(after)? - cpu(before)?) / f64::from(count.max(1)))
    };
    let source = of_one(&base, &relayed, 0, demand.sources);
    let viewer = of_one(&relayed, &more, 0, viewers);
    let far = of_one(&base, &relayed, 1, demand.sources);
    let (Some(source), Some(viewer), Some(far)) = (source, viewer, far) else {
        return Ok(None);
    };
    Ok(Some(RelayCost {
        sources: demand.sources,
        source_cpu_cores: source,
        viewer_cpu_cores: viewer,
        far_cpu_cores: far,
        first_packet_here: Delays::of(&mut first_here),
        first_packet_there: Delays::of(&mut first_there),
    }))
}
