//! Why a request about a resource is refused.

use portunus_core::FieldError;

use crate::{Id, TooMany};

/// Why a request about a resource is refused. Each plugin has codes and texts of its own for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A member is missing, or of the wrong type.
    Field(FieldError),
    /// A member has the right type, but not a value that can be: which one, and what is expected.
    Value(&'static str, &'static str),
    /// A secret is not the one that is asked for: the member that shows it.
    Wrong(&'static str),
    /// One of the allowed tokens has to be shown.
    TokenNeeded,
    /// There is no resource of this id.
    NoSuch(Id),
    /// There is a resource of this id already.
    Exists(Id),
    /// Clients have made as many resources as they may.
    TooMany(TooMany),
    /// Nothing can be permanent: no file is configured for it.
    NoFile,
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        Refusal::Field(error)
    }
}
