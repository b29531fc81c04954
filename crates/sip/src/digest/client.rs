//! Answers to challenges.

use std::fmt;

use crate::message::{Request, Response, quote};

use super::challenge::{Challenge, Kind};
use super::hash::{Algorithm, Input, response};

/// The maximum number of realms whose challenges a client keeps: those of a server and of the
/// proxies before it.
const MAX_REALMS: usize = 8;
/// The maximum number of answers to challenges that one request carries in turn.
const MAX_ROUNDS: u8 = 6;

/// A user and a secret. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    secret: Secret,
}

#[derive(Clone, PartialEq, Eq)]
enum Secret {
    Password(String),
    Ha1(Algorithm, String),
}

impl Credentials {
    /// Makes credentials of a password.
    #[must_use]
    pub fn password(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            secret: Secret::Password(password.into()),
        }
    }

    /// Makes credentials of H(A1), the hash over user, realm and password, in hexadecimal: 32
    /// digits for MD5, 64 for SHA-256. They answer challenges of this algorithm only. Returns
    /// `None` for other texts.
    #[must_use]
    pub fn ha1(user: impl Into<String>, ha1: &str) -> Option<Self> {
        let algorithm = match ha1.len() {
            32 => Algorithm::Md5,
            64 => Algorithm::Sha256,
            _ => return None,
        };
        let hexadecimal = ha1.bytes().all(|byte| byte.is_ascii_hexdigit());
        hexadecimal.then(|| Self {
            user: user.into(),
            secret: Secret::Ha1(algorithm, ha1.to_ascii_lowercase()),
        })
    }

    /// Returns the user.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns H(A1) for a realm, if the credentials have it.
    pub(super) fn ha1_for(&self, algorithm: Algorithm, realm: &str) -> Option<String> {
        match &self.secret {
            Secret::Password(password) => Some(algorithm.ha1(&self.user, realm, password)),
            Secret::Ha1(own, ha1) => (*own == algorithm).then(|| ha1.clone()),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// Why a challenge is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// The response has no challenge.
    #[error("no challenge")]
    NoChallenge,
    /// No challenge fits the credentials.
    #[error("no challenge that can be answered")]
    NoMatch,
    /// The credentials were refused.
    #[error("credentials were refused")]
    Refused,
}

/// Returns the value of Authorization or Proxy-Authorization, or `None` if the credentials do not
/// fit the algorithm.
///
/// `nc` counts the requests with this nonce, from 1. `cnonce` is random.
#[must_use]
pub fn respond(
    challenge: &Challenge,
    credentials: &Credentials,
    request: &Request,
    nc: u32,
    cnonce: &str,
) -> Option<String> {
    let algorithm = challenge.algorithm.unwrap_or(Algorithm::Md5);
    let ha1 = credentials.ha1_for(algorithm, &challenge.realm)?;
    let uri = request.uri.to_string();
    let nc = format!("{nc:08x}");
    let input = Input {
        algorithm,
        nonce: &challenge.nonce,
        counted: challenge.qop.map(|qop| (nc.as_str(), cnonce, qop)),
        method: request.method.as_str(),
        uri: &uri,
        body: &request.body,
    };
    let answer = response(&ha1, input);
    let Challenge { realm, nonce, .. } = challenge;
    let user = quote(&credentials.user);
    let mut value = format!(
        "Digest username={user}, realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", response=\"{answer}\""
    );
    if let Some(algorithm) = challenge.algorithm {
        value.push_str(&format!(", algorithm={}", algorithm.as_str()));
    }
    if let Some(qop) = challenge.qop {
        value.push_str(&format!(
            ", qop={}, cnonce=\"{cnonce}\", nc={nc}",
            qop.as_str()
        ));
    }
    if let Some(opaque) = &challenge.opaque {
        value.push_str(&format!(", opaque=\"{opaque}\""));
    }
    Some(value)
}

#[derive(Debug, Clone)]
struct Held {
    kind: Kind,
    challenge: Challenge,
    /// The number of requests with its nonce.
    count: u32,
    /// Whether it was answered in the request that is under way.
    fresh: bool,
}

/// Keeps challenges, and answers them in all later requests.
#[derive(Debug, Clone, Default)]
pub struct Client {
    held: Vec<Held>,
    rounds: u8,
}

impl Client {
    /// Makes a client without challenges.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a request. Answers in the one before do not count against it.
    pub fn start(&mut self) {
        self.rounds = 0;
        for held in &mut self.held {
            held.fresh = false;
        }
    }

    /// Takes the challenges of a 401 or 407. With `Ok`, the request is to be
    /// [authorized](Self::authorize) and sent again.
    ///
    /// Of several challenges for one realm, the first counts that fits the credentials.
    ///
    /// # Errors
    /// There is no usable challenge, or the same realm has refused an answer to this request.
    pub fn challenged(
        &mut self,
        response: &Response,
        credentials: &Credentials,
    ) -> Result<(), DigestError> {
        let kind = Kind::of(response.status).ok_or(DigestError::NoChallenge)?;
        if !response.headers.has(kind.challenge_header()) {
            return Err(DigestError::NoChallenge);
        }
        self.rounds = self.rounds.saturating_add(1);
        let mut taken: Vec<Challenge> = Vec::new();
        for challenge in Challenge::all(&response.headers, kind) {
            let algorithm = challenge.algorithm.unwrap_or(Algorithm::Md5);
            let answerable = credentials.ha1_for(algorithm, &challenge.realm).is_some();
            if answerable
                && taken.len() < MAX_REALMS
                && !taken.iter().any(|other| other.realm == challenge.realm)
            {
                taken.push(challenge);
            }
        }
        if taken.is_empty() {
            return Err(DigestError::NoMatch);
        }
        let refused = |held: &Held, challenge: &Challenge| {
            held.fresh
                && held.kind == kind
                && held.challenge.realm == challenge.realm
                && !challenge.stale
        };
        let all_refused = taken
            .iter()
            .all(|challenge| self.held.iter().any(|held| refused(held, challenge)));
        if all_refused || self.rounds > MAX_ROUNDS {
            return Err(DigestError::Refused);
        }
        for challenge in taken {
            self.held
                .retain(|held| held.kind != kind || held.challenge.realm != challenge.realm);
            if self.held.len() >= MAX_REALMS {
                self.held.remove(0);
            }
            self.held.push(Held {
                kind,
                challenge,
                count: 0,
                fresh: true,
            });
        }
        Ok(())
    }

    /// Puts the answers to all known challenges into a request, and removes older answers. Each
    /// call counts as one use of the nonces. `cnonce` is random.
    pub fn authorize(&mut self, request: &mut Request, credentials: &Credentials, cnonce: &str) {
        request.headers.remove(Kind::Server.answer_header());
        request.headers.remove(Kind::Proxy.answer_header());
        for held in &mut self.held {
            held.count = held.count.saturating_add(1);
            if let Some(value) = respond(&held.challenge, credentials, request, held.count, cnonce)
            {
                request.headers.push(held.kind.answer_header(), value);
            }
        }
    }

    /// Forgets all challenges.
    pub fn clear(&mut self) {
        self.held.clear();
        self.rounds = 0;
    }

    /// Whether there are challenges to answer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}
