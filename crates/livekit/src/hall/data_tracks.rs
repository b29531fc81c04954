//! The publishing of data tracks, and the frames on them.

use std::sync::atomic::Ordering;

use livekit_protocol::{DataTrackInfo, PublishDataTrackRequest, request_response};
use prost::Message;

use super::Hall;
use super::data::{DATA_TRACK, MAX_PACKET};
use super::data_track::{DataTrack, Receiver};
use super::far::{FarContent, FarFrame};
use super::member::Member;
use super::people::Person;
use crate::ids::IdKind;
use crate::refusals::BadInput;

/// The most data tracks of a participant.
pub(super) const MAX_DATA_TRACKS: usize = 64;

/// The longest name of a data track, in bytes.
const MAX_NAME: usize = 256;

/// The longest description of a data track, in bytes.
const MAX_DESCRIPTION: usize = 4 << 10;

/// The length of the fixed header of a frame's packet, in bytes.
const HEADER: usize = 12;

impl Person {
    /// Adds a data track. Returns its description, or why it is refused.
    pub(crate) fn add_data_track(
        &mut self,
        request: &PublishDataTrackRequest,
    ) -> Result<DataTrackInfo, request_response::Reason> {
        use request_response::Reason;
        let tracks = || self.data_tracks.iter().map(|track| &track.info);
        if !self.permission.can_publish_data {
            return Err(Reason::NotAllowed);
        }
        if !(1..=u32::from(u16::MAX)).contains(&request.pub_handle) {
            return Err(Reason::InvalidHandle);
        }
        if request.name.is_empty() || request.name.len() > MAX_NAME {
            return Err(Reason::InvalidName);
        }
        if tracks().any(|known| known.pub_handle == request.pub_handle) {
            return Err(Reason::DuplicateHandle);
        }
        if tracks().any(|known| known.name == request.name) {
            return Err(Reason::DuplicateName);
        }
        if self.data_tracks.len() >= MAX_DATA_TRACKS || request.encoded_len() > MAX_DESCRIPTION {
            return Err(Reason::LimitExceeded);
        }
        let info = DataTrackInfo {
            pub_handle: request.pub_handle,
            sid: IdKind::DataTrack.random(),
            name: request.name.clone(),
            encryption: request.encryption,
            frame_encoding: request.frame_encoding.clone(),
            schema: request.schema.clone(),
        };
        self.data_tracks.push(DataTrack {
            info: info.clone(),
            receivers: Vec::new(),
        });
        Ok(info)
    }

    /// Removes a data track.
    pub(crate) fn remove_data_track(&mut self, handle: u32) -> Option<DataTrack> {
        let mut tracks = self.data_tracks.iter();
        let index = tracks.position(|track| track.info.pub_handle == handle)?;
        Some(self.data_tracks.swap_remove(index))
    }
}

impl Member {
    /// Forwards a packet of a data track to those who receive it, with their numbers.
    pub(super) fn data_frame(&self, packet: Vec<u8>) {
        let Some(handle) = handle_of(&packet) else {
            tracing::debug!("a message is no packet of a data track");
            self.hall.refusals.count(BadInput::Data);
            return;
        };
        let people = self.hall.people();
        let person = people
            .get(&self.id)
            .filter(|it| it.permission.can_publish_data);
        let mut tracks = person.into_iter().flat_map(|person| &person.data_tracks);
        let track = tracks.find(|track| track.info.pub_handle == u32::from(handle));
        let Some(track) = track else { return };
        let (sid, receivers) = (track.info.sid.clone(), track.receivers.clone());
        let nodes = people.data_nodes(&sid).cloned();
        drop(people);
        for node in nodes.into_iter().flatten() {
            let frame = FarFrame {
                track: sid.clone(),
                packet: packet.clone(),
            };
            self.hall.tell_node(&node, FarContent::Frame(frame), true);
        }
        send_frame(packet, &receivers);
    }
}

impl Hall {
    /// Takes a packet of a data track of another node.
    pub(super) fn take_frame(&self, sid: &str, packet: Vec<u8>) {
        if packet.len() > MAX_PACKET || handle_of(&packet).is_none() {
            return;
        }
        let receivers = self.people().receivers_of(sid);
        send_frame(packet, &receivers);
    }
}

/// Sends a packet of a data track to those who receive it, with their numbers.
fn send_frame(mut packet: Vec<u8>, receivers: &[Receiver]) {
    for Receiver { member, handle } in receivers {
        if member.has_data.load(Ordering::Acquire) {
            set_handle(&mut packet, *handle);
            member.send_data(DATA_TRACK, &packet);
        }
    }
}

/// Returns the number of the track that a packet belongs to.
fn handle_of(packet: &[u8]) -> Option<u16> {
    match packet {
        [_, _, high, low, ..] if packet.len() >= HEADER => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

fn set_handle(packet: &mut [u8], handle: u16) {
    if let Some(place) = packet.get_mut(2..4) {
        place.copy_from_slice(&handle.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_the_track_is_all_that_changes() {
        let mut packet: Vec<u8> = (0..20).collect();
        assert_eq!(handle_of(&packet), Some(0x0203));
        set_handle(&mut packet, 0x0a0b);
        let mut expected: Vec<u8> = (0..20).collect();
        expected.splice(2..4, [0x0a, 0x0b]);
        assert_eq!(packet, expected);
        packet.truncate(HEADER - 1);
        assert_eq!(handle_of(&packet), None);
    }
}
