//! Commands that concern an ingest.

use std::sync::Arc;

use portunus_graph::IngestId;
use tokio::sync::oneshot;

use crate::ingest::{IngestOptions, IngestStatus, Listening, ParameterSets, ThreadFeedEnd};

/// A command that concerns an ingest.
#[derive(Debug)]
pub(crate) enum IngestCommand {
    Add(Box<NewIngest>),
    /// Takes packets of a thread for the ingests of this worker.
    AddThreadFeed(ThreadFeedEnd),
    SetEnabled {
        ingest: IngestId,
        enabled: bool,
    },
    SetParameterSets {
        ingest: IngestId,
        sets: Option<ParameterSets>,
    },
    /// Reports who talks, and how much is spoken.
    Listen {
        ingest: IngestId,
        listening: Option<Listening>,
    },
    Remove {
        ingest: IngestId,
        /// Dropped once the sockets of the ingest are closed.
        done: oneshot::Sender<()>,
    },
}

/// A new ingest.
#[derive(Debug)]
pub(crate) struct NewIngest {
    pub(crate) id: IngestId,
    pub(crate) options: IngestOptions,
    pub(crate) status: Arc<IngestStatus>,
}
