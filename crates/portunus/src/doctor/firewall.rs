//! The firewall of this machine.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use portunus_core::configuration::{Listener, Protocol};

use super::finding::{Check, Finding};
use super::ports::ports;

/// Reports the ports that clients need, and whether the firewall `ufw` of the system at `root`
/// allows them.
pub(super) fn examine(listeners: &[Listener], root: &Path) -> Option<Finding> {
    let is_outside =
        |it: &&Listener| it.addresses.is_empty() || it.addresses.iter().any(|ip| !ip.is_loopback());
    let needed: Vec<&Listener> = listeners.iter().filter(is_outside).collect();
    if needed.is_empty() {
        return None;
    }
    let list = |some: &[&Listener]| {
        let names = some.iter().map(|it| format!("{} ({})", ports(it), it.key));
        names.collect::<Vec<_>>().join(", ")
    };
    let note = |why: &str| {
        let text = format!("A firewall has to let in {}. {why}", list(&needed));
        Finding::note(Check::Firewall, text)
    };
    let enabled = fs::read_to_string(root.join("etc/ufw/ufw.conf")).unwrap_or_default();
    let is_on = enabled.lines().any(|line| line.trim() == "ENABLED=yes");
    if !is_on {
        return Some(note(
            "Whether those before this machine do cannot be seen from here.",
        ));
    }
    let rules = fs::read_to_string(root.join("etc/ufw/user.rules"));
    let Ok(rules) = rules else {
        return Some(note(
            "Here ufw is on; only root can read its rules: `sudo ufw status`.",
        ));
    };
    let rules: Vec<_> = rules.lines().filter_map(Rule::read).collect();
    let is_closed = |it: &&Listener| {
        !it.ports
            .clone()
            .all(|port| opens(&rules, it.protocol, port))
    };
    let closed: Vec<_> = needed.iter().copied().filter(is_closed).collect();
    if closed.is_empty() {
        return Some(note("The ufw here does."));
    }
    let text = format!("The firewall ufw does not let in {}.", list(&closed));
    let commands = closed.iter().map(|it| {
        let (first, last) = (it.ports.start(), it.ports.end());
        let protocol = it.protocol.to_string().to_lowercase();
        match first == last {
            true => format!("`sudo ufw allow {first}/{protocol}`"),
            false => format!("`sudo ufw allow {first}:{last}/{protocol}`"),
        }
    });
    let change = format!("{}.", commands.collect::<Vec<_>>().join(", "));
    Some(Finding::warning(Check::Firewall, text).change(change))
}

/// Whether a rule allows a port.
fn opens(rules: &[Rule], protocol: Protocol, port: u16) -> bool {
    rules.iter().any(|rule| {
        rule.protocol.is_none_or(|it| it == protocol)
            && rule.ports.iter().any(|ports| ports.contains(&port))
    })
}

/// An allow rule of ufw.
#[derive(Debug)]
struct Rule {
    /// `None` means any.
    protocol: Option<Protocol>,
    ports: Vec<RangeInclusive<u16>>,
}

impl Rule {
    /// Parses a line `### tuple ### allow udp 10000:10007 0.0.0.0/0 any 0.0.0.0/0 in`.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("### tuple ###")?.split_whitespace();
        let (action, protocol, ports) = (words.next()?, words.next()?, words.next()?);
        if !action.starts_with("allow") && !action.starts_with("limit") {
            return None;
        }
        let protocol = match protocol {
            "udp" => Some(Protocol::Udp),
            "tcp" => Some(Protocol::Tcp),
            _ => None,
        };
        let range = |text: &str| {
            let (first, last) = text.split_once(':').unwrap_or((text, text));
            Some(first.parse().ok()?..=last.parse().ok()?)
        };
        let ports = match ports {
            "any" => vec![0..=u16::MAX],
            ports => ports.split(',').filter_map(range).collect(),
        };
        Some(Rule { protocol, ports })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::net::Ipv4Addr;

    use super::super::finding::Level;
    use super::*;

    fn listener(protocol: Protocol, ports: RangeInclusive<u16>) -> Listener {
        Listener {
            key: "media.port".to_owned(),
            protocol,
            addresses: Vec::new(),
            ports,
        }
    }

    #[test]
    fn ufw_is_asked_for_each_port() {
        let root = tempfile::tempdir().unwrap();
        let needed = [
            listener(Protocol::Udp, 10_000..=10_003),
            listener(Protocol::Tcp, 8_089..=8_089),
        ];
        let found = || examine(&needed, root.path()).unwrap();
        assert_eq!(found().level, Level::Note);
        let folder = root.path().join("etc/ufw");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("ufw.conf"), "ENABLED=yes\nLOGLEVEL=low\n").unwrap();
        assert!(found().text.contains("sudo ufw status"), "{:?}", found());
        let rules = "### tuple ### allow tcp 22,8089 0.0.0.0/0 any 0.0.0.0/0 in\n\
                     ### tuple ### deny udp 10000:10003 0.0.0.0/0 any 0.0.0.0/0 in\n\
                     ### tuple ### allow any 10002:10003 0.0.0.0/0 any 0.0.0.0/0 in\n";
        fs::write(folder.join("user.rules"), rules).unwrap();
        let closed = found();
        assert_eq!(closed.level, Level::Warning);
        let change = closed.change.unwrap();
        assert_eq!(change, "`sudo ufw allow 10000:10003/udp`.");
        let open = format!("{rules}### tuple ### allow udp 10000:10001 0.0.0.0/0 any 0.0.0.0/0 in");
        fs::write(folder.join("user.rules"), open).unwrap();
        assert_eq!(found().level, Level::Note);
        let local = Listener {
            addresses: vec![Ipv4Addr::LOCALHOST.into()],
            ..listener(Protocol::Tcp, 1..=1)
        };
        assert_eq!(examine(&[local], root.path()), None);
    }
}
