//! Ingests as the control plane asks for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::sync::oneshot;

use super::{Ingest, IngestId, IngestOptions, IngestStatus, Listening, ParameterSets};
use crate::command::{Command, NewIngest};
use crate::{KeyframeCache, KeyframeInterval, MediaPlane, SourceRef};

/// The end of an ingest, which its worker has been told to bring about. It comes also where nobody waits for it.
#[derive(Debug)]
pub struct IngestEnd(oneshot::Receiver<()>);

impl IngestEnd {
    pub(crate) fn new(done: oneshot::Receiver<()>) -> Self {
        Self(done)
    }

    /// Waits until the ingest's sockets are closed, or its worker is gone.
    pub async fn closed(self) {
        // Nothing is ever sent: the other side is dropped.
        let _ = self.0.await;
    }
}

impl MediaPlane {
    /// Adds a source that is fed without a PeerConnection. It lives until [`MediaPlane::remove_ingest`].
    pub fn add_ingest(&self, options: IngestOptions) -> Ingest {
        let ports = self.ports();
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
        self.send_to(id.worker, Command::AddIngest(Box::new(ingest)));
        Ingest { id, status }
    }

    /// Takes packets in (as it does from the start) or drops what comes. Viewers stay.
    pub fn set_ingest_enabled(&self, ingest: IngestId, enabled: bool) {
        self.send_to(ingest.worker, Command::SetIngestEnabled { ingest, enabled });
    }

    /// Replaces the parameter sets of H.264 that are sent where the stream has none of its own; none: no more.
    pub fn set_ingest_parameter_sets(&self, ingest: IngestId, sets: Option<ParameterSets>) {
        let command = Command::SetIngestParameterSets { ingest, sets };
        self.send_to(ingest.worker, command);
    }

    /// Ends an ingest and all routes from it, and closes its sockets; whoever needs its ports waits for what is returned.
    pub fn remove_ingest(&self, ingest: IngestId) -> IngestEnd {
        let (done, end) = oneshot::channel();
        self.send_to(ingest.worker, Command::RemoveIngest { ingest, done });
        IngestEnd(end)
    }

    /// Listens to an ingest of audio from now on; none: no more.
    pub fn listen(&self, ingest: IngestId, listening: Option<Listening>) {
        self.send_to(ingest.worker, Command::Listen { ingest, listening });
    }

    /// Keeps what a video source sends from its last keyframe on, so that a new sink has a picture at
    /// once. Of a source with simulcast nothing is kept.
    pub fn keep_keyframe(&self, source: impl Into<SourceRef>, keep: Option<KeyframeCache>) {
        let source = source.into();
        self.send_to(source.worker(), Command::KeepKeyframe { source, keep });
    }

    /// Asks a video source that somebody receives for keyframes when none has come for a time; none: not any more.
    pub fn ask_keyframes(&self, source: impl Into<SourceRef>, interval: Option<KeyframeInterval>) {
        let source = source.into();
        self.send_to(
            source.worker(),
            Command::KeyframeInterval { source, interval },
        );
    }

    /// Asks a video source for keyframes of all its encodings.
    pub fn request_source_keyframe(&self, source: impl Into<SourceRef>) {
        let source = source.into();
        self.send_to(source.worker(), Command::SourceKeyframes { source });
    }
}
