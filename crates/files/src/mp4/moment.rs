//! The time of day at a position of a file: a producer reference time (ISO/IEC 14496-12 section
//! 8.16.5). The header has whole seconds only.

use mp4_atom::{Encode, Prft, ReferenceTime};

use crate::mjr::UnixMicros;

/// The seconds from 1900, NTP's origin, to 1970.
const NTP_EPOCH: u64 = 2_208_988_800;
const MICROS: u64 = 1_000_000;

/// Appends the time of day `start` of time 0, for track `id`.
pub(super) fn put(id: u32, start: UnixMicros, out: &mut Vec<u8>) {
    let moment = Prft {
        reference_track_id: id,
        ntp_timestamp: ntp(start),
        media_time: 0,
        utc_time_semantics: ReferenceTime::RealTime,
    };
    let before = out.len();
    if moment.encode(out).is_err() {
        out.truncate(before);
    }
}

/// Converts to NTP time: 32.32 bits of seconds since 1900, which wrap in 2036.
fn ntp(UnixMicros(micros): UnixMicros) -> u64 {
    let seconds = (micros / MICROS).wrapping_add(NTP_EPOCH);
    let fraction = ((micros % MICROS) << 32).div_ceil(MICROS);
    (seconds << 32) | fraction
}

/// Converts from NTP time. Times before 1970 count as after 2036.
pub(crate) fn of_ntp(ntp: u64) -> UnixMicros {
    let seconds = (ntp >> 32).wrapping_sub(NTP_EPOCH) & u64::from(u32::MAX);
    let fraction = ((ntp & u64::from(u32::MAX)) * MICROS) >> 32;
    UnixMicros(seconds * MICROS + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_to_the_microsecond_beyond_2036_too() {
        for micros in [0, 1, 999_999, 1_700_000_000_123_457, 2_500_000_000_999_999] {
            assert_eq!(of_ntp(ntp(UnixMicros(micros))), UnixMicros(micros));
        }
    }
}
