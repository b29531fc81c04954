//! Secrets: challenges to calls of ours, and challenges of ours to strangers.

use portunus_sip::agent::{AgentEvent, CallId, Command};
use portunus_sip::digest::{Credentials, Kind, Rules, Verdict, Verifier};
use portunus_sip::message::{Request, Response, StatusCode};

use crate::races::{answer, invite_by_hand};
use crate::world::*;

fn challenge(verifier: &mut Verifier, world: &World, request: &Request, kind: Kind) -> Response {
    let mut response = Response::to(request, kind.status());
    response.headers.set_to_tag("proxy");
    for challenge in verifier.challenges(world.now, false) {
        response.headers.push(kind.challenge_header(), challenge);
    }
    response
}

fn verdict(verifier: &mut Verifier, world: &World, request: &Request, kind: Kind) -> Verdict {
    verifier.verify(world.now, kind, request, |user| {
        Some(Credentials::password(user, format!("{user}-secret")))
    })
}

/// Alice at node 0 with a secret, and a proxy played by hand at node 1.
fn world() -> (World, usize, Verifier) {
    let mut world = World::new(Weather::FAIR, 1);
    let mut own = profile("sip:alice@192.0.2.1");
    own.credentials = Some(Credentials::password("alice", "alice-secret"));
    world.agent_with(options(), passive, |_| own);
    let proxy = world.hand();
    let verifier = Verifier::new(Rules::new("proxy"), [1; 32], world.now);
    (world, proxy, verifier)
}

#[test]
fn a_call_answers_a_challenge_by_the_proxy_and_one_by_the_callee() {
    let (mut world, proxy, mut verifier) = world();
    let mut callee = Verifier::new(Rules::new("callee"), [2; 32], world.now);
    let call = world.invite(0, 1, invite("sip:bob@192.0.2.2"));
    let first = world.next_request(proxy, SECOND);
    let response = challenge(&mut verifier, &world, &first, Kind::Proxy);
    world.send(proxy, 0, response);
    assert_eq!(world.next_request(proxy, SECOND).method.as_str(), "ACK");
    let second = world.next_request(proxy, SECOND);
    assert_eq!(
        verdict(&mut verifier, &world, &second, Kind::Proxy),
        Verdict::Accepted("alice".into())
    );
    let response = challenge(&mut callee, &world, &second, Kind::Server);
    world.send(proxy, 0, response);
    assert_eq!(world.next_request(proxy, SECOND).method.as_str(), "ACK");
    let third = world.next_request(proxy, SECOND);
    assert_eq!(
        verdict(&mut verifier, &world, &third, Kind::Proxy),
        Verdict::Accepted("alice".into())
    );
    assert_eq!(
        verdict(&mut callee, &world, &third, Kind::Server),
        Verdict::Accepted("alice".into())
    );
    let number = |request: &Request| request.headers.cseq().unwrap().unwrap().number;
    assert_eq!((number(&first), number(&second), number(&third)), (1, 2, 3));
    assert_eq!(first.headers.get("From"), third.headers.get("From"));
    world.send(proxy, 0, answer(&third, 200, "bob", proxy));
    let ack = world.next_request(proxy, SECOND);
    assert_eq!(number(&ack), 3);
    assert!(ack.headers.has("Proxy-Authorization") && ack.headers.has("Authorization"));
    // The proxy wants to know who hangs up.
    world.hangup(0, call);
    let bye = world.next_request(proxy, SECOND);
    let response = challenge(&mut verifier, &world, &bye, Kind::Proxy);
    world.send(proxy, 0, response);
    let bye = world.next_request(proxy, SECOND);
    assert_eq!((bye.method.as_str(), number(&bye)), ("BYE", 5));
    assert_eq!(
        verdict(&mut verifier, &world, &bye, Kind::Proxy),
        Verdict::Accepted("alice".into())
    );
    world.send(proxy, 0, answer(&bye, 200, "bob", proxy));
    world.pass(SECOND);
    assert_eq!(world.told(0), ["accepted", "ended Hangup 200 to BYE"]);
}

#[test]
fn a_secret_that_is_refused_ends_the_call() {
    let (mut world, proxy, mut verifier) = world();
    world.invite(0, 1, invite("sip:bob@192.0.2.2"));
    for _ in 0..2 {
        let mut request = world.next_request(proxy, SECOND);
        while request.method.as_str() == "ACK" {
            request = world.next_request(proxy, SECOND);
        }
        let response = challenge(&mut verifier, &world, &request, Kind::Proxy);
        world.send(proxy, 0, response);
    }
    world.pass(MINUTE);
    assert_eq!(
        world.told(0),
        ["ended Rejected 904 Operation has no matching challenge"]
    );
    world.assert_idle(0);
}

#[test]
fn a_call_may_have_a_secret_of_its_own() {
    let (mut world, proxy, mut verifier) = world();
    let mut own = invite("sip:bob@192.0.2.2");
    own.credentials = Some(Credentials::password("other", "other-secret"));
    world.invite(0, 1, own);
    let first = world.next_request(proxy, SECOND);
    let response = challenge(&mut verifier, &world, &first, Kind::Proxy);
    world.send(proxy, 0, response);
    world.next_request(proxy, SECOND);
    let second = world.next_request(proxy, SECOND);
    assert_eq!(
        verdict(&mut verifier, &world, &second, Kind::Proxy),
        Verdict::Accepted("other".into())
    );
}

#[test]
fn a_call_that_is_taken_back_answers_no_challenge() {
    let (mut world, proxy, mut verifier) = world();
    let call = world.invite(0, 1, invite("sip:bob@192.0.2.2"));
    let first = world.next_request(proxy, SECOND);
    world.hangup(0, call);
    let response = challenge(&mut verifier, &world, &first, Kind::Proxy);
    world.send(proxy, 0, response);
    assert_eq!(world.next_request(proxy, SECOND).method.as_str(), "ACK");
    assert!(world.requests(proxy, SECOND).is_empty());
    assert_eq!(world.told(0), ["ended Cancelled 487 Request Terminated"]);
}

#[test]
fn a_stranger_is_asked_for_a_secret() {
    let mut world = World::new(Weather::FAIR, 1);
    let mut with = options();
    with.strangers = true;
    world.agent_with(with, passive, |_| profile("sip:bob@192.0.2.1"));
    let trunk = world.hand();
    let mut verifier = Verifier::new(Rules::new("trunk"), [1; 32], world.now);
    let request = invite_by_hand(trunk, "sip:1234@192.0.2.1", "1");
    world.send(trunk, 0, request.clone());
    let comes = |event: &AgentEvent| match event {
        AgentEvent::Incoming {
            call,
            account: None,
            request,
            ..
        } => Some((*call, request.clone())),
        _ => None,
    };
    let (call, got): (CallId, _) = world.until(0, SECOND, comes);
    assert_eq!(
        verdict(&mut verifier, &world, &got, Kind::Server),
        Verdict::Missing
    );
    let headers = verifier
        .challenges(world.now, false)
        .into_iter()
        .map(|value| ("WWW-Authenticate".to_owned(), value));
    world.command(
        0,
        Command::Reject {
            call,
            code: 401,
            reason: None,
            headers: headers.collect(),
        },
    );
    let responses = world.responses(trunk, SECOND / 10);
    let mut client = portunus_sip::digest::Client::new();
    let secret = Credentials::password("trunk", "trunk-secret");
    client
        .challenged(
            responses
                .iter()
                .find(|one| one.status == StatusCode::UNAUTHORIZED)
                .unwrap(),
            &secret,
        )
        .unwrap();
    let mut again = request;
    again.headers.set("CSeq", "2 INVITE");
    again
        .headers
        .set_first_via("SIP/2.0/UDP 192.0.2.2;branch=z9hG4bK2");
    client.authorize(&mut again, &secret, "cnonce");
    world.send(trunk, 0, again);
    let (_, got) = world.until(0, SECOND, comes);
    assert_eq!(
        verdict(&mut verifier, &world, &got, Kind::Server),
        Verdict::Accepted("trunk".into())
    );
}
