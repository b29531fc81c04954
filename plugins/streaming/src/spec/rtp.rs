//! Mountpoints that are fed by RTP.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use portunus_core::Fields;
use serde_json::{Map, Value};

use super::media::{Feed, MediaSpec, optional_text, read_list};
use super::{Origin, SpecProblem, flat, payload_types};

/// A mountpoint whose streams come to UDP ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpSpec {
    /// Its streams; never empty.
    pub media: Vec<MediaSpec>,
    /// It was described in the older form, without a list.
    pub flat: bool,
    /// How long a source must be silent before another one takes over, in ms; 0: not at all.
    pub collision_ms: u32,
    /// Which keyframes are kept for new viewers.
    pub keyframes: KeyframeSpec,
    /// What Janus would use as helper threads; only told, as workers do the fan-out.
    pub threads: u32,
    /// The packets come encrypted.
    pub srtp: Option<SrtpSpec>,
    /// Media is encrypted end to end.
    pub e2ee: bool,
    /// Viewers may set a playout delay.
    pub playoutdelay_ext: bool,
    /// The number of abs-capture-time in the packets that come in.
    pub abs_capture_time: Option<u8>,
}

/// The packets since the last keyframe that are kept; both 0: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyframeSpec {
    /// How old they may be, in ms; 0: any age.
    pub ms: u16,
    /// How many bytes they may be; 0: any size.
    pub bytes: u32,
}

/// How incoming RTP is encrypted (RFC 4568).
#[derive(Clone, PartialEq, Eq)]
pub struct SrtpSpec {
    /// 32 or 80: AES_CM_128 with HMAC-SHA1 and tags of this many bits.
    pub suite: u8,
    /// Key and salt: 16 and 14 bytes.
    pub key: [u8; 30],
}

/// The key is not for logs.
impl std::fmt::Debug for SrtpSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SrtpSpec({})", self.suite)
    }
}

const KNOWN: [&str; 9] = [
    "collision",
    "bufferkf_ms",
    "bufferkf_bytes",
    "threads",
    "srtpsuite",
    "srtpcrypto",
    "e2ee",
    "playoutdelay_ext",
    "abscapturetime_src_ext_id",
];

pub(super) fn known(is_flat: bool) -> Vec<&'static str> {
    let streams: &[_] = if is_flat { &flat::KNOWN } else { &["media"] };
    KNOWN.into_iter().chain(streams.iter().copied()).collect()
}

impl RtpSpec {
    pub(super) fn read(
        members: &Map<String, Value>,
        is_flat: bool,
        origin: Origin,
    ) -> Result<Self, SpecProblem> {
        let fields = Fields(members);
        let number = |name: &str| -> Result<u32, SpecProblem> {
            let number = fields.positive(name).map_err(SpecProblem::field)?;
            u32::try_from(number.unwrap_or(0)).map_err(|_| {
                SpecProblem::cannot_create(name, format!("expected at most {}", u32::MAX))
            })
        };
        let flag = |name: &str| -> Result<bool, SpecProblem> {
            let flag = fields.boolean(name).map_err(SpecProblem::field)?;
            Ok(flag.unwrap_or(false))
        };
        let options = RtpSpec {
            media: Vec::new(),
            flat: is_flat,
            collision_ms: number("collision")?,
            keyframes: KeyframeSpec::read(fields)?,
            threads: number("threads")?,
            srtp: SrtpSpec::read(fields)?,
            e2ee: flag("e2ee")?,
            playoutdelay_ext: flag("playoutdelay_ext")?,
            abs_capture_time: abs_capture_time(fields, origin)?,
        };
        let mut media = match is_flat {
            true => flat::read(fields)?,
            false => read_list(members, origin, Feed::Ports)?,
        };
        payload_types::assign(&mut media)?;
        Ok(RtpSpec { media, ..options })
    }
}

impl KeyframeSpec {
    pub(super) fn read(fields: Fields<'_>) -> Result<Self, SpecProblem> {
        let number = |name: &str, max: u32| -> Result<u32, SpecProblem> {
            let number = fields.positive(name).map_err(SpecProblem::field)?;
            let number = u32::try_from(number.unwrap_or(0)).ok();
            number
                .filter(|number| *number <= max)
                .ok_or_else(|| SpecProblem::cannot_create(name, format!("expected at most {max}")))
        };
        Ok(KeyframeSpec {
            ms: number("bufferkf_ms", u16::MAX.into())? as u16,
            bytes: number("bufferkf_bytes", u32::MAX)?,
        })
    }

    /// Keeps no more bytes than these.
    pub(crate) fn limit(&mut self, bytes: u32) {
        if self.is_on() && (self.bytes == 0 || self.bytes > bytes) {
            self.bytes = bytes;
        }
    }

    /// Whether any are kept.
    pub(crate) const fn is_on(self) -> bool {
        self.ms > 0 || self.bytes > 0
    }
}

impl SrtpSpec {
    fn read(fields: Fields<'_>) -> Result<Option<Self>, SpecProblem> {
        let suite = fields.positive("srtpsuite").map_err(SpecProblem::field)?;
        let crypto = optional_text(fields, "srtpcrypto")?;
        let Some((suite, crypto)) = suite.zip(crypto) else {
            return Ok(None);
        };
        let suite = match suite {
            32 => 32,
            80 => 80,
            _ => {
                let reason = format!("the SRTP suite is 32 or 80, not {suite}");
                return Err(SpecProblem::cannot_create("srtpsuite", reason));
            }
        };
        let decoded = BASE64_STANDARD.decode(crypto.trim()).ok();
        let key = decoded.and_then(|bytes| <[u8; 30]>::try_from(bytes).ok());
        let key = key.ok_or_else(|| {
            SpecProblem::cannot_create("srtpcrypto", "the SRTP key is not 30 bytes in base64")
        })?;
        Ok(Some(SrtpSpec { suite, key }))
    }

    pub(super) fn crypto(&self) -> String {
        BASE64_STANDARD.encode(self.key)
    }
}

fn abs_capture_time(fields: Fields<'_>, origin: Origin) -> Result<Option<u8>, SpecProblem> {
    const NAME: &str = "abscapturetime_src_ext_id";
    let id = fields.integer(NAME).map_err(SpecProblem::field)?;
    match id {
        None | Some(0) => Ok(None),
        Some(id @ 1..=14) => Ok(u8::try_from(id).ok()),
        Some(..0) if origin == Origin::Configuration => Ok(None),
        Some(id) => Err(SpecProblem::element(
            NAME,
            format!("expected 1 to 14, got {id}"),
        )),
    }
}
