//! The addresses of a name for requests: NAPTR, SRV, A and AAAA (RFC 3263, RFC 7984).
//!
//! [`Locate`] returns [`Query`]s and takes [`Answer`]s; it knows no resolver. It ends with a list
//! of targets in their order: the next one is tried if one is unreachable, or answers 503.

use std::net::{IpAddr, SocketAddr};

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::flow::{Target, Transport};
use crate::message::{Host, SipUri};

/// The maximum number of targets.
pub const MAX_TARGETS: usize = 16;
/// The maximum number of records used of one answer.
const MAX_RECORDS: usize = 16;

/// The destination of a search.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The name or address: that of the URI, or its `maddr`.
    pub host: Host,
    /// The port, if there is one. SRV is not queried then.
    pub port: Option<u16>,
    /// The transport, if there is one. NAPTR is not queried then. With `secure`, TCP means TLS, and
    /// WS means WSS.
    pub transport: Option<Transport>,
    /// Whether the URI is `sips:`.
    pub secure: bool,
}

impl Destination {
    /// Returns the destination of a URI. `usual` is the transport if the URI names none. Returns
    /// `None` for an unknown transport, or a `maddr` that is no host.
    pub fn of(uri: &SipUri, usual: Option<Transport>) -> Option<Self> {
        let host = match uri.params.get("maddr") {
            Some(maddr) => maddr.parse().ok()?,
            None => uri.host.clone(),
        };
        let transport = match uri.transport() {
            Some(transport) => Some(transport.parse::<Transport>().ok()?),
            None => usual,
        };
        let transport = match transport {
            Some(Transport::Tcp | Transport::Udp) if uri.secure => Some(Transport::Tls),
            Some(Transport::Ws) if uri.secure => Some(Transport::Wss),
            other => other,
        };
        Some(Destination {
            host,
            port: uri.port,
            transport,
            secure: uri.secure,
        })
    }
}

/// The transports and address families that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The transports, the preferred one first, where DNS has no preference.
    pub transports: Vec<Transport>,
    /// Whether there is IPv4.
    pub v4: bool,
    /// Whether there is IPv6. It comes first if a host has both (RFC 6724).
    pub v6: bool,
}

/// A query to DNS.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Query {
    /// The NAPTR records of a domain.
    Naptr(String),
    /// The SRV records of a name as `_sip._udp.example.org`.
    Srv(String),
    /// The A and AAAA records of a host, or its entry in the hosts file.
    Addresses(String),
}

/// An answer of DNS. If the name is unknown, or the query fails, the list is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The answer to [`Query::Naptr`].
    Naptr(Vec<Naptr>),
    /// The answer to [`Query::Srv`].
    Srv(Vec<Srv>),
    /// The answer to [`Query::Addresses`].
    Addresses(Vec<IpAddr>),
}

/// A NAPTR record (RFC 3403).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naptr {
    /// Lower ones first.
    pub order: u16,
    /// Lower ones first, of the same order.
    pub preference: u16,
    /// `s`: SRV is next.
    pub flags: String,
    /// `SIP+D2U` and others.
    pub service: String,
    /// The name for the next query.
    pub replacement: String,
}

/// An SRV record (RFC 2782).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Srv {
    /// Lower ones first.
    pub priority: u16,
    /// The weight among records of the same priority.
    pub weight: u16,
    /// The port.
    pub port: u16,
    /// The host; `.` if the service is not offered.
    pub target: String,
}

/// Why nothing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LocateError {
    /// No transport reaches it.
    #[error("no transport")]
    NoTransport,
    /// DNS has no address for it.
    #[error("DNS Error")]
    Dns,
}

/// The next step of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Queries to send at once. [`Locate::answer`] takes the answers.
    Ask(Vec<Query>),
    /// The targets, in their order; at least one.
    Found(Vec<Target>),
    /// There are no targets.
    Failed(LocateError),
}

#[derive(Debug, Clone)]
enum Item {
    Naptr,
    Srv(Transport, String),
    Addresses(Transport, String, u16),
    Found(Target),
}

/// A search for the targets of one destination.
#[derive(Debug)]
pub struct Locate {
    destination: Destination,
    reach: Reach,
    /// Found targets and open queries, in the order of preference.
    items: Vec<Item>,
    /// Whether SRV records were found. The name's own addresses do not count then.
    services: bool,
    /// The transport to use with the name's own addresses.
    fallback: Option<Transport>,
    error: Option<LocateError>,
    random: SmallRng,
}

impl Locate {
    /// Begins a search. `seed` is random; it decides between SRV records by their weights.
    #[must_use]
    pub fn new(destination: Destination, reach: Reach, seed: u64) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        let mut locate = Self {
            destination,
            reach,
            items: Vec::new(),
            services: false,
            fallback: None,
            error: None,
            random,
        };
        if let Err(error) = locate.begin() {
            locate.error = Some(error);
        }
        locate
    }

    /// Returns the next step.
    #[must_use]
    pub fn step(&self) -> Step {
        if let Some(error) = self.error {
            return Step::Failed(error);
        }
        let asked: Vec<Query> = self
            .items
            .iter()
            .filter_map(|item| self.query(item))
            .collect();
        if !asked.is_empty() {
            return Step::Ask(asked);
        }
        let targets = self.items.iter().filter_map(|item| match item {
            Item::Found(target) => Some(target.clone()),
            _ => None,
        });
        let targets: Vec<Target> = targets.take(MAX_TARGETS).collect();
        if targets.is_empty() {
            Step::Failed(LocateError::Dns)
        } else {
            Step::Found(targets)
        }
    }

    /// Takes the answers to the queries of the last step, in their order.
    pub fn answer(&mut self, answers: Vec<Answer>) {
        let mut answers = answers.into_iter();
        let mut items = Vec::new();
        for item in std::mem::take(&mut self.items) {
            match (item, items.len()) {
                (_, MAX_TARGETS..) => {}
                (item @ Item::Found(_), _) => items.push(item),
                (Item::Naptr, _) => match answers.next() {
                    Some(Answer::Naptr(records)) => items.extend(self.after_naptr(records)),
                    _ => items.extend(self.services()),
                },
                (Item::Srv(transport, _), _) => {
                    if let Some(Answer::Srv(records)) = answers.next() {
                        items.extend(self.after_srv(transport, records));
                    }
                }
                (Item::Addresses(transport, _, port), _) => {
                    if let Some(Answer::Addresses(addresses)) = answers.next() {
                        items.extend(self.after_addresses(transport, port, addresses));
                    }
                }
            }
        }
        self.items = items;
        if self.items.is_empty()
            && !self.services
            && let Some(transport) = self.fallback.take()
        {
            self.items
                .push(self.own_addresses(transport, transport.default_port()));
        }
    }

    fn begin(&mut self) -> Result<(), LocateError> {
        let Destination {
            host,
            port,
            transport,
            secure,
        } = self.destination.clone();
        let transport = match transport {
            Some(transport) if secure => Some(secured(transport).ok_or(LocateError::NoTransport)?),
            other => other,
        };
        if transport.is_some_and(|transport| !self.can(transport)) {
            return Err(LocateError::NoTransport);
        }
        let default = transport.map_or_else(|| self.default_transport(), Ok)?;
        match (host, port, transport) {
            (Host::Address(address), ..) => {
                let found = self.after_addresses(
                    default,
                    port.unwrap_or(default.default_port()),
                    vec![address],
                );
                if found.is_empty() {
                    return Err(LocateError::NoTransport);
                }
                self.items = found;
            }
            (Host::Name(_), Some(port), _) => self.items.push(self.own_addresses(default, port)),
            (Host::Name(name), None, Some(transport)) => match service(transport) {
                Some(prefix) => {
                    self.fallback = Some(transport);
                    self.items
                        .push(Item::Srv(transport, format!("{prefix}.{name}")));
                }
                None => self
                    .items
                    .push(self.own_addresses(transport, transport.default_port())),
            },
            (Host::Name(_), None, None) => {
                self.fallback = Some(default);
                self.items.push(Item::Naptr);
            }
        }
        Ok(())
    }

    fn query(&self, item: &Item) -> Option<Query> {
        Some(match item {
            Item::Naptr => Query::Naptr(self.destination.host.to_string()),
            Item::Srv(_, name) => Query::Srv(name.clone()),
            Item::Addresses(_, name, _) => Query::Addresses(name.clone()),
            Item::Found(_) => return None,
        })
    }

    fn own_addresses(&self, transport: Transport, port: u16) -> Item {
        Item::Addresses(transport, self.destination.host.to_string(), port)
    }

    fn can(&self, transport: Transport) -> bool {
        self.reach.transports.contains(&transport)
            && (transport.is_secure() || !self.destination.secure)
    }

    /// Returns the default transport: UDP, TLS for `sips:` (RFC 3263 section 4.1), else the first
    /// possible one.
    fn default_transport(&self) -> Result<Transport, LocateError> {
        let usual = if self.destination.secure {
            Transport::Tls
        } else {
            Transport::Udp
        };
        let mut all = std::iter::once(usual).chain(self.reach.transports.iter().copied());
        all.find(|transport| self.can(*transport))
            .ok_or(LocateError::NoTransport)
    }

    fn after_naptr(&self, mut records: Vec<Naptr>) -> Vec<Item> {
        records.sort_by_key(|record| (record.order, record.preference));
        let usable = records.into_iter().filter_map(|record| {
            let transport = [
                ("SIP+D2U", Transport::Udp),
                ("SIP+D2T", Transport::Tcp),
                ("SIPS+D2T", Transport::Tls),
                ("SIP+D2W", Transport::Ws),
                ("SIPS+D2W", Transport::Wss),
            ]
            .into_iter()
            .find(|(service, _)| record.service.eq_ignore_ascii_case(service))
            .map(|(_, transport)| transport)?;
            let fits = self.can(transport) && record.flags.eq_ignore_ascii_case("s");
            fits.then(|| {
                Item::Srv(
                    transport,
                    record.replacement.trim_end_matches('.').to_owned(),
                )
            })
        });
        let usable: Vec<Item> = usable.take(MAX_RECORDS).collect();
        if usable.is_empty() {
            self.services()
        } else {
            usable
        }
    }

    /// Returns SRV queries of all transports, for names without NAPTR.
    fn services(&self) -> Vec<Item> {
        let transports = self
            .reach
            .transports
            .iter()
            .copied()
            .filter(|transport| self.can(*transport));
        let services = transports.filter_map(|transport| {
            Some(Item::Srv(
                transport,
                format!("{}.{}", service(transport)?, self.destination.host),
            ))
        });
        services.collect()
    }

    fn after_srv(&mut self, transport: Transport, records: Vec<Srv>) -> Vec<Item> {
        self.services |= !records.is_empty();
        let ordered = self.in_order(records);
        let offered = ordered
            .into_iter()
            .map(|record| (record.target.trim_end_matches('.').to_owned(), record.port));
        offered
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, port)| Item::Addresses(transport, name, port))
            .collect()
    }

    /// Sorts records by priority, and those of one priority at random by weight (RFC 2782).
    fn in_order(&mut self, mut records: Vec<Srv>) -> Vec<Srv> {
        // Records without weight come first in a draw, so that they have a small chance.
        records.sort_by_key(|record| (record.priority, record.weight));
        let mut ordered = Vec::new();
        while let Some(priority) = records.first().map(|record| record.priority)
            && ordered.len() < MAX_RECORDS
        {
            let same = records
                .iter()
                .take_while(|record| record.priority == priority);
            let total: u32 = same.map(|record| u32::from(record.weight)).sum();
            let drawn = self.random.random_range(0..=total);
            let mut sum = 0_u32;
            let chosen = records.iter().position(|record| {
                sum = sum.saturating_add(record.weight.into());
                sum >= drawn
            });
            ordered.push(records.remove(chosen.unwrap_or(0)));
        }
        ordered
    }

    fn after_addresses(
        &self,
        transport: Transport,
        port: u16,
        mut addresses: Vec<IpAddr>,
    ) -> Vec<Item> {
        addresses.retain(|address| {
            if address.is_ipv6() {
                self.reach.v6
            } else {
                self.reach.v4
            }
        });
        // The sort is stable: the resolver's order stays within a family.
        addresses.sort_by_key(|address| address.is_ipv4());
        let targets = addresses
            .into_iter()
            .take(MAX_RECORDS)
            .map(|address| Target {
                transport,
                remote: SocketAddr::new(address, port),
                host: self.destination.host.clone(),
            });
        targets.map(Item::Found).collect()
    }
}

/// Returns the secure transport for `sips:`.
fn secured(transport: Transport) -> Option<Transport> {
    match transport {
        Transport::Udp => None,
        Transport::Tcp | Transport::Tls => Some(Transport::Tls),
        Transport::Ws | Transport::Wss => Some(Transport::Wss),
    }
}

/// Returns the labels of the SRV records of a transport. WebSockets have none (RFC 7118 section
/// 8.2).
fn service(transport: Transport) -> Option<&'static str> {
    match transport {
        Transport::Udp => Some("_sip._udp"),
        Transport::Tcp => Some("_sip._tcp"),
        Transport::Tls => Some("_sips._tcp"),
        Transport::Ws | Transport::Wss => None,
    }
}
