#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_cluster::testing::{read_home, read_node, read_revocations};
use portunus_cluster::{HomeKey, Invitation};

// What was read is the same when it is written and read again. The load is left out: not each
// number with a fraction is.
fuzz_target!(|bytes: &[u8]| {
    if let Ok(node) = read_node(bytes) {
        let again = read_node(&node.to_value());
        assert_eq!(again.map(|it| it.control), Ok(node.control));
    }
    if let Ok(home) = read_home(bytes) {
        assert_eq!(read_home(&home.to_value()), Ok(home));
    }
    assert!(!read_revocations(bytes), "nobody else signs for the authority");
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(key) = HomeKey::parse(text) {
        assert_eq!(HomeKey::new(key.kind(), &key.name()).map(|it| it.to_string()), Ok(key.to_string()));
    }
    let _ = text.parse::<Invitation>();
});
