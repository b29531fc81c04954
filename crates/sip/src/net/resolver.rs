//! DNS and the hosts file behind [`crate::locate`].

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{RData, RecordType};
use hickory_resolver::{Resolver as Hickory, TokioResolver};
use tokio::time::timeout;

use crate::flow::Target;
use crate::locate::{Answer, Destination, Locate, LocateError, Naptr, Query, Reach, Srv, Step};

/// The time limit of one query, with all repetitions.
const LIMIT: Duration = Duration::from_secs(8);

/// A resolver like the system's.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    /// `None` if the system has no configuration. All queries fail then.
    hickory: Option<TokioResolver>,
}

impl Resolver {
    /// Makes a resolver with the system's servers, or with these.
    pub fn new(name_servers: &[SocketAddr]) -> Self {
        let provider = TokioRuntimeProvider::default();
        let builder = if name_servers.is_empty() {
            Hickory::builder(provider)
        } else {
            let servers = name_servers.iter().map(|address| {
                let mut connection = ConnectionConfig::udp();
                connection.port = address.port();
                NameServerConfig::new(address.ip(), true, vec![connection])
            });
            let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
            Ok(Hickory::builder_with_config(config, provider))
        };
        let hickory = builder.and_then(|mut builder| {
            let options = builder.options_mut();
            options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
            options.timeout = Duration::from_secs(2);
            builder.build()
        });
        if let Err(error) = &hickory {
            tracing::warn!(%error, "SIP: names are not resolved: DNS has no configuration");
        }
        Self {
            hickory: hickory.ok(),
        }
    }

    /// Returns the targets of a destination.
    pub async fn locate(
        &self,
        destination: Destination,
        reach: Reach,
    ) -> Result<Vec<Target>, LocateError> {
        let mut locate = Locate::new(destination, reach, rand::random());
        loop {
            match locate.step() {
                Step::Ask(queries) => {
                    locate.answer(join_all(queries.iter().map(|query| self.ask(query))).await);
                }
                Step::Found(targets) => return Ok(targets),
                Step::Failed(error) => return Err(error),
            }
        }
    }

    async fn ask(&self, query: &Query) -> Answer {
        match query {
            Query::Naptr(name) => Answer::Naptr(
                self.records(name, RecordType::NAPTR)
                    .await
                    .into_iter()
                    .filter_map(naptr)
                    .collect(),
            ),
            Query::Srv(name) => Answer::Srv(
                self.records(name, RecordType::SRV)
                    .await
                    .into_iter()
                    .filter_map(srv)
                    .collect(),
            ),
            Query::Addresses(name) => {
                let Some(hickory) = &self.hickory else {
                    return Answer::Addresses(Vec::new());
                };
                let found = timeout(LIMIT, hickory.lookup_ip(name.as_str())).await;
                Answer::Addresses(
                    found
                        .ok()
                        .and_then(Result::ok)
                        .map(|found| found.iter().collect())
                        .unwrap_or_default(),
                )
            }
        }
    }

    async fn records(&self, name: &str, kind: RecordType) -> Vec<RData> {
        let Some(hickory) = &self.hickory else {
            return Vec::new();
        };
        // A dot at the end disables the search list.
        let found = timeout(LIMIT, hickory.lookup(format!("{name}."), kind)).await;
        let Ok(Ok(found)) = found else {
            return Vec::new();
        };
        found
            .answers()
            .iter()
            .map(|record| record.data.clone())
            .collect()
    }
}

fn naptr(data: RData) -> Option<Naptr> {
    let RData::NAPTR(record) = data else {
        return None;
    };
    Some(Naptr {
        order: record.order,
        preference: record.preference,
        flags: String::from_utf8_lossy(&record.flags).into_owned(),
        service: String::from_utf8_lossy(&record.services).into_owned(),
        replacement: record.replacement.to_string(),
    })
}

fn srv(data: RData) -> Option<Srv> {
    let RData::SRV(record) = data else {
        return None;
    };
    Some(Srv {
        priority: record.priority,
        weight: record.weight,
        port: record.port,
        target: record.target.to_string(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

    use std::net::Ipv4Addr;

    use hickory_resolver::proto::op::{Message, OpCode, ResponseCode};
    use hickory_resolver::proto::rr::{Name, Record, rdata};
    use tokio::net::UdpSocket;

    use super::*;
    use crate::flow::Transport;

    /// A server of a zone that has all kinds of records.
    async fn serve(socket: UdpSocket) {
        let name = |text: &str| Name::from_ascii(text).unwrap();
        let bytes = |text: &str| text.as_bytes().to_vec().into_boxed_slice();
        let naptr = |order, service: &str, replacement: &str| {
            let record = rdata::NAPTR::new(
                order,
                10,
                bytes("s"),
                bytes(service),
                bytes(""),
                name(replacement),
            );
            RData::NAPTR(record)
        };
        let mut buffer = [0; 1500];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            let asked = Message::from_vec(buffer.get(..length).unwrap()).unwrap();
            let query = asked.queries.first().unwrap().clone();
            let host = query.name().to_ascii();
            let answers = match (host.as_str(), query.query_type()) {
                ("sip.example.", RecordType::NAPTR) => vec![
                    naptr(20, "SIP+D2U", "_sip._udp.sip.example."),
                    naptr(10, "SIP+D2T", "_sip._tcp.sip.example."),
                ],
                ("_sip._udp.sip.example.", RecordType::SRV) => {
                    vec![RData::SRV(rdata::SRV::new(
                        1,
                        1,
                        5070,
                        name("one.example."),
                    ))]
                }
                ("_sip._tcp.sip.example.", RecordType::SRV) => {
                    vec![RData::SRV(rdata::SRV::new(
                        1,
                        1,
                        5080,
                        name("two.example."),
                    ))]
                }
                ("one.example.", RecordType::A) => {
                    vec![RData::A(Ipv4Addr::new(192, 0, 2, 1).into())]
                }
                ("one.example.", RecordType::AAAA) => {
                    vec![RData::AAAA(
                        "2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap().into(),
                    )]
                }
                ("two.example.", RecordType::A) => {
                    vec![RData::A(Ipv4Addr::new(192, 0, 2, 2).into())]
                }
                _ => Vec::new(),
            };
            let mut reply = Message::response(asked.metadata.id, OpCode::Query);
            if answers.is_empty() {
                reply.metadata.response_code = ResponseCode::NXDomain;
            }
            for answer in answers {
                reply.add_answer(Record::from_rdata(query.name().clone(), 60, answer));
            }
            reply.add_query(query);
            socket
                .send_to(&reply.to_vec().unwrap(), from)
                .await
                .unwrap();
        }
    }

    #[tokio::test]
    async fn a_zone_is_asked_for_all_its_records() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let server = socket.local_addr().unwrap();
        let task = tokio::spawn(serve(socket));
        let resolver = Resolver::new(&[server]);
        let reach = Reach {
            transports: vec![Transport::Udp, Transport::Tcp],
            v4: true,
            v6: true,
        };
        let found = |name: &str| {
            let host = name.parse().unwrap();
            let destination = Destination {
                host,
                port: None,
                transport: None,
                secure: false,
            };
            let (resolver, reach) = (resolver.clone(), reach.clone());
            async move {
                let targets = resolver.locate(destination, reach).await?;
                let shown = targets
                    .iter()
                    .map(|target| format!("{} {}", target.transport, target.remote));
                Ok::<Vec<String>, LocateError>(shown.collect())
            }
        };
        assert_eq!(
            found("sip.example").await.unwrap(),
            [
                "TCP 192.0.2.2:5080",
                "UDP [2001:db8::1]:5070",
                "UDP 192.0.2.1:5070"
            ]
        );
        assert_eq!(found("two.example").await.unwrap(), ["UDP 192.0.2.2:5060"]);
        assert_eq!(found("none.example").await, Err(LocateError::Dns));
        // The hosts file comes first.
        assert!(
            found("localhost")
                .await
                .unwrap()
                .contains(&"UDP 127.0.0.1:5060".to_owned())
        );
        task.abort();
    }
}
