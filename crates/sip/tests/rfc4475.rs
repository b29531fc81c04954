//! The torture messages of RFC 4475: which are accepted, which are refused, and how.
//!
//! The requirements on messages that parse (416, 420, 483, a response with a strange Via) are
//! tested with the agent.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "the names say all"
)]

use std::path::PathBuf;

use portunus_sip::message::{Contacts, Message, Method, ParseError, Request, Response};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/rfc4475")
}

fn parse(name: &str) -> Result<Message, ParseError> {
    Message::parse(&std::fs::read(folder().join(format!("{name}.dat"))).unwrap())
}

fn request(name: &str) -> Request {
    match parse(name) {
        Ok(Message::Request(request)) => request,
        other => panic!("{name}: {other:?}"),
    }
}

fn response(name: &str) -> Response {
    match parse(name) {
        Ok(Message::Response(response)) => response,
        other => panic!("{name}: {other:?}"),
    }
}

const TAKEN: [&str; 29] = [
    // 3.1.1: valid.
    "wsinv",
    "intmeth",
    "esc01",
    "escnull",
    "esc02",
    "lwsdisp",
    "longreq",
    "dblreq",
    "semiuri",
    "transports",
    "mpart01",
    "unreason",
    "noreason",
    // 3.1.2: what may be let pass, and is: a Date that is none, spaces within angle brackets.
    "baddate",
    "badaspec",
    // 3.2 and 3.3: for transactions and applications.
    "badbranch",
    "unkscm",
    "novelsc",
    "unksm2",
    "bext01",
    "invut",
    "regaut01",
    "bcast",
    "zeromf",
    "cparam01",
    "cparam02",
    "regescrt",
    "sdp01",
    // 3.4: from before RFC 3261.
    "inv2543",
];

/// Refused, with the status of the answer and what is wrong.
const REFUSED: [(&str, u16, &str); 18] = [
    ("badinv01", 400, "header Via: empty item in a list"),
    ("clerr", 400, "body is shorter than Content-Length"),
    ("ncl", 400, "header Content-Length: not a number"),
    ("scalar02", 400, "header CSeq: number is too large"),
    ("quotbal", 400, "header To: quoted string does not end"),
    ("ltgtruri", 400, "Request-URI: malformed scheme of a URI"),
    ("lwsruri", 400, "Request-URI: malformed parameter of a URI"),
    ("lwsstart", 400, "Request-URI: malformed scheme of a URI"),
    ("trws", 400, "start line: no version"),
    ("escruri", 400, "Request-URI: has header fields"),
    (
        "regbadct",
        400,
        "header Contact: URI should be in angle brackets",
    ),
    ("baddn", 400, "header From: display name should be quoted"),
    ("badvers", 505, "version is not SIP/2.0"),
    ("mismatch01", 400, "CSeq names another method"),
    ("mismatch02", 400, "CSeq names another method"),
    ("insuf", 400, "no From"),
    ("multi01", 400, "header From: is there more than once"),
    (
        "mcl01",
        400,
        "header Content-Length: is there more than once",
    ),
];

/// Responses that are dropped.
const DROPPED: [(&str, &str); 2] = [
    ("scalarlg", "header CSeq: number is too large"),
    ("bigcode", "start line: no status code"),
];

#[test]
fn each_of_the_49_messages_has_its_verdict() {
    let mut names: Vec<&str> = TAKEN.to_vec();
    names.extend(REFUSED.map(|(name, ..)| name));
    names.extend(DROPPED.map(|(name, _)| name));
    names.sort_unstable();
    let mut files: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    files.sort();
    assert_eq!(files, names);
    assert_eq!(names.len(), 49);
}

#[test]
fn what_is_taken_is_the_same_after_it_was_written() {
    for name in TAKEN {
        let message = parse(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            Message::parse(&message.to_bytes()).as_ref(),
            Ok(&message),
            "{name}"
        );
    }
}

#[test]
fn what_is_refused_is_answered() {
    for (name, status, problem) in REFUSED {
        let error = parse(name).expect_err(name);
        assert_eq!(
            (error.status().code(), error.to_string().as_str()),
            (status, problem),
            "{name}"
        );
        let answer = error
            .answer()
            .unwrap_or_else(|| panic!("{name}: no answer"));
        assert_eq!(answer.status.code(), status, "{name}");
        assert!(
            answer.headers.has("Via") && answer.headers.has("CSeq"),
            "{name}"
        );
    }
}

#[test]
fn responses_are_never_answered() {
    for (name, problem) in DROPPED {
        let error = parse(name).expect_err(name);
        assert_eq!(
            (error.to_string().as_str(), error.answer()),
            (problem, None),
            "{name}"
        );
    }
}

#[test]
fn a_short_tortuous_invite() {
    let wsinv = request("wsinv");
    assert_eq!(
        wsinv.uri.to_string(),
        "sip:vivekg@chair-dnrc.example.com;unknownparam"
    );
    let headers = &wsinv.headers;
    assert_eq!(headers.to().unwrap().unwrap().tag(), Some("1918181833n"));
    let from = headers.from().unwrap().unwrap();
    assert_eq!(
        (from.display_name().as_ref(), from.tag()),
        (r#"J Rosenberg \""#, Some("98asjd8"))
    );
    assert_eq!(headers.max_forwards().unwrap(), Some(68));
    assert_eq!(headers.cseq().unwrap().unwrap().number, 9);
    let vias = headers.vias().unwrap();
    let branches: Vec<_> = vias
        .iter()
        .map(|via| (via.transport.as_str(), via.branch().unwrap()))
        .collect();
    assert_eq!(
        branches,
        [
            ("UDP", "390skdjuw"),
            ("TCP", "z9hG4bK9ikj8"),
            ("UDP", "z9hG4bK30239")
        ]
    );
    assert_eq!(
        (vias[0].unique_branch(), vias[1].unique_branch()),
        (None, Some("z9hG4bK9ikj8"))
    );
    assert_eq!(headers.get("Subject"), Some(""));
    assert_eq!(
        headers.get("newfangledheader"),
        Some("newfangled value continued newfangled value")
    );
    assert_eq!(
        headers.get("UnknownHeaderWithUnusualValue"),
        Some(";;,,;;,;")
    );
    let routes = headers.routes().unwrap();
    assert!(routes[0].uri.as_sip().unwrap().params.has("lr"));
    let contact = headers.contact().unwrap().unwrap();
    assert_eq!(contact.display_name(), r#"Quoted string """#);
    assert_eq!(
        (contact.params.get("newparam"), contact.params.get("q")),
        (Some("newvalue"), Some("0.33"))
    );
    assert!(contact.params.has("secondparam"));
    assert_eq!(wsinv.body.len(), 150);
}

#[test]
fn all_characters_that_may_be() {
    let intmeth = request("intmeth");
    assert_eq!(
        intmeth.method.as_str(),
        "!interesting-Method0123456789_*+`.%indeed'~"
    );
    let uri = intmeth.uri.as_sip().unwrap();
    assert_eq!(
        uri.user.as_deref(),
        Some("1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*")
    );
    assert_eq!(
        uri.password.as_deref(),
        Some("&it+has=1,weird!*pas$wo~d_too.(doesn't-it)")
    );
    assert_eq!(uri.host.to_string(), "example.com");
    assert_eq!(
        intmeth.headers.to().unwrap().unwrap().display_name(),
        "BEL:\x07 NUL:\0 DEL:\x7f"
    );
    let from = intmeth.headers.from().unwrap().unwrap();
    assert_eq!(from.display, "token1~` token2'+_ token3*%!.-");
    assert_eq!(
        from.params.unquoted("fromParam''~+*_!.-%").unwrap(),
        "работающий"
    );
    assert_eq!(intmeth.headers.max_forwards().unwrap(), Some(255));
    assert_eq!(
        intmeth.headers.get("extensionHeader-!.%*+_`'~"),
        Some("\u{feff}大停電")
    );
}

#[test]
fn escapes() {
    let esc01 = request("esc01");
    let uri = esc01.uri.as_sip().unwrap();
    assert_eq!(
        (uri.secure, uri.user_name().unwrap().as_ref()),
        (false, "sips:user@example.com")
    );
    let to = esc01.headers.to().unwrap().unwrap();
    assert!(to.uri.matches(&"sip:user@example.com".parse().unwrap()));
    let from = esc01.headers.from().unwrap().unwrap();
    assert_eq!(
        from.uri.as_sip().unwrap().user_name().unwrap(),
        "I have spaces"
    );
    let contact = esc01.headers.contact().unwrap().unwrap();
    assert!(
        contact.uri.matches(
            &"sip:caller@host5.example.net;lr;name=value%2541"
                .parse()
                .unwrap()
        )
    );

    let escnull = request("escnull");
    assert_eq!(
        escnull
            .headers
            .to()
            .unwrap()
            .unwrap()
            .uri
            .as_sip()
            .unwrap()
            .user_name()
            .unwrap(),
        "null-\0-null"
    );
    let Contacts::These(contacts) = escnull.headers.contacts().unwrap() else {
        panic!("star")
    };
    let users: Vec<_> = contacts
        .iter()
        .map(|contact| contact.uri.as_sip().unwrap().user_name().unwrap())
        .collect();
    assert_eq!(users, ["\0", "\0\0"]);
    assert!(!contacts[0].uri.matches(&contacts[1].uri));

    // Neither method nor name of a header field is escaped.
    let esc02 = request("esc02");
    assert_eq!(esc02.method, Method::Other("RE%47IST%45R".to_owned()));
    let from = esc02.headers.from().unwrap().unwrap();
    assert_eq!(from.display_name(), "%Z%45");
    assert_eq!(esc02.headers.all("Contact").count(), 2);
    assert_eq!(
        esc02.headers.get("C%6Fntact"),
        Some("<sip:alias2@host2.example.com>")
    );

    // Header fields of a URI are not those of the message.
    let contact = request("regescrt").headers.contact().unwrap().unwrap();
    let uri = contact.uri.as_sip().unwrap();
    let fields: Vec<_> = uri.header_fields().collect();
    assert_eq!(fields, [("Route".into(), "<sip:sip.example.com>".into())]);
}

#[test]
fn addresses_and_bodies() {
    assert_eq!(
        request("lwsdisp").headers.from().unwrap().unwrap().display,
        "caller"
    );
    let semiuri = request("semiuri");
    let uri = semiuri.uri.as_sip().unwrap();
    assert_eq!(
        (uri.user_name().unwrap().as_ref(), uri.params.is_empty()),
        ("user;par=u@example.net", true)
    );
    let vias = request("transports").headers.vias().unwrap();
    let transports: Vec<_> = vias.iter().map(|via| via.transport.as_str()).collect();
    assert_eq!(transports, ["UDP", "SCTP", "TLS", "UNKNOWN", "TCP"]);
    assert_eq!(request("longreq").headers.vias().unwrap().len(), 34);
    assert_eq!(request("dblreq").method, Method::Register);
    assert!(request("dblreq").body.is_empty());
    assert_eq!(request("mpart01").body.len(), 553);
    assert_eq!(
        request("mpart01")
            .headers
            .content_type()
            .unwrap()
            .unwrap()
            .essence,
        "multipart/mixed"
    );
    assert_eq!(
        response("unreason").reason,
        "= 2**3 * 5**2 но сто девяносто девять - простое"
    );
    assert_eq!(response("noreason").reason, "");
    let param = |name| request(name).headers.contact().unwrap().unwrap();
    assert!(param("cparam01").params.has("unknownparam"));
    assert!(
        param("cparam02")
            .uri
            .as_sip()
            .unwrap()
            .params
            .has("unknownparam")
    );
    assert_eq!(
        param("cparam02").uri.as_sip().unwrap().user.as_deref(),
        Some("+19725552222")
    );
}

#[test]
fn what_is_for_transactions_and_applications() {
    assert_eq!(
        request("badbranch")
            .headers
            .via()
            .unwrap()
            .unwrap()
            .unique_branch(),
        None
    );
    assert_eq!(request("unkscm").uri.scheme(), "nobodyknowsthisscheme");
    assert_eq!(request("novelsc").uri.scheme(), "soap.beep");
    let unksm2 = request("unksm2").headers;
    assert_eq!(unksm2.to().unwrap().unwrap().uri.scheme(), "isbn");
    assert_eq!(unksm2.contact().unwrap().unwrap().uri.scheme(), "name");
    let bext01 = request("bext01").headers;
    assert_eq!(
        bext01.tokens("Require").unwrap(),
        ["nothingSupportsThis", "nothingSupportsThisEither"]
    );
    assert_eq!(
        bext01.tokens("Proxy-Require").unwrap(),
        ["noProxiesSupportThis", "norDoAnyProxiesSupportThis"]
    );
    assert_eq!(
        request("invut")
            .headers
            .content_type()
            .unwrap()
            .unwrap()
            .essence,
        "application/unknownformat"
    );
    assert!(
        request("regaut01")
            .headers
            .get("Authorization")
            .unwrap()
            .starts_with("NoOneKnowsThisScheme ")
    );
    assert_eq!(response("bcast").headers.vias().unwrap().len(), 2);
    assert_eq!(request("zeromf").headers.max_forwards().unwrap(), Some(0));
    assert_eq!(
        request("sdp01").headers.accept().unwrap()[0].essence,
        "text/nobodyknowsthis"
    );
    assert_eq!(
        request("inv2543").headers.from().unwrap().unwrap().tag(),
        None
    );
}
