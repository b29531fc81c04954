//! Values of header fields that have a form of their own.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::SyntaxError;
use super::lex::{is_token, number, split_first};
use super::method::Method;
use super::params::Params;

/// CSeq: the number of a request in its dialog, and its method.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CSeq {
    /// Below 2^31.
    pub number: u32,
    /// The method of the request.
    pub method: Method,
}

/// RAck (RFC 3262 section 7.2): which provisional response a PRACK acknowledges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RAck {
    /// RSeq of the response.
    pub rseq: u32,
    /// CSeq of the response.
    pub cseq: CSeq,
}

/// A media type: Content-Type, an item of Accept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MediaType {
    /// Type and subtype in lower case: `application/sdp`; `*/*` in Accept.
    pub essence: String,
    /// `charset`, `boundary`, `q` and others.
    pub params: Params,
}

/// The side that refreshes a session (RFC 4028).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refresher {
    /// The sender of the request.
    Uac,
    /// The receiver of the request.
    Uas,
}

/// Session-Expires (RFC 4028 section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionExpires {
    /// The session interval, in whole seconds.
    pub interval: Duration,
    /// The side that refreshes, if the header field names one.
    pub refresher: Option<Refresher>,
}

/// Event (RFC 6665 section 8.2.1).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    /// The event package, with its templates: `presence`, `refer`.
    pub package: String,
    /// `id` and others.
    pub params: Params,
}

/// Subscription-State (RFC 6665 section 8.2.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubscriptionState {
    /// `active`, `pending`, `terminated` or another token, in lower case.
    pub state: String,
    /// `expires`, `reason`, `retry-after`.
    pub params: Params,
}

/// Replaces (RFC 3891): the dialog that the new call replaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Replaces {
    /// The Call-ID.
    pub call_id: String,
    /// The tag of the receiver.
    pub to_tag: String,
    /// The tag of its peer.
    pub from_tag: String,
    /// Whether only an early dialog may be replaced.
    pub early_only: bool,
}

/// Reason (RFC 3326).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reason {
    /// `SIP`, `Q.850` or another token.
    pub protocol: String,
    /// `cause` and `text`.
    pub params: Params,
}

impl Reason {
    /// Returns the cause, if it is a number.
    #[must_use]
    pub fn cause(&self) -> Option<u16> {
        self.params.get("cause")?.parse().ok()
    }

    /// Returns the text without quotes.
    #[must_use]
    pub fn text(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.params.unquoted("text")
    }
}

impl SubscriptionState {
    /// Returns the interval until the subscription expires.
    #[must_use]
    pub fn expires(&self) -> Option<Duration> {
        self.params
            .get("expires")?
            .parse()
            .ok()
            .map(|seconds: u32| Duration::from_secs(seconds.into()))
    }
}

/// Splits a value into its start and its parameters.
fn with_params(text: &str) -> Result<(&str, Params), SyntaxError> {
    let (start, params) = split_first(text, b';')?;
    Ok((
        start.trim(),
        params.map_or(Ok(Params::new()), Params::parse)?,
    ))
}

fn token_with_params(text: &str) -> Result<(&str, Params), SyntaxError> {
    let (token, params) = with_params(text)?;
    if is_token(token) {
        Ok((token, params))
    } else {
        Err(SyntaxError("not a token"))
    }
}

impl FromStr for CSeq {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let mut parts = text.split_ascii_whitespace();
        let (Some(digits), Some(method), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(SyntaxError("not a number and a method"));
        };
        let number: u32 = number(digits)?;
        if number >= 1 << 31 {
            return Err(SyntaxError("number is too large"));
        }
        Ok(Self {
            number,
            method: method.parse()?,
        })
    }
}

impl FromStr for RAck {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let (rseq, cseq) = text
            .trim()
            .split_once(|char: char| char.is_ascii_whitespace())
            .ok_or(SyntaxError("not two numbers and a method"))?;
        Ok(Self {
            rseq: number(rseq)?,
            cseq: cseq.parse()?,
        })
    }
}

impl FromStr for MediaType {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let (essence, params) = with_params(text)?;
        let (kind, subtype) = essence
            .split_once('/')
            .ok_or(SyntaxError("not a media type"))?;
        let (kind, subtype) = (kind.trim(), subtype.trim());
        if !is_token(kind) || !is_token(subtype) {
            return Err(SyntaxError("not a media type"));
        }
        Ok(Self {
            essence: format!("{kind}/{subtype}").to_ascii_lowercase(),
            params,
        })
    }
}

impl FromStr for SessionExpires {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let (seconds, params) = with_params(text)?;
        let refresher = match params.get("refresher") {
            Some(who) if who.eq_ignore_ascii_case("uac") => Some(Refresher::Uac),
            Some(who) if who.eq_ignore_ascii_case("uas") => Some(Refresher::Uas),
            Some(_) => return Err(SyntaxError("refresher is neither uac nor uas")),
            None => None,
        };
        Ok(Self {
            interval: Duration::from_secs(number::<u32>(seconds)?.into()),
            refresher,
        })
    }
}

impl FromStr for Event {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let (package, params) = token_with_params(text)?;
        Ok(Self {
            package: package.to_owned(),
            params,
        })
    }
}

impl FromStr for SubscriptionState {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let (state, params) = token_with_params(text)?;
        Ok(Self {
            state: state.to_ascii_lowercase(),
            params,
        })
    }
}

impl FromStr for Replaces {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let (call_id, params) = with_params(text)?;
        let tag = |name| {
            params
                .get(name)
                .map(str::to_owned)
                .ok_or(SyntaxError("Replaces without both tags"))
        };
        if call_id.is_empty() {
            return Err(SyntaxError("Replaces without a Call-ID"));
        }
        Ok(Self {
            call_id: call_id.to_owned(),
            to_tag: tag("to-tag")?,
            from_tag: tag("from-tag")?,
            early_only: params.has("early-only"),
        })
    }
}

impl FromStr for Reason {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let (protocol, params) = token_with_params(text)?;
        Ok(Self {
            protocol: protocol.to_owned(),
            params,
        })
    }
}

impl fmt::Display for CSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.method)
    }
}

impl fmt::Display for RAck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.rseq, self.cseq)
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.essence, self.params)
    }
}

impl fmt::Display for SessionExpires {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.interval.as_secs())?;
        match self.refresher {
            Some(Refresher::Uac) => f.write_str(";refresher=uac"),
            Some(Refresher::Uas) => f.write_str(";refresher=uas"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.package, self.params)
    }
}

impl fmt::Display for SubscriptionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.state, self.params)
    }
}

impl fmt::Display for Replaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{};to-tag={};from-tag={}",
            self.call_id, self.to_tag, self.from_tag
        )?;
        if self.early_only {
            f.write_str(";early-only")
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.protocol, self.params)
    }
}
