//! The stamp at the end of each payload that hammer sends: the packet's number and its time.

use std::time::Duration;

/// The length of a stamp, with which a payload ends.
pub const STAMP_BYTES: usize = 16;

const MAGIC: [u8; 2] = [0xA5, 0x5E];

/// A packet's number and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The stream: 0 is video, 1 is audio.
    pub stream: u8,
    /// The packet's number in the stream, from 0, modulo 2^40.
    pub number: u64,
    /// The time when it was passed to the kernel, since 1970.
    pub sent: Duration,
}

/// The delay of a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delayed {
    /// The time when it left the source, since 1970.
    pub sent: Duration,
    /// The time from then to its arrival, in microseconds.
    pub us: f64,
}

impl Stamp {
    /// Writes the stamp to the end of `payload`. Returns whether there was room.
    pub fn write(&self, payload: &mut [u8]) -> bool {
        let Some(place) = payload.last_chunk_mut::<STAMP_BYTES>() else {
            return false;
        };
        let [_, _, _, n0, n1, n2, n3, n4] = self.number.to_be_bytes();
        let [t0, t1, t2, t3, t4, t5, t6, t7] = (self.sent.as_nanos() as u64).to_be_bytes();
        let [m0, m1] = MAGIC;
        *place = [
            m0,
            m1,
            self.stream,
            n0,
            n1,
            n2,
            n3,
            n4,
            t0,
            t1,
            t2,
            t3,
            t4,
            t5,
            t6,
            t7,
        ];
        true
    }

    /// Reads the stamp from the end of a payload without padding, if there is any.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let [m0, m1, stream, n0, n1, n2, n3, n4, time @ ..] =
            *payload.last_chunk::<STAMP_BYTES>()?;
        ([m0, m1] == MAGIC).then_some(Self {
            stream,
            number: u64::from_be_bytes([0, 0, 0, n0, n1, n2, n3, n4]),
            sent: Duration::from_nanos(u64::from_be_bytes(time)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::wall_clock;

    #[test]
    fn a_stamp_is_read_back_from_any_payload_that_holds_it() {
        let stamp = Stamp {
            stream: 1,
            number: 0x0012_3456_789A,
            sent: wall_clock(),
        };
        for len in [16, 17, 1_188] {
            let mut payload = vec![7; len];
            assert!(stamp.write(&mut payload));
            assert_eq!(Stamp::read(&payload), Some(stamp));
        }
        assert!(!stamp.write(&mut [0; 15]));
        assert_eq!(Stamp::read(&[0; 40]), None);
        assert_eq!(Stamp::read(&[]), None);
    }
}
