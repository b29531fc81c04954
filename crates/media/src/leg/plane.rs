//! Legs as the control plane asks for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use portunus_rtp::Ssrc;
use tokio::sync::oneshot;

use super::{LegGates, LegId, LegRemote, LegStatus, LegTones, NewLeg};
use crate::command::Command;
use crate::ingest::IngestEnd;
use crate::{IngestStatus, MediaPlane, RouteId, RouteOptions, SourceRef};

/// A leg that was added.
#[derive(Debug, Clone)]
pub struct AddedLeg {
    /// Its name.
    pub id: LegId,
    /// How it does.
    pub status: Arc<LegStatus>,
}

impl AddedLeg {
    /// What comes from the far end.
    pub fn source(&self) -> SourceRef {
        SourceRef::Ingest(self.id.ingest())
    }
}

impl LegId {
    /// The way from what is routed into it to the far end, as a thread that feeds ingests of its worker redirects it
    /// ([`crate::ThreadFeed`]).
    pub fn route(self) -> RouteId {
        RouteId {
            worker: self.worker,
            serial: self.serial,
        }
    }
}

impl MediaPlane {
    /// Adds a leg. It lives until [`MediaPlane::remove_leg`], and takes and sends nothing before it knows its far end.
    pub fn add_leg(&self, new: NewLeg) -> AddedLeg {
        let ports = self.ports();
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
        let own = Arc::clone(&status);
        self.send_to(id.worker, Command::AddLeg(Box::new((id, new, own))));
        AddedLeg { id, status }
    }

    /// Says where the far end is now, and what was agreed on with it. What comes and goes goes on without a break: numbers,
    /// timestamps and, where the keys are the same, SRTP.
    pub fn set_leg_remote(&self, leg: LegId, remote: LegRemote) {
        let remote = Box::new(remote);
        self.send_to(leg.worker, Command::SetLegRemote { leg, remote });
    }

    /// Opens and closes the ways of a leg, which are open from the start. Opening one asks a video source for a keyframe.
    pub fn set_leg_gates(&self, leg: LegId, gates: LegGates) {
        self.send_to(leg.worker, Command::SetLegGates { leg, gates });
    }

    /// Sends what a source brings to the far end of a leg from now on, on whatever worker it lives; none: nothing. What is sent stays one
    /// stream. `options` selects among layers as for routes to peers.
    pub fn route_to_leg(&self, leg: LegId, from: Option<SourceRef>, options: RouteOptions) {
        let options = Box::new(options);
        self.send_to(leg.worker, Command::RouteToLeg { leg, from, options });
    }

    /// Passes the keys that a source brings (RFC 4733) on to the far end of a leg, which gets something else of what was
    /// made of the source, such as a transcoded stream; none: no more. Each is sent anew once it was let go.
    pub fn keys_to_leg(&self, leg: LegId, from: Option<SourceRef>) {
        self.send_to(leg.worker, Command::KeysToLeg { leg, from });
    }

    /// Sends telephone events, after those that are under way. Up to 64 wait; more are not sent.
    pub fn send_tones(&self, leg: LegId, tones: LegTones) {
        let tones = Box::new(tones);
        self.send_to(leg.worker, Command::SendTones { leg, tones });
    }

    /// Ends a leg, all routes from it, and closes its sockets; whoever needs its ports waits for what is returned.
    pub fn remove_leg(&self, leg: LegId) -> IngestEnd {
        let (done, end) = oneshot::channel();
        self.send_to(leg.worker, Command::RemoveLeg { leg, done });
        IngestEnd::new(end)
    }
}
