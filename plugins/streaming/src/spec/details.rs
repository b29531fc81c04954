//! What of a mountpoint can be edited.

use portunus_resources::{Access, Options, place};

use super::SpecProblem;
use super::values::clearable;

/// What can be edited.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Details {
    /// For people; the name if it is empty.
    pub(crate) description: String,
    /// Opaque text for clients.
    pub(crate) metadata: Option<String>,
    /// Who may manage the mountpoint, and who may watch it.
    pub(crate) access: Access,
}

impl Details {
    /// The same of a mountpoint with this name.
    pub(crate) fn of(mut self, name: &str) -> Self {
        if self.description.is_empty() {
            name.clone_into(&mut self.description);
        }
        self
    }
}

type Opt = portunus_resources::Opt<Details, SpecProblem>;

pub(crate) const DETAILS: Options<Details, SpecProblem> = Options(&[
    Opt::new("description", place!(description))
        .edited_as("new_description")
        .listed(),
    Opt::new("metadata", place!(metadata, clearable))
        .edited_as("new_metadata")
        .listed(),
    Opt::new("is_private", place!(access.is_private))
        .edited_as("new_is_private")
        .listed_if(|details| details.access.is_private)
        .confidential(),
    Opt::new("secret", place!(access.secret))
        .edited_as("new_secret")
        .listed()
        .confidential(),
    Opt::new("pin", place!(access.pin, clearable))
        .edited_as("new_pin")
        .listed()
        .confidential(),
]);
