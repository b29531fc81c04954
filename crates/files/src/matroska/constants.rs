//! Constants of the format.

/// The tags of G.711 in a WAVEFORMATEX structure.
pub(crate) const MU_LAW: u16 = 7;
pub(crate) const A_LAW: u16 = 6;

/// The µs from 1970 to 2001, the origin of dates.
pub(crate) const EPOCH: i64 = 978_307_200_000_000;
