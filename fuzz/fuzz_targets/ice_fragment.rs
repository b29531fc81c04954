#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_sdp::IceFragment;

// A parsed fragment can be written and read again.
fuzz_target!(|text: &str| {
    if let Ok(fragment) = IceFragment::parse(text) {
        assert!(fragment.candidates.len() <= 100);
        let again = IceFragment::parse(&fragment.to_string()).expect("a fragment");
        assert_eq!(again.ice, fragment.ice);
        assert_eq!(again.candidates.len(), fragment.candidates.len());
        assert_eq!(again.complete, fragment.complete);
    }
});
