//! Seats: m-lines of a subscription that are not bound to a publisher. Whoever is due sits down on them, and gives way
//! to others, without a negotiation.

use std::collections::{HashMap, HashSet, VecDeque};

use portunus_core::media::Layer;
use portunus_core::sdp::{CodecName, Kind};
use portunus_core::{ExtensionKind, HandleId, Mid, Pt};
use serde_json::Value;

use super::change::forget_receiver;
use super::offer::{fmtp, offered_extensions};
use super::payloads::Payloads;
use super::{Source, Subscriber};
use crate::id::Id;
use crate::options::RoomOptions;
use crate::publication::{Stream, placeholder};
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::roster::Participant;

/// Who sits on the seats of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Follow {
    /// It has no seats.
    #[default]
    Nobody,
    /// One publisher, whenever it publishes.
    Feed(Id),
    /// The most recent speakers, so many of them; all but the subscription's owner.
    Speakers(usize),
}

/// An m-line for whoever is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seat {
    /// Which of those who are due: the m-lines of one slot receive the same publisher.
    pub(super) slot: usize,
    /// Which of the publisher's streams of the m-line's kind.
    nth: usize,
    /// What it may carry; after the client's answer, what it does.
    pub(super) formats: Vec<SeatFormat>,
}

/// A codec that a seat may carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeatFormat {
    pub(super) codec: CodecName,
    pub(super) pt: Option<Pt>,
    pub(super) fmtp: Option<String>,
}

impl Seat {
    /// A seat that the client's offer has, for these codecs.
    pub(super) fn offered(
        slot: usize,
        nth: usize,
        codecs: impl Iterator<Item = CodecName>,
    ) -> Self {
        let format = |codec| SeatFormat {
            codec,
            pt: None,
            fmtp: None,
        };
        Seat {
            slot,
            nth,
            formats: codecs.map(format).collect(),
        }
    }

    /// A seat to be offered, for all codecs of the room, and the header extensions that go with it.
    pub(super) fn new(
        kind: Kind,
        (slot, nth): (usize, usize),
        options: &RoomOptions,
        payloads: &mut Payloads,
    ) -> (Self, Vec<(ExtensionKind, u8)>) {
        let codecs = match kind {
            Kind::Audio => &options.audiocodec,
            Kind::Video | Kind::Data => &options.videocodec,
        };
        let mut extensions = Vec::new();
        let mut formats = Vec::with_capacity(codecs.len());
        for codec in codecs {
            let Some(any) = Mid::new("0") else { continue };
            let stream = placeholder(options, *codec, None, any, 0);
            let fmtp = fmtp(&stream);
            for extension in offered_extensions(&stream) {
                if !extensions.contains(&extension) {
                    extensions.push(extension);
                }
            }
            formats.push(SeatFormat {
                codec: *codec,
                pt: Some(payloads.number(*codec, fmtp.as_deref())),
                fmtp,
            });
        }
        let seat = Seat { slot, nth, formats };
        (seat, extensions)
    }

    /// Keeps the codecs that the client has taken.
    pub(super) fn keep(&mut self, taken: &[CodecName]) {
        self.formats.retain(|format| taken.contains(&format.codec));
    }

    /// The stream of a publisher that belongs on it.
    fn stream_of<'a>(&self, kind: Kind, publisher: &'a Participant) -> Option<&'a Stream> {
        let streams = publisher.up()?.streams.iter();
        let carries = |stream: &&Stream| {
            let codec = stream.codec;
            let known = |format: &SeatFormat| Some(format.codec) == codec;
            stream.kind == kind && !stream.disabled && self.formats.iter().any(known)
        };
        streams.filter(carries).nth(self.nth)
    }
}

impl RoomState {
    /// Lets whoever is due sit down, in all subscriptions that have seats.
    pub(crate) fn reseat_all(&mut self) {
        self.seat_followers(false);
    }

    /// Another one has the floor: whoever follows the speakers is told.
    pub(crate) fn dominance_changed(&mut self) {
        self.seat_followers(true);
    }

    /// Whether anybody follows the speakers.
    pub(crate) fn has_speakers_followed(&self) -> bool {
        let follows = |key| {
            let subscriber = self.subscribers.get(key);
            subscriber.is_some_and(Subscriber::follows_speakers)
        };
        self.followers.iter().any(follows)
    }

    fn seat_followers(&mut self, dominance: bool) {
        if self.followers.is_empty() {
            return;
        }
        let most = self.followers.iter().filter_map(|key| {
            let follow = &self.subscribers.get(key)?.follow;
            match follow {
                Follow::Speakers(n) => Some(*n),
                Follow::Feed(_) | Follow::Nobody => None,
            }
        });
        // One more than anybody subscribes, because nobody sees itself.
        let ranked = self.ranked(most.max().map_or(0, |most| most + 1));
        let followers: Vec<HandleId> = self.followers.iter().copied().collect();
        for key in followers {
            self.reseat(key, &ranked, dominance);
        }
    }

    /// Lets whoever is due sit down in one subscription; its client is told of the changes, and if `dominance` has.
    fn reseat(&mut self, key: HandleId, ranked: &[Id], dominance: bool) {
        let changed = self.sit_down(key, ranked);
        if !changed.is_empty() {
            self.relay(key);
        }
        let Some(subscriber) = self.subscribers.get(&key) else {
            return;
        };
        if changed.is_empty() && !(dominance && subscriber.follows_speakers()) {
            return;
        }
        let seats = self.summaries_of(key, &changed);
        let event = self
            .event()
            .with("seats", seats)
            .with_some("dominant", self.dominant().map(Id::to_json));
        subscriber.handle.push(None, event, None);
    }

    /// Follows another number of speakers, of as many at most as there are seats for.
    pub(super) fn follow_speakers(&mut self, key: HandleId, last_n: usize) -> Result<(), Refusal> {
        let subscriber = self.subscribers.get_mut(&key).ok_or(Refusal::NotInRoom)?;
        if !subscriber.follows_speakers() || last_n > subscriber.slots.len() {
            return Err(Refusal::value("last_n", "there are not so many seats"));
        }
        subscriber.follow = Follow::Speakers(last_n);
        let ranked = self.ranked(last_n + 1);
        self.reseat(key, &ranked, false);
        Ok(())
    }

    /// As [`RoomState::reseat`], before the client knows anything.
    pub(super) fn seat_first(&mut self, key: HandleId) {
        self.measure_speech();
        let most = match self.subscribers.get(&key).map(|s| &s.follow) {
            Some(Follow::Speakers(n)) => n + 1,
            Some(Follow::Feed(_) | Follow::Nobody) | None => 0,
        };
        let ranked = self.ranked(most);
        self.sit_down(key, &ranked);
    }

    /// Changes who sits where; gives the m-lines that others sit on now, or nobody.
    fn sit_down(&mut self, key: HandleId, ranked: &[Id]) -> Vec<usize> {
        let RoomState {
            people,
            subscribers,
            ..
        } = self;
        let Some(subscriber) = subscribers.get_mut(&key) else {
            return Vec::new();
        };
        let is_due = |id: &&Id| {
            let media = people.get(*id).and_then(Participant::up);
            media.is_some_and(|media| media.e2ee == subscriber.e2ee)
                && subscriber.owner.as_ref() != Some(*id)
        };
        let due: Vec<Id> = match &subscriber.follow {
            Follow::Nobody => Vec::new(),
            Follow::Feed(id) => Some(id).filter(is_due).cloned().into_iter().collect(),
            Follow::Speakers(n) => ranked.iter().filter(is_due).take(*n).cloned().collect(),
        };
        let all = subscriber.slots.len();
        let used = match subscriber.follow {
            Follow::Speakers(n) => n.min(all),
            Follow::Feed(_) | Follow::Nobody => all,
        };
        let (used, spare) = subscriber.slots.split_at_mut(used);
        assign(used, due);
        spare.fill(None);
        let mut changed = Vec::new();
        for (index, line) in subscriber.lines.iter_mut().enumerate() {
            let Some(seat) = &line.seat else { continue };
            let occupant = subscriber.slots.get(seat.slot).and_then(Option::as_ref);
            let publisher = occupant.and_then(|id| people.get(id));
            let stream = publisher.and_then(|person| {
                let stream = seat.stream_of(line.kind, person)?;
                Some((person.id.clone(), stream.mid, stream.codec))
            });
            let source = match &stream {
                Some((feed, mid, _)) => Source::Track {
                    feed: feed.clone(),
                    mid: *mid,
                },
                None => Source::None,
            };
            if line.source == source {
                continue;
            }
            let before = std::mem::replace(&mut line.source, source);
            line.format.codec = stream.as_ref().and_then(|(_, _, codec)| *codec);
            line.current = Layer::default();
            if let Source::Track { feed, .. } = &before {
                forget_receiver(people, feed, (key, index));
            }
            if let Some((feed, mid, _)) = stream
                && let Some(receivers) = receivers(people, &feed, mid)
            {
                receivers.insert((key, index));
            }
            changed.push(index);
        }
        changed
    }

    fn summaries_of(&self, key: HandleId, lines: &[usize]) -> Vec<Value> {
        let all = self.subscribers.get(&key).map(|s| s.lines.as_slice());
        let all = all.unwrap_or_default();
        let chosen = lines.iter().filter_map(|index| {
            let line = all.get(*index)?;
            Some(line.summary(*index, &self.people))
        });
        chosen.collect()
    }
}

impl Subscriber {
    fn follows_speakers(&self) -> bool {
        matches!(self.follow, Follow::Speakers(_))
    }

    /// Gives its m-lines for `slots` publishers to `follow`.
    pub(super) fn follow(&mut self, follow: Follow, slots: usize) {
        self.follow = follow;
        self.slots = vec![None; slots];
    }
}

/// The m-lines that receive a stream.
fn receivers<'a>(
    people: &'a mut HashMap<Id, Participant>,
    feed: &Id,
    mid: Mid,
) -> Option<&'a mut HashSet<(HandleId, usize)>> {
    let media = people.get_mut(feed)?.media.as_mut()?;
    Some(&mut media.stream_mut(mid)?.receivers)
}

/// Puts those who are due on slots: whoever sits keeps the place, others take what is free.
fn assign(slots: &mut [Option<Id>], due: Vec<Id>) {
    let mut waiting: VecDeque<Id> = due.into();
    for slot in slots.iter_mut() {
        let stays = slot
            .as_ref()
            .and_then(|id| waiting.iter().position(|w| w == id));
        match stays {
            Some(place) => drop(waiting.remove(place)),
            None => *slot = None,
        }
    }
    for slot in slots.iter_mut().filter(|slot| slot.is_none()) {
        *slot = waiting.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_sits_stays_while_due() {
        let ids = |ids: &[u64]| ids.iter().copied().map(Id::Number).collect::<Vec<_>>();
        let mut slots = vec![None; 3];
        assign(&mut slots, ids(&[1, 2]));
        assert_eq!(slots, [Some(Id::Number(1)), Some(Id::Number(2)), None]);
        assign(&mut slots, ids(&[3, 2, 4]));
        let expected = ids(&[3, 2, 4]).into_iter().map(Some).collect::<Vec<_>>();
        assert_eq!(slots, expected);
        assign(&mut slots, ids(&[2]));
        assert_eq!(slots, [None, Some(Id::Number(2)), None]);
    }
}
