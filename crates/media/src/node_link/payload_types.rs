//! The payload types on node links: one for each codec, whatever its publisher has negotiated.

use portunus_rtp::Pt;
use portunus_sdp::negotiated::Codec;

/// Returns the payload type of a codec on node links.
pub(crate) const fn payload_type(codec: Codec) -> Pt {
    Pt(match codec {
        Codec::Opus => 96,
        Codec::MultiOpus => 97,
        Codec::G722 => 98,
        Codec::Pcmu => 99,
        Codec::Pcma => 100,
        Codec::L16 => 101,
        Codec::Isac => 102,
        Codec::Red => 103,
        Codec::TelephoneEvent => 104,
        Codec::ComfortNoise => 105,
        Codec::Vp8 => 106,
        Codec::Vp9 => 107,
        Codec::H264 => 108,
        Codec::H265 => 109,
        Codec::Av1 => 110,
    })
}
