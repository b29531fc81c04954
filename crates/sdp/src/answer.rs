//! Answers of plugins: the accepted m-lines, directions, codecs and header extensions.

use portunus_rtp::ExtensionKind;

use crate::codecs::{CodecName, CodecSpec};
use crate::description::{Description, Direction, Extmap, Media};
use crate::negotiated::{Codec, Kind};
use crate::opus_flags::OfferedFlags;

/// The parts of an offer that a plugin accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerOptions {
    /// Audio m-lines.
    pub audio: MediaAnswer,
    /// Video m-lines.
    pub video: MediaAnswer,
    /// Whether to accept the first data m-line.
    pub data: bool,
    /// Header extensions to accept if offered.
    pub extensions: Vec<ExtensionKind>,
    /// The `s=` line. `None` means that of the offer.
    pub name: Option<String>,
}

impl Default for AnswerOptions {
    /// Accepts everything, with the server's order of codecs and without header extensions.
    fn default() -> Self {
        let media = |codecs: &[CodecName]| MediaAnswer {
            codecs: codecs.to_vec(),
            channels: None,
            direction: Direction::SendRecv,
            profile: None,
            profile_required: false,
            fmtp: None,
            red: false,
            dtmf: false,
        };
        AnswerOptions {
            audio: media(&CodecName::AUDIO),
            video: media(&CodecName::VIDEO),
            data: true,
            extensions: Vec::new(),
            name: None,
        }
    }
}

/// The parts that a plugin accepts of the m-lines of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaAnswer {
    /// Codecs in order of preference: the first offered one is accepted. Empty rejects the m-lines.
    pub codecs: Vec<CodecName>,
    /// The channels of a codec with a variable number, such as L16. `None` accepts any.
    pub channels: Option<u8>,
    /// The wanted direction. The answer also depends on the offered one.
    pub direction: Direction,
    /// The profile to accept: `profile-id` of VP9, `profile-level-id` of H.264.
    pub profile: Option<String>,
    /// Whether to reject the m-line if the profile is not offered, rather than accept the codec
    /// without it.
    pub profile_required: bool,
    /// Format parameters of the answer, except for multi-channel Opus. `None`: see
    /// [`Description::answer`].
    pub fmtp: Option<String>,
    /// Whether to accept redundant audio (RFC 2198) for Opus.
    pub red: bool,
    /// Whether to accept telephone events: those with the clock rate of the codec, else those with
    /// 8000 Hz, else the first (RFC 4733 section 2.1).
    pub dtmf: bool,
}

impl MediaAnswer {
    /// Accepts `codec` only.
    pub fn only(&mut self, codec: CodecName) {
        self.codecs = vec![codec];
    }
}

impl Description {
    /// Answers `offer` with one codec for each m-line.
    ///
    /// The format parameters are the first of: with multi-channel Opus the offered ones, which
    /// describe the packets; those of the options; the requested profile; with video the offered
    /// ones; none.
    pub fn answer(offer: &Description, options: &AnswerOptions) -> Description {
        let mut data_taken = false;
        let media = offer
            .media
            .iter()
            .map(|offered| {
                let answer = match offered.kind {
                    _ if offered.rejected => None,
                    Kind::Audio => answer_media(offered, &options.audio, &options.extensions),
                    Kind::Video => answer_media(offered, &options.video, &options.extensions),
                    Kind::Data if options.data && !data_taken => {
                        data_taken = true;
                        let direction = offered.direction.answer(Direction::SendRecv);
                        Some(Media {
                            direction,
                            ..offered.refused()
                        })
                    }
                    Kind::Data => None,
                };
                match answer {
                    Some(media) => Media {
                        rejected: false,
                        ..media
                    },
                    None => offered.refused(),
                }
            })
            .collect();
        Description {
            origin: offer.origin.clone(),
            name: options.name.clone().unwrap_or_else(|| offer.name.clone()),
            attributes: Vec::new(),
            media,
        }
    }

    /// Returns the Opus flags that the audio m-lines request.
    pub fn opus_flags(&self) -> OfferedFlags {
        let mut flags = OfferedFlags::default();
        for codec in self.active(Kind::Audio).flat_map(|media| &media.codecs) {
            flags.fec |= codec.parameter("useinbandfec") == Some("1");
            flags.dtx |= codec.parameter("usedtx") == Some("1");
            flags.stereo |= codec.parameter("stereo") == Some("1");
        }
        flags
    }
}

impl Media {
    /// Returns the rejection of this m-line with its place, kind and mid.
    #[must_use]
    pub fn refused(&self) -> Media {
        Media {
            kind: self.kind,
            mid: self.mid,
            rejected: true,
            direction: Direction::Inactive,
            proto: self.proto.clone(),
            format: match self.kind {
                Kind::Data => self.format.clone(),
                Kind::Audio | Kind::Video => "0".to_owned(),
            },
            codecs: Vec::new(),
            extensions: Vec::new(),
            msid: None,
            bandwidth: None,
            attributes: Vec::new(),
        }
    }
}

fn answer_media(offered: &Media, wish: &MediaAnswer, accepted: &[ExtensionKind]) -> Option<Media> {
    let Choice {
        codec: chosen,
        name,
        fmtp,
    } = choose(offered, wish)?;
    let layered = matches!(name.codec(), Codec::Av1 | Codec::Vp9);
    let extensions: Vec<Extmap> = offered
        .extensions
        .iter()
        .filter(|extmap| {
            extmap.kind().is_some_and(|kind| {
                accepted.contains(&kind) && (layered || kind != ExtensionKind::DependencyDescriptor)
            })
        })
        .map(|e| Extmap {
            id: e.id,
            direction: e.direction.map(Direction::reversed),
            uri: e.uri.clone(),
        })
        .collect();
    let transport_cc = extensions
        .iter()
        .any(|e| e.kind() == Some(ExtensionKind::TransportCc));
    let mut feedback = server_feedback(offered.kind, transport_cc);
    // Browsers do not offer it for audio. Other clients then retransmit lost packets, so that a
    // recording is complete.
    if offered.kind == Kind::Audio && chosen.has_feedback("nack") {
        feedback.push("nack".to_owned());
    }

    let mut codecs = Vec::new();
    if wish.red && name == CodecName::Opus {
        codecs.extend(
            offered
                .codecs
                .iter()
                .find(|codec| covers(codec, chosen))
                .map(|red| CodecSpec {
                    fmtp: Some(format!("{0}/{0}", chosen.pt.0)),
                    feedback: feedback.clone(),
                    ..red.clone()
                }),
        );
    }
    codecs.push(CodecSpec {
        fmtp,
        feedback,
        ..chosen.clone()
    });
    if wish.dtmf {
        let is_event = |codec: &&CodecSpec| codec.codec() == Some(Codec::TelephoneEvent);
        let dtmf = offered.codecs.iter().filter(is_event);
        let dtmf = dtmf.min_by_key(|event| events_fit(event, Some(chosen.clock_rate)));
        codecs.extend(dtmf.map(|dtmf| CodecSpec {
            feedback: Vec::new(),
            ..dtmf.clone()
        }));
    }
    Some(Media {
        direction: offered.direction.answer(wish.direction),
        codecs,
        extensions,
        ..offered.refused()
    })
}

/// Returns how well telephone events fit a codec with this clock rate. 0 is best: they share its
/// timestamps. Without such events, 8000 Hz is what all clients know.
pub(crate) fn events_fit(event: &CodecSpec, clock_rate: Option<u32>) -> u8 {
    match event.clock_rate {
        rate if Some(rate) == clock_rate => 0,
        8_000 => 1,
        _ => 2,
    }
}

/// Returns the feedback that the server answers and offers, whatever was offered to it. The offer
/// decides which of it is used.
pub(crate) fn server_feedback(kind: Kind, transport_cc: bool) -> Vec<String> {
    let video: &[&str] = match kind {
        Kind::Video => &["ccm fir", "nack", "nack pli", "goog-remb"],
        Kind::Audio | Kind::Data => &[],
    };
    let transport_cc = transport_cc.then_some("transport-cc");
    video
        .iter()
        .copied()
        .chain(transport_cc)
        .map(str::to_owned)
        .collect()
}

/// Returns whether `red` is redundant audio of `codec`.
fn covers(red: &CodecSpec, codec: &CodecSpec) -> bool {
    let made_of = |fmtp: &str| {
        fmtp.split('/')
            .all(|pt| pt.trim().parse() == Ok(codec.pt.0))
    };
    red.is_red()
        && red.channel_count() == codec.channel_count()
        && red.fmtp.as_deref().is_none_or(made_of)
}

/// The offered codec to accept.
struct Choice<'a> {
    codec: &'a CodecSpec,
    name: CodecName,
    /// The format parameters to answer.
    fmtp: Option<String>,
}

/// Returns the offered codec to accept, or `None` if none is acceptable.
fn choose<'a>(offered: &'a Media, wish: &MediaAnswer) -> Option<Choice<'a>> {
    let has_channels = |codec: &CodecSpec| {
        let wanted = wish.channels.map(|channels| channels.max(1));
        wanted.is_none_or(|wanted| codec.channel_count() == wanted)
    };
    wish.codecs.iter().find_map(|&name| {
        let candidates = || {
            let codecs = offered.codecs.iter();
            codecs.filter(move |codec| name.matches(codec) && has_channels(codec))
        };
        if let Some(profile) = &wish.profile
            && let Some(asked) = Profile::of(name, profile)
        {
            if let Some(codec) = candidates().find(|codec| asked.is_offered_by(codec)) {
                let fmtp = wish.fmtp.clone().unwrap_or_else(|| asked.fmtp());
                return Some(Choice {
                    codec,
                    name,
                    fmtp: Some(fmtp),
                });
            }
            if wish.profile_required {
                return None;
            }
        }
        let preferred = |codec: &&CodecSpec| {
            name != CodecName::H264 || codec.parameter("packetization-mode") == Some("1")
        };
        let codec = candidates()
            .find(preferred)
            .or_else(|| candidates().next())?;
        let offered = || codec.fmtp.clone();
        let fmtp = match (name, name.kind()) {
            (CodecName::MultiOpus, _) => offered(),
            (_, Kind::Video) => wish.fmtp.clone().or_else(offered),
            (_, Kind::Audio | Kind::Data) => wish.fmtp.clone(),
        };
        Some(Choice { codec, name, fmtp })
    })
}

/// A requested profile.
enum Profile<'a> {
    Vp9(&'a str),
    H264(&'a str),
}

impl<'a> Profile<'a> {
    /// Reads a profile of `codec`. Returns `None` if the codec's profiles cannot be requested.
    fn of(codec: CodecName, profile: &'a str) -> Option<Self> {
        match codec {
            CodecName::Vp9 => Some(Profile::Vp9(profile)),
            CodecName::H264 => Some(Profile::H264(profile)),
            _ => None,
        }
    }

    fn is_offered_by(&self, codec: &CodecSpec) -> bool {
        match self {
            // VP9 without parameters has profile 0 (RFC 9628 section 7).
            Profile::Vp9(profile) => codec.parameter("profile-id").unwrap_or("0") == *profile,
            Profile::H264(profile) => {
                let offered = codec.parameter("profile-level-id");
                offered.is_some_and(|offered| offered.eq_ignore_ascii_case(profile))
                    && codec.parameter("packetization-mode") != Some("0")
            }
        }
    }

    fn fmtp(&self) -> String {
        match self {
            Profile::Vp9(profile) => format!("profile-id={profile}"),
            Profile::H264(profile) => format!("profile-level-id={profile};packetization-mode=1"),
        }
    }
}
