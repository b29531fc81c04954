//! A mistake in the specification of a mountpoint, and the member with it.

use std::fmt;

use portunus_core::FieldError;
use portunus_resources::RoomProblem;

use crate::refusal::Refusal;

/// A mistake in the specification of a mountpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecProblem {
    /// The member.
    pub key: String,
    /// The index of its entry in `media`.
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
        FieldError::Missing(key.to_owned()).into()
    }

    pub(crate) fn element(key: &str, reason: impl Into<String>) -> Self {
        Self::new(key, Refusal::element(key, reason))
    }

    pub(crate) fn cannot_create(key: &str, reason: impl Into<String>) -> Self {
        Self::new(key, Refusal::CannotCreate(reason.into()))
    }

    pub(crate) fn in_media(self, index: usize) -> Self {
        SpecProblem {
            media: Some(index),
            ..self
        }
    }
}

impl From<FieldError> for SpecProblem {
    fn from(error: FieldError) -> Self {
        let (FieldError::Missing(key)
        | FieldError::Type { name: key, .. }
        | FieldError::Value { name: key, .. }) = &error;
        SpecProblem::new(&key.clone(), error.into())
    }
}

/// A key that is no option.
impl From<RoomProblem> for SpecProblem {
    fn from(problem: RoomProblem) -> Self {
        SpecProblem::element(&problem.key, problem.to_string())
    }
}

impl From<SpecProblem> for Refusal {
    fn from(problem: SpecProblem) -> Self {
        problem.refusal
    }
}

/// The message for the author of a configuration.
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
