//! Who may subscribe to the tracks of a publisher.

use livekit_protocol::{SubscriptionPermission, SubscriptionPermissionUpdate, signal_response};
use prost::Message;

use super::Session;
use crate::hall::Person;

/// The longest permission that is kept, in bytes.
const MAX_SIZE: usize = 256 << 10;

impl Session {
    /// Notes who may subscribe to the client's tracks.
    pub(super) fn share(&mut self, permission: SubscriptionPermission) {
        if permission.encoded_len() > MAX_SIZE {
            tracing::debug!("a permission to subscribe is too long");
            return;
        }
        let hall = self.member.hall.clone();
        let mut people = hall.people();
        let own = &self.member.id;
        let Some(person) = people.get(own) else {
            return;
        };
        let sid = person.sid.clone();
        let mut changes = Vec::new();
        for member in people.members().filter(|member| member.id != *own) {
            for track in &person.tracks {
                let before = person.shares(&track.sid, &member.identity, &member.sid);
                let now = is_shared(Some(&permission), &track.sid, &member.identity, &member.sid);
                if before != now {
                    changes.push((member.clone(), track.sid.clone(), now));
                }
            }
        }
        if let Some(person) = people.get_mut(own) {
            person.sharing = Some(permission);
        }
        drop(people);
        // This door at other nodes is told, too.
        hall.room.lock().door_changed();
        for (member, track_sid, allowed) in changes {
            let update = SubscriptionPermissionUpdate {
                participant_sid: sid.clone(),
                track_sid,
                allowed,
            };
            let message = signal_response::Message::SubscriptionPermissionUpdate(update);
            member.out.message(message);
            member.is_behind();
        }
    }
}

impl Person {
    /// Returns whether a participant may subscribe to one of the tracks.
    pub(crate) fn shares(&self, track: &str, with: &str, sid: &str) -> bool {
        is_shared(self.sharing.as_ref(), track, with, sid)
    }
}

fn is_shared(
    permission: Option<&SubscriptionPermission>,
    track: &str,
    with: &str,
    sid: &str,
) -> bool {
    let Some(permission) = permission.filter(|it| !it.all_participants) else {
        return true;
    };
    let mut entries = permission.track_permissions.iter().filter(|entry| {
        match entry.participant_identity.is_empty() {
            true => entry.participant_sid == sid,
            false => entry.participant_identity == with,
        }
    });
    entries.any(|entry| entry.all_tracks || entry.track_sids.iter().any(|it| it == track))
}

#[cfg(test)]
mod tests {
    use livekit_protocol::TrackPermission;

    use super::*;

    #[test]
    fn tracks_are_shared_with_all_or_as_listed() {
        let al = "al";
        assert!(is_shared(None, "TR_1", al, "PA_1"));
        let mut permission = SubscriptionPermission::default();
        assert!(!is_shared(Some(&permission), "TR_1", al, "PA_1"));
        permission.track_permissions = vec![TrackPermission {
            participant_identity: "al".to_owned(),
            track_sids: vec!["TR_1".to_owned()],
            ..TrackPermission::default()
        }];
        assert!(is_shared(Some(&permission), "TR_1", al, "PA_1"));
        assert!(!is_shared(Some(&permission), "TR_2", al, "PA_1"));
        assert!(!is_shared(Some(&permission), "TR_1", "bo", "PA_2"));
        permission.all_participants = true;
        assert!(is_shared(Some(&permission), "TR_2", "bo", "PA_2"));
    }
}
