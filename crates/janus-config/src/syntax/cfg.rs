//! INI in Janus's dialect: `.cfg` files of versions before 1.0.

use std::path::Path;
use std::sync::Arc;

use super::source::MAX_BYTES;
use super::{Group, Location, Problem, Setting, SyntaxError, Value};

/// Reads the text of a `.cfg` file: sections as groups, and all values as text. The later of two
/// settings with the same name counts.
pub fn parse_cfg(file: &Path, text: &str) -> Result<Group, SyntaxError> {
    if text.len() > MAX_BYTES {
        return Err(SyntaxError {
            at: Location::start(file),
            problem: Problem::TooLarge(MAX_BYTES),
        });
    }
    let mut reader = Reader {
        file: file.into(),
        root: Sections::default(),
        comments: Vec::new(),
    };
    for (line, text) in (1..).zip(text.lines()) {
        reader
            .line(line, text)
            .map_err(|(column, problem)| SyntaxError {
                at: reader.at(line, column),
                problem,
            })?;
    }
    Ok(reader.root.into_group())
}

struct Reader {
    file: Arc<Path>,
    root: Sections,
    /// The comments directly above the next line.
    comments: Vec<String>,
}

/// The settings before the first section, and the sections.
#[derive(Default)]
struct Sections {
    loose: Group,
    sections: Vec<(Setting, Group)>,
}

impl Sections {
    fn into_group(self) -> Group {
        let Group(mut settings) = self.loose;
        for (section, group) in self.sections {
            let value = Value::Group(group);
            put(&mut settings, Setting { value, ..section });
        }
        Group(settings)
    }
}

/// Adds a setting. It replaces an earlier one with the same name.
fn put(settings: &mut Vec<Setting>, setting: Setting) {
    settings.retain(|earlier| earlier.name != setting.name);
    settings.push(setting);
}

impl Reader {
    fn at(&self, line: usize, column: usize) -> Location {
        Location {
            file: self.file.clone(),
            line,
            column,
        }
    }

    /// Reads a line. An error has its column.
    fn line(&mut self, line: usize, text: &str) -> Result<(), (usize, Problem)> {
        let (content, comment) = split_comment(text);
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            // An empty line separates comments from the next setting.
            let comment = comment.as_deref().or(content.strip_prefix('#'));
            match comment.map(|comment| comment.trim_start_matches([';', '#']).trim()) {
                Some(comment) => self.comments.push(comment.to_owned()),
                None => self.comments.clear(),
            }
            return Ok(());
        }
        let indent = text.chars().take_while(|c| c.is_whitespace()).count();
        let column = indent.saturating_add(1);
        let at = self.at(line, column);
        let setting = |name: &str, value, mut comments: Vec<String>| {
            comments.retain(|comment| !comment.contains('='));
            comments.extend(comment.map(|comment| comment.trim().to_owned()));
            Setting {
                name: name.to_owned(),
                value,
                at,
                comments,
            }
        };
        let comments = std::mem::take(&mut self.comments);
        let expected = |expected, found: &str| {
            let found = found.chars().take(40).collect();
            (column, Problem::Expected { expected, found })
        };
        if let Some(name) = content.strip_prefix('[') {
            let name = name.split_once(']').map(|(name, _)| name.trim());
            let name = name.filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| expected("[name]", content))?;
            let section = setting(name, Value::Bool(false), comments);
            self.root.sections.push((section, Group::default()));
            return Ok(());
        }
        let (name, value) = content
            .split_once('=')
            .filter(|(name, _)| !name.trim().is_empty())
            .ok_or_else(|| expected("name = value or [name]", content))?;
        // `name => value` has the same meaning.
        let value = value.strip_prefix('>').unwrap_or(value).trim();
        let setting = setting(name.trim(), Value::Text(value.to_owned()), comments);
        let group = match self.root.sections.last_mut() {
            Some((_, group)) => group,
            None => &mut self.root.loose,
        };
        put(&mut group.0, setting);
        Ok(())
    }
}

/// Splits a line at the first `;` without a backslash before it, and removes backslashes before
/// others.
fn split_comment(text: &str) -> (String, Option<String>) {
    let mut content = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ';' if content.ends_with('\\') => {
                content.pop();
                content.push(';');
            }
            ';' => return (content, Some(chars.collect())),
            c => content.push(c),
        }
    }
    (content, None)
}
