//! The findings of `portunus doctor`, and their levels.

use clap::ValueEnum;
use serde::Serialize;

/// The level of a finding, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// No action is needed.
    Note,
    /// The server works, but some clients may not connect, or not for long.
    Warning,
    /// A configured feature does not work.
    Error,
}

/// The subject of a finding. Subjects are the headings of the report, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Subject {
    Configuration,
    Server,
    Addresses,
    Ports,
    Certificates,
    Connections,
    Limits,
    Clock,
    Disk,
}

/// The name of a check. Names never change, so that scripts can rely on them. docs/doctor.md
/// explains each check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Check {
    Configuration,
    Placeholder,
    PlainPages,
    PlainWebsocket,
    ProxyClients,
    UnusedCertificate,
    ServiceUser,
    ServiceFolders,
    ServicePorts,
    Server,
    Address,
    NoAddress,
    PrivateAddresses,
    LocalAddresses,
    UnusableAddress,
    PublicAddress,
    StunServer,
    PublicPorts,
    Port,
    PortTaken,
    PortDenied,
    MediaPorts,
    TurnPort,
    Firewall,
    Certificate,
    CertificateTime,
    CertificateName,
    CertificateChain,
    CertificateLoaded,
    Connection,
    OpenFiles,
    ReceiveBuffer,
    Offload,
    RealTime,
    Cores,
    Clock,
    Disk,
}

impl Check {
    /// Returns the subject of the check.
    pub(crate) fn subject(self) -> Subject {
        match self {
            Check::Configuration
            | Check::Placeholder
            | Check::PlainPages
            | Check::PlainWebsocket
            | Check::ProxyClients
            | Check::UnusedCertificate
            | Check::ServiceUser
            | Check::ServiceFolders
            | Check::ServicePorts => Subject::Configuration,
            Check::Server => Subject::Server,
            Check::Address
            | Check::NoAddress
            | Check::PrivateAddresses
            | Check::LocalAddresses
            | Check::UnusableAddress
            | Check::PublicAddress
            | Check::StunServer
            | Check::PublicPorts => Subject::Addresses,
            Check::Port
            | Check::PortTaken
            | Check::PortDenied
            | Check::MediaPorts
            | Check::TurnPort
            | Check::Firewall => Subject::Ports,
            Check::Certificate
            | Check::CertificateTime
            | Check::CertificateName
            | Check::CertificateChain
            | Check::CertificateLoaded => Subject::Certificates,
            Check::Connection => Subject::Connections,
            Check::OpenFiles
            | Check::ReceiveBuffer
            | Check::Offload
            | Check::RealTime
            | Check::Cores => Subject::Limits,
            Check::Clock => Subject::Clock,
            Check::Disk => Subject::Disk,
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    pub(crate) subject: Subject,
    pub(crate) check: Check,
    /// The observation, in whole sentences.
    pub(crate) text: String,
    /// The remedy. Findings below a warning may have one, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) change: Option<String>,
}

impl Finding {
    fn new(level: Level, check: Check, text: impl Into<String>) -> Self {
        Finding {
            level,
            subject: check.subject(),
            check,
            text: text.into(),
            change: None,
        }
    }

    pub(crate) fn ok(check: Check, text: impl Into<String>) -> Self {
        Finding::new(Level::Ok, check, text)
    }

    pub(crate) fn note(check: Check, text: impl Into<String>) -> Self {
        Finding::new(Level::Note, check, text)
    }

    pub(crate) fn warning(check: Check, text: impl Into<String>) -> Self {
        Finding::new(Level::Warning, check, text)
    }

    pub(crate) fn error(check: Check, text: impl Into<String>) -> Self {
        Finding::new(Level::Error, check, text)
    }

    /// Adds a remedy.
    pub(crate) fn change(mut self, change: impl Into<String>) -> Self {
        self.change = Some(change.into());
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn each_check_is_explained_and_has_one_name() {
        let page = include_str!("../../../../docs/doctor.md");
        for check in Check::value_variants() {
            let name = check.to_possible_value().unwrap();
            let name = name.get_name();
            assert!(page.contains(&format!("\n| `{name}` |")), "{name}");
            assert_eq!(serde_json::to_value(check).unwrap(), name);
        }
    }
}
