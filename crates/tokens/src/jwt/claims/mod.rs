//! The claims of a JSON Web Token (RFC 7519): its times, its subject, and what it opens.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{Right, Rights, TokenFault};

/// The longest `sub`, in bytes. It appears in logs and events.
const MAX_SUBJECT: usize = 256;

/// The claims of a token with a valid signature.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Claims {
    subject: Option<Arc<str>>,
    expires: Option<u64>,
    not_before: Option<u64>,
    issuer: Option<String>,
    audience: Vec<String>,
    plugins: Option<Vec<String>>,
    rooms: Option<Vec<String>>,
    rights: Rights,
}

/// Requirements on claims.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rules {
    pub(super) issuer: Option<String>,
    pub(super) audience: Option<String>,
    pub(super) require_expiry: bool,
    /// In seconds.
    pub(super) leeway: u64,
}

impl Claims {
    /// Reads the claims. A claim of a wrong type is a fault, since ignoring it could widen the
    /// token.
    pub(crate) fn read(claims: &Map<String, Value>) -> Result<Self, TokenFault> {
        let malformed = TokenFault::Malformed;
        let rights = texts(claims, "rights", malformed("rights is no list of texts"))?;
        let rights = rights.iter().flatten();
        let subject = text(claims, "sub", malformed("sub is no text"))?;
        if subject.is_some_and(|subject| subject.len() > MAX_SUBJECT) {
            return Err(malformed("sub is longer than 256 bytes"));
        }
        let audience = match claims.get("aud") {
            Some(Value::String(one)) => vec![one.clone()],
            _ => texts(claims, "aud", malformed("aud is neither a text nor a list"))?
                .unwrap_or_default(),
        };
        Ok(Claims {
            subject: subject.map(Arc::from),
            expires: seconds(claims, "exp", malformed("exp is no number of seconds"))?,
            not_before: seconds(claims, "nbf", malformed("nbf is no number of seconds"))?,
            issuer: text(claims, "iss", malformed("iss is no text"))?.map(str::to_owned),
            audience,
            plugins: texts(claims, "plugins", malformed("plugins is no list of texts"))?,
            rooms: rooms(claims)?,
            rights: rights.filter_map(|name| Right::from_name(name)).collect(),
        })
    }

    /// Checks the claims against `rules`, except for their times.
    pub(super) fn keep(&self, rules: &Rules) -> Result<(), TokenFault> {
        if rules.require_expiry && self.expires.is_none() {
            return Err(TokenFault::Malformed("exp is missing"));
        }
        if rules.issuer.is_some() && self.issuer != rules.issuer {
            return Err(TokenFault::Issuer);
        }
        match &rules.audience {
            Some(audience) if !self.audience.contains(audience) => Err(TokenFault::Audience),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks the times at `now`, in seconds since 1970. Clocks may differ by `leeway` seconds.
    pub(super) fn hold(&self, now: u64, leeway: u64) -> Result<(), TokenFault> {
        let has_ended = |end: u64| end.saturating_add(leeway) <= now;
        if self.expires.is_some_and(has_ended) {
            return Err(TokenFault::Expired);
        }
        let begins = |start: u64| start > now.saturating_add(leeway);
        match self.not_before.is_some_and(begins) {
            true => Err(TokenFault::NotYet),
            false => Ok(()),
        }
    }

    /// The subject of the token.
    pub(crate) fn subject(&self) -> Option<Arc<str>> {
        self.subject.clone()
    }

    /// The rights in the plugins that the token opens.
    pub(crate) fn rights(&self) -> Rights {
        self.rights
    }

    /// Whether the token opens the plugin `package`.
    pub(crate) fn opens(&self, package: &str) -> bool {
        let Some(plugins) = &self.plugins else {
            return true;
        };
        plugins.iter().any(|name| is_name_of(name, package))
    }

    /// Whether the token opens the room or mountpoint `id` of the plugin `package`.
    pub(crate) fn opens_room(&self, package: &str, id: &str) -> bool {
        let is_it = |entry: &String| {
            let of_plugin = entry.split_once(':');
            entry == id
                || of_plugin.is_some_and(|(name, room)| room == id && is_name_of(name, package))
        };
        let rooms = self.rooms.as_ref();
        self.opens(package) && rooms.is_none_or(|rooms| rooms.iter().any(is_it))
    }

    /// Whether the token opens only the rooms that it names.
    pub(crate) fn names_rooms(&self) -> bool {
        self.rooms.is_some()
    }
}

/// Whether `name` is the package of a plugin, or its last part, such as `videoroom`.
fn is_name_of(name: &str, package: &str) -> bool {
    name == package || package.rsplit('.').next() == Some(name)
}

fn text<'a>(
    claims: &'a Map<String, Value>,
    name: &str,
    fault: TokenFault,
) -> Result<Option<&'a str>, TokenFault> {
    let claim = claims.get(name);
    claim.map(|it| it.as_str().ok_or(fault)).transpose()
}

fn texts(
    claims: &Map<String, Value>,
    name: &str,
    fault: TokenFault,
) -> Result<Option<Vec<String>>, TokenFault> {
    let Some(claim) = claims.get(name) else {
        return Ok(None);
    };
    let entries = claim.as_array().ok_or(fault)?.iter();
    let texts = entries.map(|entry| entry.as_str().map(str::to_owned).ok_or(fault));
    texts.collect::<Result<_, _>>().map(Some)
}

/// Reads an id, which is a number or a text. A number and the same number as a text are one room.
fn rooms(claims: &Map<String, Value>) -> Result<Option<Vec<String>>, TokenFault> {
    let fault = TokenFault::Malformed("rooms is no list of numbers and texts");
    let Some(claim) = claims.get("rooms") else {
        return Ok(None);
    };
    let id = |entry: &Value| match entry {
        Value::String(id) => Ok(id.clone()),
        Value::Number(id) if id.is_u64() => Ok(id.to_string()),
        _ => Err(fault),
    };
    let entries = claim.as_array().ok_or(fault)?.iter();
    entries.map(id).collect::<Result<_, _>>().map(Some)
}

/// Seconds since 1970, possibly with a fraction (RFC 7519 section 2).
fn seconds(
    claims: &Map<String, Value>,
    name: &str,
    fault: TokenFault,
) -> Result<Option<u64>, TokenFault> {
    /// Floats represent whole numbers up to here exactly.
    const MOST: f64 = 9_007_199_254_740_992.0;
    let Some(claim) = claims.get(name) else {
        return Ok(None);
    };
    let fraction = || claim.as_f64().filter(|time| (0.0..=MOST).contains(time));
    let whole = claim
        .as_u64()
        .or_else(|| fraction().map(|time| time as u64));
    whole.map(Some).ok_or(fault)
}

#[cfg(test)]
mod tests;
