//! Ingests, and the threads that feed them.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use portunus_graph::{IngestId, SharedClock};
use tokio::sync::oneshot;

use super::MediaPlane;
use crate::command::{Command, IngestCommand, NewIngest};
use crate::ingest::{
    Ingest, IngestEnd, IngestOptions, IngestStatus, Listening, ParameterSets, ThreadFeed,
    thread_feed,
};

impl MediaPlane {
    /// Adds a source without a PeerConnection. It lives until [`MediaPlane::remove_ingest`].
    pub fn add_ingest(&self, options: IngestOptions) -> Ingest {
        let ports = self.shared.workers.as_slice();
        let fewest = || {
            let load = |n: &usize| {
                ports
                    .get(*n)
                    .map(|port| port.ingests.load(Ordering::Relaxed))
            };
            (0..ports.len()).min_by_key(load).unwrap_or(0)
        };
        let worker = options.worker.filter(|n| *n < ports.len());
        let worker = worker.unwrap_or_else(fewest);
        if let Some(port) = ports.get(worker) {
            port.ingests.fetch_add(1, Ordering::Relaxed);
        }
        let id = IngestId {
            worker: worker as u16,
            serial: self.next_id(),
        };
        let status = Arc::new(IngestStatus::new(Instant::now()));
        let ingest = NewIngest {
            id,
            options,
            status: Arc::clone(&status),
        };
        self.send_to(
            id.worker,
            Command::Ingest(IngestCommand::Add(Box::new(ingest))),
        );
        Ingest { id, status }
    }

    /// Accepts packets, which is the default, or drops them. Viewers stay.
    pub fn set_ingest_enabled(&self, ingest: IngestId, enabled: bool) {
        self.send_to(
            ingest.worker,
            Command::Ingest(IngestCommand::SetEnabled { ingest, enabled }),
        );
    }

    /// Sets the H.264 parameter sets to send if the stream has none of its own. `None` sends none.
    pub fn set_ingest_parameter_sets(&self, ingest: IngestId, sets: Option<ParameterSets>) {
        let command = Command::Ingest(IngestCommand::SetParameterSets { ingest, sets });
        self.send_to(ingest.worker, command);
    }

    /// Ends an ingest and all routes from it, and closes its sockets. Await the result before
    /// reusing its ports.
    pub fn remove_ingest(&self, ingest: IngestId) -> IngestEnd {
        let (done, end) = oneshot::channel();
        self.send_to(
            ingest.worker,
            Command::Ingest(IngestCommand::Remove { ingest, done }),
        );
        IngestEnd::new(end)
    }

    /// Reports who talks on an audio ingest, and how much. `None` disables that.
    pub fn listen(&self, ingest: IngestId, listening: Option<Listening>) {
        self.send_to(
            ingest.worker,
            Command::Ingest(IngestCommand::Listen { ingest, listening }),
        );
    }

    /// Returns a new clock for ingests to share.
    pub fn shared_clock(&self) -> SharedClock {
        SharedClock::new(NonZeroU64::new(self.next_id()).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns a feed of ingests of a worker, of which there may be several. It ends when it is
    /// dropped.
    pub fn thread_feed(&self, worker: usize) -> ThreadFeed {
        let port = self.shared.workers.get(worker);
        let (feed, end) = thread_feed(port.map(|port| Arc::clone(port.inbox.wakeup())));
        if let Ok(worker) = u16::try_from(worker) {
            self.send_to(worker, Command::Ingest(IngestCommand::AddThreadFeed(end)));
        }
        feed
    }
}
