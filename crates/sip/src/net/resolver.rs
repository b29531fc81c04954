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

/// How long one question may take, with all repetitions.
const LIMIT: Duration = Duration::from_secs(8);

/// Asks DNS as the system does.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    /// `None` if the system has no configuration: nothing is found then.
    hickory: Option<TokioResolver>,
}

impl Resolver {
    /// With the system's servers, or with these.
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

    /// The targets of a destination.
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
        // With a dot at the end no search list is applied.
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
