#![no_main]
//! Descriptions from an RTSP server.

use libfuzzer_sys::fuzz_target;
use portunus_rtsp::{WantedMedia, parse_description};

fuzz_target!(|data: &[u8]| {
    for audio in [true, false] {
        let wanted = WantedMedia { audio, video: true };
        if let Ok((choices, whole)) = parse_description(data, "rtsp://host/path", wanted) {
            assert!((1..=2).contains(&choices.len()));
            assert!(choices.iter().all(|choice| !choice.media().is_empty()));
            let media = choices.iter().flat_map(|choice| choice.media());
            // The URLs become lines of requests.
            let urls = media.map(|medium| &medium.control).chain([&whole]);
            assert!(urls.into_iter().all(|url| !url.contains(['\r', '\n', ' '])));
        }
    }
});
