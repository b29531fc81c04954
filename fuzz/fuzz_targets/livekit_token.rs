#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use portunus_livekit::token::Keys;
use portunus_livekit::testing::read_grants;

const NOW: u64 = 1_800_000_000;

static KEYS: LazyLock<Keys> =
    LazyLock::new(|| Keys::new([("devkey".to_owned(), "a secret".into())]));

// A token that was not signed is refused. Grants that are read survive being signed and verified.
fuzz_target!(|text: &str| {
    assert!(KEYS.verify(text, NOW).is_err());
    let Some(grants) = read_grants(text) else {
        return;
    };
    let token = KEYS.sign("devkey", &grants, NOW, Duration::from_secs(60));
    let verified = KEYS.verify(&token.expect("a token"), NOW);
    assert_eq!(verified.expect("a valid token").grants, grants);
});
