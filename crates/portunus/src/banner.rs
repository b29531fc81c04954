//! What a person sees when the server has started.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use portunus_api::Transports;
use portunus_media::MediaPlane;

/// The URLs and addresses, a line each.
pub(crate) fn text(
    transports: &Transports,
    media: &MediaPlane,
    base_path: &str,
    file: Option<&Path>,
) -> String {
    let mut text = format!("Portunus {} is ready.\n", env!("CARGO_PKG_VERSION"));
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    for (scheme, addresses) in [("http", transports.http()), ("https", transports.https())] {
        for address in addresses {
            line("Pages", format!("{scheme}://{}/", shown(address)));
            line(
                "Janus API",
                format!("{scheme}://{}{base_path}", shown(address)),
            );
        }
    }
    for (scheme, addresses) in [("ws", transports.ws()), ("wss", transports.wss())] {
        for address in addresses {
            line("WebSocket", format!("{scheme}://{}/", shown(address)));
        }
    }
    if let Some(path) = transports.unix() {
        line("Unix socket", path.display().to_string());
    }
    let ports: Vec<String> = media
        .sockets()
        .map(|socket| socket.port().to_string())
        .collect();
    line(
        "Media",
        format!("UDP {} at {}", ports.join(", "), media.address()),
    );
    line(
        "Settings",
        file.map_or("defaults (no configuration file)".into(), |f| {
            f.display().to_string()
        }),
    );
    if transports.https().is_empty() && transports.wss().is_empty() {
        text.push_str(
            "Browsers give camera and microphone to pages on localhost or HTTPS only: for other machines\n\
             set tls.certificate, tls.key, http.https and websocket.wss, or put a proxy in front.\n",
        );
    }
    text
}

/// The address as a browser on this machine can use it.
fn shown(address: &SocketAddr) -> String {
    match address.ip() {
        ip if ip.is_unspecified() => format!("localhost:{}", address.port()),
        IpAddr::V6(ip) => format!("[{ip}]:{}", address.port()),
        IpAddr::V4(ip) => format!("{ip}:{}", address.port()),
    }
}
