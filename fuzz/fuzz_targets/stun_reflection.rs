//! The answer of a STUN server: attributes in a success response of the right transaction.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtc::Reflection;

fuzz_target!(|attributes: &[u8]| {
    let question = Reflection::new();
    // An answer that fits no request is ignored.
    let _ = question.seen(attributes);
    let mut answer = vec![1, 1, 0, 0];
    answer.extend(&question.request()[4..]);
    answer.extend(attributes);
    if let Some(address) = question.seen(&answer) {
        assert!(attributes.len() >= 12, "{address}");
    }
});
