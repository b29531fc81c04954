//! The state that all handles of the plugin share.

use std::sync::Arc;

use portunus_call::CallSettings;

use crate::counts::Counts;

/// The state that all handles of the plugin share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Arc<CallSettings>,
    /// Strangers may call, too.
    pub(crate) public: bool,
    pub(crate) counts: Counts,
}
