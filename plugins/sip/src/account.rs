//! Accounts, and the pages that share them.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::equal_in_constant_time;
use portunus_sip::agent::{AccountId, CallId};
use portunus_sip::message::Uri;
use tokio::time::Instant;

use crate::status::{PageId, RegistrationStatus};

/// The secret of an account.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Secret {
    Password(String),
    /// Hexadecimal MD5 of user, realm and password.
    Ha1(String),
}

impl Secret {
    /// Whether `other` is the same secret.
    fn is(&self, other: &Secret) -> bool {
        match (self, other) {
            (Secret::Password(own), Secret::Password(shown))
            | (Secret::Ha1(own), Secret::Ha1(shown)) => equal_in_constant_time(own, shown),
            _ => false,
        }
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// The specification of an account, as `register` gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccountSpec {
    /// The identity: `sip:user@domain`.
    pub(crate) identity: Uri,
    /// Its user part.
    pub(crate) user: String,
    pub(crate) display_name: Option<String>,
    /// The user of digests. `None` for the user part.
    pub(crate) authuser: Option<String>,
    pub(crate) secret: Option<Secret>,
    /// Whether it is registered at a server.
    pub(crate) registers: bool,
    pub(crate) guest: bool,
    /// The registrar's URI. `None` for the identity's domain.
    pub(crate) proxy: Option<Uri>,
    /// The next hop of requests outside of dialogs.
    pub(crate) outbound_proxy: Option<Uri>,
    pub(crate) ttl: Duration,
    /// Header fields of REGISTER.
    pub(crate) headers: Vec<(String, String)>,
    /// Parameters of the contact's URI.
    pub(crate) contact_params: Vec<(String, String)>,
    /// The requested transports.
    pub(crate) udp: bool,
    pub(crate) tcp: bool,
    pub(crate) sips: bool,
    pub(crate) user_agent: Option<String>,
    /// CANCEL may be sent before any response.
    pub(crate) rfc2543_cancel: bool,
}

impl AccountSpec {
    /// Whether `shown` is its secret.
    pub(crate) fn is_shown(&self, shown: Option<&Secret>) -> bool {
        let pair = self.secret.as_ref().zip(shown);
        pair.is_some_and(|(own, shown)| own.is(shown))
    }

    /// Whether a page that registers `other` shares this account: the same identity at the same
    /// server, with the same secret.
    pub(crate) fn is_shared_by(&self, other: &AccountSpec) -> bool {
        let (Some(own), Some(shown)) = (&self.secret, &other.secret) else {
            return false;
        };
        self.registers
            && other.registers
            && self.identity.matches(&other.identity)
            && self.authuser == other.authuser
            && self.proxy == other.proxy
            && self.outbound_proxy == other.outbound_proxy
            && (self.tcp, self.sips) == (other.tcp, other.sips)
            && own.is(shown)
    }
}

/// An account: one registration and one contact, whatever the number of its pages.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) id: AccountId,
    pub(crate) spec: Arc<AccountSpec>,
    pub(crate) status: RegistrationStatus,
    /// The pages that have registered it, oldest first, without their helpers.
    pub(crate) pages: Vec<PageId>,
    /// Calls that wait for a page.
    pub(crate) parked: Vec<Parked>,
}

/// A call that waits for a page to take it.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) call: CallId,
    /// The time when it ends if no page takes it.
    pub(crate) until: Instant,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    fn spec() -> AccountSpec {
        AccountSpec {
            identity: uri("sip:alice@example.org"),
            user: "alice".to_owned(),
            display_name: None,
            authuser: None,
            secret: Some(Secret::Password("wonderland".to_owned())),
            registers: true,
            guest: false,
            proxy: None,
            outbound_proxy: None,
            ttl: Duration::from_secs(60),
            headers: Vec::new(),
            contact_params: Vec::new(),
            udp: false,
            tcp: false,
            sips: false,
            user_agent: None,
            rfc2543_cancel: false,
        }
    }

    #[test]
    fn an_account_is_shared_by_who_knows_its_secret() {
        let with = |change: fn(&mut AccountSpec)| {
            let mut other = spec();
            change(&mut other);
            spec().is_shared_by(&other)
        };
        assert!(with(|_| {}));
        assert!(with(|it| it.display_name = Some("Alice".to_owned())));
        assert!(with(|it| it.identity = uri("sip:alice@EXAMPLE.org")));
        assert!(!with(|it| it.identity = uri("sip:Alice@example.org")));
        assert!(!with(
            |it| it.secret = Some(Secret::Password("x".to_owned()))
        ));
        assert!(!with(
            |it| it.secret = Some(Secret::Ha1("wonderland".to_owned()))
        ));
        assert!(!with(|it| it.secret = None));
        assert!(!with(|it| it.registers = false));
        assert!(!with(|it| it.proxy = Some(uri("sip:other.example.org"))));
        assert!(!with(|it| it.tcp = true));
    }
}
