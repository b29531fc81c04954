#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_recordplay::{MAX_NFO, Nfo};

// A parsed file is written so that it reads the same.
fuzz_target!(|bytes: &[u8]| {
    let Ok(nfo) = Nfo::parse(bytes) else { return };
    let text = nfo.to_text();
    if text.len() > MAX_NFO {
        return;
    }
    let again = Nfo::parse(text.as_bytes()).expect("what was written");
    assert_eq!((again.id, again.is_private), (nfo.id, nfo.is_private));
    assert!(again.files.named().eq(nfo.files.named()));
    // Names of parts are omitted if the file would be too long.
    assert!(nfo.files.parts.starts_with(&again.files.parts));
});
