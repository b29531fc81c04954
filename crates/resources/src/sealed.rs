//! Secrets and PINs in a form that shows nothing of them, for other nodes of a cluster.

use std::sync::LazyLock;

use portunus_core::equal_in_constant_time;
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
            let salt = Sha256::new().chain_update(*SALTS).chain_update(owner);
            let salt = hex(&salt.finalize());
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
}
