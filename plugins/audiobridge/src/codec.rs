//! The codecs of participants and forwarders: their names and their encodings.

use portunus_core::sdp::CodecName;
use portunus_dsp::{AudioCodec, Encoding};

use crate::options::RoomOptions;
use crate::refusal::Refusal;

/// The default complexity of encoders, 1 to 10.
pub(crate) const QUALITY: u8 = 4;

/// Returns the name on the wire.
pub(crate) const fn codec_name(codec: AudioCodec) -> &'static str {
    match codec {
        AudioCodec::Opus => "opus",
        AudioCodec::Pcma => "pcma",
        AudioCodec::Pcmu => "pcmu",
        AudioCodec::G722 => "g722",
    }
}

/// Returns the name in SDP.
pub(crate) const fn sdp_codec(codec: AudioCodec) -> CodecName {
    match codec {
        AudioCodec::Opus => CodecName::Opus,
        AudioCodec::Pcma => CodecName::Pcma,
        AudioCodec::Pcmu => CodecName::Pcmu,
        AudioCodec::G722 => CodecName::G722,
    }
}

/// Returns the codec with this name, or Opus if `name` is `None`.
pub(crate) fn named_codec(name: Option<&str>) -> Result<AudioCodec, Refusal> {
    let Some(text) = name else {
        return Ok(AudioCodec::Opus);
    };
    let all = [
        AudioCodec::Opus,
        AudioCodec::Pcma,
        AudioCodec::Pcmu,
        AudioCodec::G722,
    ];
    let known = all
        .into_iter()
        .find(|codec| codec_name(*codec).eq_ignore_ascii_case(text));
    known.ok_or_else(|| Refusal::Codec(text.to_owned()))
}

/// Returns the encoding of a mix as `codec`. There is only one encoding of G.711 and G.722 each, so
/// that all participants share it.
pub(crate) fn encoding(codec: AudioCodec, opus: impl FnOnce() -> Encoding) -> Encoding {
    match codec {
        AudioCodec::Opus => opus(),
        AudioCodec::Pcma | AudioCodec::Pcmu | AudioCodec::G722 => Encoding {
            codec,
            bitrate: None,
            complexity: QUALITY,
            fec: false,
            expected_loss: 0,
        },
    }
}

/// Returns the encoding for forwarders and listeners, which have no settings.
pub(crate) fn shared_encoding(codec: AudioCodec, options: &RoomOptions) -> Encoding {
    encoding(codec, || Encoding {
        codec,
        bitrate: options.bitrate,
        complexity: QUALITY,
        fec: options.expected_loss > 0,
        expected_loss: options.expected_loss,
    })
}
