#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_streaming::Definition;

// What another node tells of a mountpoint is the same when it is written and read again.
fuzz_target!(|bytes: &[u8]| {
    if let Ok(definition) = Definition::parse(bytes) {
        let again = Definition::parse(&definition.to_value());
        assert_eq!(again, Ok(definition));
    }
});
