#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_livekit::testing::{Form, read_frame};
use prost::Message;

// A request that was read is the same when it is written and read again, in both forms.
fuzz_target!(|bytes: &[u8]| {
    for form in [Form::Binary, Form::Json] {
        let Some(request) = read_frame(form, bytes) else {
            continue;
        };
        let again = read_frame(Form::Binary, &request.encode_to_vec());
        assert!(again.is_some(), "{request:?}");
    }
});
