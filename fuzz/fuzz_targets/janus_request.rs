#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_core::request::Request;
use serde_json::Value;

fuzz_target!(|message: &[u8]| {
    for string_ids in [false, true] {
        match Request::parse(message, string_ids) {
            Ok(request) => {
                assert!(!request.verb.bytes().any(|byte| byte.is_ascii_uppercase()));
                let again = Value::Object(request.members.clone());
                assert_eq!(Request::from_value(again, string_ids), Ok(request));
            }
            Err(refusal) => {
                let reply = refusal.error.reply(None, refusal.transaction.as_deref());
                assert_eq!(reply["janus"], "error");
            }
        }
    }
});
