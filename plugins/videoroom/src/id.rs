//! The ids of rooms and participants: numbers, or text if the plugin is told so.

use std::fmt;

use portunus_core::media::MAX_LABEL;
use portunus_core::{FieldError, Fields};
use rand::Rng;
use serde_json::Value;
use uuid::Uuid;

use crate::refusal::Refusal;

/// The largest integer that JavaScript holds exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The id of a room or of a participant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// The usual kind.
    Number(u64),
    /// With `string_ids`.
    Text(String),
}

impl Id {
    /// As it stands in JSON.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Id::Number(number) => (*number).into(),
            Id::Text(text) => text.as_str().into(),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(number) => number.fmt(f),
            Id::Text(text) => text.fmt(f),
        }
    }
}

/// Which of the two kinds of ids the plugin has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    Numbers,
    Texts,
}

impl Ids {
    /// The kind that the configuration says.
    pub(crate) const fn of(string_ids: bool) -> Self {
        if string_ids { Ids::Texts } else { Ids::Numbers }
    }

    /// A new id that is not `taken`: up to 2^53 - 1, or a UUID.
    pub(crate) fn random(self, taken: impl Fn(&Id) -> bool) -> Id {
        loop {
            let id = match self {
                Ids::Numbers => Id::Number(rand::rng().random_range(1..=MAX_SAFE_INTEGER)),
                Ids::Texts => Id::Text(Uuid::new_v4().to_string()),
            };
            if !taken(&id) {
                return id;
            }
        }
    }

    /// Reads member `name`, none if it is not there.
    pub(crate) fn read(self, fields: Fields<'_>, name: &str) -> Result<Option<Id>, FieldError> {
        let id = match self {
            Ids::Numbers => fields.positive(name)?.map(Id::Number),
            Ids::Texts => fields.string(name)?.map(|text| Id::Text(text.to_owned())),
        };
        Ok(id)
    }

    /// As [`Ids::read`]; a number of 0 and an empty text stand for any id.
    pub(crate) fn wanted(self, fields: Fields<'_>, name: &str) -> Result<Option<Id>, FieldError> {
        let id = self.read(fields, name)?;
        Ok(id.filter(|id| match id {
            Id::Number(number) => *number > 0,
            Id::Text(text) => !text.is_empty(),
        }))
    }

    /// Reads `id`, that of a new participant: none if it may be any.
    pub(crate) fn new_participant(self, fields: Fields<'_>) -> Result<Option<Id>, Refusal> {
        match self.wanted(fields, "id")? {
            Some(Id::Text(text)) if text.len() > MAX_LABEL => {
                Err(Refusal::value("id", "1024 bytes at most"))
            }
            id => Ok(id),
        }
    }

    /// Reads member `name`, which has to be there.
    pub(crate) fn required(self, fields: Fields<'_>, name: &str) -> Result<Id, FieldError> {
        self.read(fields, name)?
            .ok_or_else(|| FieldError::Missing(name.to_owned()))
    }
}
