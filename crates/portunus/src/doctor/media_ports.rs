//! Whether UDP requests arrive at the announced addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use portunus_core::reflected_address;
use portunus_media::Reachable;
use portunus_rtc::Reflection;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::addresses::unusable;
use super::finding::{Check, Finding};
use super::server::Server;
use crate::config::Config;
use crate::health;

/// The time limit of a request with all repetitions.
const LIMIT: Duration = Duration::from_secs(2);
/// The interval of repetitions.
const REPETITION: Duration = Duration::from_millis(250);
/// The number of media ports that are tried.
const MOST_PORTS: u16 = 64;

/// The number of requests to a running server at an address.
const VOLLEY: usize = 20;
/// How many of them must arrive. Datagrams of scanners count as well, but there are fewer at once.
const ARRIVED: u64 = 16;
/// How long the server may take to count them, and the limit of the whole check.
const COUNTED: Duration = Duration::from_secs(1);
const ALL_COUNTED: Duration = Duration::from_secs(4);

/// Sends requests to each address announced for another one, and to the TURN server.
pub(super) async fn examine(config: &Config, told: &[Reachable], server: &Server) -> Vec<Finding> {
    let is_asked = |it: &&Reachable| it.announced != it.bound && unusable(it).is_none();
    let announced: Vec<_> = told.iter().filter(is_asked).collect();
    let (by_media, by_turn) = tokio::join!(
        media(config, &announced, server),
        turn(config, told, server)
    );
    by_media.into_iter().chain(by_turn).collect()
}

async fn media(config: &Config, announced: &[&Reachable], server: &Server) -> Vec<Finding> {
    let media = &config.media;
    // With port 0 the kernel chooses.
    if media.port == 0 || announced.is_empty() {
        return Vec::new();
    }
    let port = |it: &Reachable, n: u16| {
        let first = it.port.unwrap_or(media.port);
        SocketAddr::new(it.announced, first.saturating_add(n))
    };
    // Workers that share a port count as one.
    let ports = u16::try_from(media.port_count()).unwrap_or(u16::MAX);
    if server.is_running {
        return count(config, announced, ports, port).await;
    }
    let sockets = bind(media.port, ports.min(MOST_PORTS), &media.bind).await;
    let mut tasks = Vec::with_capacity(sockets.len());
    for (n, socket) in sockets {
        let targets = announced.iter().map(|it| port(it, n)).collect();
        tasks.push(tokio::spawn(ask(socket, targets)));
    }
    let asked = tasks.len();
    let mut lost = vec![Vec::new(); announced.len()];
    for task in tasks {
        for (lost, to) in lost.iter_mut().zip(task.await.unwrap_or_default()) {
            lost.extend(to.map(|to| to.port()));
        }
    }
    // Without a socket, the check of ports reports the reason.
    let judged = announced.iter().zip(&lost).filter(|_| asked > 0);
    judged.map(|(it, lost)| judge(it, lost, asked)).collect()
}

/// Opens sockets for `count` ports, numbered from 0. A port in use has none.
async fn bind(first: u16, count: u16, addresses: &[IpAddr]) -> Vec<(u16, UdpSocket)> {
    let ip = match addresses {
        [one] => *one,
        _ => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut sockets = Vec::new();
    for n in 0..count {
        let port = first.saturating_add(n);
        let bound = match UdpSocket::bind((ip, port)).await {
            // A kernel without IPv6.
            Err(_) if ip.is_unspecified() => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).await,
            bound => bound,
        };
        sockets.extend(bound.ok().map(|socket| (n, socket)));
    }
    sockets
}

/// Returns the wildcard address of the same family.
fn any(to: SocketAddr) -> IpAddr {
    match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Returns a socket that can send to an address.
async fn towards(to: SocketAddr) -> Option<UdpSocket> {
    let socket = UdpSocket::bind((any(to), 0)).await.ok()?;
    socket.connect(to).await.ok()?;
    Some(socket)
}

/// Sends a STUN request to each address. Returns for each of them whether the request did not
/// arrive at `socket`.
async fn ask(socket: UdpSocket, targets: Vec<SocketAddr>) -> Vec<Option<SocketAddr>> {
    let mut senders = Vec::with_capacity(targets.len());
    for to in &targets {
        senders.push((towards(*to).await, Reflection::new().request()));
    }
    let mut lost: Vec<_> = targets.into_iter().map(Some).collect();
    let deadline = Instant::now() + LIMIT;
    let mut buffer = [0; 1_500];
    while lost.iter().any(Option::is_some) && Instant::now() < deadline {
        for (sender, request) in &senders {
            if let Some(sender) = sender {
                // A closed port is an error of the next call.
                let _ = sender.send(request).await;
            }
        }
        let again = Instant::now() + REPETITION;
        while let Ok(heard) = timeout_at(again, socket.recv(&mut buffer)).await {
            let heard = heard.ok().and_then(|length| buffer.get(..length));
            for (lost, (_, request)) in lost.iter_mut().zip(&senders) {
                if heard == Some(request) {
                    *lost = None;
                }
            }
            if lost.iter().all(Option::is_none) {
                return lost;
            }
        }
    }
    lost
}

fn judge(it: &Reachable, lost: &[u16], asked: usize) -> Finding {
    if lost.is_empty() {
        return arrived(it.announced);
    }
    let ports = match lost.len() == asked {
        true => String::new(),
        false => format!(
            ", UDP {}",
            lost.iter()
                .map(u16::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    missing(it.announced, &ports)
}

fn arrived(address: IpAddr) -> Finding {
    let text = format!("Questions by UDP to {address} come in at the ports of media.");
    Finding::ok(Check::MediaPorts, text)
}

fn missing(address: IpAddr, ports: &str) -> Finding {
    let text = format!(
        "Questions by UDP from here to {address}{ports} do not come in at the ports of media. \
         Either clients do not get through, too, or the NAT does not turn round what comes from \
         inside; many do not, and that harms nobody."
    );
    let change = "See that the NAT forwards these UDP ports, and that the firewalls here and of \
                  the cloud let them in. Then open /check.html from another network, which tells \
                  the two apart.";
    Finding::warning(Check::MediaPorts, text).change(change)
}

/// Tests the running server, one address after the other. It does not answer strangers, but counts
/// their datagrams.
async fn count(
    config: &Config,
    announced: &[&Reachable],
    ports: u16,
    port: impl Fn(&Reachable, u16) -> SocketAddr,
) -> Vec<Finding> {
    let end = Instant::now() + ALL_COUNTED;
    let mut findings = Vec::new();
    for it in announced {
        let targets = (0..ports).cycle().take(VOLLEY);
        let targets = targets.map(|n| port(it, n)).collect();
        let counted = match Instant::now() < end {
            true => volley(config, targets).await,
            false => Err("there are too many addresses".to_owned()),
        };
        let address = it.announced;
        findings.push(match counted {
            Ok(true) => arrived(address),
            Ok(false) => missing(address, ""),
            Err(error) => Finding::note(
                Check::MediaPorts,
                format!("Whether {address} leads to the ports of media is not known: {error}."),
            ),
        });
    }
    findings
}

/// Sends a request to each port, and returns whether the running server received them.
async fn volley(config: &Config, targets: Vec<SocketAddr>) -> Result<bool, String> {
    let before = counter(config).await?;
    for to in targets {
        if let Some(sender) = towards(to).await {
            let _ = sender.send(&Reflection::new().request()).await;
        }
        sleep(Duration::from_millis(10)).await;
    }
    let deadline = Instant::now() + COUNTED;
    while counter(config).await?.saturating_sub(before) < ARRIVED {
        if Instant::now() > deadline {
            return Ok(false);
        }
        sleep(REPETITION).await;
    }
    Ok(true)
}

/// Returns the number of datagrams from strangers at the running server.
async fn counter(config: &Config) -> Result<u64, String> {
    let http = &config.api.http;
    let url = health::url(http, "metrics").filter(|_| http.metrics);
    let url = match (url, http.metrics_bind) {
        (Some(_), Some(own)) if http.metrics => health::at("http", own, "metrics"),
        (Some(url), _) => url,
        (None, _) => return Err("http.metrics is off".to_owned()),
    };
    let text = health::get(&url).await?.succeeded()?;
    let name = "portunus_media_refused_datagrams_total{kind=\"unknown_peer\"} ";
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let value = value.and_then(|value| value.parse().ok());
    value.ok_or_else(|| format!("{url} has no such counter"))
}

/// Asks the TURN server, which answers everybody.
async fn turn(config: &Config, told: &[Reachable], server: &Server) -> Vec<Finding> {
    let turn = &config.turn;
    if !turn.enabled || turn.port == 0 {
        return Vec::new();
    }
    let mut targets = Vec::new();
    let resolved = tokio::net::lookup_host((turn.host.as_str(), turn.port));
    match turn.host.is_empty() {
        true => {
            let first = told.iter().find(|it| !it.announced.is_loopback());
            targets.extend(first.map(|it| SocketAddr::new(it.announced, turn.port)));
        }
        false => match timeout(LIMIT, resolved).await {
            Ok(Ok(found)) => targets.extend(found),
            Ok(Err(error)) => return vec![unresolved(&turn.host, &error.to_string())],
            Err(_) => return vec![unresolved(&turn.host, "no answer of DNS")],
        },
    }
    let socket = match server.is_running {
        true => None,
        false => {
            let sockets = bind(turn.port, 1, &turn.bind).await;
            match sockets.into_iter().next() {
                Some((_, socket)) => Some(socket),
                // The check of ports reports the reason.
                None => return Vec::new(),
            }
        }
    };
    let lost = match socket {
        Some(socket) => ask(socket, targets.clone()).await,
        None => {
            let asked = targets.iter().map(|to| tokio::spawn(unanswered(*to)));
            let mut lost = Vec::new();
            for asked in asked.collect::<Vec<_>>() {
                lost.push(asked.await.unwrap_or_default());
            }
            lost
        }
    };
    let judged = targets.iter().zip(lost).map(|(to, lost)| match lost {
        None => Finding::ok(
            Check::TurnPort,
            format!("Questions by UDP to the TURN server at {to} come in."),
        ),
        Some(_) => Finding::warning(
            Check::TurnPort,
            format!("Questions by UDP from here to the TURN server at {to} do not come in."),
        )
        .change(
            "See that turn.host is this machine, that a NAT forwards the port, and that firewalls \
             let it in. Many NATs do not turn round what comes from inside: then /check.html from \
             another network tells more.",
        ),
    });
    judged.collect()
}

/// Asks a STUN server. Returns its address if there is no answer.
async fn unanswered(to: SocketAddr) -> Option<SocketAddr> {
    let asked = reflected_address(to, SocketAddr::new(any(to), 0));
    match timeout(LIMIT, asked).await {
        Ok(Ok(_)) => None,
        _ => Some(to),
    }
}

fn unresolved(host: &str, error: &str) -> Finding {
    let text = format!("The name {host} of the TURN server leads nowhere: {error}.");
    Finding::error(Check::TurnPort, text).change("Correct turn.host, or the DNS of that name.")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[tokio::test]
    async fn a_question_arrives_or_does_not() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let here = socket.local_addr().unwrap();
        let noise = towards(here).await.unwrap();
        noise.send(b"noise").await.unwrap();
        let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let elsewhere = closed.local_addr().unwrap();
        drop(closed);
        let lost = ask(socket, vec![here, elsewhere]).await;
        assert_eq!(lost, [None, Some(elsewhere)]);
    }
}
