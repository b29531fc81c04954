//! Messages of all kinds: they stay the same when written and parsed, and no octets of a peer do
//! harm.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "the names say all"
)]

use portunus_sip::message::{
    Headers, Host, MAX_HEADER_LINES, MAX_HEADER_VALUE, MAX_LIST, MAX_MESSAGE, Message, Method,
    NameAddr, Params, ParseErrorKind, Reason, Refresher, Replaces, Request, Response, SipUri,
    StatusCode, Uri, Via, quote, unquote,
};
use proptest::prelude::*;

const INVITE: &str = "INVITE sip:bob@example.org SIP/2.0\r\n\
    v: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK1;rport\r\n\
    f: \"Alice, A.\" <sip:alice@example.org>;tag=a\r\n\
    t: <sip:bob@example.org>\r\n\
    i: c@example.org\r\n\
    CSeq: 1 INVITE\r\n\
    m: <sip:alice@192.0.2.1>, \"b, <c>\" <sip:b@192.0.2.2;x=1>;q=0.5,<tel:+1-201-555-0123>\r\n\
    m: <sip:d@192.0.2.3>\r\n\
    x: 1800;refresher=UAC\r\n\
    k: timer, 100rel\r\n k: replaces\r\n\
    l: 3\r\n\r\nabcdef";

fn parse(text: &str) -> Message {
    Message::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn refusal(text: &str) -> ParseErrorKind {
    Message::parse(text.as_bytes()).expect_err(text).kind
}

fn with(from: &str, to: &str) -> String {
    assert!(INVITE.contains(from));
    INVITE.replace(from, to)
}

#[test]
fn compact_forms_and_lists_are_understood() {
    let invite = parse(INVITE);
    let headers = invite.headers();
    assert_eq!(headers.call_id(), Some("c@example.org"));
    assert_eq!(headers.from().unwrap().unwrap().display_name(), "Alice, A.");
    let contacts = headers.addresses("Contact").unwrap();
    let uris: Vec<_> = contacts
        .iter()
        .map(|contact| contact.uri.to_string())
        .collect();
    assert_eq!(
        uris,
        [
            "sip:alice@192.0.2.1",
            "sip:b@192.0.2.2;x=1",
            "tel:+1-201-555-0123",
            "sip:d@192.0.2.3"
        ]
    );
    assert_eq!(contacts[1].params.get("Q"), Some("0.5"));
    let session = headers.session_expires().unwrap().unwrap();
    assert_eq!(
        (session.interval.as_secs(), session.refresher),
        (1800, Some(Refresher::Uac))
    );
    // A line that starts with space continues the one before.
    assert!(headers.tokens("Supported").is_err());
    assert_eq!(headers.get("supported"), Some("timer, 100rel k: replaces"));
    assert_eq!(invite.body(), b"abc");
}

#[test]
fn lines_may_end_with_lf_alone() {
    assert_eq!(parse(&INVITE.replace('\r', "")), parse(INVITE));
}

#[test]
fn text_that_is_no_utf_8_is_kept_as_far_as_it_is() {
    let bytes: Vec<u8> = INVITE
        .bytes()
        .map(|byte| if byte == b'A' { 0xff } else { byte })
        .collect();
    // "Alice, A." is in quotes, so that it may hold anything; methods and hosts may not.
    let invite = Message::parse(&bytes).unwrap();
    assert_eq!(
        invite.headers().from().unwrap().unwrap().display_name(),
        "\u{fffd}lice, \u{fffd}."
    );
}

#[test]
fn what_is_too_large_is_refused() {
    let long = |name: &str, value: &str| with("CSeq", &format!("{name}: {value}\r\nCSeq"));
    assert!(Message::parse(long("X", &"x".repeat(MAX_HEADER_VALUE)).as_bytes()).is_ok());
    assert_eq!(
        refusal(&long("X", &"x".repeat(MAX_HEADER_VALUE + 1))),
        ParseErrorKind::TooLarge("header field")
    );
    assert_eq!(
        refusal(&with(
            "CSeq",
            &format!("{}CSeq", "X: y\r\n".repeat(MAX_HEADER_LINES))
        )),
        ParseErrorKind::TooLarge("header fields")
    );
    let error = Message::parse(long("X", &"x".repeat(MAX_MESSAGE)).as_bytes()).unwrap_err();
    assert_eq!(
        (error.status(), error.answer()),
        (StatusCode::MESSAGE_TOO_LARGE, None)
    );
    let routes = vec!["<sip:r>"; MAX_LIST + 1].join(",");
    assert!(
        matches!(refusal(&long("Route", &routes)), ParseErrorKind::Header(error) if error.name == "Route")
    );
    assert!(matches!(
        refusal(&with(";rport", &";p".repeat(MAX_LIST))),
        ParseErrorKind::Header(_)
    ));
}

#[test]
fn what_is_malformed_is_refused() {
    let header = |text: &str| matches!(refusal(text), ParseErrorKind::Header(_));
    assert!(header(&with(
        "<sip:bob@example.org>\r\ni",
        "<sip:bob@exa mple.org>\r\ni"
    )));
    assert!(header(&with(
        "<sip:bob@example.org>\r\ni",
        "<sip:bob@example.org\r\ni"
    )));
    assert!(header(&with(
        "<sip:bob@example.org>\r\ni",
        "<sip:bob@example.org>x\r\ni"
    )));
    assert!(header(&with(
        "<sip:bob@example.org>\r\ni",
        "<sip:bob%4@example.org>\r\ni"
    )));
    assert!(header(&with(
        "<sip:bob@example.org>\r\ni",
        "\"Bob\" sip:bob@example.org\r\ni"
    )));
    assert!(header(&with(
        "<sip:bob@example.org>\r\ni",
        "<sip:bob@[::1>\r\ni"
    )));
    assert!(header(&with(
        "<sip:bob@example.org>\r\ni",
        "<sip:bob@example.org:99999>\r\ni"
    )));
    assert!(header(&with("SIP/2.0/UDP ", "SIP/3.0/UDP ")));
    assert!(header(&with("192.0.2.1:5060", "")));
    assert!(header(&with("1 INVITE", "1")));
    assert!(header(&with("1 INVITE", "2147483648 INVITE")));
    assert!(header(&with("CSeq", "Max-Forwards: 256\r\nCSeq")));
    assert!(header(&with("CSeq", "Call-ID: d\r\nCSeq")));
    assert!(header(&with("l: 3", "l: 3\r\nl: 4")));
    assert_eq!(
        refusal(&with("i: c@example.org\r\n", "")),
        ParseErrorKind::Missing("Call-ID")
    );
    assert_eq!(
        refusal(&with("i: c@example.org", "i:")),
        ParseErrorKind::Missing("Call-ID")
    );
    assert!(matches!(
        refusal(&with("CSeq:", "CSeq")),
        ParseErrorKind::HeaderLine(_)
    ));
    assert!(matches!(
        refusal(&with("CSeq:", "C Seq:")),
        ParseErrorKind::HeaderLine(_)
    ));
    assert!(matches!(
        refusal(&with("z9hG4bK1", "z9hG4\rbK1")),
        ParseErrorKind::HeaderLine(_)
    ));
    assert!(matches!(
        refusal("INVITE sip:a SIP/2.0\r\nVia: x\r\n"),
        ParseErrorKind::HeaderLine(_)
    ));
    let ok = String::from_utf8(Response::new(StatusCode::OK).to_bytes()).unwrap();
    assert!(matches!(
        refusal(&ok.replace("OK", "O\rK")),
        ParseErrorKind::StartLine(_)
    ));
    assert!(matches!(refusal(""), ParseErrorKind::StartLine(_)));
    assert!(matches!(refusal("\r\n\r\n"), ParseErrorKind::StartLine(_)));
}

#[test]
fn an_ack_is_never_answered() {
    let error = |text: &str| Message::parse(text.as_bytes()).unwrap_err().answer();
    assert!(error(&with("l: 3", "l: 300")).is_some());
    let ack = with("l: 3", "l: 300").replace("INVITE", "ACK");
    assert!(error(&ack).is_none());
    assert!(error(&ack.replace("CSeq:", "CSeq")).is_none());
}

#[test]
fn a_response_takes_over_what_it_must() {
    let Message::Request(invite) =
        parse(&with("CSeq", "Timestamp: 3\r\nVia: SIP/2.0/TCP b\r\nCSeq"))
    else {
        panic!()
    };
    let mut response = Response::to(&invite, StatusCode::TRYING);
    response.headers.set_to_tag("b");
    response.headers.set_to_tag("c");
    assert_eq!(
        String::from_utf8(response.to_bytes()).unwrap(),
        "SIP/2.0 100 Trying\r\n\
         Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK1;rport\r\n\
         Via: SIP/2.0/TCP b\r\n\
         From: \"Alice, A.\" <sip:alice@example.org>;tag=a\r\n\
         To: <sip:bob@example.org>;tag=b\r\n\
         Call-ID: c@example.org\r\n\
         CSeq: 1 INVITE\r\n\
         Timestamp: 3\r\n\
         Content-Length: 0\r\n\r\n"
    );
    assert!(
        !Response::to(&invite, StatusCode::OK)
            .headers
            .has("Timestamp")
    );
}

#[test]
fn headers_keep_their_order_and_end_no_line() {
    let mut headers = Headers::new();
    headers.push("Via", "SIP/2.0/UDP a, SIP/2.0/UDP b");
    headers.push("X-One", "1\r\nX-Evil: 2");
    headers.push("Bad Name", "x");
    headers.push("Content-Length", 7);
    headers.push("l", 7);
    headers.push_first("v", "SIP/2.0/UDP c");
    headers.set("x-one", "3\n");
    headers.push("X-Two", "");
    let all: Vec<_> = headers
        .iter()
        .map(|header| (header.name(), header.value()))
        .collect();
    assert_eq!(
        all,
        [
            ("v", "SIP/2.0/UDP c"),
            ("Via", "SIP/2.0/UDP a, SIP/2.0/UDP b"),
            ("x-one", "3"),
            ("X-Two", "")
        ]
    );
    headers.set_first_via("SIP/2.0/UDP d;received=::1");
    headers.remove("x-ONE");
    assert_eq!(headers.vias().unwrap().len(), 3);
    assert_eq!(
        headers.via().unwrap().unwrap().received(),
        Some("::1".parse().unwrap())
    );
    headers.remove("VIA");
    headers.push_first("From", "x");
    assert_eq!(headers.len(), 2);
}

#[test]
fn uris_are_compared_as_the_rfc_asks() {
    let same = |one: &str, other: &str| {
        let (one, other): (Uri, Uri) = (one.parse().unwrap(), other.parse().unwrap());
        assert_eq!(one.matches(&other), other.matches(&one));
        one.matches(&other)
    };
    // The examples of RFC 3261 section 19.1.4.
    assert!(same(
        "sip:%61lice@atlanta.com;transport=TCP",
        "sip:alice@AtLanTa.CoM;Transport=tcp"
    ));
    assert!(same(
        "sip:carol@chicago.com",
        "sip:carol@chicago.com;newparam=5"
    ));
    assert!(same(
        "sip:carol@chicago.com;security=on",
        "sip:carol@chicago.com;newparam=5"
    ));
    assert!(same(
        "sip:biloxi.com;transport=tcp;method=REGISTER?to=sip:bob%40biloxi.com",
        "sip:biloxi.com;method=REGISTER;transport=tcp?to=sip:bob%40biloxi.com"
    ));
    assert!(same(
        "sip:alice@atlanta.com?subject=project%20x&priority=urgent",
        "sip:alice@atlanta.com?priority=urgent&subject=project%20x"
    ));
    assert!(!same(
        "SIP:ALICE@AtLanTa.CoM;Transport=udp",
        "sip:alice@AtLanTa.CoM;Transport=UDP"
    ));
    assert!(!same("sip:bob@biloxi.com", "sip:bob@biloxi.com:5060"));
    assert!(!same(
        "sip:bob@biloxi.com",
        "sip:bob@biloxi.com;transport=udp"
    ));
    assert!(!same(
        "sip:bob@biloxi.com",
        "sip:bob@biloxi.com:6000;transport=tcp"
    ));
    assert!(!same(
        "sip:carol@chicago.com",
        "sip:carol@chicago.com?Subject=next%20meeting"
    ));
    assert!(!same("sip:bob@phone21.boxesbybob.com", "sip:bob@192.0.2.4"));
    assert!(!same("sip:a@b", "sips:a@b"));
    assert!(same("sip:a;x=1;x=2", "sip:a;%78=1;x=3") && !same("sip:a;x=1;x=2", "sip:a;x=2"));
    assert!(same("tel:+1", "TEL:+1") && !same("tel:+1", "tel:+2"));
    assert!(same("sip:a@[2001:db8::1]", "sip:a@[2001:DB8:0::1]"));
}

#[test]
fn replaces_and_reason() {
    let mut headers = Headers::new();
    headers.push("Replaces", "a@b;from-tag=1;to-tag=2 ;early-only");
    let replaces = headers.replaces().unwrap().unwrap();
    let expected = Replaces {
        call_id: "a@b".into(),
        to_tag: "2".into(),
        from_tag: "1".into(),
        early_only: true,
    };
    assert_eq!(replaces, expected);
    assert_eq!(replaces.to_string().parse(), Ok(expected));
    headers.push("Reason", "Q.850 ;cause=16;text=\"a, b\", SIP;cause=200");
    let reasons: Vec<Reason> = headers.reasons().unwrap();
    assert_eq!(reasons[0].text().unwrap(), "a, b");
    assert_eq!(
        (reasons[0].protocol.as_str(), reasons[1].cause()),
        ("Q.850", Some(200))
    );
    headers.push("Retry-After", "18000;duration=3600 (meeting)");
    assert_eq!(headers.retry_after().unwrap().unwrap().as_secs(), 18000);
    headers.push("RAck", "776656 1 INVITE");
    assert_eq!(headers.rack().unwrap().unwrap().cseq.method, Method::Invite);
}

fn token() -> BoxedStrategy<String> {
    "[a-zA-Z0-9.!%*_+`'~-]{1,12}".boxed()
}

fn header_params() -> BoxedStrategy<Params> {
    let value = prop_oneof![
        token(),
        any::<String>().prop_map(|text| quote(&text.replace('\0', "")))
    ];
    proptest::collection::vec((token(), proptest::option::of(value)), 0..4)
        .prop_map(|list| {
            let mut params = Params::new();
            for (name, value) in list {
                params.set(&name, value.as_deref());
            }
            params
        })
        .boxed()
}

fn host() -> BoxedStrategy<Host> {
    prop_oneof![
        "[a-z0-9]{1,10}(\\.[a-z0-9-]{1,8}){0,2}"
            .prop_filter_map("an address", |name| name.parse().ok()),
        any::<std::net::IpAddr>().prop_map(Host::Address),
    ]
    .boxed()
}

fn sip_uri() -> BoxedStrategy<SipUri> {
    let user = proptest::option::of(any::<String>());
    let params = proptest::collection::vec(
        (
            "[a-z%A]{0}[a-z0-9]{1,8}",
            proptest::option::of("[a-zA-Z0-9:&+$/-]{0,8}"),
        ),
        0..4,
    );
    let headers = proptest::option::of("[a-zA-Z]{1,8}=[a-z0-9/?:+$-]{0,9}");
    (
        any::<bool>(),
        user,
        host(),
        any::<Option<u16>>(),
        params,
        headers,
    )
        .prop_map(|(secure, user, host, port, params, headers)| {
            let mut uri = SipUri::new(host).with_port(port);
            if let Some(user) = user {
                uri = uri.with_user(&user);
            }
            for (name, value) in params {
                uri.params.set(&name, value.as_deref());
            }
            SipUri {
                secure,
                headers,
                ..uri
            }
        })
        .boxed()
}

fn uri() -> BoxedStrategy<Uri> {
    prop_oneof![
        sip_uri().prop_map(Uri::Sip),
        "tel:[+0-9;=-]{1,15}".prop_map(|text| text.parse().unwrap())
    ]
    .boxed()
}

fn name_addr() -> BoxedStrategy<NameAddr> {
    (any::<String>(), uri(), header_params())
        .prop_map(|(name, uri, params)| {
            let mut addr = NameAddr::new(uri).with_display(&name);
            addr.params = params;
            addr
        })
        .boxed()
}

fn via() -> BoxedStrategy<Via> {
    (token(), host(), any::<Option<u16>>(), header_params())
        .prop_map(|(transport, host, port, params)| Via {
            transport,
            host,
            port,
            params,
        })
        .boxed()
}

fn method() -> BoxedStrategy<Method> {
    token().prop_map(|text| text.parse().unwrap()).boxed()
}

fn headers(method: Method) -> BoxedStrategy<Headers> {
    let other = ("X-[a-zA-Z0-9]{1,10}", any::<String>());
    (
        (via(), proptest::collection::vec(via(), 0..3)),
        (name_addr(), name_addr(), token(), 0..1u32 << 31),
        proptest::collection::vec(name_addr(), 0..3),
        proptest::collection::vec(other, 0..5),
    )
        .prop_map(
            move |((first, vias), (from, to, call_id, number), contacts, others)| {
                let mut headers = Headers::new();
                headers.push("Via", first);
                headers.push("From", from);
                headers.push("t", to);
                headers.push("Call-ID", call_id);
                headers.push("cseq", format!("{number} {method}"));
                if !vias.is_empty() {
                    let list: Vec<_> = vias.iter().map(Via::to_string).collect();
                    headers.push("Via", list.join(", "));
                }
                for contact in contacts {
                    headers.push("Contact", contact);
                }
                for (name, value) in others {
                    headers.push(&name, value);
                }
                headers
            },
        )
        .boxed()
}

fn message() -> BoxedStrategy<Message> {
    let body = proptest::collection::vec(any::<u8>(), 0..40);
    let request = (method(), sip_uri()).prop_flat_map(|(method, uri)| {
        let uri = Uri::Sip(SipUri {
            headers: None,
            ..uri
        });
        headers(method.clone()).prop_map(move |headers| Request {
            method: method.clone(),
            uri: uri.clone(),
            headers,
            body: Vec::new(),
        })
    });
    let response = (
        100..700u16,
        "[a-zA-Zäß€]([a-zA-Z äß€]{0,20}[a-z])?",
        method().prop_flat_map(headers),
    )
        .prop_map(|(code, reason, headers)| Response {
            status: StatusCode::new(code).unwrap(),
            reason,
            headers,
            body: Vec::new(),
        });
    (
        prop_oneof![
            request.prop_map(Message::Request),
            response.prop_map(Message::Response)
        ],
        body,
    )
        .prop_map(|(mut message, octets)| {
            match &mut message {
                Message::Request(request) => request.body = octets,
                Message::Response(response) => response.body = octets,
            }
            message
        })
        .boxed()
}

proptest! {
    #[test]
    fn a_message_that_was_written_parses_to_itself(message in message()) {
        prop_assert_eq!(Message::parse(&message.to_bytes()), Ok(message));
    }

    #[test]
    fn addresses_parse_to_themselves(addr in name_addr(), via in via(), text in any::<String>()) {
        prop_assert_eq!(addr.to_string().parse(), Ok(addr.clone()));
        prop_assert!(addr.uri.matches(&addr.uri));
        prop_assert_eq!(via.to_string().parse(), Ok(via));
        prop_assert_eq!(unquote(&quote(&text)).into_owned(), text.replace(['\r', '\n'], " "));
        let user = SipUri::new(Host::Name("h".into())).with_user(&text);
        prop_assert_eq!(user.user_name().unwrap().into_owned(), text);
    }

    #[test]
    fn octets_of_any_kind_do_no_harm(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Message::parse(&octets);
    }

    #[test]
    fn a_message_with_octets_changed_is_refused_or_stays_the_same(at in 0..INVITE.len(), octet in any::<u8>()) {
        let mut bytes = INVITE.as_bytes().to_vec();
        bytes[at] = octet;
        match Message::parse(&bytes) {
            Ok(message) => prop_assert_eq!(Message::parse(&message.to_bytes()), Ok(message)),
            Err(error) => if let Some(answer) = error.answer() { prop_assert!(answer.to_bytes().len() < 2000); },
        }
    }
}
