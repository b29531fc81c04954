//! The ids of mountpoints: numbers, or text if the plugin is told so.

use std::fmt;

use portunus_core::{FieldError, Fields};
use rand::Rng;
use serde_json::Value;
use uuid::Uuid;

/// The largest integer that JavaScript holds exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Which mountpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MountpointId {
    /// The usual kind; no mountpoint has 0.
    Number(u64),
    /// With `string_ids`.
    Text(String),
}

impl MountpointId {
    /// A new id: up to 2^53 - 1, or a UUID.
    pub(crate) fn random(string_ids: bool) -> Self {
        if string_ids {
            MountpointId::Text(Uuid::new_v4().to_string())
        } else {
            MountpointId::Number(rand::rng().random_range(1..=MAX_SAFE_INTEGER))
        }
    }

    /// Reads member `name` of a mountpoint to be; none if it is not there. A number of 0 and an empty text stand for
    /// any id.
    pub(crate) fn read(
        fields: Fields<'_>,
        name: &str,
        string_ids: bool,
    ) -> Result<Option<Self>, FieldError> {
        let id = if string_ids {
            let text = fields.string(name)?.filter(|text| !text.is_empty());
            text.map(|text| MountpointId::Text(text.to_owned()))
        } else {
            let number = fields.positive(name)?.filter(|number| *number > 0);
            number.map(MountpointId::Number)
        };
        Ok(id)
    }

    /// Reads member `id` of a request about a mountpoint that there is. 0 and an empty text are nobody's.
    pub(crate) fn of_request(fields: Fields<'_>, string_ids: bool) -> Result<Self, FieldError> {
        let id = match string_ids {
            true => fields
                .string("id")?
                .map(|id| MountpointId::Text(id.to_owned())),
            false => fields.positive("id")?.map(MountpointId::Number),
        };
        id.ok_or_else(|| FieldError::Missing("id".to_owned()))
    }

    /// As it stands in JSON.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            MountpointId::Number(number) => (*number).into(),
            MountpointId::Text(text) => text.as_str().into(),
        }
    }
}

impl fmt::Display for MountpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MountpointId::Number(number) => number.fmt(f),
            MountpointId::Text(text) => text.fmt(f),
        }
    }
}
