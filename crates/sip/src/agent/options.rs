//! What an agent is told once.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::flow::Transport;
use crate::message::Host;
use crate::transaction::Timers;

/// Which addresses requests of ours may be sent to. By default, all.
#[derive(Clone)]
pub struct Allow(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl Allow {
    /// Those for which `is_allowed` says so.
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

/// How an agent works.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What peers can reach us at, as it is written into Via and Contact: an entry for each transport, and for each
    /// family of addresses. The first that fits is taken; if none does, the first of the transport.
    pub locals: Vec<Local>,
    /// User-Agent of requests and Server of responses, where the account has none. Empty: none.
    pub user_agent: String,
    /// The timers of transactions.
    pub timers: Timers,
    /// What bounds memory and work.
    pub limits: Limits,
    /// Which addresses requests may be sent to. Answers go back to wherever a request came from.
    pub allow: Allow,
    /// The networks, with the length of their prefix, from which accounts without a registration are called by their names. None
    /// by default: such names are nobody's, so whoever takes one is called by it.
    pub direct: Vec<(IpAddr, u8)>,
    /// Whether INVITEs for no account are told as [`super::AgentEvent::Incoming`] without an account (trunks). If not, they are
    /// answered with 404.
    pub strangers: bool,
    /// Whether UPDATE (RFC 3311) is taken, and is listed in Allow. If not, it is answered with 405.
    pub update: bool,
    /// Session timers (RFC 4028).
    pub session: SessionTimer,
}

/// How peers reach us over a transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// The transport.
    pub transport: Transport,
    /// The host to be written: an address or a name. For an outgoing WebSocket, a random name in `.invalid` (RFC 7118).
    pub host: Host,
    /// The port to be written.
    pub port: Option<u16>,
}

/// Session timers (RFC 4028). We always take part when a peer asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimer {
    /// The interval that we ask for in our own calls; `None`: no session timer. At least `min`.
    pub offer: Option<Duration>,
    /// The shortest interval that we take; a peer's shorter one is answered with 422. At least 90 s by the RFC.
    pub min: Duration,
}

/// Bounds. What goes beyond is refused and counted.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Accounts at once.
    pub accounts: usize,
    /// Calls at once, with those that are being set up and ended.
    pub calls: usize,
    /// Calls of strangers and of accounts that ring and are not yet answered.
    pub ringing: usize,
    /// Subscriptions, publications and REFERs at once.
    pub subscriptions: usize,
    /// REFERs outside of calls at once, of one address that is not trusted.
    pub refers_of_source: usize,
    /// REFERs outside of calls at once, of trusted addresses for one account.
    pub refers_of_account: usize,
    /// Transactions at once. A quarter is kept for requests within dialogs, for our own and for trusted sources.
    pub transactions: usize,
    /// Requests outside of dialogs that one address may send, in a burst.
    pub burst: u32,
    /// The same, each second.
    pub rate: u32,
    /// Addresses to which that does not apply, with the length of their prefix. Where an account with an entrance is registered,
    /// it does not apply either. With [`Options::strangers`], what comes from these addresses is an account's only if it
    /// names its Contact.
    pub trusted: Vec<(IpAddr, u8)>,
    /// How long an incoming call may go unanswered before it is ended with 480.
    pub unanswered: Duration,
    /// Redirections (3xx) that one call follows.
    pub redirections: u8,
    /// Answers of different forks that one call keeps.
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
