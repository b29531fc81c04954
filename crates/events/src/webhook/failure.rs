//! Failures of attempts, and whether a retry can help.

use std::error::Error;
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode};

/// The longest wait that a backend can ask for.
pub(crate) const MOST_WAIT: Duration = Duration::from_secs(60);

/// Why events did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("the webhook's backend cannot be reached: {0}")]
    Unreachable(String),
    #[error("the webhook's backend did not answer in time")]
    Late,
    #[error("the webhook's backend broke off, or its answer is no HTTP: {0}")]
    Broken(String),
    #[error("the webhook's backend answered {status}")]
    Busy {
        status: StatusCode,
        retry_after: Option<Duration>,
    },
    #[error("the webhook's backend refuses events with {0}")]
    Refused(StatusCode),
    #[error("the webhook's backend answered {status}, a redirect to {to:?}")]
    Redirect { status: StatusCode, to: String },
    #[error("events cannot be compressed: {0}")]
    Uncompressed(String),
    #[error("events cannot be signed: {0}")]
    Unsigned(String),
}

impl Failure {
    /// Returns the failure of an answer, or `None` for a success.
    pub(super) fn of_answer(answer: &Response) -> Option<Self> {
        let status = answer.status();
        let again = [
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::TOO_EARLY,
            StatusCode::TOO_MANY_REQUESTS,
        ];
        if status.is_success() {
            None
        } else if status.is_server_error() || again.contains(&status) {
            let retry_after = retry_after(answer.headers(), SystemTime::now());
            Some(Failure::Busy {
                status,
                retry_after,
            })
        } else if status.is_redirection() {
            let to = answer.headers().get(LOCATION);
            let to = to.map_or_else(String::new, |to| {
                String::from_utf8_lossy(to.as_bytes())
                    .chars()
                    .take(200)
                    .collect()
            });
            Some(Failure::Redirect { status, to })
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

    /// Returns whether a retry with the same events would fail in the same way.
    pub(super) const fn is_final(&self) -> bool {
        matches!(self, Failure::Refused(_) | Failure::Redirect { .. })
    }

    /// Returns the wait that the backend requests.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Failure::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns advice to the operator.
    pub(super) fn advice(&self) -> &'static str {
        match self {
            Failure::Unreachable(_) => {
                "see that the backend runs, and that events.webhook.backend is its address"
            }
            Failure::Late => "it should answer at once, and work on the events afterwards",
            Failure::Broken(_) => {
                "see the backend's own log, and whether events.webhook.backend is an HTTP server"
            }
            Failure::Busy { .. } => {
                "see the backend's own log; events wait, and the oldest are lost if it lasts"
            }
            Failure::Refused(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                "set backend_user and backend_pwd, or bearer, in [events.webhook]; these events are lost"
            }
            Failure::Refused(_) => {
                "it should answer a POST of JSON with 200; these events are lost"
            }
            Failure::Uncompressed(_) | Failure::Unsigned(_) => {
                "this is a fault of the server: please report it"
            }
            Failure::Redirect { .. } => {
                "redirects are not followed: set events.webhook.backend to where it leads; these events are lost"
            }
        }
    }
}

/// Returns the wait before the next attempt: seconds, or a date (RFC 9110, section 10.2.3).
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = httpdate::parse_http_date(text).ok()?;
            date.duration_since(now).unwrap_or_default()
        }
    };
    Some(wait.min(MOST_WAIT))
}

/// Returns the innermost cause, which is the most precise one.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_wait_is_read_in_both_forms_and_bounded() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            retry_after(&headers, now).map(|wait| wait.as_secs())
        };
        assert_eq!(read("7"), Some(7));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:40 GMT"), Some(3));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!(read("86400"), Some(60));
        assert_eq!(read("99999999999999999999999"), None);
        assert_eq!(read("-1"), None);
        assert_eq!(read("soon"), None);
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
