//! The RTP streams of a PeerConnection: which packet belongs to which m-line and encoding, what is
//! missing, and the RTCP that says so.

mod demux;
mod left_again;
mod nack;
mod receive;
mod report;
mod send;
mod succession;
mod transport_feedback;

pub use demux::{Demux, StreamKey};
pub use nack::{MissingPackets, NackLimits};
pub use receive::{Accepted, ReceiveCounters, ReceiveStream, ReportFigures};
pub use report::{NtpClock, SenderClock};
pub use send::{Burst, SendCounters, SendStream, SenderFigures};
pub use succession::Succession;
pub use transport_feedback::ArrivalLog;
