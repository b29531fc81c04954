//! Mountpoints that a client publishes to.

use portunus_core::Fields;
use serde_json::{Map, Value};

use super::media::{Feed, MediaSpec, optional_text, read_list};
use super::rtp::KeyframeSpec;
use super::{Origin, SpecProblem, payload_types};

/// A mountpoint whose media a client publishes over a PeerConnection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhipSpec {
    /// Its streams; without a codec the publisher's choice holds.
    pub media: Vec<MediaSpec>,
    /// What a publisher has to show; its secret serves too.
    pub token: Option<String>,
    /// Which keyframes are kept for new viewers.
    pub keyframes: KeyframeSpec,
    /// Media is encrypted end to end.
    pub e2ee: bool,
    /// Viewers may set a playout delay.
    pub playoutdelay_ext: bool,
}

pub(super) const KNOWN: [&str; 6] = [
    "media",
    "token",
    "bufferkf_ms",
    "bufferkf_bytes",
    "e2ee",
    "playoutdelay_ext",
];

impl WhipSpec {
    pub(super) fn read(members: &Map<String, Value>, origin: Origin) -> Result<Self, SpecProblem> {
        let fields = Fields(members);
        let flag = |name: &str| -> Result<bool, SpecProblem> {
            let flag = fields.boolean(name).map_err(SpecProblem::field)?;
            Ok(flag.unwrap_or(false))
        };
        let mut media = read_list(members, origin, Feed::Publisher)?;
        payload_types::assign(&mut media)?;
        Ok(WhipSpec {
            media,
            token: optional_text(fields, "token")?,
            keyframes: KeyframeSpec::read(fields)?,
            e2ee: flag("e2ee")?,
            playoutdelay_ext: flag("playoutdelay_ext")?,
        })
    }
}
