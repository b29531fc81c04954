//! Typed getters of header fields.

use std::str::FromStr;
use std::time::Duration;

use super::address::{Contacts, NameAddr};
use super::error::{HeaderError, SyntaxError};
use super::fields::{
    CSeq, Event, MediaType, RAck, Reason, Replaces, SessionExpires, SubscriptionState,
};
use super::headers::Headers;
use super::lex::{number, split_first, split_list};
use super::method::Method;
use super::parser::MAX_LIST;
use super::via::Via;

/// Lists of tokens that may be repeated. Their tokens compare without case.
fn has_token(list: &[String], token: &str) -> bool {
    list.iter().any(|item| item.eq_ignore_ascii_case(token))
}

impl Headers {
    /// Parses a header field that may be there once.
    ///
    /// # Errors
    /// The header field is there twice, or does not parse.
    pub fn typed<T: FromStr<Err = SyntaxError>>(
        &self,
        name: &'static str,
    ) -> Result<Option<T>, HeaderError> {
        self.single(name)?
            .map(str::parse)
            .transpose()
            .map_err(|problem| HeaderError { name, problem })
    }

    /// Returns the text of a header field that may be there once.
    ///
    /// # Errors
    /// The header field is there twice.
    pub fn single(&self, name: &'static str) -> Result<Option<&str>, HeaderError> {
        let mut all = self.all(name);
        let first = all.next();
        match all.next() {
            None => Ok(first),
            Some(_) => Err(HeaderError {
                name,
                problem: SyntaxError("is there more than once"),
            }),
        }
    }

    /// Parses the items of a list, over all lines of its header field.
    ///
    /// # Errors
    /// An item does not parse, or there are more than [`MAX_LIST`].
    pub fn typed_list<T: FromStr<Err = SyntaxError>>(
        &self,
        name: &'static str,
    ) -> Result<Vec<T>, HeaderError> {
        let error = |problem| HeaderError { name, problem };
        let mut items = Vec::new();
        for line in self.all(name) {
            for item in split_list(line).map_err(error)? {
                if items.len() >= MAX_LIST {
                    return Err(error(SyntaxError("too many items in a list")));
                }
                items.push(item.parse().map_err(error)?);
            }
        }
        Ok(items)
    }

    /// Returns the items of a list of tokens: Require, Supported, Allow-Events and the like.
    ///
    /// # Errors
    /// The list is malformed.
    pub fn tokens(&self, name: &'static str) -> Result<Vec<String>, HeaderError> {
        let tokens: Vec<Token> = self.typed_list(name)?;
        Ok(tokens.into_iter().map(|token| token.0).collect())
    }

    /// Whether a list of tokens contains `token`, whatever its case. A malformed list contains
    /// nothing.
    #[must_use]
    pub fn has_token(&self, name: &'static str, token: &str) -> bool {
        self.tokens(name).is_ok_and(|list| has_token(&list, token))
    }

    /// Returns the first Via.
    ///
    /// # Errors
    /// It is malformed.
    pub fn via(&self) -> Result<Option<Via>, HeaderError> {
        let error = |problem| HeaderError {
            name: "Via",
            problem,
        };
        let Some(line) = self.get("Via") else {
            return Ok(None);
        };
        let (first, _) = split_first(line, b',').map_err(error)?;
        first.parse().map(Some).map_err(error)
    }

    /// Returns all Via, the newest first.
    ///
    /// # Errors
    /// One is malformed, or there are too many.
    pub fn vias(&self) -> Result<Vec<Via>, HeaderError> {
        self.typed_list("Via")
    }

    /// From.
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn from(&self) -> Result<Option<NameAddr>, HeaderError> {
        self.typed("From")
    }

    /// To.
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn to(&self) -> Result<Option<NameAddr>, HeaderError> {
        self.typed("To")
    }

    /// Call-ID.
    #[must_use]
    pub fn call_id(&self) -> Option<&str> {
        self.get("Call-ID")
    }

    /// CSeq.
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn cseq(&self) -> Result<Option<CSeq>, HeaderError> {
        self.typed("CSeq")
    }

    /// Max-Forwards: 0 to 255.
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn max_forwards(&self) -> Result<Option<u8>, HeaderError> {
        self.number("Max-Forwards")
    }

    /// Contact.
    ///
    /// # Errors
    /// It is malformed; or `*` is not alone.
    pub fn contacts(&self) -> Result<Contacts, HeaderError> {
        let mut lines = self.all("Contact");
        let star = |line: &str| line.trim() == "*";
        if lines.next().is_some_and(star) && lines.next().is_none() {
            return Ok(Contacts::All);
        }
        Ok(Contacts::These(self.typed_list("Contact")?))
    }

    /// Returns the first contact that is an address: the remote target of a dialog.
    ///
    /// # Errors
    /// Contact is malformed.
    pub fn contact(&self) -> Result<Option<NameAddr>, HeaderError> {
        Ok(match self.contacts()? {
            Contacts::All => None,
            Contacts::These(contacts) => contacts.into_iter().next(),
        })
    }

    /// Parses a list of addresses: Route, Record-Route, Path, Service-Route, P-Asserted-Identity,
    /// Alert-Info and others.
    ///
    /// # Errors
    /// One is malformed, or there are too many.
    pub fn addresses(&self, name: &'static str) -> Result<Vec<NameAddr>, HeaderError> {
        self.typed_list(name)
    }

    /// Returns Route, the next hop first.
    ///
    /// # Errors
    /// One is malformed.
    pub fn routes(&self) -> Result<Vec<NameAddr>, HeaderError> {
        self.addresses("Route")
    }

    /// Returns Record-Route as in the message. The route set of a UAC is the reverse.
    ///
    /// # Errors
    /// One is malformed.
    pub fn record_routes(&self) -> Result<Vec<NameAddr>, HeaderError> {
        self.addresses("Record-Route")
    }

    /// Returns a number, without parameters: Expires, Min-Expires, Min-SE, RSeq, Max-Forwards.
    ///
    /// # Errors
    /// It is malformed, too large for `T`, or there twice.
    pub fn number<T: TryFrom<u64>>(&self, name: &'static str) -> Result<Option<T>, HeaderError> {
        self.single(name)?
            .map(|text| number(text.split(';').next().unwrap_or(text)))
            .transpose()
            .map_err(|problem| HeaderError { name, problem })
    }

    /// Expires, in whole seconds.
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn expires(&self) -> Result<Option<Duration>, HeaderError> {
        self.seconds("Expires")
    }

    /// Min-Expires, in whole seconds.
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn min_expires(&self) -> Result<Option<Duration>, HeaderError> {
        self.seconds("Min-Expires")
    }

    /// Min-SE (RFC 4028), in whole seconds.
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn min_se(&self) -> Result<Option<Duration>, HeaderError> {
        self.seconds("Min-SE")
    }

    /// Retry-After, in whole seconds, without its comment and parameters.
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn retry_after(&self) -> Result<Option<Duration>, HeaderError> {
        self.single("Retry-After")?
            .map(|text| number::<u32>(text.split([';', '(']).next().unwrap_or(text)))
            .transpose()
            .map(|seconds| seconds.map(|seconds| Duration::from_secs(seconds.into())))
            .map_err(|problem| HeaderError {
                name: "Retry-After",
                problem,
            })
    }

    fn seconds(&self, name: &'static str) -> Result<Option<Duration>, HeaderError> {
        Ok(self
            .number::<u32>(name)?
            .map(|seconds| Duration::from_secs(seconds.into())))
    }

    /// Session-Expires (RFC 4028).
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn session_expires(&self) -> Result<Option<SessionExpires>, HeaderError> {
        self.typed("Session-Expires")
    }

    /// RSeq (RFC 3262).
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn rseq(&self) -> Result<Option<u32>, HeaderError> {
        self.number("RSeq")
    }

    /// RAck (RFC 3262).
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn rack(&self) -> Result<Option<RAck>, HeaderError> {
        self.typed("RAck")
    }

    /// Event (RFC 6665).
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn event(&self) -> Result<Option<Event>, HeaderError> {
        self.typed("Event")
    }

    /// Subscription-State (RFC 6665).
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn subscription_state(&self) -> Result<Option<SubscriptionState>, HeaderError> {
        self.typed("Subscription-State")
    }

    /// Refer-To (RFC 3515).
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn refer_to(&self) -> Result<Option<NameAddr>, HeaderError> {
        self.typed("Refer-To")
    }

    /// Replaces (RFC 3891).
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn replaces(&self) -> Result<Option<Replaces>, HeaderError> {
        self.typed("Replaces")
    }

    /// Reason (RFC 3326): one for each protocol.
    ///
    /// # Errors
    /// One is malformed.
    pub fn reasons(&self) -> Result<Vec<Reason>, HeaderError> {
        self.typed_list("Reason")
    }

    /// Content-Type.
    ///
    /// # Errors
    /// It is malformed or there twice.
    pub fn content_type(&self) -> Result<Option<MediaType>, HeaderError> {
        self.typed("Content-Type")
    }

    /// Accept: the media types that the peer takes.
    ///
    /// # Errors
    /// One is malformed.
    pub fn accept(&self) -> Result<Vec<MediaType>, HeaderError> {
        self.typed_list("Accept")
    }

    /// Allow.
    ///
    /// # Errors
    /// The list is malformed.
    pub fn allow(&self) -> Result<Vec<Method>, HeaderError> {
        self.typed_list("Allow")
    }
}

struct Token(String);

impl FromStr for Token {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let token = text.split(';').next().unwrap_or(text).trim();
        if super::lex::is_token(token) {
            Ok(Self(token.to_owned()))
        } else {
            Err(SyntaxError("not a token"))
        }
    }
}
