#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_sip::message::{Contacts, Message, Response, StatusCode, split_list};

fn visit(message: &Message) {
    let headers = message.headers();
    for addr in headers.from().into_iter().chain(headers.to()).flatten() {
        assert!(addr.uri.matches(&addr.uri));
        let _ = addr.uri.subscriber();
        assert_eq!(addr.to_string().parse(), Ok(addr));
    }
    for via in headers.vias().expect("checked by the parser") {
        assert_eq!(via.to_string().parse(), Ok(via));
    }
    if let Ok(Contacts::These(contacts)) = headers.contacts() {
        for contact in contacts {
            assert!(contact.uri.matches(&contact.uri));
            if let Some(uri) = contact.uri.as_sip() {
                let _ = (uri.user_name(), uri.header_fields().count());
            }
        }
    }
    let _ = (
        headers.cseq(),
        headers.rack(),
        headers.rseq(),
        headers.replaces(),
    );
    let _ = (
        headers.session_expires(),
        headers.min_se(),
        headers.reasons(),
    );
    let _ = (
        headers.event(),
        headers.subscription_state(),
        headers.refer_to(),
    );
    let _ = (headers.content_type(), headers.accept(), headers.allow());
    let _ = (headers.retry_after(), headers.expires(), headers.routes());
    let _ = headers.has_token("Require", "100rel");
    for header in headers.iter() {
        assert!(!header.value().contains(['\r', '\n']));
        let _ = split_list(header.value());
    }
}

// A parsed message is written unchanged. A request can be answered, and so can most texts that are
// no request.
fuzz_target!(|data: &[u8]| match Message::parse(data) {
    Ok(message) => {
        visit(&message);
        assert_eq!(Message::parse(&message.to_bytes()).as_ref(), Ok(&message));
        if let Message::Request(request) = &message {
            let key = portunus_sip::dtmf::key(request);
            assert!(key.is_none_or(|key| "0123456789*#ABCD".contains(key)));
            let mut response = Response::to(request, StatusCode::TRYING);
            response.headers.set_to_tag("fuzz");
            let written = Message::parse(&response.to_bytes());
            assert_eq!(written, Ok(Message::Response(response)));
        }
    }
    Err(error) =>
        if let Some(answer) = error.answer() {
            let bytes = answer.to_bytes();
            assert!(
                bytes.ends_with(b"Content-Length: 0\r\n\r\n")
                    && bytes.len() < data.len() * 3 + 1000
            );
        },
});
