//! Configurations for the known servers: their defaults except addresses and log levels.

use std::fs;
use std::io;
use std::path::Path;

use super::sink;
use crate::machine::LOAD_IP;

/// The most workers. There is a configuration for each number.
const MOST_WORKERS: usize = 16;

/// The API secret of all of them. Clients that show it have no limit of requests, rooms or
/// mountpoints, which a load from one address would soon reach.
pub(crate) const API_SECRET: &str = "hammer";

/// The API key of LiveKit's protocol. Its secret has the length that LiveKit asks for.
pub(super) const LIVEKIT_KEY: &str = "hammer";
pub(super) const LIVEKIT_SECRET: &str = "hammer-hammer-hammer-hammer-hammer";

/// The first UDP port of `livekit-server`.
const LIVEKIT_UDP: usize = 7_882;

/// The UDP port for SIP of `portunus-mixer.toml`.
const MIXER_PORT: u16 = 5_070;

/// The room of `portunus-mixer.toml`, which is called by its number.
const MIXED_ROOM: &str = "\
[[sip.trunks]]
name = \"lab\"
from = [\"10.0.0.0/8\"]
[[audiobridge.room]]
room = 1000
sampling_rate = 16000
";

/// Writes all of them into `dir`.
pub(super) fn write(dir: &Path, ip: &str, cores: usize) -> io::Result<()> {
    fs::write(dir.join("portunus.toml"), portunus(ip, cores))?;
    for (name, key) in [
        ("adapting", "bandwidth_adaptation = true"),
        ("not-adapting", "bandwidth_adaptation = false"),
        ("busy-poll", "busy_poll_us = 200"),
        ("one-port", "one_port = true"),
        ("real-time", "real_time = true"),
    ] {
        let media = format!("[media]\n{key}\n");
        let text = portunus(ip, cores).replacen("[media]\n", &media, 1);
        fs::write(dir.join(format!("portunus-{name}.toml")), text)?;
    }
    // Audio of calls is transcoded if the two sides have no common codec.
    let text = portunus(ip, cores).replacen("[sip]\n", "[sip]\ntranscoding = true\n", 1);
    fs::write(dir.join("portunus-transcoding.toml"), text)?;
    for (name, port) in [
        ("webhook", sink::PORT),
        ("hanging-webhook", sink::HANGING_PORT),
    ] {
        let webhook =
            format!("[events.webhook]\nenabled = true\nbackend = \"http://{LOAD_IP}:{port}/\"\n");
        let text = portunus(ip, cores) + &webhook;
        fs::write(dir.join(format!("portunus-{name}.toml")), text)?;
    }
    let mixer = portunus(ip, cores).replacen("[sip]\n", &portunus_mixer(ip), 1);
    fs::write(dir.join("portunus-mixer.toml"), mixer + MIXED_ROOM)?;
    let livekit = portunus(ip, cores) + &portunus_livekit(ip);
    // Its clients have no API secret, and come from addresses of one network.
    let no_limits = "[server]\nrequest_rate = 0\nshared_addresses = [\"10.0.0.0/8\"]\n";
    let livekit = livekit.replacen("[server]\n", no_limits, 1);
    fs::write(dir.join("portunus-livekit.toml"), livekit)?;
    fs::write(dir.join("livekit.yaml"), livekit_server(ip, cores))?;
    for workers in 1..=MOST_WORKERS {
        let name = format!("portunus-{workers}.toml");
        fs::write(dir.join(name), portunus(ip, workers))?;
    }
    let janus = dir.join("janus");
    fs::create_dir(&janus)?;
    for (name, text) in JANUS {
        fs::write(janus.join(name), text)?;
    }
    Ok(())
}

/// Returns the configuration of a Portunus at this address.
pub(crate) fn portunus(ip: &str, workers: usize) -> String {
    format!(
        "\
[server]
api_secret = \"{API_SECRET}\"
outgoing_networks = [\"10.0.0.0/8\"]
[media]
workers = {workers}
bind = [\"{ip}\"]
[http]
bind = [\"{ip}\"]
[websocket]
bind = [\"{ip}\"]
[recording]
folders = [\"/\"]
[sip]
max_accounts = 0
max_calls = 0
[log]
filter = \"warn\"
"
    )
}

/// Telephones of the lab's networks may call its rooms.
fn portunus_mixer(ip: &str) -> String {
    format!("[sip]\nlocal_ip = \"{ip}\"\nlisten = [\"udp:{MIXER_PORT}\"]\n")
}

fn portunus_livekit(ip: &str) -> String {
    format!("[livekit]\nkeys = {{ {LIVEKIT_KEY} = \"{LIVEKIT_SECRET}\" }}\nbind = [\"{ip}\"]\n")
}

/// A UDP port for each core is the least that LiveKit recommends.
fn livekit_server(ip: &str, cores: usize) -> String {
    let last = LIVEKIT_UDP + cores.saturating_sub(1);
    let ports = match cores {
        0 | 1 => LIVEKIT_UDP.to_string(),
        _ => format!("{LIVEKIT_UDP}-{last}"),
    };
    format!(
        "\
port: 7880
bind_addresses: [\"{ip}\"]
keys:
  {LIVEKIT_KEY}: {LIVEKIT_SECRET}
rtc:
  udp_port: {ports}
  tcp_port: 7881
  use_external_ip: false
  node_ip: {ip}
logging:
  level: warn
"
    )
}

/// The secret is [`API_SECRET`]. Missing keys of Janus have their defaults, and transports and
/// plugins without a file are off or use their defaults.
const JANUS: [(&str, &str); 7] = [
    (
        "janus.jcfg",
        "\
general: {
  debug_level = 3
  api_secret = \"hammer\"
}
",
    ),
    (
        "janus.transport.websockets.jcfg",
        "\
general: {
  json = \"compact\"
  ws = true
  ws_port = 8188
}
",
    ),
    (
        "janus.transport.http.jcfg",
        "\
general: {
  json = \"compact\"
  base_path = \"/janus\"
  http = true
  port = 8088
}
",
    ),
    ("janus.plugin.streaming.jcfg", "general: {\n}\n"),
    ("janus.plugin.videoroom.jcfg", "general: {\n}\n"),
    ("janus.plugin.audiobridge.jcfg", "general: {\n}\n"),
    // Automatic detection would find an address of another network.
    (
        "janus.plugin.sip.jcfg",
        "\
general: {
  local_ip = \"10.99.0.1\"
}
",
    ),
];
