//! The clients of a mountpoint.

use portunus_core::Notice;

use super::Mountpoint;

/// Tells the clients of mountpoints apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClientId(pub(crate) u64);

/// A client of a mountpoint: a viewer, or the publisher.
pub(crate) trait Client: Send + Sync {
    fn id(&self) -> ClientId;

    /// Sends an event that all viewers get.
    fn send_notice(&self, notice: &Notice);

    /// Ends what the client does with `mountpoint`, with this `status` in the last event.
    fn dismiss(&self, mountpoint: &Mountpoint, status: &'static str);

    /// Makes the missing routes from the mountpoint's streams, and opens or closes all of them.
    fn apply_settings(&self, mountpoint: &Mountpoint);

    /// Ends the routes from `streams`, whose sources have ended.
    fn forget_routes(&self, mountpoint: &Mountpoint, streams: &[usize]);
}
