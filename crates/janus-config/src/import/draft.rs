//! The draft of a configuration.

use std::fmt::Write;

use toml::Value;

use super::remark::{Remark, Weight};
use crate::Location;

/// The columns of a comment.
const WIDTH: usize = 100;

/// A configuration of Portunus drafted from one of Janus: sections with keys, and remarks on
/// settings that were not taken.
#[derive(Debug)]
pub struct Draft {
    pub(super) sections: Vec<Section>,
    pub(super) remarks: Vec<Remark>,
    /// The source, for the first line.
    origin: String,
    /// The number of settings taken from Janus.
    pub(super) taken: usize,
    /// The number of unreadable files of Janus.
    pub(super) broken: usize,
}

/// A section.
#[derive(Debug, Clone)]
pub(super) struct Section {
    /// The name, such as `http` or `events.webhook`.
    pub(super) name: String,
    /// Whether it is an entry of a list, written `[[NAME]]`.
    pub(super) is_listed: bool,
    pub(super) comments: Vec<String>,
    pub(super) keys: Vec<Key>,
    /// The start of its source.
    pub(super) at: Location,
    /// The name of its group in Janus.
    pub(super) from: String,
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) comments: Vec<String>,
    /// The place of its setting.
    pub(super) at: Location,
    /// The name of the setting with its group.
    pub(super) from: String,
}

/// The sections in the order of our sample configuration. Plugins follow by name.
const ORDER: [&str; 17] = [
    "server",
    "media",
    "http",
    "websocket",
    "unix",
    "mqtt",
    "rabbitmq",
    "admin",
    "tls",
    "log",
    "recording",
    "events",
    "plugins",
    "streaming",
    "videoroom",
    "audiobridge",
    "textroom",
];

impl Section {
    /// Returns the sort key of a section. Those of a list come after the section that contains
    /// them.
    fn rank(&self) -> (usize, &str) {
        let first = self.name.split('.').next().unwrap_or_default();
        let known = ORDER.iter().position(|name| *name == first);
        (known.unwrap_or(ORDER.len()), &self.name)
    }

    fn header(&self) -> String {
        match self.is_listed {
            true => format!("[[{}]]", self.name),
            false => format!("[{}]", self.name),
        }
    }
}

/// The owner of a line of the text: the section, and the key in it.
pub(super) type Place = (usize, Option<usize>);

/// A text with the owner of each line.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) text: String,
    places: Vec<Option<Place>>,
}

impl Lines {
    fn push(&mut self, text: &str, place: Option<Place>) {
        for line in text.split('\n') {
            self.text.push_str(line);
            self.text.push('\n');
            self.places.push(place);
        }
    }

    fn comments<'c>(
        &mut self,
        comments: impl IntoIterator<Item = &'c String>,
        place: Option<Place>,
    ) {
        for comment in comments {
            for line in wrapped(comment) {
                self.push(format!("# {line}").trim_end(), place);
            }
        }
    }

    /// Returns the owner of a line, counted from 1.
    pub(super) fn place(&self, line: usize) -> Option<Place> {
        *self.places.get(line.checked_sub(1)?)?
    }
}

impl Draft {
    pub(super) fn new(origin: String) -> Self {
        Draft {
            sections: Vec::new(),
            remarks: Vec::new(),
            origin,
            taken: 0,
            broken: 0,
        }
    }

    /// Returns the remarks on settings that were not taken: those that need attention first, then
    /// by place.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// Returns the number of settings taken from Janus, including those that are our defaults.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Returns the number of unreadable files of Janus.
    pub fn broken(&self) -> usize {
        self.broken
    }

    /// Sorts sections and remarks.
    pub(super) fn sort(&mut self) {
        self.sections.sort_by(|a, b| a.rank().cmp(&b.rank()));
        self.remarks.sort_by(|a, b| {
            let rank = |remark: &Remark| (remark.weight, remark.at.clone());
            rank(a).cmp(&rank(b))
        });
    }

    /// Returns the key of a section that is not in a list.
    pub(super) fn key(&self, section: &str, name: &str) -> Option<&Key> {
        let is_it = |it: &&Section| it.name == section && !it.is_listed;
        let section = self.sections.iter().find(is_it)?;
        section.keys.iter().find(|key| key.name == name)
    }

    /// Adds a key to a section. Makes the section if necessary.
    pub(super) fn put(&mut self, section: &str, key: Key) {
        let is_it = |it: &&mut Section| it.name == section && !it.is_listed;
        match self.sections.iter_mut().find(is_it) {
            Some(section) => section.keys.push(key),
            None => self.sections.push(Section {
                name: section.to_owned(),
                is_listed: false,
                comments: Vec::new(),
                at: key.at.clone(),
                from: String::new(),
                keys: vec![key],
            }),
        }
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        self.lines().text
    }

    pub(super) fn lines(&self) -> Lines {
        let mut lines = Lines::default();
        let head = [
            format!("Made by `portunus import-janus` from {}.", self.origin),
            "Keys that have our defaults are left out; `portunus --print-config` shows all keys."
                .to_owned(),
        ];
        lines.comments(&head, None);
        if !self.remarks.is_empty() {
            let tail = "What was not taken is listed at the end, with reasons.".to_owned();
            lines.comments([&tail], None);
        }
        for (index, section) in self.sections.iter().enumerate() {
            if section.keys.is_empty() && !section.is_listed {
                continue;
            }
            let place = Some((index, None));
            lines.push("", place);
            lines.comments(&section.comments, place);
            lines.push(&section.header(), place);
            for (index_of_key, key) in section.keys.iter().enumerate() {
                let place = Some((index, Some(index_of_key)));
                lines.comments(&key.comments, place);
                lines.push(&format!("{} = {}", key.name, written(&key.value)), place);
            }
        }
        self.remark_lines(&mut lines);
        lines
    }

    fn remark_lines(&self, lines: &mut Lines) {
        for (weight, title) in [
            (Weight::Attention, "Not taken, and to be looked at:"),
            (Weight::NotNeeded, "Not taken, and not needed:"),
        ] {
            let remarks = self.remarks.iter().filter(|it| it.weight == weight);
            let line = |remark: &Remark| format!("- {}{}", remark.place(), remark.reason);
            let remarks: Vec<_> = remarks.map(line).collect();
            if !remarks.is_empty() {
                lines.push("", None);
                lines.comments([&title.to_owned()], None);
                lines.comments(&remarks, None);
            }
        }
    }
}

/// Writes a value as TOML. A list of tables has one line for each.
fn written(value: &Value) -> String {
    match value {
        Value::Array(values) if values.iter().any(Value::is_table) => {
            let lines: String = values.iter().map(|it| format!("    {it},\n")).collect();
            format!("[\n{lines}]")
        }
        value => value.to_string(),
    }
}

/// Splits a comment into lines. Control characters become spaces, so that it cannot leave its line.
fn wrapped(comment: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let words = comment.split(|c: char| c.is_whitespace() || c.is_control());
    for word in words.filter(|word| !word.is_empty()) {
        let Some(line) = lines.last_mut() else { break };
        let columns = line.chars().count() + 1 + word.chars().count();
        match line.is_empty() {
            true => line.push_str(word),
            false if columns > WIDTH - 2 => lines.push(format!("  {word}")),
            false => drop(write!(line, " {word}")),
        }
    }
    lines
}
