//! The reasons why tokens are refused. The log and the counters name them; clients do not learn
//! them.

use std::sync::atomic::{AtomicU64, Ordering};

use portunus_log_gate::LogGate;

/// The reason why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFault {
    /// It is neither a stored nor a signed token.
    #[error("the server does not know it")]
    Unknown,
    /// It is longer than [`MAX_TOKEN`](crate::MAX_TOKEN).
    #[error("it is longer than 4096 bytes")]
    TooLong,
    /// It does not have the form of its kind. The text says why.
    #[error("it is malformed: {0}")]
    Malformed(&'static str),
    /// The server has no key for its algorithm.
    #[error("its algorithm is not that of a key of the server")]
    Algorithm,
    /// The server has no key with its key id.
    #[error("it is signed with a key that the server does not have (kid)")]
    Key,
    /// It was signed with another key, or it was changed.
    #[error("its signature is wrong")]
    Signature,
    /// It has expired.
    #[error("it has expired")]
    Expired,
    /// It is not valid yet.
    #[error("it is not valid yet (nbf)")]
    NotYet,
    /// Its issuer is not the configured one.
    #[error("it is from another issuer (iss)")]
    Issuer,
    /// Its audience is not the configured one, or it is signed for another realm.
    #[error("it is for another audience (aud, or the realm)")]
    Audience,
}

/// The words of all faults, in the order of their counters.
const REASONS: [&str; 10] = [
    "unknown",
    "too_long",
    "malformed",
    "algorithm",
    "key",
    "signature",
    "expired",
    "not_yet",
    "issuer",
    "audience",
];

impl TokenFault {
    /// A word for logs and metrics.
    pub fn reason(self) -> &'static str {
        REASONS.get(self.index()).copied().unwrap_or_default()
    }

    const fn index(self) -> usize {
        match self {
            TokenFault::Unknown => 0,
            TokenFault::TooLong => 1,
            TokenFault::Malformed(_) => 2,
            TokenFault::Algorithm => 3,
            TokenFault::Key => 4,
            TokenFault::Signature => 5,
            TokenFault::Expired => 6,
            TokenFault::NotYet => 7,
            TokenFault::Issuer => 8,
            TokenFault::Audience => 9,
        }
    }
}

/// How many tokens were refused, by reason.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    counts: [(AtomicU64, LogGate); REASONS.len()],
}

impl Faults {
    /// Counts a refused token, and logs it at most once a second for each reason.
    pub(crate) fn count(&self, fault: TokenFault) {
        let Some((count, gate)) = self.counts.get(fault.index()) else {
            return;
        };
        count.fetch_add(1, Ordering::Relaxed);
        if let Some(suppressed) = gate.open() {
            let reason = fault.reason();
            tracing::info!(reason, suppressed, "refused a token: {fault}");
        }
    }

    /// Each reason with its count.
    pub(crate) fn snapshot(&self) -> Vec<(&'static str, u64)> {
        let counts = self.counts.iter();
        let counts = counts.map(|(count, _)| count.load(Ordering::Relaxed));
        REASONS.into_iter().zip(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_counter_of_its_own() {
        let faults = Faults::default();
        let all = [
            TokenFault::Unknown,
            TokenFault::TooLong,
            TokenFault::Malformed("x"),
            TokenFault::Algorithm,
            TokenFault::Key,
            TokenFault::Signature,
            TokenFault::Expired,
            TokenFault::NotYet,
            TokenFault::Issuer,
            TokenFault::Audience,
        ];
        for (times, fault) in (1..).zip(all) {
            (0..times).for_each(|_| faults.count(fault));
        }
        let expected: Vec<_> = all.map(TokenFault::reason).into_iter().zip(1..).collect();
        assert_eq!(faults.snapshot(), expected);
    }
}
