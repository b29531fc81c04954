//! Streams without a sender: those of dummy publishers, and the models for seats.

use portunus_rtp::{Mid, Pt};
use portunus_sdp::{CodecName, CodecSpec, Kind, OfferedFlags};

use super::{ExtensionIds, Stream};
use crate::{Dummy, RoomSettings};

/// The id of a header extension of a stream without a sender.
const ANY: u8 = 1;

/// Returns the streams of a dummy publisher: those of its own list whose codec the room has, or one
/// for each of the room's codecs.
pub(crate) fn dummy_streams(dummy: &Dummy, options: &RoomSettings) -> Vec<Stream> {
    let codecs = options.codecs.audio.iter().chain(&options.codecs.video);
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

/// Returns the stream of a publisher that uses everything that the room permits.
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
    stream.format.codec = Some(codec);
    match codec {
        CodecName::Opus => {
            stream.format.opus = OfferedFlags {
                fec: options.codecs.opus_fec && says("useinbandfec"),
                dtx: options.codecs.opus_dtx && says("usedtx"),
                stereo: spec.parameter("stereo") == Some("1"),
            };
        }
        CodecName::MultiOpus => stream.format.fmtp.clone_from(&spec.fmtp),
        CodecName::H264 => {
            let profile = own("profile-level-id");
            stream.format.h264_profile = profile.or(options.codecs.h264_profile.clone());
        }
        CodecName::Vp9 => {
            let profile = own("profile-id");
            stream.format.vp9_profile = profile.or(options.codecs.vp9_profile.clone());
        }
        _ => {}
    }
    let (audio, video) = (stream.kind == Kind::Audio, stream.kind == Kind::Video);
    let set = |wanted: bool| wanted.then_some(ANY);
    stream.format.extensions = ExtensionIds {
        audio_level: set(audio && options.extensions.audio_level),
        video_orientation: set(video && options.extensions.video_orientation),
        playout_delay: set(video && options.extensions.playout_delay),
        dependency_descriptor: set(video),
    };
    stream
}
