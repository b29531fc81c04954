//! Assigns comments to settings.
//!
//! A comment belongs to a setting if it is on the same line, continues such a comment below and
//! further to the right, or is directly above. Settings that were commented out, as in Janus's
//! samples, do not count as comments.

use std::collections::BTreeMap;

use super::{Group, Value};

/// A comment of one line. One with several lines is several of these.
#[derive(Debug, Clone)]
pub(super) struct Comment {
    pub(super) text: String,
    /// The columns before it. A tab counts as 4.
    pub(super) indent: usize,
    /// Whether it is alone in its line.
    pub(super) is_alone: bool,
    /// The indent of its line.
    pub(super) line_indent: usize,
}

/// The comments of a file by line.
pub(super) type Lines = BTreeMap<usize, Comment>;

/// Assigns comments to each setting. `files` has the comments of each file.
pub(super) fn attach(group: &mut Group, files: &BTreeMap<std::sync::Arc<std::path::Path>, Lines>) {
    for setting in &mut group.0 {
        if let Some(lines) = files.get(&setting.at.file) {
            setting.comments = of_line(setting.at.line, lines);
        }
        attach_within(&mut setting.value, files);
    }
}

fn attach_within(value: &mut Value, files: &BTreeMap<std::sync::Arc<std::path::Path>, Lines>) {
    match value {
        Value::Group(group) => attach(group, files),
        Value::List(values) => values
            .iter_mut()
            .for_each(|value| attach_within(value, files)),
        _ => {}
    }
}

fn of_line(line: usize, lines: &Lines) -> Vec<String> {
    let mut found = above(line, lines);
    if let Some(beside) = lines.get(&line).filter(|comment| !comment.is_alone) {
        found.push(beside.text.clone());
        found.extend(
            run(line.saturating_add(1), lines)
                .take_while(|comment| comment.indent > beside.line_indent)
                .map(|comment| comment.text.clone()),
        );
    }
    let is_empty = |text: &&String| text.is_empty();
    let blank = found.iter().take_while(is_empty).count();
    found.drain(..blank);
    while found.last().is_some_and(String::is_empty) {
        found.pop();
    }
    found
}

/// Returns the consecutive lines with only a comment, from this line down.
fn run(from: usize, lines: &Lines) -> impl Iterator<Item = &Comment> {
    let numbered = (from..).zip(lines.range(from..));
    numbered
        .take_while(|(expected, (line, comment))| expected == *line && comment.is_alone)
        .map(|(_, (_, comment))| comment)
}

/// Returns the comments directly above a line.
fn above(line: usize, lines: &Lines) -> Vec<String> {
    let mut first = line;
    for (number, comment) in lines.range(..line).rev() {
        if number.saturating_add(1) != first || !comment.is_alone {
            break;
        }
        first = *number;
    }
    // A comment further to the right than the owner of the previous comment continues that.
    let before = first.checked_sub(1).and_then(|before| lines.get(&before));
    let mut owner = before.map(|comment| comment.line_indent);
    let mut found = Vec::new();
    for comment in lines.range(first..line).map(|(_, comment)| comment) {
        if is_setting(&comment.text) {
            found.clear();
            owner = Some(comment.indent);
        } else if owner.is_none_or(|owner| comment.indent <= owner) {
            owner = None;
            if !is_punctuation(&comment.text) {
                found.push(comment.text.clone());
            }
        }
    }
    found
}

/// Returns whether a comment is a setting that was commented out: `name = …` or `name: {`.
fn is_setting(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    let rest = text.trim_start_matches(is_of_name);
    let name = text.len().saturating_sub(rest.len());
    let rest = rest.trim_start();
    name > 0
        && (rest.starts_with('=')
            || rest
                .strip_prefix(':')
                .is_some_and(|rest| rest.trim() == "{"))
}

/// Returns whether a comment has only brackets: the end of a group that was commented out.
fn is_punctuation(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| "{}()[];,".contains(c) || c.is_whitespace())
}
