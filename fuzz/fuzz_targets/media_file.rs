#![no_main]
//! Containers: the first byte chooses the format, the rest is the file.

use std::io::Cursor;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use portunus_files::{MediaFile, OpenOptions};

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else {
        return;
    };
    let options = OpenOptions {
        audio: kind & 1 == 0,
        video: kind & 2 == 0,
        looping: kind & 4 != 0,
    };
    let extension = if kind & 8 != 0 { "alaw" } else { "" };
    let Ok(mut file) = MediaFile::from_reader(Cursor::new(bytes.to_vec()), extension, &options)
    else {
        return;
    };
    for round in 0..3 {
        for _ in 0..200 {
            match file.next() {
                Some(Ok(packet)) => assert!(packet.bytes.len() >= 12),
                _ => break,
            }
        }
        if file.seek(Duration::from_millis(round * 300)).is_err() {
            break;
        }
    }
});
