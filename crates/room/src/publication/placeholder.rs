//! Streams that nobody sends yet: those of dummy publishers, and what a seat may have to carry.

use portunus_rtp::{Mid, Pt};
use portunus_sdp::{CodecName, CodecSpec, Kind, OfferedFlags};

use super::{ExtensionIds, Stream};
use crate::{Dummy, RoomSettings};

/// The number of a header extension that nobody sends.
const ANY: u8 = 1;

/// The streams of a dummy publisher in a room with these options: those of its own list that the room has, or all of the
/// room's.
pub(crate) fn dummy_streams(dummy: &Dummy, options: &RoomSettings) -> Vec<Stream> {
    let codecs = options.audiocodec.iter().chain(&options.videocodec);
    let wanted = codecs.filter_map(|codec| {
        let own = dummy.streams.iter().find(|stream| stream.codec == *codec);
        let fmtp = own.and_then(|own| own.fmtp.as_deref());
        (own.is_some() || dummy.streams.is_empty()).then_some((*codec, fmtp))
    });
    let streams = wanted.enumerate().filter_map(|(index, (codec, fmtp))| {
        let mid = Mid::new(&index.to_string())?;
        Some(placeholder(options, codec, fmtp, mid, index))
    });
    streams.collect()
}

/// A stream as a publisher of a room would send it who makes use of all that the room allows.
pub(crate) fn placeholder(
    options: &RoomSettings,
    codec: CodecName,
    fmtp: Option<&str>,
    mid: Mid,
    index: usize,
) -> Stream {
    let mut stream = Stream::new(codec.kind(), mid, index);
    let spec = CodecSpec {
        fmtp: fmtp.map(str::to_owned),
        ..CodecSpec::new(codec, Pt(0))
    };
    let own = |name: &str| spec.parameter(name).map(str::to_owned);
    let says = |name: &str| fmtp.is_none() || spec.parameter(name) == Some("1");
    stream.disabled = false;
    stream.codec = Some(codec);
    match codec {
        CodecName::Opus => {
            stream.opus = OfferedFlags {
                fec: options.opus_fec && says("useinbandfec"),
                dtx: options.opus_dtx && says("usedtx"),
                stereo: spec.parameter("stereo") == Some("1"),
            };
        }
        CodecName::MultiOpus => stream.fmtp.clone_from(&spec.fmtp),
        CodecName::H264 => {
            stream.h264_profile = own("profile-level-id").or(options.h264_profile.clone());
        }
        CodecName::Vp9 => stream.vp9_profile = own("profile-id").or(options.vp9_profile.clone()),
        _ => {}
    }
    let (audio, video) = (stream.kind == Kind::Audio, stream.kind == Kind::Video);
    let set = |wanted: bool| wanted.then_some(ANY);
    stream.extensions = ExtensionIds {
        audio_level: set(audio && options.audiolevel_ext),
        video_orientation: set(video && options.videoorient_ext),
        playout_delay: set(video && options.playoutdelay_ext),
        dependency_descriptor: set(video),
    };
    stream
}
