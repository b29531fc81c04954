//! Prepares a formatted line for writing: blanks secrets, escapes special characters and cuts it.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::{Map, Value};

use super::secrets::{BLANK, is_secret_name, redact};

/// The longest line, in bytes, before characters are escaped.
const MAX_LINE: usize = 8 * 1024;
/// The longest text in an overlong line of JSON, in bytes.
const MAX_TEXT: usize = 1_024;

/// The format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// For people. With `colors` the formatter adds escape sequences, and escapes those of texts.
    Text { colors: bool },
    /// For machines.
    Json,
}

/// Appends the line `raw` to `out` in its written form, with one line break at its end.
pub(super) fn finish(raw: &[u8], form: Form, out: &mut String) {
    let raw = String::from_utf8_lossy(raw);
    let raw = raw.strip_suffix('\n').unwrap_or(&raw);
    let line = match (form, serde_json::from_str(raw)) {
        (Form::Json, Ok(Value::Object(members))) => Cow::Owned(object(members, raw.len())),
        _ => {
            let line = redact(raw);
            match line.len() <= MAX_LINE {
                true => line,
                false => Cow::Owned(cut(&line, MAX_LINE)),
            }
        }
    };
    escape(&line, form, out);
    out.push('\n');
}

/// Returns the first `most` bytes of a text, and how many are missing.
fn cut(text: &str, most: usize) -> String {
    let mut end = most;
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    let (kept, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    format!("{kept}… and {} bytes more", rest.len())
}

/// Returns a line of JSON without secrets. Cuts texts of an overlong line.
fn object(mut members: Map<String, Value>, len: usize) -> String {
    for (name, value) in &mut members {
        clean(name, value, len > MAX_LINE);
    }
    Value::from(members).to_string()
}

/// Blanks the secrets of the member `name`, and cuts its texts if `cuts`.
fn clean(name: &str, value: &mut Value, cuts: bool) {
    match value {
        _ if is_secret_name(name) => *value = Value::from(BLANK),
        Value::String(text) => {
            if let Cow::Owned(redacted) = redact(text) {
                *text = redacted;
            }
            if cuts && text.len() > MAX_TEXT {
                *text = cut(text, MAX_TEXT);
            }
        }
        // The fields of spans.
        Value::Object(members) => members
            .iter_mut()
            .for_each(|(name, value)| clean(name, value, cuts)),
        Value::Array(values) => values.iter_mut().for_each(|value| clean("", value, cuts)),
        _ => {}
    }
}

/// Appends `line` to `out`. Escapes characters that would end the line, control a terminal or
/// change the direction of text.
fn escape(line: &str, form: Form, out: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find(is_special) {
        let (plain, special) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(plain);
        let mut after = special.chars();
        let Some(c) = after.next() else {
            return;
        };
        rest = after.as_str();
        // Writing to a string cannot fail.
        match form {
            Form::Text { colors: true } if c == '\x1b' => match color(rest) {
                Some((sequence, left)) => {
                    out.push(c);
                    out.push_str(sequence);
                    rest = left;
                }
                None => out.push_str("\\x1b"),
            },
            Form::Text { .. } => out.extend(c.escape_default()),
            // Such characters occur only in texts, where JSON allows this escape.
            Form::Json => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push_str(rest);
}

/// Splits the text after an ESC behind the colour sequence at its start. Returns `None` if there is
/// no such sequence.
fn color(text: &str) -> Option<(&str, &str)> {
    let codes = text.strip_prefix('[')?;
    let len = codes.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    codes.get(len..)?.strip_prefix('m')?;
    text.split_at_checked(len + 2)
}

/// Whether a character is a control (C0, DEL, C1), a separator of lines or paragraphs, a mark of
/// direction, or invisible.
fn is_special(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]
    use super::*;

    const TEXT: Form = Form::Text { colors: false };
    const COLORS: Form = Form::Text { colors: true };

    fn finished(raw: &str, form: Form) -> String {
        let mut out = String::new();
        finish(raw.as_bytes(), form, &mut out);
        out
    }

    #[test]
    fn a_text_cannot_begin_another_line() {
        let forged = "room created room=a\nERROR b\r\u{85}c\u{2028}d\u{2029}e\u{b}f\u{c}g\0\n";
        let text = finished(forged, TEXT);
        assert_eq!(
            text,
            "room created room=a\\nERROR b\\r\\u{85}c\\u{2028}d\\u{2029}e\\u{b}f\\u{c}g\\u{0}\n"
        );
        let json = finished("{\"room\":\"a\u{85}b\u{2028}c\u{e0041}\"}\n", Form::Json);
        assert_eq!(json, "{\"room\":\"a\\u0085b\\u2028c\\udb40\\udc41\"}\n");
        let read: Value = serde_json::from_str(&json).unwrap_or_default();
        assert_eq!(read["room"], "a\u{85}b\u{2028}c\u{e0041}");
    }

    #[test]
    fn a_text_cannot_turn_the_line_around() {
        for mark in ['\u{202e}', '\u{2066}', '\u{200f}', '\u{61c}', '\u{feff}'] {
            let line = finished(&format!("name={mark}abc"), TEXT);
            assert!(!line.contains(mark), "{line:?}");
            assert!(line.ends_with("abc\n"), "{line:?}");
        }
    }

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        let title = "name=\x1b]0;owned\x07 \x1b[2J \u{9b}2J \x1bc";
        for form in [TEXT, COLORS] {
            let line = finished(title, form);
            assert!(line.trim_end().chars().all(|c| !c.is_control()), "{line:?}");
        }
    }

    #[test]
    fn colours_stay() {
        let line = "\x1b[32m INFO\x1b[0m \x1b[1;3mroom\x1b[0m\x1b[2m=\x1b[0ma\n";
        assert_eq!(finished(line, COLORS), line);
    }

    #[test]
    fn what_people_write_stays() {
        let line = "room=Müller 日本語 👩‍👩‍👧 שלום \"a\\nb\"\n";
        assert_eq!(finished(line, TEXT), line);
    }

    #[test]
    fn a_line_is_as_long_as_it_may_be() {
        let long = "ü".repeat(1_000_000);
        let text = finished(&long, TEXT);
        assert!(text.len() < MAX_LINE + 100, "{}", text.len());
        assert!(text.ends_with("… and 1991808 bytes more\n"), "{text}");
        let json = format!("{{\"level\":\"INFO\",\"message\":\"{long}\",\"n\":1}}");
        let json = finished(&json, Form::Json);
        assert!(json.len() < MAX_LINE, "{}", json.len());
        let read: Value = serde_json::from_str(&json).unwrap_or_default();
        assert_eq!((&read["level"], &read["n"]), (&"INFO".into(), &1.into()));
    }

    #[test]
    fn a_line_of_json_stays_json_without_its_secrets() {
        let line = r#"{"pin":1234,"message":"a=ice-pwd:abc\r\nCookie: a=b\r\nx","room":"7"}"#;
        let blank = r#"{"pin":"***","message":"a=ice-pwd:***\r\nCookie: ***\r\nx","room":"7"}"#;
        assert_eq!(finished(line, Form::Json), format!("{blank}\n"));
    }
}
