//! Who may join.

use portunus_core::Fields;
use serde_json::{Value, json};

use super::success_in;
use crate::members::{Members, Type, check, texts};
use crate::plugin::Shared;
use crate::refusal::Refusal;

/// The types of `allowed`.
const ALLOWED: Members = &[
    ("secret", Type::Text),
    ("action", Type::NeededText),
    ("allowed", Type::Texts),
];

impl Shared {
    pub(super) fn allowed(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        check(fields, ALLOWED)?;
        self.rooms.ids().required(fields, "room")?;
        let action = fields.required_string("action")?;
        let known = ["enable", "disable", "add", "remove"];
        if !known.iter().any(|it| it.eq_ignore_ascii_case(action)) {
            return Err(Refusal::Action(action.to_owned()));
        }
        self.managed(fields, ALLOWED, |room| {
            texts(fields, "allowed")?;
            let tokens = room.allowed.change(fields)?.map(|tokens| json!(tokens));
            Ok(success_in(room).with_some("allowed", tokens).into())
        })
    }
}
