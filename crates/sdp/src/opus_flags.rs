//! Flags of Opus in format parameters.

/// The Opus parameters that an offer requests (RFC 7587 section 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedFlags {
    /// `useinbandfec=1`
    pub fec: bool,
    /// `usedtx=1`
    pub dtx: bool,
    /// `stereo=1`
    pub stereo: bool,
}

impl OfferedFlags {
    /// Returns the flags as format parameters, or `None` if none is set.
    pub fn fmtp(self) -> Option<String> {
        let flags = [
            (self.fec, "useinbandfec=1"),
            (self.dtx, "usedtx=1"),
            (self.stereo, "stereo=1"),
        ];
        let set: Vec<&str> = flags
            .into_iter()
            .filter(|(set, _)| *set)
            .map(|(_, text)| text)
            .collect();
        (!set.is_empty()).then(|| set.join(";"))
    }
}
