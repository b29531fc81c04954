//! Commands that concern an ingest.

use std::time::Instant;

use portunus_graph::IngestId;

use crate::command::{IngestCommand, NewIngest};
use crate::worker::Worker;

impl Worker {
    pub(super) fn take_ingest_command(&mut self, command: IngestCommand, now: Instant) {
        match command {
            IngestCommand::Add(ingest) => self.add_ingest(*ingest),
            IngestCommand::AddThreadFeed(feed) => self.thread_feeds.push(feed),
            IngestCommand::SetEnabled { ingest, enabled } => {
                let graph = &mut self.graph;
                self.ingests
                    .set_enabled(ingest, enabled, graph, &self.others);
            }
            IngestCommand::SetParameterSets { ingest, sets } => {
                self.ingests.set_parameter_sets(ingest, sets);
            }
            IngestCommand::Listen { ingest, listening } => self.ingests.listen(ingest, listening),
            IngestCommand::Remove { ingest, done } => {
                self.remove_ingest(ingest, now);
                drop(done);
            }
        }
    }

    pub(in crate::worker) fn add_ingest(&mut self, new: NewIngest) {
        let graph = (&mut self.graph, &mut self.peers);
        self.ingests
            .add(new, graph, &self.others, self.poller.registry());
    }

    pub(in crate::worker) fn remove_ingest(&mut self, ingest: IngestId, now: Instant) {
        if self.ingests.remove(ingest, self.poller.registry()) {
            self.node_links.forget_ingest(ingest);
            self.end_source(ingest.into(), now);
        }
    }
}
