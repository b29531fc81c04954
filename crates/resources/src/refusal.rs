//! Why a request about a resource is refused.

use portunus_core::FieldError;

use crate::{Id, TooMany};

/// The reason for a refusal of a request about a resource. Each plugin has its own codes and texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A member is missing, or of the wrong type.
    Field(FieldError),
    /// A member of the right type has a wrong value: its name, and the expected value.
    Value(&'static str, &'static str),
    /// A wrong secret, by the member that shows it.
    Wrong(&'static str),
    /// The request has to show one of the allowed tokens.
    TokenNeeded,
    /// There is no resource of this id.
    NoSuch(Id),
    /// There is a resource of this id already.
    Exists(Id),
    /// Clients have made as many resources as they may.
    TooMany(TooMany),
    /// No file for permanent resources is configured.
    NoFile,
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        Refusal::Field(error)
    }
}
