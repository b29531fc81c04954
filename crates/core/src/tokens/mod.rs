//! Who is let in, and what they may do: the API secret, stored tokens, signed tokens, JSON Web Tokens, and trust in this
//! machine.

mod fault;
mod jwt;
mod requests;
mod scope;
mod signed;
mod stored;

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use portunus_config::Secret;

use crate::context::Context;
use crate::{CoreConfig, Credentials, Requester, Rights, equal_in_constant_time};
use fault::Faults;
use signed::API;
pub(crate) use signed::SignedToken;
use stored::{Stored, StoredTokens};

pub use fault::TokenFault;
use jwt::Claims;
pub use jwt::{JwtConfig, JwtError, JwtVerifier, KeyError, KeyFileError};
pub use scope::{OutOfScope, TokenScope};
#[cfg(any(test, feature = "testing"))]
pub(crate) use signed::sign;

/// Bytes of the longest token that is looked at: to verify one costs work, whoever sends it.
pub(crate) const MAX_TOKEN: usize = 4_096;

/// How often the file with keys is looked at.
const REFRESH_PERIOD: Duration = Duration::from_secs(1);

/// Everything that lets clients in.
#[derive(Debug)]
pub(crate) struct Tokens {
    api_secret: Option<Secret>,
    token_auth: bool,
    trust_loopback: bool,
    stored: StoredTokens,
    signed_secret: Option<Secret>,
    jwt: ArcSwap<JwtVerifier>,
    faults: Faults,
}

/// What is counted of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenTotals {
    /// How many tokens were refused since the start, by reason: see [`TokenFault::reason`].
    pub refused: Vec<(&'static str, u64)>,
    /// How often the file with keys was read again since the start, because it had changed.
    pub key_reads: u64,
    /// How often that gave no keys.
    pub key_failures: u64,
}

/// A token as administrators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShownToken {
    /// Whom a JSON Web Token is about.
    Subject(Arc<str>),
    /// Another token, as it is.
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
    pub(crate) fn new(config: &CoreConfig, jwt: JwtVerifier) -> Self {
        let tokens = Tokens {
            api_secret: config.api_secret.clone(),
            token_auth: config.token_auth,
            trust_loopback: config.trust_loopback,
            stored: StoredTokens::new(&config.tokens),
            signed_secret: config.token_auth_secret.clone(),
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

    /// Verifies JSON Web Tokens by `verifier` from now on.
    pub(crate) fn set_jwt(&self, verifier: JwtVerifier) {
        verifier.continue_counts(&self.jwt.load());
        self.jwt.store(Arc::new(verifier));
    }

    /// Whether a client that shows these is let in.
    pub(crate) fn admits(&self, shown: Credentials<'_>) -> bool {
        if self.is_api_secret(shown.api_secret) {
            return true;
        }
        if !self.are_used() {
            return self.lets_all_in();
        }
        // A token that is wrong is counted here, once for each request, whether or not one is needed.
        let by_token = shown.token.is_some_and(|token| self.judge(token).is_ok());
        self.lets_all_in() || (self.token_auth && by_token)
    }

    /// Whether it is known what these are worth, or can be found out without much work.
    pub(crate) fn knows(&self, shown: Credentials<'_>) -> bool {
        let is_new = |token: &str| {
            token.len() <= MAX_TOKEN && JwtVerifier::is_like(token) && !self.jwt.load().knows(token)
        };
        !shown.token.is_some_and(is_new)
    }

    /// What `requester` may do beyond a call, in `plugin` or in the server, with what it shows. A token gives no rights
    /// in plugins that it does not open.
    pub(crate) fn rights(
        &self,
        requester: Requester,
        shown: Credentials<'_>,
        plugin: Option<&str>,
    ) -> Rights {
        let trusted = self.trust_loopback && requester.is_local();
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

    /// Whether a client with this token may attach to `plugin`; one without was let in by the API secret.
    pub(crate) fn opens(&self, token: Option<&str>, plugin: &str) -> bool {
        let token = token.filter(|_| self.token_auth);
        let token = token.and_then(|token| self.read(token).ok());
        token.is_none_or(|token| token.opens(plugin))
    }

    /// Whether `token` is signed for the plugin `package`, and opens `descriptor` there, such as `room=1234`; none if no
    /// tokens are signed.
    pub(crate) fn signed_opens(
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

    /// Which rooms and mountpoints of the plugin `package` requests with this token may name.
    pub(crate) fn scope(&self, token: Option<&str>, package: &'static str) -> TokenScope {
        match token.map(|token| self.read(token)) {
            Some(Ok(Token::Jwt(claims))) => TokenScope::new(claims, package),
            Some(Ok(Token::Stored(_) | Token::Signed(_)) | Err(_)) | None => TokenScope::default(),
        }
    }

    /// What administrators and events see of a token that is valid.
    pub(crate) fn shown_as(&self, token: Option<&str>) -> Option<ShownToken> {
        let token = token?;
        match self.read(token).ok()? {
            Token::Jwt(claims) => claims.subject().map(ShownToken::Subject),
            Token::Stored(_) | Token::Signed(_) => Some(ShownToken::Text(Arc::from(token))),
        }
    }

    /// What is counted of them.
    pub(crate) fn totals(&self) -> TokenTotals {
        let (key_reads, key_failures) = self.jwt.load().refreshes();
        TokenTotals {
            refused: self.faults.snapshot(),
            key_reads,
            key_failures,
        }
    }

    fn lets_all_in(&self) -> bool {
        self.api_secret.is_none() && !self.token_auth
    }

    /// Whether tokens are good for anything.
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

    /// Reads a token of the API, and counts it if it is none.
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

    /// Reads a token that is signed for `realm`; JSON Web Tokens are for all.
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

/// Looks again and again whether the keys of tokens have changed, as long as the server is there.
pub(crate) async fn watch_keys(context: Weak<Context>) {
    let mut ticks = tokio::time::interval(REFRESH_PERIOD);
    loop {
        ticks.tick().await;
        let Some(jwt) = context
            .upgrade()
            .map(|context| context.tokens.jwt.load_full())
        else {
            return;
        };
        if !jwt.has_file() {
            continue;
        }
        // It reads a file; a fault of it is logged there.
        let _ = tokio::task::spawn_blocking(move || jwt.refresh()).await;
    }
}
