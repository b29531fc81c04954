//! Why an ingest does not take what comes, and when to say so.

use std::time::{Duration, Instant};

use super::continuity::Misplaced;

/// Refusals of a kind that come after so much time without any have begun anew.
const PAUSE: Duration = Duration::from_secs(10);

/// Why an ingest did not take a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refused {
    /// It is not RTP, or RTCP where that is expected; or no message of text.
    Malformed,
    /// It does not open with the ingest's SRTP key.
    Unauthentic,
    /// It has another payload type than the one that was agreed on.
    PayloadType,
    /// It has another SSRC than the present sender's, who is not silent.
    Foreign,
    /// It is longer than what is relayed (1,800 bytes).
    TooLong,
    /// It came from the control plane faster than the worker takes packets.
    Overrun,
    /// It came too late or twice, or is the first of what may be a sender that began anew: networks do that.
    Late,
}

impl Refused {
    /// How many there are.
    pub const COUNT: usize = 7;
    /// All, in the order of their [`Refused::index`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::Malformed,
        Self::Unauthentic,
        Self::PayloadType,
        Self::Foreign,
        Self::TooLong,
        Self::Overrun,
        Self::Late,
    ];

    /// From 0 on.
    pub fn index(self) -> usize {
        self as usize
    }

    /// As counters and requests name it.
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

    /// Whether somebody has to mend something: what networks do to packets is no fault.
    pub fn is_fault(self) -> bool {
        self != Self::Late
    }

    /// What a log says.
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

/// The faults that an ingest had lately.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    last: [Option<Instant>; Refused::COUNT],
}

impl Refusals {
    /// Notes one; says whether faults of its kind have just begun.
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
