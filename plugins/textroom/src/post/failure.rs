//! Failures of posts, and whether a retry can help.

use std::error::Error;

use reqwest::StatusCode;

/// Why a message did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("it did not answer in time")]
    Late,
    #[error("it broke off, or its answer is no HTTP: {0}")]
    Broken(String),
    #[error("it answered {0}")]
    Busy(StatusCode),
    #[error("it refuses messages with {0}")]
    Refused(StatusCode),
}

impl Failure {
    /// Returns the failure of a status, or `None` for a success.
    pub(super) fn of_status(status: StatusCode) -> Option<Self> {
        let again = [
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::TOO_EARLY,
            StatusCode::TOO_MANY_REQUESTS,
        ];
        if status.is_success() {
            None
        } else if status.is_server_error() || again.contains(&status) {
            Some(Failure::Busy(status))
        } else {
            Some(Failure::Refused(status))
        }
    }

    pub(super) fn of_error(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            Failure::Late
        } else if error.is_connect() {
            Failure::Unreachable(cause(error))
        } else {
            Failure::Broken(cause(error))
        }
    }

    /// Returns whether a retry with the same message would fail in the same way.
    pub(super) const fn is_final(&self) -> bool {
        matches!(self, Failure::Refused(_))
    }
}

/// Returns the innermost cause. It is the most precise one, and does not contain the address.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_tried_again() {
        assert!(Failure::of_status(StatusCode::NO_CONTENT).is_none());
        for (status, is_final) in [
            (StatusCode::INTERNAL_SERVER_ERROR, false),
            (StatusCode::TOO_MANY_REQUESTS, false),
            (StatusCode::NOT_FOUND, true),
            (StatusCode::FOUND, true),
        ] {
            let failure = Failure::of_status(status);
            assert_eq!(
                failure.map(|failure| failure.is_final()),
                Some(is_final),
                "{status}"
            );
        }
    }
}
