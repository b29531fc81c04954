//! The receiver of what a server sends.

use std::task::{Context, Poll};

use crate::{Medium, RtspError};

/// The receiver of packets. Media are counted in the order of the last [`Sink::connected`].
pub trait Sink: Send {
    /// Notes that a session plays these media.
    fn connected(&mut self, media: &[Medium]);

    /// Notes that the session has ended, or failed to start. It will be retried.
    fn lost(&mut self, error: &RtspError);

    /// Takes an RTP packet, unchanged.
    fn packet(&mut self, medium: usize, packet: &[u8]);

    /// Takes a sender report: NTP time (32.32 bits), and the RTP timestamp at that time.
    fn report(&mut self, medium: usize, ntp: u64, timestamp: u32);

    /// Returns the next RTCP for a medium: a compound packet (RFC 3550 section 6.1), for example
    /// with keyframe requests (RFC 4585 section 6.3.1). It is polled while a session plays.
    fn poll_rtcp(&mut self, _context: &mut Context<'_>) -> Poll<(usize, Vec<u8>)> {
        Poll::Pending
    }
}
