//! How far the connection of a peer is, and when it got there.

use std::time::Instant;

use crate::{DtlsState, IceState};

/// How far the connection of a peer is.
pub(in crate::worker) struct Lifecycle {
    /// Our ICE agent is the controlling one.
    is_controlling: bool,
    ice: IceState,
    /// The control plane knows a pair that media uses.
    has_pair: bool,
    dtls: Option<DtlsState>,
    created: Instant,
    /// When a pair first worked.
    connected: Option<Instant>,
    /// Since when no pair works any more.
    disconnected: Option<Instant>,
}

impl Lifecycle {
    /// Returns the state of a new peer.
    pub(super) fn new(is_controlling: bool, now: Instant) -> Self {
        Self {
            is_controlling,
            ice: IceState::Gathering,
            has_pair: false,
            dtls: None,
            created: now,
            connected: None,
            disconnected: None,
        }
    }

    pub(super) fn is_controlling(&self) -> bool {
        self.is_controlling
    }

    pub(in crate::worker) fn ice(&self) -> IceState {
        self.ice
    }

    pub(in crate::worker) fn has_pair(&self) -> bool {
        self.has_pair
    }

    pub(in crate::worker) fn dtls(&self) -> Option<DtlsState> {
        self.dtls
    }

    pub(super) fn created(&self) -> Instant {
        self.created
    }

    pub(super) fn connected(&self) -> Option<Instant> {
        self.connected
    }

    pub(super) fn disconnected(&self) -> Option<Instant> {
        self.disconnected
    }

    /// Sets the state of the ICE agent. Returns whether it has changed.
    pub(in crate::worker) fn set_ice(&mut self, state: IceState, now: Instant) -> bool {
        let is_new = std::mem::replace(&mut self.ice, state) != state;
        match state {
            IceState::Connected | IceState::Ready => {
                self.connected.get_or_insert(now);
                self.disconnected = None;
            }
            IceState::Disconnected | IceState::Failed => {
                self.disconnected.get_or_insert(now);
            }
            IceState::Gathering | IceState::Connecting => {}
        }
        is_new
    }

    /// Notes that the control plane knows a pair that media uses. Returns whether it is the first
    /// one.
    pub(in crate::worker) fn set_pair(&mut self, now: Instant) -> bool {
        let is_first = !std::mem::replace(&mut self.has_pair, true);
        if is_first {
            self.set_ice(IceState::Ready, now);
        }
        is_first
    }

    pub(in crate::worker) fn set_dtls(&mut self, state: DtlsState) {
        self.dtls = Some(state);
    }
}
