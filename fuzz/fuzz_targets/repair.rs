#![no_main]
//! Any file is repaired. The result is whole, and repairing it again changes nothing.

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use portunus_files::container::repair;

fuzz_target!(|data: &[u8]| {
    let mut file = Vec::new();
    let Ok(first) = repair(Cursor::new(data.to_vec()), &mut file) else {
        return;
    };
    let mut again = Vec::new();
    let second = repair(Cursor::new(file.clone()), &mut again).expect("a repaired file");
    assert!(second.was_whole);
    assert_eq!(second.frames, first.frames);
    assert_eq!(again, file);
});
