//! What is counted of DTLS and what flows in it.

use std::time::Instant;

use portunus_sdp::negotiated::{DtlsRole, Fingerprint};

use super::Transport;
use crate::data::DataFigures;
use crate::ice::PairFigures;

/// A number of datagrams or messages, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub count: u32,
    /// Their bytes.
    pub bytes: u64,
}

impl Amount {
    /// One more, of so many bytes.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }
}

/// How the DTLS handshake went, and what came and left by DTLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DtlsFigures {
    /// When the handshake began.
    pub started: Option<Instant>,
    /// When it was done.
    pub connected: Option<Instant>,
    /// Datagrams that came.
    pub received: Amount,
    /// Datagrams that left.
    pub sent: Amount,
}

impl Transport {
    /// How the DTLS handshake went.
    pub fn dtls_figures(&self) -> DtlsFigures {
        self.handshake
    }

    /// The role of this side in the handshake, once negotiated.
    pub fn dtls_role(&self) -> Option<DtlsRole> {
        self.remote.as_ref().map(|remote| remote.role)
    }

    /// The fingerprints of the peer's certificate, as it announced them.
    pub fn remote_fingerprints(&self) -> &[Fingerprint] {
        self.remote.as_ref().map_or(&[], |it| &it.fingerprints)
    }

    /// What came and left on data channels; none without an SCTP association.
    pub fn data_figures(&self) -> Option<DataFigures> {
        Some(self.data.as_ref()?.figures())
    }

    /// Whether this side's ICE agent is the controlling one at present.
    pub fn is_controlling(&self) -> bool {
        self.ice.is_controlling()
    }

    /// The candidates of the peer that are of use, as they stand in SDP after `candidate:`.
    pub fn remote_candidates(&self) -> Vec<String> {
        self.ice.remote_candidates()
    }

    /// The pairs of candidates, that in use first.
    pub fn pairs(&self) -> Vec<PairFigures> {
        self.ice.pairs()
    }
}
