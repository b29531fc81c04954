//! The options of an agent.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::flow::Transport;
use crate::message::Host;
use crate::transaction::Timers;

/// The addresses that our requests may be sent to. By default, all.
#[derive(Clone)]
pub struct Allow(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl Allow {
    /// Allows the addresses for which `is_allowed` returns true.
    pub fn new(is_allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_allowed))
    }

    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        (self.0)(address)
    }
}

impl Default for Allow {
    fn default() -> Self {
        Self::new(|_| true)
    }
}

impl fmt::Debug for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allow").finish_non_exhaustive()
    }
}

/// The options of an agent.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Our addresses for Via and Contact: an entry for each transport and family of addresses. The
    /// first match counts, else the first of the transport.
    pub locals: Vec<Local>,
    /// User-Agent of requests and Server of responses, where the account has none. Empty sends
    /// none.
    pub user_agent: String,
    /// The timers of transactions.
    pub timers: Timers,
    /// The limits of memory and work.
    pub limits: Limits,
    /// The addresses that requests may be sent to. Responses go back to the source of the request.
    pub allow: Allow,
    /// The networks, with the length of their prefix, from which accounts without a registration
    /// can be called by name. None by default, since anybody may register any name here.
    pub direct: Vec<(IpAddr, u8)>,
    /// Whether INVITEs for no account are reported as [`super::AgentEvent::Incoming`] without an
    /// account (trunks). Otherwise they get 404.
    pub strangers: bool,
    /// Whether UPDATE (RFC 3311) is accepted and listed in Allow. Otherwise it gets 405.
    pub update: bool,
    /// Session timers (RFC 4028).
    pub session: SessionTimer,
}

/// Our address for a transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// The transport.
    pub transport: Transport,
    /// The host: an address or a name. For an outgoing WebSocket, a random name in `.invalid` (RFC
    /// 7118).
    pub host: Host,
    /// The port.
    pub port: Option<u16>,
}

/// Session timers (RFC 4028). The agent takes part whenever a peer asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimer {
    /// The interval to ask for in our own calls, at least `min`. `None` asks for no session timer.
    pub offer: Option<Duration>,
    /// The shortest accepted interval. A shorter one of a peer gets 422. RFC 4028 requires at least
    /// 90 s.
    pub min: Duration,
}

/// Limits. Everything beyond them is refused and counted.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Accounts at once.
    pub accounts: usize,
    /// Calls at once, including those that begin or end.
    pub calls: usize,
    /// Incoming calls at once that were not answered.
    pub ringing: usize,
    /// Subscriptions, publications and REFERs at once.
    pub subscriptions: usize,
    /// REFERs outside of calls at once from one address that is not trusted.
    pub refers_of_source: usize,
    /// REFERs outside of calls at once from trusted addresses for one account.
    pub refers_of_account: usize,
    /// Transactions at once. A quarter is reserved for requests within dialogs, our own requests
    /// and trusted sources.
    pub transactions: usize,
    /// Requests outside of dialogs from one address, in a burst.
    pub burst: u32,
    /// The same, each second.
    pub rate: u32,
    /// Addresses without these limits, with the length of their prefix. The registrar of an account
    /// with an entrance has none either. With [`Options::strangers`], a request from these
    /// addresses is for an account only if it names its Contact.
    pub trusted: Vec<(IpAddr, u8)>,
    /// The time after which an unanswered incoming call is refused with 480.
    pub unanswered: Duration,
    /// Redirections (3xx) that one call follows.
    pub redirections: u8,
    /// Forks that one call keeps.
    pub forks: usize,
}

impl Default for SessionTimer {
    fn default() -> Self {
        Self {
            offer: None,
            min: Duration::from_secs(90),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            accounts: 10_000,
            calls: 10_000,
            ringing: 2_000,
            subscriptions: 10_000,
            refers_of_source: 16,
            refers_of_account: 64,
            transactions: 40_000,
            burst: 100,
            rate: 50,
            trusted: Vec::new(),
            unanswered: Duration::from_secs(3600),
            redirections: 5,
            forks: 12,
        }
    }
}
