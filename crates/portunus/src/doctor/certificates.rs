//! The server's certificates: their expiry, their names, and whether browsers can verify them.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use openssl::asn1::Asn1Time;
use openssl::error::ErrorStack;
use openssl::ssl::{SslConnector, SslMethod, SslVerifyMode};
use openssl::stack::Stack;
use openssl::x509::store::{X509Store, X509StoreBuilder};
use openssl::x509::{X509, X509StoreContext};
use portunus_core::configuration::Certificate;

use super::finding::{Check, Finding};
use super::server::Server;
use crate::config::Config;
use crate::health;

/// The remaining days of a certificate below which there is a warning. For certificates of less
/// than three months it is a sixth of their validity.
const LITTLE_TIME: i64 = 14;
const PART: i64 = 6;

/// How long the running server may take to present its certificate.
const LIMIT: Duration = Duration::from_secs(2);

/// OpenSSL's errors of chains (X509_V_ERR_…).
const SELF_SIGNED: [i32; 2] = [18, 19];
const NO_ISSUER: [i32; 3] = [2, 20, 21];

const TLS: &str = "tls.certificate";
const SIP: &str = "sip.tls_certificate";

/// Examines the certificates. `host` is the name that clients use, if it is known. Blocks.
pub(super) fn examine(
    certificates: &[Certificate],
    config: &Config,
    host: Option<&str>,
    server: &Server,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let roots = roots();
    for certificate in certificates {
        let Some(chain) = read(certificate) else {
            // The check of the configuration reports the fault.
            continue;
        };
        let Some((leaf, others)) = chain.split_first() else {
            continue;
        };
        if certificate.key == TLS && !is_used(config) {
            let text = "Nothing uses the certificate of [tls].";
            let change = "Set http.https and websocket.wss to true.";
            findings.push(Finding::warning(Check::UnusedCertificate, text).change(change));
            continue;
        }
        findings.push(described(certificate, leaf));
        findings.extend(time(certificate, leaf));
        if certificate.key == TLS {
            let turn = Some(config.turn.host.as_str()).filter(|host| {
                config.turn.tls && !host.is_empty() && host.parse::<IpAddr>().is_err()
            });
            let mut hosts: Vec<&str> = host.into_iter().chain(turn).collect();
            hosts.dedup();
            let missing = hosts.into_iter().filter(|host| !is_for(leaf, host));
            findings.extend(missing.map(|host| unnamed(certificate, leaf, host)));
            findings.extend(loaded(leaf, config, server));
        }
        if let Some(roots) = &roots
            && (certificate.key == TLS || certificate.key == SIP)
        {
            findings.extend(verified(certificate, leaf, others, roots));
        }
    }
    findings
}

fn read(certificate: &Certificate) -> Option<Vec<X509>> {
    X509::stack_from_pem(&fs::read(&certificate.path).ok()?).ok()
}

/// Whether anything uses the certificate of `[tls]`.
fn is_used(config: &Config) -> bool {
    let api = &config.api;
    let by_api = api.http.https || api.websocket.wss || api.admin.https || api.admin.wss;
    by_api || (config.turn.enabled && config.turn.tls)
}

/// Returns the days until the certificate's expiry, negative after it, and the days of its whole
/// validity.
fn days(leaf: &X509) -> Result<(i64, i64), ErrorStack> {
    let now = Asn1Time::days_from_now(0)?;
    let left = now.diff(leaf.not_after())?;
    let all = leaf.not_before().diff(leaf.not_after())?;
    let left = match left.days < 0 || left.secs < 0 {
        true => -1,
        false => left.days.into(),
    };
    Ok((left, all.days.into()))
}

/// Formats days: `1 day`, `2 days`.
fn in_days(days: i64) -> String {
    match days {
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

/// Returns the names and addresses of a certificate.
fn names(leaf: &X509) -> Vec<String> {
    let mut names = Vec::new();
    for name in leaf.subject_alt_names().into_iter().flatten() {
        names.extend(name.dnsname().map(str::to_owned));
        names.extend(name.ipaddress().and_then(address).map(|ip| ip.to_string()));
    }
    names
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    v4.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}

/// Whether a certificate is for a name or an address, by the rules of browsers (RFC 9525): the
/// subject does not count.
fn is_for(leaf: &X509, host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    names(leaf).iter().any(|name| {
        let name = name.to_ascii_lowercase();
        let parent = host.split_once('.').map(|(_, parent)| parent);
        name == host || name.strip_prefix("*.").is_some_and(|it| Some(it) == parent)
    })
}

fn described(certificate: &Certificate, leaf: &X509) -> Finding {
    let names = names(leaf);
    let names = match names.is_empty() {
        true => "no name".to_owned(),
        false => names.join(", "),
    };
    let left = match days(leaf) {
        Ok((left, _)) if left >= 0 => format!("{} left", in_days(left)),
        _ => "expired".to_owned(),
    };
    let Certificate { key, path } = certificate;
    let text = format!("{} ({key}) is for {names}; {left}.", path.display());
    Finding::ok(Check::Certificate, text)
}

fn time(certificate: &Certificate, leaf: &X509) -> Option<Finding> {
    let (left, all) = days(leaf).ok()?;
    let key = &certificate.key;
    let renew = "Renew it, and apply it by `systemctl reload portunus`: see that whatever renews it \
                 does both.";
    let began = Asn1Time::days_from_now(0).is_ok_and(|now| now >= leaf.not_before());
    if !began {
        let text = format!(
            "{key} is not valid before {}: clients refuse it.",
            leaf.not_before()
        );
        let change = "See whether the clock of this machine is right.";
        return Some(Finding::error(Check::CertificateTime, text).change(change));
    }
    if left < 0 {
        let text = format!("{key} expired on {}: clients refuse it.", leaf.not_after());
        return Some(Finding::error(Check::CertificateTime, text).change(renew));
    }
    is_little(left, all).then(|| {
        let text = format!("{key} expires in {}.", in_days(left));
        Finding::warning(Check::CertificateTime, text).change(renew)
    })
}

/// Whether a certificate with so many remaining days should have been renewed.
fn is_little(left: i64, all: i64) -> bool {
    left < LITTLE_TIME.min(all / PART)
}

fn unnamed(certificate: &Certificate, leaf: &X509, host: &str) -> Finding {
    let names = names(leaf).join(", ");
    let text = match names.is_empty() {
        true => format!("{} has no name (subjectAltName).", certificate.key),
        false => format!("{} is not for {host}, but for {names}.", certificate.key),
    };
    let change = format!("Get a certificate for {host}: clients refuse this one there.");
    Finding::error(Check::CertificateName, text).change(change)
}

/// Returns the authorities known to this machine, or `None` if there are none.
fn roots() -> Option<X509Store> {
    let certificates = rustls_native_certs::load_native_certs().certs;
    let mut store = X509StoreBuilder::new().ok()?;
    let mut count = 0_usize;
    for certificate in certificates {
        if let Ok(root) = X509::from_der(&certificate)
            && store.add_cert(root).is_ok()
        {
            count = count.saturating_add(1);
        }
    }
    (count > 0).then(|| store.build())
}

/// Verifies the chain like a client that knows the same authorities.
fn verified(
    certificate: &Certificate,
    leaf: &X509,
    others: &[X509],
    roots: &X509Store,
) -> Option<Finding> {
    let error = chain_error(leaf, others, roots).ok()?;
    let key = &certificate.key;
    let (text, change) = match error {
        it if SELF_SIGNED.contains(&it) => (
            format!("{key} is signed by itself: browsers refuse it until a person lets them."),
            "Take one of an authority that browsers know, such as Let's Encrypt.",
        ),
        it if NO_ISSUER.contains(&it) && others.is_empty() => (
            format!("{key} has no certificate but its own: clients may not find its authority."),
            "Name the file with the whole chain: fullchain.pem of certbot, not cert.pem.",
        ),
        it if NO_ISSUER.contains(&it) => (
            format!("{key} is of an authority that this machine does not know."),
            "Browsers need to know it. If they do, nothing has to be changed.",
        ),
        _ => return None,
    };
    Some(Finding::warning(Check::CertificateChain, text).change(change))
}

/// Returns the number of OpenSSL's error, or 0 if there is none.
fn chain_error(leaf: &X509, others: &[X509], roots: &X509Store) -> Result<i32, ErrorStack> {
    let mut chain = Stack::new()?;
    for other in others {
        chain.push(other.clone())?;
    }
    X509StoreContext::new()?.init(roots, leaf, &chain, |context| {
        context.verify_cert()?;
        Ok(context.error().as_raw())
    })
}

/// Compares the file with the certificate of the running server.
fn loaded(leaf: &X509, config: &Config, server: &Server) -> Option<Finding> {
    let http = &config.api.http;
    if !server.is_running || !http.https || http.https_port == 0 {
        return None;
    }
    let shown = shown(health::local(http, http.https_port)).ok()?;
    let is_same = shown.to_der().ok()? == leaf.to_der().ok()?;
    (!is_same).then(|| {
        let text = "The running server shows another certificate than the one in the file.";
        Finding::warning(Check::CertificateLoaded, text)
            .change("`systemctl reload portunus`. Let whatever renews the certificate do so, too.")
    })
}

/// Fetches the certificate of a server.
fn shown(address: SocketAddr) -> Result<X509, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let stream = TcpStream::connect_timeout(&address, LIMIT).map_err(|it| text(&it))?;
    for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
        set(&stream, Some(LIMIT)).map_err(|it| text(&it))?;
    }
    let mut connector = SslConnector::builder(SslMethod::tls_client()).map_err(|it| text(&it))?;
    connector.set_verify(SslVerifyMode::NONE);
    let mut session = connector.build().configure().map_err(|it| text(&it))?;
    session.set_verify_hostname(false);
    session.set_use_server_name_indication(false);
    let stream = session
        .connect("", stream)
        .map_err(|error| error.to_string())?;
    let certificate = stream.ssl().peer_certificate();
    certificate.ok_or_else(|| "it shows none".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use std::ops::Range;
    use std::path::Path;

    use portunus_api::testing::write_certificate_for;

    use super::super::finding::Level;
    use super::*;

    /// Makes a certificate whose validity starts and ends so many days from now.
    fn made(folder: &Path, days: Range<i32>, names: &[&str]) -> Certificate {
        write_certificate_for(folder, days, names);
        Certificate {
            key: TLS.to_owned(),
            path: folder.join("cert.pem"),
        }
    }

    fn checks(certificate: &Certificate, host: Option<&str>) -> Vec<(Check, Level)> {
        let mut config = Config::default();
        config.api.http.https = true;
        let certificates = std::slice::from_ref(certificate);
        let findings = examine(certificates, &config, host, &Server::default());
        let not_chain = findings
            .iter()
            .filter(|it| it.check != Check::CertificateChain);
        not_chain.map(|it| (it.check, it.level)).collect()
    }

    #[test]
    fn names_and_days_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["a.example.org", "*.b.example.org", "192.0.2.1"];
        let good = made(folder.path(), -1..89, &names);
        let fine = [(Check::Certificate, Level::Ok)];
        assert_eq!(checks(&good, None), fine);
        for host in [
            "a.example.org",
            "A.Example.org",
            "x.b.example.org",
            "192.0.2.1",
        ] {
            assert_eq!(checks(&good, Some(host)), fine, "{host}");
        }
        for host in [
            "example.org",
            "b.example.org",
            "x.y.b.example.org",
            "192.0.2.2",
        ] {
            let found = checks(&good, Some(host));
            assert_eq!(found[1], (Check::CertificateName, Level::Error), "{host}");
        }
        let leaf = read(&good).unwrap().remove(0);
        let (left, all) = days(&leaf).unwrap();
        assert!((88..=89).contains(&left) && all == 90, "{left} of {all}");
        let nameless = checks(&made(folder.path(), -1..89, &[]), Some("a.example.org"));
        assert_eq!(nameless[1], (Check::CertificateName, Level::Error));
    }

    #[test]
    fn the_time_that_is_left_is_judged_by_all_of_it() {
        for (left, all, expected) in [
            (13, 90, true),
            (14, 90, false),
            (7, 45, false),
            (6, 45, true),
            (1, 6, false),
            (0, 6, true),
        ] {
            assert_eq!(is_little(left, all), expected, "{left} of {all}");
        }
        let folder = tempfile::tempdir().unwrap();
        for (days, level) in [
            (-85..5, Level::Warning),
            (-90..-1, Level::Error),
            (1..90, Level::Error),
        ] {
            let found = checks(&made(folder.path(), days.clone(), &["a"]), None);
            assert_eq!(found[1], (Check::CertificateTime, level), "{days:?}");
        }
    }

    #[test]
    fn a_certificate_that_signs_itself_is_told() {
        let Some(roots) = roots() else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let own = made(folder.path(), -1..89, &["a"]);
        let leaf = read(&own).unwrap().remove(0);
        let finding = verified(&own, &leaf, &[], &roots).unwrap();
        assert!(finding.text.contains("signed by itself"), "{finding:?}");
    }
}
