#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_streaming::{Definition, StreamMessage};

// What another node tells of a mountpoint, and the messages of its data streams, are the same when
// they are written and read again.
fuzz_target!(|bytes: &[u8]| {
    if let Ok(definition) = Definition::parse(bytes) {
        let again = Definition::parse(&definition.to_value());
        assert_eq!(again, Ok(definition));
    }
    if let Ok(message) = StreamMessage::parse(bytes) {
        let again = StreamMessage::parse(&message.to_bytes());
        assert_eq!(again, Ok(message));
    }
});
