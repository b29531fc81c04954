//! A section of a list.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// A section of a list, written `[[section.name]]`, to be read key by key.
#[derive(Debug, Clone)]
pub struct Entry<'t> {
    pub(crate) path: String,
    pub(crate) span: Range<usize>,
    pub(crate) table: DeTable<'t>,
}

impl Entry<'_> {
    /// Reads the whole section as one value, such as a map.
    pub(crate) fn value<T: DeserializeOwned>(&self) -> Result<T, toml::de::Error> {
        let table = DeValue::Table(self.table.clone());
        T::deserialize(ValueDeserializer::from(Spanned::new(
            self.span.clone(),
            table,
        )))
    }

    /// Returns the name of a key, with those of the sections around it.
    pub(crate) fn place(&self, within: Option<(&str, usize)>, key: &str) -> String {
        let path = &self.path;
        match within {
            Some((list, index)) => format!("{path}.{list}[{index}].{key}"),
            None => format!("{path}.{key}"),
        }
    }

    /// Returns the place of a key, or with `within`, of a key in the section with that index of
    /// that list. `None` if it is absent.
    pub(crate) fn find(&self, within: Option<(&str, usize)>, key: &str) -> Option<Range<usize>> {
        let of_key = |table: &DeTable<'_>| table.get(key).map(Spanned::span);
        let Some((list, index)) = within else {
            return of_key(&self.table);
        };
        let entry = self.table.get(list)?.get_ref().as_array()?.get(index)?;
        let inner = entry.get_ref().as_table().and_then(of_key);
        Some(inner.unwrap_or(entry.span()))
    }
}
