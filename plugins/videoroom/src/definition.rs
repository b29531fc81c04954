//! The definition of a room for other nodes of a cluster: its options as in the configuration, with
//! sealed secrets and tokens, and how often it was changed.

use std::sync::Arc;

use portunus_resources::{AllowedTokens, Id, Ids, RoomContent, SealedAllowed, Written};
use serde_json::{Map, Value};

use crate::config::ConfiguredRoom;
use crate::options::RoomOptions;
use crate::room::Door;

/// The members of a definition beside the options of a room. Earlier versions do not take rooms
/// that have them.
const ALLOWED: &str = "allowed";
const EDITED: &str = "edited";

/// The definition of a room of another node.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) id: Id,
    pub(crate) options: RoomOptions,
    pub(crate) allowed: AllowedTokens,
    /// How often it was changed. The highest number counts.
    pub(crate) edited: u64,
}

impl Definition {
    /// Reads the definition of a room whose id is of the kind of `id`.
    pub(crate) fn read(id: &Id, text: &str) -> Result<Self, String> {
        let members: Result<Map<String, Value>, _> = serde_json::from_str(text);
        let mut members = members.map_err(|error| error.to_string())?;
        let edited = members.remove(EDITED);
        let edited = edited.map_or(Some(0), |edited| edited.as_u64());
        let edited = edited.ok_or_else(|| format!("{EDITED} is no number"))?;
        let allowed: SealedAllowed = match members.remove(ALLOWED) {
            Some(allowed) => serde_json::from_value(allowed).map_err(|error| error.to_string())?,
            None => SealedAllowed::default(),
        };
        let ids = match id {
            Id::Number(_) => Ids::Numbers,
            Id::Text(_) => Ids::Texts,
        };
        let room = ConfiguredRoom::read(&members, ids == Ids::Texts);
        let room = room.map_err(|error| error.to_string())?;
        Ok(Definition {
            id: room.id,
            options: room.options,
            allowed: AllowedTokens::of_sealed(allowed),
            edited,
        })
    }
}

impl Door {
    /// Returns the definition for other nodes.
    pub(crate) fn definition(&mut self) -> Arc<str> {
        if let Some((edited, known)) = &self.definition
            && *edited == self.edited
        {
            return known.clone();
        }
        let name = self.id.to_string();
        let mut options = self.options();
        options.door.access = options.door.access.sealed(&name);
        let id = self.id.clone();
        let mut members = ConfiguredRoom { id, options }.to_members();
        if !self.allowed.is_default() {
            // The type has no maps with other keys than texts, so this cannot fail.
            let allowed = serde_json::to_value(self.allowed.sealed(&name)).unwrap_or_default();
            members.insert(ALLOWED.to_owned(), allowed);
        }
        if self.edited > 0 {
            members.insert(EDITED.to_owned(), self.edited.into());
        }
        let text: Arc<str> = Value::from(members).to_string().into();
        self.definition = Some((self.edited, text.clone()));
        text
    }

    /// Takes the definition of another node, if it is a later one.
    pub(crate) fn redefine(&mut self, definition: Definition) {
        let Definition {
            options,
            allowed,
            edited,
            ..
        } = definition;
        if edited <= self.edited {
            return;
        }
        let RoomOptions { door, settings } = options.described(&self.id);
        self.options = door;
        self.allowed = allowed;
        self.edited = edited;
        {
            let mut state = self.conference.lock();
            let recording = &settings.recording;
            if let Err(refusal) = state.record_all(recording.on, recording.format) {
                tracing::warn!(room = %self.id, "its participants are not recorded here: {refusal}");
            }
            state.edit(settings);
        }
        self.notify(None, || self.notice("edited").into());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_definition_of_an_earlier_version_was_never_changed() {
        let read = |text: &str| Definition::read(&Id::Number(7), text);
        let definition = read(r#"{ "room": 7, "description": "Hall" }"#).unwrap();
        assert_eq!((definition.id, definition.edited), (Id::Number(7), 0));
        assert!(!definition.allowed.is_checked());
        let later = read(r#"{ "room": 7, "edited": 3, "allowed": { "checked": true } }"#).unwrap();
        assert_eq!(later.edited, 3);
        assert!(later.allowed.is_checked());
        // Nobody outside the home knows the tokens.
        assert!(later.allowed.check(Some("token")).is_err());
        for wrong in [
            r#"{ "room": 7, "edited": -1 }"#,
            r#"{ "room": 7, "allowed": 1 }"#,
            r#"{ "room": 7, "dance": true }"#,
            r#"{ "room": "7" }"#,
            "7",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
