//! Reads a file, section by section.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::ops::{Range, RangeInclusive};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::claims::{self, Claim, Listener, Pairs, Protocol};
use crate::message::plain;
use crate::suggestion::most_similar;
use crate::{Entry, Mistake, PortRange, fields};

/// Reads a file. `sections` reads all sections, starting from the one that is the file itself.
/// Finds all mistakes, not only the first one.
pub fn read<R>(
    text: &str,
    sections: impl FnOnce(&mut Section<'_>) -> R,
) -> Result<R, Vec<Mistake>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let span = table.span();
    let mut file = Section::new(text, String::new(), span, table.into_inner());
    for error in errors {
        let span = error.span().unwrap_or_default();
        file.mistake(span, error.message().trim_end().to_owned());
    }
    // The recovered part of an invalid file would cause further, misleading mistakes.
    if !file.mistakes.is_empty() {
        return Err(file.into_mistakes());
    }
    let too_large: Vec<_> = file.table.values().flat_map(too_large).collect();
    for span in too_large {
        let number = file.written(&span);
        file.mistake(span, format!("{number} is no number of 64 bits"));
    }
    let outcome = sections(&mut file);
    file.refuse_unknown();
    for (span, text) in claims::mistakes(&file.claims, &file.pairs) {
        file.mistake(span.unwrap_or_default(), text);
    }
    match file.into_mistakes() {
        mistakes if mistakes.is_empty() => Ok(outcome),
        mistakes => Err(mistakes),
    }
}

/// Returns the configuration without a file: all defaults.
pub fn defaults<R>(sections: impl FnOnce(&mut Section<'_>) -> R) -> R {
    sections(&mut Section::new("", String::new(), 0..0, DeTable::new()))
}

/// A section of a file. Keys that nobody takes are mistakes.
#[derive(Debug)]
pub struct Section<'t> {
    text: &'t str,
    /// With a dot at its end, unless it is the file itself.
    path: String,
    span: Range<usize>,
    /// The keys that are not taken yet.
    table: DeTable<'t>,
    /// The names that exist, for suggestions.
    known: Vec<&'static str>,
    /// The taken keys: their places, and whether they are mistakes.
    taken: BTreeMap<&'static str, Taken>,
    /// The taken keys of inner sections, with the names of these.
    inner: BTreeMap<String, Taken>,
    mistakes: Vec<Mistake>,
    /// Ports that are listened on.
    claims: Vec<Claim>,
    pairs: Vec<Pairs>,
}

#[derive(Debug)]
struct Taken {
    span: Range<usize>,
    mistaken: bool,
}

impl<'t> Section<'t> {
    fn new(text: &'t str, path: String, span: Range<usize>, table: DeTable<'t>) -> Self {
        Section {
            text,
            path,
            span,
            table,
            known: Vec::new(),
            taken: BTreeMap::new(),
            inner: BTreeMap::new(),
            mistakes: Vec::new(),
            claims: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// Takes the keys of `T` in the section. Absent ones have the values of `T::default()`. A key
    /// that cannot be read is a mistake, and has its default.
    ///
    /// `T` is a struct with `#[serde(default)]`.
    pub fn keys<T: Default + DeserializeOwned>(&mut self) -> T {
        let mut right = DeTable::new();
        // Each key is read by itself, to find every mistake. Reading all together ends at the first
        // one.
        for name in fields::of::<T>() {
            let Some(value) = self.take(name) else {
                continue;
            };
            let span = value.span();
            let alone = DeTable::from_iter([(key(name), value.clone())]);
            match self.deserialize::<T>(alone) {
                Ok(_) => drop(right.insert(key(name), value)),
                Err(error) => self.wrong(name, &error, span),
            }
        }
        self.deserialize(right).unwrap_or_else(|error| {
            let path = self.path.trim_end_matches('.');
            let text = format!("{path}: {}", plain(error.message(), path));
            self.mistake(self.span.clone(), text);
            T::default()
        })
    }

    /// Takes a key. Returns `None` if it is absent, or cannot be read, which is a mistake.
    pub fn key<T: DeserializeOwned>(&mut self, name: &'static str) -> Option<T> {
        let value = self.take(name)?;
        let span = value.span();
        match T::deserialize(toml::de::ValueDeserializer::from(value)) {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong(name, &error, span);
                None
            }
        }
    }

    /// Reads a section in this one.
    pub fn section<R>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Section<'t>) -> R,
    ) -> R {
        let path = format!("{}{name}", self.path);
        let found = self
            .take(name)
            .map(|value| (value.span(), value.into_inner()));
        let (span, table) = match found {
            None => (self.span.clone(), DeTable::new()),
            Some((span, DeValue::Table(table))) => (span, table),
            Some((span, _)) => {
                let got = self.written(&span);
                let text = format!("{path}: expected a section, written [{path}], got {got}");
                self.mistake(span.clone(), text);
                (span, DeTable::new())
            }
        };
        let mut section = Section::new(self.text, format!("{path}."), span, table);
        let outcome = read(&mut section);
        section.refuse_unknown();
        self.mistakes.append(&mut section.mistakes);
        let inner = std::mem::take(&mut section.inner);
        let taken = std::mem::take(&mut section.taken);
        let taken = taken.into_iter().map(|(key, it)| (key.to_owned(), it));
        let keys = taken.chain(inner);
        self.inner
            .extend(keys.map(|(key, it)| (format!("{name}.{key}"), it)));
        self.claims.append(&mut section.claims);
        self.pairs.append(&mut section.pairs);
        outcome
    }

    /// Takes a list of sections of a kind, each written `[[section.name]]`.
    pub fn list(&mut self, name: &'static str) -> Vec<Entry<'t>> {
        let path = format!("{}{name}", self.path);
        let Some(found) = self.take(name) else {
            return Vec::new();
        };
        let span = found.span();
        let DeValue::Array(list) = found.into_inner() else {
            let got = self.written(&span);
            let text = format!("{path}: expected sections, each written [[{path}]], got {got}");
            self.mistake(span, text);
            return Vec::new();
        };
        let mut entries = Vec::new();
        for found in list {
            let span = found.span();
            match found.into_inner() {
                DeValue::Table(table) => entries.push(Entry {
                    path: path.clone(),
                    span,
                    table,
                }),
                _ => {
                    let got = self.written(&span);
                    let text = format!("{path}: expected a section, written [[{path}]], got {got}");
                    self.mistake(span, text);
                }
            }
        }
        entries
    }

    /// Reads an entry of such a list as a whole. Returns `None` if that fails, which is a mistake.
    pub fn entry<T: DeserializeOwned>(&mut self, entry: &Entry<'t>) -> Option<T> {
        match entry.value() {
            Ok(value) => Some(value),
            Err(error) => {
                let span = error.span().unwrap_or(entry.span.clone());
                let text = plain(error.message(), &self.written(&span));
                self.mistake(span, format!("{}: {text}", entry.path));
                None
            }
        }
    }

    /// Notes a mistake in a key of an entry, or with `within`, of the section with that index of
    /// that list in the entry.
    pub fn entry_mistake(
        &mut self,
        entry: &Entry<'t>,
        within: Option<(&str, usize)>,
        key: &str,
        what: impl Display,
    ) {
        let span = entry.find(within, key).unwrap_or(entry.span.clone());
        self.mistake(span, format!("{}: {what}", entry.place(within, key)));
    }

    /// Checks a value, or several together, beyond what serde can do. An error is a mistake of the
    /// first of these keys, unless one of them is a mistake already.
    pub fn check<E: Display>(&mut self, keys: &[&'static str], outcome: Result<(), E>) {
        let Err(what) = outcome else {
            return;
        };
        let mistaken = |key: &&str| self.taken.get(key).is_some_and(|taken| taken.mistaken);
        let Some(first) = keys.first().filter(|_| !keys.iter().any(mistaken)) else {
            return;
        };
        let span = match self.taken.get_mut(first) {
            Some(taken) => {
                taken.mistaken = true;
                taken.span.clone()
            }
            None => self.span.clone(),
        };
        self.mistake(span, format!("{}{first}: {what}", self.path));
    }

    /// Checks a condition like [`Section::check`], with `what` as the mistake.
    pub fn require(&mut self, keys: &[&'static str], holds: bool, what: &str) {
        self.check(keys, holds.then_some(()).ok_or(what));
    }

    /// Checks a condition on keys of sections in this one, once these are read: `http.https`.
    pub fn require_within(&mut self, keys: &[&str], holds: bool, what: &str) {
        let mistaken = |key: &&str| self.inner.get(*key).is_some_and(|it| it.mistaken);
        let Some(first) = keys
            .first()
            .filter(|_| !holds && !keys.iter().any(mistaken))
        else {
            return;
        };
        let span = self.inner.get(*first).map(|it| it.span.clone());
        let text = format!("{}{first}: {what}", self.path);
        self.mistake(span.unwrap_or(self.span.clone()), text);
    }

    /// Claims ports of these addresses for a key. Without addresses, of all. A conflict with
    /// another key is a mistake, found once all is read. From port 0 on the kernel chooses, so
    /// nothing is claimed.
    pub fn listens(
        &mut self,
        key: &'static str,
        protocol: Protocol,
        addresses: &[IpAddr],
        ports: RangeInclusive<u16>,
    ) {
        if *ports.start() > 0
            && let Some((key, span)) = self.sound(key)
        {
            self.claims.push(Claim {
                key,
                span,
                protocol,
                addresses: addresses.to_vec(),
                ports,
            });
        }
    }

    /// Claims ports for a key of an entry, or with `within`, of the section with that index of that
    /// list in the entry.
    pub fn entry_listens(
        &mut self,
        entry: &Entry<'t>,
        within: Option<(&str, usize)>,
        key: &str,
        (protocol, addresses): (Protocol, &[IpAddr]),
        port: u16,
    ) {
        if port > 0 {
            self.claims.push(Claim {
                key: entry.place(within, key),
                span: Some(entry.find(within, key).unwrap_or(entry.span.clone())),
                protocol,
                addresses: addresses.to_vec(),
                ports: port..=port,
            });
        }
    }

    /// Claims pairs of these UDP ports for use at run time, each an even one and the next one. The
    /// ports of [`Section::listens`] have to leave it a pair.
    pub fn takes_pairs(&mut self, key: &'static str, range: PortRange) {
        if let Some((key, span)) = self.sound(key) {
            self.pairs.push(Pairs { key, span, range });
        }
    }

    /// Drops the claims of the section with this name in this one, because it is off.
    pub fn listens_nowhere(&mut self, section: &str) {
        let path = format!("{}{section}.", self.path);
        self.claims.retain(|claim| !claim.key.starts_with(&path));
        self.pairs.retain(|pairs| !pairs.key.starts_with(&path));
    }

    /// Returns the claims of the sections so far, without port 0.
    pub fn listeners(&self) -> Vec<Listener> {
        self.claims.iter().map(Claim::listener).collect()
    }

    /// Returns a key with its section, and its place in the file if it is there. `None` if it is a
    /// mistake already.
    fn sound(&self, key: &'static str) -> Option<(String, Option<Range<usize>>)> {
        let taken = self.taken.get(key);
        let is_sound = taken.is_none_or(|taken| !taken.mistaken);
        is_sound.then(|| {
            let span = taken.map(|taken| taken.span.clone());
            (format!("{}{key}", self.path), span)
        })
    }

    /// Checks that the value of a key is within a range.
    pub fn range<T: PartialOrd + Display>(
        &mut self,
        key: &'static str,
        value: T,
        range: RangeInclusive<T>,
    ) {
        let (least, most) = (range.start(), range.end());
        let text = format!("expected {least} to {most}, got {value}");
        self.require(&[key], range.contains(&value), &text);
    }

    /// Takes a name out of the section.
    fn take(&mut self, name: &'static str) -> Option<Spanned<DeValue<'t>>> {
        self.known.push(name);
        let value = self.table.remove(name)?;
        let taken = Taken {
            span: value.span(),
            mistaken: false,
        };
        self.taken.insert(name, taken);
        Some(value)
    }

    fn deserialize<T: DeserializeOwned>(&self, table: DeTable<'t>) -> Result<T, toml::de::Error> {
        T::deserialize(Deserializer::from(Spanned::new(self.span.clone(), table)))
    }

    /// Notes serde's error for the value of a key at `span`.
    fn wrong(&mut self, name: &'static str, error: &toml::de::Error, span: Range<usize>) {
        let span = error.span().unwrap_or(span);
        let text = plain(error.message(), &self.written(&span));
        if let Some(taken) = self.taken.get_mut(name) {
            taken.mistaken = true;
        }
        self.mistake(span, format!("{}{name}: {text}", self.path));
    }

    /// Returns a value as it is written in the file.
    fn written(&self, span: &Range<usize>) -> String {
        let text = self.text.get(span.clone()).unwrap_or_default();
        text.lines().next().unwrap_or_default().to_owned()
    }

    fn mistake(&mut self, span: Range<usize>, text: String) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = 1 + before.bytes().filter(|b| *b == b'\n').count();
        self.mistakes.push(Mistake { line, text });
    }

    fn refuse_unknown(&mut self) {
        for (name, _) in std::mem::take(&mut self.table) {
            let path = &self.path;
            let mut text = format!("{path}{name}: unknown key", name = name.get_ref());
            if let Some(similar) = most_similar(name.get_ref(), &self.known) {
                text.push_str(&format!("; did you mean {path}{similar}?"));
            } else {
                text.push_str(&format!("; there are {}", self.known.join(", ")));
            }
            self.mistake(name.span(), text);
        }
    }

    fn into_mistakes(mut self) -> Vec<Mistake> {
        self.mistakes.sort_by_key(|mistake| mistake.line);
        self.mistakes.dedup();
        self.mistakes
    }
}

/// Returns the places of integers beyond those of TOML. The library reads some of them, but writes
/// none.
fn too_large(value: &Spanned<DeValue<'_>>) -> Vec<Range<usize>> {
    match value.get_ref() {
        DeValue::Integer(number) => {
            let read = i64::from_str_radix(number.as_str(), number.radix());
            read.err().map(|_| value.span()).into_iter().collect()
        }
        DeValue::Array(list) => list.iter().flat_map(too_large).collect(),
        DeValue::Table(table) => table.values().flat_map(too_large).collect(),
        _ => Vec::new(),
    }
}

fn key(name: &'static str) -> Spanned<Cow<'static, str>> {
    Spanned::new(0..0, Cow::Borrowed(name))
}
