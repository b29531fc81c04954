//! What the receivers of sources can see, where those are sent on demand.

use portunus_graph::{Demand, SourceKey};

use super::Graph;
use crate::SourceRef;
use crate::command::{Command, SourceCommand};
use crate::worker::other_workers::OtherWorkers;
use crate::{IngestId, RouteOptions};

impl Graph {
    /// Notes that the demand for a source may have changed on this worker.
    pub(in crate::worker) fn note_demand(&mut self, key: SourceKey) {
        let on_demand = |source: &portunus_graph::Source| source.format.on_demand;
        if self.source(key).is_some_and(on_demand) && !self.demanded.contains(&key) {
            self.demanded.push(key);
        }
    }

    /// Returns the next noted source.
    pub(in crate::worker) fn next_demanded(&mut self) -> Option<SourceKey> {
        self.demanded.pop()
    }

    /// Returns what the routes of a source on this worker can see.
    pub(in crate::worker) fn demand_of_routes(&self, key: SourceKey) -> Demand {
        let Some(source) = self.source(key) else {
            return Demand::NOTHING;
        };
        let routes = source.routes.iter().filter_map(|slot| self.route(*slot));
        let of = |options: &RouteOptions| Demand::up_to(options, source.format.encodings);
        let demands = routes.map(|route| of(&route.options));
        demands.fold(Demand::NOTHING, Demand::union)
    }

    /// Sets what receivers on this worker can see of a source. Returns the ingest and what all can
    /// see, if the source lives here; else its worker is told.
    pub(in crate::worker) fn set_demand(
        &mut self,
        key: SourceKey,
        demand: Demand,
        others: &OtherWorkers,
    ) -> Option<(IngestId, Demand)> {
        let worker = self.worker;
        let source = self.source_mut(key)?;
        let before = std::mem::replace(&mut source.demand, demand);
        let SourceRef::Ingest(ingest) = source.is else {
            return None;
        };
        if ingest.worker == worker {
            let all = source.demands.iter().map(|(_, demand)| *demand);
            return Some((ingest, all.fold(demand, Demand::union)));
        }
        if before != demand {
            let command = SourceCommand::SetDemand { worker, demand };
            others.send(ingest.worker, Command::Source(source.is, command));
        }
        None
    }

    /// Sets what receivers on another worker can see of a source of this one.
    pub(in crate::worker) fn take_demand(&mut self, key: SourceKey, worker: u16, demand: Demand) {
        let Some(source) = self.source_mut(key) else {
            return;
        };
        source.demands.retain(|(of, _)| *of != worker);
        // A worker whose last route has ended meanwhile sees nothing.
        if source.watchers.iter().any(|(of, _)| *of == worker) {
            source.demands.push((worker, demand));
        }
        self.note_demand(key);
    }
}
