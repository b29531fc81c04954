//! What all phones share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use portunus_core::LogGate;
use portunus_sip::agent::{CallId, Command, ReferId};
use tokio::sync::Semaphore;

use crate::commands::Commands;
use crate::config::SipConfig;
use crate::directory::Directory;
use crate::limits::{MAX_OUTSIDE_TRANSFERS, MAX_TRANSFERS};
use crate::media::MediaContext;

/// The settings, the directory, and the limits that hold for all phones together.
pub(crate) struct Common {
    pub(crate) config: Arc<SipConfig>,
    pub(crate) context: MediaContext,
    pub(crate) directory: Directory,
    /// The server takes no new calls.
    pub(crate) draining: AtomicBool,
    pub(crate) forbidden_log: LogGate,
    commands: Commands,
    next: AtomicU64,
    /// The room for transfers, and for those from outside of calls.
    pub(super) transfers: Arc<Semaphore>,
    pub(super) outside_transfers: Arc<Semaphore>,
}

impl Common {
    pub(crate) fn new(config: Arc<SipConfig>, context: MediaContext, commands: Commands) -> Self {
        Common {
            directory: Directory::new(&config),
            config,
            context,
            draining: AtomicBool::new(false),
            forbidden_log: LogGate::default(),
            commands,
            next: AtomicU64::new(1),
            transfers: Arc::new(Semaphore::new(MAX_TRANSFERS)),
            outside_transfers: Arc::new(Semaphore::new(MAX_OUTSIDE_TRANSFERS)),
        }
    }

    /// Passes a command to the SIP stack.
    pub(crate) fn command(&self, command: Command) {
        (self.commands)(command);
    }

    /// Refuses a call.
    pub(crate) fn reject(&self, call: CallId, code: u16, headers: Vec<(String, String)>) {
        self.command(Command::Reject {
            call,
            code,
            reason: None,
            headers,
        });
    }

    /// Declines a transfer that a peer asks for.
    pub(crate) fn decline_refer(&self, refer: ReferId) {
        self.command(Command::NotifyRefer {
            refer,
            code: 603,
            reason: None,
            last: true,
        });
    }

    /// Returns a number that nothing else in the plugin has.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }
}
