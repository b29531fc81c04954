//! The user fragments, addresses and connections by which a peer is found and reached.

use std::net::SocketAddr;

use smallvec::SmallVec;

use super::claims::OwnClaim;
use crate::worker::tcp::PipeKey;

/// The maximum number of addresses by which a peer is found.
const MAX_ADDRESSES: usize = 32;
/// The maximum number of user fragments: the present one, and those before the last ICE restarts.
const MAX_UFRAGS: usize = 4;

/// The user fragments, addresses and connections of a peer.
#[derive(Default)]
pub(in crate::worker) struct Endpoints {
    ufrags: SmallVec<[String; 1]>,
    addresses: SmallVec<[SocketAddr; 2]>,
    /// The claims to its addresses that other workers know.
    claims: Box<[OwnClaim]>,
    /// Its TCP connections.
    pipes: Box<[PipeKey]>,
}

impl Endpoints {
    pub(super) fn ufrags(&self) -> &[String] {
        &self.ufrags
    }

    /// Adds a user fragment. Returns the oldest one, if there are too many.
    pub(super) fn add_ufrag(&mut self, ufrag: String) -> Option<String> {
        let oldest = (self.ufrags.len() >= MAX_UFRAGS).then(|| self.ufrags.remove(0));
        self.ufrags.push(ufrag);
        oldest
    }

    pub(super) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Adds an address. If there are too many, removes and returns the oldest one that is not
    /// `used`.
    pub(super) fn add_address(
        &mut self,
        address: SocketAddr,
        used: Option<SocketAddr>,
    ) -> Option<SocketAddr> {
        if self.addresses.contains(&address) {
            return None;
        }
        let oldest = (self.addresses.len() >= MAX_ADDRESSES).then(|| {
            let oldest = self.addresses.iter().position(|at| Some(*at) != used);
            self.addresses.remove(oldest.unwrap_or_default())
        });
        self.addresses.push(address);
        oldest
    }

    pub(super) fn claims(&self) -> &[OwnClaim] {
        &self.claims
    }

    /// Changes the claims.
    pub(super) fn change_claims<T>(&mut self, change: impl FnOnce(&mut Vec<OwnClaim>) -> T) -> T {
        let mut claims = std::mem::take(&mut self.claims).into_vec();
        let changed = change(&mut claims);
        self.claims = claims.into_boxed_slice();
        changed
    }

    pub(in crate::worker) fn pipes(&self) -> &[PipeKey] {
        &self.pipes
    }

    pub(in crate::worker) fn add_pipe(&mut self, key: PipeKey) {
        let others = std::mem::take(&mut self.pipes).into_iter();
        self.pipes = others.chain([key]).collect();
    }

    pub(in crate::worker) fn remove_pipe(&mut self, key: PipeKey) {
        let others = std::mem::take(&mut self.pipes).into_iter();
        self.pipes = others.filter(|other| *other != key).collect();
    }
}
