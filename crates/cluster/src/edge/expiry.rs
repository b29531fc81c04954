//! The end of this node's certificate, of which the node warns.

use std::time::{Duration, Instant};

use crate::authority::{Identity, unix_time};

/// So many days before the end the node begins to warn.
const WARN_DAYS: i64 = 30;

/// Between two warnings in the log.
const AGAIN: Duration = Duration::from_secs(86_400);

const DAY: i64 = 86_400;

/// When the certificate expires.
#[derive(Debug)]
pub(super) struct Expiry {
    at: u64,
    warned: Option<Instant>,
}

impl Expiry {
    pub(super) fn of(identity: &Identity) -> Self {
        Expiry {
            at: identity.expires,
            warned: None,
        }
    }

    /// Returns when, in seconds since 1970.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Returns the whole days that are left. Negative after the end.
    pub(super) fn days_left(&self) -> i64 {
        let [at, now] = [self.at, unix_time()].map(|it| i64::try_from(it).unwrap_or(i64::MAX));
        at.saturating_sub(now).div_euclid(DAY)
    }

    /// Returns what people should do, once it is time.
    pub(super) fn warning(&self) -> Option<String> {
        let days = self.days_left();
        let what = match days {
            ..0 => "this node's certificate has expired: no new link comes up".to_owned(),
            0..=WARN_DAYS => format!("this node's certificate expires in {days} days"),
            _ => return None,
        };
        let to_do = match days {
            ..0 => "join by a new invitation",
            _ => "`portunus cluster renew`",
        };
        Some(format!("{what} ({to_do})"))
    }

    /// Writes the warning to the log, once a day.
    pub(super) fn look(&mut self, now: Instant) {
        let is_early = |at: Instant| now.saturating_duration_since(at) < AGAIN;
        if self.warned.is_some_and(is_early) {
            return;
        }
        if let Some(warning) = self.warning() {
            tracing::warn!("cluster: {warning}");
            self.warned = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_seconds(seconds: i64) -> Expiry {
        Expiry {
            at: unix_time().saturating_add_signed(seconds),
            warned: None,
        }
    }

    #[test]
    fn the_last_thirty_days_are_worth_a_warning() {
        let later = in_seconds(32 * DAY - 60);
        assert_eq!((later.days_left(), later.warning()), (31, None));
        let soon = in_seconds(20 * DAY + 60);
        assert!(
            soon.warning()
                .is_some_and(|it| it.contains("expires in 20 days"))
        );
        let past = in_seconds(-60);
        assert_eq!(past.days_left(), -1);
        assert!(past.warning().is_some_and(|it| it.contains("has expired")));
    }
}
