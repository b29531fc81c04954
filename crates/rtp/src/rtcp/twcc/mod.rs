//! Transport-wide congestion control feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01).

mod chunk;
mod writer;

use std::time::Duration;

use super::frame::{FeedbackFields, Frame};
use crate::{RtpError, Ssrc};
use chunk::Symbol;

pub use writer::TwccWriter;

/// The unit of arrival times.
const TICK: Duration = Duration::from_micros(250);
/// The ticks in a step of the reference time (64 ms).
const REFERENCE_TICKS: i64 = 256;
/// The bytes before the chunks: two sources, base, count, reference time and feedback count.
const HEAD_LEN: usize = 16;

/// View of a feedback message: the packets that arrived, and when.
#[derive(Debug, Clone, Copy)]
pub struct Twcc<'a> {
    /// The sender of the report.
    pub sender: Ssrc,
    /// A stream of the transport. Often 0.
    pub media: Ssrc,
    /// The transport-wide number of the first packet.
    pub base: u16,
    /// The number of reported packets, arrived or not.
    pub count: u16,
    /// The reference time of the arrivals, in 64 ms of the reporter's clock (24 bits).
    pub reference_time: u32,
    /// The number of the feedback message, for finding lost ones.
    pub feedback_count: u8,
    chunks: &'a [[u8; 2]],
    deltas: &'a [u8],
}

/// The status of a reported packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwccStatus {
    /// The transport-wide number.
    pub sequence: u16,
    /// The arrival on the reporter's clock, or `None` if it did not arrive. The clock wraps at
    /// [`Twcc::CLOCK_PERIOD`].
    pub arrival: Option<Duration>,
}

impl<'a> Twcc<'a> {
    pub(super) const FORMAT: u8 = 15;

    /// The time after which the reporter's clock wraps (2^24 times 64 ms).
    pub const CLOCK_PERIOD: Duration = Duration::from_millis(64 << 24);

    pub(super) fn parse(frame: Frame<'a>) -> Result<Self, RtpError> {
        let FeedbackFields { sender, media, .. } = frame.feedback()?;
        let (head, rest) = frame.split_body::<HEAD_LEN>()?;
        let [.., b0, b1, c0, c1, r0, r1, r2, feedback_count] = *head;
        let count = u16::from_be_bytes([c0, c1]);
        // The chunks end after the last packet. The deltas follow.
        let (all, _) = rest.as_chunks::<2>();
        let mut told = 0;
        let mut used = 0;
        for chunk in all {
            if told >= usize::from(count) {
                break;
            }
            told += chunk::symbols(*chunk).count();
            used += 1;
        }
        let truncated = RtpError::Truncated {
            expected: usize::from(count),
            actual: told,
        };
        if told < usize::from(count) {
            return Err(truncated);
        }
        Ok(Self {
            sender,
            media,
            base: u16::from_be_bytes([b0, b1]),
            count,
            reference_time: u32::from_be_bytes([0, r0, r1, r2]),
            feedback_count,
            chunks: all.get(..used).ok_or(truncated)?,
            deltas: rest.get(used * 2..).ok_or(truncated)?,
        })
    }

    /// Returns the packets in the order of their numbers. Ends early if the deltas do.
    pub fn statuses(&self) -> impl Iterator<Item = TwccStatus> + 'a {
        let (base, mut deltas) = (self.base, self.deltas);
        let mut ticks = i64::from(self.reference_time) * REFERENCE_TICKS;
        let symbols = self.chunks.iter().flat_map(|chunk| chunk::symbols(*chunk));
        (0..self.count)
            .zip(symbols)
            .map_while(move |(offset, symbol)| {
                let delta = match symbol {
                    Symbol::Missing => None,
                    Symbol::SmallDelta => Some(i64::from(*deltas.split_off_first()?)),
                    Symbol::LargeDelta => {
                        let (bytes, rest) = deltas.split_first_chunk()?;
                        deltas = rest;
                        Some(i64::from(i16::from_be_bytes(*bytes)))
                    }
                };
                let arrival = delta.map(|delta| {
                    ticks += delta;
                    // It is negative only if the reporter's clock wraps.
                    Duration::from_micros(u64::try_from(ticks).unwrap_or(0) * 250)
                });
                Some(TwccStatus {
                    sequence: base.wrapping_add(offset),
                    arrival,
                })
            })
    }
}
