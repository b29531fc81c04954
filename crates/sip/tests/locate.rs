//! Targets of requests with a DNS of the tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "the names say all"
)]

use std::collections::HashMap;
use std::net::IpAddr;

use portunus_sip::flow::Transport;
use portunus_sip::locate::{
    Answer, Destination, Locate, LocateError, MAX_TARGETS, Naptr, Query, Reach, Srv, Step,
};
use proptest::prelude::*;

#[derive(Default)]
struct Dns {
    naptr: HashMap<&'static str, Vec<Naptr>>,
    srv: HashMap<&'static str, Vec<Srv>>,
    addresses: HashMap<&'static str, Vec<IpAddr>>,
}

impl Dns {
    fn naptr(mut self, name: &'static str, order: u16, service: &str, replacement: &str) -> Self {
        let (service, replacement) = (service.to_owned(), replacement.to_owned());
        let record = Naptr {
            order,
            preference: 10,
            flags: "s".to_owned(),
            service,
            replacement,
        };
        self.naptr.entry(name).or_default().push(record);
        self
    }

    fn srv(
        mut self,
        name: &'static str,
        priority: u16,
        weight: u16,
        target: &str,
        port: u16,
    ) -> Self {
        self.srv.entry(name).or_default().push(Srv {
            priority,
            weight,
            port,
            target: target.to_owned(),
        });
        self
    }

    fn host(mut self, name: &'static str, addresses: &[&str]) -> Self {
        self.addresses.insert(
            name,
            addresses
                .iter()
                .map(|address| address.parse().unwrap())
                .collect(),
        );
        self
    }

    fn answer(&self, query: &Query) -> Answer {
        match query {
            Query::Naptr(name) => {
                Answer::Naptr(self.naptr.get(name.as_str()).cloned().unwrap_or_default())
            }
            Query::Srv(name) => {
                Answer::Srv(self.srv.get(name.as_str()).cloned().unwrap_or_default())
            }
            Query::Addresses(name) => Answer::Addresses(
                self.addresses
                    .get(name.as_str())
                    .cloned()
                    .unwrap_or_default(),
            ),
        }
    }
}

fn reach(transports: &[Transport]) -> Reach {
    Reach {
        transports: transports.to_vec(),
        v4: true,
        v6: true,
    }
}

fn all() -> Reach {
    reach(&[
        Transport::Udp,
        Transport::Tcp,
        Transport::Tls,
        Transport::Ws,
        Transport::Wss,
    ])
}

/// A destination as `sips:host:port;transport=x`.
fn destination(text: &str) -> Destination {
    let uri: portunus_sip::message::Uri = text.parse().unwrap();
    let uri = uri.as_sip().unwrap();
    let transport = uri.transport().map(|transport| transport.parse().unwrap());
    Destination {
        host: uri.host.clone(),
        port: uri.port,
        transport,
        secure: uri.secure,
    }
}

/// Returns the targets, as `UDP 192.0.2.1:5060`, and all queries.
fn found_with(
    dns: &Dns,
    text: &str,
    reach: Reach,
    seed: u64,
) -> (Result<Vec<String>, LocateError>, Vec<Query>) {
    let mut locate = Locate::new(destination(text), reach, seed);
    let mut asked = Vec::new();
    for _ in 0..10 {
        match locate.step() {
            Step::Ask(queries) => {
                locate.answer(queries.iter().map(|query| dns.answer(query)).collect());
                asked.extend(queries);
            }
            Step::Found(targets) => {
                assert!(
                    targets
                        .iter()
                        .all(|target| target.host == destination(text).host)
                );
                let targets = targets
                    .iter()
                    .map(|target| format!("{} {}", target.transport, target.remote));
                return (Ok(targets.collect()), asked);
            }
            Step::Failed(error) => return (Err(error), asked),
        }
    }
    panic!("{text}: does not end");
}

fn found(dns: &Dns, text: &str) -> Vec<String> {
    found_with(dns, text, all(), 1).0.unwrap()
}

#[test]
fn addresses_need_no_dns() {
    for (text, target) in [
        ("sip:192.0.2.1", "UDP 192.0.2.1:5060"),
        ("sip:192.0.2.1:6000", "UDP 192.0.2.1:6000"),
        ("sip:192.0.2.1;transport=tcp", "TCP 192.0.2.1:5060"),
        ("sip:192.0.2.1;transport=TLS", "TLS 192.0.2.1:5061"),
        ("sips:192.0.2.1", "TLS 192.0.2.1:5061"),
        ("sips:192.0.2.1;transport=tcp", "TLS 192.0.2.1:5061"),
        ("sips:192.0.2.1:9;transport=ws", "WSS 192.0.2.1:9"),
        ("sip:[2001:db8::1];transport=ws", "WS [2001:db8::1]:80"),
    ] {
        let (targets, asked) = found_with(&Dns::default(), text, all(), 1);
        assert_eq!(
            (targets, asked),
            (Ok(vec![target.to_owned()]), vec![]),
            "{text}"
        );
    }
}

#[test]
fn what_cannot_be_reached_is_told() {
    let fails = |text: &str, reach| found_with(&Dns::default(), text, reach, 1).0.unwrap_err();
    let udp = reach(&[Transport::Udp]);
    assert_eq!(
        fails("sip:192.0.2.1;transport=tcp", udp.clone()),
        LocateError::NoTransport
    );
    assert_eq!(
        fails("sips:192.0.2.1", udp.clone()),
        LocateError::NoTransport
    );
    assert_eq!(
        fails("sips:192.0.2.1;transport=udp", all()),
        LocateError::NoTransport
    );
    assert_eq!(
        fails("sip:[2001:db8::1]", Reach { v6: false, ..all() }),
        LocateError::NoTransport
    );
    assert_eq!(
        fails("sip:example.org", reach(&[])),
        LocateError::NoTransport
    );
    assert_eq!(fails("sip:example.org", all()), LocateError::Dns);
    assert_eq!(fails("sip:example.org:5060", all()), LocateError::Dns);
    assert_eq!(
        fails("sip:example.org;transport=tcp", all()),
        LocateError::Dns
    );
    // Without UDP, another transport is used.
    let tls = found_with(
        &Dns::default(),
        "sip:192.0.2.1",
        reach(&[Transport::Tls]),
        1,
    )
    .0
    .unwrap();
    assert_eq!(tls, ["TLS 192.0.2.1:5061"]);
}

/// The example of RFC 3263 section 4.1 and 4.2.
fn example() -> Dns {
    Dns::default()
        .naptr("example.com", 90, "SIP+D2T", "_sip._tcp.example.com.")
        .naptr("example.com", 50, "SIPS+D2T", "_sips._tcp.example.com")
        .naptr("example.com", 100, "SIP+D2U", "_sip._udp.example.com")
        .naptr("example.com", 10, "SIP+D2S", "_sip._sctp.example.com")
        .srv("_sips._tcp.example.com", 0, 1, "server1.example.com", 5061)
        .srv("_sip._tcp.example.com", 1, 1, "server2.example.com.", 5070)
        .srv("_sip._tcp.example.com", 0, 1, "server1.example.com", 5060)
        .srv("_sip._udp.example.com", 0, 1, "server2.example.com", 5060)
        .host("server1.example.com", &["192.0.2.1"])
        .host("server2.example.com", &["192.0.2.2", "2001:db8::2"])
        .host("example.com", &["192.0.2.9"])
}

#[test]
fn naptr_says_which_transports_and_srv_which_hosts() {
    let dns = example();
    let (targets, asked) = found_with(&dns, "sip:example.com", all(), 1);
    assert_eq!(
        targets.unwrap(),
        [
            "TLS 192.0.2.1:5061",
            "TCP 192.0.2.1:5060",
            "TCP [2001:db8::2]:5070",
            "TCP 192.0.2.2:5070",
            "UDP [2001:db8::2]:5060",
            "UDP 192.0.2.2:5060"
        ]
    );
    assert_eq!(asked[0], Query::Naptr("example.com".into()));
    let tls = found(&dns, "sips:example.com");
    assert_eq!(tls, ["TLS 192.0.2.1:5061"]);
    let udp = found_with(
        &dns,
        "sip:example.com",
        Reach {
            v6: false,
            ..reach(&[Transport::Udp])
        },
        1,
    )
    .0
    .unwrap();
    assert_eq!(udp, ["UDP 192.0.2.2:5060"]);
    // A transport leaves NAPTR out, a port SRV too.
    assert_eq!(found(&dns, "sip:example.com;transport=tcp").len(), 3);
    let (targets, asked) = found_with(&dns, "sip:example.com:5099", all(), 1);
    assert_eq!(targets.unwrap(), ["UDP 192.0.2.9:5099"]);
    assert_eq!(asked, [Query::Addresses("example.com".into())]);
}

#[test]
fn without_naptr_all_services_are_tried_and_without_those_the_host() {
    let dns = Dns::default()
        .srv("_sip._tcp.a.example", 0, 1, "h.example", 1)
        .srv("_sip._udp.a.example", 0, 1, "h.example", 2)
        .host("h.example", &["192.0.2.1"])
        .host("a.example", &["192.0.2.9"]);
    assert_eq!(
        found(&dns, "sip:a.example"),
        ["UDP 192.0.2.1:2", "TCP 192.0.2.1:1"]
    );
    // TLS has no SRV.
    assert_eq!(found(&dns, "sips:a.example"), ["TLS 192.0.2.9:5061"]);
    assert_eq!(
        found(&dns, "sip:a.example;transport=tls"),
        ["TLS 192.0.2.9:5061"]
    );
    assert_eq!(
        found(&dns, "sip:a.example;transport=ws"),
        ["WS 192.0.2.9:80"]
    );
    assert_eq!(found(&dns, "sip:h.example"), ["UDP 192.0.2.1:5060"]);
    // A service that is not offered is not looked for elsewhere.
    let dns = dns
        .srv("_sip._udp.n.example", 0, 0, ".", 0)
        .host("n.example", &["192.0.2.1"]);
    assert_eq!(
        found_with(&dns, "sip:n.example;transport=udp", all(), 1).0,
        Err(LocateError::Dns)
    );
    // NAPTR records that are of no use are as none.
    let dns = dns.naptr("h.example", 1, "E2U+sip", "x").naptr(
        "h.example",
        1,
        "SIP+D2S",
        "_sip._sctp.h.example",
    );
    assert_eq!(found(&dns, "sip:h.example"), ["UDP 192.0.2.1:5060"]);
}

#[test]
fn weights_decide_who_is_first() {
    let dns = Dns::default()
        .srv("_sip._udp.w.example", 1, 30, "a.example", 1)
        .srv("_sip._udp.w.example", 1, 10, "b.example", 2)
        .srv("_sip._udp.w.example", 1, 0, "c.example", 3)
        .srv("_sip._udp.w.example", 2, 60000, "d.example", 4)
        .host("a.example", &["192.0.2.1"])
        .host("b.example", &["192.0.2.2"])
        .host("c.example", &["192.0.2.3"])
        .host("d.example", &["192.0.2.4"]);
    let mut first = HashMap::<String, u32>::new();
    for seed in 0..4000 {
        let targets = found_with(&dns, "sip:w.example;transport=udp", all(), seed)
            .0
            .unwrap();
        assert_eq!((targets.len(), targets[3].as_str()), (4, "UDP 192.0.2.4:4"));
        *first.entry(targets[0].clone()).or_default() += 1;
    }
    let (a, b) = (first["UDP 192.0.2.1:1"], first["UDP 192.0.2.2:2"]);
    assert!(
        (2700..3200).contains(&a) && (800..1200).contains(&b),
        "{first:?}"
    );
}

proptest! {
    #[test]
    fn a_dns_full_of_records_ends_soon(
        naptrs in proptest::collection::vec((any::<u16>(), "(SIP\\+D2U|SIPS\\+D2T|x)", "[._]?[a-z]{0,2}"), 0..60),
        srvs in proptest::collection::vec((0..3u16, any::<u16>(), "[a-z.]{0,2}", any::<u16>()), 0..60),
        addresses in proptest::collection::vec(any::<IpAddr>(), 0..60),
        seed in any::<u64>(),
    ) {
        let mut locate = Locate::new(destination("sip:example.org"), all(), seed);
        for round in 0.. {
            prop_assert!(round < 6);
            match locate.step() {
                Step::Ask(queries) => {
                    prop_assert!(queries.len() <= MAX_TARGETS + 16);
                    locate.answer(queries.iter().map(|query| match query {
                        Query::Naptr(_) => Answer::Naptr(naptrs.iter().map(|(order, service, replacement)| Naptr {
                            order: *order, preference: 1, flags: "S".into(), service: service.clone(), replacement: replacement.clone(),
                        }).collect()),
                        Query::Srv(_) => Answer::Srv(srvs.iter().map(|(priority, weight, target, port)| Srv {
                            priority: *priority, weight: *weight, port: *port, target: target.clone(),
                        }).collect()),
                        Query::Addresses(_) => Answer::Addresses(addresses.clone()),
                    }).collect());
                }
                Step::Found(targets) => {
                    prop_assert!(targets.len() <= MAX_TARGETS);
                    break;
                }
                Step::Failed(_) => break,
            }
        }
    }
}
