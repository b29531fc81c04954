//! Parameters of header fields and URIs.

use std::borrow::Cow;
use std::fmt;

use super::error::SyntaxError;
use super::lex::{
    is_escaped, is_token, is_token_byte, split_first, take_quoted, unescape, unquote,
};
use super::parser::MAX_LIST;

/// Parameters in their order: `;name=value;flag`. Lookups ignore the case of a name.
///
/// Values are kept as on the wire: quoted in header fields, escaped in URIs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Params(Vec<(String, Option<String>)>);

impl Params {
    /// Makes an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Whether there is a parameter of that name, with or without a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns the value of a parameter as on the wire, or `None` if it is absent or has no value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name).and_then(|(_, value)| value.as_deref())
    }

    /// Returns the value of a header field's parameter without quotes.
    #[must_use]
    pub fn unquoted(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).map(unquote)
    }

    /// Sets a parameter, or adds it at the end. The value is written as it is, so the caller quotes
    /// it where needed ([`super::quote`]).
    pub fn set(&mut self, name: &str, value: Option<&str>) {
        let value = value.map(str::to_owned);
        match self
            .0
            .iter_mut()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
        {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Removes a parameter.
    pub fn remove(&mut self, name: &str) {
        self.0
            .retain(|(other, _)| !other.eq_ignore_ascii_case(name));
    }

    /// Returns all parameters in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_deref()))
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, name: &str) -> Option<&(String, Option<String>)> {
        self.0
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    /// Parses the parameters of a header field: the text after the first semicolon.
    pub(super) fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut params = Self::new();
        let mut rest = Some(text);
        while let Some(text) = rest {
            let (param, after) = split_first(text, b';')?;
            let (name, value) = match param.split_once('=') {
                Some((name, value)) => (name.trim(), Some(header_value(value.trim())?)),
                None => (param.trim(), None),
            };
            if !is_token(name) {
                return Err(SyntaxError("name of a parameter is not a token"));
            }
            params.add(name, value)?;
            rest = after;
        }
        Ok(params)
    }

    /// Parses the parameters of a URI: the text after the first semicolon.
    pub(super) fn parse_uri(text: &str) -> Result<Self, SyntaxError> {
        let mut params = Self::new();
        for param in text.split(';') {
            let (name, value) = match param.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (param, None),
            };
            if name.is_empty()
                || !is_escaped(name, URI_ALSO)
                || !value.is_none_or(|value| is_escaped(value, URI_ALSO))
            {
                return Err(SyntaxError("malformed parameter of a URI"));
            }
            params.add(name, value)?;
        }
        Ok(params)
    }

    fn add(&mut self, name: &str, value: Option<&str>) -> Result<(), SyntaxError> {
        if self.0.len() >= MAX_LIST {
            return Err(SyntaxError("too many parameters"));
        }
        self.0.push((name.to_owned(), value.map(str::to_owned)));
        Ok(())
    }

    /// Returns the value of a URI's parameter without escapes. Its name may be escaped.
    pub(super) fn unescaped(&self, name: &str) -> Option<Option<Cow<'_, str>>> {
        let (_, value) = self
            .0
            .iter()
            .find(|(other, _)| unescape(other).eq_ignore_ascii_case(name))?;
        Some(value.as_deref().map(unescape))
    }
}

/// Characters that may stand unescaped in a parameter of a URI, besides unreserved ones.
const URI_ALSO: &[u8] = b"[]/:&+$";

/// Whether the text may be a value: a token, an address, a quoted string, or other text without
/// spaces and controls.
fn header_value(text: &str) -> Result<&str, SyntaxError> {
    if text.starts_with('"') {
        let (quoted, rest) = take_quoted(text)?;
        return if rest.is_empty() {
            Ok(quoted)
        } else {
            Err(SyntaxError("text after a quoted string"))
        };
    }
    let fits =
        |byte: u8| is_token_byte(byte) || b"[]:/@=&$()?{}|^#".contains(&byte) || byte >= 0x80;
    if text.bytes().all(fits) {
        Ok(text)
    } else {
        Err(SyntaxError("malformed value of a parameter"))
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.0 {
            match value {
                Some(value) => write!(f, ";{name}={value}")?,
                None => write!(f, ";{name}")?,
            }
        }
        Ok(())
    }
}
