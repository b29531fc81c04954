//! Subscriptions: the tracks that a client should receive, and those that it does.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use livekit_protocol::{
    MediaSectionsRequirement, SessionDescription, SubscriptionError, SubscriptionResponse,
    TrackSubscribed, UpdateSubscription, UpdateTrackSettings, signal_response,
};
use portunus_room::{
    Change, ConnectionId, LineSetting, Outcome, PersonId, Publication, State, Subscribe,
    SubscriberConfigure, Unsubscribe,
};
use portunus_rtp::Mid;
use tokio::time::Instant;

use super::Session;
use super::quality::{unbalance, unbalance_all};
use crate::hall::{Hall, Role, Track};
use crate::refusals::BadInput;

/// How long a track that a client has subscribed to may take to appear.
const MISSING_LIMIT: Duration = Duration::from_secs(60);

/// The most such tracks.
const MAX_MISSING: usize = 256;

/// The most tracks of which refused codecs are known.
const MAX_REFUSED: usize = 4_096;

/// A track that a client receives or should receive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Target {
    feed: PersonId,
    mid: Mid,
}

impl Session {
    /// Returns the streams that the client should receive.
    pub(super) fn wanted(&self, state: &State) -> Vec<Subscribe> {
        let own = &self.member.id;
        if !self.permissions().can_subscribe {
            return Vec::new();
        }
        let mut wanted = Vec::new();
        for feed in state.feeds().filter(|feed| *feed != own) {
            let Some(publication) = state.published(feed) else {
                continue;
            };
            for (mid, track) in self.shared_tracks(state, feed) {
                if !self.wishes.wants(&track.sid) {
                    continue;
                }
                let Some(mid) = self.accepted(publication, mid, &track) else {
                    continue;
                };
                let info = track.info(publication.stream(mid));
                let (send, layers) = self.wishes.layers(&track.sid, &info);
                wanted.push(Subscribe {
                    feed: feed.clone(),
                    mid: Some(mid.as_str().to_owned()),
                    crossrefid: None,
                    send,
                    layers,
                });
            }
        }
        wanted
    }

    /// Returns the m-line of a track with a codec that the client accepts, as far as it is known.
    fn accepted(&self, publication: &Publication, mid: Mid, track: &Track) -> Option<Mid> {
        let refused = self.refused.get(&track.sid);
        let accepts = |mid: &Mid| {
            let codec = publication.stream(*mid).and_then(|it| it.format.codec);
            codec.is_none_or(|codec| refused.is_none_or(|refused| !refused.contains(&codec)))
        };
        let is_sent = |mid: &Mid| publication.stream(*mid).is_some_and(|it| !it.disabled);
        let backup = track.backup.as_ref();
        let second = backup.and_then(|it| it.mid).filter(is_sent);
        let regresses = track.regresses() && backup.is_some_and(|it| it.is_needed);
        let by_preference = match regresses {
            true => [second, Some(mid)],
            false => [Some(mid), second],
        };
        by_preference.into_iter().flatten().find(accepts)
    }

    /// Returns the tracks of a publisher that the client may receive.
    fn shared_tracks(&self, state: &State, feed: &PersonId) -> Vec<(Mid, Track)> {
        let mut people = self.member.hall.people();
        let mut tracks = people.tracks(state, feed);
        let (identity, sid) = (&self.member.identity, &self.member.sid);
        tracks.retain(|(_, track)| {
            let person = people.get(feed);
            person.is_some_and(|person| person.shares(&track.sid, identity, sid))
        });
        tracks
    }

    /// Subscribes to the tracks that the client should receive, and to no others.
    pub(super) fn reconcile(&mut self) {
        let hall = self.member.hall.clone();
        let mut state = hall.room.lock();
        let Some(key) = self.member.key(self.member.receiving()) else {
            return;
        };
        let Some(subscriber) = state.subscriber(key) else {
            return;
        };
        let target = |feed: &PersonId, mid: Mid| Target {
            feed: feed.clone(),
            mid,
        };
        let sources = subscriber.lines.iter().filter_map(|line| line.source());
        let sources = sources.chain(subscriber.waiting());
        let received: HashSet<Target> = sources.map(|(feed, mid)| target(feed, mid)).collect();
        let mut wanted = self.wanted(&state);
        let of = |it: &Subscribe| Some(target(&it.feed, Mid::new(it.mid.as_deref()?)?));
        let targets: HashSet<Target> = wanted.iter().filter_map(of).collect();
        wanted.retain(|it| of(it).is_some_and(|target| !received.contains(&target)));
        let gone = received.difference(&targets);
        let unsubscribe: Vec<Unsubscribe> = gone.map(unsubscribe).collect();
        if wanted.is_empty() && unsubscribe.is_empty() {
            self.ask_for_lines(&state);
            return;
        }
        let feeds = received.symmetric_difference(&targets);
        let feeds: HashSet<PersonId> = feeds.map(|target| target.feed.clone()).collect();
        let change = Change {
            subscribe: wanted,
            unsubscribe,
        };
        match state.change(key, change) {
            Ok(Outcome::Offer(offer)) => self.member.offer(&state, offer),
            Ok(Outcome::Done | Outcome::Later) => {}
            Err(refusal) => tracing::debug!(%refusal, "a participant cannot subscribe"),
        }
        unbalance_all(&hall, feeds.iter());
        self.ask_for_lines(&state);
    }

    /// Asks the client for an offer, if its subscription needs one.
    pub(super) fn ask_for_lines(&mut self, state: &State) {
        // Before its first offer the client has no m-lines, and that offer comes by itself.
        if self.asked || self.subscriber.is_some() {
            return;
        }
        let own = self.member.key(Role::Publisher);
        let missing = own.and_then(|key| state.subscriber(key)?.missing());
        let Some(missing) = missing else { return };
        self.asked = true;
        let number = |lines| u32::try_from(lines).unwrap_or(u32::MAX);
        let requirement = MediaSectionsRequirement {
            num_audios: number(missing.audio),
            num_videos: number(missing.video),
        };
        self.send(signal_response::Message::MediaSectionsRequirement(
            requirement,
        ));
    }

    /// Takes the client's answer to the server's offer.
    pub(super) async fn answered(&mut self, answer: &SessionDescription) {
        let last = self.member.offers.load(Ordering::Acquire);
        if self.subscriber.is_none() || (answer.id != 0 && answer.id != last) {
            tracing::debug!(id = answer.id, last, "an answer to no offer is ignored");
            self.member.hall.refusals.count(BadInput::Description);
            return;
        }
        let described = self
            .link
            .describe(Role::Subscriber, "answer", &answer.sdp, false);
        if let Err(error) = described.await {
            tracing::debug!(%error, "an answer is refused");
            self.mismatch();
            return;
        }
        self.member.answered();
        let Some(described) = self.member.take_described(Role::Subscriber) else {
            return;
        };
        let hall = self.member.hall.clone();
        let mut state = hall.room.lock();
        let Some(key) = self.member.key(Role::Subscriber) else {
            return;
        };
        if let Err(refusal) = state.accept(key, &described.jsep.description) {
            tracing::debug!(%refusal, "an answer is refused");
            return;
        }
        state.offer_pending(key);
        send_subscribed(&hall, &state, key);
        unbalance(&hall, &state, key);
        if self.refuse(&mut state, key) {
            drop(state);
            self.reconcile();
        }
    }

    /// Notes the tracks whose codecs the client does not accept. Asks their publishers for another
    /// codec, or tells the client that there is none. It is tried again when the track gets another
    /// codec. Returns whether there are any.
    pub(super) fn refuse(&mut self, state: &mut State, key: ConnectionId) -> bool {
        let refused = state.take_refused(key);
        for (feed, mid) in &refused {
            let stream = state.published(feed).and_then(|it| it.stream(*mid));
            let codec = stream.and_then(|stream| stream.format.codec);
            let hall = self.member.hall.clone();
            let mut people = hall.people();
            let track = people.get_mut(feed).and_then(|it| it.track_of_mut(*mid));
            let (Some(track), Some(codec)) = (track, codec) else {
                continue;
            };
            let track_sid = track.sid.clone();
            if self.refused.len() >= MAX_REFUSED {
                self.refused.clear();
            }
            let known = self.refused.entry(track_sid.clone()).or_default();
            if !known.contains(&codec) {
                known.push(codec);
            }
            let is_first = track.mid == Some(*mid);
            if let Some(backup) = track.backup.as_mut().filter(|_| is_first) {
                backup.is_needed = true;
                drop(people);
                unbalance_all(&hall, std::iter::once(feed));
                continue;
            }
            drop(people);
            self.send(signal_response::Message::SubscriptionResponse(
                SubscriptionResponse {
                    track_sid,
                    err: SubscriptionError::SeCodecUnsupported.into(),
                },
            ));
        }
        !refused.is_empty()
    }

    /// Notes which tracks the client wants.
    pub(super) fn subscription(&mut self, update: &UpdateSubscription) {
        let named = update.participant_tracks.iter();
        let named = named.flat_map(|tracks| &tracks.track_sids);
        for sid in update.track_sids.iter().chain(named) {
            self.wishes.subscribe(sid, update.subscribe);
            self.refused.remove(sid);
            self.missing.remove(sid);
            let is_known = || self.member.hall.people().track(sid).is_some();
            if update.subscribe && self.missing.len() < MAX_MISSING && !is_known() {
                self.missing.insert(
                    sid.chars().take(64).collect(),
                    Instant::now() + MISSING_LIMIT,
                );
            }
        }
        self.reconcile();
    }

    /// Tells the client which of the tracks that it subscribed to have not appeared.
    pub(super) fn report_missing(&mut self, now: Instant) {
        if self.missing.is_empty() {
            return;
        }
        let hall = self.member.hall.clone();
        let people = hall.people();
        self.missing.retain(|sid, _| people.track(sid).is_none());
        drop(people);
        let due = self.missing.extract_if(|_, due| *due <= now);
        let due: Vec<String> = due.map(|(sid, _)| sid).collect();
        for track_sid in due {
            let response = SubscriptionResponse {
                track_sid,
                err: SubscriptionError::SeTrackNotfound.into(),
            };
            self.send(signal_response::Message::SubscriptionResponse(response));
        }
    }

    /// Takes the wishes of a client that resumes: with auto-subscription it names the tracks that
    /// it does not want.
    pub(super) fn resubscription(&mut self, update: &UpdateSubscription) {
        for sid in &update.track_sids {
            self.wishes.subscribe(sid, update.subscribe);
        }
        self.reconcile();
    }

    /// Notes how the client wants tracks.
    pub(super) fn track_settings(&mut self, settings: &UpdateTrackSettings) {
        for sid in &settings.track_sids {
            self.wishes.set(sid, settings);
        }
        let hall = self.member.hall.clone();
        let mut state = hall.room.lock();
        let Some(key) = self.member.key(self.member.receiving()) else {
            return;
        };
        let mut configure = SubscriberConfigure::default();
        {
            let people = hall.people();
            for sid in &settings.track_sids {
                let Some((feed, track)) = people.track(sid) else {
                    continue;
                };
                let stream = track.mid.and_then(|mid| state.published(feed)?.stream(mid));
                let (send, layers) = self.wishes.layers(sid, &track.info(stream));
                let subscriber = state.subscriber(key);
                let mut lines = subscriber.into_iter().flat_map(|it| &it.lines);
                let line = lines.find(|line| {
                    let source = line.source();
                    source.is_some_and(|(of, mid)| of == feed && track.mids().any(|own| own == mid))
                });
                if let Some(line) = line {
                    configure.lines.push(LineSetting {
                        mid: Some(line.mid.as_str().to_owned()),
                        send: Some(send),
                        layers,
                    });
                }
            }
        }
        if let Err(refusal) = state.configure_subscriber(key, &configure) {
            tracing::debug!(%refusal, "settings of tracks are refused");
        }
        unbalance(&hall, &state, key);
    }
}

fn unsubscribe(target: &Target) -> Unsubscribe {
    Unsubscribe {
        feed: Some(target.feed.clone()),
        mid: Some(target.mid.as_str().to_owned()),
        sub_mid: None,
    }
}

/// Tells publishers of this door that tracks have their first subscriber.
pub(super) fn send_subscribed(hall: &Hall, state: &State, key: ConnectionId) {
    let subscriber = state.subscriber(key);
    let lines = subscriber.into_iter().flat_map(|it| &it.lines);
    let ready = lines.filter(|line| line.ready);
    let sources: Vec<(PersonId, Mid)> = ready
        .filter_map(|line| line.source())
        .map(|(feed, mid)| (feed.clone(), mid))
        .collect();
    let mut people = hall.people();
    for (feed, mid) in sources {
        let Some(person) = people.get_mut(&feed) else {
            continue;
        };
        let Some(member) = person.member.clone() else {
            continue;
        };
        let track = person.track_of_mut(mid).filter(|track| !track.subscribed);
        if let Some(track) = track {
            track.subscribed = true;
            let track_sid = track.sid.clone();
            let subscribed = TrackSubscribed { track_sid };
            let message = signal_response::Message::TrackSubscribed(subscribed);
            member.out.message(message);
        }
    }
}
