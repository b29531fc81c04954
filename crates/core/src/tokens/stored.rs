//! Tokens that the server knows by heart: those of the configuration, and those that administrators add.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use openssl::sha::sha256;
use tokio::time::Instant;

use super::jwt::Digest;
use crate::{Right, Rights, StoredToken, TokenFault};

/// How many there may be.
pub(super) const MAX_STORED: usize = 10_000;

/// A token, and what it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(super) token: String,
    pub(super) plugins: Plugins,
    pub(super) rights: Vec<Right>,
    pub(super) expires: Option<Instant>,
}

/// The plugins that a token opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Plugins {
    All,
    These(BTreeSet<String>),
}

impl Plugins {
    /// Their packages, where there are `all`.
    pub(super) fn packages(&self, all: &[&str]) -> BTreeSet<String> {
        match self {
            Plugins::All => all.iter().map(|package| (*package).to_owned()).collect(),
            Plugins::These(packages) => packages.clone(),
        }
    }
}

impl Stored {
    pub(super) fn opens(&self, package: &str) -> bool {
        match &self.plugins {
            Plugins::All => true,
            Plugins::These(packages) => packages.contains(package),
        }
    }

    pub(super) fn rights(&self) -> Rights {
        self.rights.iter().copied().collect()
    }

    /// How long it is still valid; none: for good.
    pub(super) fn left(&self) -> Option<Duration> {
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
                true => Plugins::All,
                false => Plugins::These(configured.plugins.iter().cloned().collect()),
            },
            rights: configured.rights.clone(),
            expires: None,
        }
    }
}

/// The tokens, by their digests: how long a look takes tells nothing of them.
#[derive(Debug)]
pub(super) struct StoredTokens {
    tokens: RwLock<HashMap<Digest, Arc<Stored>>>,
}

/// There are as many tokens as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

impl StoredTokens {
    pub(super) fn new(configured: &[StoredToken]) -> Self {
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

    pub(super) fn is_empty(&self) -> bool {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.is_empty()
    }

    /// The token that somebody shows; none if it is not stored.
    pub(super) fn find(&self, token: &str) -> Option<Result<Arc<Stored>, TokenFault>> {
        let digest = sha256(token.as_bytes());
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let stored = tokens.get(&digest)?.clone();
        Some(match stored.has_expired() {
            true => Err(TokenFault::Expired),
            false => Ok(stored),
        })
    }

    /// Lets `change` say what a token is from now on, given what it is now, if it is valid. None: it stays as it is.
    pub(super) fn change(
        &self,
        token: &str,
        change: impl FnOnce(Option<&Stored>) -> Option<Stored>,
    ) -> Result<(), Full> {
        let digest = sha256(token.as_bytes());
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let now = tokens.get(&digest).filter(|stored| !stored.has_expired());
        let Some(next) = change(now.map(Arc::as_ref)) else {
            return Ok(());
        };
        if !tokens.contains_key(&digest) && tokens.len() >= MAX_STORED {
            tokens.retain(|_, stored| !stored.has_expired());
            if tokens.len() >= MAX_STORED {
                return Err(Full);
            }
        }
        tokens.insert(digest, Arc::new(next));
        Ok(())
    }

    /// Removes a token; false if there is none, or its time is over.
    pub(super) fn remove(&self, token: &str) -> bool {
        let digest = sha256(token.as_bytes());
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let removed = tokens.remove(&digest);
        removed.is_some_and(|stored| !stored.has_expired())
    }

    /// All that are valid, in the order of their texts.
    pub(super) fn list(&self) -> Vec<Arc<Stored>> {
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
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn stored(token: &str, expires: Option<Instant>) -> Stored {
        Stored {
            token: token.to_owned(),
            plugins: Plugins::All,
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
        assert_eq!(add(), Err(Full));
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
