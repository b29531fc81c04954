#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_core::testing::{signed_token, signed_token_opens};

// A token that was not signed grants nothing. A signed one grants what it names, and only that.
fuzz_target!(|text: &str| {
    let opens = |token: &str, now: u64| signed_token_opens(token, "secret", now, "janus", "a");
    assert!(!opens(text, 0));
    let token = signed_token(text, "secret");
    assert!(!signed_token_opens(&token, "other", 0, "janus", "a"));
    let mut fields = text.split(',');
    let expiry = fields.next().and_then(|expiry| expiry.parse::<u64>().ok());
    let is_for = fields.next() == Some("janus") && fields.any(|field| field == "a");
    let expected = is_for && expiry.is_some_and(|expiry| expiry > 0);
    assert_eq!(opens(&token, 0), expected);
    assert!(!opens(&token, u64::MAX));
});
