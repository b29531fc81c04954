//! Legs: added, changed, fed and removed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use portunus_graph::{RouteOptions, SourceRef};
use portunus_rtp::Ssrc;
use tokio::sync::oneshot;

use super::MediaPlane;
use crate::command::{Command, LegCommand, LegSetup};
use crate::ingest::{IngestEnd, IngestStatus};
use crate::leg::{AddedLeg, LegGates, LegId, LegRemote, LegStatus, LegTones, NewLeg};

impl MediaPlane {
    /// Adds a leg. It lives until [`MediaPlane::remove_leg`], and is idle until it knows its far
    /// end.
    pub fn add_leg(&self, new: NewLeg) -> AddedLeg {
        let ports = self.shared.workers.as_slice();
        let fewest = || {
            let load = |n: &usize| Some(ports.get(*n)?.ingests.load(Ordering::Relaxed));
            (0..ports.len()).min_by_key(load).unwrap_or(0)
        };
        let worker = new.worker.filter(|n| *n < ports.len());
        let worker = worker.unwrap_or_else(fewest);
        if let Some(port) = ports.get(worker) {
            port.ingests.fetch_add(1, Ordering::Relaxed);
        }
        let id = LegId {
            worker: worker as u16,
            serial: self.next_id(),
        };
        let incoming = Arc::new(IngestStatus::new(Instant::now()));
        let status = Arc::new(LegStatus::new(incoming, Ssrc(rand::random())));
        self.send_to(
            id.worker,
            Command::Leg(LegCommand::Add(Box::new(LegSetup {
                id,
                new,
                status: Arc::clone(&status),
            }))),
        );
        AddedLeg { id, status }
    }

    /// Sets the address of the far end, and what was agreed on with it. Numbers and timestamps
    /// continue, and SRTP does if the keys are the same.
    pub fn set_leg_remote(&self, leg: LegId, remote: LegRemote) {
        let remote = Box::new(remote);
        self.send_to(
            leg.worker,
            Command::Leg(LegCommand::SetRemote { leg, remote }),
        );
    }

    /// Opens and closes the gates of a leg, which are open at the start. Opening one requests a
    /// keyframe of a video source.
    pub fn set_leg_gates(&self, leg: LegId, gates: LegGates) {
        self.send_to(
            leg.worker,
            Command::Leg(LegCommand::SetGates { leg, gates }),
        );
    }

    /// Sends a source, on any worker, to the far end of a leg. `None` sends nothing. Changes of the
    /// source leave one stream. `options` selects among layers as for routes to peers.
    pub fn route_to_leg(&self, leg: LegId, from: Option<SourceRef>, options: RouteOptions) {
        let options = Box::new(options);
        self.send_to(
            leg.worker,
            Command::Leg(LegCommand::Route { leg, from, options }),
        );
    }

    /// Passes the keys of a source (RFC 4733) on to a far end that gets a transcoded stream instead
    /// of the source. `None` disables that. Each key is sent once it was released.
    pub fn keys_to_leg(&self, leg: LegId, from: Option<SourceRef>) {
        self.send_to(leg.worker, Command::Leg(LegCommand::PassKeys { leg, from }));
    }

    /// Sends telephone events, after those that are queued. At most 64 are queued, further ones are
    /// dropped.
    pub fn send_tones(&self, leg: LegId, tones: LegTones) {
        let tones = Box::new(tones);
        self.send_to(
            leg.worker,
            Command::Leg(LegCommand::SendTones { leg, tones }),
        );
    }

    /// Ends a leg and all routes from it, and closes its sockets. Await the result before reusing
    /// its ports.
    pub fn remove_leg(&self, leg: LegId) -> IngestEnd {
        let (done, end) = oneshot::channel();
        self.send_to(leg.worker, Command::Leg(LegCommand::Remove { leg, done }));
        IngestEnd::new(end)
    }
}
