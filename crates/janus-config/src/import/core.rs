//! `janus.jcfg`.

use toml::Value as Toml;

use super::convert::Kind::{Addresses, Flag, Inverted, Number, Split, Text, Thousandths};
use super::convert::split;
use super::rules::{CIPHERS, PASSPHRASE, Rule, elsewhere, missing, not_needed, take};
use super::translator::Translator;
use crate::Setting;

const BUILT_IN: &str = "plugins, transports and event handlers are part of the program";
const LOGS: &str = "logs go to the standard error: the service manager (journald) or a `2>>FILE` \
                    stores them";
const SERVICE: &str = "the service manager runs the program and knows its process (systemd)";
const ICE: &str = "the server's own ICE does what is needed by itself";

/// The keys that become one key each.
const RULES: &[Rule] = &[
    not_needed("general.configs_folder", "all configuration is in one file"),
    not_needed("general.plugins_folder", BUILT_IN),
    not_needed("general.transports_folder", BUILT_IN),
    not_needed("general.events_folder", BUILT_IN),
    not_needed("general.loggers_folder", BUILT_IN),
    missing("general.log_to_stdout", &["true"], LOGS),
    missing("general.log_to_file", &[""], LOGS),
    not_needed("general.log_rotate_sig", LOGS),
    elsewhere("general.debug_level"),
    not_needed("general.debug_timestamps", "lines have the time"),
    not_needed(
        "general.debug_colors",
        "lines have colors on a terminal only",
    ),
    not_needed("general.debug_locks", "there are no such locks"),
    missing(
        "general.log_prefix",
        &[""],
        "lines have no prefix: log.format = \"json\" is easy to tell apart",
    ),
    not_needed("general.daemonize", SERVICE),
    not_needed("general.pid_file", SERVICE),
    not_needed(
        "general.check_openfiles_limit",
        "the server raises its limit as far as it may, and says how far",
    ),
    take("general.api_secret", "server.api_secret", Text),
    take("general.token_auth", "server.token_auth", Flag),
    take(
        "general.token_auth_secret",
        "server.token_auth_secret",
        Text,
    ),
    take("general.admin_secret", "admin.secret", Text),
    not_needed(
        "general.interface",
        "Janus shows this address in SDP, where clients take no notice of it; media.bind limits \
         the addresses that media use",
    ),
    take("general.server_name", "server.server_name", Text),
    take("general.session_timeout", "server.session_timeout", Number),
    elsewhere("general.candidates_timeout"),
    take(
        "general.reclaim_session_timeout",
        "server.reclaim_session_timeout",
        Number,
    ),
    take("general.recordings_tmp_ext", "recording.temporary", Text),
    take("general.event_loops", "media.workers", Number),
    not_needed(
        "general.allow_loop_indication",
        "the server spreads handles over its workers",
    ),
    not_needed(
        "general.task_pool_size",
        "requests need no threads of their own",
    ),
    take("general.opaqueid_in_api", "server.opaqueid_in_api", Flag),
    missing(
        "general.hide_dependencies",
        &["false"],
        "`info` names one library, that of cryptography, with its version",
    ),
    not_needed("general.exit_on_dl_error", BUILT_IN),
    missing(
        "general.no_webrtc_encryption",
        &["false"],
        "media are always encrypted; the Admin API captures decrypted \
             packets (admin.capture_folder)",
    ),
    not_needed(
        "general.protected_folders",
        "clients can name only files below recording.dir and recording.folders",
    ),
    take("certificates.cert_pem", "media.certificate", Text),
    take("certificates.cert_key", "media.key", Text),
    missing("certificates.cert_pwd", &[""], PASSPHRASE),
    missing(
        "certificates.dtls_accept_selfsigned",
        &["true"],
        "certificates of clients are checked by their fingerprints, \
             which also holds for self-signed ones",
    ),
    missing("certificates.dtls_ciphers", &[""], CIPHERS),
    missing(
        "certificates.rsa_private_key",
        &["false"],
        "the certificate that is made has a P-256 key: name one with RSA in \
             media.certificate and media.key",
    ),
    take("media.ipv6", "media.ipv6", Flag),
    missing(
        "media.ipv6_linklocal",
        &["false"],
        "link-local addresses are not offered",
    ),
    not_needed(
        "media.min_nack_queue",
        "packets are kept for retransmission as long as they are of use",
    ),
    elsewhere("media.rtp_port_range"),
    not_needed("media.dtls_mtu", "handshakes are made of small datagrams"),
    take("media.no_media_timer", "media.no_media_ms", Thousandths),
    take(
        "media.slowlink_threshold",
        "media.slow_link_threshold",
        Number,
    ),
    take("media.twcc_period", "media.twcc_period_ms", Number),
    not_needed(
        "media.dtls_timeout",
        "lost handshake packets are sent again soon",
    ),
    not_needed(
        "media.nack_optimizations",
        "packets are kept for retransmission as long as they are of use",
    ),
    missing(
        "media.dscp",
        &["0"],
        "packets of PeerConnections are not marked: mark those of media.port by the firewall",
    ),
    missing(
        "media.dscp_tos",
        &["0"],
        "packets of PeerConnections are not marked: mark those of media.port by the firewall",
    ),
    elsewhere("nat.stun_server"),
    elsewhere("nat.stun_port"),
    not_needed("nat.nice_debug", "log.filter has the levels of modules"),
    take("nat.full_trickle", "server.full_trickle", Flag),
    not_needed("nat.ice_nomination", ICE),
    not_needed(
        "nat.ice_consent_freshness",
        "consent is always checked (RFC 7675)",
    ),
    not_needed(
        "nat.ice_keepalive_conncheck",
        "consent is always checked (RFC 7675)",
    ),
    take("nat.ice_lite", "media.ice_lite", Flag),
    take("nat.ice_tcp", "media.ice_tcp", Flag),
    not_needed("nat.hangup_on_failed", ICE),
    take("nat.ignore_mdns", "media.mdns", Inverted),
    take("nat.nat_1_1_mapping", "media.announced", Split),
    missing(
        "nat.keep_private_host",
        &["false"],
        "an announced address takes the place of the bound one: to offer both, name \
             both in media.announced",
    ),
    elsewhere("nat.turn_server"),
    elsewhere("nat.turn_port"),
    elsewhere("nat.turn_type"),
    take("nat.turn_user", "media.turn_user", Text),
    take("nat.turn_pwd", "media.turn_password", Text),
    take("nat.turn_rest_api", "media.turn_rest_api", Text),
    take("nat.turn_rest_api_key", "media.turn_rest_api_key", Text),
    take(
        "nat.turn_rest_api_method",
        "media.turn_rest_api_method",
        Text,
    ),
    take(
        "nat.turn_rest_api_timeout",
        "media.turn_rest_api_timeout",
        Number,
    ),
    not_needed(
        "nat.allow_force_relay",
        "clients cannot ask for it: media.force_relay has all of them told of relayed addresses only",
    ),
    take("nat.ice_enforce_list", "media.bind", Addresses),
    missing(
        "nat.ice_ignore_list",
        &["", "vmnet"],
        "addresses cannot be left out: name those to use in media.bind",
    ),
    not_needed(
        "nat.ignore_unreachable_ice_server",
        "the server starts without any other server",
    ),
    elsewhere("plugins.disable"),
    elsewhere("transports.disable"),
    not_needed(
        "loggers.disable",
        "there are no loggers beside the standard error",
    ),
    elsewhere("events.broadcast"),
    elsewhere("events.disable"),
    take("events.stats_period", "events.stats_period", Number),
    take(
        "events.combine_media_stats",
        "events.combine_media_stats",
        Flag,
    ),
];

/// Returns all rules.
pub(super) fn tables() -> Vec<&'static [Rule]> {
    vec![RULES]
}

pub(super) fn translate(translator: &mut Translator<'_>) {
    let Some(file) = translator.file("janus") else {
        return;
    };
    translator.apply(file, RULES);
    let (general, media) = (file.group("general"), file.group("media"));
    if let Some(setting) = general.get("debug_level") {
        debug_level(translator, setting);
    }
    if let Some(setting) = general.get("candidates_timeout")
        && setting.value.integer() != Some(0)
    {
        let rule = take(
            "general.candidates_timeout",
            "server.candidates_timeout",
            Number,
        );
        translator.setting("general", setting, &[rule]);
    }
    if let Some(setting) = media.get("rtp_port_range") {
        port_range(translator, setting);
    }
    stun_server(translator, &file.group("nat"));
    turn_server(translator, &file.group("nat"));
    disabled(translator, &file.group("plugins"));
}

/// `stun_server` and `stun_port` become `media.stun_server`.
fn stun_server(translator: &mut Translator<'_>, nat: &crate::Group) {
    let Some(setting) = nat.get("stun_server") else {
        return;
    };
    let host = setting.value.text().unwrap_or_default();
    let port = nat.get("stun_port").and_then(|port| port.value.integer());
    let server = match port {
        _ if host.is_empty() => return,
        None | Some(3_478) => host.to_string(),
        Some(port) if host.contains(':') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
    };
    translator.put("nat", setting, "media.stun_server", server.into());
}

/// `debug_level` becomes `log.filter`.
fn debug_level(translator: &mut Translator<'_>, setting: &Setting) {
    let filter = match setting.value.integer() {
        Some(i64::MIN..=2) => "error",
        Some(3) => "warn",
        Some(4) => "info",
        Some(5) => "debug",
        Some(_) => "trace",
        None => return translator.missing(setting, "general", "expected a number from 0 to 7"),
    };
    translator.put("general", setting, "log.filter", filter.into());
}

/// `rtp_port_range`: media uses one port per worker, from the first port on.
fn port_range(translator: &mut Translator<'_>, setting: &Setting) {
    let text = setting.value.text().unwrap_or_default();
    let first = text.split_once('-').map_or(&*text, |(first, _)| first);
    match first.trim().parse::<u16>() {
        Ok(first) => {
            let comment = match first {
                0 => "The system chooses the ports.".to_owned(),
                _ => format!("One port for each worker, from here on (with Janus {text})."),
            };
            let commented = Setting {
                comments: vec![comment],
                ..setting.clone()
            };
            let value = Toml::from(i64::from(first));
            translator.put("media", &commented, "media.port", value);
        }
        Err(_) => {
            let reason = "expected a range of ports such as \"20000-40000\"";
            translator.missing(setting, "media", reason);
        }
    }
}

/// Modules of Janus with a counterpart among our plugins.
const PLUGINS: [&str; 10] = [
    "audiobridge",
    "echotest",
    "nosip",
    "recordplay",
    "sip",
    "streaming",
    "textroom",
    "videocall",
    "videoroom",
    "voicemail",
];

/// `plugins.disable`.
fn disabled(translator: &mut Translator<'_>, plugins: &crate::Group) {
    let Some(setting) = plugins.get("disable") else {
        return;
    };
    for module in split(&setting.value.text().unwrap_or_default()) {
        let name = module.strip_prefix("libjanus_").unwrap_or(module);
        let name = name.strip_suffix(".so").unwrap_or(name);
        if PLUGINS.contains(&name) {
            let switch = format!("plugins.{name}.enabled");
            translator.put("plugins", setting, &switch, false.into());
        } else {
            let reason = format!("{module}: there is no such plugin here");
            translator.not_needed(setting, "plugins", &reason);
        }
    }
}

/// `turn_server`, `turn_port` and `turn_type` become `media.turn_server`.
fn turn_server(translator: &mut Translator<'_>, nat: &crate::Group) {
    let Some(setting) = nat.get("turn_server") else {
        return;
    };
    let host = setting.value.text().unwrap_or_default();
    if host.is_empty() {
        return;
    }
    let kind = nat.get("turn_type").and_then(|kind| kind.value.text());
    let (scheme, query) = match kind.as_deref() {
        Some("tls") => ("turns", ""),
        Some("tcp") => ("turn", "?transport=tcp"),
        _ => ("turn", ""),
    };
    let host = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_string(),
    };
    // With TLS, Janus uses port 3478 too.
    let port = nat.get("turn_port").and_then(|port| port.value.integer());
    let port = match (port.unwrap_or(3_478), scheme) {
        (3_478, "turn") => String::new(),
        (port, _) => format!(":{port}"),
    };
    let server = format!("{scheme}:{host}{port}{query}");
    translator.put("nat", setting, "media.turn_server", server.into());
}
