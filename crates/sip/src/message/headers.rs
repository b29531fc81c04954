//! Header fields in their order, as text.

use std::fmt::Display;

use super::StatusCode;
use super::lex::is_token;

/// A header field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    name: String,
    value: String,
}

impl Header {
    /// Returns the name as it was spelled, which may be the compact form.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value, unfolded, without space around it.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// The header fields of a message, in their order and spelling. Lookups ignore the case of a name,
/// and find its full and its compact form.
///
/// The typed getters return `Ok(None)`, or an empty list, if there is no such header field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<Header>);

/// Whether two names mean the same header field: case does not count, and a compact form equals the
/// full one.
#[must_use]
pub fn same_name(one: &str, other: &str) -> bool {
    full_name(one).eq_ignore_ascii_case(full_name(other))
}

/// Returns the full name of a compact form (RFC 3261 section 7.3.3 and the IANA registry).
fn full_name(name: &str) -> &str {
    let &[letter] = name.as_bytes() else {
        return name;
    };
    match letter.to_ascii_lowercase() {
        b'a' => "Accept-Contact",
        b'b' => "Referred-By",
        b'c' => "Content-Type",
        b'd' => "Request-Disposition",
        b'e' => "Content-Encoding",
        b'f' => "From",
        b'i' => "Call-ID",
        b'j' => "Reject-Contact",
        b'k' => "Supported",
        b'l' => "Content-Length",
        b'm' => "Contact",
        b'n' => "Identity-Info",
        b'o' => "Event",
        b'r' => "Refer-To",
        b's' => "Subject",
        b't' => "To",
        b'u' => "Allow-Events",
        b'v' => "Via",
        b'x' => "Session-Expires",
        b'y' => "Identity",
        _ => name,
    }
}

impl Headers {
    /// Makes an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the value of the first header field of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns the values of all header fields of that name, in their order, not split at commas.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |header| same_name(&header.name, name))
            .map(|header| header.value.as_str())
    }

    /// Whether there is a header field of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns all header fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Header> {
        self.0.iter()
    }

    /// The number of header fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a header field at the end.
    ///
    /// Line ends in `value` become spaces. A `name` that is not a token, and Content-Length, are
    /// ignored.
    pub fn push(&mut self, name: &str, value: impl Display) {
        if let Some(header) = header(name, value) {
            self.0.push(header);
        }
    }

    /// Adds a header field before those of the same name, or else before all others.
    pub fn push_first(&mut self, name: &str, value: impl Display) {
        let at = self
            .0
            .iter()
            .position(|header| same_name(&header.name, name))
            .unwrap_or(0);
        if let Some(header) = header(name, value) {
            self.0.insert(at, header);
        }
    }

    /// Replaces all header fields of that name by one: at the place of the first, else at the end.
    pub fn set(&mut self, name: &str, value: impl Display) {
        let Some(header) = header(name, value) else {
            return;
        };
        match self
            .0
            .iter()
            .position(|header| same_name(&header.name, name))
        {
            Some(at) => {
                self.remove(name);
                self.0.insert(at, header);
            }
            None => self.0.push(header),
        }
    }

    /// Removes all header fields of that name.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|header| !same_name(&header.name, name));
    }

    /// Replaces the first Via, alone or in a list.
    pub fn set_first_via(&mut self, via: impl Display) {
        let Some(at) = self
            .0
            .iter()
            .position(|header| same_name(&header.name, "Via"))
        else {
            self.push_first("Via", via);
            return;
        };
        let Some(old) = self.0.get_mut(at) else {
            return;
        };
        // A list that cannot be split was refused when the message was parsed.
        let rest = super::lex::split_first(&old.value, b',')
            .ok()
            .and_then(|(_, rest)| rest);
        let value = match rest {
            Some(rest) => format!("{via}, {}", rest.trim()),
            None => via.to_string(),
        };
        if let Some(header) = header("Via", value) {
            *old = header;
        }
    }

    /// Adds a tag to To, if To has none.
    pub fn set_to_tag(&mut self, tag: &str) {
        if let Ok(Some(to)) = self.to()
            && to.tag().is_none()
            && let Some(value) = self.get("To")
        {
            // The text stays as the peer wrote it: some peers compare it octet by octet.
            let value = format!("{value};tag={tag}");
            self.set("To", value);
        }
    }

    /// Copies the header fields that a response takes from its request.
    pub(super) fn copy_for_response(&mut self, request: &Self, status: StatusCode) {
        for name in ["Via", "From", "To", "Call-ID", "CSeq"] {
            self.0.extend(
                request
                    .0
                    .iter()
                    .filter(|header| same_name(&header.name, name))
                    .map(|header| Header {
                        name: name.to_owned(),
                        value: header.value.clone(),
                    }),
            );
        }
        if status == StatusCode::TRYING {
            self.0.extend(
                request
                    .0
                    .iter()
                    .filter(|header| same_name(&header.name, "Timestamp"))
                    .cloned(),
            );
        }
    }

    /// Adds a parsed header field, which needs no check.
    pub(super) fn push_parsed(&mut self, name: &str, value: String) {
        self.0.push(Header {
            name: name.to_owned(),
            value,
        });
    }
}

fn header(name: &str, value: impl Display) -> Option<Header> {
    if !is_token(name) || same_name(name, "Content-Length") {
        return None;
    }
    let mut value = value.to_string();
    if value.contains(['\r', '\n']) {
        value = value.replace(['\r', '\n'], " ");
    }
    let value = value.trim().to_owned();
    Some(Header {
        name: name.to_owned(),
        value,
    })
}
