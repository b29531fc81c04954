//! What is wrong with the description of a mountpoint, and with which member.

use std::fmt;

use portunus_core::FieldError;
use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// What is wrong with the description of a mountpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecProblem {
    /// The member that it is about.
    pub key: String,
    /// Which entry of `media` the member is in.
    pub media: Option<usize>,
    pub(crate) refusal: Refusal,
}

impl SpecProblem {
    pub(crate) fn new(key: &str, refusal: Refusal) -> Self {
        SpecProblem {
            key: key.to_owned(),
            media: None,
            refusal,
        }
    }

    pub(crate) fn missing(key: &str) -> Self {
        Self::field(FieldError::Missing(key.to_owned()))
    }

    pub(crate) fn element(key: &str, reason: impl Into<String>) -> Self {
        Self::new(key, Refusal::element(key, reason))
    }

    pub(crate) fn cannot_create(key: &str, reason: impl Into<String>) -> Self {
        Self::new(key, Refusal::CannotCreate(reason.into()))
    }

    pub(crate) fn field(error: FieldError) -> Self {
        let key = match &error {
            FieldError::Missing(name)
            | FieldError::Type { name, .. }
            | FieldError::Value { name, .. } => name,
        };
        SpecProblem {
            key: key.clone(),
            media: None,
            refusal: error.into(),
        }
    }

    pub(crate) fn in_media(self, index: usize) -> Self {
        SpecProblem {
            media: Some(index),
            ..self
        }
    }
}

/// What is expected, for people who write a configuration.
impl fmt::Display for SpecProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.refusal {
            Refusal::Field(FieldError::Missing(name)) => write!(f, "{name} is missing"),
            Refusal::Field(FieldError::Type { wanted, .. }) => write!(f, "expected {wanted}"),
            Refusal::Element { reason, .. } => f.write_str(reason),
            Refusal::CannotCreate(reason) => f.write_str(reason),
            refusal => refusal.fmt(f),
        }
    }
}

impl std::error::Error for SpecProblem {}

/// Refuses members that mean nothing.
pub(super) fn refuse_unknown(
    members: &Map<String, Value>,
    known: &[&str],
) -> Result<(), SpecProblem> {
    match members.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let reason = format!("unknown key; there are {}", known.join(", "));
            Err(SpecProblem::element(key, reason))
        }
    }
}
