//! The configuration of the plugin's SIP stack.

use std::net::SocketAddr;
use std::time::Duration;

use portunus_core::Network;
use portunus_sip::agent::{Allow, Limits, Options, SessionTimer};
use portunus_sip::flow::Transport;
use portunus_sip::message::Host;
use portunus_sip::net::{Config, Listen, TlsFiles};
use portunus_sip::transaction::Timers;

use crate::config::{ListenTransport, SipConfig};
use crate::trunk::TrunkConfig;

/// The shortest session interval (RFC 4028 section 5).
const MIN_SESSION: Duration = Duration::from_secs(90);

impl SipConfig {
    /// Returns the configuration of the stack.
    pub(crate) fn endpoint(&self) -> Config {
        let local = self.bound();
        let listen = self.listen.iter().map(|listen| Listen {
            transport: listen.transport.into(),
            address: SocketAddr::new(local, listen.port),
        });
        // With port 0, nobody knows the port before a message leaves by it.
        let is_known = |listen: &crate::config::Listen| listen.port != 0;
        let when_needed = self.trunks.is_empty() && !self.listen.iter().any(is_known);
        Config {
            listen: listen.collect(),
            public: self.public_address.as_deref().map(host),
            tls: TlsFiles {
                certificate: self.tls_certificate.clone(),
                key: self.tls_key.clone(),
                authorities: self.tls_cacert.clone(),
            },
            when_needed,
            agent: self.options(),
            ..Config::default()
        }
    }

    fn options(&self) -> Options {
        let timeout = Duration::from_millis(self.timer_t1x64_ms.into());
        let usual = Timers::default();
        let t1 = usual.t1.min(timeout / 64);
        let limit = |most: usize, usual: usize| {
            if most == 0 {
                usize::MAX
            } else {
                most.max(usual)
            }
        };
        let limits = Limits::default();
        let (networks, trunks) = (self.outgoing.clone(), self.trunks.clone());
        let phone_trunks = self.phone_trunks.clone();
        Options {
            allow: Allow::new(move |address| {
                networks.allow(address)
                    || trunks.iter().any(|trunk| trunk.is_at(address))
                    || phone_trunks.are_at(address)
            }),
            direct: self.direct_callers.iter().map(Network::parts).collect(),
            user_agent: self.user_agent.clone(),
            timers: Timers {
                t1,
                timeout,
                ..usual
            },
            limits: Limits {
                accounts: limit(self.max_accounts, limits.accounts),
                calls: limit(self.max_calls, limits.calls),
                trusted: self.trunks.iter().flat_map(TrunkConfig::networks).collect(),
                ..limits
            },
            strangers: self.has_reception || !self.trunks.is_empty(),
            session: SessionTimer {
                offer: Some(self.session_expires).filter(|expires| !expires.is_zero()),
                min: MIN_SESSION,
            },
            ..Options::default()
        }
    }
}

impl From<ListenTransport> for Transport {
    fn from(transport: ListenTransport) -> Self {
        match transport {
            ListenTransport::Udp => Transport::Udp,
            ListenTransport::Tcp => Transport::Tcp,
            ListenTransport::Tls => Transport::Tls,
            ListenTransport::Ws => Transport::Ws,
            ListenTransport::Wss => Transport::Wss,
        }
    }
}

fn host(text: &str) -> Host {
    match text.parse() {
        Ok(address) => Host::Address(address),
        Err(_) => Host::Name(text.to_ascii_lowercase()),
    }
}
