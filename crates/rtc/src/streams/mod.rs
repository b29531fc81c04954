//! The RTP streams of a PeerConnection: the m-line and encoding of each packet, lost packets, and
//! the RTCP about them.

mod demux;
mod nack;
mod receiver;
mod report;
mod retransmissions;
mod sender;
mod succession;
mod transport_feedback;

pub use demux::{Demux, StreamKey};
pub use nack::{MissingPackets, NackLimits};
pub use receiver::{Accepted, ReceiveCounters, ReceiveStream, ReportFigures};
pub use report::{NtpClock, SenderClock};
pub use sender::{Burst, SendCounters, SendStream, SenderFigures};
pub use succession::Succession;
pub use transport_feedback::{ArrivalLog, ArrivalReport};
