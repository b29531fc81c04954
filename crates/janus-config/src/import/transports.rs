//! The transports of the Janus API and of the Admin API: HTTP, WebSocket, Unix sockets, nanomsg.

use super::convert::Kind::{BasePath, Flag, Number, Text};
use super::convert::{Kind, convert};
use super::folder::ConfigFile;
use super::remark::Weight;
use super::rules::{ACL, CIPHERS, PASSPHRASE, Rule, elsewhere, json, missing, not_needed, take};
use super::translator::Translator;
use crate::{Group, Location};

const FORWARDED: &str = "there are no lists of allowed addresses";
const LIBRARY: &str = "log.filter has the levels of modules";
const UNIX: &str = "WebSocket is served by TCP only: [unix] has the API on a Unix socket";

const HTTP: &[Rule] = &[
    take("general.events", "http.events", Flag),
    json("general.json"),
    take("general.base_path", "http.base_path", BasePath),
    elsewhere("general.http"),
    take("general.port", "http.port", Number),
    elsewhere("general.interface"),
    elsewhere("general.ip"),
    take("general.https", "http.https", Flag),
    take("general.secure_port", "http.https_port", Number),
    elsewhere("general.secure_interface"),
    elsewhere("general.secure_ip"),
    missing("general.acl", &[""], ACL),
    not_needed("general.acl_forwarded", FORWARDED),
    not_needed("general.admin_acl_forwarded", FORWARDED),
    take(
        "general.mhd_connection_limit",
        "http.max_connections",
        Number,
    ),
    not_needed("general.mhd_debug", LIBRARY),
    not_needed(
        "general.threads",
        "connections need no threads of their own",
    ),
    take("admin.admin_base_path", "admin.base_path", BasePath),
    elsewhere("admin.admin_http"),
    take("admin.admin_port", "admin.port", Number),
    elsewhere("admin.admin_interface"),
    elsewhere("admin.admin_ip"),
    take("admin.admin_https", "admin.https", Flag),
    take("admin.admin_secure_port", "admin.https_port", Number),
    elsewhere("admin.admin_secure_interface"),
    elsewhere("admin.admin_secure_ip"),
    missing("admin.admin_acl", &[""], ACL),
    not_needed("admin.admin_acl_forwarded", FORWARDED),
    not_needed(
        "admin.admin_threads",
        "connections need no threads of their own",
    ),
    take("cors.allow_origin", "http.allow_origin", Text),
    take("cors.enforce_cors", "http.enforce_origin", Flag),
    take("certificates.cert_pem", "tls.certificate", Text),
    take("certificates.cert_key", "tls.key", Text),
    missing("certificates.cert_pwd", &[""], PASSPHRASE),
    missing("certificates.ciphers", &[""], CIPHERS),
];

const WEBSOCKETS: &[Rule] = &[
    take("general.events", "websocket.events", Flag),
    json("general.json"),
    take(
        "general.pingpong_trigger",
        "websocket.ping_interval",
        Number,
    ),
    take("general.pingpong_timeout", "websocket.ping_timeout", Number),
    elsewhere("general.ws"),
    take("general.ws_port", "websocket.port", Number),
    elsewhere("general.ws_interface"),
    elsewhere("general.ws_ip"),
    missing("general.ws_unix", &[""], UNIX),
    take("general.wss", "websocket.wss", Flag),
    take("general.wss_port", "websocket.wss_port", Number),
    elsewhere("general.wss_interface"),
    elsewhere("general.wss_ip"),
    missing("general.wss_unix", &[""], UNIX),
    not_needed("general.ws_logging", LIBRARY),
    missing("general.ws_acl", &[""], ACL),
    not_needed("general.ws_acl_forwarded", FORWARDED),
    not_needed("general.admin_ws_acl_forwarded", FORWARDED),
    take("admin.admin_ws", "admin.ws", Flag),
    take("admin.admin_ws_port", "admin.ws_port", Number),
    elsewhere("admin.admin_ws_interface"),
    elsewhere("admin.admin_ws_ip"),
    missing("admin.admin_ws_unix", &[""], UNIX),
    take("admin.admin_wss", "admin.wss", Flag),
    take("admin.admin_wss_port", "admin.wss_port", Number),
    elsewhere("admin.admin_wss_interface"),
    elsewhere("admin.admin_wss_ip"),
    missing("admin.admin_wss_unix", &[""], UNIX),
    missing("admin.admin_ws_acl", &[""], ACL),
    not_needed("admin.admin_ws_acl_forwarded", FORWARDED),
    missing("cors.allow_origin", &["*"], ORIGINS),
    missing("cors.enforce_cors", &["false"], ORIGINS),
    take("certificates.cert_pem", "tls.certificate", Text),
    take("certificates.cert_key", "tls.key", Text),
    missing("certificates.cert_pwd", &[""], PASSPHRASE),
    missing("certificates.ciphers", &[""], CIPHERS),
];

const ORIGINS: &str = "WebSocket looks at no origins: use server.api_secret or tokens";

const UNIX_SOCKETS: &[Rule] = &[
    take("general.events", "unix.events", Flag),
    json("general.json"),
    elsewhere("general.enabled"),
    elsewhere("general.path"),
    elsewhere("general.type"),
    elsewhere("admin.admin_enabled"),
    elsewhere("admin.admin_path"),
    elsewhere("admin.admin_type"),
];

/// A server in a file of Janus: its switch, and the keys with its addresses.
struct Listener {
    group: &'static str,
    switch: &'static str,
    /// The text before `ip` and `interface`.
    prefix: &'static str,
}

const fn listener(group: &'static str, switch: &'static str, prefix: &'static str) -> Listener {
    Listener {
        group,
        switch,
        prefix,
    }
}

/// Returns all rules.
pub(super) fn tables() -> Vec<&'static [Rule]> {
    vec![HTTP, WEBSOCKETS, UNIX_SOCKETS]
}

pub(super) fn translate(translator: &mut Translator<'_>) {
    let http = translator.file("janus.transport.http");
    let websockets = translator.file("janus.transport.websockets");
    http_server(translator, http);
    websocket_server(translator, websockets);
    unix_sockets(translator);
    nanomsg(translator);
}

/// Returns why a transport is off: `janus.jcfg` disables it, or its own file is missing or
/// malformed.
fn off(
    translator: &mut Translator<'_>,
    module: &str,
    file: Option<&ConfigFile>,
) -> Option<(Location, &'static str)> {
    let core = translator.file("janus")?;
    if translator.is_disabled("transports", module) {
        return Some((core.start(), "Off by transports.disable of Janus."));
    }
    let reason = "Off with Janus, too: its file for this is missing or broken.";
    file.is_none().then(|| (core.start(), reason))
}

fn http_server(translator: &mut Translator<'_>, file: Option<&ConfigFile>) {
    if let Some((at, comment)) = off(translator, "http", file) {
        file.into_iter().for_each(|file| translator.disabled(file));
        translator.set(&at, "http.enabled", false, comment);
        translator.set(&at, "admin.enabled", false, comment);
        return;
    }
    let Some(file) = file else { return };
    translator.apply(file, HTTP);
    bind(
        translator,
        file,
        "http",
        &[
            listener("general", "http", ""),
            listener("general", "https", "secure_"),
        ],
    );
    bind(
        translator,
        file,
        "admin",
        &[
            listener("admin", "admin_http", "admin_"),
            listener("admin", "admin_https", "admin_secure_"),
        ],
    );
    switch(translator, file, ("general", "http"), "http");
    switch(translator, file, ("admin", "admin_http"), "admin");
}

fn websocket_server(translator: &mut Translator<'_>, file: Option<&ConfigFile>) {
    if let Some((at, comment)) = off(translator, "websockets", file) {
        file.into_iter().for_each(|file| translator.disabled(file));
        translator.set(&at, "websocket.enabled", false, comment);
        return;
    }
    let Some(file) = file else { return };
    translator.apply(file, WEBSOCKETS);
    bind(
        translator,
        file,
        "websocket",
        &[
            listener("general", "ws", "ws_"),
            listener("general", "wss", "wss_"),
        ],
    );
    bind(
        translator,
        file,
        "admin",
        &[
            listener("admin", "admin_ws", "admin_ws_"),
            listener("admin", "admin_wss", "admin_wss_"),
        ],
    );
    switch(translator, file, ("general", "ws"), "websocket");
}

/// Translates the switch of a server. Servers of Janus are off by default, ours are on.
fn switch(
    translator: &mut Translator<'_>,
    file: &ConfigFile,
    (group, key): (&str, &str),
    section: &str,
) {
    let settings = file.group(group);
    let enabled = format!("{section}.enabled");
    match settings.get(key) {
        Some(setting) => match convert(Kind::Flag, &setting.value) {
            Ok(value) => translator.put(group, setting, &enabled, value),
            Err(reason) => translator.missing(setting, group, &reason),
        },
        None => {
            let comment = format!("Off with Janus, too: {group}.{key} is missing.");
            translator.set(&file.start(), &enabled, false, &comment);
        }
    }
}

/// Translates the addresses of two servers of Janus to one list. It never has more than each of
/// them had.
fn bind(translator: &mut Translator<'_>, file: &ConfigFile, section: &str, listeners: &[Listener]) {
    let mut is_limited = false;
    for listener in listeners {
        let group = file.group(listener.group);
        let is_on = group.is_on(listener.switch);
        let address = group.get(&format!("{}ip", listener.prefix));
        let interface = group.get(&format!("{}interface", listener.prefix));
        if !is_on {
            for setting in address.into_iter().chain(interface) {
                let reason = format!("{}.{} is off", listener.group, listener.switch);
                translator.not_needed(setting, listener.group, &reason);
            }
            continue;
        }
        if let Some(setting) = address {
            match convert(Kind::Addresses, &setting.value) {
                Ok(value) => {
                    is_limited = true;
                    translator.put(listener.group, setting, &format!("{section}.bind"), value);
                }
                Err(reason) => translator.missing(setting, listener.group, &reason),
            }
        }
        if let Some(setting) = interface {
            let else_all = match is_limited {
                true => "",
                false => ": without them the server listens on all addresses",
            };
            let reason = format!("name the interface's addresses in {section}.bind{else_all}");
            translator.missing(setting, listener.group, &reason);
        }
    }
    note_unlimited(translator, file, section, listeners, is_limited);
}

/// Adds a remark if one server was limited to an address, and the other one now is too.
fn note_unlimited(
    translator: &mut Translator<'_>,
    file: &ConfigFile,
    section: &str,
    listeners: &[Listener],
    is_limited: bool,
) {
    for listener in listeners {
        let group = file.group(listener.group);
        let has_ip = group.get(&format!("{}ip", listener.prefix)).is_some();
        if let Some(setting) = group.get(listener.switch)
            && is_limited
            && group.is_on(listener.switch)
            && !has_ip
        {
            let reason =
                format!("it listens on the addresses of {section}.bind now, and with Janus on all");
            translator.missing(setting, listener.group, &reason);
        }
    }
}

fn unix_sockets(translator: &mut Translator<'_>) {
    let Some(file) = translator.file("janus.transport.pfunix") else {
        return;
    };
    if translator.is_disabled("transports", "pfunix") {
        translator.disabled(file);
        return;
    }
    translator.apply(file, UNIX_SOCKETS);
    let (general, admin) = (file.group("general"), file.group("admin"));
    let sockets = [
        ("general", &general, "enabled", "path", "unix.path", "type"),
        (
            "admin",
            &admin,
            "admin_enabled",
            "admin_path",
            "admin.unix_path",
            "admin_type",
        ),
    ];
    for (name, group, switch, path, key, kind) in sockets {
        let is_on = group.is_on(switch);
        for setting in [path, kind].iter().filter_map(|key| group.get(key)) {
            if !is_on {
                translator.not_needed(setting, name, &format!("{name}.{switch} is off"));
            }
        }
        if !is_on {
            continue;
        }
        if let Some(setting) = group.get(path)
            && let Some(path) = setting.value.text()
        {
            translator.put(name, setting, key, path.into());
        }
        if let Some(setting) = group.get(kind) {
            match setting.value.text().as_deref() {
                Some("SOCK_SEQPACKET") => {
                    translator.put(name, setting, "unix.kind", "seqpacket".into())
                }
                Some("SOCK_DGRAM") => translator.put(name, setting, "unix.kind", "datagram".into()),
                _ => {
                    let reason = "expected \"SOCK_SEQPACKET\" or \"SOCK_DGRAM\"";
                    translator.missing(setting, name, reason);
                }
            }
        }
    }
}

fn nanomsg(translator: &mut Translator<'_>) {
    let Some(file) = translator.file("janus.transport.nanomsg") else {
        return;
    };
    let is_on = |group: &Group, key| group.is_on(key);
    let is_used =
        is_on(&file.group("general"), "enabled") || is_on(&file.group("admin"), "admin_enabled");
    let (weight, reason) = match is_used && !translator.is_disabled("transports", "nanomsg") {
        true => (
            Weight::Attention,
            "the API is not served by nanomsg: programs on this machine can use [unix], others [websocket], \
             [mqtt], [rabbitmq] or [nats]",
        ),
        false => (
            Weight::NotNeeded,
            "the API is not served by nanomsg, and the file has it off",
        ),
    };
    translator.about(&file.start(), weight, reason);
}
