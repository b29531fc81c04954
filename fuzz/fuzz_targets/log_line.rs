#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

// Any logged text is one line that does not control the terminal, and an object stays one.
fuzz_target!(|logged: &[u8]| {
    for json in [false, true] {
        let line = portunus::written_line(logged, json);
        let text = line.strip_suffix('\n').expect("a line break at its end");
        assert!(text.chars().all(|c| !c.is_control()), "{line:?}");
        let object = serde_json::from_slice::<Value>(logged).ok();
        if json && object.is_some_and(|it| it.is_object()) {
            assert!(serde_json::from_str::<Value>(text).is_ok(), "{line:?}");
        }
    }
});
