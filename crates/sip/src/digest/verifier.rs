//! Challenges of this server, and checks of the answers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::message::Request;

use super::challenge::{Kind, Qop, split_schemes};
use super::client::Credentials;
use super::hash::{Algorithm, Input, keyed, response, same};

/// The challenges of a [`Verifier`].
#[derive(Debug, Clone)]
pub struct Rules {
    /// The realm. Quotes and backslashes become apostrophes.
    pub realm: String,
    /// The offered hashes, the preferred one first.
    pub algorithms: Vec<Algorithm>,
    /// The lifetime of a nonce.
    pub lifetime: Duration,
    /// The maximum number of used nonces to remember.
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

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The request is from this user.
    Accepted(String),
    /// The secret is right, but the nonce is too old or was used. The next challenge says `stale`.
    Stale,
    /// The request has no answer for this realm.
    Missing,
    /// The user is unknown, the secret is wrong, or the answer is malformed.
    Refused,
}

/// Makes challenges, and checks the answers to them.
///
/// Nonces carry their time and a keyed hash of it, so challenges take no memory. The verifier keeps
/// the counts of nonces that were used with the right secret: an answer is valid once.
#[derive(Debug)]
pub struct Verifier {
    rules: Rules,
    key: [u8; 32],
    started: Instant,
    made: u64,
    /// Used nonces: when they were made, and the highest count seen.
    used: HashMap<Stamp, u32>,
    /// The time of the newest forgotten nonce. Older nonces are stale.
    forgotten: Option<Stamp>,
}

/// The time of a nonce, in ms since the start, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Stamp(u64, u64);

impl Verifier {
    /// Makes a verifier. `key` is random and secret.
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

    /// Returns the values of WWW-Authenticate or Proxy-Authenticate: one for each algorithm.
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

    /// Checks the answer in a request. `lookup` returns the credentials of a user.
    ///
    /// The `uri` of the answer may differ from that of the request, since proxies rewrite the
    /// latter.
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
        // Without qop a nonce has no counter, so it is valid once.
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

    /// The number of nonces that are remembered.
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

    /// Whether `nonce` is ours, not expired, and used with a higher count than before.
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
