//! Answers to the offers of publishers.

use portunus_rtp::ExtensionKind;
use portunus_sdp::{
    AnswerOptions, Bandwidth, CodecName, CodecSpec, Description, Direction, Jsep, Kind, Media,
    OfferedFlags,
};

use super::{ExtensionIds, LineWish, Stream};
use crate::{Permissions, RoomSettings};

/// The most that a publisher may send of stereo that the door asks for, in bit/s: what Opus can.
const STEREO_BITRATE: u32 = 510_000;

/// The codecs that a publisher forces. The room has to have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forced {
    /// The audio codec.
    pub audio: Option<CodecName>,
    /// The video codec.
    pub video: Option<CodecName>,
}

/// The answer to a publisher's offer, before the offer is known.
#[derive(Debug)]
pub(crate) struct AnswerRequest<'a> {
    pub(crate) room: &'a RoomSettings,
    /// The session name of the answer.
    pub(crate) name: String,
    pub(crate) forced: Forced,
    pub(crate) permissions: Permissions,
    /// The cap that the answer states, in bit/s; 0 means none.
    pub(crate) bitrate: u64,
    /// The wishes for single m-lines.
    pub(crate) lines: &'a [LineWish],
    /// Whether the door takes the data, which is no stream then.
    pub(crate) keeps_data: bool,
}

/// An answer to a publisher's offer.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) description: Description,
    /// New streams, one for each m-line.
    pub(crate) streams: Vec<Stream>,
}

impl AnswerRequest<'_> {
    /// Answers an offer. Streams of `before` keep their codecs where possible.
    pub(crate) fn answer(self, jsep: &Jsep, before: &[Stream]) -> Answered {
        let offer = &jsep.description;
        let firefox = offer.origin.username.starts_with("mozilla");
        let cap = self.bitrate > 0 && self.room.bitrate_cap;
        let mut media = Vec::with_capacity(offer.media.len());
        let mut streams = Vec::with_capacity(offer.media.len());
        let mut data_taken = false;
        for (index, offered) in offer.media.iter().enumerate() {
            let known = before.get(index).and_then(|stream| stream.format.codec);
            let wish = self.lines.iter().find(|wish| wish.mid == offered.mid);
            let wish = LineWish {
                codec: known.or(wish.and_then(|wish| wish.codec)),
                ..wish.copied().unwrap_or(LineWish::of(offered.mid))
            };
            let mut line = match offered.kind {
                Kind::Data if self.keeps_data && !data_taken => {
                    single(offered, &AnswerOptions::default()).unwrap_or_else(|| offered.refused())
                }
                kind if !self.permissions.publishes(kind) => offered.refused(),
                Kind::Data if data_taken => offered.refused(),
                Kind::Data => {
                    single(offered, &AnswerOptions::default()).unwrap_or_else(|| offered.refused())
                }
                Kind::Audio | Kind::Video => answer_media(self.room, self.forced, offered, wish),
            };
            data_taken |= offered.kind == Kind::Data && !line.rejected;
            if cap && offered.kind == Kind::Video && !line.rejected {
                line.bandwidth = Some(bandwidth(self.bitrate, firefox));
            }
            let mut stream = stream(jsep, index, offered, &line);
            stream.disabled |= offered.kind == Kind::Data && self.keeps_data;
            streams.push(stream);
            media.push(line);
        }
        let description = Description {
            origin: offer.origin.clone(),
            name: self.name,
            attributes: Vec::new(),
            media,
        };
        Answered {
            description,
            streams,
        }
    }
}

/// Answers an m-line with the first wanted codec that is offered.
fn answer_media(options: &RoomSettings, forced: Forced, offered: &Media, wish: LineWish) -> Media {
    let list = options.codecs(offered.kind);
    let forced = match offered.kind {
        Kind::Audio => forced.audio,
        Kind::Video | Kind::Data => forced.video,
    };
    let known = wish.codec.filter(|codec| list.contains(codec));
    let wanted: Vec<CodecName> = match forced {
        Some(codec) => vec![codec],
        None => known.into_iter().chain(list.iter().copied()).collect(),
    };
    let is_offered = |codec: &CodecName| offered.codecs.iter().any(|o| codec.matches(o));
    let Some(codec) = wanted.into_iter().find(is_offered) else {
        return offered.refused();
    };
    let mut answer = answer_options(options, codec, Direction::RecvOnly);
    if codec == CodecName::Opus {
        let mut flags = flags(options, offered);
        flags.dtx = options.codecs.opus_dtx && wish.dtx.unwrap_or(flags.dtx);
        flags.stereo = wish.stereo.unwrap_or(flags.stereo);
        answer.audio.fmtp = flags.fmtp().map(|fmtp| match wish.stereo {
            Some(true) => format!("{fmtp};maxaveragebitrate={STEREO_BITRATE}"),
            Some(false) | None => fmtp,
        });
        answer.audio.red = wish.red;
    }
    single(offered, &answer).unwrap_or_else(|| offered.refused())
}

/// Returns the options of an answer with `codec`: to a publisher, or to a viewer by `direction`.
pub(crate) fn answer_options(
    room: &RoomSettings,
    codec: CodecName,
    direction: Direction,
) -> AnswerOptions {
    let (audio, video) = (codec.kind() == Kind::Audio, codec.kind() == Kind::Video);
    let accepted = [
        (true, ExtensionKind::Mid),
        (direction.receives(), ExtensionKind::Rid),
        (direction.receives(), ExtensionKind::RepairedRid),
        (video && direction.sends(), ExtensionKind::AbsSendTime),
        (room.extensions.transport_cc, ExtensionKind::TransportCc),
        (
            audio && room.extensions.audio_level,
            ExtensionKind::AudioLevel,
        ),
        (
            video && room.extensions.video_orientation,
            ExtensionKind::VideoOrientation,
        ),
        (
            video && room.extensions.playout_delay,
            ExtensionKind::PlayoutDelay,
        ),
        (video, ExtensionKind::DependencyDescriptor),
    ];
    let accepted = accepted.into_iter().filter(|(wanted, _)| *wanted);
    let mut options = AnswerOptions {
        extensions: accepted.map(|(_, kind)| kind).collect(),
        ..AnswerOptions::default()
    };
    for media in [&mut options.audio, &mut options.video] {
        media.only(codec);
        media.direction = direction;
        media.profile = room.profile(codec).map(str::to_owned);
    }
    options
}

/// Answers one m-line on its own. Returns `None` if it would be rejected.
pub(crate) fn single(offered: &Media, options: &AnswerOptions) -> Option<Media> {
    let offer = Description {
        media: vec![offered.clone()],
        ..Description::default()
    };
    let answer = Description::answer(&offer, options);
    answer.media.into_iter().find(|media| !media.rejected)
}

/// Returns the Opus features that the publisher requests and the room permits.
fn flags(options: &RoomSettings, offered: &Media) -> OfferedFlags {
    let mut codecs = offered.codecs.iter();
    let opus = codecs.find(|codec| CodecName::Opus.matches(codec));
    let asked = opus.map(CodecSpec::opus_flags).unwrap_or_default();
    OfferedFlags {
        fec: options.codecs.opus_fec && asked.fec,
        dtx: options.codecs.opus_dtx && asked.dtx,
        stereo: asked.stereo,
    }
}

fn stream(jsep: &Jsep, index: usize, offered: &Media, answered: &Media) -> Stream {
    let mut stream = Stream::new(offered.kind, offered.mid, index);
    let received = offered.kind == Kind::Data || answered.direction.receives();
    stream.disabled = answered.rejected || !received;
    let mut codecs = answered.codecs.iter();
    let Some(codec) = codecs.find(|codec| codec.codec_name().is_some()) else {
        return stream;
    };
    let format = &mut stream.format;
    format.red = answered.codecs.iter().any(CodecSpec::is_red);
    format.codec = codec.codec_name();
    format.channels = codec.unusual_channels();
    let parameter = |name| codec.parameter(name).map(str::to_owned);
    match format.codec {
        Some(CodecName::Opus) => format.opus = codec.opus_flags(),
        Some(CodecName::MultiOpus) => format.fmtp = codec.fmtp.clone(),
        Some(CodecName::H264) => format.h264_profile = parameter("profile-level-id"),
        Some(CodecName::Vp9) => format.vp9_profile = parameter("profile-id"),
        _ => {}
    }
    let number = |kind| {
        let mut extensions = answered.extensions.iter();
        let found = extensions.find(|extmap| extmap.kind() == Some(kind));
        found.map(|extmap| extmap.id)
    };
    format.extensions = ExtensionIds {
        audio_level: number(ExtensionKind::AudioLevel),
        video_orientation: number(ExtensionKind::VideoOrientation),
        playout_delay: number(ExtensionKind::PlayoutDelay),
        dependency_descriptor: number(ExtensionKind::DependencyDescriptor),
    };
    let layered = jsep.simulcast.iter().find(|s| s.mid == offered.mid);
    let by_rid = number(ExtensionKind::Rid).is_some();
    format.simulcast = layered.is_some_and(|simulcast| simulcast.rids.is_empty() || by_rid);
    format.svc = jsep.svc.iter().any(|svc| svc.mid == offered.mid);
    stream
}

/// Returns the cap in the unit that the client reads.
fn bandwidth(bitrate: u64, firefox: bool) -> Bandwidth {
    let (modifier, value) = match firefox {
        true => ("TIAS", bitrate),
        false => ("AS", bitrate / 1_000),
    };
    Bandwidth {
        modifier: modifier.to_owned(),
        value,
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use portunus_sdp::{MediaOffer, OfferOptions, SdpType};

    use super::*;

    const ALL: Permissions = Permissions::ALL;

    /// Returns an offer of m-lines with these codecs. An m-line without any is data.
    fn offer(lines: &[&[CodecName]]) -> Jsep {
        let media = lines.iter().map(|codecs| {
            let kind = codecs.first().map_or(Kind::Data, |codec| codec.kind());
            let mut media = MediaOffer::new(kind, Direction::SendOnly);
            for codec in *codecs {
                media.add_codec(*codec, None, None);
            }
            media
        });
        let description = Description::offer(OfferOptions {
            name: "publisher".to_owned(),
            session_id: String::new(),
            media: media.collect(),
        });
        Jsep {
            kind: SdpType::Offer,
            description,
            simulcast: Vec::new(),
            svc: Vec::new(),
            e2ee: false,
            update: false,
            restart: false,
        }
    }

    fn room(video: &[CodecName]) -> RoomSettings {
        let mut room = RoomSettings::default();
        room.codecs.video = video.to_vec();
        room
    }

    fn answer(
        room: &RoomSettings,
        (forced, permissions): (Forced, Permissions),
        offer: &Jsep,
        before: &[Stream],
        bitrate: u64,
    ) -> Answered {
        let request = AnswerRequest {
            room,
            name: String::new(),
            forced,
            permissions,
            bitrate,
            lines: &[],
            keeps_data: false,
        };
        request.answer(offer, before)
    }

    /// Returns the codec of each stream, or `None` if it is disabled.
    fn codecs(streams: &[Stream]) -> Vec<Option<CodecName>> {
        let codec = |stream: &Stream| stream.format.codec.filter(|_| !stream.disabled);
        streams.iter().map(codec).collect()
    }

    #[test]
    fn the_first_codec_of_the_room_that_is_offered_is_taken() {
        let both = [CodecName::Vp8, CodecName::H264];
        let offered = offer(&[&both, &[CodecName::Vp9]]);
        let answered = |options: &RoomSettings, forced| {
            codecs(&answer(options, (forced, ALL), &offered, &[], 0).streams)
        };
        let options = room(&[CodecName::H264, CodecName::Vp8]);
        let any = Forced::default();
        assert_eq!(answered(&options, any), [Some(CodecName::H264), None]);
        let forced = Forced {
            audio: None,
            video: Some(CodecName::Vp8),
        };
        assert_eq!(answered(&options, forced), [Some(CodecName::Vp8), None]);
    }

    #[test]
    fn a_stream_keeps_its_codec_as_long_as_it_is_offered() {
        let both = [CodecName::Vp8, CodecName::H264];
        let options = room(&both);
        let any = Forced::default();
        let (h264, more) = (offer(&[&[CodecName::H264]]), offer(&[&both]));
        let before = answer(&options, (any, ALL), &h264, &[], 0).streams;
        let after = answer(&options, (any, ALL), &more, &before, 0).streams;
        assert_eq!(codecs(&after), [Some(CodecName::H264)]);
        let vp8 = offer(&[&[CodecName::Vp8]]);
        let after = answer(&options, (any, ALL), &vp8, &before, 0).streams;
        assert_eq!(codecs(&after), [Some(CodecName::Vp8)]);
    }

    #[test]
    fn what_somebody_may_not_publish_is_rejected() {
        let offered = offer(&[&[CodecName::Opus], &[CodecName::Vp8]]);
        let (any, audio_only) = (
            Forced::default(),
            Permissions {
                video: false,
                ..ALL
            },
        );
        let options = room(&[CodecName::Vp8]);
        let answered = answer(&options, (any, audio_only), &offered, &[], 0);
        assert!(answered.description.media[1].rejected);
        assert_eq!(codecs(&answered.streams), [Some(CodecName::Opus), None]);
    }

    #[test]
    fn one_m_line_of_data_is_enough() {
        let offered = offer(&[&[], &[]]);
        let any = Forced::default();
        let streams = answer(&room(&[]), (any, ALL), &offered, &[], 0).streams;
        let disabled: Vec<bool> = streams.iter().map(|stream| stream.disabled).collect();
        assert_eq!(disabled, [false, true]);
    }

    #[test]
    fn a_cap_is_said_in_the_unit_that_the_client_reads() {
        let options = RoomSettings {
            bitrate_cap: true,
            ..room(&[CodecName::Vp8])
        };
        let said = |username: &str, bitrate| {
            let mut offered = offer(&[&[CodecName::Opus], &[CodecName::Vp8]]);
            offered.description.origin.username = username.to_owned();
            let any = Forced::default();
            let answer = answer(&options, (any, ALL), &offered, &[], bitrate).description;
            assert!(answer.media[0].bandwidth.is_none());
            let bandwidth = answer.media[1].bandwidth.clone();
            bandwidth.map(|bandwidth| (bandwidth.modifier, bandwidth.value))
        };
        assert_eq!(said("-", 500_000), Some(("AS".to_owned(), 500)));
        let firefox = Some(("TIAS".to_owned(), 500_000));
        assert_eq!(said("mozilla...THIS_IS_SDPARTA", 500_000), firefox);
        assert_eq!(said("-", 0), None);
    }
}
