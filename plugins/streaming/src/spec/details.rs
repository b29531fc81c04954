//! The options of a mountpoint that can be edited.

use portunus_resources::{Access, Options, place};

use super::SpecProblem;
use super::values::clearable;

/// The options of a mountpoint that can be edited.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Details {
    /// The name for people. Empty means the mountpoint's name.
    pub(crate) description: String,
    /// Opaque text for clients.
    pub(crate) metadata: Option<String>,
    /// Its secret and its pin, and whether it is listed.
    pub(crate) access: Access,
}

impl Details {
    /// Sets the default description of a mountpoint with this name.
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
