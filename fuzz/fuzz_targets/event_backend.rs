#![no_main]

use std::time::{Duration, SystemTime};

use libfuzzer_sys::fuzz_target;
use portunus_events::testing::{MOST_WAIT, is_nanomsg_subscriber, retry_after};

// What the peers of event handlers send. No wait exceeds the limit, a wait in seconds is taken as
// written, and a subscriber has one greeting only.
fuzz_target!(|data: &[u8]| {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_000_000);
    let wait = retry_after(data, now);
    assert!(wait.is_none_or(|wait| wait <= MOST_WAIT));
    let text = std::str::from_utf8(data).unwrap_or_default();
    if let Some(seconds) = text.parse().ok().filter(|_| !text.starts_with('+')) {
        assert_eq!(wait, Some(Duration::from_secs(seconds).min(MOST_WAIT)));
    }
    if let Some(greeting) = data.first_chunk() {
        let expected = [0, b'S', b'P', 0, 0, 33, 0, 0];
        assert_eq!(is_nanomsg_subscriber(*greeting), *greeting == expected);
    }
});
