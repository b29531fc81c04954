#![no_main]

use libfuzzer_sys::fuzz_target;

// Files of saved mountpoints and rooms, and of what LiveKit's services have made: a written file
// reads the same.
fuzz_target!(|text: &str| {
    for string_ids in [false, true] {
        for rewrite in [
            portunus_streaming::rewrite_saved,
            portunus_videoroom::rewrite_saved,
            portunus_textroom::rewrite_saved,
            portunus_audiobridge::rewrite_saved,
        ] {
            if let Ok(written) = rewrite(text, string_ids) {
                assert_eq!(rewrite(&written, string_ids), Ok(written.clone()));
            }
        }
    }
    if let Ok(written) = portunus_livekit::rewrite_saved(text) {
        assert_eq!(portunus_livekit::rewrite_saved(&written), Ok(written.clone()));
    }
});
