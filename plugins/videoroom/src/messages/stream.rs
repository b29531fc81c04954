//! The messages about a stream.

use portunus_core::Object;
use portunus_core::sdp::CodecName;
use portunus_room::Stream;
use serde_json::{Value, json};

/// Writes the members of all descriptions, with these names of the profiles.
pub(super) fn described_with(stream: &Stream, [h264_profile, vp9_profile]: [&str; 2]) -> Object {
    let place = Object::new()
        .with("type", stream.kind.name())
        .with("mindex", stream.index)
        .with("mid", stream.mid.as_str());
    if stream.disabled {
        return place.with("disabled", true);
    }
    let (set, format) = (|flag: bool| flag.then_some(true), &stream.format);
    place
        .with_some("description", stream.description.as_deref())
        .with_some("codec", format.codec.map(CodecName::name))
        .with_some("stereo", set(format.opus.stereo))
        .with_some("fec", set(format.opus.fec))
        .with_some("dtx", set(format.opus.dtx))
        .with_some(h264_profile, format.h264_profile.as_deref())
        .with_some(vp9_profile, format.vp9_profile.as_deref())
        .with_some("simulcast", set(format.simulcast))
        .with_some("svc", set(format.svc))
}

/// Writes the members of all descriptions for clients.
fn described(stream: &Stream) -> Object {
    described_with(stream, ["h264_profile", "vp9_profile"])
}

/// Writes a stream for its publisher.
pub(crate) fn own(stream: &Stream) -> Value {
    let described = described(stream);
    if stream.disabled {
        return described.into();
    }
    let extensions = stream.format.extensions;
    described
        .with_some("audiolevel_ext_id", extensions.audio_level)
        .with_some("videoorient_ext_id", extensions.video_orientation)
        .with_some("playoutdelay_ext_id", extensions.playout_delay)
        .with_some("dependencydesc_ext_id", extensions.dependency_descriptor)
        .into()
}

/// Writes a stream for others. Only new participants get the member `talking`.
pub(super) fn public(stream: &Stream, talking: bool) -> Value {
    let described = described(stream);
    if stream.disabled {
        return described.into();
    }
    let talk = (talking && stream.has_levels()).then_some(stream.is_talking());
    described
        .with_some("talking", talk)
        .with_some("moderated", stream.is_moderated().then_some(true))
        .into()
}

/// Writes a playout delay, in 10 ms.
pub(super) fn delay((min, max): (u16, u16)) -> Value {
    json!({ "min-delay": min, "max-delay": max })
}
