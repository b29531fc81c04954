//! Listening to peers: who talks.

use super::Worker;
use crate::graph::{TalkChange, TalkDetection, TalkDetector};
use crate::{Event, TrackRef};

impl Worker {
    /// Listens to what a peer sends on an m-line, or no more.
    pub(super) fn detect_talking(&mut self, of: TrackRef, detection: Option<TalkDetection>) {
        let slot = self.by_id.get(&of.peer).copied();
        let Some(peer) = slot.and_then(|slot| self.peers.get_mut(slot)) else {
            return;
        };
        let index = peer.connection.media().iter().position(|m| m.mid == of.mid);
        let Some(track) = index.and_then(|index| peer.tracks.get_mut(index)) else {
            return;
        };
        match (&mut track.talk, detection) {
            (Some(talk), Some(detection)) => talk.set(detection),
            (talk, detection) => {
                *talk = detection.map(|detection| Box::new(TalkDetector::new(detection)));
            }
        }
    }

    /// Tells what was heard since the last time.
    pub(super) fn tell_talk_changes(&mut self) {
        while let Some((slot, media, change)) = self.talk_changes.pop() {
            let Some(peer) = self.peers.get(slot) else {
                continue;
            };
            let Some(media) = peer.connection.media().get(media) else {
                continue;
            };
            let TalkChange { talking, average } = change;
            let (id, mid) = (peer.id, media.mid);
            let event = Event::Talking {
                mid,
                talking,
                average,
            };
            self.emit(id, event);
        }
    }
}
