//! Why datagrams of other nodes are refused.

/// Why a datagram of another node is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkRefusal {
    /// It is not RTP or RTCP.
    Malformed,
    /// Its SSRC is not expected from there.
    UnknownSsrc,
    /// It was not sealed with a key of the link.
    Unauthentic,
    /// It came before, or it is too old to tell.
    Replayed,
    /// It comes from an address that belongs to no link.
    UnknownAddress,
}

impl LinkRefusal {
    /// The number of reasons.
    pub(crate) const COUNT: usize = 5;
    /// All reasons.
    pub(crate) const ALL: [Self; Self::COUNT] = [
        Self::Malformed,
        Self::UnknownSsrc,
        Self::Unauthentic,
        Self::Replayed,
        Self::UnknownAddress,
    ];

    /// The name in counters.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownSsrc => "unknown_ssrc",
            Self::Unauthentic => "unauthentic",
            Self::Replayed => "replayed",
            Self::UnknownAddress => "unknown_address",
        }
    }
}
