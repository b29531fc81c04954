//! Publishing: the announced tracks, the client's offers, and mutes.

use std::collections::HashMap;

use livekit_protocol::{
    AddTrackRequest, MuteTrackRequest, RequestResponse, SessionDescription, TrackPublishedResponse,
    leave_request, request_response, signal_response,
};
use portunus_room::{Configure, LineWish, StreamSetting};
use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Jsep, Kind, Media, Svc};

use prost::Message;

use super::permissions::may_publish;
use super::quality::unbalance;
use super::subscriptions::send_subscribed;
use super::{Session, kind_of, leave};
use crate::hall::{Person, Role, Track, codec_of};
use crate::limits::MAX_PUBLISHERS;
use crate::refusals::BadInput;

/// The most announced tracks that are not offered yet.
const MAX_PENDING: usize = 20;

/// The most tracks of a participant.
const MAX_TRACKS: usize = 64;

/// The longest description of a track, in bytes.
const MAX_DESCRIPTION: usize = 16 << 10;

/// The mode of layers of a codec that has several of them in one stream.
const SEVERAL_LAYERS_IN_A_STREAM: i32 = 2;

/// An offered m-line whose description has not come yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unbound {
    mid: Mid,
    cid: String,
    kind: Kind,
}

impl Session {
    /// Notes a track that the client will offer.
    pub(super) fn add_track(&mut self, request: AddTrackRequest) {
        if let Some(reason) = self.refused(&request) {
            self.refuse_track(request, reason);
            return;
        }
        let hall = self.member.hall.clone();
        let mut state = hall.room.lock();
        let mut people = hall.people();
        let Some(person) = people.get_mut(&self.member.id) else {
            return;
        };
        if !request.sid.is_empty() {
            // Another codec of a known track.
            let mut tracks = person.tracks.iter_mut();
            let Some(track) = tracks.find(|track| track.sid == request.sid) else {
                drop(people);
                drop(state);
                self.refuse_track(request, request_response::Reason::NotFound);
                return;
            };
            track.add_codec(&request);
            let cid = track.backup.as_ref().map(|it| it.codec.cid.clone());
            let offered = self
                .unbound
                .iter()
                .position(|it| Some(&it.cid) == cid.as_ref());
            if let (Some(index), Some(backup)) = (offered, &mut track.backup) {
                backup.mid = Some(self.unbound.swap_remove(index).mid);
            }
            self.member.out.message(published(&request.cid, track));
            drop(people);
            if offered.is_some() {
                state.send_updated(&self.member.id);
            }
            return;
        }
        let mut track = Track::new(request);
        let cid = track.request.cid.clone();
        let offered = self.unbound.iter().position(|it| it.cid == cid);
        if let Some(index) = offered {
            track.mid = Some(self.unbound.swap_remove(index).mid);
        }
        self.member.out.message(published(&cid, &track));
        let muted = track.mid.filter(|_| track.request.muted);
        person.tracks.push(track);
        drop(people);
        if offered.is_some() {
            hall.note(&mut state, &self.member.id);
            if let Some(mid) = muted {
                self.open(&mut state, mid, false);
            }
            state.send_updated(&self.member.id);
        }
    }

    /// Returns why a track cannot be published.
    fn refused(&self, request: &AddTrackRequest) -> Option<request_response::Reason> {
        use request_response::Reason;
        let people = self.member.hall.people();
        let person = people.get(&self.member.id)?;
        if !may_publish(&person.permission, request.source) {
            return Some(Reason::NotAllowed);
        }
        if kind_of(request.r#type).is_none() {
            return Some(Reason::UnsupportedType);
        }
        if request.encoded_len() > MAX_DESCRIPTION {
            return Some(Reason::LimitExceeded);
        }
        let pending = person.tracks.iter().filter(|track| track.mid.is_none());
        if pending.count() >= MAX_PENDING || person.tracks.len() >= MAX_TRACKS {
            return Some(Reason::LimitExceeded);
        }
        let mut tracks = person.tracks.iter();
        let is_known = tracks.any(|track| track.request.cid == request.cid);
        (is_known && request.sid.is_empty()).then_some(Reason::Queued)
    }

    fn refuse_track(&self, request: AddTrackRequest, reason: request_response::Reason) {
        self.member.hall.refusals.count(BadInput::Request);
        let response = RequestResponse {
            reason: reason.into(),
            request: Some(request_response::Request::AddTrack(request)),
            ..RequestResponse::default()
        };
        let message = signal_response::Message::RequestResponse(response);
        self.member.out.message(message);
    }

    /// Answers the client's offer.
    pub(super) async fn offered(&mut self, offer: SessionDescription) {
        let e2ee = self.has_encrypted_track();
        let described = self
            .link
            .describe(Role::Publisher, "offer", &offer.sdp, e2ee);
        if let Err(error) = described.await {
            tracing::debug!(%error, "an offer is refused");
            self.mismatch();
            return;
        }
        let Some(mut described) = self.member.take_described(Role::Publisher) else {
            return;
        };
        let hall = self.member.hall.clone();
        let has_place = match self.needs_place() {
            true => hall.ask_place(&self.member.identity).await,
            false => None,
        };
        if has_place == Some(false) {
            tracing::debug!("the home of the room has no place for a publisher");
            self.mismatch();
            return;
        }
        let mut state = hall.room.lock();
        let codecs = state.settings().codecs.video.clone();
        let mut configure = {
            let mut people = hall.people();
            let Some(person) = people.get_mut(&self.member.id) else {
                return;
            };
            self.unbound = bind(person, &described.jsep.description.media);
            configure(person, &mut described.jsep, &codecs)
        };
        configure.has_place = has_place == Some(true);
        let Some(key) = self.member.key(Role::Publisher) else {
            return;
        };
        let id = &self.member.id;
        // This door at other nodes knows the tracks before the room shows their streams.
        hall.note(&mut state, id);
        let configured = state.configure(id, key, &configure, Some(&described.jsep));
        match configured {
            Ok(configured) => {
                if let Some(answer) = configured.answer {
                    let answer = SessionDescription {
                        r#type: "answer".to_owned(),
                        sdp: answer.sdp,
                        id: offer.id,
                        mid_to_track_id: match self.subscriber {
                            Some(_) => HashMap::new(),
                            None => self.member.mids(&state),
                        },
                    };
                    let message = signal_response::Message::Answer(answer);
                    self.member.out.message(message);
                }
                // The PeerConnection may be up without a publication so far.
                if self.publisher_up && state.media_up(id) {
                    state.announce(id, &hall.room);
                } else if configured.changed {
                    state.send_updated(id);
                }
                hall.report_tracks(&state, &self.member);
                if self.subscriber.is_none() {
                    self.asked = false;
                    send_subscribed(&hall, &state, key);
                    unbalance(&hall, &state, key);
                    self.refuse(&mut state, key);
                    self.ask_for_lines(&state);
                }
            }
            Err(refusal) => {
                tracing::debug!(%refusal, "an offer is refused");
                drop(state);
                self.mismatch();
            }
        }
    }

    /// Returns whether the client begins to publish in a room with few places, so that the home has
    /// to give it one.
    fn needs_place(&self) -> bool {
        let hall = &self.member.hall;
        if hall.others().is_none() {
            return false;
        }
        let state = hall.room.lock();
        let is_limited = state.settings().publishers < MAX_PUBLISHERS;
        let publishes = || {
            let people = hall.people();
            let person = people.get(&self.member.id);
            person.is_some_and(|person| !person.tracks.is_empty())
        };
        is_limited && state.publication(&self.member.id).is_none() && publishes()
    }

    fn has_encrypted_track(&self) -> bool {
        let people = self.member.hall.people();
        let person = people.get(&self.member.id);
        person.is_some_and(|person| person.tracks.iter().any(Track::is_encrypted))
    }

    /// Has the client join anew, because its state does not fit.
    pub(super) fn mismatch(&mut self) {
        self.member.hall.refusals.count(BadInput::Description);
        let reason = livekit_protocol::DisconnectReason::StateMismatch;
        let message = leave(reason, leave_request::Action::Reconnect);
        self.member.out.message(message);
    }

    /// Mutes or unmutes a track of the client.
    pub(super) fn mute(&mut self, mute: &MuteTrackRequest) {
        let hall = self.member.hall.clone();
        let mut state = hall.room.lock();
        let mids = {
            let mut people = hall.people();
            let person = people.get_mut(&self.member.id);
            let mut tracks = person.into_iter().flat_map(|person| &mut person.tracks);
            let Some(track) = tracks.find(|track| track.sid == mute.sid) else {
                drop(people);
                drop(state);
                self.refuse_mute(mute);
                return;
            };
            track.request.muted = mute.muted;
            track.mids().collect::<Vec<_>>()
        };
        for mid in &mids {
            self.open(&mut state, *mid, !mute.muted);
        }
        if !mids.is_empty() {
            hall.send_update(&state, &self.member.id);
        }
    }

    /// Tells the client that it has no such track. Clients of former versions do not ask.
    fn refuse_mute(&self, mute: &MuteTrackRequest) {
        self.member.hall.refusals.count(BadInput::Request);
        let response = RequestResponse {
            reason: request_response::Reason::NotFound.into(),
            request: Some(request_response::Request::Mute(mute.clone())),
            ..RequestResponse::default()
        };
        let message = signal_response::Message::RequestResponse(response);
        self.member.out.message(message);
    }

    /// Opens or closes a published stream.
    fn open(&self, state: &mut portunus_room::State, mid: Mid, send: bool) {
        let configure = Configure {
            streams: vec![setting(mid, send)],
            ..Configure::default()
        };
        let Some(key) = self.member.key(Role::Publisher) else {
            return;
        };
        let configured = state.configure(&self.member.id, key, &configure, None);
        if let Err(refusal) = configured {
            tracing::debug!(%refusal, "a track cannot be muted");
        }
    }
}

fn setting(mid: Mid, send: bool) -> StreamSetting {
    StreamSetting {
        mid: Some(mid.as_str().to_owned()),
        send: Some(send),
        ..StreamSetting::default()
    }
}

fn published(cid: &str, track: &Track) -> signal_response::Message {
    signal_response::Message::TrackPublished(TrackPublishedResponse {
        cid: cid.to_owned(),
        track: Some(track.info(None)),
    })
}

/// Gives announced tracks their m-lines, and forgets those that are not sent any more. Returns the
/// m-lines without a track.
fn bind(person: &mut Person, media: &[Media]) -> Vec<Unbound> {
    let sends =
        |media: &&Media| media.kind != Kind::Data && !media.rejected && media.direction.sends();
    let sending: Vec<&Media> = media.iter().filter(sends).collect();
    let is_sent = |mid: Mid| sending.iter().any(|media| media.mid == mid);
    person.tracks.retain(|track| track.mid.is_none_or(is_sent));
    for backup in person.tracks.iter_mut().filter_map(|it| it.backup.as_mut()) {
        if backup.mid.is_some_and(|mid| !is_sent(mid)) {
            backup.mid = None;
            backup.codec.cid.clear();
        }
    }
    let mut unbound = Vec::new();
    for line in &sending {
        let cid = line.msid.as_ref().map_or("", |msid| &*msid.track);
        let mut pending = person.tracks.iter_mut().filter(|it| it.mid.is_none());
        let named = pending.find(|track| !cid.is_empty() && track.request.cid == cid);
        if let Some(track) = named {
            track.mid = Some(line.mid);
            continue;
        }
        let mut backups = person.tracks.iter_mut().filter_map(|it| it.backup.as_mut());
        let named = backups.find(|it| !cid.is_empty() && it.mid.is_none() && it.codec.cid == cid);
        if let Some(backup) = named {
            backup.mid = Some(line.mid);
        } else if person.track_of(line.mid).is_none() {
            unbound.push(Unbound {
                mid: line.mid,
                cid: cid.chars().take(256).collect(),
                kind: line.kind,
            });
        }
    }
    // Some clients call a track otherwise in their offer.
    unbound.retain(|line| {
        let mut pending = person.tracks.iter_mut().filter(|it| it.mid.is_none());
        let track = pending.find(|track| track.kind() == line.kind);
        let is_found = track.is_some();
        if let Some(track) = track {
            track.mid = Some(line.mid);
        }
        !is_found
    });
    unbound
}

/// Returns the settings for an offer of the tracks.
fn configure(person: &Person, jsep: &mut Jsep, codecs: &[CodecName]) -> Configure {
    let mut configure = Configure {
        keeps_data: true,
        ..Configure::default()
    };
    let mut svc = Vec::new();
    for media in &jsep.description.media {
        let track = person.track_of(media.mid);
        if let Some(track) = track {
            configure
                .streams
                .push(setting(media.mid, !track.request.muted));
        }
        if media.kind != Kind::Video {
            configure.lines.push(LineWish {
                dtx: track.map(Track::has_dtx),
                stereo: track.filter(|track| track.is_stereo()).map(|_| true),
                red: track.is_none_or(|it| !it.request.disable_red && !it.is_encrypted()),
                ..LineWish::of(media.mid)
            });
            continue;
        }
        let announced = track.and_then(|track| track.codec_of(media.mid));
        let named = announced.and_then(|codec| CodecName::from_name(codec_of(&codec.codec)));
        let offered = || media.codecs.iter().filter_map(|codec| codec.codec_name());
        let named = named.filter(|named| offered().any(|codec| codec == *named));
        let known = |codec: &CodecName| codecs.contains(codec);
        configure.lines.push(LineWish {
            codec: named.filter(known).or_else(|| offered().find(known)),
            ..LineWish::of(media.mid)
        });
        if announced.is_some_and(|it| it.video_layer_mode == SEVERAL_LAYERS_IN_A_STREAM) {
            svc.push(Svc {
                mid: media.mid,
                mode: "L3T3".to_owned(),
            });
        }
    }
    jsep.svc.extend(svc);
    configure
}
