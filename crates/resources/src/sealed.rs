//! Secrets and PINs in a form that shows nothing of them, for other nodes of a cluster.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use portunus_core::equal_in_constant_time;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The start of a sealed text. A secret that clients choose may start with it, too: it is then
/// taken for what it looks like, which harms only its own room.
const MARK: &str = "\u{0}sha256:";
/// What the salts of this run are made of.
static SALTS: LazyLock<[u8; 32]> = LazyLock::new(rand::random);

/// Returns a secret in sealed form: a salt and its SHA-256 with the secret. The salt is that of
/// `owner`, so that the form is the same each time and unlike that of the same secret elsewhere. A
/// short PIN can be found by trying, so the form is for other nodes only.
pub(crate) fn seal(secret: &str, owner: &str) -> String {
    match secret.starts_with(MARK) {
        true => secret.to_owned(),
        false => {
            let salt = salt_of(owner);
            let digest = digest(&salt, secret);
            format!("{MARK}{salt}:{digest}")
        }
    }
}

/// Returns whether `shown` is the secret, which may be sealed.
pub(crate) fn is(secret: &str, shown: &str) -> bool {
    let sealed = secret.strip_prefix(MARK);
    match sealed.and_then(|sealed| sealed.split_once(':')) {
        Some((salt, sealed)) => equal_in_constant_time(sealed, &digest(salt, shown)),
        None => equal_in_constant_time(secret, shown),
    }
}

/// The bytes of a sealed token's digest: enough for tokens, and 1,700 of them fit into an item of
/// the cluster.
const TOKEN_DIGEST: usize = 16;

/// Tokens in sealed form, with one salt for all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct SealedTokens {
    salt: String,
    digests: BTreeSet<String>,
}

impl SealedTokens {
    /// Seals tokens with the salt of `owner`, or with that of `before` if there is one.
    pub(crate) fn seal<'a>(
        tokens: impl Iterator<Item = &'a String>,
        owner: &str,
        before: Option<&Self>,
    ) -> Self {
        let salt = before.map_or_else(|| salt_of(owner), |before| before.salt.clone());
        let mut digests = before
            .map(|before| before.digests.clone())
            .unwrap_or_default();
        digests.extend(tokens.map(|token| token_digest(&salt, token)));
        SealedTokens { salt, digests }
    }

    /// Returns whether a token is one of them.
    pub(crate) fn has(&self, token: &str) -> bool {
        // What a client learns by the time of a look-up is about a digest, not about a token.
        self.digests.contains(&token_digest(&self.salt, token))
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.digests.len()
    }

    /// Removes a token.
    pub(crate) fn remove(&mut self, token: &str) {
        self.digests.remove(&token_digest(&self.salt, token));
    }
}

fn token_digest(salt: &str, token: &str) -> String {
    let digest = Sha256::new().chain_update(salt).chain_update(token);
    let digest = digest.finalize();
    hex(digest.get(..TOKEN_DIGEST).unwrap_or_default())
}

fn salt_of(owner: &str) -> String {
    let salt = Sha256::new().chain_update(*SALTS).chain_update(owner);
    hex(&salt.finalize())
}

fn digest(salt: &str, secret: &str) -> String {
    let digest = Sha256::new().chain_update(salt).chain_update(secret);
    hex(&digest.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_secret_is_known_by_the_secret_only() {
        let sealed = seal("s3cret", "room");
        assert!(!sealed.contains("s3cret"));
        assert!(is(&sealed, "s3cret") && !is(&sealed, "s3cre") && !is(&sealed, &sealed));
        assert_eq!(seal(&sealed, "room"), sealed);
        assert_eq!(seal("s3cret", "room"), sealed);
        assert_ne!(seal("s3cret", "another room"), sealed);
        assert!(is("s3cret", "s3cret") && !is("s3cret", "t"));
    }

    #[test]
    fn sealed_tokens_are_known_by_the_tokens_only() {
        let tokens = ["a".to_owned(), "b".to_owned()];
        let mut sealed = SealedTokens::seal(tokens.iter(), "room", None);
        assert!(sealed.has("a") && sealed.has("b") && !sealed.has("c"));
        sealed.remove("a");
        assert!(!sealed.has("a"));
        let more = SealedTokens::seal(["c".to_owned()].iter(), "another room", Some(&sealed));
        assert!(more.has("b") && more.has("c") && !more.has("a"));
    }
}
