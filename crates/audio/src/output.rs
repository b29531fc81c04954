//! The output of a participant.

use std::sync::Arc;

use portunus_media::TrackRef;

use crate::{MixOutlet, RtpLeg};

/// The output of a participant's mix.
#[derive(Debug, Clone)]
pub enum Out {
    /// A track of a peer.
    Track(TrackRef),
    /// A leg of plain RTP.
    Leg(Arc<RtpLeg>),
    /// A source of its own, for a participant at another node.
    Source(Arc<MixOutlet>),
}

impl Out {
    /// The worker that sends to it.
    pub(crate) fn worker(&self) -> usize {
        match self {
            Out::Track(track) => track.peer.worker(),
            Out::Leg(leg) => leg.worker(),
            Out::Source(outlet) => outlet.ingest().worker(),
        }
    }

    pub(crate) fn is(&self, other: &Out) -> bool {
        match (self, other) {
            (Out::Track(one), Out::Track(other)) => one == other,
            (Out::Leg(one), Out::Leg(other)) => Arc::ptr_eq(one, other),
            (Out::Source(one), Out::Source(other)) => Arc::ptr_eq(one, other),
            (Out::Track(_) | Out::Leg(_) | Out::Source(_), _) => false,
        }
    }
}
