//! Subscriptions to one publisher or to the speakers in a single exchange, also by the client's
//! offer. WHEP uses them.

use portunus_sdp::{AnswerOptions, CodecSpec, Description, Direction, Jsep, Kind, Media, SdpType};
use serde::Deserialize;

use super::line::Line;
use super::seat::{Seat, SeatPlace};
use super::seating::Follow;
use super::{Subscriber, Viewer};
use crate::publication::{Publication, Publications, answer_options, single};
use crate::{PersonId, Refusal, RoomSettings};

/// The most speakers that a subscription can have.
pub const MAX_SPEAKERS: usize = 50;

/// A request to follow one publisher, or the speakers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Watch {
    /// The publisher. `None` means the speakers.
    pub feed: Option<PersonId>,
    /// The private id of the participant to whom the subscription belongs.
    pub private_id: Option<u64>,
    /// The number of speakers, at most [`MAX_SPEAKERS`]. `None` means the number that fits in the
    /// offer, or of the present publishers.
    pub last_n: Option<usize>,
    /// Whether the viewer can decrypt end-to-end encryption. `None` means as its offer says.
    pub e2ee: Option<bool>,
}

impl Watch {
    /// Returns the requested subscription, and the answer to the client's offer, if there is one.
    pub(crate) fn subscriber(
        &self,
        viewer: Viewer,
        jsep: Option<&Jsep>,
        room: &str,
        options: &RoomSettings,
        publications: &Publications,
    ) -> Result<(Subscriber, Option<Description>), Refusal> {
        let feed = self.feed.as_ref().map(|feed| publications.published(feed));
        let feed = feed.transpose()?;
        if jsep.is_some_and(|jsep| jsep.kind == SdpType::Answer) {
            return Err(Refusal::WrongSdpType);
        }
        let e2ee = feed.map_or(options.require_e2ee, |feed| feed.e2ee);
        let decrypts = self.e2ee.or(jsep.map(|jsep| jsep.e2ee)).unwrap_or(true);
        if e2ee && !decrypts {
            return Err(Refusal::Encrypted);
        }
        let mut subscriber = Subscriber::new(viewer, self.private_id, e2ee);
        let answer = match jsep {
            Some(jsep) => {
                let media = self.take_offer(&mut subscriber, options, &jsep.description);
                Some(Description {
                    origin: jsep.description.origin.clone(),
                    name: format!("VideoRoom {room}"),
                    attributes: Vec::new(),
                    media,
                })
            }
            None => {
                self.add_seats(&mut subscriber, options, feed, publications)?;
                None
            }
        };
        match subscriber.has_seats() {
            true => Ok((subscriber, answer)),
            false => Err(Refusal::NothingToReceive),
        }
    }

    /// Seats for what is to be watched, as m-lines of our offer.
    fn add_seats(
        &self,
        subscriber: &mut Subscriber,
        options: &RoomSettings,
        feed: Option<&Publication>,
        publications: &Publications,
    ) -> Result<(), Refusal> {
        let (Some(id), Some(feed)) = (&self.feed, feed) else {
            let publishing = publications.publishers().count();
            let slots = self.last_n.unwrap_or(publishing.clamp(1, MAX_SPEAKERS));
            let both = [Kind::Audio, Kind::Video];
            return subscriber.add_seats(Follow::Speakers(slots), slots, &both, options);
        };
        let streams = feed.streams().iter();
        let sent = streams.filter(|stream| !stream.disabled && stream.kind != Kind::Data);
        let kinds: Vec<Kind> = sent.map(|stream| stream.kind).collect();
        subscriber.add_seats(Follow::Feed(id.clone()), 1, &kinds, options)
    }

    /// Makes seats of the m-lines of the client's offer. Returns the answer to these.
    fn take_offer(
        &self,
        subscriber: &mut Subscriber,
        options: &RoomSettings,
        offer: &Description,
    ) -> Vec<Media> {
        let mut media = Vec::with_capacity(offer.media.len());
        let mut lines = Vec::with_capacity(offer.media.len());
        let (mut audio, mut video) = (0, 0);
        for offered in &offer.media {
            let (kind, mid) = (offered.kind, offered.mid);
            let count = match kind {
                Kind::Audio => &mut audio,
                Kind::Video => &mut video,
                Kind::Data => {
                    lines.push(Line::new(kind, mid));
                    media.push(offered.refused());
                    continue;
                }
            };
            let enough = self.last_n.is_some_and(|n| *count >= n) && self.feed.is_none();
            let Some(answered) = answer_line(options, offered).filter(|_| !enough) else {
                lines.push(Line::new(kind, mid));
                media.push(inactive(offered));
                continue;
            };
            let codecs = answered.codecs.iter();
            let codecs = codecs.filter_map(CodecSpec::codec_name);
            let (slot, nth) = match self.feed {
                Some(_) => (0, *count),
                None => (*count, 0),
            };
            let seat = Seat::offered(SeatPlace { slot, nth }, codecs);
            lines.push(Line::with_seat(kind, mid, seat, Vec::new()));
            *count += 1;
            media.push(answered);
        }
        match &self.feed {
            Some(feed) => subscriber.take_lines(lines, Follow::Feed(feed.clone()), 1),
            None => {
                let slots = audio.max(video);
                subscriber.take_lines(lines, Follow::Speakers(slots), slots);
            }
        }
        media
    }
}

/// Answers an m-line with all codecs of the room that the viewer accepts. Returns `None` without a
/// codec, or if the viewer does not receive.
fn answer_line(options: &RoomSettings, offered: &Media) -> Option<Media> {
    if offered.rejected || !offered.direction.receives() {
        return None;
    }
    let codecs = options.codecs(offered.kind).iter();
    let answers = codecs.map(|codec| answer_options(options, *codec, Direction::SendOnly));
    let mut answers = answers.filter_map(|options| single(offered, &options));
    let mut answer = answers.next()?;
    for other in answers {
        answer.codecs.extend(other.codecs);
    }
    Some(answer)
}

/// Keeps an m-line without a stream, so that it can carry the bundle.
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
