//! Rooms of the configuration and of the file of permanent rooms: sections with an id and a
//! plugin's options.

use portunus_core::configuration::Section;
use portunus_core::{FieldError, Fields};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Id, Ids, Written};

/// The options of a plugin in a section `room`.
pub trait ConfiguredOptions: Clone + std::fmt::Debug + Send + 'static {
    /// Finds a key that no room has.
    fn check_keys(members: &Map<String, Value>) -> Result<(), RoomProblem>;

    /// Reads the section.
    fn from_section(fields: Fields<'_>) -> Result<Self, RoomProblem>;

    /// Returns the keys from which [`ConfiguredOptions::from_section`] makes the same options.
    fn to_section(&self) -> Map<String, Value>;
}

/// A room of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredRoom<O> {
    /// Its id.
    pub id: Id,
    /// The other options.
    pub options: O,
}

impl<O: ConfiguredOptions> ConfiguredRoom<O> {
    /// Reads a section. Its `room` is a number, or a text with `string_ids`.
    pub fn read(members: &Map<String, Value>, string_ids: bool) -> Result<Self, RoomProblem> {
        O::check_keys(members)?;
        let fields = Fields(members);
        let id = Ids::of(string_ids).wanted(fields, "room")?;
        let id = id.ok_or_else(|| FieldError::Missing("room".to_owned()))?;
        let options = O::from_section(fields)?;
        Ok(ConfiguredRoom { id, options })
    }
}

impl<O: ConfiguredOptions> Serialize for ConfiguredRoom<O> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_members().serialize(to)
    }
}

impl<O: ConfiguredOptions> Written for ConfiguredRoom<O> {
    const ONE: &'static str = "room";
    const MANY: &'static str = "rooms";

    fn key(&self) -> Id {
        self.id.clone()
    }

    fn id(&self) -> Option<&Id> {
        Some(&self.id)
    }

    fn read(members: &Map<String, Value>, ids: Ids) -> Result<Self, String> {
        let room = ConfiguredRoom::read(members, ids == Ids::Texts);
        room.map_err(|problem| format!("{}: {problem}", problem.key))
    }

    fn to_members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("room".to_owned(), self.id.to_json());
        members.extend(self.options.to_section());
        members
    }
}

/// Reads all sections `room` of a plugin's section. Reports mistakes there, and ids that occur
/// twice.
pub fn read_rooms<O: ConfiguredOptions>(
    section: &mut Section<'_>,
    string_ids: bool,
) -> Vec<ConfiguredRoom<O>> {
    let mut rooms: Vec<ConfiguredRoom<O>> = Vec::new();
    for entry in section.list("room") {
        let Some(members) = section.entry(&entry) else {
            continue;
        };
        match ConfiguredRoom::read(&members, string_ids) {
            Err(problem) => section.entry_mistake(&entry, None, &problem.key, &problem),
            Ok(room) if rooms.iter().any(|other| other.id == room.id) => {
                section.entry_mistake(&entry, None, "room", "another room has this id");
            }
            Ok(room) => rooms.push(room),
        }
    }
    rooms
}

/// A mistake in a section of the configuration, for its author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct RoomProblem {
    /// The key.
    pub key: String,
    text: String,
}

impl RoomProblem {
    /// Returns a problem with a key.
    pub fn new(key: &str, text: impl Into<String>) -> Self {
        RoomProblem {
            key: key.to_owned(),
            text: text.into(),
        }
    }
}

impl From<FieldError> for RoomProblem {
    fn from(error: FieldError) -> Self {
        match &error {
            FieldError::Missing(name) => RoomProblem::new(name, format!("{name} is missing")),
            FieldError::Type { name, wanted } => {
                RoomProblem::new(name, format!("expected {wanted}"))
            }
            FieldError::Value { .. } => RoomProblem::new("room", error.to_string()),
        }
    }
}

/// Checks that a section has no other keys than `known` ones.
pub fn check_keys(members: &Map<String, Value>, known: &[&str]) -> Result<(), RoomProblem> {
    match members.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let text = format!("unknown key; there are {}", known.join(", "));
            Err(RoomProblem::new(key, text))
        }
    }
}
