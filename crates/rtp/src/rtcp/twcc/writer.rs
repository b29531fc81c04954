use std::time::Duration;

use super::chunk::{ChunkEncoder, Symbol};
use super::{HEAD_LEN, REFERENCE_TICKS, TICK, Twcc};
use crate::Ssrc;
use crate::rtcp::TRANSPORT_FEEDBACK;
use crate::rtcp::frame::{Body, Out};

/// Writes a feedback message.
#[derive(Debug, Clone, Copy)]
pub struct TwccWriter<'a> {
    sender: Ssrc,
    media: Ssrc,
    feedback_count: u8,
    reports: Reports<'a>,
    /// The number of reported packets, arrived or not.
    count: u16,
    chunks: usize,
    delta_bytes: usize,
}

impl<'a> TwccWriter<'a> {
    /// Reports on the packets from number `base` on. `arrivals` lists those that arrived, by
    /// ascending number, with the time on a clock of the reporter. Those in between count as lost.
    /// Numbers that do not ascend are skipped.
    ///
    /// Takes as many as fit `max_size` bytes and one message, whose arrivals must not be more than
    /// 8.19 s apart. Returns the others too. Returns `None` if none can be taken.
    pub fn new(
        (sender, media): (Ssrc, Ssrc),
        feedback_count: u8,
        base: u16,
        arrivals: &'a [(u16, Duration)],
        max_size: usize,
    ) -> Option<(Self, &'a [(u16, Duration)])> {
        let first = arrivals.iter().find(|arrival| is_ahead(base, arrival.0))?;
        let reference = ticks(first.1).div_euclid(REFERENCE_TICKS);
        let mut reports = Reports {
            base,
            reference,
            arrivals,
        };
        let mut chunks = ChunkCounter::default();
        let (mut taken, mut count, mut delta_bytes) = (0, 0, 0);
        for report in reports.iter() {
            let mut trial = chunks;
            trial.push(report);
            let trial_bytes = delta_bytes + report.delta_len();
            let body = HEAD_LEN + trial.chunks_if_finished() * 2 + trial_bytes;
            if 4 + body.next_multiple_of(4) > max_size {
                break;
            }
            (chunks, delta_bytes) = (trial, trial_bytes);
            (taken, count) = (report.index + 1, report.offset + 1);
        }
        let (reported, rest) = arrivals.split_at_checked(taken).filter(|_| count > 0)?;
        reports.arrivals = reported;
        let chunks = chunks.chunks_if_finished();
        Some((
            Self {
                sender,
                media,
                feedback_count,
                reports,
                count,
                chunks,
                delta_bytes,
            },
            rest,
        ))
    }

    /// Returns the number after the last reported packet: the next message's base.
    pub fn next_base(&self) -> u16 {
        self.reports.base.wrapping_add(self.count)
    }
}

impl Body for TwccWriter<'_> {
    const PACKET_TYPE: u8 = TRANSPORT_FEEDBACK;

    fn count(&self) -> usize {
        usize::from(Twcc::FORMAT)
    }

    fn len(&self) -> usize {
        (HEAD_LEN + self.chunks * 2 + self.delta_bytes).next_multiple_of(4)
    }

    fn write(&self, mut out: Out<'_>) -> Option<()> {
        out.put_ssrc(self.sender)?;
        out.put_ssrc(self.media)?;
        out.put_u16(self.reports.base)?;
        out.put_u16(self.count)?;
        let [.., r0, r1, r2] = self.reports.reference.to_be_bytes();
        out.put(&[r0, r1, r2, self.feedback_count])?;
        let mut encoder = ChunkEncoder::default();
        let mut told = 0;
        for report in self.reports.iter() {
            for symbol in report.symbols(told) {
                if let Some(chunk) = encoder.push(symbol) {
                    out.put(&chunk)?;
                }
            }
            told = report.offset + 1;
        }
        if let Some(chunk) = encoder.finish() {
            out.put(&chunk)?;
        }
        for report in self.reports.iter() {
            match report.symbol {
                Symbol::LargeDelta => out.put(&report.delta.to_be_bytes())?,
                Symbol::SmallDelta | Symbol::Missing => out.put(&[report.delta as u8])?,
            }
        }
        out.pad()
    }
}

/// Arrivals relative to a base number and a reference time.
#[derive(Debug, Clone, Copy)]
struct Reports<'a> {
    base: u16,
    /// In units of 64 ms.
    reference: i64,
    arrivals: &'a [(u16, Duration)],
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy)]
struct Report {
    /// The index in the list of arrivals.
    index: usize,
    /// The number, relative to the base.
    offset: u16,
    symbol: Symbol,
    /// The ticks since the previous arrival.
    delta: i16,
}

impl<'a> Reports<'a> {
    /// Ends at a delta that cannot be written.
    fn iter(self) -> impl Iterator<Item = Report> + 'a {
        let mut before = self.reference * REFERENCE_TICKS;
        let mut least = 0;
        let ascending = self
            .arrivals
            .iter()
            .enumerate()
            .filter_map(move |(index, arrival)| {
                let offset = arrival.0.wrapping_sub(self.base);
                let ascends = is_ahead(self.base, arrival.0) && offset >= least;
                least = if ascends { offset + 1 } else { least };
                ascends.then_some((index, offset, ticks(arrival.1)))
            });
        ascending.map_while(move |(index, offset, arrival)| {
            let delta = i16::try_from(arrival.checked_sub(before)?).ok()?;
            before = arrival;
            let small = (0..256).contains(&delta);
            let symbol = if small {
                Symbol::SmallDelta
            } else {
                Symbol::LargeDelta
            };
            Some(Report {
                index,
                offset,
                symbol,
                delta,
            })
        })
    }
}

impl Report {
    /// Returns the symbols of the packets from `told` up to this one.
    fn symbols(self, told: u16) -> impl Iterator<Item = Symbol> {
        (told..self.offset)
            .map(|_| Symbol::Missing)
            .chain([self.symbol])
    }

    fn delta_len(self) -> usize {
        if self.symbol == Symbol::LargeDelta {
            2
        } else {
            1
        }
    }
}

/// Counts chunks without storing them.
#[derive(Debug, Clone, Copy, Default)]
struct ChunkCounter {
    encoder: ChunkEncoder,
    told: u16,
    chunks: usize,
}

impl ChunkCounter {
    fn push(&mut self, report: Report) {
        for symbol in report.symbols(self.told) {
            self.chunks += usize::from(self.encoder.push(symbol).is_some());
        }
        self.told = report.offset + 1;
    }

    fn chunks_if_finished(&self) -> usize {
        self.chunks + usize::from(self.encoder.finish().is_some())
    }
}

/// A number more than half the range ahead is behind.
fn is_ahead(base: u16, sequence: u16) -> bool {
    sequence.wrapping_sub(base) < 0x8000
}

fn ticks(arrival: Duration) -> i64 {
    i64::try_from(arrival.as_micros() / TICK.as_micros()).unwrap_or(i64::MAX)
}
