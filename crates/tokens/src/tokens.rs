//! The decision who is let in, and with which rights.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use portunus_config::Secret;

use crate::fault::Faults;
use crate::jwt::{Claims, KeyRefreshes};
use crate::signed::{API, SignedToken};
use crate::stored::{Stored, StoredTokens};
use crate::{
    Credentials, JwtVerifier, Rights, StoredToken, TokenFault, TokenScope, equal_in_constant_time,
};

/// The longest token that is read, in bytes. Verifying a token costs work, so longer ones are
/// refused.
pub const MAX_TOKEN: usize = 4_096;

/// How often the file with keys is checked for changes.
const REFRESH_PERIOD: Duration = Duration::from_secs(1);

/// The configuration of all tokens but JSON Web Tokens.
#[derive(Debug, Clone, Default)]
pub struct TokensConfig {
    /// Requests that carry it as `apisecret` have all rights.
    pub api_secret: Option<Secret>,
    /// Requests have to carry a token or the API secret.
    pub token_auth: bool,
    /// Clients on this machine have all rights.
    pub trust_loopback: bool,
    /// The stored tokens.
    pub stored: Vec<StoredToken>,
    /// The secret of signed tokens.
    pub signed_secret: Option<Secret>,
}

/// Decides which clients are let in, and which rights they have.
#[derive(Debug)]
pub struct Tokens {
    api_secret: Option<Secret>,
    token_auth: bool,
    trust_loopback: bool,
    stored: StoredTokens,
    signed_secret: Option<Secret>,
    jwt: ArcSwap<JwtVerifier>,
    faults: Faults,
}

/// Counts of tokens since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenTotals {
    /// How many tokens were refused, by reason: see [`TokenFault::reason`].
    pub refused: Vec<(&'static str, u64)>,
    /// How often the file with keys was read again because it had changed.
    pub key_reads: u64,
    /// How often reading that file again gave no keys.
    pub key_failures: u64,
}

/// A token as administrators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShownToken {
    /// The subject of a JSON Web Token.
    Subject(Arc<str>),
    /// The whole text of another token.
    Text(Arc<str>),
}

/// A token that is valid now.
#[derive(Debug)]
enum Token<'a> {
    Stored(Arc<Stored>),
    Signed(SignedToken<'a>),
    Jwt(Arc<Claims>),
}

impl Tokens {
    /// Starts with the stored tokens of `config` and the keys of `jwt`.
    pub fn new(config: TokensConfig, jwt: JwtVerifier) -> Self {
        let tokens = Tokens {
            api_secret: config.api_secret,
            token_auth: config.token_auth,
            trust_loopback: config.trust_loopback,
            stored: StoredTokens::new(&config.stored),
            signed_secret: config.signed_secret,
            jwt: ArcSwap::from_pointee(jwt),
            faults: Faults::default(),
        };
        if tokens.are_signed() && tokens.lets_all_in() {
            tracing::info!(
                "clients without a token are let in, because server.token_auth is off: signed tokens and JSON Web Tokens give \
                 their rights, and open rooms with signed_tokens"
            );
        }
        tokens
    }

    /// Verifies JSON Web Tokens with `verifier` from now on. Its counts go on from those before.
    pub fn set_jwt(&self, verifier: JwtVerifier) {
        verifier.continue_counts(&self.jwt.load());
        self.jwt.store(Arc::new(verifier));
    }

    /// Whether a client with these credentials is let in.
    pub fn admits(&self, shown: Credentials<'_>) -> bool {
        if self.is_api_secret(shown.api_secret) {
            return true;
        }
        if !self.are_used() {
            return self.lets_all_in();
        }
        // Counts a wrong token here, once for each request, even if no token is needed.
        let by_token = shown.token.is_some_and(|token| self.judge(token).is_ok());
        self.lets_all_in() || (self.token_auth && by_token)
    }

    /// Whether these credentials were verified before, or can be verified cheaply.
    pub fn knows(&self, shown: Credentials<'_>) -> bool {
        let is_new = |token: &str| {
            token.len() <= MAX_TOKEN && JwtVerifier::is_like(token) && !self.jwt.load().knows(token)
        };
        !shown.token.is_some_and(is_new)
    }

    /// Returns the rights of a requester with these credentials, in `plugin` or in the server.
    /// A token gives no rights in plugins that it does not open. `is_local`: on this machine.
    pub fn rights(&self, is_local: bool, shown: Credentials<'_>, plugin: Option<&str>) -> Rights {
        let trusted = self.trust_loopback && is_local;
        if trusted || self.is_api_secret(shown.api_secret) {
            return Rights::ALL;
        }
        let Some(token) = shown.token.and_then(|token| self.read(token).ok()) else {
            return Rights::NONE;
        };
        match plugin.is_none_or(|plugin| token.opens(plugin)) {
            true => token.rights(),
            false => Rights::NONE,
        }
    }

    /// Whether a client with this token may attach to `plugin`. A client without a token was let in
    /// by the API secret, and may.
    pub fn opens(&self, token: Option<&str>, plugin: &str) -> bool {
        let token = token.filter(|_| self.token_auth);
        let token = token.and_then(|token| self.read(token).ok());
        token.is_none_or(|token| token.opens(plugin))
    }

    /// Whether `token` is signed for the plugin `package`, and opens `descriptor` there, such as
    /// `room=1234`. Returns `None` if the server has no secret and no key for signed tokens.
    pub fn signed_opens(
        &self,
        token: Option<&str>,
        package: &str,
        descriptor: &str,
    ) -> Option<bool> {
        self.are_signed().then(|| {
            let opened = token.map(|token| self.signed_for(token, package));
            match opened {
                Some(Ok(Token::Signed(signed))) => signed.opens(descriptor),
                Some(Ok(Token::Jwt(claims))) => descriptor
                    .split_once('=')
                    .is_some_and(|(_, id)| claims.opens_room(package, id)),
                Some(Ok(Token::Stored(_))) | None => false,
                Some(Err(fault)) => {
                    self.faults.count(fault);
                    false
                }
            }
        })
    }

    /// Returns which rooms and mountpoints of the plugin `package` this token opens.
    pub fn scope(&self, token: Option<&str>, package: &'static str) -> TokenScope {
        match token.map(|token| self.read(token)) {
            Some(Ok(Token::Jwt(claims))) => TokenScope::new(claims, package),
            Some(Ok(Token::Stored(_) | Token::Signed(_)) | Err(_)) | None => TokenScope::default(),
        }
    }

    /// Returns what administrators and events see of a valid token.
    pub fn shown_as(&self, token: Option<&str>) -> Option<ShownToken> {
        let token = token?;
        match self.read(token).ok()? {
            Token::Jwt(claims) => claims.subject().map(ShownToken::Subject),
            Token::Stored(_) | Token::Signed(_) => Some(ShownToken::Text(Arc::from(token))),
        }
    }

    /// Returns the counts since the start.
    pub fn totals(&self) -> TokenTotals {
        let KeyRefreshes { reads, failures } = self.jwt.load().refreshes();
        TokenTotals {
            refused: self.faults.snapshot(),
            key_reads: reads,
            key_failures: failures,
        }
    }

    /// The stored tokens, or `None` if tokens are not required (`token_auth`).
    pub fn stored(&self) -> Option<&StoredTokens> {
        self.token_auth.then_some(&self.stored)
    }

    fn lets_all_in(&self) -> bool {
        self.api_secret.is_none() && !self.token_auth
    }

    /// Whether any token has an effect.
    fn are_used(&self) -> bool {
        self.token_auth || self.are_signed() || !self.stored.is_empty()
    }

    fn are_signed(&self) -> bool {
        self.signed_secret.is_some() || self.jwt.load().is_used()
    }

    fn is_api_secret(&self, shown: Option<&str>) -> bool {
        let known = self.api_secret.as_deref().zip(shown);
        known.is_some_and(|(known, shown)| equal_in_constant_time(known, shown))
    }

    /// Reads a token of the API, and counts a fault.
    fn judge<'a>(&self, token: &'a str) -> Result<Token<'a>, TokenFault> {
        let token = self.read(token);
        token.inspect_err(|fault| self.faults.count(*fault))
    }

    fn read<'a>(&self, token: &'a str) -> Result<Token<'a>, TokenFault> {
        if token.len() > MAX_TOKEN {
            return Err(TokenFault::TooLong);
        }
        match self.stored.find(token) {
            Some(found) => found.map(Token::Stored),
            None => self.signed_for(token, API),
        }
    }

    /// Reads a token that is signed for `realm`. JSON Web Tokens are for all realms.
    fn signed_for<'a>(&self, token: &'a str, realm: &str) -> Result<Token<'a>, TokenFault> {
        if token.len() > MAX_TOKEN {
            return Err(TokenFault::TooLong);
        }
        if self.jwt.load().is_used() && JwtVerifier::is_like(token) {
            return self.jwt.load().verify(token, now()).map(Token::Jwt);
        }
        let secret = self.signed_secret.as_deref();
        let secret = secret.filter(|_| SignedToken::is_like(token));
        let signed = SignedToken::verify_at(token, secret.ok_or(TokenFault::Unknown)?, now())?;
        match signed.is_for(realm) {
            true => Ok(Token::Signed(signed)),
            false => Err(TokenFault::Audience),
        }
    }
}

impl Token<'_> {
    fn opens(&self, plugin: &str) -> bool {
        match self {
            Token::Stored(stored) => stored.opens(plugin),
            Token::Signed(signed) => signed.opens(plugin),
            Token::Jwt(claims) => claims.opens(plugin),
        }
    }

    fn rights(&self) -> Rights {
        match self {
            Token::Stored(stored) => stored.rights(),
            Token::Signed(signed) => signed.rights(),
            Token::Jwt(claims) => claims.rights(),
        }
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// Reads the file with keys again whenever it changes, for as long as `tokens` exist.
pub async fn watch_keys(tokens: Weak<Tokens>) {
    let mut ticks = tokio::time::interval(REFRESH_PERIOD);
    loop {
        ticks.tick().await;
        let Some(jwt) = tokens.upgrade().map(|tokens| tokens.jwt.load_full()) else {
            return;
        };
        if !jwt.has_file() {
            continue;
        }
        // Reading the file blocks. `refresh` logs a failure.
        let _ = tokio::task::spawn_blocking(move || jwt.refresh()).await;
    }
}
