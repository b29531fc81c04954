//! The client's data tracks, and those that it receives.

use std::collections::HashMap;
use std::sync::Arc;

use livekit_protocol::data_track_subscriber_handles::PublishedDataTrack;
use livekit_protocol::{
    DataTrackSubscriberHandles, PublishDataTrackRequest, PublishDataTrackResponse, RequestResponse,
    UnpublishDataTrackRequest, UnpublishDataTrackResponse, UpdateDataSubscription,
    request_response, signal_response,
};

use super::Session;
use crate::hall::{Member, Receiver};
use crate::refusals::BadInput;

/// The most data tracks whose wishes are kept.
const MAX_WISHES: usize = 4_096;

/// The longest id of a track, in bytes. Ours are shorter.
const MAX_SID: usize = 64;

/// The data tracks that a client wants.
#[derive(Debug, Default)]
pub(super) struct DataWishes {
    /// Whether it wants all that it did not name.
    auto: bool,
    named: HashMap<String, bool>,
    /// The number of those that it receives.
    received: usize,
    /// The number of the last track in packets to it.
    last_handle: u16,
}

impl DataWishes {
    pub(super) fn new(auto: bool) -> Self {
        DataWishes {
            auto,
            ..DataWishes::default()
        }
    }

    fn wants(&self, sid: &str) -> bool {
        self.named.get(sid).copied().unwrap_or(self.auto)
    }

    fn set(&mut self, sid: &str, wanted: bool) {
        let is_free = self.named.len() < MAX_WISHES && sid.len() <= MAX_SID;
        if is_free || self.named.contains_key(sid) {
            self.named.insert(sid.to_owned(), wanted);
        }
    }

    /// Returns a number that is not among `used`.
    fn next_handle(&mut self, used: &HashMap<u32, PublishedDataTrack>) -> u16 {
        loop {
            self.last_handle = self.last_handle.checked_add(1).unwrap_or(1);
            if !used.contains_key(&self.last_handle.into()) {
                return self.last_handle;
            }
        }
    }
}

impl Session {
    /// Publishes a data track.
    pub(super) fn publish_data_track(&mut self, request: PublishDataTrackRequest) {
        let hall = self.member.hall.clone();
        let added = {
            let mut people = hall.people();
            let person = people.get_mut(&self.member.id);
            let added = person.map(|person| person.add_data_track(&request));
            if let Some(Ok(_)) = added {
                people.publishes_data(&self.member.id);
            }
            added
        };
        let info = match added {
            Some(Ok(info)) => info,
            Some(Err(reason)) => {
                let request = request_response::Request::PublishDataTrack(request);
                self.refuse_data(reason, request);
                return;
            }
            None => return,
        };
        let response = PublishDataTrackResponse { info: Some(info) };
        self.send(signal_response::Message::PublishDataTrackResponse(response));
        hall.send_update(&hall.room.lock(), &self.member.id);
        for member in hall.people().members() {
            member.is_behind();
        }
    }

    /// Ends a data track.
    pub(super) fn unpublish_data_track(&mut self, request: UnpublishDataTrackRequest) {
        let hall = self.member.hall.clone();
        let ended = {
            let mut people = hall.people();
            let person = people.get_mut(&self.member.id);
            person.and_then(|person| person.remove_data_track(request.pub_handle))
        };
        let Some(ended) = ended else {
            let request = request_response::Request::UnpublishDataTrack(request);
            self.refuse_data(request_response::Reason::InvalidHandle, request);
            return;
        };
        let response = UnpublishDataTrackResponse {
            info: Some(ended.info),
        };
        self.send(signal_response::Message::UnpublishDataTrackResponse(
            response,
        ));
        hall.send_update(&hall.room.lock(), &self.member.id);
        for receiver in ended.receivers {
            receiver.member.is_behind();
        }
    }

    fn refuse_data(&self, reason: request_response::Reason, request: request_response::Request) {
        self.member.hall.refusals.count(BadInput::Request);
        let response = RequestResponse {
            reason: reason.into(),
            request: Some(request),
            ..RequestResponse::default()
        };
        self.send(signal_response::Message::RequestResponse(response));
    }

    /// Tells the client that this server stores no blobs.
    pub(super) fn refuse_blob(&self, request_id: u32) {
        let response = RequestResponse {
            request_id,
            reason: request_response::Reason::NotAllowed.into(),
            message: "data blobs are not enabled".to_owned(),
            request: None,
        };
        self.send(signal_response::Message::RequestResponse(response));
    }

    /// Notes which data tracks the client wants.
    pub(super) fn data_subscription(&mut self, update: &UpdateDataSubscription) {
        for change in &update.updates {
            self.data.set(&change.track_sid, change.subscribe);
        }
        self.reconcile_data(false);
    }

    /// Subscribes to the data tracks that the client wants, and to no others. Tells it their
    /// numbers if they have changed, or if `is_new`.
    pub(super) fn reconcile_data(&mut self, is_new: bool) {
        let hall = self.member.hall.clone();
        let can_subscribe = self.permissions().can_subscribe;
        let own = |receiver: &Receiver| Arc::ptr_eq(&receiver.member, &self.member);
        let mut people = hall.people();
        let mut handles = HashMap::new();
        let (mut is_changed, mut missing) = (is_new, Vec::new());
        let mut publishers = people.data_publishers();
        publishers.retain(|id| *id != self.member.id);
        for id in publishers {
            let publisher = people.identity(&id);
            let Some(person) = people.get_mut(&id) else {
                continue;
            };
            let session = person.sid.clone();
            for track in &mut person.data_tracks {
                let sid = track.info.sid.clone();
                let wanted = can_subscribe && self.data.wants(&sid);
                let received = track.receivers.iter().position(own);
                let published = || PublishedDataTrack {
                    publisher_identity: publisher.clone(),
                    publisher_sid: session.clone(),
                    track_sid: sid.clone(),
                };
                match (
                    wanted,
                    received.and_then(|at| Some((at, track.receivers.get(at)?.handle))),
                ) {
                    (true, Some((_, handle))) => {
                        handles.insert(u32::from(handle), published());
                    }
                    (true, None) => missing.push((id.clone(), published())),
                    (false, Some((at, _))) => {
                        track.receivers.swap_remove(at);
                        is_changed = true;
                    }
                    (false, None) => {}
                }
            }
        }
        for (id, published) in missing {
            if handles.len() >= MAX_WISHES {
                break;
            }
            let handle = self.data.next_handle(&handles);
            let tracks = people
                .get_mut(&id)
                .map(|person| person.data_tracks.iter_mut());
            let mut tracks = tracks.into_iter().flatten();
            if let Some(track) = tracks.find(|it| it.info.sid == published.track_sid) {
                track.receivers.push(Receiver {
                    member: self.member.clone(),
                    handle,
                });
                handles.insert(handle.into(), published);
                is_changed = true;
            }
        }
        drop(people);
        is_changed |= handles.len() != self.data.received;
        if is_changed && hall.others().is_some() {
            // The nodes of the publishers have to know.
            hall.note(&mut hall.room.lock(), &self.member.id);
        }
        let is_any = !handles.is_empty() || self.data.received > 0;
        self.data.received = handles.len();
        if is_changed && is_any {
            let handles = DataTrackSubscriberHandles {
                sub_handles: handles,
            };
            self.send(signal_response::Message::DataTrackSubscriberHandles(
                handles,
            ));
        }
    }

    /// Ends the subscriptions to data tracks of a participant that leaves.
    pub(super) fn forget_data(member: &Arc<Member>) {
        let mut people = member.hall.people();
        for id in people.data_publishers() {
            let tracks = people.get_mut(&id).map(|person| &mut person.data_tracks);
            for track in tracks.into_iter().flatten() {
                let receivers = &mut track.receivers;
                receivers.retain(|it| !Arc::ptr_eq(&it.member, member));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_use_are_not_given_again() {
        let mut wishes = DataWishes::new(false);
        let mut used = HashMap::from([(1, PublishedDataTrack::default())]);
        assert_eq!(wishes.next_handle(&used), 2);
        wishes.last_handle = u16::MAX;
        used.insert(2, PublishedDataTrack::default());
        assert_eq!(wishes.next_handle(&used), 3);
    }

    #[test]
    fn what_was_not_named_follows_the_default() {
        let mut wishes = DataWishes::new(false);
        assert!(!wishes.wants("DTR_1"));
        wishes.set("DTR_1", true);
        assert!(wishes.wants("DTR_1"));
        assert!(DataWishes::new(true).wants("DTR_2"));
    }
}
