//! Mountpoints that are fed by RTP.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use portunus_core::Fields;
use portunus_resources::{Options, Place, place};
use serde_json::Value;

use super::media::{Feed, MediaSpec, read_list};
use super::values::{Read, above_0, ignored, number16, number32};
use super::{Origin, SpecProblem, flat, payload_types};

/// A mountpoint that receives its streams on UDP ports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RtpSpec {
    /// Its streams, at least one.
    pub media: Vec<MediaSpec>,
    /// It was described in the older form, without a list.
    pub flat: bool,
    /// The silence after which another source takes over, in ms. 0 means never.
    pub collision_ms: u32,
    /// The keyframe cache for new viewers.
    pub keyframes: KeyframeSpec,
    /// The number of helper threads in Janus. It is shown only, as workers do the fan-out.
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

/// The cache of packets from the last keyframe on. There is none if both are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyframeSpec {
    /// The limit of their age, in ms. 0 means any age.
    pub ms: u16,
    /// The limit of their bytes. 0 means any size.
    pub bytes: u32,
}

/// The encryption of incoming RTP (RFC 4568).
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

type Opt = portunus_resources::Opt<RtpSpec, SpecProblem>;

/// All but the streams.
pub(super) const OPTIONS: Options<RtpSpec, SpecProblem> = Options(&[
    Opt::new("collision", place!(collision_ms, number32, above_0)).listed(),
    Opt::new("bufferkf_ms", place!(keyframes.ms, number16, above_0)).listed(),
    Opt::new("bufferkf_bytes", place!(keyframes.bytes, number32, above_0)).listed(),
    Opt::new("threads", place!(threads, number32, above_0)).listed(),
    Opt::new("srtpsuite", place!(srtp, srtp, suite)).listed(),
    Opt::new("srtpcrypto", CRYPTO),
    Opt::new("e2ee", place!(e2ee)),
    Opt::new("playoutdelay_ext", place!(playoutdelay_ext)),
    Opt::new(ABS_CAPTURE_TIME, place!(abs_capture_time, extension_id)),
]);

const ABS_CAPTURE_TIME: &str = "abscapturetime_src_ext_id";

/// Reads the id of a header extension. 0 counts as absent, and in the configuration a negative
/// number too.
fn extension_id(fields: Fields<'_>, name: &str) -> Read<Option<u8>> {
    match fields.member::<i64>(name)? {
        None => Ok(None),
        Some(..=0) => Ok(Some(None)),
        Some(id @ 1..=14) => Ok(Some(u8::try_from(id).ok())),
        Some(id) => Err(out_of_range(id)),
    }
}

fn out_of_range(id: i64) -> SpecProblem {
    SpecProblem::element(ABS_CAPTURE_TIME, format!("expected 1 to 14, got {id}"))
}

impl RtpSpec {
    /// Reads the options, with the streams in the list `media` or in the older form.
    pub(super) fn read(fields: Fields<'_>, origin: Origin) -> Result<Self, SpecProblem> {
        let options = OPTIONS.read(fields)?;
        if let Some(id @ ..0) = fields.member::<i64>(ABS_CAPTURE_TIME)?
            && origin == Origin::Request
        {
            return Err(out_of_range(id));
        }
        let flat = !fields.has("media");
        let mut media = match flat {
            true => flat::read(fields)?,
            false => read_list(fields, origin, Feed::Ports)?,
        };
        payload_types::assign(&mut media)?;
        Ok(RtpSpec {
            media,
            flat,
            ..options
        })
    }
}

impl KeyframeSpec {
    /// Limits the bytes of the cache.
    pub(crate) fn limit(&mut self, bytes: u32) {
        if self.is_on() && (self.bytes == 0 || self.bytes > bytes) {
            self.bytes = bytes;
        }
    }

    /// Returns whether there is a cache.
    pub(crate) const fn is_on(self) -> bool {
        self.ms > 0 || self.bytes > 0
    }
}

/// Reads both members: one without the other means nothing.
fn srtp(fields: Fields<'_>, name: &str) -> Read<Option<SrtpSpec>> {
    let suite = fields.member::<u64>(name)?;
    let crypto = fields.text("srtpcrypto")?;
    let Some((suite, crypto)) = suite.zip(crypto) else {
        return Ok(None);
    };
    let suite = match suite {
        32 => 32,
        80 => 80,
        _ => {
            let reason = format!("the SRTP suite is 32 or 80, not {suite}");
            return Err(SpecProblem::cannot_create(name, reason));
        }
    };
    let decoded = BASE64_STANDARD.decode(crypto.trim()).ok();
    let key = decoded.and_then(|bytes| <[u8; 30]>::try_from(bytes).ok());
    let reason = "the SRTP key is not 30 bytes in base64";
    let key = key.ok_or_else(|| SpecProblem::cannot_create("srtpcrypto", reason))?;
    Ok(Some(Some(SrtpSpec { suite, key })))
}

fn suite(srtp: &Option<SrtpSpec>) -> Value {
    srtp.as_ref().map(|srtp| srtp.suite).into()
}

/// The key, which is read with the suite.
const CRYPTO: Place<RtpSpec, SpecProblem> = Place {
    write: |rtp| {
        let key = rtp.srtp.as_ref().map(|srtp| srtp.key);
        key.map(|key| BASE64_STANDARD.encode(key)).into()
    },
    ..ignored()
};
