//! Where what is played goes.

use std::fmt;

use portunus_media::ingest::{FeedError, PacketFeed};

/// What takes a message.
type TakeMessage = dyn Fn(&[u8]) + Send + Sync;

/// Where the packets of a track go.
pub enum Feed {
    /// RTP packets, to an ingest.
    Packets(PacketFeed),
    /// Messages, which are no RTP; it must not block.
    Messages(Box<TakeMessage>),
}

impl From<PacketFeed> for Feed {
    fn from(feed: PacketFeed) -> Self {
        Feed::Packets(feed)
    }
}

/// Nobody takes what is fed any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

impl Feed {
    /// Hands over a packet. What finds no room is lost, and counted where it is missed.
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

    /// Says which time of the day a timestamp stands for. A report that finds no room comes again.
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
