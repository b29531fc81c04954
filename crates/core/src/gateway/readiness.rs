//! The readiness of the server for new clients.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use portunus_media::WorkerStats;

use super::Gateway;
use crate::ClusterView;

/// A reason why new clients should go elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReady {
    /// The server is being drained.
    Draining,
    /// New sessions are disabled by an operator or the configuration.
    NotAccepting,
    /// The most sessions exist (`server.max_sessions`).
    Sessions,
    /// Clients hold nearly all memory of the budget (`server.client_memory_mb`).
    Memory,
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotReady::Draining => "draining: nobody new is taken",
            NotReady::NotAccepting => "closed: new sessions are not accepted",
            NotReady::Sessions => "overloaded: there are server.max_sessions sessions",
            NotReady::Memory => "overloaded: clients hold the memory of server.client_memory_mb",
        })
    }
}

impl Gateway {
    /// Returns the faults of this process: stuck media workers. Empty means healthy.
    pub fn stuck(&self) -> Vec<String> {
        let workers = self.context().media.worker_stats().into_iter();
        let stuck = workers.filter(WorkerStats::is_stuck);
        let name = |worker: WorkerStats| {
            let seconds = worker.silent.as_secs();
            format!(
                "media worker {} has been stuck for {seconds} s",
                worker.index
            )
        };
        stuck.map(name).collect()
    }

    /// Returns the cluster, if this server is a node of one.
    pub fn cluster(&self) -> Option<&Arc<dyn ClusterView>> {
        self.context().facts.cluster.as_ref()
    }

    /// Returns all reasons why a new client would be refused. Empty means that the server is ready.
    pub fn not_ready(&self) -> Vec<NotReady> {
        let context = self.context();
        let most = context.config().max_sessions;
        let is_full = most > 0 && self.inner.sessions().len() >= most;
        let all = [
            (context.drain.is_on(), NotReady::Draining),
            (
                !self.inner.accepting.load(Ordering::Relaxed),
                NotReady::NotAccepting,
            ),
            (is_full, NotReady::Sessions),
            (context.memory.is_nearly_used_up(), NotReady::Memory),
        ];
        let reasons = all.into_iter().filter(|(holds, _)| *holds);
        reasons.map(|(_, reason)| reason).collect()
    }
}
