//! The payload types of a subscription's offers.
//!
//! All m-lines share one transport. There a number means one codec with one set of parameters,
//! forever (RFC 8843 section 10.1.2). The first source of a codec gets the codec's usual number.
//! Sources with other parameters get other numbers.

use portunus_rtp::Pt;
use portunus_sdp::CodecName;

/// The numbers that have been given out.
#[derive(Debug, Default)]
pub(super) struct Payloads {
    known: Vec<Known>,
}

/// The meaning of a number.
#[derive(Debug)]
struct Known {
    codec: CodecName,
    channels: Option<u8>,
    fmtp: Option<String>,
    pt: Pt,
}

impl Payloads {
    /// Returns the number for `codec` with `fmtp` and, if not the codec's usual number of them,
    /// `channels`. Returns the usual number if none is free.
    pub(super) fn number(
        &mut self,
        codec: CodecName,
        channels: Option<u8>,
        fmtp: Option<&str>,
    ) -> Pt {
        let same = |known: &&Known| {
            (known.codec, known.channels, known.fmtp.as_deref()) == (codec, channels, fmtp)
        };
        if let Some(known) = self.known.iter().find(same) {
            return known.pt;
        }
        // Even ones, so that the next number is free for retransmissions or redundancy.
        let others = (36..=62).step_by(2).map(Pt);
        let mut numbers = std::iter::once(usual(codec)).chain(others);
        let taken = |pt: &Pt| self.known.iter().any(|known| known.pt == *pt);
        let Some(pt) = numbers.find(|pt| !taken(pt)) else {
            return usual(codec);
        };
        self.known.push(Known {
            codec,
            channels,
            fmtp: fmtp.map(str::to_owned),
            pt,
        });
        pt
    }
}

/// Returns the number for redundancy (RFC 2198) of the audio with number `of`. The next one is free,
/// as audio has no retransmissions.
pub(super) const fn redundant(of: Pt) -> Pt {
    Pt(of.0.saturating_add(1))
}

/// Returns the usual number of a codec. It does not depend on the publisher's.
const fn usual(codec: CodecName) -> Pt {
    match codec {
        CodecName::Pcmu => Pt(0),
        CodecName::Pcma => Pt(8),
        CodecName::G722 => Pt(9),
        CodecName::Vp8 => Pt(96),
        CodecName::Av1 => Pt(98),
        CodecName::H265 => Pt(100),
        CodecName::Vp9 => Pt(101),
        CodecName::Isac16 => Pt(103),
        CodecName::Isac32 => Pt(104),
        CodecName::H264 => Pt(107),
        CodecName::L16Wide => Pt(109),
        CodecName::L16 => Pt(110),
        CodecName::Opus | CodecName::MultiOpus => Pt(111),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_one_codec_with_one_set_of_parameters() {
        let mut payloads = Payloads::default();
        let stereo = Some("stereo=1");
        assert_eq!(payloads.number(CodecName::Opus, None, None), Pt(111));
        assert_eq!(payloads.number(CodecName::Opus, None, stereo), Pt(36));
        assert_eq!(payloads.number(CodecName::MultiOpus, None, None), Pt(38));
        assert_eq!(payloads.number(CodecName::Vp8, None, None), Pt(96));
        assert_eq!(payloads.number(CodecName::Opus, None, stereo), Pt(36));
        assert_eq!(payloads.number(CodecName::Opus, None, None), Pt(111));
        assert_eq!(payloads.number(CodecName::L16, None, None), Pt(110));
        assert_eq!(payloads.number(CodecName::L16, Some(2), None), Pt(40));
    }

    #[test]
    fn the_usual_number_stands_in_when_all_are_given_out() {
        let mut payloads = Payloads::default();
        for profile in 0..20 {
            let fmtp = format!("profile-id={profile}");
            let number = payloads.number(CodecName::Vp9, None, Some(&fmtp));
            assert!(profile < 15 || number == Pt(101));
        }
    }
}
