#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtc::testing::{Link, Pair};

// A candidate's text is accepted, ignored or refused.
fuzz_target!(|text: &str| {
    let mut pair = Pair::new(1, Link::GOOD);
    pair.negotiate();
    let _ = pair.left.transport.add_remote_candidate(text, pair.now);
    if portunus_rtc::mdns_name(text).is_some() {
        let resolved = portunus_rtc::with_address(text, [192, 0, 2, 1].into());
        assert_eq!(portunus_rtc::mdns_name(&resolved), None);
    }
    pair.flush();
});
