//! Pairs of UDP ports for RTP and RTCP.

use std::ops::RangeInclusive;

use portunus_media::{IngestBind, IngestError, IngestSocket};

use crate::LegError;

/// The maximum number of pairs to try: each costs two system calls.
const TRIES: u32 = 100;

/// Binds an even port of the range and the next one (RFC 3550 section 11), starting at a random
/// pair.
pub(crate) fn bind_pair(
    range: &RangeInclusive<u16>,
    interface: Option<&str>,
) -> Result<(IngestSocket, IngestSocket), LegError> {
    let (first, last) = (*range.start(), *range.end());
    // Pairs by the halves of their even ports, from `from` on.
    let from = u32::from(first.max(1)).div_ceil(2);
    let count = (u32::from(last) + 1).div_euclid(2).saturating_sub(from);
    let start = match count {
        0 => 0,
        count => rand::random_range(0..count),
    };
    let step = count.div_ceil(TRIES).max(1);
    for n in (0..count).step_by(step as usize) {
        let even = (from + (start + n) % count) * 2;
        let Ok(even) = u16::try_from(even) else {
            continue;
        };
        let bind = |port| {
            IngestSocket::bind(IngestBind {
                interface: interface.map(str::to_owned),
                ..IngestBind::new(port)
            })
        };
        match (bind(even), bind(even.saturating_add(1))) {
            (Ok(rtp), Ok(rtcp)) => return Ok((rtp, rtcp)),
            (Err(error @ (IngestError::Interface(_) | IngestError::NoIpv4(_))), _) => {
                return Err(LegError::Bind(error));
            }
            _ => {}
        }
    }
    Err(LegError::NoPorts { first, last })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn pairs_are_even_and_within_the_range() {
        let (rtp, rtcp) = bind_pair(&(20_001..=20_999), Some("127.0.0.1")).unwrap();
        let port = rtp.port();
        assert!(port.is_multiple_of(2) && rtcp.port() == port + 1);
        assert!((20_002..=20_998).contains(&port));
        // The only pair is taken.
        let only = bind_pair(&(port..=port + 1), Some("127.0.0.1"));
        assert!(matches!(only, Err(LegError::NoPorts { .. })));
        let backward = RangeInclusive::new(9, 3);
        for none in [port + 1..=port + 1, 5..=6, backward, 0..=1] {
            let none = bind_pair(&none, None);
            assert!(matches!(none, Err(LegError::NoPorts { .. })));
        }
        let nowhere = bind_pair(&(20_000..=21_000), Some("none7"));
        assert!(matches!(nowhere, Err(LegError::Bind(_))));
    }
}
