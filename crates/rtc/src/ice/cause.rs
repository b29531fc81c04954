//! The reason why ICE does not succeed: one sentence for the log, events and administrators.

use std::net::IpAddr;

use super::{CandidateTransport, IceAttempt};
use crate::scope::{Scope, are_neighbours};

/// The most addresses in a sentence.
const NAMED: usize = 3;

/// The reason why ICE does not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IceCause {
    /// A stable short code. docs/admin.md lists all codes.
    pub code: &'static str,
    /// The observation, and the advice.
    pub text: String,
}

impl IceCause {
    fn new(code: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        IceCause { code, text }
    }
}

impl IceAttempt {
    /// Returns the most likely cause of the failure, and advice.
    pub fn cause(&self) -> IceCause {
        let time = self.time.as_secs();
        if self.was_connected {
            return IceCause::new(
                "connection-lost",
                format!(
                    "The client has not answered for {time} s: it was closed, went to sleep, or its network changed. It can restart \
                     ICE, or call again."
                ),
            );
        }
        if self.locals.is_empty() {
            return IceCause::new(
                "no-address",
                "The server has no address that clients could be told: set media.bind or media.announced. With \
                 media.force_relay it has none while the TURN server gives it none.",
            );
        }
        match (self.checks_received, self.checks_answered) {
            (0, 0) if self.remotes.is_empty() => self.without_candidates(),
            (0, 0) => self.without_checks(),
            (received, 0) if !self.lite => IceCause::new(
                "one-way",
                format!(
                    "{received} checks of the client came, but none of the server's {} was answered in {time} s: what the server \
                     sends is lost. A firewall blocks its outgoing UDP, or it has several networks and answers from the wrong one \
                     (media.bind).",
                    self.checks_sent
                ),
            ),
            (received, answered) => IceCause::new(
                "not-nominated",
                format!(
                    "Addresses work ({received} checks of the client came, {answered} of the server's were answered), but in {time} s \
                     {} chose none for good: the network is lossy, or changes.",
                    match self.controlling {
                        true => "the server",
                        false => "the client",
                    }
                ),
            ),
        }
    }

    /// The client has sent no usable address, and none of its checks arrived.
    fn without_candidates(&self) -> IceCause {
        let (time, closed) = (self.time.as_secs(), self.closed_ports());
        let (mdns, tcp) = (self.ignored_mdns, self.ignored_tcp);
        match self.may_connect {
            _ if mdns > 0 => IceCause::new(
                "mdns-only",
                format!(
                    "The client hides its addresses ({mdns} mDNS names that were not resolved), which is usual, but none of its own \
                     checks reached the server in {time} s: {closed}."
                ),
            ),
            true => IceCause::new(
                "tcp-unreachable",
                format!(
                    "The client can use TCP only, as its network blocks UDP, and it did not connect to the server's TCP ports in {time} \
                     s: {closed}."
                ),
            ),
            false if tcp > 0 => IceCause::new(
                "tcp-only",
                format!(
                    "The client has TCP candidates only ({tcp}): its network blocks UDP. Set media.ice_tcp and open its ports, or give \
                     the client a TURN server."
                ),
            ),
            false => IceCause::new(
                "no-candidates",
                format!(
                    "The client has named no address within {time} s, and none of its checks came. Does the application pass its \
                     candidates on (trickle)?"
                ),
            ),
        }
    }

    /// The client has sent addresses, but nothing arrived from them.
    fn without_checks(&self) -> IceCause {
        let (time, clients) = (self.time.as_secs(), list(self.remote_ips()));
        let of_same_version =
            |remote: IpAddr| self.local_ips().any(|it| it.is_ipv4() == remote.is_ipv4());
        if !self.remote_ips().any(of_same_version) {
            return IceCause::new(
                "ip-versions",
                format!(
                    "The client's addresses ({clients}) and the server's ({}) are of different IP versions: give the server an \
                     address of the other one, by media.ipv6, media.bind or media.announced.",
                    list(self.local_ips())
                ),
            );
        }
        if self.is_out_of_reach() {
            return IceCause::new(
                "private-address",
                format!(
                    "The server tells clients private addresses only ({}), which this one ({clients}) cannot reach from its network: \
                     set media.announced to the address by which clients reach the server.",
                    list(self.local_ips())
                ),
            );
        }
        let closed = self.closed_ports();
        if self.remotes.iter().all(|it| it.kind == "relay") {
            return IceCause::new(
                "relay-unreachable",
                format!(
                    "The client comes by its TURN server only ({clients}), and nothing came from there in {time} s: the TURN server \
                     cannot reach this server, as {closed}."
                ),
            );
        }
        let ours = match self.checks_sent {
            0 => String::new(),
            sent => format!(" and {sent} of the server's were not answered"),
        };
        let by_tcp = match self.ignored_tcp {
            0 => "",
            _ => " If the client's network blocks UDP, media.ice_tcp lets it connect by TCP.",
        };
        IceCause::new(
            "unreachable",
            format!("In {time} s none of the client's checks came{ours}: {closed}.{by_tcp}"),
        )
    }

    /// Returns why the client's packets do not reach the server, as a clause.
    fn closed_ports(&self) -> String {
        let protocols = match self.may_connect {
            true => "UDP and TCP ports of media",
            false => "UDP ports of media",
        };
        match self.widest() {
            Some(Scope::Public) | None => format!(
                "a firewall blocks the server's {protocols}, or media.announced names a wrong address"
            ),
            Some(Scope::Private | Scope::Machine) => format!(
                "a firewall blocks the server's {protocols}, or the client is in another network and cannot reach the private \
                 addresses that it was told ({}), for which media.announced names the public one",
                list(self.local_ips())
            ),
        }
    }

    /// Returns whether the client is outside of all networks from which the server's addresses can
    /// be reached.
    fn is_out_of_reach(&self) -> bool {
        let farthest = self.remote_ips().map(Scope::of).max();
        let is_near = |remote| self.local_ips().any(|local| are_neighbours(local, remote));
        self.widest() < farthest && !self.remote_ips().any(is_near)
    }

    /// Returns the widest scope of the server's addresses.
    fn widest(&self) -> Option<Scope> {
        self.local_ips().map(Scope::of).max()
    }

    /// Returns the addresses announced to the client. Active candidates are omitted, since nothing
    /// connects to them.
    fn local_ips(&self) -> impl Iterator<Item = IpAddr> {
        let told = |transport| transport != CandidateTransport::TcpActive;
        let locals = self.locals.iter().filter(move |it| told(it.transport));
        locals.map(|it| it.address.ip())
    }

    fn remote_ips(&self) -> impl Iterator<Item = IpAddr> {
        self.remotes.iter().map(|it| it.address.ip())
    }
}

/// Lists the first addresses, each once.
fn list(addresses: impl Iterator<Item = IpAddr>) -> String {
    let mut named: Vec<IpAddr> = Vec::new();
    let mut more = false;
    for address in addresses {
        match named.contains(&address) {
            true => {}
            false if named.len() < NAMED => named.push(address),
            false => more = true,
        }
    }
    let named: Vec<_> = named.iter().map(IpAddr::to_string).collect();
    format!("{}{}", named.join(", "), if more { ", …" } else { "" })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::*;
    use crate::{Carrier, LocalCandidate, RemoteCandidate};

    /// Returns an attempt of 9 s: the server has a public address, the client has sent one, and
    /// nothing arrived.
    fn silent() -> IceAttempt {
        IceAttempt {
            time: Duration::from_secs(9),
            locals: vec![local("203.0.113.7")],
            remotes: vec![remote("198.51.100.9", "host")],
            checks_sent: 21,
            ..IceAttempt::default()
        }
    }

    fn local(ip: &str) -> LocalCandidate {
        let address = SocketAddr::new(ip.parse().unwrap(), 10_000);
        LocalCandidate::udp(address, address)
    }

    fn remote(ip: &str, kind: &'static str) -> RemoteCandidate {
        RemoteCandidate {
            address: SocketAddr::new(ip.parse().unwrap(), 61_234),
            carrier: Carrier::Udp,
            kind,
        }
    }

    #[track_caller]
    fn told(code: &str, words: &[&str], attempt: &IceAttempt) {
        let cause = attempt.cause();
        assert_eq!(cause.code, code, "{}", cause.text);
        for word in words {
            assert!(cause.text.contains(word), "{word}: {}", cause.text);
        }
    }

    #[test]
    fn nothing_arrives() {
        let words = [
            "9 s",
            "21 of the server's",
            "UDP ports",
            "media.announced names a wrong address",
        ];
        told("unreachable", &words, &silent());
        let lite = IceAttempt {
            lite: true,
            checks_sent: 0,
            ..silent()
        };
        told("unreachable", &["none of the client's checks came:"], &lite);
        let offers_tcp = IceAttempt {
            ignored_tcp: 2,
            ..silent()
        };
        told("unreachable", &["media.ice_tcp"], &offers_tcp);
        let by_both = IceAttempt {
            may_connect: true,
            ..silent()
        };
        told("unreachable", &["UDP and TCP ports"], &by_both);
    }

    #[test]
    fn the_client_names_no_usable_address() {
        let without = |ignored_mdns, ignored_tcp, may_connect| IceAttempt {
            remotes: Vec::new(),
            ignored_mdns,
            ignored_tcp,
            may_connect,
            ..silent()
        };
        told("no-candidates", &["9 s", "trickle"], &without(0, 0, false));
        told("tcp-only", &["(2)", "media.ice_tcp"], &without(0, 2, false));
        told(
            "tcp-unreachable",
            &["UDP and TCP ports"],
            &without(0, 0, true),
        );
        told("mdns-only", &["1 mDNS", "UDP ports"], &without(1, 2, false));
        told("mdns-only", &["UDP and TCP ports"], &without(1, 0, true));
        let private = IceAttempt {
            locals: vec![local("10.0.0.5")],
            ..without(1, 0, false)
        };
        told(
            "mdns-only",
            &["private addresses", "10.0.0.5", "media.announced"],
            &private,
        );
    }

    #[test]
    fn the_server_names_private_addresses_to_a_client_elsewhere() {
        let to = |locals: &[&str], remotes: &[&str]| IceAttempt {
            locals: locals.iter().map(|ip| local(ip)).collect(),
            remotes: remotes.iter().map(|ip| remote(ip, "host")).collect(),
            ..silent()
        };
        let words = ["10.0.0.5", "198.51.100.9", "media.announced"];
        told(
            "private-address",
            &words,
            &to(&["127.0.0.1", "10.0.0.5"], &["198.51.100.9"]),
        );
        told(
            "private-address",
            &["127.0.0.1"],
            &to(&["127.0.0.1"], &["10.0.0.9"]),
        );
        let in_one_network = to(&["10.0.0.5"], &["10.0.7.7", "198.51.100.9"]);
        told("unreachable", &["private addresses"], &in_one_network);
        told("unreachable", &[], &to(&["10.0.0.5"], &["192.168.1.2"]));
    }

    #[test]
    fn other_causes_without_a_check() {
        let other_version = IceAttempt {
            remotes: vec![remote("2001:db8::9", "host")],
            ..silent()
        };
        told(
            "ip-versions",
            &["2001:db8::9", "203.0.113.7"],
            &other_version,
        );
        let relayed = IceAttempt {
            remotes: vec![remote("198.51.100.1", "relay")],
            ..silent()
        };
        told("relay-unreachable", &["TURN", "198.51.100.1"], &relayed);
        told("no-address", &["media.bind"], &IceAttempt::default());
    }

    #[test]
    fn checks_arrive_but_no_pair_is_chosen() {
        let one_way = IceAttempt {
            checks_received: 7,
            ..silent()
        };
        told(
            "one-way",
            &["7 checks", "server's 21", "media.bind"],
            &one_way,
        );
        let undecided = IceAttempt {
            checks_answered: 3,
            ..one_way.clone()
        };
        told(
            "not-nominated",
            &["7 checks", "3 of", "the client chose"],
            &undecided,
        );
        let ours = IceAttempt {
            controlling: true,
            ..undecided
        };
        told("not-nominated", &["the server chose"], &ours);
        let lite = IceAttempt {
            lite: true,
            checks_sent: 0,
            ..one_way
        };
        told("not-nominated", &[], &lite);
    }

    #[test]
    fn a_client_that_went_away() {
        let gone = IceAttempt {
            was_connected: true,
            ..silent()
        };
        told("connection-lost", &["9 s", "restart"], &gone);
    }

    #[test]
    fn long_lists_of_addresses_are_cut() {
        let many = [
            "198.51.100.1",
            "198.51.100.2",
            "198.51.100.3",
            "198.51.100.4",
            "198.51.100.1",
        ];
        assert_eq!(
            list(many.iter().map(|ip| ip.parse().unwrap())),
            "198.51.100.1, 198.51.100.2, 198.51.100.3, …"
        );
    }
}
