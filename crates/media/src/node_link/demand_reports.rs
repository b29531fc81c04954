//! What viewers can see of sources of other nodes, as the control plane learns it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crossbeam_queue::SegQueue;
use portunus_graph::{Demand, IngestId};
use tokio::sync::Notify;

/// The demand for sources of other nodes. Workers report it, and the control plane reads it. Cheap
/// to clone. Its length is bounded by the number of ingests: each is in it once at most.
#[derive(Debug, Clone, Default)]
pub struct DemandReports {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: SegQueue<(IngestId, Arc<Latest>)>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Latest {
    demand: AtomicU32,
    is_queued: AtomicBool,
}

impl DemandReports {
    /// Returns the next source whose demand has changed, and the present demand.
    pub fn next(&self) -> Option<(IngestId, Demand)> {
        let (ingest, latest) = self.shared.queue.pop()?;
        latest.is_queued.store(false, Ordering::Release);
        let bits = latest.demand.load(Ordering::Acquire);
        Some((ingest, Demand::from_bits(bits)))
    }

    /// Waits until there may be another change.
    pub async fn changed(&self) {
        self.shared.news.notified().await;
    }

    /// Notes a change, for tests of users of the control plane.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn pretend(&self, ingest: IngestId, demand: Demand) {
        IngestDemand::new(ingest, self.clone()).report(demand);
    }
}

/// The packets of an ingest come from another node, as soon as somebody wants them.
#[derive(Debug, Clone)]
pub struct NodeFeed {
    /// The number of simulcast encodings, 1 to 3.
    pub encodings: u8,
    /// Where the demand is reported.
    pub reports: DemandReports,
}

/// The demand for an ingest, on its worker.
#[derive(Debug)]
pub(crate) struct IngestDemand {
    ingest: IngestId,
    reports: DemandReports,
    latest: Arc<Latest>,
}

impl IngestDemand {
    pub(crate) fn new(ingest: IngestId, reports: DemandReports) -> Self {
        Self {
            ingest,
            reports,
            latest: Arc::default(),
        }
    }

    /// Reports the demand, if it has changed.
    pub(crate) fn report(&self, demand: Demand) {
        let bits = demand.to_bits();
        if self.latest.demand.swap(bits, Ordering::AcqRel) == bits {
            return;
        }
        if !self.latest.is_queued.swap(true, Ordering::AcqRel) {
            let shared = &self.reports.shared;
            shared.queue.push((self.ingest, Arc::clone(&self.latest)));
            shared.news.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_demand_is_reported_and_once() {
        let reports = DemandReports::default();
        let ingest = IngestId {
            worker: 0,
            serial: 7,
        };
        let of = IngestDemand::new(ingest, reports.clone());
        of.report(Demand::NOTHING);
        assert_eq!(reports.next(), None, "it was nothing before");
        for encodings in [1, 3, 7] {
            of.report(Demand {
                encodings,
                ..Demand::NOTHING
            });
        }
        let (from, demand) = reports.next().unwrap_or((ingest, Demand::NOTHING));
        assert_eq!((from, demand.encodings), (ingest, 7));
        assert_eq!(reports.next(), None);
    }
}
