//! Mountpoints that a client publishes to.

use portunus_core::Fields;
use portunus_resources::{Options, place};

use super::media::{Feed, MediaSpec, read_list};
use super::rtp::KeyframeSpec;
use super::values::{above_0, number16, number32};
use super::{Origin, SpecProblem, payload_types};

/// A mountpoint that a client publishes over a PeerConnection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhipSpec {
    /// Its streams. Without a codec, the publisher chooses.
    pub media: Vec<MediaSpec>,
    /// The token of publishers. The secret works as well.
    pub token: Option<String>,
    /// The keyframe cache for new viewers.
    pub keyframes: KeyframeSpec,
    /// Media is encrypted end to end.
    pub e2ee: bool,
    /// Viewers may set a playout delay.
    pub playoutdelay_ext: bool,
}

type Opt = portunus_resources::Opt<WhipSpec, SpecProblem>;

/// All but the streams.
pub(super) const OPTIONS: Options<WhipSpec, SpecProblem> = Options(&[
    Opt::new("token", place!(token)).listed().confidential(),
    Opt::new("bufferkf_ms", place!(keyframes.ms, number16, above_0)).listed(),
    Opt::new("bufferkf_bytes", place!(keyframes.bytes, number32, above_0)).listed(),
    Opt::new("e2ee", place!(e2ee)),
    Opt::new("playoutdelay_ext", place!(playoutdelay_ext)),
]);

impl WhipSpec {
    pub(super) fn read(fields: Fields<'_>, origin: Origin) -> Result<Self, SpecProblem> {
        let mut media = read_list(fields, origin, Feed::Publisher)?;
        payload_types::assign(&mut media)?;
        Ok(WhipSpec {
            media,
            ..OPTIONS.read(fields)?
        })
    }
}
