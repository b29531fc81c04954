//! Reads the configuration file, and says of every mistake on which line it is.

use std::fmt;
use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::entry;
use super::keys::{EntryMistake, Keys};
use super::value::{ConfigValue, expected};

/// A mistake in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Counted from 1.
    pub(crate) line: usize,
    /// What is wrong, with the name of the key.
    pub(crate) text: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

/// Goes over the keys and takes from the file those that it has.
#[derive(Debug)]
pub(crate) struct Reader<'t> {
    text: &'t str,
    /// Where it is: the innermost section last.
    open: Vec<Section<'t>>,
    mistakes: Vec<Mistake>,
}

#[derive(Debug)]
struct Section<'t> {
    /// With a dot at its end, unless it is the file itself.
    path: String,
    /// None if the file does not have it.
    table: Option<DeTable<'t>>,
    /// The keys that exist, for suggestions.
    known: Vec<&'static str>,
}

/// Reads a file's text: `keys` names every key there is. All mistakes are found, not only the first.
pub(crate) fn read(text: &str, keys: impl FnOnce(&mut Reader<'_>)) -> Result<(), Vec<Mistake>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        text,
        open: Vec::new(),
        mistakes: Vec::new(),
    };
    for error in errors {
        let span = error.span().unwrap_or_default();
        reader.mistake(span, error.message().trim_end().to_owned());
    }
    // What could be recovered of a broken file would lead to further, misleading mistakes.
    if reader.mistakes.is_empty() {
        reader.enter(String::new(), Some(table.into_inner()), keys);
    }
    if reader.mistakes.is_empty() {
        return Ok(());
    }
    reader.mistakes.sort_by_key(|mistake| mistake.line);
    reader.mistakes.dedup();
    Err(reader.mistakes)
}

impl<'t> Reader<'t> {
    fn enter(&mut self, path: String, table: Option<DeTable<'t>>, keys: impl FnOnce(&mut Self)) {
        self.open.push(Section {
            path,
            table,
            known: Vec::new(),
        });
        keys(self);
        if let Some(section) = self.open.pop() {
            self.refuse_unknown(section);
        }
    }

    /// Takes a key of the open section out of the file.
    fn take(&mut self, name: &'static str) -> Option<Spanned<DeValue<'t>>> {
        let section = self.open.last_mut()?;
        section.known.push(name);
        section.table.as_mut()?.remove(name)
    }

    fn path(&self, name: &str) -> String {
        let path = self.open.last().map_or("", |section| &section.path);
        format!("{path}{name}")
    }

    fn mistake(&mut self, span: Range<usize>, text: String) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = 1 + before.bytes().filter(|b| *b == b'\n').count();
        self.mistakes.push(Mistake { line, text });
    }

    fn refuse_unknown(&mut self, section: Section<'t>) {
        for (name, _) in section.table.into_iter().flatten() {
            let path = &section.path;
            let mut text = format!("{path}{name}: unknown key", name = name.get_ref());
            if let Some(similar) = most_similar(name.get_ref(), &section.known) {
                text.push_str(&format!("; did you mean {path}{similar}?"));
            } else {
                text.push_str(&format!("; there are {}", section.known.join(", ")));
            }
            self.mistake(name.span(), text);
        }
    }
}

impl Keys for Reader<'_> {
    fn section(&mut self, name: &'static str, keys: impl FnOnce(&mut Self)) {
        let path = self.path(name);
        let table = match self
            .take(name)
            .map(|value| (value.span(), value.into_inner()))
        {
            None => None,
            Some((_, DeValue::Table(table))) => Some(table),
            Some((span, other)) => {
                let wanted = format!("a section, written [{path}]");
                self.mistake(span, format!("{path}: {}", expected(&wanted, &other)));
                None
            }
        };
        self.enter(format!("{path}."), table, keys);
    }

    fn gives(&self, name: &'static str) -> bool {
        let section = self.open.last();
        let table = section.and_then(|section| section.table.as_ref());
        table.is_some_and(|table| table.contains_key(name))
    }

    fn checked<T: ConfigValue>(
        &mut self,
        name: &'static str,
        value: &mut T,
        check: impl FnOnce(&T) -> Result<(), String>,
    ) {
        let Some(found) = self.take(name) else {
            return;
        };
        let read = T::read(found.get_ref()).and_then(|read| check(&read).map(|()| read));
        match read {
            Ok(read) => *value = read,
            Err(text) => {
                let text = format!("{}: {text}", self.path(name));
                self.mistake(found.span(), text);
            }
        }
    }

    fn sections<T>(
        &mut self,
        name: &'static str,
        entries: &mut Vec<T>,
        read: impl Fn(&Map<String, Value>, &[T]) -> Result<T, EntryMistake>,
        _: impl Fn(&T) -> Map<String, Value>,
    ) {
        let path = self.path(name);
        for found in self.take_sections(name) {
            let span = found.span();
            let DeValue::Table(table) = found.get_ref() else {
                let wanted = format!("a section, written [[{path}]]");
                let text = format!("{path}: {}", expected(&wanted, found.get_ref()));
                self.mistake(span, text);
                continue;
            };
            match read(&entry::members(table), entries) {
                Ok(entry) => entries.push(entry),
                Err(mistake) => {
                    let span = entry::find(table, &mistake).unwrap_or(span);
                    let text = format!("{path}.{}: {}", entry::path(&mistake), mistake.text);
                    self.mistake(span, text);
                }
            }
        }
    }
}

impl<'t> Reader<'t> {
    /// The sections of a list; anything else there is a mistake.
    fn take_sections(&mut self, name: &'static str) -> Vec<Spanned<DeValue<'t>>> {
        let path = self.path(name);
        let Some(found) = self.take(name) else {
            return Vec::new();
        };
        let span = found.span();
        match found.into_inner() {
            DeValue::Array(entries) => entries.into_iter().collect(),
            other => {
                let wanted = format!("sections, each written [[{path}]]");
                self.mistake(span, format!("{path}: {}", expected(&wanted, &other)));
                Vec::new()
            }
        }
    }
}

/// The known key that somebody who wrote `name` most likely meant.
fn most_similar(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let distance = |known: &'static str| (strsim::damerau_levenshtein(name, known), known);
    let (distance, similar) = known.iter().map(|known| distance(known)).min()?;
    let contained = similar.contains(name) || name.contains(similar);
    (contained || distance <= 1 + name.len() / 4).then_some(similar)
}
