#![no_main]

use std::time::Instant;

use libfuzzer_sys::fuzz_target;
use portunus_sip::digest::{Challenge, Client, Credentials, Kind, Rules, Verdict, Verifier};
use portunus_sip::message::{Message, Method, Request, Response, StatusCode};

fn request() -> Request {
    let mut request = Request::new(Method::Register, "sip:example.org".parse().expect("a URI"));
    for (name, value) in [
        ("Via", "SIP/2.0/UDP a"),
        ("From", "<sip:a>"),
        ("To", "<sip:b>"),
    ] {
        request.headers.push(name, value);
    }
    request.headers.push("Call-ID", "c");
    request.headers.push("CSeq", "1 REGISTER");
    request
}

// Lines of WWW-Authenticate, which are answered. As Authorization, they never match the secret.
fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let credentials = Credentials::password("alice", "secret");
    let mut response = Response::new(StatusCode::UNAUTHORIZED);
    let now = Instant::now();
    let mut verifier = Verifier::new(Rules::new("example.org"), [7; 32], now);
    for line in text.lines() {
        response.headers.push("WWW-Authenticate", line);
        let mut request = request();
        request.headers.push("Authorization", line);
        let verdict = verifier.verify(now, Kind::Server, &request, |_| Some(credentials.clone()));
        assert!(!matches!(verdict, Verdict::Accepted(_)));
    }
    let found = Challenge::all(&response.headers, Kind::Server);
    let mut client = Client::new();
    let is_answered = client.challenged(&response, &credentials).is_ok();
    assert_eq!(is_answered, !found.is_empty());
    let mut request = request();
    client.authorize(&mut request, &credentials, "cnonce");
    assert_eq!(is_answered, request.headers.has("Authorization"));
    assert_eq!(
        Message::parse(&request.to_bytes()),
        Ok(Message::Request(request))
    );
});
