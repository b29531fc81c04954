#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::Header;
use portunus_srtp::{Opener, Profile};

// No packet opens that was not sealed, whatever its form.
fuzz_target!(|packet: &[u8]| {
    for profile in Profile::PREFERENCE
        .into_iter()
        .chain([Profile::Aes128CmSha1_32])
    {
        let (key, salt) = (vec![7; profile.key_len()], vec![9; profile.salt_len()]);
        let mut opener = Opener::new(profile, &key, &salt).expect("lengths that fit");
        let mut buf = packet.to_vec();
        assert!(opener.open_rtcp(&mut buf).is_err());
        let Ok(header) = Header::parse_encrypted(packet) else {
            continue;
        };
        let mut buf = packet.to_vec();
        let (len, ssrc) = (header.header_len(), header.ssrc);
        assert!(
            opener
                .open_rtp(len, ssrc, header.sequence, &mut buf)
                .is_err()
        );
    }
});
