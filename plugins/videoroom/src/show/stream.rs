//! What is told of a stream.

use portunus_core::Object;
use portunus_core::sdp::CodecName;
use portunus_room::Stream;
use serde_json::{Value, json};

/// The members that all descriptions of it have, with the names of its profiles.
pub(super) fn described_with(stream: &Stream, [h264_profile, vp9_profile]: [&str; 2]) -> Object {
    let place = Object::new()
        .with("type", stream.kind.name())
        .with("mindex", stream.index)
        .with("mid", stream.mid.as_str());
    if stream.disabled {
        return place.with("disabled", true);
    }
    let set = |flag: bool| flag.then_some(true);
    place
        .with_some("description", stream.description.as_deref())
        .with_some("codec", stream.codec.map(CodecName::name))
        .with_some("stereo", set(stream.opus.stereo))
        .with_some("fec", set(stream.opus.fec))
        .with_some("dtx", set(stream.opus.dtx))
        .with_some(h264_profile, stream.h264_profile.as_deref())
        .with_some(vp9_profile, stream.vp9_profile.as_deref())
        .with_some("simulcast", set(stream.simulcast))
        .with_some("svc", set(stream.svc))
}

/// The members that all descriptions of it for clients have.
fn described(stream: &Stream) -> Object {
    described_with(stream, ["h264_profile", "vp9_profile"])
}

/// As its publisher is told of it.
pub(crate) fn own(stream: &Stream) -> Value {
    let described = described(stream);
    if stream.disabled {
        return described.into();
    }
    let extensions = stream.extensions;
    described
        .with_some("audiolevel_ext_id", extensions.audio_level)
        .with_some("videoorient_ext_id", extensions.video_orientation)
        .with_some("playoutdelay_ext_id", extensions.playout_delay)
        .with_some("dependencydesc_ext_id", extensions.dependency_descriptor)
        .into()
}

/// As others are told of it; `talking` to those who have just come.
pub(super) fn public(stream: &Stream, talking: bool) -> Value {
    let described = described(stream);
    if stream.disabled {
        return described.into();
    }
    let talk = (talking && stream.has_levels()).then_some(stream.is_talking());
    described
        .with_some("talking", talk)
        .with_some("moderated", stream.moderated.then_some(true))
        .into()
}

/// A playout delay, in units of 10 ms.
pub(super) fn delay((min, max): (u16, u16)) -> Value {
    json!({ "min-delay": min, "max-delay": max })
}
