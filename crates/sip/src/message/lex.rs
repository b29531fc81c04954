//! Tokens, quoted strings, lists and escapes (RFC 3261 section 25).

use std::borrow::Cow;
use std::fmt::Write as _;

use super::error::SyntaxError;
use super::parser::MAX_LIST;

/// Whether `text` is a token (RFC 3261 section 25.1).
#[must_use]
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-.!%*_+`'~".contains(&byte)
}

/// Splits a list at the commas outside of quotes and angle brackets.
///
/// # Errors
/// A quote or bracket that does not end; an empty item; more than [`MAX_LIST`] items.
pub fn split_list(text: &str) -> Result<Vec<&str>, SyntaxError> {
    let mut items = Vec::new();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Ok(items);
    }
    loop {
        let (item, after) = split_first(rest, b',')?;
        let item = item.trim();
        if item.is_empty() {
            return Err(SyntaxError("empty item in a list"));
        }
        if items.len() >= MAX_LIST {
            return Err(SyntaxError("too many items in a list"));
        }
        items.push(item);
        match after {
            Some(after) => rest = after,
            None => return Ok(items),
        }
    }
}

/// Splits `text` at the first `separator` outside of quotes and angle brackets.
pub(super) fn split_first(text: &str, separator: u8) -> Result<(&str, Option<&str>), SyntaxError> {
    let mut quoted = false;
    let mut escaped = false;
    let mut bracketed = false;
    for (at, byte) in text.bytes().enumerate() {
        if escaped {
            escaped = false;
        } else if quoted {
            match byte {
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
        } else if byte == separator && !bracketed {
            let (before, from) = text.split_at(at);
            return Ok((before, from.get(1..)));
        } else {
            match byte {
                b'"' => quoted = true,
                b'<' => bracketed = true,
                b'>' => bracketed = false,
                _ => {}
            }
        }
    }
    if quoted {
        return Err(SyntaxError("quoted string does not end"));
    }
    if bracketed {
        return Err(SyntaxError("angle bracket is not closed"));
    }
    Ok((text, None))
}

/// Returns the quoted string at the start of `text`, with its quotes, and the rest.
pub(super) fn take_quoted(text: &str) -> Result<(&str, &str), SyntaxError> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        if escaped {
            escaped = false;
        } else if byte == b'\\' {
            escaped = true;
        } else if byte == b'"' {
            return text
                .split_at_checked(at.saturating_add(1))
                .ok_or(SyntaxError("quoted string does not end"));
        }
    }
    Err(SyntaxError("quoted string does not end"))
}

/// Removes the quotes around `text` and the escapes in it, if it is quoted.
#[must_use]
pub fn unquote(text: &str) -> Cow<'_, str> {
    let Some(inner) = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    else {
        return Cow::Borrowed(text);
    };
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut plain = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        plain.push(if char == '\\' {
            chars.next().unwrap_or('\\')
        } else {
            char
        });
    }
    Cow::Owned(plain)
}

/// Quotes `text`. Line ends become spaces.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len().saturating_add(2));
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '\r' | '\n' => quoted.push(' '),
            _ => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

/// Replaces the %-escapes of `text`. Octets that are not UTF-8 become U+FFFD; broken escapes stay.
#[must_use]
pub fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        match (byte, hex_pair(after)) {
            (b'%', Some((value, after))) => {
                plain.push(value);
                rest = after;
            }
            _ => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&plain).into_owned())
}

fn hex_pair(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (&[high, low], rest) = bytes.split_first_chunk::<2>()?;
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    Some((digit(high)? << 4 | digit(low)?, rest))
}

/// Escapes all characters that may not stand in the user part of a URI.
#[must_use]
pub fn escape_user(text: &str) -> String {
    escape(text, b"&=+$,;?/")
}

/// Escapes all characters but the unreserved ones and those of `also`.
pub(super) fn escape(text: &str, also: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_unreserved(byte) || also.contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte)
}

/// Whether `text` consists of unreserved characters, characters of `also`, and whole escapes.
pub(super) fn is_escaped(text: &str, also: &[u8]) -> bool {
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = if byte == b'%' {
            match hex_pair(after) {
                Some((_, after)) => after,
                None => return false,
            }
        } else if is_unreserved(byte) || also.contains(&byte) {
            after
        } else {
            return false;
        };
    }
    true
}

/// Reads a number of digits only. Leading zeros are allowed.
pub(super) fn number<T: TryFrom<u64>>(text: &str) -> Result<T, SyntaxError> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SyntaxError("not a number"));
    }
    let number: u64 = text
        .parse()
        .map_err(|_| SyntaxError("number is too large"))?;
    T::try_from(number).map_err(|_| SyntaxError("number is too large"))
}
