//! A configuration as a file.

use serde::Serialize;
use toml::Value;

/// The keys of a section, or sections by their names, in order.
pub type Table = toml::Table;

/// Why a configuration cannot be written: a value has no form in TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintError(String);

impl PrintError {
    pub(crate) fn new(text: &str) -> Self {
        PrintError(text.to_owned())
    }
}

impl std::fmt::Display for PrintError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write the configuration: {}", self.0)
    }
}

impl std::error::Error for PrintError {}

/// Returns the keys of a section with their values.
pub fn keys_of(section: &impl Serialize) -> Result<Table, PrintError> {
    Table::try_from(section).map_err(|error| PrintError(error.to_string()))
}

/// A configuration that is written, section by section.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Printed(Table);

impl Printed {
    /// Adds a section. A dot in its name separates a section in a section. Omits a section without
    /// keys.
    pub fn section(&mut self, name: &str, keys: Table) {
        if keys.is_empty() {
            return;
        }
        let mut into = &mut self.0;
        let mut name = name;
        while let Some((outer, inner)) = name.split_once('.') {
            let section = into.entry(outer).or_insert_with(|| Table::new().into());
            let Value::Table(section) = section else {
                return;
            };
            (into, name) = (section, inner);
        }
        into.insert(name.to_owned(), keys.into());
    }

    /// Returns the file's text.
    pub fn into_text(self) -> Result<String, PrintError> {
        toml::to_string(&self.0).map_err(|error| PrintError(error.to_string()))
    }
}
