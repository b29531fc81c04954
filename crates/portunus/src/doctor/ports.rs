//! The ports of the configuration.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use portunus_core::configuration::{Listener, Protocol};
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};

use super::finding::{Check, Finding};
use super::server::{Holders, Server};
use super::service::Service;

/// The first unprivileged port.
const UNPRIVILEGED: u16 = 1_024;

/// The result of an attempt to listen.
#[derive(Debug)]
enum Outcome {
    Free,
    Taken,
    Denied,
    /// The check of the configuration reports the fault.
    NoAddress,
    Failed(io::Error),
}

/// Listens on each port for a moment.
pub(super) fn examine(
    listeners: &[Listener],
    holders: &Holders,
    server: &Server,
    service: Option<&Service>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut free, mut held) = (Vec::new(), Vec::new());
    for listener in listeners {
        let mut all_are_held = false;
        let mut is_free = true;
        for port in listener.ports.clone() {
            let at = format!("{} port {port} ({})", listener.protocol, listener.key);
            match listen(listener, port) {
                Outcome::Free => continue,
                Outcome::NoAddress => {}
                Outcome::Taken => match taken(&at, listener, port, holders, server) {
                    None => all_are_held = true,
                    Some(finding) => findings.push(finding),
                },
                Outcome::Denied => findings.extend(denied(&at, port, service)),
                Outcome::Failed(error) => {
                    findings.push(Finding::error(Check::PortDenied, format!("{at}: {error}.")));
                }
            }
            is_free = false;
        }
        let ports = format!("{} ({})", ports(listener), listener.key);
        if is_free {
            free.push(ports);
        } else if all_are_held {
            held.push(ports);
        }
    }
    let list = |ports: Vec<String>| ports.join(", ");
    if !held.is_empty() {
        let text = format!("The server listens on {}.", list(held));
        findings.push(Finding::ok(Check::Port, text));
    }
    if !free.is_empty() && server.is_running {
        let text = format!("The running server does not listen on {}.", list(free));
        let change = "If the configuration was changed: `systemctl restart portunus`.";
        findings.push(Finding::note(Check::Port, text).change(change));
    } else if !free.is_empty() {
        let text = format!("These are free: {}.", list(free));
        findings.push(Finding::ok(Check::Port, text));
    }
    findings
}

/// Formats ports, such as `UDP 10000-10003`.
pub(super) fn ports(listener: &Listener) -> String {
    let (first, last) = (listener.ports.start(), listener.ports.end());
    match first == last {
        true => format!("{} {first}", listener.protocol),
        false => format!("{} {first}-{last}", listener.protocol),
    }
}

/// Returns `None` if the running server has the port.
fn taken(
    at: &str,
    listener: &Listener,
    port: u16,
    holders: &Holders,
    server: &Server,
) -> Option<Finding> {
    let text = match holders.of(listener.protocol, port) {
        Some(holder) if holder.is_server() && server.is_running => return None,
        Some(holder) => format!("{at} is taken by {} (process {}).", holder.name, holder.pid),
        // Only root sees the process.
        None if server.is_running => return None,
        None => {
            let flag = match listener.protocol {
                Protocol::Tcp => "t",
                Protocol::Udp => "u",
            };
            format!("{at} is taken. `sudo ss -ln{flag}p 'sport = :{port}'` names the process.")
        }
    };
    let change = format!("Stop that process, or change {}.", listener.key);
    Some(Finding::error(Check::PortTaken, text).change(change))
}

fn denied(at: &str, port: u16, service: Option<&Service>) -> Option<Finding> {
    // The service may, although this process may not.
    if port < UNPRIVILEGED && service.is_some_and(|it| it.has("CAP_NET_BIND_SERVICE")) {
        return None;
    }
    let text = format!("{at} may not be listened on by this user.");
    let change = "Give the server CAP_NET_BIND_SERVICE: AmbientCapabilities= of its systemd unit. \
                  Or take a port from 1024 on.";
    Some(Finding::error(Check::PortDenied, text).change(change))
}

fn listen(listener: &Listener, port: u16) -> Outcome {
    let bind = |ip: IpAddr| bind(listener.protocol, SocketAddr::new(ip, port));
    let bound = match listener.addresses.as_slice() {
        [] => bind(Ipv6Addr::UNSPECIFIED.into()).or_else(|error| match is_lacking(&error) {
            true => bind(Ipv4Addr::UNSPECIFIED.into()),
            false => Err(error),
        }),
        addresses => addresses.iter().try_for_each(|ip| bind(*ip)),
    };
    match bound {
        Ok(()) => Outcome::Free,
        Err(error) if error.kind() == ErrorKind::AddrInUse => Outcome::Taken,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Outcome::Denied,
        Err(error) if is_lacking(&error) => Outcome::NoAddress,
        Err(error) => Outcome::Failed(error),
    }
}

/// Whether this machine does not have the address, or no such family.
fn is_lacking(error: &io::Error) -> bool {
    error.kind() == ErrorKind::AddrNotAvailable
        || Errno::from_io_error(error) == Some(Errno::AFNOSUPPORT)
}

/// Binds a socket and closes it. Nobody can connect to it meanwhile.
fn bind(protocol: Protocol, address: SocketAddr) -> io::Result<()> {
    let (kind, is_tcp) = match protocol {
        Protocol::Tcp => (Type::STREAM, true),
        Protocol::Udp => (Type::DGRAM, false),
    };
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    // Connections of an ended server hold no port.
    socket.set_reuse_address(is_tcp)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use std::net::{TcpListener, UdpSocket};

    use super::super::finding::Level;
    use super::*;

    fn listener(protocol: Protocol, address: &str, port: u16) -> Listener {
        Listener {
            key: "some.port".to_owned(),
            protocol,
            addresses: vec![address.parse().unwrap()],
            ports: port..=port,
        }
    }

    fn examined(listener: Listener) -> Vec<Finding> {
        let (holders, server) = (Holders::read(), Server::default());
        examine(&[listener], &holders, &server, None)
    }

    #[test]
    fn whoever_has_a_port_is_named() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        for (protocol, port) in [
            (Protocol::Tcp, tcp.local_addr().unwrap().port()),
            (Protocol::Udp, udp.local_addr().unwrap().port()),
        ] {
            let findings = examined(listener(protocol, "127.0.0.1", port));
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert_eq!(findings[0].level, Level::Error);
            let process = format!("(process {})", std::process::id());
            assert!(findings[0].text.contains(&process), "{findings:?}");
            // The other addresses of this machine are free.
            let free = examined(listener(protocol, "127.0.0.2", port));
            assert_eq!(free[0].level, Level::Ok, "{free:?}");
        }
    }

    #[test]
    fn an_address_that_is_missing_is_left_to_the_configuration() {
        assert!(examined(listener(Protocol::Tcp, "192.0.2.77", 8_088)).is_empty());
    }
}
