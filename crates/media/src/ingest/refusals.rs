//! Why an ingest refuses datagrams, and when that is logged.

use std::time::{Duration, Instant};

use super::continuity::Misplaced;

/// Refusals of one kind are logged again after this time without any.
const PAUSE: Duration = Duration::from_secs(10);

/// Why an ingest refused a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refused {
    /// It is not RTP, RTCP or text, whichever is expected.
    Malformed,
    /// It was not encrypted with the SRTP key of the ingest.
    Unauthentic,
    /// It has another payload type than agreed.
    PayloadType,
    /// It has another SSRC while the present sender is active.
    Foreign,
    /// It is longer than 1,800 bytes.
    TooLong,
    /// The control plane sent packets faster than the worker takes them.
    Overrun,
    /// It came too late or twice, or is the first packet of what may be a restarted sender.
    Late,
}

impl Refused {
    /// The number of reasons.
    pub const COUNT: usize = 7;
    /// All reasons, in the order of [`Refused::index`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::Malformed,
        Self::Unauthentic,
        Self::PayloadType,
        Self::Foreign,
        Self::TooLong,
        Self::Overrun,
        Self::Late,
    ];

    /// The position of the reason, from 0 on.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name in counters and requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unauthentic => "unauthentic",
            Self::PayloadType => "payload_type",
            Self::Foreign => "foreign",
            Self::TooLong => "too_long",
            Self::Overrun => "overrun",
            Self::Late => "late",
        }
    }

    /// Whether something needs fixing. Late packets are no fault.
    pub fn is_fault(self) -> bool {
        self != Self::Late
    }

    /// The text for the log.
    pub(crate) fn cause(self) -> &'static str {
        match self {
            Self::Malformed => "what comes is not RTP (or not text, for data)",
            Self::Unauthentic => {
                "what comes does not open with the SRTP key: another key or suite, or no SRTP at all"
            }
            Self::PayloadType => "what comes has another payload type than was agreed on",
            Self::Foreign => {
                "another sender holds the port, and has to be silent for the collision time first"
            }
            Self::TooLong => {
                "packets are longer than 1,800 bytes: have the sender make them shorter"
            }
            Self::Overrun => "the worker does not keep up with what comes",
            Self::Late => "what comes is late, or was there already",
        }
    }
}

impl From<Misplaced> for Refused {
    fn from(misplaced: Misplaced) -> Self {
        match misplaced {
            Misplaced::Foreign => Self::Foreign,
            Misplaced::Late | Misplaced::Repeated | Misplaced::Suspect => Self::Late,
        }
    }
}

/// The recent faults of an ingest.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    last: [Option<Instant>; Refused::COUNT],
}

impl Refusals {
    /// Notes a fault. Returns whether it is the first of its kind for a while.
    pub(crate) fn begin(&mut self, why: Refused, now: Instant) -> bool {
        let Some(last) = self.last.get_mut(why.index()).filter(|_| why.is_fault()) else {
            return false;
        };
        last.replace(now)
            .is_none_or(|last| now.saturating_duration_since(last) >= PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_begin_once_and_anew_after_a_pause() {
        let mut refusals = Refusals::default();
        let start = Instant::now();
        let mut begins = |why, seconds| refusals.begin(why, start + Duration::from_secs(seconds));
        assert!(begins(Refused::Unauthentic, 0));
        let again = (1..100).filter(|second| begins(Refused::Unauthentic, *second));
        assert_eq!(again.count(), 0);
        assert!(begins(Refused::TooLong, 99));
        assert!(begins(Refused::Unauthentic, 109));
        assert!(!begins(Refused::Late, 200));
    }

    #[test]
    fn indices_are_places_in_the_list() {
        let indices = Refused::ALL.map(Refused::index);
        assert!(indices.into_iter().eq(0..Refused::COUNT));
    }
}
