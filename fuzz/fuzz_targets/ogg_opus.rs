#![no_main]
//! Ogg Opus: each packet is a time after the end of the previous one (u16), a length (u8) and its
//! bytes. The written file is read again.

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use portunus_files::opus::{OggOpusWriter, OpusHead, OpusTags, OpusTime, Placed, packet_duration};
use portunus_files::{MediaFile, OpenOptions};
use portunus_rtp::Header;

fuzz_target!(|data: &[u8]| {
    let (head, tags) = (OpusHead::default(), OpusTags::default());
    let Ok(mut writer) = OggOpusWriter::new(Vec::new(), 7, &head, &tags) else {
        return;
    };
    let mut written = Vec::new();
    let mut rest = data;
    while let [high, low, len, behind @ ..] = rest {
        let (packet, behind) = behind.split_at(usize::from(*len).min(behind.len()));
        rest = behind;
        let at = OpusTime(u64::from(u16::from_be_bytes([*high, *low])));
        match writer.packet(writer.end().plus(at), packet) {
            Ok(placed) => {
                assert_eq!(placed, Placed::Written);
                written.push(packet);
            }
            Err(_) => assert_eq!(packet_duration(packet), None),
        }
    }
    let end = writer.end();
    let Ok(file) = writer.finish(end) else {
        return;
    };
    let options = OpenOptions {
        looping: false,
        ..OpenOptions::default()
    };
    let file = MediaFile::from_reader(Cursor::new(file), "", &options);
    let mut file = file.expect("a file");
    let mut expected = written.into_iter().peekable();
    let mut length = OpusTime(0);
    while let Some(Ok(packet)) = file.next() {
        let header = Header::parse(packet.bytes).expect("a packet");
        let payload = header.payload(packet.bytes);
        length = length.plus(packet_duration(payload).expect("a duration"));
        expected.next_if_eq(&payload);
    }
    assert!(expected.next().is_none());
    assert_eq!(length, end);
});
