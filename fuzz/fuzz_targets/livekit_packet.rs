#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_livekit::protocol::DataPacket;
use portunus_livekit::testing::forward_packet;
use prost::Message;

// Whatever a client sends, the others see its own identity and session, and the rest as it is.
fuzz_target!(|bytes: &[u8]| {
    let Some(forwarded) = forward_packet(bytes, "al", "PA_1") else {
        return;
    };
    assert!(forwarded.starts_with(bytes));
    let before = DataPacket::decode(bytes).expect("it was read");
    let after = DataPacket::decode(&*forwarded).expect("it is a packet");
    assert_eq!((&*after.participant_identity, &*after.participant_sid), ("al", "PA_1"));
    assert_eq!(before.sequence, after.sequence);
    assert_eq!(before.destination_identities, after.destination_identities);
});
