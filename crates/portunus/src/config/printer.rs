//! Prints the configuration as a TOML file.

use serde_json::{Map, Value};

use super::keys::{EntryMistake, Keys};
use super::value::ConfigValue;

/// Goes over the keys and writes down each with its value.
#[derive(Debug, Default)]
pub(crate) struct Printer {
    text: String,
    path: Vec<&'static str>,
    /// The section whose head was written last.
    head: Vec<&'static str>,
}

impl Printer {
    /// What was written.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

impl Keys for Printer {
    fn section(&mut self, name: &'static str, keys: impl FnOnce(&mut Self)) {
        self.path.push(name);
        keys(self);
        self.path.pop();
    }

    fn gives(&self, _: &'static str) -> bool {
        true
    }

    fn checked<T: ConfigValue>(
        &mut self,
        name: &'static str,
        value: &mut T,
        _: impl FnOnce(&T) -> Result<(), String>,
    ) {
        if self.head != self.path {
            let gap = if self.text.is_empty() { "" } else { "\n" };
            self.text
                .push_str(&format!("{gap}[{}]\n", self.path.join(".")));
            self.head.clone_from(&self.path);
        }
        self.text.push_str(&format!("{name} = {}\n", value.show()));
    }

    fn sections<T>(
        &mut self,
        name: &'static str,
        entries: &mut Vec<T>,
        _: impl Fn(&Map<String, Value>, &[T]) -> Result<T, EntryMistake>,
        show: impl Fn(&T) -> Map<String, Value>,
    ) {
        for entry in entries.iter() {
            self.path.push(name);
            let nested = self.path.iter().rev().fold(None, |inner, name| {
                let value = match inner {
                    None => Value::Array(vec![Value::Object(show(entry))]),
                    Some(inner) => Value::Object(inner),
                };
                Some(Map::from_iter([((*name).to_owned(), value)]))
            });
            self.path.pop();
            // What was read from TOML can be written as TOML.
            let text = toml::to_string(&nested.unwrap_or_default()).unwrap_or_default();
            self.text.push_str(&format!("\n{text}"));
        }
    }
}
