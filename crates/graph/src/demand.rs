//! What the receivers of a source can see of it.

use crate::{ENCODINGS, RouteOptions};

/// The encodings and layers of a source that its receivers can see, by their options. The default
/// is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand {
    /// A bit for each simulcast encoding, bit 0 for the lowest. 0 means that nobody looks.
    pub encodings: u8,
    /// The highest SVC spatial layer, 0 to 2.
    pub spatial: u8,
    /// The highest temporal layer, 0 to 2.
    pub temporal: u8,
}

impl Demand {
    /// Nobody looks.
    pub const NOTHING: Self = Self {
        encodings: 0,
        spatial: 0,
        temporal: 0,
    };

    /// Returns the demand of a route that may choose among the encodings up to the wanted one:
    /// lower ones are needed as soon as its link cannot carry that.
    pub fn up_to(options: &RouteOptions, encodings: u8) -> Self {
        let top = options.substream.min(encodings.saturating_sub(1));
        let top = top.min(ENCODINGS as u8 - 1);
        Self::of(options, ((1_u16 << (top + 1)) - 1) as u8)
    }

    /// Returns the demand of a route that takes this encoding only.
    pub fn only(options: &RouteOptions, encoding: u8) -> Self {
        let encoding = encoding.min(ENCODINGS as u8 - 1);
        Self::of(options, 1 << encoding)
    }

    fn of(options: &RouteOptions, encodings: u8) -> Self {
        match options.enabled {
            true => Self {
                encodings,
                spatial: options.spatial.min(2),
                temporal: options.temporal.min(2),
            },
            false => Self::NOTHING,
        }
    }

    /// Returns whether nobody looks.
    pub const fn is_nothing(self) -> bool {
        self.encodings == 0
    }

    /// Returns the highest encoding, or `None` if nobody looks.
    pub fn top(self) -> Option<u8> {
        let below = u8::BITS - self.encodings.leading_zeros();
        below.checked_sub(1).map(|top| top as u8)
    }

    /// Returns whether an encoding is wanted.
    pub fn wants(self, encoding: u8) -> bool {
        encoding < u8::BITS as u8 && self.encodings & (1 << encoding) != 0
    }

    /// Returns what either wants.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        match (self.is_nothing(), other.is_nothing()) {
            (true, _) => other,
            (_, true) => self,
            (false, false) => Self {
                encodings: self.encodings | other.encodings,
                spatial: self.spatial.max(other.spatial),
                temporal: self.temporal.max(other.temporal),
            },
        }
    }

    /// Returns it as a number, for an atomic.
    pub fn to_bits(self) -> u32 {
        u32::from_be_bytes([0, self.encodings, self.spatial, self.temporal])
    }

    /// Returns the demand of such a number.
    pub fn from_bits(bits: u32) -> Self {
        let [_, encodings, spatial, temporal] = bits.to_be_bytes();
        Self {
            encodings,
            spatial,
            temporal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(substream: u8, spatial: u8, temporal: u8) -> RouteOptions {
        RouteOptions {
            substream,
            spatial,
            temporal,
            ..RouteOptions::default()
        }
    }

    #[test]
    fn a_route_can_see_the_encodings_up_to_the_wanted_one() {
        for (wanted, encodings, mask) in [(0, 3, 1), (1, 3, 3), (2, 3, 7), (2, 1, 1), (9, 9, 7)] {
            let demand = Demand::up_to(&options(wanted, 2, 2), encodings);
            assert_eq!(demand.encodings, mask, "{wanted} of {encodings}");
        }
        assert_eq!(Demand::only(&options(2, 0, 1), 2).encodings, 4);
    }

    #[test]
    fn a_closed_gate_wants_nothing_and_adds_nothing() {
        let closed = RouteOptions {
            enabled: false,
            ..options(2, 2, 2)
        };
        let closed = Demand::up_to(&closed, 3);
        assert!(closed.is_nothing() && closed.top().is_none());
        let low = Demand::up_to(&options(0, 0, 1), 3);
        assert_eq!(closed.union(low), low);
        assert_eq!(low.union(closed), low);
    }

    #[test]
    fn the_union_has_what_either_wants() {
        let one = Demand::only(&options(2, 0, 2), 2);
        let other = Demand::up_to(&options(0, 1, 0), 3);
        let both = one.union(other);
        assert_eq!((both.encodings, both.spatial, both.temporal), (5, 1, 2));
        assert_eq!(both.top(), Some(2));
        assert!(both.wants(0) && !both.wants(1) && both.wants(2) && !both.wants(200));
        assert_eq!(Demand::from_bits(both.to_bits()), both);
    }
}
