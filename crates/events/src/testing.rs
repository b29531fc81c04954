//! The parsers of peers' data, for use without sockets.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};

use crate::nanomsg::wire;
use crate::webhook::failure;

/// The longest wait that a webhook's backend can ask for.
pub const MOST_WAIT: Duration = failure::MOST_WAIT;

/// Returns the wait that a webhook's backend requests in a header `Retry-After`.
pub fn retry_after(value: &[u8], now: SystemTime) -> Option<Duration> {
    let value = HeaderValue::from_bytes(value).ok()?;
    failure::retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value)]), now)
}

/// Returns whether this is the greeting of a nanomsg subscriber.
pub fn is_nanomsg_subscriber(greeting: [u8; 8]) -> bool {
    wire::check(greeting).is_ok()
}
