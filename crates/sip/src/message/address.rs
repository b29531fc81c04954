//! Addresses of header fields: From, To, Contact, Route and others (RFC 3261 section 20.10).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::error::SyntaxError;
use super::lex::{is_token, quote, take_quoted, unquote};
use super::params::Params;
use super::uri::Uri;

/// A URI with a display name and parameters: `"Bob" <sip:bob@example.org>;tag=a`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NameAddr {
    /// The display name as on the wire, with its quotes; empty if there is none.
    pub display: String,
    /// The URI.
    pub uri: Uri,
    /// The parameters of the header field, not those of the URI.
    pub params: Params,
}

/// The value of the Contact header fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contacts {
    /// `*`: all that are registered.
    All,
    /// The contacts in their order. The list may be empty.
    These(Vec<NameAddr>),
}

impl NameAddr {
    /// Makes an address without a display name and parameters.
    #[must_use]
    pub fn new(uri: impl Into<Uri>) -> Self {
        Self {
            display: String::new(),
            uri: uri.into(),
            params: Params::new(),
        }
    }

    /// Sets the display name, which gets quoted. An empty name sets none.
    #[must_use]
    pub fn with_display(mut self, name: &str) -> Self {
        self.display = if name.is_empty() {
            String::new()
        } else {
            quote(name)
        };
        self
    }

    /// Sets the tag.
    #[must_use]
    pub fn with_tag(mut self, tag: &str) -> Self {
        self.params.set("tag", Some(tag));
        self
    }

    /// Returns the tag.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.params.get("tag")
    }

    /// Returns the display name without quotes.
    #[must_use]
    pub fn display_name(&self) -> Cow<'_, str> {
        unquote(&self.display)
    }
}

impl FromStr for NameAddr {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let text = text.trim();
        let (display, rest) = if text.starts_with('"') {
            let (display, rest) = take_quoted(text)?;
            let rest = rest.trim_start();
            if !rest.starts_with('<') {
                return Err(SyntaxError("no URI in angle brackets after a display name"));
            }
            (display, rest)
        } else {
            match text.find('<').and_then(|at| text.split_at_checked(at)) {
                Some((display, rest)) => (display.trim(), rest),
                None => ("", text),
            }
        };
        if !display.starts_with('"') && !display.split_ascii_whitespace().all(is_display_word) {
            return Err(SyntaxError("display name should be quoted"));
        }
        let (uri, params) = match rest.strip_prefix('<') {
            Some(rest) => {
                let (uri, after) = rest
                    .split_once('>')
                    .ok_or(SyntaxError("angle bracket is not closed"))?;
                (uri.trim(), after.trim_start())
            }
            None => {
                // Without brackets, all parameters are those of the header field.
                let end = rest.find(';').unwrap_or(rest.len());
                let (uri, params) = rest.split_at_checked(end).unwrap_or((rest, ""));
                if uri.contains(['?', ',']) {
                    return Err(SyntaxError("URI should be in angle brackets"));
                }
                (uri.trim_end(), params)
            }
        };
        let params = match params.strip_prefix(';') {
            Some(params) => Params::parse(params)?,
            None if params.is_empty() => Params::new(),
            None => return Err(SyntaxError("text after a URI")),
        };
        Ok(Self {
            display: display.to_owned(),
            uri: uri.parse()?,
            params,
        })
    }
}

/// Whether the text is a token. Characters beyond ASCII are accepted, since phones send them
/// unquoted.
fn is_display_word(word: &str) -> bool {
    word.split(|char: char| !char.is_ascii())
        .all(|part| part.is_empty() || is_token(part))
}

impl fmt::Display for NameAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.display.is_empty() {
            write!(f, "{} ", self.display)?;
        }
        write!(f, "<{}>{}", self.uri, self.params)
    }
}
