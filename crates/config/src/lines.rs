//! The places of the keys of a file.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The lines of the keys of a file.
#[derive(Debug)]
pub struct Lines<'t> {
    text: &'t str,
    table: Spanned<DeTable<'t>>,
}

impl<'t> Lines<'t> {
    /// Returns the places in a text. The places of an invalid file are incomplete.
    pub fn of(text: &'t str) -> Self {
        let (table, _) = DeTable::parse_recoverable(text);
        Lines { text, table }
    }

    /// Returns the line of a key with its section, such as `http.port` or
    /// `videoroom.room[1].record`, counted from 1. An absent key has the line of its section, and
    /// without that section `None`.
    pub fn line(&self, key: &str) -> Option<usize> {
        let mut table = self.table.get_ref();
        let mut found = None;
        for part in key.split('.') {
            let (name, index) = match part.strip_suffix(']').and_then(|it| it.split_once('[')) {
                Some((name, index)) => (name, index.parse::<usize>().ok()),
                None => (part, None),
            };
            let Some(mut value) = table.get(name) else {
                break;
            };
            if let Some(index) = index {
                match value.get_ref().as_array().and_then(|list| list.get(index)) {
                    Some(entry) => value = entry,
                    None => break,
                }
            }
            found = Some(value.span());
            match value.get_ref() {
                DeValue::Table(inner) => table = inner,
                _ => break,
            }
        }
        let before = self.text.get(..found?.start).unwrap_or(self.text);
        Some(1 + before.bytes().filter(|b| *b == b'\n').count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_sections_and_lists() {
        let text = "[http]\nport = 1\n\nbind = [\n\"::1\"]\n[[room]]\nid = 1\n[[room]]\nid = 2\n\
                    [[room.media]]\nport = 3\n[events.file]\npath = \"x\"\n";
        let lines = Lines::of(text);
        for (key, line) in [
            ("http", Some(1)),
            ("http.port", Some(2)),
            ("http.bind", Some(4)),
            ("http.missing", Some(1)),
            ("room[0].id", Some(7)),
            ("room[1].id", Some(9)),
            ("room[1].missing", Some(8)),
            ("room[1].media[0].port", Some(11)),
            ("room[2].id", None),
            ("events.file.path", Some(13)),
            ("tls.key", None),
            ("", None),
        ] {
            assert_eq!(lines.line(key), line, "{key}");
        }
        assert_eq!(Lines::of("[http\nport =").line("http.port"), None);
    }
}
