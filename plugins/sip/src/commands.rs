//! The commands to the SIP stack.

use std::sync::Arc;

use portunus_sip::agent::Command;

/// Passes commands to the SIP stack.
pub(crate) type Commands = Arc<dyn Fn(Command) + Send + Sync>;
