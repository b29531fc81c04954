//! Someone who has joined a room, and what others see of them.

use portunus_core::media::MAX_LABEL;
use portunus_core::{Fields, Handle, HandleId, Notice, Object};
use portunus_resources::{Id, Ids};
use serde_json::{Map, Value};

use super::MediaSettings;
use crate::refusal::Refusal;

/// Someone who has joined a room, publishing or not.
#[derive(Debug)]
pub(crate) struct Participant {
    id: Id,
    private_id: u32,
    party: Party,
    profile: Profile,
    pub(crate) settings: MediaSettings,
}

/// Who stands behind a participant.
#[derive(Debug, Clone)]
pub(crate) enum Party {
    /// A client with a handle.
    Client(Handle),
    /// Another server, which sends what one of its participants does.
    Remote,
    /// Nobody: it holds the places of publishers who are still to come.
    Dummy,
}

/// What a participant shows of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Profile {
    pub(crate) display: Option<String>,
    pub(crate) metadata: Option<Map<String, Value>>,
}

impl Profile {
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        Ok(Profile {
            display: fields.string("display")?.map(str::to_owned),
            metadata: fields.object("metadata")?.cloned(),
        })
    }
}

impl Participant {
    pub(super) fn new(
        id: Id,
        private_id: u32,
        party: Party,
        profile: Profile,
        settings: MediaSettings,
    ) -> Self {
        Participant {
            id,
            private_id,
            party,
            profile,
            settings,
        }
    }

    /// Reads `id`, that of somebody who comes: none if it may be any. It has to fit the label of a data channel.
    pub(crate) fn wanted_id(ids: Ids, fields: Fields<'_>) -> Result<Option<Id>, Refusal> {
        match ids.wanted(fields, "id")? {
            Some(Id::Text(text)) if text.len() > MAX_LABEL => {
                Err(Refusal::value("id", "1024 bytes at most"))
            }
            id => Ok(id),
        }
    }

    pub(crate) const fn id(&self) -> &Id {
        &self.id
    }

    /// What ties subscriptions to this participant; only it knows it.
    pub(crate) const fn private_id(&self) -> u32 {
        self.private_id
    }

    /// The client's handle, if there is a client.
    pub(crate) const fn handle(&self) -> Option<&Handle> {
        match &self.party {
            Party::Client(handle) => Some(handle),
            Party::Remote | Party::Dummy => None,
        }
    }

    /// Whether it is the client of this handle.
    pub(crate) fn is(&self, handle: HandleId) -> bool {
        self.handle().is_some_and(|own| own.id() == handle)
    }

    /// Whether another server sends what it publishes.
    pub(crate) const fn is_remote(&self) -> bool {
        matches!(self.party, Party::Remote)
    }

    /// Whether it only holds places.
    pub(crate) const fn is_dummy(&self) -> bool {
        matches!(self.party, Party::Dummy)
    }

    /// Tells the client something, if there is one.
    pub(crate) fn push(&self, event: impl Into<Value>) {
        if let Some(handle) = self.handle() {
            handle.push(None, event, None);
        }
    }

    /// Tells the client, if there is one, what others are told as well.
    pub(crate) fn tell(&self, notice: &Notice) {
        if let Some(handle) = self.handle() {
            handle.tell_notice(notice);
        }
    }

    /// Ends the client's PeerConnection, if there is one.
    pub(crate) fn close_pc(&self) {
        if let Some(handle) = self.handle() {
            handle.close_pc();
        }
    }

    /// Caps what the client sends at its bitrate.
    pub(crate) fn cap(&self) {
        if let Some(handle) = self.handle() {
            let bitrate = self.settings.bitrate;
            handle.set_bitrate((bitrate > 0).then_some(bitrate));
        }
    }

    /// The name that it shows.
    pub(crate) fn display(&self) -> Option<&str> {
        self.profile.display.as_deref()
    }

    /// What else it shows.
    pub(crate) const fn metadata(&self) -> Option<&Map<String, Value>> {
        self.profile.metadata.as_ref()
    }

    /// Its name: the id, and what it shows of itself.
    pub(crate) fn named(&self) -> Object {
        self.labelled(Object::new().with("id", self.id.to_json()))
            .with_some("dummy", self.is_dummy().then_some(true))
    }

    /// `object` with what it shows of itself.
    pub(crate) fn labelled(&self, object: Object) -> Object {
        object
            .with_some("display", self.display())
            .with_some("metadata", self.metadata().cloned())
    }

    /// Changes what is shown of a client; gives what the others are told, which is nothing where there was nothing to see
    /// before.
    pub(crate) fn rename(&mut self, profile: Profile) -> Vec<Object> {
        let mut events = Vec::new();
        if profile.display.is_some() {
            let before = std::mem::replace(&mut self.profile.display, profile.display);
            if before.is_some() && before != self.profile.display {
                events.push(self.labelled(self.renamed()));
            }
        }
        if profile.metadata.is_some() {
            let before = std::mem::replace(&mut self.profile.metadata, profile.metadata);
            if before.is_some() && before != self.profile.metadata {
                let metadata = self.metadata().cloned();
                events.push(self.renamed().with_some("metadata", metadata));
            }
        }
        events
    }

    /// Changes what is shown of somebody on another server; gives what the others are told of any change.
    pub(crate) fn rename_remote(&mut self, profile: Profile) -> Option<Object> {
        let before = self.profile.clone();
        self.profile.display = profile.display.or(self.profile.display.take());
        self.profile.metadata = profile.metadata.or(self.profile.metadata.take());
        if before.display != self.profile.display {
            return Some(self.labelled(self.renamed()));
        }
        let metadata = self.metadata().cloned();
        (before != self.profile).then(|| self.renamed().with_some("metadata", metadata))
    }

    /// The event of another name, without the name.
    fn renamed(&self) -> Object {
        Object::new()
            .with("videoroom", "event")
            .with("id", self.id.to_json())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn person(display: Option<&str>) -> Participant {
        let profile = profile(display, None);
        let settings = MediaSettings::default();
        Participant::new(Id::Number(1), 7, Party::Remote, profile, settings)
    }

    fn profile(display: Option<&str>, metadata: Option<Value>) -> Profile {
        Profile {
            display: display.map(str::to_owned),
            metadata: metadata.map(|value| value.as_object().unwrap().clone()),
        }
    }

    fn values(events: impl IntoIterator<Item = Object>) -> Vec<Value> {
        events.into_iter().map(Value::from).collect()
    }

    #[test]
    fn a_first_name_is_no_news_of_a_client() {
        let mut al = person(None);
        assert!(al.rename(profile(Some("Al"), None)).is_empty());
        assert!(al.rename(profile(Some("Al"), None)).is_empty());
        let events = values(al.rename(profile(Some("Bo"), Some(json!({ "x": 1 })))));
        assert_eq!(
            events,
            [json!({ "videoroom": "event", "id": 1, "display": "Bo" })]
        );
        let events = values(al.rename(profile(None, Some(json!({ "x": 2 })))));
        let event = json!({ "videoroom": "event", "id": 1, "metadata": { "x": 2 } });
        assert_eq!(events, [event]);
    }

    #[test]
    fn any_change_is_news_of_somebody_on_another_server() {
        let mut al = person(None);
        assert!(al.rename_remote(profile(None, None)).is_none());
        let events = values(al.rename_remote(profile(Some("Al"), None)));
        assert_eq!(
            events,
            [json!({ "videoroom": "event", "id": 1, "display": "Al" })]
        );
        let events = values(al.rename_remote(profile(Some("Al"), Some(json!({ "x": 1 })))));
        let event = json!({ "videoroom": "event", "id": 1, "metadata": { "x": 1 } });
        assert_eq!(events, [event]);
    }
}
