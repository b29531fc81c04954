//! The m-line of a client: its answer, its offer, and the result of the negotiation.

use std::time::{SystemTime, UNIX_EPOCH};

use portunus_core::sdp::{
    AnswerOptions, Codec, Description, Direction, Kind, Media, MediaOffer, Negotiated,
    OfferOptions, Origin,
};
use portunus_core::{ExtensionKind, Mid, Pt};
use portunus_dsp::AudioCodec;
use portunus_resources::Id;

use crate::codec::sdp_codec;
use crate::options::RoomOptions;
use crate::room::Profile;

/// The payload type of Opus in the server's offers.
const OPUS: Pt = Pt(111);

/// The result of a negotiation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) mid: Mid,
    /// `None` if there is no common codec.
    pub(crate) codec: Option<AudioCodec>,
    /// Whether the server sends.
    pub(crate) sends: bool,
    /// Whether the server receives.
    pub(crate) receives: bool,
    /// Whether the client's packets carry an audio level (RFC 6464).
    pub(crate) levels: bool,
    /// Whether the client accepts in-band FEC.
    pub(crate) fec: bool,
    /// Whether the client may send redundant audio (RFC 2198).
    pub(crate) red: bool,
}

impl Line {
    /// Returns the first audio m-line of a client with this description.
    pub(crate) fn of(negotiated: &Negotiated, client: &Description) -> Option<Self> {
        let own = client
            .media
            .iter()
            .find(|media| media.kind == Kind::Audio)?;
        let agreed = negotiated.media.iter().find(|media| media.mid == own.mid)?;
        let codec = agreed.payloads.iter().find_map(|payload| {
            Some(match payload.codec {
                Codec::Opus => AudioCodec::Opus,
                Codec::Pcma => AudioCodec::Pcma,
                Codec::Pcmu => AudioCodec::Pcmu,
                Codec::G722 => AudioCodec::G722,
                _ => return None,
            })
        });
        let codec = codec.filter(|_| !agreed.disabled);
        let red = agreed
            .payloads
            .iter()
            .any(|payload| payload.codec == Codec::Red);
        Some(Line {
            mid: own.mid,
            codec,
            sends: agreed.send && !agreed.disabled,
            receives: agreed.recv && !agreed.disabled,
            levels: agreed.extensions.id(ExtensionKind::AudioLevel).is_some(),
            fec: codec == Some(AudioCodec::Opus) && asks_for_fec(own),
            red,
        })
    }
}

/// Whether the client accepts in-band FEC.
fn asks_for_fec(media: &Media) -> bool {
    let opus = sdp_codec(AudioCodec::Opus);
    let mut codecs = media.codecs.iter().filter(|codec| opus.matches(codec));
    codecs.any(|codec| codec.parameter("useinbandfec") == Some("1"))
}

/// The `o=` line of the answers on a PeerConnection. Each answer has a higher version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answers {
    session: u128,
    version: u64,
}

impl Answers {
    /// Returns the ids for a new PeerConnection.
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Answers {
            session: since.unwrap_or_default().as_micros(),
            version: 0,
        }
    }

    fn next(&mut self) -> Origin {
        self.version = self.version.saturating_add(1);
        Origin {
            session_id: self.session.to_string(),
            version: self.version,
            ..Origin::default()
        }
    }
}

/// The codecs and the direction of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish<'a> {
    pub(crate) codecs: &'a [AudioCodec],
    pub(crate) direction: Direction,
}

/// Answers an offer: accepts its first audio m-line, and refuses all others.
pub(crate) fn answer(
    offer: &Description,
    profile: &Profile,
    wish: Wish<'_>,
    answers: &mut Answers,
) -> Description {
    let first = offer.media.iter().position(|it| it.kind == Kind::Audio);
    let lines = offer.media.iter().enumerate().map(|(index, offered)| {
        match Some(index) == first && !offered.rejected {
            true => {
                answer_line(offered, profile.options(), wish).unwrap_or_else(|| offered.refused())
            }
            false => offered.refused(),
        }
    });
    Description {
        media: lines.collect(),
        origin: answers.next(),
        name: name(profile.id()),
        attributes: Vec::new(),
    }
}

fn answer_line(offered: &Media, options: &RoomOptions, wish: Wish<'_>) -> Option<Media> {
    let mut answer = AnswerOptions {
        extensions: vec![ExtensionKind::Mid, ExtensionKind::AudioLevel],
        ..AnswerOptions::default()
    };
    answer.audio.codecs = wish.codecs.iter().map(|codec| sdp_codec(*codec)).collect();
    answer.audio.direction = wish.direction;
    answer.audio.red = true;
    answer.audio.fmtp = None;
    let alone = Description {
        media: vec![offered.clone()],
        ..Description::default()
    };
    let answered = Description::answer(&alone, &answer);
    let mut media = answered.media.into_iter().find(|media| !media.rejected)?;
    let opus = sdp_codec(AudioCodec::Opus);
    for codec in media.codecs.iter_mut().filter(|it| opus.matches(it)) {
        codec.fmtp = Some(fmtp(options, asks_for_fec(offered)));
    }
    // Redundancy is the client's choice, so its order of codecs stays.
    let place = |pt: Pt| offered.codecs.iter().position(|codec| codec.pt == pt);
    media.codecs.sort_by_key(|codec| place(codec.pt));
    Some(media)
}

/// Returns the format parameters of Opus in a room (RFC 7587 section 6.1).
fn fmtp(options: &RoomOptions, fec: bool) -> String {
    let (rate, stereo, fec) = (
        options.rate.hertz(),
        u8::from(options.spatial),
        u8::from(fec),
    );
    format!("maxplaybackrate={rate}; stereo={stereo}; sprop-stereo={stereo}; useinbandfec={fec}")
}

/// Returns an offer.
pub(crate) fn offer(profile: &Profile, codec: AudioCodec, direction: Direction) -> Description {
    let mut media = MediaOffer::new(Kind::Audio, direction);
    let (pt, parameters) = match codec {
        AudioCodec::Opus => (Some(OPUS), Some(fmtp(profile.options(), true))),
        AudioCodec::Pcma | AudioCodec::Pcmu | AudioCodec::G722 => (None, None),
    };
    media.add_codec(sdp_codec(codec), pt, parameters);
    media.extensions = vec![(ExtensionKind::Mid, 1), (ExtensionKind::AudioLevel, 2)];
    Description::offer(OfferOptions {
        name: name(profile.id()),
        session_id: String::new(),
        media: vec![media],
    })
}

fn name(room: &Id) -> String {
    format!("AudioBridge {room}")
}
