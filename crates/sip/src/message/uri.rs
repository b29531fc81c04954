//! URIs (RFC 3261 section 19.1).

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::error::SyntaxError;
use super::lex::{escape_user, is_escaped, number, unescape};
use super::params::Params;
use super::telephone::{self, Marked};

/// A URI. `==` compares the text; [`Uri::matches`] compares as RFC 3261 section 19.1.4 asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Uri {
    /// `sip:` or `sips:`.
    Sip(SipUri),
    /// `tel:` and all others, as text.
    Other {
        /// The scheme, in lower case.
        scheme: String,
        /// The text after the colon.
        rest: String,
    },
}

/// A `sip:` or `sips:` URI. The parts are kept as on the wire, with their escapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SipUri {
    /// Whether it is `sips:`.
    pub secure: bool,
    /// The user part, escaped, without the password. May be empty.
    pub user: Option<String>,
    /// The password, escaped.
    pub password: Option<String>,
    /// The host.
    pub host: Host,
    /// The port, if one is given.
    pub port: Option<u16>,
    /// `;transport=tcp;lr` and the like.
    pub params: Params,
    /// The header fields after the question mark, escaped: `Replaces=…&Subject=…`.
    pub headers: Option<String>,
}

/// A host: a name or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, in lower case.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl Uri {
    /// Whether it is `sip:` or `sips:`.
    #[must_use]
    pub fn as_sip(&self) -> Option<&SipUri> {
        match self {
            Self::Sip(uri) => Some(uri),
            Self::Other { .. } => None,
        }
    }

    /// The scheme, in lower case.
    #[must_use]
    pub fn scheme(&self) -> &str {
        match self {
            Self::Sip(SipUri { secure: false, .. }) => "sip",
            Self::Sip(_) => "sips",
            Self::Other { scheme, .. } => scheme,
        }
    }

    /// Returns the [subscriber](SipUri::subscriber) of a `sip:` URI, or the number of a `tel:` URI.
    /// Returns `None` for other schemes.
    #[must_use]
    pub fn subscriber(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Sip(uri) => uri.subscriber(),
            Self::Other { scheme, rest } if scheme == "tel" => {
                telephone::number(rest, Marked::Yes).map(Cow::Owned)
            }
            Self::Other { .. } => None,
        }
    }

    /// Whether both URIs are equivalent (RFC 3261 section 19.1.4).
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sip(one), Self::Sip(other)) => one.matches(other),
            _ => self == other,
        }
    }
}

impl SipUri {
    /// Makes `sip:host`.
    #[must_use]
    pub fn new(host: Host) -> Self {
        Self {
            secure: false,
            user: None,
            password: None,
            host,
            port: None,
            params: Params::new(),
            headers: None,
        }
    }

    /// Sets the user part, and escapes it.
    #[must_use]
    pub fn with_user(mut self, user: &str) -> Self {
        self.user = Some(escape_user(user));
        self
    }

    /// Sets the port.
    #[must_use]
    pub fn with_port(mut self, port: Option<u16>) -> Self {
        self.port = port;
        self
    }

    /// Returns the user part without escapes.
    #[must_use]
    pub fn user_name(&self) -> Option<Cow<'_, str>> {
        self.user.as_deref().map(unescape)
    }

    /// Returns the name in the user part. A telephone number loses its parameters and visual
    /// separators (RFC 3261 section 19.1.1, RFC 3966): `77-1600;tgrp=g1` with `user=phone` is
    /// 771600. All other text is the name of a user, without escapes.
    #[must_use]
    pub fn subscriber(&self) -> Option<Cow<'_, str>> {
        let user = self.user.as_deref()?;
        let is_phone = self
            .params
            .get("user")
            .is_some_and(|kind| kind.eq_ignore_ascii_case("phone"));
        let marked = if is_phone { Marked::Yes } else { Marked::No };
        let number = telephone::number(user, marked).map(Cow::Owned);
        number.or_else(|| self.user_name())
    }

    /// Returns the `transport` parameter as on the wire.
    #[must_use]
    pub fn transport(&self) -> Option<&str> {
        self.params.get("transport")
    }

    /// Returns the header fields of the URI, without escapes.
    pub fn header_fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        self.headers
            .as_deref()
            .unwrap_or_default()
            .split('&')
            .filter(|field| !field.is_empty())
            .map(|field| {
                let (name, value) = field.split_once('=').unwrap_or((field, ""));
                (unescape(name), unescape(value))
            })
    }

    /// Whether both URIs are equivalent (RFC 3261 section 19.1.4).
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        let same_text = |one: &Option<String>, other: &Option<String>| {
            one.as_deref().map(unescape) == other.as_deref().map(unescape)
        };
        // Parameters that count even if only one of the two has them.
        let always = |name: &str| ["user", "ttl", "method", "maddr", "transport"].contains(&name);
        // The first of repeated parameters counts; the grammar forbids repetitions.
        let fits = |one: &Params, other: &Params| {
            one.iter().all(|(name, _)| {
                let name = unescape(name).to_ascii_lowercase();
                match (one.unescaped(&name).flatten(), other.unescaped(&name)) {
                    (Some(mine), Some(Some(theirs))) => mine.eq_ignore_ascii_case(&theirs),
                    (mine, Some(theirs)) => mine.is_none() && theirs.is_none(),
                    (_, None) => !always(&name),
                }
            })
        };
        let fields = |uri: &Self| {
            let mut fields: Vec<_> = uri
                .header_fields()
                .map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned()))
                .collect();
            fields.sort();
            fields
        };
        self.secure == other.secure
            && same_text(&self.user, &other.user)
            && same_text(&self.password, &other.password)
            && self.host == other.host
            && self.port == other.port
            && fits(&self.params, &other.params)
            && fits(&other.params, &self.params)
            && fields(self) == fields(other)
    }
}

impl FromStr for Uri {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let (scheme, rest) = text
            .split_once(':')
            .ok_or(SyntaxError("URI without a scheme"))?;
        let mut letters = scheme.bytes();
        let starts = letters
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic());
        if !starts || !letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
            return Err(SyntaxError("malformed scheme of a URI"));
        }
        let scheme = scheme.to_ascii_lowercase();
        match scheme.as_str() {
            "sip" | "sips" => parse_sip(scheme == "sips", rest).map(Self::Sip),
            _ if rest.is_empty() => Err(SyntaxError("empty URI")),
            _ if rest
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"<>\"".contains(&byte)) =>
            {
                Ok(Self::Other {
                    scheme,
                    rest: rest.to_owned(),
                })
            }
            _ => Err(SyntaxError("character that may not be in a URI")),
        }
    }
}

fn parse_sip(secure: bool, text: &str) -> Result<SipUri, SyntaxError> {
    let (userinfo, text) = match text.split_once('@') {
        Some((userinfo, text)) => (Some(userinfo), text),
        None => (None, text),
    };
    let (user, password) = match userinfo.map(|userinfo| userinfo.split_once(':').ok_or(userinfo)) {
        None => (None, None),
        Some(Ok((user, password))) => (Some(user), Some(password)),
        Some(Err(user)) => (Some(user), None),
    };
    // '#' and brackets are outside of the grammar, but phones put them into dialled numbers.
    if !user.is_none_or(|user| is_escaped(user, b"&=+$,;?/#[]")) {
        return Err(SyntaxError("malformed user part of a URI"));
    }
    if !password.is_none_or(|password| is_escaped(password, b"&=+$,")) {
        return Err(SyntaxError("malformed password in a URI"));
    }
    let (text, headers) = match text.split_once('?') {
        Some((text, headers)) => (text, Some(headers)),
        None => (text, None),
    };
    if !headers.is_none_or(|headers| !headers.is_empty() && is_escaped(headers, b"[]/?:+$&=")) {
        return Err(SyntaxError("malformed headers in a URI"));
    }
    let (hostport, params) = match text.split_once(';') {
        Some((hostport, params)) => (hostport, Params::parse_uri(params)?),
        None => (text, Params::new()),
    };
    let (host, port) = parse_hostport(hostport)?;
    Ok(SipUri {
        secure,
        user: user.map(str::to_owned),
        password: password.map(str::to_owned),
        host,
        port,
        params,
        headers: headers.map(str::to_owned),
    })
}

/// `host`, `host:port`, `[v6]:port`.
pub(super) fn parse_hostport(text: &str) -> Result<(Host, Option<u16>), SyntaxError> {
    let (host, port) = if text.starts_with('[') {
        let (host, after) = text
            .split_once(']')
            .ok_or(SyntaxError("malformed IPv6 address"))?;
        match after.trim().strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if after.trim().is_empty() => (host, None),
            None => return Err(SyntaxError("text after an IPv6 address")),
        }
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let host = match host.strip_prefix('[') {
        Some(address) => Host::Address(
            address
                .parse::<Ipv6Addr>()
                .map_err(|_| SyntaxError("malformed IPv6 address"))?
                .into(),
        ),
        None => host.trim().parse()?,
    };
    Ok((host, port.map(number).transpose()?))
}

impl FromStr for Host {
    type Err = SyntaxError;

    /// A name, an IPv4 address, or an IPv6 address in brackets or without.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        if text.contains(':') {
            let inner = text
                .strip_prefix('[')
                .and_then(|text| text.strip_suffix(']'))
                .unwrap_or(text);
            let address = inner
                .parse::<Ipv6Addr>()
                .map_err(|_| SyntaxError("malformed IPv6 address"))?;
            return Ok(Self::Address(address.into()));
        }
        // Underscores are not in the grammar, but in names that are used.
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if text.is_empty() || text.len() > 255 || !text.bytes().all(fits) {
            return Err(SyntaxError("malformed host"));
        }
        Ok(Self::Name(text.to_ascii_lowercase()))
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl From<SipUri> for Uri {
    fn from(uri: SipUri) -> Self {
        Self::Sip(uri)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for SipUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.secure { "sips:" } else { "sip:" })?;
        if let Some(user) = &self.user {
            f.write_str(user)?;
            if let Some(password) = &self.password {
                write!(f, ":{password}")?;
            }
            f.write_str("@")?;
        }
        self.host.fmt(f)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        self.params.fmt(f)?;
        if let Some(headers) = &self.headers {
            write!(f, "?{headers}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sip(uri) => uri.fmt(f),
            Self::Other { scheme, rest } => write!(f, "{scheme}:{rest}"),
        }
    }
}
