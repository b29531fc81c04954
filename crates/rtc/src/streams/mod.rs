//! The RTP streams of a PeerConnection: the m-line and encoding of each packet, lost packets, and
//! the RTCP about them.

mod demux;
mod nack;
mod receive;
mod report;
mod retransmissions;
mod send;
mod succession;
mod transport_feedback;

pub use demux::{Demux, StreamKey};
pub use nack::{MissingPackets, NackLimits};
pub use receive::{Accepted, ReceiveCounters, ReceiveStream, ReportFigures};
pub use report::{NtpClock, SenderClock};
pub use send::{Burst, SendCounters, SendStream, SenderFigures};
pub use succession::Succession;
pub use transport_feedback::{ArrivalLog, ArrivalReport};
