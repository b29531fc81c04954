//! The destinations of played packets.

use std::fmt;

use portunus_media::ingest::{FeedError, PacketFeed};

/// Takes a message.
type TakeMessage = dyn Fn(&[u8]) + Send + Sync;

/// The destination of a track.
pub enum Feed {
    /// RTP packets for an ingest.
    Packets(PacketFeed),
    /// Messages, which are not RTP. The function must not block.
    Messages(Box<TakeMessage>),
}

impl From<PacketFeed> for Feed {
    fn from(feed: PacketFeed) -> Self {
        Feed::Packets(feed)
    }
}

/// The feed has no receiver any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

impl Feed {
    /// Sends a packet. A full ingest drops it and counts it.
    pub(crate) fn send(&self, packet: &[u8]) -> Result<(), Gone> {
        match self {
            Feed::Packets(feed) => match feed.send(0, packet) {
                Err(FeedError::Gone) => Err(Gone),
                _ => Ok(()),
            },
            Feed::Messages(send) => {
                send(packet);
                Ok(())
            }
        }
    }

    /// Reports the time of day of a timestamp. A dropped report is repeated later.
    pub(crate) fn report(&self, ntp: u64, timestamp: u32) {
        if let Feed::Packets(feed) = self {
            let _ = feed.sender_report(0, ntp, timestamp);
        }
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Feed::Packets(_) => "Packets",
            Feed::Messages(_) => "Messages",
        })
    }
}
