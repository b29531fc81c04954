#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::{Fields, Header, write_header};

fuzz_target!(|packet: &[u8]| {
    let _ = Header::parse(packet);
    let Ok(header) = Header::parse_encrypted(packet) else {
        return;
    };
    assert_eq!(
        header.header_len() + header.payload(packet).len(),
        packet.len()
    );
    let _ = header.csrcs(packet).count();
    // All fields again, as a relay writes them.
    let Header {
        marker,
        pt,
        sequence,
        timestamp,
        ssrc,
        ..
    } = header;
    let fields = Fields {
        marker,
        padding: header.has_padding(),
        pt,
        sequence,
        timestamp,
        ssrc,
    };
    let mut out = vec![0xff; packet.len() * 2 + 16];
    match write_header(&mut out, &fields, header.extensions(packet)) {
        Ok(len) => {
            let again = Header::parse_encrypted(&out[..len]).expect("a header of ours");
            assert!(again.extensions(&out).eq(header.extensions(packet)));
            assert_eq!(
                (again.sequence, again.ssrc, again.header_len()),
                (sequence, ssrc, len)
            );
        }
        Err(error) => panic!("{error}"),
    }
});
