//! Stored tokens: those of the configuration, and those that administrators add.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use openssl::sha::sha256;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::jwt::Digest;
use crate::{Right, Rights, TokenFault};

/// The most tokens that are stored.
pub const MAX_STORED: usize = 10_000;

/// A token in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "{ token = \"…\", plugins = [\"…\"], rights = [\"…\"] }"
)]
pub struct StoredToken {
    /// The text that requests carry as `token`.
    pub token: String,
    /// The plugins that it opens. Empty means all plugins.
    #[serde(default)]
    pub plugins: Vec<String>,
    /// The rights of requests with this token.
    #[serde(default)]
    pub rights: Vec<Right>,
}

/// A stored token, and what it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its text.
    pub token: String,
    /// The plugins that it opens.
    pub plugins: OpenedPlugins,
    /// The rights that it gives.
    pub rights: Vec<Right>,
    /// When it expires, or `None` if it does not.
    pub expires: Option<Instant>,
}

/// The plugins that a token opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenedPlugins {
    /// All plugins, those of later versions included.
    All,
    /// The plugins with these packages.
    These(BTreeSet<String>),
}

impl OpenedPlugins {
    /// Returns the packages of these plugins, if the server has the plugins `all`.
    pub fn packages(&self, all: &[&str]) -> BTreeSet<String> {
        match self {
            OpenedPlugins::All => all.iter().map(|package| (*package).to_owned()).collect(),
            OpenedPlugins::These(packages) => packages.clone(),
        }
    }
}

impl Stored {
    pub(crate) fn opens(&self, package: &str) -> bool {
        match &self.plugins {
            OpenedPlugins::All => true,
            OpenedPlugins::These(packages) => packages.contains(package),
        }
    }

    pub(crate) fn rights(&self) -> Rights {
        self.rights.iter().copied().collect()
    }

    /// How long it remains valid, or `None` if it does not expire.
    pub fn left(&self) -> Option<Duration> {
        let now = Instant::now();
        self.expires.map(|end| end.saturating_duration_since(now))
    }

    fn has_expired(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }
}

impl From<&StoredToken> for Stored {
    fn from(configured: &StoredToken) -> Self {
        Stored {
            token: configured.token.clone(),
            plugins: match configured.plugins.is_empty() {
                true => OpenedPlugins::All,
                false => OpenedPlugins::These(configured.plugins.iter().cloned().collect()),
            },
            rights: configured.rights.clone(),
            expires: None,
        }
    }
}

/// The tokens by their digests, so that the time of a search reveals nothing about them.
#[derive(Debug)]
pub struct StoredTokens {
    tokens: RwLock<HashMap<Digest, Arc<Stored>>>,
}

/// The error if [`MAX_STORED`] tokens are stored already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyTokens;

impl StoredTokens {
    pub(crate) fn new(configured: &[StoredToken]) -> Self {
        let entry = |configured: &StoredToken| {
            let digest = sha256(configured.token.as_bytes());
            (digest, Arc::new(Stored::from(configured)))
        };
        // The first of two that are the same counts.
        let tokens = configured.iter().rev().map(entry).collect();
        StoredTokens {
            tokens: RwLock::new(tokens),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.is_empty()
    }

    /// Finds a token. Returns `None` if it is not stored.
    pub(crate) fn find(&self, token: &str) -> Option<Result<Arc<Stored>, TokenFault>> {
        let digest = sha256(token.as_bytes());
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let stored = tokens.get(&digest)?.clone();
        Some(match stored.has_expired() {
            true => Err(TokenFault::Expired),
            false => Ok(stored),
        })
    }

    /// Replaces a token by the result of `change`, which gets the present one if it is valid.
    /// If `change` returns `None`, the token stays as it is.
    pub fn change(
        &self,
        token: &str,
        change: impl FnOnce(Option<&Stored>) -> Option<Stored>,
    ) -> Result<(), TooManyTokens> {
        let digest = sha256(token.as_bytes());
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let now = tokens.get(&digest).filter(|stored| !stored.has_expired());
        let Some(next) = change(now.map(Arc::as_ref)) else {
            return Ok(());
        };
        if !tokens.contains_key(&digest) && tokens.len() >= MAX_STORED {
            tokens.retain(|_, stored| !stored.has_expired());
            if tokens.len() >= MAX_STORED {
                return Err(TooManyTokens);
            }
        }
        tokens.insert(digest, Arc::new(next));
        Ok(())
    }

    /// Removes a token. Returns false if it is not stored or has expired.
    pub fn remove(&self, token: &str) -> bool {
        let digest = sha256(token.as_bytes());
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let removed = tokens.remove(&digest);
        removed.is_some_and(|stored| !stored.has_expired())
    }

    /// Returns all valid tokens, in the order of their texts.
    pub fn list(&self) -> Vec<Arc<Stored>> {
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        tokens.retain(|_, stored| !stored.has_expired());
        let mut list: Vec<_> = tokens.values().cloned().collect();
        drop(tokens);
        list.sort_unstable_by(|a, b| a.token.cmp(&b.token));
        list
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn stored(token: &str, expires: Option<Instant>) -> Stored {
        Stored {
            token: token.to_owned(),
            plugins: OpenedPlugins::All,
            rights: Vec::new(),
            expires,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_expires_makes_place_for_another() {
        let tokens = StoredTokens::new(&[]);
        let soon = Instant::now() + Duration::from_secs(5);
        for number in 0..MAX_STORED {
            let token = number.to_string();
            let expires = (number == 7).then_some(soon);
            let added = tokens.change(&token, |_| Some(stored(&token, expires)));
            assert_eq!(added, Ok(()));
        }
        let add = || tokens.change("new", |_| Some(stored("new", None)));
        assert_eq!(add(), Err(TooManyTokens));
        assert!(tokens.find("7").unwrap().is_ok());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(tokens.find("7").unwrap(), Err(TokenFault::Expired));
        assert_eq!(add(), Ok(()));
        assert_eq!(tokens.find("7"), None);
        assert_eq!(tokens.list().len(), MAX_STORED);
        assert!(tokens.remove("new") && !tokens.remove("new"));
        assert_eq!(tokens.find("new"), None);
    }

    #[test]
    fn the_first_of_two_equal_tokens_counts() {
        let token = |rights: &[Right]| StoredToken {
            token: "t".to_owned(),
            plugins: Vec::new(),
            rights: rights.to_vec(),
        };
        let tokens = StoredTokens::new(&[token(&[Right::Record]), token(&Right::ALL)]);
        let found = tokens.find("t").unwrap().unwrap();
        assert_eq!(found.rights(), Right::Record.into());
    }
}
