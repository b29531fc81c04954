//! Challenges, and the parameters of challenges and answers.

use crate::message::{Headers, StatusCode, SyntaxError, is_token, split_list};

use super::hash::Algorithm;

/// The challenger: the server of the request, or a proxy before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 401, WWW-Authenticate, Authorization.
    Server,
    /// 407, Proxy-Authenticate, Proxy-Authorization.
    Proxy,
}

impl Kind {
    /// Returns the challenger that uses this status.
    #[must_use]
    pub fn of(status: StatusCode) -> Option<Self> {
        match status {
            StatusCode::UNAUTHORIZED => Some(Self::Server),
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => Some(Self::Proxy),
            _ => None,
        }
    }

    /// Returns the status of its challenges.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::Server => StatusCode::UNAUTHORIZED,
            Self::Proxy => StatusCode::PROXY_AUTHENTICATION_REQUIRED,
        }
    }

    /// Returns the name of the header field with the challenge.
    #[must_use]
    pub fn challenge_header(self) -> &'static str {
        match self {
            Self::Server => "WWW-Authenticate",
            Self::Proxy => "Proxy-Authenticate",
        }
    }

    /// Returns the name of the header field with the answer.
    #[must_use]
    pub fn answer_header(self) -> &'static str {
        match self {
            Self::Server => "Authorization",
            Self::Proxy => "Proxy-Authorization",
        }
    }
}

/// The part of a request that the digest protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Qop {
    /// The method and the URI.
    Auth,
    /// The body as well.
    AuthInt,
}

impl Qop {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::AuthInt => "auth-int",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::Auth, Self::AuthInt]
            .into_iter()
            .find(|one| name.trim().eq_ignore_ascii_case(one.as_str()))
    }
}

/// A challenge that can be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The realm as on the wire, without quotes.
    pub realm: String,
    /// The nonce.
    pub nonce: String,
    /// The value that an answer repeats.
    pub opaque: Option<String>,
    /// The hash. `None` if the challenge names none: it is MD5 then, and the answer names none
    /// either.
    pub algorithm: Option<Algorithm>,
    /// The `qop` of the answer: `auth` if that is offered.
    pub qop: Option<Qop>,
    /// Whether the nonce of the last answer was too old, and the password right.
    pub stale: bool,
}

impl Challenge {
    /// Returns all challenges of a header field that can be answered, in the order of the server's
    /// preference. Others are left out: malformed ones, and those with an unknown scheme, algorithm
    /// or `qop`.
    #[must_use]
    pub fn all(headers: &Headers, kind: Kind) -> Vec<Self> {
        let lines = headers.all(kind.challenge_header());
        lines
            .filter_map(|line| split_schemes(line).ok())
            .flatten()
            .filter_map(|params| Self::from_params(&params))
            .collect()
    }

    fn from_params(params: &AuthParams<'_>) -> Option<Self> {
        if !params.scheme.eq_ignore_ascii_case("Digest") {
            return None;
        }
        let algorithm = match params.get("algorithm") {
            Some(name) => Some(Algorithm::from_name(name)?),
            None => None,
        };
        let qop = match params.get("qop") {
            Some(list) => {
                let offered: Vec<Qop> = list.split(',').filter_map(Qop::from_name).collect();
                Some(if offered.contains(&Qop::Auth) {
                    Qop::Auth
                } else {
                    offered.first().copied()?
                })
            }
            None => None,
        };
        Some(Self {
            realm: params.get("realm")?.to_owned(),
            nonce: params.get("nonce")?.to_owned(),
            opaque: params.get("opaque").map(str::to_owned),
            algorithm,
            qop,
            stale: params
                .get("stale")
                .is_some_and(|stale| stale.eq_ignore_ascii_case("true")),
        })
    }
}

/// A scheme with its parameters.
#[derive(Debug)]
pub(super) struct AuthParams<'a> {
    pub scheme: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> AuthParams<'a> {
    /// Returns the value of a parameter without its quotes. Escapes stay, since hashes cover the
    /// text as written.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.params
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }
}

/// Splits a header field into its schemes. Several may stand in one line.
pub(super) fn split_schemes(line: &str) -> Result<Vec<AuthParams<'_>>, SyntaxError> {
    let mut schemes: Vec<AuthParams<'_>> = Vec::new();
    for item in split_list(line)? {
        let (name, value) = match item.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (item, None),
        };
        // "Digest realm" before the equals sign: a scheme and its first parameter.
        let name = match name.split_once(|char: char| char.is_ascii_whitespace()) {
            Some((scheme, name)) if is_token(scheme) => {
                schemes.push(AuthParams {
                    scheme,
                    params: Vec::new(),
                });
                name.trim()
            }
            Some(_) => return Err(SyntaxError("scheme is not a token")),
            None if value.is_none() => {
                schemes.push(AuthParams {
                    scheme: name,
                    params: Vec::new(),
                });
                continue;
            }
            None => name,
        };
        let Some(value) = value else { continue };
        let scheme = schemes
            .last_mut()
            .ok_or(SyntaxError("parameter without a scheme"))?;
        let value = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'))
            .unwrap_or(value);
        scheme.params.push((name, value));
    }
    Ok(schemes)
}
