//! One description of the keys serves reading a file, printing the configuration and suggesting names.

use serde_json::{Map, Value};

use super::value::ConfigValue;

/// Something that goes over the keys of the configuration, a section at a time.
pub(crate) trait Keys: Sized {
    /// A section; sections may hold sections.
    fn section(&mut self, name: &'static str, keys: impl FnOnce(&mut Self));

    /// Whether a key of the present section is given, and was not taken yet.
    fn gives(&self, name: &'static str) -> bool;

    /// A key whose value has to pass a check.
    fn checked<T: ConfigValue>(
        &mut self,
        name: &'static str,
        value: &mut T,
        check: impl FnOnce(&T) -> Result<(), String>,
    );

    /// A list of sections of one kind, each written `[[name]]`. `read` gets the members of one and those before it.
    fn sections<T>(
        &mut self,
        name: &'static str,
        entries: &mut Vec<T>,
        read: impl Fn(&Map<String, Value>, &[T]) -> Result<T, EntryMistake>,
        show: impl Fn(&T) -> Map<String, Value>,
    );

    /// A key that may have any value of its type.
    fn key<T: ConfigValue>(&mut self, name: &'static str, value: &mut T) {
        self.checked(name, value, |_| Ok(()));
    }

    /// A key with a smallest and a largest value.
    fn ranged<T: ConfigValue + PartialOrd>(
        &mut self,
        name: &'static str,
        value: &mut T,
        range: std::ops::RangeInclusive<T>,
    ) {
        self.checked(name, value, |value| {
            if range.contains(value) {
                return Ok(());
            }
            Err(format!(
                "expected {} to {}, got {}",
                range.start().show(),
                range.end().show(),
                value.show()
            ))
        });
    }
}

/// What is wrong with a section of a list, and where: a member, or a member of a section in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryMistake {
    /// The list in the section, and the place in it, that the member is in; none: in the section itself.
    pub(crate) within: Option<(&'static str, usize)>,
    pub(crate) key: String,
    pub(crate) text: String,
}
