//! Accounts as the SIP stack knows them.

use portunus_sip::agent::{Profile, Registration};
use portunus_sip::digest::Credentials;
use portunus_sip::flow::Transport;

use crate::account::{AccountSpec, Secret};
use crate::config::SipConfig;

/// Makes the stack's profile of an account.
pub(crate) fn profile(spec: &AccountSpec, config: &SipConfig) -> Profile {
    let keepalive = config.keepalive_interval;
    let registration = spec.registers.then(|| Registration {
        registrar: spec.proxy.clone(),
        expires: spec.ttl,
        headers: spec.headers.clone(),
        keepalive: (!keepalive.is_zero()).then_some(keepalive),
        // Clients get the failure, and try again.
        retry: false,
    });
    let credentials = spec.secret.as_ref();
    Profile {
        identity: spec.identity.clone(),
        display_name: spec.display_name.clone().unwrap_or_default(),
        credentials: credentials.and_then(|secret| credentials_of(spec, secret, None)),
        registration,
        outbound_proxy: spec.outbound_proxy.clone(),
        transport: spec.transport(),
        user_agent: spec.user_agent.clone(),
        contact_params: spec.contact_params.clone(),
        behind_nat: config.behind_nat,
        refers: true,
        entrance: false,
        trace: config.events,
    }
}

/// Returns the credentials of an account, or of one call of it. Returns `None` for an unknown kind
/// of hash.
pub(crate) fn credentials_of(
    spec: &AccountSpec,
    secret: &Secret,
    authuser: Option<&str>,
) -> Option<Credentials> {
    let user = authuser.or(spec.authuser.as_deref()).unwrap_or(&spec.user);
    match secret {
        Secret::Password(password) => Some(Credentials::password(user, password)),
        Secret::Ha1(ha1) => Credentials::ha1(user, ha1),
    }
}

impl AccountSpec {
    /// Returns the requested transport.
    fn transport(&self) -> Option<Transport> {
        match (self.tcp, self.udp) {
            (true, _) => Some(Transport::Tcp),
            (false, true) => Some(Transport::Udp),
            (false, false) => None,
        }
    }
}
