#![no_main]

use std::io::Cursor;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use portunus_files::{Play, Playback};

// Two consecutive recordings: times never decrease, and any position can be reached.
fuzz_target!(|bytes: &[u8]| {
    let Some((&[high, low], bytes)) = bytes.split_first_chunk() else {
        return;
    };
    let split = usize::from(u16::from_be_bytes([high, low])).min(bytes.len());
    let (one, other) = bytes.split_at(split);
    let readers = [one, other].map(|it| Cursor::new(it.to_vec()));
    let Ok((mut playback, _)) = Playback::of_recordings(readers) else {
        return;
    };
    let lasts = playback.duration().unwrap_or_default();
    let mut last = vec![Duration::ZERO; playback.tracks().len()];
    let mut sent = playback.nothing_sent();
    for to in [None, Some(lasts / 2), Some(Duration::ZERO), Some(lasts)] {
        if let Some(to) = to
            && playback.seek_behind(&sent, to).is_err()
        {
            return;
        }
        for _ in 0..500 {
            match playback.next() {
                None | Some(Err(_)) => break,
                Some(Ok(packet)) => {
                    assert!(packet.at >= last[packet.track]);
                    last[packet.track] = packet.at;
                    let sequence = packet
                        .bytes
                        .get(2..4)
                        .map_or(0, |it| u16::from_be_bytes([it[0], it[1]]));
                    sent.add(packet.track, sequence, packet.at, packet.presented);
                }
            }
        }
    }
});
