//! Via (RFC 3261 section 20.42).

use std::fmt;
use std::str::FromStr;

use super::error::SyntaxError;
use super::lex::{is_token, split_first};
use super::params::Params;
use super::uri::{Host, parse_hostport};

/// The start of a branch that is unique in space and time (RFC 3261 section 8.1.1.7).
const COOKIE: &str = "z9hG4bK";

/// One hop of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Via {
    /// The transport as on the wire: `UDP`, `TCP`, `TLS`, `WS`, `WSS`, or another token.
    pub transport: String,
    /// The host of the sender.
    pub host: Host,
    /// The port for the response, if there is one.
    pub port: Option<u16>,
    /// `branch`, `rport`, `received` and others.
    pub params: Params,
}

impl Via {
    /// Makes a Via with `branch`, and with `rport`, so that the response passes NAT (RFC 3581).
    #[must_use]
    pub fn new(transport: &str, host: Host, port: Option<u16>, branch: &str) -> Self {
        let mut params = Params::new();
        params.set("branch", Some(branch));
        params.set("rport", None);
        Self {
            transport: transport.to_owned(),
            host,
            port,
            params,
        }
    }

    /// Returns the branch.
    #[must_use]
    pub fn branch(&self) -> Option<&str> {
        self.params.get("branch")
    }

    /// Returns the branch if it is unique: longer than its prefix `z9hG4bK`.
    #[must_use]
    pub fn unique_branch(&self) -> Option<&str> {
        self.branch().filter(|branch| {
            branch.len() > COOKIE.len()
                && branch
                    .get(..COOKIE.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(COOKIE))
        })
    }

    /// Returns `sent-by`: host and port as the sender gave them.
    #[must_use]
    pub fn sent_by(&self) -> (&Host, Option<u16>) {
        (&self.host, self.port)
    }

    /// Returns the `received` address. Brackets around an IPv6 address are accepted.
    #[must_use]
    pub fn received(&self) -> Option<std::net::IpAddr> {
        let text = self.params.get("received")?;
        text.trim_start_matches('[')
            .trim_end_matches(']')
            .parse()
            .ok()
    }

    /// Returns the number of `rport`, if it has one.
    #[must_use]
    pub fn rport(&self) -> Option<u16> {
        self.params.get("rport")?.parse().ok()
    }
}

impl FromStr for Via {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let (start, params) = split_first(text.trim(), b';')?;
        let mut parts = start.splitn(3, '/');
        let mut part = || {
            parts
                .next()
                .map(str::trim)
                .ok_or(SyntaxError("malformed protocol"))
        };
        let (protocol, version, rest) = (part()?, part()?, part()?);
        if !protocol.eq_ignore_ascii_case("SIP") || version != "2.0" {
            return Err(SyntaxError("protocol is not SIP/2.0"));
        }
        let (transport, sent_by) = rest
            .split_once(|char: char| char.is_ascii_whitespace())
            .ok_or(SyntaxError("no sent-by"))?;
        if !is_token(transport) {
            return Err(SyntaxError("transport is not a token"));
        }
        let (host, port) = parse_hostport(sent_by.trim())?;
        let params = params.map_or(Ok(Params::new()), Params::parse)?;
        Ok(Self {
            transport: transport.to_owned(),
            host,
            port,
            params,
        })
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SIP/2.0/{} {}", self.transport, self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        self.params.fmt(f)
    }
}
