//! Why tokens are refused: what the log and the counters say, and clients are not told.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::LogGate;
use crate::counters::add;

/// What is wrong with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFault {
    /// It is none that is stored, and none that is signed.
    #[error("the server does not know it")]
    Unknown,
    /// It has more bytes than are looked at.
    #[error("it is longer than 4096 bytes")]
    TooLong,
    /// It is no token of its kind; the text says why.
    #[error("it is malformed: {0}")]
    Malformed(&'static str),
    /// The server has no key of the algorithm that it names.
    #[error("its algorithm is not that of a key of the server")]
    Algorithm,
    /// The server has no key of the id that it names.
    #[error("it is signed with a key that the server does not have (kid)")]
    Key,
    /// Whoever signed it has another key, or it was changed.
    #[error("its signature is wrong")]
    Signature,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// Its time has not come.
    #[error("it is not valid yet (nbf)")]
    NotYet,
    /// It is from another issuer than the configuration names.
    #[error("it is from another issuer (iss)")]
    Issuer,
    /// It is for another audience than the configuration names, or signed for another realm.
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
pub(super) struct Faults {
    counts: [(AtomicU64, LogGate); REASONS.len()],
}

impl Faults {
    /// Counts a refused token, and logs it at most once a second for each reason.
    pub(super) fn count(&self, fault: TokenFault) {
        let Some((count, gate)) = self.counts.get(fault.index()) else {
            return;
        };
        add(count);
        if let Some(suppressed) = gate.open() {
            let reason = fault.reason();
            tracing::info!(reason, suppressed, "refused a token: {fault}");
        }
    }

    /// Each reason with its count.
    pub(super) fn snapshot(&self) -> Vec<(&'static str, u64)> {
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
