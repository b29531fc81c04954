#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::time::Duration;

use super::*;
use crate::flow::Target;
use crate::message::StatusCode;

const SECOND: Duration = Duration::from_secs(1);

struct Table {
    table: Transactions,
    now: Instant,
    events: Vec<Event>,
    /// Start lines of what was sent.
    sent: Vec<String>,
}

impl Table {
    fn new() -> Self {
        Self {
            table: Transactions::new(Timers::default(), 100),
            now: Instant::now(),
            events: Vec::new(),
            sent: Vec::new(),
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.table.poll() {
            match output {
                Output::Transmit(_, bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    self.sent.push(text.lines().next().unwrap().to_owned());
                }
                Output::Event(event) => self.events.push(event),
            }
        }
    }

    /// Lets time pass. What was sent in it, with the milliseconds since the start.
    fn pass(&mut self, time: Duration) -> Vec<(u64, String)> {
        self.drain();
        let (start, end) = (self.now, self.now + time);
        let mut log = Vec::new();
        while let Some(at) = self.table.deadline().filter(|&at| at <= end) {
            self.now = at;
            self.table.timeout(at);
            self.sent.clear();
            self.drain();
            let ms = u64::try_from((at - start).as_millis()).unwrap();
            log.extend(self.sent.drain(..).map(|line| (ms, line)));
        }
        self.now = end;
        log
    }

    fn sent(&mut self) -> Vec<String> {
        self.drain();
        std::mem::take(&mut self.sent)
    }

    fn events(&mut self) -> Vec<Event> {
        self.drain();
        std::mem::take(&mut self.events)
    }

    fn receive(&mut self, flow: &Flow, text: &str) -> Received {
        let message = Message::parse(text.as_bytes()).unwrap();
        self.table.receive(self.now, flow, message, text.len())
    }

    /// Receives a request, and opens a transaction for it.
    fn open(&mut self, flow: &Flow, text: &str) -> ServerId {
        match self.receive(flow, text) {
            Received::Request(new) => self.table.accept(self.now, &new, false).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, id: ServerId, code: u16) -> bool {
        let request = self.table.request_of(id).unwrap().clone();
        let mut response = Response::to(&request, StatusCode::new(code).unwrap());
        response.headers.set_to_tag("ours");
        self.table.respond(self.now, id, &response).is_some()
    }
}

fn flow(transport: Transport) -> Flow {
    Flow {
        transport,
        local: "192.0.2.1:5060".parse().unwrap(),
        remote: "192.0.2.2:5070".parse().unwrap(),
        connection: transport.is_reliable().then_some(ConnectionId(1)),
    }
}

fn target(transport: Transport) -> Route {
    let remote: SocketAddr = "192.0.2.2:5070".parse().unwrap();
    Route::Target(Target {
        transport,
        remote,
        host: remote.ip().into(),
    })
}

fn text(method: &str, branch: &str) -> String {
    format!(
        "{method} sip:b@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.2:5070;branch={branch}\r\nMax-Forwards: 70\r\n\
         From: <sip:a@x.test>;tag=a\r\nTo: <sip:b@x.test>\r\nCall-ID: c1\r\nCSeq: 1 {}\r\nContact: <sip:a@192.0.2.2>\r\n\r\n",
        method
    )
}

fn request(method: &str, branch: &str) -> Request {
    match Message::parse(text(method, branch).as_bytes()).unwrap() {
        Message::Request(request) => request,
        Message::Response(_) => panic!("a response"),
    }
}

fn reply(method: &str, branch: &str, status: &str) -> String {
    format!(
        "SIP/2.0 {status}\r\nVia: SIP/2.0/UDP 192.0.2.2:5070;branch={branch}\r\nFrom: <sip:a@x.test>;tag=a\r\n\
         To: <sip:b@x.test>;tag=b\r\nCall-ID: c1\r\nCSeq: 1 {method}\r\n\r\n"
    )
}

const B: &str = "z9hG4bK1";

fn times(log: &[(u64, String)]) -> Vec<u64> {
    log.iter().map(|(ms, _)| *ms).collect()
}

#[test]
fn an_invite_is_repeated_until_it_times_out() {
    let mut t = Table::new();
    let id = t
        .table
        .request(t.now, request("INVITE", B), target(Transport::Udp))
        .unwrap();
    let log = t.pass(SECOND * 40);
    assert_eq!(times(&log), [500, 1500, 3500, 7500, 15500, 31500]);
    assert_eq!(t.events(), [Event::TimedOut(id)]);
    assert!(t.table.is_empty());
    assert_eq!(t.table.deadline(), None);
}

#[test]
fn other_requests_are_repeated_each_t2() {
    let mut t = Table::new();
    t.table
        .request(t.now, request("OPTIONS", B), target(Transport::Udp))
        .unwrap();
    assert_eq!(times(&t.pass(SECOND * 12)), [500, 1500, 3500, 7500, 11500]);
    assert!(matches!(
        t.receive(&flow(Transport::Udp), &reply("OPTIONS", B, "100 Trying")),
        Received::Response(..)
    ));
    assert_eq!(times(&t.pass(SECOND * 9)), [3500, 7500]);
    assert!(matches!(
        t.receive(&flow(Transport::Udp), &reply("OPTIONS", B, "200 OK")),
        Received::Response(..)
    ));
    assert!(matches!(
        t.receive(&flow(Transport::Udp), &reply("OPTIONS", B, "200 OK")),
        Received::Nothing
    ));
    assert!(t.pass(SECOND * 6).is_empty());
    assert!(t.table.is_empty());
}

#[test]
fn nothing_is_repeated_on_a_reliable_transport() {
    let mut t = Table::new();
    let id = t
        .table
        .request(t.now, request("INVITE", B), target(Transport::Tcp))
        .unwrap();
    assert!(t.pass(SECOND * 33).is_empty());
    assert_eq!(t.events(), [Event::TimedOut(id)]);
}

#[test]
fn a_phone_may_ring_for_long() {
    let mut t = Table::new();
    t.table
        .request(t.now, request("INVITE", B), target(Transport::Udp))
        .unwrap();
    t.receive(&flow(Transport::Udp), &reply("INVITE", B, "180 Ringing"));
    assert!(t.pass(SECOND * 600).is_empty());
    assert!(t.events().is_empty());
}

#[test]
fn a_refusal_is_acknowledged_each_time() {
    let mut t = Table::new();
    t.table
        .request(t.now, request("INVITE", B), target(Transport::Udp))
        .unwrap();
    t.sent();
    let busy = reply("INVITE", B, "486 Busy Here");
    assert!(matches!(
        t.receive(&flow(Transport::Udp), &busy),
        Received::Response(..)
    ));
    assert!(matches!(
        t.receive(&flow(Transport::Udp), &busy),
        Received::Nothing
    ));
    assert_eq!(t.sent(), ["ACK sip:b@192.0.2.1 SIP/2.0"; 2]);
    t.pass(SECOND * 33);
    assert!(matches!(
        t.receive(&flow(Transport::Udp), &busy),
        Received::Nothing
    ));
    assert_eq!((t.table.stray(), t.table.len()), (1, 0));
}

#[test]
fn each_2xx_is_told_for_a_while() {
    let mut t = Table::new();
    let id = t
        .table
        .request(t.now, request("INVITE", B), target(Transport::Udp))
        .unwrap();
    let ok = reply("INVITE", B, "200 OK");
    for _ in 0..3 {
        assert!(matches!(
            t.receive(&flow(Transport::Udp), &ok),
            Received::Response(..)
        ));
    }
    assert!(matches!(
        t.receive(&flow(Transport::Udp), &reply("INVITE", B, "486 Busy Here")),
        Received::Nothing
    ));
    t.pass(SECOND * 33);
    assert_eq!(t.events(), [Event::ClientEnded(id)]);
    assert!(matches!(
        t.receive(&flow(Transport::Udp), &ok),
        Received::Nothing
    ));
}

#[test]
fn an_answer_fits_branch_and_method() {
    let mut t = Table::new();
    t.table
        .request(t.now, request("INVITE", B), target(Transport::Udp))
        .unwrap();
    assert!(matches!(
        t.receive(
            &flow(Transport::Udp),
            &reply("INVITE", "z9hG4bK2", "200 OK")
        ),
        Received::Nothing
    ));
    assert!(matches!(
        t.receive(&flow(Transport::Udp), &reply("OPTIONS", B, "200 OK")),
        Received::Nothing
    ));
    assert_eq!(t.table.stray(), 2);
}

#[test]
fn a_cancel_that_is_ignored_ends_the_invite() {
    let mut t = Table::new();
    let invite = t
        .table
        .request(t.now, request("INVITE", B), target(Transport::Udp))
        .unwrap();
    t.receive(&flow(Transport::Udp), &reply("INVITE", B, "180 Ringing"));
    t.sent();
    let cancel = t.table.cancel(t.now, invite, &[]).unwrap();
    assert_eq!(t.sent(), ["CANCEL sip:b@192.0.2.1 SIP/2.0"]);
    assert_eq!(t.table.cancel(t.now, invite, &[]), None);
    t.receive(&flow(Transport::Udp), &reply("CANCEL", B, "200 OK"));
    t.pass(SECOND * 33);
    assert_eq!(
        t.events(),
        [Event::ClientEnded(cancel), Event::TimedOut(invite)]
    );
}

#[test]
fn what_cannot_be_sent_fails_at_once() {
    let mut t = Table::new();
    let one = t
        .table
        .request(t.now, request("INVITE", B), target(Transport::Udp))
        .unwrap();
    t.table
        .request(t.now, request("INVITE", "z9hG4bK2"), target(Transport::Udp))
        .unwrap();
    t.receive(
        &flow(Transport::Udp),
        &reply("INVITE", "z9hG4bK2", "180 Ringing"),
    );
    t.table
        .unreachable(Transport::Tcp, "192.0.2.2:5070".parse().unwrap());
    assert!(t.events().is_empty());
    t.table
        .unreachable(Transport::Udp, "192.0.2.2:5070".parse().unwrap());
    assert_eq!(t.events(), [Event::Unreachable(one)]);
    let three = t
        .table
        .request(
            t.now,
            request("INVITE", "z9hG4bK3"),
            Route::Flow(flow(Transport::Tcp)),
        )
        .unwrap();
    t.table.closed(ConnectionId(1));
    assert_eq!(t.events(), [Event::Unreachable(three)]);
}

#[test]
fn a_repeated_invite_gets_the_latest_answer() {
    let mut t = Table::new();
    let udp = flow(Transport::Udp);
    let id = t.open(&udp, &text("INVITE", B));
    assert!(matches!(
        t.receive(&udp, &text("INVITE", B)),
        Received::Nothing
    ));
    assert!(t.sent().is_empty());
    t.answer(id, 180);
    t.receive(&udp, &text("INVITE", B));
    assert_eq!(t.sent(), ["SIP/2.0 180 Ringing"; 2]);
    t.answer(id, 200);
    t.receive(&udp, &text("INVITE", B));
    // The user repeats a 2xx.
    assert_eq!(t.sent(), ["SIP/2.0 200 OK"]);
    assert!(t.answer(id, 200));
    assert!(!t.answer(id, 486));
    t.pass(SECOND * 33);
    assert_eq!(t.events(), [Event::ServerEnded(id)]);
}

#[test]
fn a_refusal_is_repeated_until_its_ack() {
    let mut t = Table::new();
    let udp = flow(Transport::Udp);
    let id = t.open(&udp, &text("INVITE", B));
    assert!(t.answer(id, 486));
    assert_eq!(times(&t.pass(SECOND * 12)), [500, 1500, 3500, 7500, 11500]);
    assert!(matches!(
        t.receive(&udp, &text("ACK", B)),
        Received::Nothing
    ));
    assert!(matches!(
        t.receive(&udp, &text("ACK", B)),
        Received::Nothing
    ));
    assert!(t.pass(SECOND * 60).is_empty());
    assert_eq!(t.events(), [Event::ServerEnded(id)]);
    assert!(matches!(t.receive(&udp, &text("ACK", B)), Received::Ack(_)));
}

#[test]
fn the_ack_of_a_2xx_is_the_users() {
    let mut t = Table::new();
    let udp = flow(Transport::Udp);
    let id = t.open(&udp, &text("INVITE", B));
    t.answer(id, 200);
    assert!(matches!(
        t.receive(&udp, &text("ACK", "z9hG4bK2")),
        Received::Ack(_)
    ));
    assert!(matches!(t.receive(&udp, &text("ACK", B)), Received::Ack(_)));
}

#[test]
fn a_cancel_finds_its_invite() {
    for branch in [B, "1"] {
        let mut t = Table::new();
        let udp = flow(Transport::Udp);
        let id = t.open(&udp, &text("INVITE", branch));
        match t.receive(&udp, &text("CANCEL", branch)) {
            Received::Request(new) => {
                assert_eq!(t.table.cancelled(&new), Some(id));
                assert!(!t.table.merged(&new));
                t.table.accept(t.now, &new, false).unwrap();
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            t.receive(&udp, &text("CANCEL", branch)),
            Received::Nothing
        ));
    }
}

#[test]
fn requests_without_a_unique_branch_are_told_apart() {
    let mut t = Table::new();
    let udp = flow(Transport::Udp);
    let id = t.open(&udp, &text("INVITE", "1"));
    assert!(matches!(
        t.receive(&udp, &text("INVITE", "1")),
        Received::Nothing
    ));
    t.answer(id, 486);
    t.sent();
    let ack = text("ACK", "1").replace("To: <sip:b@x.test>", "To: <sip:b@x.test>;tag=ours");
    assert!(matches!(t.receive(&udp, &ack), Received::Nothing));
    assert!(t.pass(SECOND * 4).is_empty());
    let other = text("INVITE", "1").replace("Call-ID: c1", "Call-ID: c2");
    assert!(matches!(t.receive(&udp, &other), Received::Request(_)));
}

#[test]
fn a_request_that_came_on_two_ways_is_merged() {
    let mut t = Table::new();
    let udp = flow(Transport::Udp);
    t.open(&udp, &text("INVITE", B));
    match t.receive(&udp, &text("INVITE", "z9hG4bK2")) {
        Received::Request(new) => assert!(t.table.merged(&new)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_that_is_late_is_not_sent() {
    let mut t = Table::new();
    let id = t.open(&flow(Transport::Udp), &text("OPTIONS", B));
    t.pass(SECOND * 33);
    assert_eq!(t.events(), [Event::ServerEnded(id)]);
    assert!(t.table.request_of(id).is_none());
}

#[test]
fn answers_go_where_the_request_came_from() {
    let routes = |via: &str, transport| {
        let mut t = Table::new();
        let text = text("OPTIONS", B).replace("192.0.2.2:5070;branch", &format!("{via};branch"));
        match t.receive(&flow(transport), &text) {
            Received::Request(new) => (
                new.route.remote().to_string(),
                new.request.headers.get("Via").unwrap().to_owned(),
            ),
            other => panic!("{other:?}"),
        }
    };
    let udp = Transport::Udp;
    assert_eq!(
        routes("192.0.2.2:5070", udp),
        (
            "192.0.2.2:5070".into(),
            format!("SIP/2.0/UDP 192.0.2.2:5070;branch={B}")
        )
    );
    assert_eq!(routes("192.0.2.2", udp).0, "192.0.2.2:5060");
    assert_eq!(
        routes("10.0.0.1:5080", udp),
        (
            "192.0.2.2:5080".into(),
            format!("SIP/2.0/UDP 10.0.0.1:5080;branch={B};received=192.0.2.2")
        )
    );
    assert_eq!(
        routes("10.0.0.1;rport", udp),
        (
            "192.0.2.2:5070".into(),
            format!("SIP/2.0/UDP 10.0.0.1;rport=5070;branch={B};received=192.0.2.2")
        )
    );
    assert_eq!(
        routes("10.0.0.1;maddr=203.0.113.9", udp).0,
        "192.0.2.2:5060"
    );
    assert_eq!(routes("10.0.0.1", Transport::Tcp).0, "192.0.2.2:5070");
}

#[test]
fn the_table_is_bounded_and_keeps_a_reserve() {
    let mut t = Table::new();
    let udp = flow(Transport::Udp);
    let mut taken = 0;
    for number in 0..200 {
        let text =
            text("OPTIONS", &format!("z9hG4bK-{number}")).replace("c1", &format!("c{number}"));
        match t.receive(&udp, &text) {
            Received::Request(new) => {
                taken += usize::from(t.table.accept(t.now, &new, false).is_ok())
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(taken, 75);
    for number in 0..50 {
        let request = request("OPTIONS", &format!("z9hG4bK+{number}"));
        taken += usize::from(
            t.table
                .request(t.now, request, target(Transport::Udp))
                .is_ok(),
        );
    }
    assert_eq!((taken, t.table.len()), (100, 100));
    t.pass(SECOND * 33);
    assert!(
        t.table.is_empty()
            && t.table.keys.is_empty()
            && t.table.merges.is_empty()
            && t.table.branches.is_empty()
    );
    assert_eq!((t.table.octets, t.table.deadlines.len()), (0, 0));
}
