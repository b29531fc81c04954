//! Statistics of a transport.

use std::time::Instant;

use portunus_sdp::negotiated::{DtlsRole, Fingerprint};

use super::Transport;
use crate::Amount;
use crate::data::DataFigures;
use crate::ice::PairFigures;

/// The times of the DTLS handshake, and the traffic of DTLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DtlsFigures {
    /// The start of the handshake.
    pub started: Option<Instant>,
    /// The end of the handshake.
    pub connected: Option<Instant>,
    /// Datagrams received.
    pub received: Amount,
    /// Datagrams sent.
    pub sent: Amount,
}

impl Transport {
    /// Returns the statistics of DTLS.
    pub fn dtls_figures(&self) -> DtlsFigures {
        self.handshake
    }

    /// Returns the DTLS role of this side, once negotiated.
    pub fn dtls_role(&self) -> Option<DtlsRole> {
        self.remote.as_ref().map(|remote| remote.role)
    }

    /// Returns the announced fingerprints of the peer's certificate.
    pub fn remote_fingerprints(&self) -> &[Fingerprint] {
        self.remote.as_ref().map_or(&[], |it| &it.fingerprints)
    }

    /// Returns the statistics of data channels, or `None` without an SCTP association.
    pub fn data_figures(&self) -> Option<DataFigures> {
        Some(self.data.as_ref()?.figures())
    }

    /// Returns whether this side's ICE agent currently is the controlling one.
    pub fn is_controlling(&self) -> bool {
        self.ice.is_controlling()
    }

    /// Returns the usable candidates of the peer, as in SDP after `candidate:`.
    pub fn remote_candidates(&self) -> Vec<String> {
        self.ice.remote_candidates()
    }

    /// Returns the pairs of candidates, the selected one first.
    pub fn pairs(&self) -> Vec<PairFigures> {
        self.ice.pairs()
    }
}
