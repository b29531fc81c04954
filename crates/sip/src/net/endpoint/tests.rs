//! Endpoints that call each other and register, over sockets of the loopback interface.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::net::{Ipv4Addr, SocketAddr};

use tokio::time::timeout;

use super::*;
use crate::agent::{
    About, AccountId, Allow, Body, CallId, Cause, Invite, Options, Profile, Registration, RequestId,
};
use crate::digest::{Credentials, Kind, Rules, Verdict, Verifier};
use crate::flow::{Route, Transport};
use crate::message::{Message, Method, Request, Response, StatusCode, Uri};
use crate::net::testing;

const LIMIT: Duration = Duration::from_secs(30);
const ALL: [Transport; 5] = [
    Transport::Udp,
    Transport::Tcp,
    Transport::Tls,
    Transport::Ws,
    Transport::Wss,
];

fn config(transport: Transport) -> Config {
    Config {
        listen: vec![Listen {
            transport,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
        }],
        tls: testing::certificate(),
        agent: Options {
            // Accounts of tests are called by their names.
            direct: vec![([0; 4].into(), 0)],
            ..Options::default()
        },
        ..Config::default()
    }
}

struct Side {
    endpoint: Endpoint,
    events: mpsc::Receiver<AgentEvent>,
}

impl Side {
    fn start(config: Config) -> Self {
        let (endpoint, events) = Endpoint::start(config).unwrap();
        Self { endpoint, events }
    }

    fn address(&self) -> SocketAddr {
        self.endpoint.listening()[0].address
    }

    async fn event(&mut self) -> AgentEvent {
        timeout(LIMIT, self.events.recv())
            .await
            .expect("an event in time")
            .expect("the endpoint runs")
    }

    fn account(&self, number: u64, profile: Profile) {
        self.endpoint.command(Command::SetAccount {
            account: AccountId::new(number),
            profile: Box::new(profile),
        });
    }

    fn call(&self, number: u64, uri: &str) {
        let invite = Invite {
            uri: uri.parse().unwrap(),
            call_id: None,
            offer: Some(sdp()),
            headers: Vec::new(),
            credentials: None,
            cancel_early: false,
        };
        let (account, call) = (AccountId::new(1), CallId::new(number));
        self.endpoint.command(Command::Invite {
            account,
            call,
            invite: Box::new(invite),
        });
    }
}

fn sdp() -> Body {
    Body {
        content_type: "application/sdp".to_owned(),
        content: b"v=0\r\n".to_vec(),
    }
}

fn profile(identity: &str) -> Profile {
    Profile {
        identity: identity.parse().unwrap(),
        display_name: String::new(),
        credentials: None,
        registration: None,
        outbound_proxy: None,
        transport: None,
        user_agent: None,
        contact_params: Vec::new(),
        behind_nat: false,
        refers: true,
        entrance: false,
        trace: false,
    }
}

#[tokio::test]
async fn endpoints_call_each_other_over_each_transport() {
    for transport in ALL {
        let mut alice = Side::start(config(transport));
        let mut bob = Side::start(config(transport));
        alice.account(1, profile("sip:alice@example.org"));
        bob.account(1, profile("sip:bob@example.org"));
        let remote = bob.address();
        alice.call(
            1,
            &format!("sip:bob@{remote};transport={}", transport.param()),
        );
        let AgentEvent::Incoming {
            call,
            request,
            flow,
            ..
        } = bob.event().await
        else {
            panic!("{transport}")
        };
        assert_eq!(
            (request.body.as_slice(), flow.transport),
            (sdp().content.as_slice(), transport)
        );
        bob.endpoint.command(Command::Accept {
            call,
            headers: Vec::new(),
            body: Some(sdp()),
        });
        let AgentEvent::Accepted { .. } = alice.event().await else {
            panic!("{transport}")
        };
        let AgentEvent::Acknowledged { .. } = bob.event().await else {
            panic!("{transport}")
        };
        // The called side hangs up: its request takes the way back.
        bob.endpoint.command(Command::Hangup {
            call,
            headers: Vec::new(),
        });
        let AgentEvent::Ended { cause, .. } = alice.event().await else {
            panic!("{transport}")
        };
        assert_eq!(cause, Cause::Bye);
        let AgentEvent::Ended { cause, .. } = bob.event().await else {
            panic!("{transport}")
        };
        assert_eq!(cause, Cause::Hangup);
        // The handle is the endpoint: without it, the events end.
        drop(alice.endpoint);
        while alice.events.recv().await.is_some() {}
    }
}

#[tokio::test]
async fn nobody_there_is_told_at_once() {
    for transport in ALL {
        let mut alice = Side::start(config(transport));
        alice.account(1, profile("sip:alice@example.org"));
        let nobody = match transport {
            Transport::Udp => std::net::UdpSocket::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap(),
            _ => std::net::TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap(),
        };
        alice.call(
            1,
            &format!("sip:bob@{nobody};transport={}", transport.param()),
        );
        // Long before a transaction would give up, which is told as 408.
        let AgentEvent::Ended { code, cause, .. } = alice.event().await else {
            panic!("{transport}")
        };
        assert_eq!((code, cause), (503, Cause::Unreachable), "{transport}");
    }
}

#[tokio::test]
async fn requests_go_only_where_they_may() {
    let mut bob = Side::start(config(Transport::Udp));
    bob.account(1, profile("sip:bob@example.org"));
    let address = bob.address();
    let mut with = config(Transport::Udp);
    with.agent.allow = Allow::new(|address| !address.is_loopback());
    let mut alice = Side::start(with);
    alice.account(1, profile("sip:alice@example.org"));
    alice.call(1, &format!("sip:bob@{address}"));
    let AgentEvent::Forbidden { about, address } = alice.event().await else {
        panic!()
    };
    assert_eq!(about, About::Call(CallId::new(1)));
    assert!(address.is_loopback());
    let AgentEvent::Ended { code: 503, .. } = alice.event().await else {
        panic!()
    };
    // What comes from there is answered.
    bob.call(1, &format!("sip:alice@{}", alice.address()));
    let AgentEvent::Incoming { call, .. } = alice.event().await else {
        panic!()
    };
    alice.endpoint.command(Command::Reject {
        call,
        code: 486,
        reason: None,
        headers: Vec::new(),
    });
    let AgentEvent::Ended { code: 486, .. } = bob.event().await else {
        panic!()
    };
}

#[tokio::test]
async fn nothing_is_listened_on_before_it_is_needed() {
    let mut alice = Side::start(Config {
        when_needed: true,
        ..config(Transport::Udp)
    });
    let mut bob = Side::start(config(Transport::Udp));
    bob.account(1, profile("sip:bob@example.org"));
    tokio::task::yield_now().await;
    assert!(alice.endpoint.listening().is_empty() && alice.endpoint.locals().is_empty());
    alice.account(1, profile("sip:alice@example.org"));
    alice.call(1, &format!("sip:bob@{}", bob.address()));
    let AgentEvent::Incoming { call, flow, .. } = bob.event().await else {
        panic!()
    };
    assert_eq!(alice.address(), flow.remote);
    bob.endpoint.command(Command::Reject {
        call,
        code: 486,
        reason: None,
        headers: Vec::new(),
    });
    let AgentEvent::Ended { code: 486, .. } = alice.event().await else {
        panic!()
    };
}

#[tokio::test]
async fn who_needs_a_port_that_is_taken_is_told_and_may_try_again() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut with = config(Transport::Udp);
    with.listen[0].address = taken.local_addr().unwrap();
    with.when_needed = true;
    let mut alice = Side::start(with);
    let mut bob = Side::start(config(Transport::Udp));
    bob.account(1, profile("sip:bob@example.org"));
    alice.account(1, profile("sip:alice@example.org"));
    let bobs = format!("sip:bob@{}", bob.address());
    alice.call(1, &bobs);
    let AgentEvent::Ended { code: 503, .. } = alice.event().await else {
        panic!()
    };
    drop(taken);
    alice.call(2, &bobs);
    let AgentEvent::Incoming { .. } = bob.event().await else {
        panic!()
    };
}

#[tokio::test]
async fn names_that_are_none_are_told() {
    let mut alice = Side::start(config(Transport::Udp));
    alice.account(1, profile("sip:alice@example.org"));
    alice.call(1, "sip:bob@no-such-name.invalid:5060");
    let AgentEvent::Ended { code, reason, .. } = alice.event().await else {
        panic!()
    };
    assert_eq!((code, reason.as_str()), (503, "DNS Error"));
    alice.call(2, "sips:bob@127.0.0.1;transport=udp");
    let AgentEvent::Ended { code, .. } = alice.event().await else {
        panic!()
    };
    assert_eq!(code, 503);
}

/// A registrar of one user: it asks for a password, and remembers the Contact.
struct Registrar {
    sockets: Sockets,
    verifier: Verifier,
}

impl Registrar {
    fn start(transport: Transport) -> (Self, SocketAddr) {
        let sockets = Sockets::bind(&config(transport)).unwrap();
        let address = sockets.listening()[0].address;
        let verifier = Verifier::new(Rules::new("example.org"), [1; 32], time());
        (Self { sockets, verifier }, address)
    }

    async fn request(&mut self) -> (Route, Request) {
        loop {
            if let Told::Message(flow, bytes) = self.sockets.next().await
                && let Ok(Message::Request(request)) = Message::parse(&bytes)
            {
                return (Route::Flow(flow), request);
            }
        }
    }

    fn answer(&mut self, route: &Route, request: &Request) {
        let credentials =
            |user: &str| (user == "alice").then(|| Credentials::password("alice", "secret"));
        let verdict = self
            .verifier
            .verify(time(), Kind::Server, request, credentials);
        let response = if verdict == Verdict::Accepted("alice".to_owned()) {
            let mut response = Response::to(request, StatusCode::OK);
            let contact = request.headers.get("Contact").unwrap_or_default();
            response
                .headers
                .push("Contact", format!("{contact};expires=60"));
            response
        } else {
            let mut response = Response::to(request, StatusCode::UNAUTHORIZED);
            for challenge in self.verifier.challenges(time(), verdict == Verdict::Stale) {
                response.headers.push("WWW-Authenticate", challenge);
            }
            response
        };
        self.sockets.send(route, response.to_bytes().into());
    }

    /// Answers until the endpoint has an event.
    async fn serve(&mut self, side: &mut Side) -> AgentEvent {
        loop {
            tokio::select! {
                (route, request) = self.request() => self.answer(&route, &request),
                event = side.event() => return event,
            }
        }
    }
}

fn registered(registrar: &Uri, secret: &str) -> Profile {
    Profile {
        credentials: Some(Credentials::password("alice", secret)),
        registration: Some(Registration {
            registrar: Some(registrar.clone()),
            expires: Duration::from_secs(60),
            headers: Vec::new(),
            keepalive: None,
            retry: false,
        }),
        ..profile("sip:alice@example.org")
    }
}

#[tokio::test]
async fn an_account_registers_over_each_transport_and_is_called_back() {
    for transport in ALL {
        let (mut registrar, address) = Registrar::start(transport);
        let mut alice = Side::start(config(transport));
        let uri: Uri = format!("sip:{address};transport={}", transport.param())
            .parse()
            .unwrap();
        alice.account(1, registered(&uri, "secret"));
        let AgentEvent::Registered { response, .. } = registrar.serve(&mut alice).await else {
            panic!("{transport}")
        };
        let contact = response.headers.contact().unwrap().unwrap();
        // A request to that Contact, on the way that the registration took, finds the account.
        alice.endpoint.command(Command::OutOfDialog {
            account: AccountId::new(1),
            request: RequestId::new(1),
            method: Method::Options,
            uri: uri.clone(),
            call_id: None,
            headers: Vec::new(),
            body: None,
        });
        let (route, options) = timeout(LIMIT, registrar.request()).await.unwrap();
        registrar.sockets.send(
            &route,
            Response::to(&options, StatusCode::OK).to_bytes().into(),
        );
        let AgentEvent::Response { code: 200, .. } = alice.event().await else {
            panic!("{transport}")
        };
        let mut invite = Request::new(Method::Message, contact.uri);
        let via = format!("SIP/2.0/{transport} {address};branch=z9hG4bKcallback;rport");
        for (name, value) in [
            ("Via", via.as_str()),
            ("From", "<sip:bob@example.org>;tag=b"),
            ("To", "<sip:alice@example.org>"),
        ] {
            invite.headers.push(name, value);
        }
        invite.headers.push("Call-ID", "callback");
        invite.headers.push("CSeq", "1 MESSAGE");
        invite.set_body("text/plain", *b"hello");
        registrar.sockets.send(&route, invite.to_bytes().into());
        let AgentEvent::Request {
            account, request, ..
        } = registrar.serve(&mut alice).await
        else {
            panic!("{transport}")
        };
        assert_eq!(
            (account, request.body.as_slice()),
            (Some(AccountId::new(1)), &b"hello"[..])
        );
        alice.endpoint.command(Command::RemoveAccount {
            account: AccountId::new(1),
        });
        let AgentEvent::Unregistered { .. } = registrar.serve(&mut alice).await else {
            panic!("{transport}")
        };
    }
}

#[tokio::test]
async fn a_wrong_secret_is_told() {
    let (mut registrar, address) = Registrar::start(Transport::Udp);
    let mut alice = Side::start(config(Transport::Udp));
    alice.account(
        1,
        registered(&format!("sip:{address}").parse().unwrap(), "wrong"),
    );
    let AgentEvent::RegistrationFailed { code: 904, .. } = registrar.serve(&mut alice).await else {
        panic!()
    };
}

#[tokio::test]
async fn the_status_tells_of_connections() {
    let mut alice = Side::start(config(Transport::Tcp));
    let mut bob = Side::start(config(Transport::Tcp));
    alice.account(1, profile("sip:alice@example.org"));
    bob.account(1, profile("sip:bob@example.org"));
    alice.call(1, &format!("sip:bob@{};transport=tcp", bob.address()));
    let AgentEvent::Incoming { call, .. } = bob.event().await else {
        panic!()
    };
    let both = |side: &Side| {
        let status = side.endpoint.status();
        (status.load.calls, status.connections)
    };
    let told = async {
        while both(&alice) != (1, 1) || both(&bob) != (1, 1) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LIMIT, told)
        .await
        .expect("the status is brought up to date");
    bob.endpoint.command(Command::Reject {
        call,
        code: 603,
        reason: None,
        headers: Vec::new(),
    });
    let AgentEvent::Ended { code: 603, .. } = alice.event().await else {
        panic!()
    };
}
