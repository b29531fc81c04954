//! What a room can be told, when it is made and later.

use portunus_core::{Fields, Object};
use portunus_resources::{Access, Id};
use serde_json::{Map, Value};
use url::Url;

use crate::post;
use crate::refusal::Refusal;

/// The most messages that a room remembers; their bytes are bounded, too.
const MAX_HISTORY: u64 = 10_000;

/// The options of a room, as `create` and the configuration have them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoomOptions {
    pub(crate) description: String,
    /// Who may manage it, and who may join.
    pub(crate) access: Access,
    /// Messages that are kept for those who come later.
    pub(crate) history: usize,
    /// Where messages are posted to.
    pub(crate) post: Option<Url>,
}

impl RoomOptions {
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let description = fields.string("description")?.unwrap_or_default();
        let history = match fields.positive("history")?.unwrap_or(0) {
            history @ 0..=MAX_HISTORY => history as usize,
            _ => return Err(Refusal::value("history", "10000 at most")),
        };
        Ok(RoomOptions {
            description: description.to_owned(),
            access: Access::read(fields)?,
            history,
            post: back_end(fields, "post")?,
        })
    }

    /// What they are after an `edit`. An empty text changes nothing.
    pub(crate) fn edited(&self, fields: Fields<'_>) -> Result<Self, Refusal> {
        let description = fields.text("new_description")?;
        let post = back_end(fields, "new_post")?;
        Ok(RoomOptions {
            description: description.unwrap_or(&self.description).to_owned(),
            access: self.access.edited(fields)?,
            history: self.history,
            post: post.or_else(|| self.post.clone()),
        })
    }

    /// The members that [`RoomOptions::read`] makes the same of.
    pub(crate) fn to_members(&self) -> Map<String, Value> {
        let members = Object::new()
            .with("description", self.description.as_str())
            .with_all(self.access.to_members())
            .with("history", self.history)
            .with_some("post", self.post.as_ref().map(Url::as_str));
        match members.into() {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }

    /// What `list` tells of a room.
    pub(crate) fn listed(&self, room: &Id, members: usize) -> Object {
        Object::new()
            .with("room", room.to_json())
            .with("description", self.description.as_str())
            .with("pin_required", self.access.pin.is_some())
            .with("num_participants", members)
            .with("history", self.history)
    }
}

/// The address of a back-end; an empty text is none.
fn back_end(fields: Fields<'_>, name: &'static str) -> Result<Option<Url>, Refusal> {
    let text = fields.text(name)?;
    text.map(|text| post::address(text).ok_or(Refusal::value(name, post::EXPECTED)))
        .transpose()
}
