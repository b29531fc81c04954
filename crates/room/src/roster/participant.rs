//! A participant of a room.

use std::sync::Arc;

use portunus_sdp::Kind;

use super::MediaSettings;
use crate::{Connection, ConnectionId, PersonId};

/// A participant of a room, whether it publishes or not.
#[derive(Debug)]
pub struct Participant {
    id: PersonId,
    pub(super) private_id: u32,
    /// Tells it from a former or later participant with the same id, at all nodes of a cluster.
    pub(crate) session: u64,
    party: Party,
    /// Its name and metadata.
    pub profile: Profile,
    /// Its permissions.
    pub permissions: Permissions,
    /// What its door tells the same door at other nodes of a cluster about it.
    pub(crate) note: Option<Arc<str>>,
    /// The settings of its media.
    pub settings: MediaSettings,
}

/// The party behind a participant.
#[derive(Debug, Clone)]
pub(crate) enum Party {
    /// A client.
    Client(Arc<dyn Connection>),
    /// Another server, for one of its participants.
    Remote,
    /// A client at another node of the cluster, with the name of that node.
    Elsewhere(Arc<str>),
    /// Nobody: it is a placeholder for later publishers.
    Dummy,
}

/// The parts of a participant that others see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Its display name.
    pub display: Option<String>,
    /// Other data, as a text that only doors understand.
    pub metadata: Option<String>,
}

/// The kinds of media that a participant may publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permissions {
    /// Audio.
    pub audio: bool,
    /// Video.
    pub video: bool,
    /// Data.
    pub data: bool,
}

impl Permissions {
    /// Everything is permitted.
    pub const ALL: Self = Permissions {
        audio: true,
        video: true,
        data: true,
    };

    /// Returns whether media of `kind` may be published.
    pub const fn publishes(self, kind: Kind) -> bool {
        match kind {
            Kind::Audio => self.audio,
            Kind::Video => self.video,
            Kind::Data => self.data,
        }
    }
}

impl Participant {
    /// Returns a participant with all permissions, without a profile and a private id.
    pub(crate) fn new(id: PersonId, party: Party) -> Self {
        Participant {
            id,
            private_id: 0,
            session: rand::random(),
            party,
            profile: Profile::default(),
            permissions: Permissions::ALL,
            note: None,
            settings: MediaSettings::default(),
        }
    }

    /// Returns its id.
    pub const fn id(&self) -> &PersonId {
        &self.id
    }

    /// Returns the secret number by which subscriptions name it as their owner.
    pub const fn private_id(&self) -> u32 {
        self.private_id
    }

    /// Returns a number that no other participant has, which is the same at all nodes of a cluster.
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Returns what its door tells the same door at other nodes about it.
    pub const fn note(&self) -> Option<&Arc<str>> {
        self.note.as_ref()
    }

    /// Returns the client's connection, if there is a client.
    pub fn connection(&self) -> Option<&Arc<dyn Connection>> {
        match &self.party {
            Party::Client(connection) => Some(connection),
            Party::Remote | Party::Elsewhere(_) | Party::Dummy => None,
        }
    }

    /// Returns whether it is the client of this connection.
    pub(crate) fn is(&self, connection: ConnectionId) -> bool {
        self.connection().is_some_and(|own| own.id() == connection)
    }

    /// Returns whether another server sends its media.
    pub const fn is_remote(&self) -> bool {
        matches!(self.party, Party::Remote)
    }

    /// Returns whether its client is at another node of the cluster.
    pub const fn is_elsewhere(&self) -> bool {
        matches!(self.party, Party::Elsewhere(_))
    }

    /// Returns the node of the cluster that its client is at, if that is another one.
    pub fn node(&self) -> Option<&str> {
        match &self.party {
            Party::Elsewhere(node) => Some(node),
            Party::Client(_) | Party::Remote | Party::Dummy => None,
        }
    }

    /// Returns whether its client is at this node of the cluster.
    pub(crate) fn is_at(&self, name: &str) -> bool {
        matches!(&self.party, Party::Elsewhere(node) if **node == *name)
    }

    /// Returns whether it is a placeholder.
    pub const fn is_dummy(&self) -> bool {
        matches!(self.party, Party::Dummy)
    }

    /// Closes the client's PeerConnection, if there is one.
    pub(crate) fn close(&self) {
        if let Some(connection) = self.connection() {
            connection.close();
        }
    }

    /// Changes the profile of a client. Returns the changes to tell the others. A first name and
    /// first metadata are none.
    pub(crate) fn rename(&mut self, profile: Profile) -> Vec<Profile> {
        let mut news = Vec::new();
        if profile.display.is_some() {
            let before = std::mem::replace(&mut self.profile.display, profile.display);
            if before.is_some() && before != self.profile.display {
                news.push(self.profile.clone());
            }
        }
        if profile.metadata.is_some() {
            let before = std::mem::replace(&mut self.profile.metadata, profile.metadata);
            if before.is_some() && before != self.profile.metadata {
                news.push(self.only_metadata());
            }
        }
        news
    }

    /// Changes the profile of a participant of another server. Returns the change to tell the
    /// others.
    pub(crate) fn rename_remote(&mut self, profile: Profile) -> Option<Profile> {
        let before = self.profile.clone();
        self.profile.display = profile.display.or(self.profile.display.take());
        self.profile.metadata = profile.metadata.or(self.profile.metadata.take());
        if before.display != self.profile.display {
            return Some(self.profile.clone());
        }
        (before != self.profile).then(|| self.only_metadata())
    }

    fn only_metadata(&self) -> Profile {
        Profile {
            display: None,
            metadata: self.profile.metadata.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person() -> Participant {
        Participant::new("al".into(), Party::Remote)
    }

    fn profile(display: Option<&str>, metadata: Option<&str>) -> Profile {
        Profile {
            display: display.map(str::to_owned),
            metadata: metadata.map(str::to_owned),
        }
    }

    #[test]
    fn a_first_name_is_no_news_of_a_client() {
        let mut al = person();
        assert!(al.rename(profile(Some("Al"), None)).is_empty());
        assert!(al.rename(profile(Some("Al"), None)).is_empty());
        let news = al.rename(profile(Some("Bo"), Some("1")));
        assert_eq!(news, [profile(Some("Bo"), None)]);
        let news = al.rename(profile(None, Some("2")));
        assert_eq!(news, [profile(None, Some("2"))]);
    }

    #[test]
    fn any_change_is_news_of_somebody_on_another_server() {
        let mut al = person();
        assert!(al.rename_remote(profile(None, None)).is_none());
        let news = al.rename_remote(profile(Some("Al"), None));
        assert_eq!(news, Some(profile(Some("Al"), None)));
        let news = al.rename_remote(profile(Some("Al"), Some("1")));
        assert_eq!(news, Some(profile(None, Some("1"))));
    }
}
