//! Commands that concern a leg.

use std::sync::Arc;

use portunus_graph::{RouteOptions, SourceRef};
use tokio::sync::oneshot;

use crate::leg::{LegGates, LegId, LegRemote, LegStatus, LegTones, NewLeg};

/// A command that concerns a leg.
#[derive(Debug)]
pub(crate) enum LegCommand {
    Add(Box<LegSetup>),
    SetRemote {
        leg: LegId,
        remote: Box<LegRemote>,
    },
    SetGates {
        leg: LegId,
        gates: LegGates,
    },
    /// Sends a source to the far end. `None` sends nothing.
    Route {
        leg: LegId,
        from: Option<SourceRef>,
        options: Box<RouteOptions>,
    },
    /// Passes the keys of a source on to the far end.
    PassKeys {
        leg: LegId,
        from: Option<SourceRef>,
    },
    SendTones {
        leg: LegId,
        tones: Box<LegTones>,
    },
    Remove {
        leg: LegId,
        /// Dropped once the sockets of the leg are closed.
        done: oneshot::Sender<()>,
    },
}

/// A new leg.
#[derive(Debug)]
pub(crate) struct LegSetup {
    pub(crate) id: LegId,
    pub(crate) new: NewLeg,
    pub(crate) status: Arc<LegStatus>,
}
