//! The recipients of a room's media that are no participants.

use super::State;
use crate::publication::Publication;

/// The recipients of a room's media that are no participants, by their kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taps {
    /// Publishers that are being recorded.
    pub recordings: usize,
    /// RTP forwarders. Those to the same room on other servers do not count.
    pub forwarders: usize,
    /// PeerConnections whose packets an administrator captures.
    pub captures: usize,
    /// Subscriptions that belong to no participant.
    pub viewers: usize,
}

impl State {
    /// Counts the recipients of the room's media that are no participants.
    pub fn taps(&self) -> Taps {
        let publications = || self.publications.all();
        let connections = self.roster.iter().filter_map(|person| person.connection());
        let subscribers = || self.subscriptions.all();
        let connections = connections.chain(subscribers().map(|it| &it.connection));
        let media = &self.publications.media;
        let captured = connections
            .filter_map(|connection| connection.peer())
            .filter(|peer| media.is_captured(*peer));
        Taps {
            recordings: publications().filter(|it| it.is_recorded()).count(),
            forwarders: publications().flat_map(Publication::forwarders).count(),
            captures: captured.count(),
            viewers: subscribers().filter(|it| !it.has_owner()).count(),
        }
    }
}
