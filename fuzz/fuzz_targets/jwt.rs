#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use portunus_core::JwtVerifier;
use portunus_core::testing::{jwt, jwt_opens_room, jwt_verifier};
use serde_json::Value;

const SECRET: &str = "a secret of thirty-two bytes or more";
const NOW: u64 = 1_000;
const PACKAGE: &str = "janus.plugin.videoroom";

static VERIFIER: LazyLock<JwtVerifier> = LazyLock::new(|| jwt_verifier(SECRET));

// A token that was not signed grants nothing. A signed one grants the rooms that it names, at its
// time, and only those.
fuzz_target!(|text: &str| {
    let opens = |token: &str, room: &str| jwt_opens_room(&VERIFIER, token, NOW, PACKAGE, room);
    assert!(opens(text, "1").is_err());
    let Ok(opened) = opens(&jwt(text, SECRET), "1") else {
        return;
    };
    let claims: Value = serde_json::from_str(text).expect("claims that were read");
    let list = |name: &str| {
        claims
            .get(name)
            .map(|list| list.as_array().expect("a list"))
    };
    let plugin = list("plugins").is_none_or(|plugins| {
        plugins.contains(&PACKAGE.into()) || plugins.contains(&"videoroom".into())
    });
    let names = ["1", "videoroom:1", "janus.plugin.videoroom:1"].map(Value::from);
    let room = list("rooms").is_none_or(|rooms| {
        rooms.contains(&1.into()) || names.iter().any(|name| rooms.contains(name))
    });
    assert_eq!(opened, plugin && room, "{text}");
    let end = claims.get("exp").and_then(Value::as_f64).expect("an end");
    assert!(end + 30.0 > NOW as f64, "{text}");
});
