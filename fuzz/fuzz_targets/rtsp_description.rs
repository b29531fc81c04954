#![no_main]
//! What an RTSP server says that it has.

use libfuzzer_sys::fuzz_target;
use portunus_rtsp::parse_description;

fuzz_target!(|data: &[u8]| {
    for wanted in [(true, true), (false, true)] {
        if let Ok((media, whole)) = parse_description(data, "rtsp://host/path", wanted) {
            assert!((1..=2).contains(&media.len()));
            // They become lines of requests.
            let urls = media.iter().map(|medium| &medium.control).chain([&whole]);
            assert!(urls.into_iter().all(|url| !url.contains(['\r', '\n', ' '])));
        }
    }
});
