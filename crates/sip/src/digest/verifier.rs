//! Challenges of ours, and whether they are answered well.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::message::Request;

use super::challenge::{Kind, Qop, split_schemes};
use super::client::Credentials;
use super::hash::{Algorithm, Input, keyed, response, same};

/// How a [`Verifier`] asks.
#[derive(Debug, Clone)]
pub struct Rules {
    /// For what a user and a password are asked. Quotes and backslashes become apostrophes.
    pub realm: String,
    /// The hashes that are offered, the preferred one first.
    pub algorithms: Vec<Algorithm>,
    /// For how long a nonce serves.
    pub lifetime: Duration,
    /// How many nonces in use are remembered.
    pub max_nonces: usize,
}

impl Rules {
    /// SHA-256 and MD5, nonces of five minutes, 4,096 of them.
    #[must_use]
    pub fn new(realm: impl Into<String>) -> Self {
        Self {
            realm: realm.into(),
            algorithms: vec![Algorithm::Sha256, Algorithm::Md5],
            lifetime: Duration::from_secs(300),
            max_nonces: 4096,
        }
    }
}

/// What an answer is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is this user.
    Accepted(String),
    /// The secret is right, but the nonce is too old or was used: to be asked again with `stale`.
    Stale,
    /// There is no answer to this realm.
    Missing,
    /// The user is unknown, the secret wrong, or the answer malformed.
    Refused,
}

/// Makes challenges, and checks the answers to them.
///
/// Nonces carry their time and a keyed hash of it, so that what is asked of strangers takes no memory. Of nonces that
/// were used with the right secret the count is kept: an answer serves once.
#[derive(Debug)]
pub struct Verifier {
    rules: Rules,
    key: [u8; 32],
    started: Instant,
    made: u64,
    /// Nonces in use: when they were made, and the highest count seen.
    used: HashMap<Stamp, u32>,
    /// Nonces that are not younger than this are forgotten, and hence stale.
    forgotten: Option<Stamp>,
}

/// When a nonce was made, in milliseconds since the start, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Stamp(u64, u64);

impl Verifier {
    /// `key` is at random and secret.
    #[must_use]
    pub fn new(mut rules: Rules, key: [u8; 32], now: Instant) -> Self {
        rules.realm = rules.realm.replace(['"', '\\', '\r', '\n'], "'");
        Self {
            rules,
            key,
            started: now,
            made: 0,
            used: HashMap::new(),
            forgotten: None,
        }
    }

    /// The values of WWW-Authenticate or Proxy-Authenticate: one for each algorithm.
    pub fn challenges(&mut self, now: Instant, stale: bool) -> Vec<String> {
        self.made = self.made.wrapping_add(1);
        let stamp = Stamp(self.millis(now), self.made);
        let nonce = self.nonce(stamp);
        let stale = if stale { ", stale=true" } else { "" };
        let realm = &self.rules.realm;
        let names = self
            .rules
            .algorithms
            .iter()
            .map(|algorithm| algorithm.as_str());
        names
            .map(|name| format!("Digest realm=\"{realm}\", nonce=\"{nonce}\", algorithm={name}, qop=\"auth\"{stale}"))
            .collect()
    }

    /// Checks the answer in a request. `lookup` gives the credentials of a user.
    ///
    /// That the `uri` of the answer is that of the request is not asked for: proxies rewrite the latter.
    pub fn verify(
        &mut self,
        now: Instant,
        kind: Kind,
        request: &Request,
        lookup: impl FnOnce(&str) -> Option<Credentials>,
    ) -> Verdict {
        let lines: Vec<&str> = request.headers.all(kind.answer_header()).collect();
        let schemes = lines
            .into_iter()
            .filter_map(|line| split_schemes(line).ok())
            .flatten();
        let answer = schemes
            .filter(|scheme| scheme.scheme.eq_ignore_ascii_case("Digest"))
            .find(|scheme| scheme.get("realm") == Some(&self.rules.realm));
        let Some(answer) = answer else {
            return Verdict::Missing;
        };
        let fields = (
            answer.get("username"),
            answer.get("nonce"),
            answer.get("uri"),
            answer.get("response"),
        );
        let (Some(user), Some(nonce), Some(uri), Some(given)) = fields else {
            return Verdict::Refused;
        };
        let algorithm = answer
            .get("algorithm")
            .map_or(Some(Algorithm::Md5), Algorithm::from_name);
        let Some(algorithm) =
            algorithm.filter(|algorithm| self.rules.algorithms.contains(algorithm))
        else {
            return Verdict::Refused;
        };
        let counted = match (answer.get("qop"), answer.get("nc"), answer.get("cnonce")) {
            (None, ..) => None,
            (Some(qop), Some(nc), Some(cnonce)) => match Qop::from_name(qop) {
                Some(qop) => Some((nc, cnonce, qop)),
                None => return Verdict::Refused,
            },
            _ => return Verdict::Refused,
        };
        // Without qop nothing counts the uses of a nonce: it serves once.
        let count = match counted.map(|(nc, ..)| u32::from_str_radix(nc, 16)) {
            None => u32::MAX,
            Some(Ok(count)) => count,
            Some(Err(_)) => return Verdict::Refused,
        };
        let user = crate::message::unquote(&format!("\"{user}\"")).into_owned();
        let Some(ha1) =
            lookup(&user).and_then(|credentials| credentials.ha1_for(algorithm, &self.rules.realm))
        else {
            return Verdict::Refused;
        };
        let method = request.method.as_str();
        let input = Input {
            algorithm,
            nonce,
            counted,
            method,
            uri,
            body: &request.body,
        };
        if !same(&response(&ha1, input), &given.to_ascii_lowercase()) {
            return Verdict::Refused;
        }
        if self.take(now, nonce, count) {
            Verdict::Accepted(user)
        } else {
            Verdict::Stale
        }
    }

    /// How many nonces are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.used.len()
    }

    fn nonce(&self, stamp: Stamp) -> String {
        let hash = keyed(&self.key, &[&stamp.0.to_be_bytes(), &stamp.1.to_be_bytes()]);
        format!("{:x}.{:x}.{hash}", stamp.0, stamp.1)
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.started).as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether `nonce` is ours, young, and used with a higher count than before.
    fn take(&mut self, now: Instant, nonce: &str, count: u32) -> bool {
        let mut parts = nonce.split('.');
        let mut part = || u64::from_str_radix(parts.next()?, 16).ok();
        let (Some(millis), Some(number)) = (part(), part()) else {
            return false;
        };
        let stamp = Stamp(millis, number);
        let now = self.millis(now);
        let lifetime = u64::try_from(self.rules.lifetime.as_millis()).unwrap_or(u64::MAX);
        let is_young = |stamp: Stamp| now.saturating_sub(stamp.0) <= lifetime;
        if !same(&self.nonce(stamp), nonce)
            || !is_young(stamp)
            || self.forgotten.is_some_and(|limit| stamp <= limit)
        {
            return false;
        }
        if let Some(highest) = self.used.get_mut(&stamp) {
            let higher = count > *highest;
            *highest = count.max(*highest);
            return higher;
        }
        if self.used.len() >= self.rules.max_nonces {
            self.used.retain(|stamp, _| is_young(*stamp));
        }
        if self.used.len() >= self.rules.max_nonces
            && let Some(oldest) = self.used.keys().min().copied()
        {
            self.used.remove(&oldest);
            self.forgotten = Some(oldest);
            if stamp <= oldest {
                return false;
            }
        }
        self.used.insert(stamp, count);
        true
    }
}
