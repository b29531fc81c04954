//! Digest authentication between a client and a verifier, and attempts to pass without the secret.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "the names say all"
)]

use std::time::{Duration, Instant};

use portunus_sip::digest::{
    Algorithm, Challenge, Client, Credentials, DigestError, Kind, Qop, Rules, Verdict, Verifier,
    respond,
};
use portunus_sip::message::{Headers, Method, Request, Response, StatusCode};
use proptest::prelude::*;

const KEY: [u8; 32] = [7; 32];

fn request() -> Request {
    Request::new(Method::Register, "sip:example.org".parse().unwrap())
}

fn asks<T: ToString>(status: StatusCode, challenges: &[T]) -> Response {
    let mut response = Response::new(status);
    for value in challenges {
        response.headers.push(
            Kind::of(status).unwrap().challenge_header(),
            value.to_string(),
        );
    }
    response
}

fn unauthorized(challenge: &str) -> Response {
    asks(StatusCode::UNAUTHORIZED, &[challenge])
}

fn alice() -> Credentials {
    Credentials::password("alice", "secret")
}

/// The answer of a client to a challenge, as Authorization.
fn answer(challenge: &str) -> String {
    let mut client = Client::new();
    client
        .challenged(&unauthorized(challenge), &alice())
        .unwrap();
    let mut request = request();
    client.authorize(&mut request, &alice(), "abc");
    request.headers.get("Authorization").unwrap().to_owned()
}

struct Server {
    verifier: Verifier,
    now: Instant,
}

impl Server {
    fn new(change: impl FnOnce(&mut Rules)) -> Self {
        let now = Instant::now();
        let mut rules = Rules::new("example.org");
        change(&mut rules);
        Self {
            verifier: Verifier::new(rules, KEY, now),
            now,
        }
    }

    fn asks(&mut self, stale: bool) -> Response {
        asks(
            StatusCode::UNAUTHORIZED,
            &self.verifier.challenges(self.now, stale),
        )
    }

    fn verdict(&mut self, request: &Request) -> Verdict {
        let known = |user: &str| match user {
            "alice" | "b\"ob\\" => Some(Credentials::password(user, "secret")),
            "carol" => Credentials::ha1(
                "carol",
                &Algorithm::Md5.ha1("carol", "example.org", "secret"),
            ),
            _ => None,
        };
        self.verifier.verify(self.now, Kind::Server, request, known)
    }

    /// Returns the verdict on the first request after a challenge.
    fn meets(&mut self, credentials: &Credentials) -> Verdict {
        let mut client = Client::new();
        client.challenged(&self.asks(false), credentials).unwrap();
        let mut request = request();
        client.authorize(&mut request, credentials, "abc");
        self.verdict(&request)
    }
}

#[test]
fn the_right_secret_is_accepted() {
    let mut server = Server::new(|_| {});
    assert_eq!(server.verdict(&request()), Verdict::Missing);
    assert_eq!(server.meets(&alice()), Verdict::Accepted("alice".into()));
    assert_eq!(
        server.meets(&Credentials::password("alice", "wrong")),
        Verdict::Refused
    );
    assert_eq!(
        server.meets(&Credentials::password("mallory", "secret")),
        Verdict::Refused
    );
    let bob = Credentials::password("b\"ob\\", "secret");
    assert_eq!(server.meets(&bob), Verdict::Accepted("b\"ob\\".into()));
    // Only the hash is known, by one side or by both: MD5 is chosen, though SHA-256 is preferred.
    let ha1 = Credentials::ha1(
        "carol",
        &Algorithm::Md5
            .ha1("carol", "example.org", "secret")
            .to_uppercase(),
    )
    .unwrap();
    assert_eq!(server.meets(&ha1), Verdict::Accepted("carol".into()));
    assert_eq!(
        server.meets(&Credentials::password("carol", "secret")),
        Verdict::Refused,
        "by SHA-256"
    );
    for algorithm in [Algorithm::Md5, Algorithm::Sha256, Algorithm::Sha512_256] {
        let mut server = Server::new(|rules| rules.algorithms = vec![algorithm]);
        assert_eq!(
            server.meets(&alice()),
            Verdict::Accepted("alice".into()),
            "{algorithm:?}"
        );
    }
    assert_eq!(Credentials::ha1("a", "12"), None);
    assert_eq!(Credentials::ha1("a", &"x".repeat(32)), None);
}

#[test]
fn an_answer_serves_once_and_a_nonce_for_its_lifetime() {
    let mut server = Server::new(|_| {});
    let mut client = Client::new();
    client.challenged(&server.asks(false), &alice()).unwrap();
    let mut first = request();
    client.authorize(&mut first, &alice(), "abc");
    assert_eq!(server.verdict(&first), Verdict::Accepted("alice".into()));
    assert_eq!(server.verdict(&first), Verdict::Stale);
    let mut second = request();
    client.authorize(&mut second, &alice(), "def");
    assert!(
        second
            .headers
            .get("Authorization")
            .unwrap()
            .contains("nc=00000002")
    );
    assert_eq!(server.verdict(&second), Verdict::Accepted("alice".into()));
    server.now += Duration::from_secs(301);
    let mut third = request();
    client.start();
    client.authorize(&mut third, &alice(), "ghi");
    assert_eq!(server.verdict(&third), Verdict::Stale);
    // Stale is not a refusal.
    client.challenged(&server.asks(true), &alice()).unwrap();
    client.authorize(&mut third, &alice(), "jkl");
    assert_eq!(third.headers.all("Authorization").count(), 1);
    assert_eq!(server.verdict(&third), Verdict::Accepted("alice".into()));
}

#[test]
fn an_answer_without_qop_serves_once() {
    let mut server = Server::new(|rules| rules.algorithms = vec![Algorithm::Md5]);
    let challenge = server
        .asks(false)
        .headers
        .get("WWW-Authenticate")
        .unwrap()
        .replace(", qop=\"auth\"", "");
    let mut asked = request();
    asked.headers.push("Authorization", answer(&challenge));
    assert_eq!(server.verdict(&asked), Verdict::Accepted("alice".into()));
    assert_eq!(server.verdict(&asked), Verdict::Stale);
}

#[test]
fn what_was_changed_on_the_way_is_refused() {
    let mut server = Server::new(|_| {});
    let challenge = server
        .asks(false)
        .headers
        .get("WWW-Authenticate")
        .unwrap()
        .to_owned();
    let good = answer(&challenge);
    let mut verdict = |text: &str| {
        let mut request = request();
        request.headers.push("Authorization", text);
        server.verdict(&request)
    };
    for (from, to) in [
        ("nc=00000001", "nc=00000002"),
        ("nc=00000001", "nc=x"),
        ("cnonce=\"abc\"", "cnonce=\"abd\""),
        ("uri=\"sip:example.org\"", "uri=\"sip:example.com\""),
        ("algorithm=SHA-256", "algorithm=MD5"),
        ("algorithm=SHA-256", "algorithm=SHA-512-256"),
        ("qop=auth,", "qop=auth-int,"),
        ("qop=auth,", "qop=other,"),
        ("nonce=\"", "nonce=\"0"),
        ("username", "user"),
    ] {
        assert!(good.contains(from), "{good}");
        assert_eq!(verdict(&good.replace(from, to)), Verdict::Refused, "{from}");
    }
    assert_eq!(
        verdict(&good.replace("realm=\"example.org\"", "realm=\"example.com\"")),
        Verdict::Missing
    );
    assert_eq!(verdict(&good.replace("Digest", "Basic")), Verdict::Missing);
    assert_eq!(verdict("Digest \"unbalanced"), Verdict::Missing);
    assert_eq!(verdict(&good), Verdict::Accepted("alice".into()));
    let mut other_method = request();
    other_method.method = Method::Invite;
    other_method
        .headers
        .push("Authorization", answer(&challenge));
    assert_eq!(server.verdict(&other_method), Verdict::Refused);
}

#[test]
fn a_nonce_that_is_not_ours_is_stale() {
    let mut server = Server::new(|_| {});
    let mut verdict = |nonce: &str| {
        let mut request = request();
        let challenge = format!("Digest realm=\"example.org\", nonce=\"{nonce}\", qop=\"auth\"");
        request.headers.push("Authorization", answer(&challenge));
        server.verdict(&request)
    };
    for nonce in [
        "0.1.00",
        "zz",
        "",
        "0",
        "ffffffffffffffffffff.1.00",
        "0.1.00000000000000000000000000000000",
    ] {
        assert_eq!(verdict(nonce), Verdict::Stale, "{nonce}");
    }
}

#[test]
fn memory_is_bounded_and_what_is_forgotten_is_stale() {
    let mut server = Server::new(|rules| rules.max_nonces = 4);
    let mut waiting = Client::new();
    waiting.challenged(&server.asks(false), &alice()).unwrap();
    for _ in 0..1000 {
        let _ = server.asks(false);
        let _ = server.meets(&Credentials::password("alice", "wrong"));
    }
    assert_eq!(server.verifier.remembered(), 0);
    for _ in 0..10 {
        server.now += Duration::from_millis(1);
        assert_eq!(server.meets(&alice()), Verdict::Accepted("alice".into()));
    }
    assert_eq!(server.verifier.remembered(), 4);
    let mut late = request();
    waiting.authorize(&mut late, &alice(), "abc");
    assert_eq!(server.verdict(&late), Verdict::Stale);
    server.now += Duration::from_secs(301);
    assert_eq!(server.meets(&alice()), Verdict::Accepted("alice".into()));
    assert_eq!(server.verifier.remembered(), 1);
}

#[test]
fn a_client_gives_up_when_it_is_refused() {
    let challenge = |nonce: &str| format!("Digest realm=\"r\", nonce=\"{nonce}\"");
    let mut client = Client::new();
    assert_eq!(
        client.challenged(&Response::new(StatusCode::UNAUTHORIZED), &alice()),
        Err(DigestError::NoChallenge)
    );
    assert_eq!(
        client.challenged(&Response::new(StatusCode::OK), &alice()),
        Err(DigestError::NoChallenge)
    );
    for other in [
        "Basic realm=\"r\"",
        "Digest realm=\"r\", nonce=\"n\", algorithm=MD5-sess",
        "Digest realm=\"r\"",
        "\"",
    ] {
        assert_eq!(
            client.challenged(&unauthorized(other), &alice()),
            Err(DigestError::NoMatch),
            "{other}"
        );
    }
    client.start();
    client
        .challenged(&unauthorized(&challenge("1")), &alice())
        .unwrap();
    assert_eq!(
        client.challenged(&unauthorized(&challenge("2")), &alice()),
        Err(DigestError::Refused)
    );
    // A next request may be challenged anew.
    client.start();
    client
        .challenged(&unauthorized(&challenge("3")), &alice())
        .unwrap();
    // A proxy on the way is somebody else.
    client
        .challenged(
            &asks(StatusCode::PROXY_AUTHENTICATION_REQUIRED, &[challenge("4")]),
            &alice(),
        )
        .unwrap();
    let mut request = request();
    client.authorize(&mut request, &alice(), "abc");
    assert!(
        request
            .headers
            .get("Authorization")
            .unwrap()
            .contains("nonce=\"3\"")
    );
    assert!(
        request
            .headers
            .get("Proxy-Authorization")
            .unwrap()
            .contains("nonce=\"4\"")
    );
    // Endless `stale` ends.
    client.start();
    let stale = unauthorized(&format!("{}, stale=TRUE", challenge("5")));
    let rounds = (0..100)
        .take_while(|_| client.challenged(&stale, &alice()).is_ok())
        .count();
    assert!((1..10).contains(&rounds), "{rounds}");
    // The number of remembered realms is bounded.
    let mut client = Client::new();
    for realm in 0..50 {
        client.start();
        client
            .challenged(
                &unauthorized(&format!("Digest realm=\"{realm}\", nonce=\"n\"")),
                &alice(),
            )
            .unwrap();
    }
    client.authorize(&mut request, &alice(), "abc");
    assert_eq!(request.headers.all("Authorization").count(), 8);
}

#[test]
fn challenges_of_all_forms_are_understood() {
    let all = |lines: &[&str]| {
        Challenge::all(&asks(StatusCode::UNAUTHORIZED, lines).headers, Kind::Server)
    };
    let found = all(&[
        "Digest realm=\"a, \\\"b\\\"\" , nonce = \"n\",qop=\"auth-int, auth\",opaque=\"\", stale=false, domain=\"sip:x\", algorithm=md5",
        "NewScheme x=1, DIGEST realm=r,nonce=n2,qop=auth-int,algorithm=\"SHA-512-256\"",
    ]);
    assert_eq!(found.len(), 2);
    assert_eq!(
        (found[0].realm.as_str(), found[0].qop),
        ("a, \\\"b\\\"", Some(Qop::Auth))
    );
    assert_eq!(
        (found[0].opaque.as_deref(), found[0].algorithm),
        (Some(""), Some(Algorithm::Md5))
    );
    assert_eq!(
        (found[1].qop, found[1].algorithm),
        (Some(Qop::AuthInt), Some(Algorithm::Sha512_256))
    );
    assert!(all(&["Digest", "Digest realm=\"r\", nonce=\"n\", qop=\"token\""]).is_empty());
    // The body counts for auth-int.
    let mut invite = request();
    let before = respond(&found[1], &alice(), &invite, 1, "c").unwrap();
    invite.body = b"v=0".to_vec();
    assert_ne!(
        respond(&found[1], &alice(), &invite, 1, "c").unwrap(),
        before
    );
    assert_eq!(format!("{:?}", alice()), "Credentials { .. }");
}

proptest! {
    #[test]
    fn all_users_and_passwords_are_accepted(user in any::<String>(), password in any::<String>(), realm in any::<String>()) {
        let user = user.replace(['\r', '\n'], "");
        let now = Instant::now();
        let mut verifier = Verifier::new(Rules::new(realm), KEY, now);
        let credentials = Credentials::password(user.clone(), password);
        let mut client = Client::new();
        client.challenged(&asks(StatusCode::UNAUTHORIZED, &verifier.challenges(now, false)), &credentials).unwrap();
        let mut request = request();
        client.authorize(&mut request, &credentials, "abc");
        let verdict = verifier.verify(now, Kind::Server, &request, |_| Some(credentials));
        prop_assert_eq!(verdict, Verdict::Accepted(user));
    }

    #[test]
    fn header_fields_of_any_kind_do_no_harm(text in any::<String>()) {
        let mut headers = Headers::new();
        headers.push("WWW-Authenticate", &text);
        headers.push("WWW-Authenticate", format!("Digest {text}"));
        let _ = Challenge::all(&headers, Kind::Server);
        let mut request = request();
        request.headers.push("Authorization", format!("Digest realm=\"example.org\",{text}"));
        let verdict = Server::new(|_| {}).verdict(&request);
        prop_assert!(!matches!(verdict, Verdict::Accepted(_)));
    }
}
