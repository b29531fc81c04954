//! The addresses announced to clients, and who can reach them.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use portunus_core::{Networks, reflected_address};
use portunus_media::{MediaConfig, Reachable, reachable};
use tokio::time::timeout;

use super::finding::{Check, Finding};
use crate::config::{Config, StunServer};

/// The time limit of a STUN server.
const LIMIT: Duration = Duration::from_secs(3);

/// Examines the addresses. The announced names of `config` are resolved. Also returns the announced
/// addresses of media.
pub(super) async fn examine(config: &Config) -> (Vec<Finding>, Vec<Reachable>) {
    let told = match reachable(&config.media) {
        Ok(told) => told,
        Err(error) => {
            let text = format!("Media can be sent nowhere: {error}.");
            let change = "Connect this machine to a network, or set media.bind or media.announced.";
            let finding = Finding::error(Check::NoAddress, text).change(change);
            return (vec![finding], Vec::new());
        }
    };
    let mut findings: Vec<_> = told
        .iter()
        .map(|it| described(it, &config.media))
        .chain(told.iter().filter_map(unusable))
        .collect();
    let mut is_public = told.iter().any(|it| public(it.announced));
    if let Some(server) = &config.reached.stun_server {
        let seen = ask(server, &told).await;
        let found = |(_, seen): &(Reachable, Result<Seen, String>)| {
            seen.as_ref().is_ok_and(|seen| public(seen.address))
        };
        is_public |= seen.iter().any(found);
        findings.extend(
            seen.iter()
                .flat_map(|(it, seen)| compared(server, it, seen)),
        );
    }
    let is_wrong = findings.iter().any(|it| it.check == Check::UnusableAddress);
    if !is_public && !is_wrong {
        findings.push(unreachable(&told, &config.media));
    }
    (findings, told)
}

fn public(address: IpAddr) -> bool {
    Networks::default().allow(address)
}

/// Whether it is reserved for documentation (RFC 5737, RFC 3849).
fn is_example(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_documentation(),
        IpAddr::V6(address) => matches!(address.segments(), [0x2001, 0xdb8, ..]),
    }
}

/// Formats the ports that clients get with an address, such as `10000-10003`.
pub(super) fn client_ports(it: &Reachable, media: &MediaConfig) -> Option<String> {
    let first = it.port.unwrap_or(media.port);
    let more = u16::try_from(media.port_count().saturating_sub(1)).unwrap_or(u16::MAX);
    match (first, more) {
        (0, _) => None,
        (_, 0) => Some(first.to_string()),
        _ => Some(format!("{first}-{}", first.saturating_add(more))),
    }
}

/// Reports the announced addresses.
fn described(it: &Reachable, media: &MediaConfig) -> Finding {
    let ports = match client_ports(it, media) {
        Some(ports) => format!("UDP {ports}"),
        None => "UDP on ports that the kernel chooses".to_owned(),
    };
    let Reachable {
        announced, bound, ..
    } = it;
    let kind = match announced {
        it if it.is_loopback() => "only clients on this machine can use it",
        it if public(*it) => "a public address",
        it if is_example(*it) && it != bound => "nobody's address",
        _ => "a private address",
    };
    let text = format!("Clients are told {announced}, {ports}: {kind}.");
    if announced == bound {
        return Finding::ok(Check::Address, text);
    }
    let to = client_ports(&Reachable { port: None, ..*it }, media);
    let to = to.map(|ports| format!(" to {bound}, UDP {ports}"));
    let text = format!(
        "{text} Whatever has this address has to forward these ports{}.",
        to.unwrap_or_default()
    );
    Finding::ok(Check::Address, text)
}

/// Finds addresses that nobody can have.
pub(super) fn unusable(it: &Reachable) -> Option<Finding> {
    let address = it.announced;
    let why = match address {
        IpAddr::V4(ip) if ip.is_broadcast() => "that is everybody",
        ip if ip.is_unspecified() => "that is no address",
        ip if ip.is_multicast() => "that is a group",
        // The address of an interface is no placeholder.
        ip if is_example(ip) && ip != it.bound => {
            "that is an address for documentation, which nobody has"
        }
        ip if ip.is_loopback() && !it.bound.is_loopback() => "that is each client itself",
        _ => return None,
    };
    let text = format!("Clients are told {address}: {why}.");
    let change = "Set media.announced to the address that clients reach.";
    Some(Finding::error(Check::UnusableAddress, text).change(change))
}

/// Reports who cannot connect if no address is public.
fn unreachable(told: &[Reachable], media: &MediaConfig) -> Finding {
    if told.iter().all(|it| it.announced.is_loopback()) {
        let text = "Clients are told addresses of this machine only: nobody else gets media.";
        let change = "Connect this machine to a network, or set media.bind or media.announced.";
        return Finding::warning(Check::LocalAddresses, text).change(change);
    }
    let text = "Clients are told private addresses only: those on the internet get no media.";
    let published = match is_container() {
        true if media.port > 0 => {
            " In a container, give it the network of the host, or publish the UDP ports of media: \
             with media.one_port that is one."
        }
        _ => "",
    };
    let change = format!(
        "Set media.announced = [\"PUBLIC-ADDRESS\"], or media.stun_server.{published} If all \
         clients are in the same network, nothing has to be changed."
    );
    Finding::warning(Check::PrivateAddresses, text).change(change)
}

fn is_container() -> bool {
    let marks = ["/.dockerenv", "/run/.containerenv"];
    marks.iter().any(|it| Path::new(it).exists())
        || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// An address of this machine as a STUN server sees it.
#[derive(Debug)]
struct Seen {
    address: IpAddr,
    keeps_port: bool,
}

/// Asks the server from all bound addresses at once.
async fn ask(server: &StunServer, told: &[Reachable]) -> Vec<(Reachable, Result<Seen, String>)> {
    let mut asked: Vec<(Reachable, _)> = Vec::new();
    for it in told.iter().copied() {
        let is_known = asked.iter().any(|(other, _)| other.bound == it.bound);
        if is_known {
            continue;
        }
        let server = server.clone();
        let answer = tokio::spawn(async move {
            timeout(LIMIT, ask_from(&server, it.bound))
                .await
                .unwrap_or_else(|_| Some(Err("it does not answer".to_owned())))
        });
        asked.push((it, answer));
    }
    let mut seen = Vec::with_capacity(asked.len());
    for (it, answer) in asked {
        if let Ok(Some(answer)) = answer.await {
            seen.push((it, answer));
        }
    }
    seen
}

/// Returns `None` if the server has no address of this family.
async fn ask_from(server: &StunServer, bound: IpAddr) -> Option<Result<Seen, String>> {
    let server = match server.resolve(bound.is_ipv4()).await {
        Ok(server) => server,
        Err(_) if bound.is_ipv6() => return None,
        Err(error) => return Some(Err(error.to_string())),
    };
    if server.ip().is_loopback() != bound.is_loopback() {
        return None;
    }
    let answer = reflected_address(server, SocketAddr::new(bound, 0)).await;
    Some(match answer {
        Ok((seen, local)) => Ok(Seen {
            address: seen.ip(),
            keeps_port: seen.port() == local.port(),
        }),
        Err(error) => Err(error.to_string()),
    })
}

/// Compares the announced addresses with those that the STUN server sees.
fn compared(server: &StunServer, it: &Reachable, seen: &Result<Seen, String>) -> Vec<Finding> {
    let Reachable {
        announced, bound, ..
    } = *it;
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => {
            let text = format!("{server} (media.stun_server), asked from {bound}: {error}.");
            let change =
                "See that UDP to it is allowed, or take another one, or set media.announced.";
            return vec![Finding::warning(Check::StunServer, text).change(change)];
        }
    };
    let Seen {
        address,
        keeps_port,
    } = *seen;
    let mut findings = Vec::new();
    if address == announced {
        let text = format!("{server} sees {bound} as {address}, which is what clients are told.");
        findings.push(Finding::ok(Check::PublicAddress, text));
    } else if announced == bound && !public(bound) {
        let text = format!("{server} sees {bound} as {address}: clients are told that, too.");
        findings.push(Finding::ok(Check::PublicAddress, text));
    } else {
        let text = format!("{server} sees {bound} as {address}, but clients are told {announced}.");
        let change = format!(
            "Set media.announced to \"{bound}=>{address}\", unless {announced} leads here on \
             another way."
        );
        findings.push(Finding::warning(Check::PublicAddress, text).change(change));
    }
    if !keeps_port && address != bound {
        let text = format!("The NAT before {bound} changes ports.");
        let change = "It has to forward the UDP ports of media under their own numbers; or set \
                      media.announced to \"ADDRESS:PORT\", where PORT is that of the first worker.";
        findings.push(Finding::note(Check::PublicPorts, text).change(change));
    }
    findings
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use portunus_media::AnnouncedAddress;

    use super::super::finding::Level;
    use super::*;

    fn config(bind: &str, announced: &[&str]) -> Config {
        let mut config = Config::default();
        config.media.workers = 2;
        config.media.bind = vec![bind.parse().unwrap()];
        let announced = announced.iter().map(|ip| AnnouncedAddress {
            bound: None,
            ip: ip.parse().unwrap(),
            port: None,
        });
        config.media.announced = announced.collect();
        config
    }

    async fn checks(config: &Config) -> Vec<(Check, Level)> {
        let (findings, _) = examine(config).await;
        findings.iter().map(|it| (it.check, it.level)).collect()
    }

    #[tokio::test]
    async fn what_clients_are_told_is_judged() {
        for (bind, announced, expected) in [
            (
                "10.0.0.5",
                &[][..],
                Some((Check::PrivateAddresses, Level::Warning)),
            ),
            (
                "127.0.0.1",
                &[],
                Some((Check::LocalAddresses, Level::Warning)),
            ),
            ("10.0.0.5", &["8.8.8.8"], None),
            (
                "10.0.0.5",
                &["203.0.113.7"],
                Some((Check::UnusableAddress, Level::Error)),
            ),
            (
                "10.0.0.5",
                &["224.0.0.1"],
                Some((Check::UnusableAddress, Level::Error)),
            ),
            (
                "fd00::1",
                &["2001:db8::7"],
                Some((Check::UnusableAddress, Level::Error)),
            ),
        ] {
            let found = checks(&config(bind, announced)).await;
            assert_eq!(
                found[0],
                (Check::Address, Level::Ok),
                "{bind} {announced:?}"
            );
            let worst = found.iter().find(|(_, level)| *level > Level::Note);
            assert_eq!(worst.copied(), expected, "{bind} {announced:?}");
        }
    }

    #[test]
    fn a_nat_is_told_which_ports_to_forward() {
        let config = config("10.0.0.5", &[]);
        let it = Reachable {
            bound: "10.0.0.5".parse().unwrap(),
            announced: "8.8.8.8".parse().unwrap(),
            port: Some(20_000),
        };
        let text = described(&it, &config.media).text;
        for part in ["8.8.8.8, UDP 20000-20001", "to 10.0.0.5, UDP 10000-10001"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn what_a_stun_server_sees_is_compared() {
        let server: StunServer = "stun.example.org".parse().unwrap();
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        let found = |announced: &str, seen: &str, keeps_port| {
            let it = Reachable {
                bound: ip("10.0.0.5"),
                announced: ip(announced),
                port: None,
            };
            let address = ip(seen);
            let seen = Seen {
                address,
                keeps_port,
            };
            let found = compared(&server, &it, &Ok(seen));
            found.iter().map(|it| it.level).collect::<Vec<_>>()
        };
        assert_eq!(found("8.8.8.8", "8.8.8.8", true), [Level::Ok]);
        assert_eq!(found("10.0.0.5", "8.8.8.8", true), [Level::Ok]);
        assert_eq!(found("8.8.4.4", "8.8.8.8", true), [Level::Warning]);
        let changed = [Level::Ok, Level::Note];
        assert_eq!(found("10.0.0.5", "8.8.8.8", false), changed);
    }
}
