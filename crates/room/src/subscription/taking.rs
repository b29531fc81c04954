//! Subscriptions whose m-lines are those of the client's own offers, beside those that it publishes
//! on. Streams wait until an offer has an m-line for them.

use std::collections::VecDeque;

use portunus_rtp::{ExtensionKind, Mid};
use portunus_sdp::{AnswerOptions, CodecName, Description, Direction, Kind, Media, Msid};

use super::line::Line;
use super::request::Change;
use super::track::{Track, tracks};
use super::{MAX_LINES, Subscriber, Viewer};
use crate::publication::{Publications, StreamFormat, answer_options, single};
use crate::{PersonId, Refusal, RoomSettings};

/// The m-lines that a client's next offer has to have, or that change with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Missing {
    /// The number of further m-lines of audio.
    pub audio: usize,
    /// The number of further m-lines of video.
    pub video: usize,
}

/// The streams that wait for m-lines.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    tracks: VecDeque<Track>,
    /// The streams for which an m-line was free, but not with their codec.
    refused: Vec<(PersonId, Mid)>,
    /// Whether m-lines lost their streams since the last offer.
    pub(super) is_changed: bool,
}

impl Waiting {
    /// Forgets the streams of a publisher that is gone. `changed` if it had m-lines.
    pub(super) fn forget(&mut self, feed: &PersonId, changed: bool) {
        self.tracks.retain(|track| track.request.feed != *feed);
        self.is_changed |= changed;
    }

    /// Refuses the streams of `kinds`, since m-lines of these were free and none fitted.
    fn refuse(&mut self, kinds: &[Kind]) {
        let refused = self
            .tracks
            .iter()
            .filter(|track| kinds.contains(&track.kind));
        let refused = refused.map(|track| (track.request.feed.clone(), track.mid));
        self.refused.extend(refused);
        self.tracks.retain(|track| !kinds.contains(&track.kind));
    }
}

impl Subscriber {
    /// Returns a subscription whose m-lines are those of the client's offers.
    pub(crate) fn taking(viewer: Viewer, e2ee: bool) -> Self {
        let mut subscriber = Subscriber::new(viewer, None, e2ee);
        subscriber.negotiation.answered_client();
        subscriber.careful = true;
        subscriber.waiting = Some(Waiting::default());
        subscriber
    }

    /// Adds and removes streams. An added stream waits for the client's next offer.
    pub(super) fn change_waiting(
        &mut self,
        change: Change,
        publications: &Publications,
    ) -> Result<(), Refusal> {
        let added = tracks(change.subscribe, publications)?;
        for request in &change.unsubscribe {
            let removed = self.unsubscribe(request, publications);
            if let Some(waiting) = &mut self.waiting {
                waiting.is_changed |= removed;
                waiting
                    .tracks
                    .retain(|track| !request.names(&track.request.feed, track.mid));
            }
        }
        if let Some(waiting) = &mut self.waiting {
            if waiting.tracks.len().saturating_add(added.len()) > MAX_LINES {
                return Err(Refusal::TooManyLines);
            }
            waiting.tracks.extend(added);
        }
        Ok(())
    }

    /// Returns the m-lines that the client's next offer has to have, or `None` if no offer is
    /// needed.
    pub fn missing(&self) -> Option<Missing> {
        let waiting = self.waiting.as_ref()?;
        if waiting.tracks.is_empty() && !waiting.is_changed {
            return None;
        }
        let more = |kind| {
            let tracks = waiting.tracks.iter().filter(|track| track.kind == kind);
            let free = |line: &&Line| line.kind == kind && line.is_empty() && line.takes;
            let lines = self.lines.iter().filter(free);
            tracks.count().saturating_sub(lines.count())
        };
        Some(Missing {
            audio: more(Kind::Audio),
            video: more(Kind::Video),
        })
    }

    /// Returns the streams that wait for an m-line.
    pub fn waiting(&self) -> impl Iterator<Item = (&PersonId, Mid)> {
        let tracks = self.waiting.iter().flat_map(|waiting| &waiting.tracks);
        tracks.map(|track| (&track.request.feed, track.mid))
    }

    /// Gives the m-lines of the client's `offer` that receive to streams, and writes them into the
    /// `answer`.
    pub(crate) fn take(
        &mut self,
        offer: &Description,
        answer: &mut Description,
        room: &RoomSettings,
        publications: &Publications,
    ) {
        let mut unused = Vec::new();
        for (index, offered) in offer.media.iter().enumerate() {
            if self.lines.len() <= index {
                self.lines.push(Line::new(offered.kind, offered.mid));
            }
            let direction = offered.direction;
            let receives = direction.receives() && !direction.sends();
            let is_taken = receives && !offered.rejected && offered.kind != Kind::Data;
            let line = self.lines.get(index);
            let is_free = line.is_some_and(|line| line.is_empty() && line.vacant);
            let answered = match is_taken {
                true => Some(self.take_line(index, offered, room, publications)),
                false => {
                    self.drop_line(index);
                    None
                }
            };
            let is_used = self.lines.get(index).is_some_and(|line| !line.is_empty());
            if is_taken && is_free && !is_used {
                unused.push(offered.kind);
            }
            if let (Some(answered), Some(media)) = (answered, answer.media.get_mut(index)) {
                *media = answered;
            }
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.is_changed = false;
            waiting.refuse(&unused);
        }
    }

    /// Takes the streams whose codec the client does not accept. They wait no longer.
    pub(crate) fn take_refused(&mut self) -> Vec<(PersonId, Mid)> {
        let waiting = self.waiting.as_mut();
        waiting
            .map(|it| std::mem::take(&mut it.refused))
            .unwrap_or_default()
    }

    /// Has an m-line receive nothing, because the client does not take anything on it.
    fn drop_line(&mut self, index: usize) {
        if let Some(line) = self.lines.get_mut(index) {
            line.clear(&self.media);
            (line.takes, line.vacant) = (false, false);
        }
    }

    /// Answers an m-line on which the client receives.
    fn take_line(
        &mut self,
        index: usize,
        offered: &Media,
        room: &RoomSettings,
        publications: &Publications,
    ) -> Media {
        let connection = self.connection.clone();
        let Some(line) = self.lines.get_mut(index) else {
            return inactive(offered, room);
        };
        line.takes = true;
        if line.is_empty()
            && line.vacant
            && let Some(waiting) = &mut self.waiting
        {
            let fits = |track: &Track| {
                track.kind == offered.kind && answered(offered, track, room, publications).is_some()
            };
            let next = waiting.tracks.iter().position(fits);
            if let Some(track) = next.and_then(|next| waiting.tracks.remove(next)) {
                line.receive(track);
            }
        }
        let received = line.track(publications).map(|(_, stream)| stream);
        let media = received.and_then(|stream| answered_with(offered, &stream.format, room));
        line.vacant = line.is_empty();
        line.ready = media.is_some();
        let Some(mut media) = media else {
            return inactive(offered, room);
        };
        let own = line
            .source()
            .and_then(|(feed, mid)| connection.msid(feed, mid));
        media.msid = own.or(Some(Msid {
            stream: "-".to_owned(),
            track: line.mid.as_str().to_owned(),
        }));
        media
    }
}

fn answered(
    offered: &Media,
    track: &Track,
    room: &RoomSettings,
    publications: &Publications,
) -> Option<Media> {
    let (_, stream) = publications.track(&track.request.feed, track.mid)?;
    answered_with(offered, &stream.format, room)
}

/// Answers an m-line with the codec of a stream. Returns `None` if the client does not accept it.
fn answered_with(offered: &Media, format: &StreamFormat, room: &RoomSettings) -> Option<Media> {
    let mut options = line_options(room, format.codec?, Direction::SendOnly);
    if format.h264_profile.is_some() {
        options.video.profile.clone_from(&format.h264_profile);
    }
    options.audio.red = format.red;
    single(offered, &options)
}

/// Keeps an m-line without a stream.
fn inactive(offered: &Media, room: &RoomSettings) -> Media {
    let codecs = room.codecs(offered.kind).iter();
    let options = codecs.map(|codec| line_options(room, *codec, Direction::Inactive));
    let mut answers = options.filter_map(|options| single(offered, &options));
    answers.next().unwrap_or_else(|| offered.refused())
}

/// Returns the options of an answer. Browsers offer an extension on a new m-line only if the former
/// ones have it, so all have those of publishers.
fn line_options(room: &RoomSettings, codec: CodecName, direction: Direction) -> AnswerOptions {
    let mut options = answer_options(room, codec, direction);
    let more = [
        ExtensionKind::AbsSendTime,
        ExtensionKind::Rid,
        ExtensionKind::RepairedRid,
    ];
    let more = more.iter().filter(|_| codec.kind() == Kind::Video);
    options.extensions.extend(more);
    options
}
