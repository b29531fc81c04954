//! A registrar of the simplest kind.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_sip::digest::{Credentials, Kind, Rules, Verdict, Verifier};
use portunus_sip::flow::Flow;
use portunus_sip::message::{Contacts, Message, Method, NameAddr, Request, Response, StatusCode};

pub struct Registrar {
    verifier: Verifier,
    passwords: HashMap<String, String>,
    /// Shorter intervals get 423.
    pub least: Duration,
    /// The longest granted interval.
    pub most: Duration,
    /// The status of every response.
    pub code: Option<u16>,
    /// Whether nonces are stale at once.
    pub forgetful: bool,
    pub service_route: Option<&'static str>,
    /// The address that the agent appears to have.
    pub seen_as: Option<SocketAddr>,
    /// REGISTERs and OPTIONS that came, with their times.
    pub log: Vec<(Instant, Request)>,
    /// Contacts and when they expire, by address of record.
    pub bindings: HashMap<String, Vec<(String, Instant)>>,
}

impl Registrar {
    pub fn new(now: Instant, passwords: &[(&str, &str)]) -> Self {
        Self {
            verifier: Verifier::new(Rules::new("test"), [7; 32], now),
            passwords: passwords
                .iter()
                .map(|&(user, password)| (user.to_owned(), password.to_owned()))
                .collect(),
            least: Duration::ZERO,
            most: Duration::from_secs(3600),
            code: None,
            forgetful: false,
            service_route: None,
            seen_as: None,
            log: Vec::new(),
            bindings: HashMap::new(),
        }
    }

    pub fn receive(&mut self, now: Instant, _: &Flow, bytes: &[u8]) -> Option<Vec<u8>> {
        let Ok(Message::Request(request)) = Message::parse(bytes) else {
            return None;
        };
        if request.method == Method::Ack {
            return None;
        }
        self.log.push((now, request.clone()));
        let mut response = self.answer(now, &request);
        response.headers.set_to_tag("registrar");
        if let (Some(seen), Ok(Some(mut via))) = (self.seen_as, response.headers.via()) {
            via.params.set("received", Some(&seen.ip().to_string()));
            via.params.set("rport", Some(&seen.port().to_string()));
            response.headers.set_first_via(via);
        }
        Some(response.to_bytes())
    }

    fn answer(&mut self, now: Instant, request: &Request) -> Response {
        let status = |code| Response::to(request, StatusCode::new(code).unwrap());
        if let Some(code) = self.code {
            return status(code);
        }
        if request.method != Method::Register {
            return status(200);
        }
        let lookup = |user: &str| Some(Credentials::password(user, self.passwords.get(user)?));
        match self.verifier.verify(now, Kind::Server, request, lookup) {
            Verdict::Accepted(_) if self.forgetful => {
                self.forgetful = false;
                return self.challenge(now, request, true);
            }
            Verdict::Accepted(_) => {}
            Verdict::Stale => return self.challenge(now, request, true),
            Verdict::Missing | Verdict::Refused => return self.challenge(now, request, false),
        }
        let asked = request.headers.expires().unwrap().unwrap();
        if asked < self.least && !asked.is_zero() {
            let mut response = status(423);
            response.headers.push("Min-Expires", self.least.as_secs());
            return response;
        }
        let granted = asked.min(self.most);
        let aor = request.headers.to().unwrap().unwrap().uri.to_string();
        let bindings = self.bindings.entry(aor).or_default();
        bindings.retain(|(_, until)| *until > now);
        let Contacts::These(contacts) = request.headers.contacts().unwrap() else {
            return status(400);
        };
        for contact in contacts {
            let own: Option<u64> = contact
                .params
                .get("expires")
                .map(|text| text.parse().unwrap());
            let granted = own.map_or(granted, |own| granted.min(Duration::from_secs(own)));
            let text = contact.uri.to_string();
            bindings.retain(|(other, _)| *other != text);
            if !granted.is_zero() {
                bindings.push((text, now + granted));
            }
        }
        let mut response = status(200);
        for (contact, until) in bindings {
            let mut contact = NameAddr::new(contact.parse::<portunus_sip::message::Uri>().unwrap());
            contact
                .params
                .set("expires", Some(&(*until - now).as_secs().to_string()));
            response.headers.push("Contact", contact);
        }
        if let Some(route) = self.service_route {
            response.headers.push("Service-Route", route);
        }
        response
    }

    fn challenge(&mut self, now: Instant, request: &Request, stale: bool) -> Response {
        let mut response = Response::to(request, StatusCode::UNAUTHORIZED);
        for challenge in self.verifier.challenges(now, stale) {
            response.headers.push("WWW-Authenticate", challenge);
        }
        response
    }

    /// Takes the methods and times of the received requests.
    pub fn take_log(&mut self) -> Vec<(Instant, Request)> {
        std::mem::take(&mut self.log)
    }
}
