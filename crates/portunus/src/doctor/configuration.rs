//! Faults of the configuration: those of `--check-config`, and common omissions in deployments.

use std::net::IpAddr;
use std::path::Path;

use portunus_core::configuration::{self, Lines, Probe, Severity};

use super::finding::{Check, Finding, Level};
use super::service::Service;
use crate::config::{Config, ConfigError};

/// The secret of the deployment guide.
const PLACEHOLDER: &str = "CHANGE-ME";

/// Reports why there is no configuration.
pub(super) fn unread(error: &ConfigError) -> Vec<Finding> {
    let text = error.to_string();
    let change = match error {
        ConfigError::Read { .. } => {
            "Name the right file by --config. If others may not read it, run this as root or as \
             the server's user."
        }
        _ => "Correct it. Nothing else is looked at before that.",
    };
    let finding = |line: &str| Finding::error(Check::Configuration, line).change(change);
    text.lines().map(finding).collect()
}

/// Examines all keys. `text` is the file's text.
pub(super) fn examine(
    config: &Config,
    found: &[configuration::Finding],
    (file, text): (Option<&Path>, &str),
    unresolved: Option<&str>,
) -> Vec<Finding> {
    let lines = Lines::of(text);
    let place = |key: &str| match (file, lines.line(key)) {
        (Some(file), Some(line)) => format!("{}:{line}: ", file.display()),
        _ => String::new(),
    };
    let fault = |it: &configuration::Finding| {
        let text = format!("{}{}: {}.", place(&it.key), it.key, it.text);
        match it.severity {
            Severity::Error => Finding::error(Check::Configuration, text),
            Severity::Warning => Finding::warning(Check::Configuration, text),
        }
    };
    let mut findings: Vec<_> = found.iter().map(fault).collect();
    findings.extend(unresolved.map(|error| {
        let text = format!("{}media.announced: {error}.", place("media.announced"));
        Finding::error(Check::Configuration, text)
    }));
    let is_placeholder = |line: &&str| {
        let written = line.split('#').next().unwrap_or_default();
        written.contains(PLACEHOLDER)
    };
    if text.lines().any(|line| is_placeholder(&line)) {
        let text =
            format!("A secret is \"{PLACEHOLDER}…\", which everybody can read in our guide.");
        let change = "Write other ones: `openssl rand -hex 20` makes some.";
        findings.push(Finding::error(Check::Placeholder, text).change(change));
    }
    findings.extend(plain(config));
    findings.extend(proxy(config));
    if findings.iter().all(|it| it.level < Level::Warning) {
        let text = "There are no mistakes in it.";
        findings.insert(0, Finding::ok(Check::Configuration, text));
    }
    findings
}

/// Whether other machines can connect to this listener.
fn is_outside(bind: &[IpAddr]) -> bool {
    bind.is_empty() || bind.iter().any(|ip| !ip.is_loopback())
}

/// Finds features that browsers refuse without TLS.
fn plain(config: &Config) -> Vec<Finding> {
    let (http, websocket) = (&config.api.http, &config.api.websocket);
    let mut findings = Vec::new();
    let has_proxy = !config.core.trusted_proxies.is_empty();
    if http.enabled && http.pages && !http.https && !has_proxy && is_outside(&http.bind) {
        let text = "Pages are served by plain HTTP only. Browsers give camera and microphone to \
                    pages of https:// and of localhost.";
        let change = "Set http.https, websocket.wss and [tls], or put a proxy with TLS in front \
                      and name it in server.trusted_proxies.";
        findings.push(Finding::warning(Check::PlainPages, text).change(change));
    }
    if http.https && websocket.enabled && !websocket.wss && !has_proxy {
        let text = "WebSocket is served without TLS only. Pages of https:// cannot use it.";
        let change = "Set websocket.wss = true.";
        findings.push(Finding::warning(Check::PlainWebsocket, text).change(change));
    }
    findings
}

/// Finds incomplete configurations of proxies.
fn proxy(config: &Config) -> Option<Finding> {
    let (http, core) = (&config.api.http, &config.core);
    let is_local = http.enabled && !is_outside(&http.bind) && !http.https;
    if is_local && core.trusted_proxies.is_empty() && core.trust_loopback {
        let text = "HTTP is for programs on this machine, which are trusted. If one of them is a \
                    proxy, all of its clients are trusted, too.";
        let change = "Set server.trusted_proxies = [\"127.0.0.1\"] if there is a proxy.";
        return Some(Finding::warning(Check::ProxyClients, text).change(change));
    }
    if http.enabled && !core.trusted_proxies.is_empty() && http.bind.is_empty() {
        let text = "There is a proxy (server.trusted_proxies), and plain HTTP can be reached \
                    without it.";
        let change = "Set http.bind and websocket.bind to the address that the proxy connects to.";
        return Some(Finding::note(Check::ProxyClients, text).change(change));
    }
    None
}

/// Compares the configuration with the permissions of the service. `is_root`: this process is
/// root's.
pub(super) fn of_service(
    config: &Config,
    probe: &Probe,
    service: &Service,
    is_root: bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(user) = service.user.as_deref().filter(|_| is_root) {
        let text = format!("This ran as root, which may read and write what {user} may not.");
        let change = format!("`sudo -u {user} portunus doctor` finds that, too.");
        findings.push(Finding::note(Check::ServiceUser, text).change(change));
    }
    for written in probe.written() {
        if !service.writes(&written.path) {
            let path = written.path.display();
            let text = format!(
                "The systemd unit does not let the server write to {path} ({}).",
                written.key
            );
            let change = format!(
                "`sudo systemctl edit portunus`: [Service] ReadWritePaths={path}. Or take a \
                 folder below /var/lib/portunus."
            );
            findings.push(Finding::error(Check::ServiceFolders, text).change(change));
        }
    }
    let low = config
        .listeners
        .iter()
        .filter(|it| *it.ports.start() < 1_024);
    for listener in low.filter(|_| !service.has("CAP_NET_BIND_SERVICE")) {
        let port = listener.ports.start();
        let text = format!(
            "The systemd unit does not let the server listen on port {port} ({}).",
            listener.key
        );
        let change = "`sudo systemctl edit portunus`: [Service] \
                      AmbientCapabilities=CAP_NET_BIND_SERVICE and \
                      CapabilityBoundingSet=CAP_NET_BIND_SERVICE.";
        findings.push(Finding::error(Check::ServicePorts, text).change(change));
    }
    findings
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn checks(text: &str) -> Vec<Check> {
        let config = Config::parse(text).unwrap();
        let findings = examine(&config, &[], (None, text), None);
        findings.iter().map(|it| it.check).collect()
    }

    #[test]
    fn what_people_forget_is_found() {
        let local = "[http]\nbind = [\"127.0.0.1\"]\n";
        let https = "[http]\nhttps = true\n[tls]\ncertificate = \"c\"\nkey = \"k\"\n";
        let proxy = "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n";
        let wss = "[websocket]\nwss = true\n";
        for (text, expected) in [
            (String::new(), Check::PlainPages),
            (local.to_owned(), Check::ProxyClients),
            (format!("{proxy}{local}"), Check::Configuration),
            (proxy.to_owned(), Check::ProxyClients),
            (https.to_owned(), Check::PlainWebsocket),
            (format!("{https}{wss}"), Check::Configuration),
            (
                format!("{https}{wss}[videoroom]\nadmin_key = \"CHANGE-ME-TOO\""),
                Check::Placeholder,
            ),
            (
                format!("{https}{wss}[videoroom] # CHANGE-ME"),
                Check::Configuration,
            ),
        ] {
            let found = checks(&text);
            let others = found.iter().filter(|it| **it != Check::Configuration);
            match expected {
                Check::Configuration => assert_eq!(others.count(), 0, "{text}: {found:?}"),
                expected => assert!(found.contains(&expected), "{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn the_service_may_do_less_than_the_configuration_asks_for() {
        let root = tempfile::tempdir().unwrap();
        let units = root.path().join("lib/systemd/system");
        std::fs::create_dir_all(&units).unwrap();
        let unit = include_str!("../../../../packaging/systemd/portunus.service");
        std::fs::write(units.join("portunus.service"), unit).unwrap();
        let service = Service::read(root.path()).unwrap();
        let text = "[http]\nport = 80\n[recording]\ndir = \"/srv/recordings\"\nfolders = [\"/var/lib/portunus/x\"]";
        let config = Config::parse(text).unwrap();
        let found = of_service(&config, &config.look(), &service, true);
        let found: Vec<_> = found.iter().map(|it| it.check).collect();
        let expected = [
            Check::ServiceUser,
            Check::ServiceFolders,
            Check::ServicePorts,
        ];
        assert_eq!(found, expected);
    }
}
