//! The request `watch`: one publisher, or whoever speaks, in one exchange, and by an offer of the client where it makes
//! one. It is what WHEP does; subscriptions of the usual kind have their seats from it too (`last_n`).

use portunus_core::sdp::{AnswerOptions, CodecName, Description, Direction, Kind, Media};
use portunus_core::{ExtensionKind, Fields, Handle, Jsep, JsepKind, LocalJsep, Mid, Object};
use serde_json::Value;

use super::seat::{Follow, Seat};
use super::{Line, Signaling, Subscriber};
use crate::id::{Id, Ids};
use crate::options::RoomOptions;
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::roster::Participant;

/// The most speakers that a subscription can have.
pub(super) const MAX_SPEAKERS: u64 = 50;

/// What `watch` says.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The publisher; none: whoever speaks.
    feed: Option<Id>,
    private_id: Option<u64>,
    /// How many speakers; none: as many as the offer has room for, or as publish now.
    last_n: Option<usize>,
    /// Whether the viewer can decrypt what is encrypted end to end; none: as its offer says, if it makes one.
    e2ee: Option<bool>,
}

impl Watch {
    pub(crate) fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, Refusal> {
        Ok(Watch {
            feed: ids.read(fields, "feed")?,
            private_id: fields.positive("private_id")?,
            last_n: last_n(fields)?,
            e2ee: fields.boolean("e2ee")?,
        })
    }
}

/// Reads how many speakers are wanted.
pub(super) fn last_n(fields: Fields<'_>) -> Result<Option<usize>, Refusal> {
    match fields.positive("last_n")? {
        None => Ok(None),
        Some(n @ 1..=MAX_SPEAKERS) => Ok(usize::try_from(n).ok()),
        Some(_) => Err(Refusal::value("last_n", "1 to 50")),
    }
}

impl RoomState {
    /// Adds a subscription whose m-lines are seats; gives what its client is told.
    pub(crate) fn watch(
        &mut self,
        handle: &Handle,
        watch: Watch,
        jsep: Option<&Jsep>,
        by_secret: bool,
    ) -> Result<(Value, LocalJsep), Refusal> {
        let owner = self.owner(watch.private_id, by_secret)?;
        if let Some(feed) = &watch.feed {
            self.published(feed)?;
        }
        if jsep.is_some_and(|jsep| jsep.kind == JsepKind::Answer) {
            return Err(Refusal::WrongSdpType("type"));
        }
        let key = handle.id();
        let mut subscriber = Subscriber::new(handle, owner, watch.private_id);
        subscriber.e2ee = match &watch.feed {
            Some(feed) => self.published(feed)?.e2ee,
            None => self.options.require_e2ee,
        };
        let decrypts = watch.e2ee.or(jsep.map(|jsep| jsep.e2ee)).unwrap_or(true);
        if subscriber.e2ee && !decrypts {
            return Err(Refusal::Encrypted);
        }
        let answer = match jsep {
            Some(jsep) => Some(self.seats_offered(&mut subscriber, &watch, &jsep.description)?),
            None => {
                self.seats_to_offer(&mut subscriber, &watch)?;
                None
            }
        };
        if subscriber.lines.iter().all(|line| line.seat.is_none()) {
            return Err(Refusal::Sdp("There is nothing to receive".to_owned()));
        }
        self.insert_subscriber(subscriber);
        self.followers.insert(key);
        self.seat_first(key);
        let local = match answer {
            Some(answer) => self.answer_viewer(handle, answer),
            None => self.offer(key),
        };
        let local = local.inspect_err(|_| self.leave_subscriber(key))?;
        let attached = Object::new()
            .with("videoroom", "attached")
            .with("room", self.id.to_json())
            .with("streams", self.summaries(key));
        Ok((attached.into(), local))
    }

    /// Answers the viewer's offer; media flows from then on.
    fn answer_viewer(
        &mut self,
        handle: &Handle,
        answer: Description,
    ) -> Result<LocalJsep, Refusal> {
        let local = handle.answer(answer)?;
        let key = handle.id();
        let subscriber = self.subscribers.get_mut(&key).ok_or(Refusal::NotInRoom)?;
        subscriber.client_offered = true;
        subscriber.signaling = Signaling::Stable;
        for line in &mut subscriber.lines {
            line.ready = line.seat.is_some();
        }
        let e2ee = subscriber.e2ee;
        self.relay(key);
        Ok(local.with_e2ee(e2ee))
    }

    /// Seats for what is to be watched, as m-lines of our offer.
    fn seats_to_offer(
        &mut self,
        subscriber: &mut Subscriber,
        watch: &Watch,
    ) -> Result<(), Refusal> {
        let Some(feed) = &watch.feed else {
            let publishing = self.publishers().filter(|p| !p.origin.is_dummy()).count();
            let most = usize::try_from(MAX_SPEAKERS).unwrap_or(usize::MAX);
            let slots = watch.last_n.unwrap_or(publishing.clamp(1, most));
            let both = [Kind::Audio, Kind::Video];
            return subscriber.add_seats(&self.options, slots, &both);
        };
        let publisher = self.people.get(feed).and_then(Participant::up);
        let streams = publisher.into_iter().flat_map(|media| &media.streams);
        let sent = streams.filter(|stream| !stream.disabled && stream.kind != Kind::Data);
        let kinds: Vec<Kind> = sent.map(|stream| stream.kind).collect();
        subscriber.add_seats(&self.options, 1, &kinds)?;
        subscriber.follow = Follow::Feed(feed.clone());
        Ok(())
    }

    /// Seats for what is to be watched, on the m-lines of the client's offer; gives the answer.
    fn seats_offered(
        &self,
        subscriber: &mut Subscriber,
        watch: &Watch,
        offer: &Description,
    ) -> Result<Description, Refusal> {
        let mut media = Vec::with_capacity(offer.media.len());
        let (mut audio, mut video) = (0, 0);
        for offered in &offer.media {
            let mut line = Line::new(offered.kind, offered.mid);
            let count = match offered.kind {
                Kind::Audio => &mut audio,
                Kind::Video => &mut video,
                Kind::Data => {
                    subscriber.lines.push(line);
                    media.push(offered.refused());
                    continue;
                }
            };
            let enough = watch.last_n.is_some_and(|n| *count >= n) && watch.feed.is_none();
            match answer_line(&self.options, offered).filter(|_| !enough) {
                Some(answered) => {
                    let codecs = answered
                        .codecs
                        .iter()
                        .filter_map(|codec| codec.codec_name());
                    let (slot, nth) = match watch.feed {
                        Some(_) => (0, *count),
                        None => (*count, 0),
                    };
                    line.seat = Some(Seat::offered(slot, nth, codecs));
                    *count += 1;
                    media.push(answered);
                }
                None => media.push(inactive(offered)),
            }
            subscriber.lines.push(line);
        }
        match &watch.feed {
            Some(feed) => subscriber.follow(Follow::Feed(feed.clone()), 1),
            None => {
                let slots = audio.max(video);
                subscriber.follow(Follow::Speakers(slots), slots);
            }
        }
        Ok(Description {
            origin: offer.origin.clone(),
            name: format!("VideoRoom {}", self.id),
            attributes: Vec::new(),
            media,
        })
    }
}

impl Subscriber {
    /// Adds seats: for each slot an m-line of each kind.
    pub(super) fn add_seats(
        &mut self,
        options: &RoomOptions,
        slots: usize,
        kinds: &[Kind],
    ) -> Result<(), Refusal> {
        self.check_room(slots.saturating_mul(kinds.len()))?;
        for slot in 0..slots {
            for (place, kind) in kinds.iter().enumerate() {
                let Some(mid) = Mid::new(&self.lines.len().to_string()) else {
                    continue;
                };
                let mut line = Line::new(*kind, mid);
                let earlier = kinds.iter().take(place);
                let nth = earlier.filter(|other| *other == kind).count();
                let (seat, extensions) = Seat::new(*kind, (slot, nth), options, &mut self.payloads);
                line.format.extensions = extensions;
                line.seat = Some(seat);
                self.lines.push(line);
            }
        }
        self.follow(Follow::Speakers(slots), slots);
        Ok(())
    }
}

/// Answers an m-line with all codecs that the room has and the viewer takes; none if that is none, or if it does not
/// receive.
fn answer_line(options: &RoomOptions, offered: &Media) -> Option<Media> {
    if offered.rejected || !offered.direction.receives() {
        return None;
    }
    let codecs = match offered.kind {
        Kind::Audio => &options.audiocodec,
        Kind::Video | Kind::Data => &options.videocodec,
    };
    let mut answers = codecs
        .iter()
        .filter_map(|codec| answer_codec(options, offered, *codec));
    let mut answer = answers.next()?;
    for other in answers {
        answer.codecs.extend(other.codecs);
    }
    Some(answer)
}

fn answer_codec(options: &RoomOptions, offered: &Media, codec: CodecName) -> Option<Media> {
    let video = offered.kind == Kind::Video;
    let accepted = [
        (true, ExtensionKind::Mid),
        (video, ExtensionKind::AbsSendTime),
        (video, ExtensionKind::DependencyDescriptor),
        (options.transport_wide_cc_ext, ExtensionKind::TransportCc),
        (!video && options.audiolevel_ext, ExtensionKind::AudioLevel),
        (
            video && options.videoorient_ext,
            ExtensionKind::VideoOrientation,
        ),
        (
            video && options.playoutdelay_ext,
            ExtensionKind::PlayoutDelay,
        ),
    ];
    let accepted = accepted.into_iter().filter(|(wanted, _)| *wanted);
    let mut answer = AnswerOptions {
        extensions: accepted.map(|(_, kind)| kind).collect(),
        ..AnswerOptions::default()
    };
    for media in [&mut answer.audio, &mut answer.video] {
        media.only(codec);
        media.direction = Direction::SendOnly;
        media.profile = match codec {
            CodecName::Vp9 => options.vp9_profile.clone(),
            CodecName::H264 => options.h264_profile.clone(),
            _ => None,
        };
    }
    single(offered, &answer)
}

/// Keeps an m-line for which there is nothing, so that it can carry the bundle.
fn inactive(offered: &Media) -> Media {
    let mut options = AnswerOptions::default();
    options.audio.direction = Direction::Inactive;
    options.video.direction = Direction::Inactive;
    let answered = match offered.rejected {
        true => None,
        false => single(offered, &options),
    };
    answered.unwrap_or_else(|| offered.refused())
}

/// Answers one m-line on its own; none if it would be rejected.
fn single(offered: &Media, options: &AnswerOptions) -> Option<Media> {
    let offer = Description {
        media: vec![offered.clone()],
        ..Description::default()
    };
    let answer = Description::answer(&offer, options);
    answer.media.into_iter().find(|media| !media.rejected)
}
