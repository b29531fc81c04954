#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_media::ingest::ParameterSets;
use portunus_rtp::codec::h264;

// Accepted sets become one aggregation packet that starts with what a decoder needs.
fuzz_target!(|text: &str| {
    if let Ok(sets) = ParameterSets::from_sprop(text) {
        assert!(h264::has_parameter_sets(sets.payload()));
        assert!(h264::nal_types(sets.payload()).all(|kind| kind == 7 || kind == 8));
    }
});
