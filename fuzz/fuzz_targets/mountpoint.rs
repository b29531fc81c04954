#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_streaming::ConfiguredMountpoint;
use serde_json::Value;

fuzz_target!(|text: &[u8]| {
    let Ok(Value::Object(members)) = serde_json::from_slice(text) else {
        return;
    };
    for string_ids in [false, true] {
        if let Ok(mountpoint) = ConfiguredMountpoint::read(&members, string_ids) {
            // A written mountpoint reads the same. The older form becomes the newer one.
            let members = mountpoint.to_members();
            let again = ConfiguredMountpoint::read(&members, string_ids);
            assert_eq!(again.map(|again| again.to_members()), Ok(members));
        }
    }
});
