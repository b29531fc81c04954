//! The hosts for Via and Contact.

use std::net::{IpAddr, SocketAddr};

use crate::agent::Local;
use crate::flow::Transport;
use crate::message::Host;

use super::config::Listen;

/// Returns our addresses for peers: an entry for each listener, and one for each transport that
/// only connects.
pub(super) fn locals(listening: &[Listen], public: Option<&Host>) -> Vec<Local> {
    let mut locals: Vec<Local> = listening
        .iter()
        .map(|listen| Local {
            transport: listen.transport,
            host: public
                .cloned()
                .unwrap_or_else(|| shown(listen.address).into()),
            port: Some(listen.address.port()),
        })
        .collect();
    for transport in [
        Transport::Tcp,
        Transport::Tls,
        Transport::Ws,
        Transport::Wss,
    ] {
        if locals.iter().any(|local| local.transport == transport) {
            continue;
        }
        // Nobody can connect to it: messages come by our connection.
        let host = match transport {
            // RFC 7118 section 5.3.
            Transport::Ws | Transport::Wss => {
                Host::Name(format!("{:016x}.invalid", rand::random::<u64>()))
            }
            _ => match locals.first() {
                Some(other) => other.host.clone(),
                None => public
                    .cloned()
                    .unwrap_or_else(|| shown(([0, 0, 0, 0], 0).into()).into()),
            },
        };
        locals.push(Local {
            transport,
            host,
            port: None,
        });
    }
    locals
}

/// Returns the address for peers: that of the socket, or if it listens on all, one of this machine
/// that others can reach.
fn shown(address: SocketAddr) -> IpAddr {
    if !address.ip().is_unspecified() {
        return address.ip();
    }
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let found = interfaces
        .iter()
        .map(|interface| interface.ip())
        .find(|ip| {
            let local_only = match ip {
                IpAddr::V4(v4) => v4.is_link_local(),
                IpAddr::V6(v6) => v6.is_unicast_link_local(),
            };
            ip.is_ipv6() == address.is_ipv6() && !ip.is_loopback() && !local_only
        });
    found.unwrap_or(if address.is_ipv6() {
        std::net::Ipv6Addr::LOCALHOST.into()
    } else {
        std::net::Ipv4Addr::LOCALHOST.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transport_has_an_entry() {
        let listening = [Listen {
            transport: Transport::Udp,
            address: ([127, 0, 0, 1], 5070).into(),
        }];
        let all = locals(&listening, None);
        assert_eq!(all.len(), 5);
        let udp = Local {
            transport: Transport::Udp,
            host: IpAddr::from([127, 0, 0, 1]).into(),
            port: Some(5070),
        };
        assert_eq!(all.first(), Some(&udp));
        assert!(all.iter().any(|local| local.transport == Transport::Ws
            && local.host.to_string().ends_with(".invalid")));
        let public = Host::Name("sip.example.org".to_owned());
        assert!(
            locals(&listening, Some(&public))
                .iter()
                .filter(|local| local.host == public)
                .count()
                >= 3
        );
        assert!(!shown(([0, 0, 0, 0], 1).into()).is_unspecified());
    }
}
