//! Which of the m-lines that a publisher offers are taken, and with which codecs.

use portunus_core::sdp::{
    AnswerOptions, Bandwidth, CodecName, Description, Direction, Kind, Media, OfferedFlags,
};
use portunus_core::{ExtensionKind, Jsep};

use crate::options::RoomOptions;
use crate::publication::{ExtensionIds, Stream};

/// The codecs that a publisher insists on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Forced {
    pub(super) audio: Option<CodecName>,
    pub(super) video: Option<CodecName>,
}

/// Answers a publisher's offer; the streams are new but for those of `before`, whose codecs are kept where possible.
///
/// `bitrate` is the cap that the answer says, in bit/s; 0: none.
pub(super) fn answer(
    options: &RoomOptions,
    name: String,
    forced: Forced,
    jsep: &Jsep,
    before: &[Stream],
    bitrate: u64,
) -> (Description, Vec<Stream>) {
    let offer = &jsep.description;
    let firefox = offer.origin.username.starts_with("mozilla");
    let mut media = Vec::with_capacity(offer.media.len());
    let mut streams = Vec::with_capacity(offer.media.len());
    let mut data_taken = false;
    for (index, offered) in offer.media.iter().enumerate() {
        let known = before.get(index).and_then(|stream| stream.codec);
        let mut line = match offered.kind {
            Kind::Data if data_taken => offered.refused(),
            Kind::Data => single(offered, AnswerOptions::default()),
            Kind::Audio | Kind::Video => answer_media(options, forced, offered, known),
        };
        data_taken |= offered.kind == Kind::Data && !line.rejected;
        if offered.kind == Kind::Video && !line.rejected && options.bitrate_cap && bitrate > 0 {
            line.bandwidth = Some(bandwidth(bitrate, firefox));
        }
        streams.push(stream(jsep, index, offered, &line));
        media.push(line);
    }
    let description = Description {
        origin: offer.origin.clone(),
        name,
        attributes: Vec::new(),
        media,
    };
    (description, streams)
}

/// The first of the wanted codecs that is offered, with what the room says of it.
fn answer_media(
    options: &RoomOptions,
    forced: Forced,
    offered: &Media,
    known: Option<CodecName>,
) -> Media {
    let (list, forced) = match offered.kind {
        Kind::Audio => (&options.audiocodec, forced.audio),
        Kind::Video | Kind::Data => (&options.videocodec, forced.video),
    };
    let known = known.filter(|codec| list.contains(codec));
    let wanted: Vec<CodecName> = match forced {
        Some(codec) => vec![codec],
        None => known.into_iter().chain(list.iter().copied()).collect(),
    };
    let is_offered = |codec: &CodecName| offered.codecs.iter().any(|o| codec.matches(o));
    let Some(codec) = wanted.into_iter().find(is_offered) else {
        return offered.refused();
    };
    let mut answer = AnswerOptions {
        extensions: extensions(options, offered.kind),
        ..AnswerOptions::default()
    };
    for media in [&mut answer.audio, &mut answer.video] {
        media.only(codec);
        media.direction = Direction::RecvOnly;
        media.profile = match codec {
            CodecName::Vp9 => options.vp9_profile.clone(),
            CodecName::H264 => options.h264_profile.clone(),
            _ => None,
        };
        media.fmtp = match codec {
            CodecName::Opus => flags(options, offered).fmtp(),
            _ => None,
        };
    }
    single(offered, answer)
}

/// Answers one m-line on its own.
fn single(offered: &Media, options: AnswerOptions) -> Media {
    let offer = Description {
        media: vec![offered.clone()],
        ..Description::default()
    };
    let mut answer = Description::answer(&offer, &options);
    answer.media.pop().unwrap_or_else(|| offered.refused())
}

/// What the publisher asks for of Opus and the room allows.
fn flags(options: &RoomOptions, offered: &Media) -> OfferedFlags {
    let opus = |codec: &&_| CodecName::Opus.matches(codec);
    let codec = offered.codecs.iter().find(opus);
    let asked = |name| codec.is_some_and(|codec| codec.parameter(name) == Some("1"));
    OfferedFlags {
        fec: options.opus_fec && asked("useinbandfec"),
        dtx: options.opus_dtx && asked("usedtx"),
        stereo: asked("stereo"),
    }
}

fn extensions(options: &RoomOptions, kind: Kind) -> Vec<ExtensionKind> {
    let (audio, video) = (kind == Kind::Audio, kind == Kind::Video);
    let accepted = [
        (true, ExtensionKind::Mid),
        (true, ExtensionKind::Rid),
        (true, ExtensionKind::RepairedRid),
        (options.transport_wide_cc_ext, ExtensionKind::TransportCc),
        (audio && options.audiolevel_ext, ExtensionKind::AudioLevel),
        (
            video && options.videoorient_ext,
            ExtensionKind::VideoOrientation,
        ),
        (
            video && options.playoutdelay_ext,
            ExtensionKind::PlayoutDelay,
        ),
        (video, ExtensionKind::DependencyDescriptor),
    ];
    let accepted = accepted.into_iter().filter(|(wanted, _)| *wanted);
    accepted.map(|(_, kind)| kind).collect()
}

fn stream(jsep: &Jsep, index: usize, offered: &Media, answered: &Media) -> Stream {
    let mut stream = Stream::new(offered.kind, offered.mid, index);
    let received = offered.kind == Kind::Data || answered.direction.receives();
    stream.disabled = answered.rejected || !received;
    let Some(codec) = answered.codecs.first() else {
        return stream;
    };
    stream.codec = codec.codec_name();
    let parameter = |name| codec.parameter(name).map(str::to_owned);
    match stream.codec {
        Some(CodecName::Opus) => {
            let set = |name| codec.parameter(name) == Some("1");
            stream.opus = OfferedFlags {
                fec: set("useinbandfec"),
                dtx: set("usedtx"),
                stereo: set("stereo"),
            };
        }
        Some(CodecName::MultiOpus) => stream.fmtp = codec.fmtp.clone(),
        Some(CodecName::H264) => stream.h264_profile = parameter("profile-level-id"),
        Some(CodecName::Vp9) => stream.vp9_profile = parameter("profile-id"),
        _ => {}
    }
    let number = |kind| {
        let mut extensions = answered.extensions.iter();
        let found = extensions.find(|extmap| extmap.kind() == Some(kind));
        found.map(|extmap| extmap.id)
    };
    stream.extensions = ExtensionIds {
        audio_level: number(ExtensionKind::AudioLevel),
        video_orientation: number(ExtensionKind::VideoOrientation),
        playout_delay: number(ExtensionKind::PlayoutDelay),
        dependency_descriptor: number(ExtensionKind::DependencyDescriptor),
    };
    let layered = jsep.simulcast.iter().find(|s| s.mid == offered.mid);
    let by_rid = number(ExtensionKind::Rid).is_some();
    stream.simulcast = layered.is_some_and(|simulcast| simulcast.rids.is_empty() || by_rid);
    stream.svc = jsep.svc.iter().any(|svc| svc.mid == offered.mid);
    stream
}

/// The cap in the form that the client reads.
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
