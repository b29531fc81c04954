//! The text for people at the start: the addresses of the server.

use std::fmt::Write;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use portunus_api::{AdminAddresses, Transports, brokers};
use portunus_media::MediaPlane;
use portunus_turn::Turn;

use crate::config::Config;
use crate::livekit::LIVEKIT;

/// Prints it to the standard output.
pub(crate) fn print(
    file: Option<&Path>,
    config: &Config,
    media: &MediaPlane,
    transports: &Transports,
    turn: Option<&Turn>,
) {
    let sockets: Vec<SocketAddr> = media.sockets().collect();
    let listeners: Vec<SocketAddr> = media.listeners().collect();
    let text = text(&Facts {
        file,
        base_path: &config.api.http.base_path,
        pages: config.api.http.pages,
        whip: config.api.whip.enabled,
        http: transports.http(),
        https: transports.https(),
        ws: transports.ws(),
        wss: transports.wss(),
        livekit: (transports.extra(LIVEKIT), config.livekit.tls),
        unix: transports.unix().map(|path| path.display().to_string()),
        brokers: brokers(&config.api),
        admin: transports.admin(),
        admin_path: &config.api.admin.base_path,
        dashboard: config.api.admin.pages,
        address: media.address(),
        announced: config
            .media
            .announced
            .iter()
            .map(|a| a.ip)
            .chain(media.public_ips())
            .collect(),
        media: &sockets,
        media_tcp: &listeners,
        turn: turn.map(Turn::urls).unwrap_or_default(),
    });
    // The output may be closed, which does not matter.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
}

struct Facts<'a> {
    file: Option<&'a Path>,
    base_path: &'a str,
    pages: bool,
    whip: bool,
    http: &'a [SocketAddr],
    https: &'a [SocketAddr],
    ws: &'a [SocketAddr],
    wss: &'a [SocketAddr],
    /// The addresses of the LiveKit door, and whether it is served by TLS.
    livekit: (&'a [SocketAddr], bool),
    unix: Option<String>,
    /// The kinds of brokers, with their addresses.
    brokers: Vec<(&'static str, String)>,
    admin: &'a AdminAddresses,
    admin_path: &'a str,
    dashboard: bool,
    /// The addresses for other machines.
    address: IpAddr,
    announced: Vec<IpAddr>,
    media: &'a [SocketAddr],
    /// The addresses of ICE over TCP.
    media_tcp: &'a [SocketAddr],
    turn: Vec<String>,
}

fn text(facts: &Facts<'_>) -> String {
    let servers = [("http", facts.http), ("https", facts.https)];
    let mut lines = vec![format!("Portunus {} runs.\n", env!("CARGO_PKG_VERSION"))];
    let mut row = |name: &str, entries: Vec<String>| {
        if !entries.is_empty() {
            lines.push(format!("  {name:<10} {}\n", entries.join("  ")));
        }
    };
    if facts.pages {
        row("Web pages", urls(&servers, facts.address, "/"));
    }
    row("HTTP", urls(&servers, facts.address, facts.base_path));
    if facts.whip {
        row("WHIP", urls(&servers, facts.address, "/whip/ID"));
        row("WHEP", urls(&servers, facts.address, "/whep/ID"));
    }
    let servers = [("ws", facts.ws), ("wss", facts.wss)];
    row("WebSocket", urls(&servers, facts.address, ""));
    let (livekit, by_tls) = facts.livekit;
    let scheme = if by_tls { "wss" } else { "ws" };
    row("LiveKit", urls(&[(scheme, livekit)], facts.address, ""));
    row("Unix", facts.unix.iter().cloned().collect());
    for (name, address) in &facts.brokers {
        row(name, vec![address.clone()]);
    }
    let admin = facts.admin;
    let servers = [("http", &admin.http[..]), ("https", &admin.https[..])];
    if facts.dashboard {
        row("Dashboard", urls(&servers, facts.address, "/"));
    }
    let mut entries = urls(&servers, facts.address, facts.admin_path);
    let servers = [("ws", &admin.ws[..]), ("wss", &admin.wss[..])];
    entries.extend(urls(&servers, facts.address, ""));
    entries.extend(admin.unix.iter().map(|path| path.display().to_string()));
    row("Admin API", entries);
    row("Media", vec![media(facts)]);
    row("TURN", facts.turn.clone());
    let settings = facts.file.map(|file| file.display().to_string());
    row("Settings", vec![settings.unwrap_or("all defaults".into())]);
    let reachable = |addresses: &[SocketAddr]| addresses.iter().any(|a| !a.ip().is_loopback());
    if facts.pages
        && reachable(facts.http)
        && !facts.address.is_loopback()
        && facts.https.is_empty()
    {
        lines.push(
            "\n  Browsers give camera and microphone to pages of localhost and to https:// only. For other\n  \
             machines turn on http.https, or put a proxy with TLS in front (docs/troubleshooting.md).\n"
                .into(),
        );
    }
    lines.push("\n".into());
    lines.concat()
}

/// Formats addresses as URLs. A wildcard address becomes this machine's and its public addresses.
fn urls(servers: &[(&str, &[SocketAddr])], address: IpAddr, path: &str) -> Vec<String> {
    let mut urls = Vec::new();
    for (scheme, bound) in servers {
        for socket in *bound {
            let port = socket.port();
            let mut push = |host: String| urls.push(format!("{scheme}://{host}:{port}{path}"));
            if !socket.ip().is_unspecified() {
                push(host(socket.ip()));
                continue;
            }
            push("localhost".into());
            if !address.is_loopback() && !address.is_unspecified() {
                push(host(address));
            }
        }
    }
    urls
}

fn host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

fn media(facts: &Facts<'_>) -> String {
    let count = facts.media.len();
    let mut text = format!("UDP {}", ports(facts.media));
    // Writing to a string cannot fail.
    if !facts.media_tcp.is_empty() {
        let _ = write!(text, ", TCP {}", ports(facts.media_tcp));
    }
    let _ = write!(
        text,
        " ({count} worker{})",
        if count == 1 { "" } else { "s" }
    );
    if !facts.announced.is_empty() {
        let announced: Vec<_> = facts.announced.iter().map(IpAddr::to_string).collect();
        let _ = write!(text, ", announced as {}", announced.join(", "));
    }
    text
}

/// Formats the ports of workers, consecutive ones as a range.
fn ports(addresses: &[SocketAddr]) -> String {
    let mut ports: Vec<u16> = addresses.iter().map(SocketAddr::port).collect();
    // Workers may share one port.
    ports.dedup();
    let in_a_row = ports
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if a.checked_add(1) == Some(*b)));
    match (ports.first(), ports.last()) {
        (Some(first), Some(last)) if in_a_row && first != last => format!("{first}-{last}"),
        _ => ports
            .iter()
            .map(u16::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_workers_share_is_named_once() {
        let address = |port| SocketAddr::from(([0, 0, 0, 0], port));
        assert_eq!(ports(&[address(10_000); 4]), "10000");
        assert_eq!(ports(&[10_000, 10_001, 10_002].map(address)), "10000-10002");
        assert_eq!(ports(&[10_000, 10_005].map(address)), "10000, 10005");
    }

    #[test]
    fn it_names_every_address_and_the_rule_about_cameras() {
        let any = ["[::]:8088".parse().unwrap_or_else(|_| unreachable!())];
        let ws = [SocketAddr::from(([127, 0, 0, 1], 8188))];
        let media = [10_000, 10_001].map(|port| SocketAddr::from(([0, 0, 0, 0], port)));
        let text = text(&Facts {
            file: None,
            base_path: "/janus",
            pages: true,
            whip: true,
            http: &any,
            https: &[],
            ws: &ws,
            wss: &[],
            livekit: (&[SocketAddr::from(([127, 0, 0, 1], 7880))], false),
            unix: Some("/run/portunus/api.sock".into()),
            brokers: vec![("NATS", "nats://192.0.2.9:4222".into())],
            admin: &AdminAddresses {
                http: vec![SocketAddr::from(([127, 0, 0, 1], 7088))],
                ..AdminAddresses::default()
            },
            admin_path: "/admin",
            dashboard: true,
            address: IpAddr::from([192, 0, 2, 7]),
            announced: vec![IpAddr::from([203, 0, 113, 7])],
            media: &media,
            media_tcp: &[SocketAddr::from(([0, 0, 0, 0], 443))],
            turn: vec!["turn:192.0.2.7:3478?transport=udp".into()],
        });
        for part in [
            "http://localhost:8088/  http://192.0.2.7:8088/\n",
            "http://localhost:8088/janus  http://192.0.2.7:8088/janus\n",
            "http://localhost:8088/whip/ID  http://192.0.2.7:8088/whip/ID\n",
            "ws://127.0.0.1:8188\n",
            "LiveKit    ws://127.0.0.1:7880\n",
            "/run/portunus/api.sock\n",
            "NATS       nats://192.0.2.9:4222\n",
            "  Dashboard  http://127.0.0.1:7088/\n",
            "  Admin API  http://127.0.0.1:7088/admin\n",
            "UDP 10000-10001, TCP 443 (2 workers), announced as 203.0.113.7\n",
            "TURN       turn:192.0.2.7:3478?transport=udp\n",
            "camera",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
    }
}
