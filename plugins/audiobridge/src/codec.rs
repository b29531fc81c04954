//! The codecs of participants and forwarders: their names, and how mixes are encoded.

use portunus_core::sdp::CodecName;
use portunus_dsp::{AudioCodec, Encoding};

use crate::options::RoomOptions;
use crate::refusal::Refusal;

/// The complexity of encoders, where nobody says otherwise.
pub(crate) const QUALITY: u8 = 4;

/// The name on the wire.
pub(crate) const fn codec_name(codec: AudioCodec) -> &'static str {
    match codec {
        AudioCodec::Opus => "opus",
        AudioCodec::Pcma => "pcma",
        AudioCodec::Pcmu => "pcmu",
        AudioCodec::G722 => "g722",
    }
}

/// The codec in the words of SDP.
pub(crate) const fn sdp_codec(codec: AudioCodec) -> CodecName {
    match codec {
        AudioCodec::Opus => CodecName::Opus,
        AudioCodec::Pcma => CodecName::Pcma,
        AudioCodec::Pcmu => CodecName::Pcmu,
        AudioCodec::G722 => CodecName::G722,
    }
}

/// The codec with this name; Opus without one.
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

/// How a mix is encoded as `codec`. Of G.711 and G.722 all encodings are alike, so that all share one.
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

/// How a mix is encoded for those who set nothing: forwarders and listeners.
pub(crate) fn shared_encoding(codec: AudioCodec, options: &RoomOptions) -> Encoding {
    encoding(codec, || Encoding {
        codec,
        bitrate: options.bitrate,
        complexity: QUALITY,
        fec: options.expected_loss > 0,
        expected_loss: options.expected_loss,
    })
}
