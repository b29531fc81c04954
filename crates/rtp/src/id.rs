//! Types for the identifiers and counters of RTP. They have their wire width only on the wire.

use std::fmt;

/// A synchronisation source, 32 bits on the wire (RFC 3550 section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Ssrc(pub u32);

/// A payload type, 7 bits on the wire (RFC 3550 section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Pt(pub u8);

/// The extended sequence number of a packet, with roll-overs above the 16 bits of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SeqNo(pub u64);

impl SeqNo {
    /// Returns the 16 bits in the RTP header.
    pub const fn wire(self) -> u16 {
        self.0 as u16
    }

    /// Returns the roll-over counter (RFC 3711 section 3.3.1).
    pub const fn roc(self) -> u32 {
        (self.0 >> 16) as u32
    }

    /// Extends `wire` to the sequence number nearest to `self`.
    #[must_use]
    pub const fn nearest(self, wire: u16) -> SeqNo {
        let delta = wire.wrapping_sub(self.0 as u16) as i16 as i64;
        match self.0.checked_add_signed(delta) {
            Some(seq) => SeqNo(seq),
            // It would precede the first packet of the stream, so it is ahead.
            None => SeqNo(wire as u64),
        }
    }
}

macro_rules! short_token {
    ($name:ident, $what:literal) => {
        #[doc = concat!($what, ": 1 to 16 visible ASCII characters, held inline.")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            len: u8,
            bytes: [u8; 16],
        }

        impl $name {
            /// Makes one of `text`. Returns `None` if it is empty, longer than 16 bytes, or not
            /// visible ASCII.
            pub fn new(text: &str) -> Option<Self> {
                Self::from_bytes(text.as_bytes())
            }

            /// Makes one of the bytes in a header extension. Returns `None` like [`Self::new`].
            pub fn from_bytes(text: &[u8]) -> Option<Self> {
                let valid = !text.is_empty() && text.iter().all(u8::is_ascii_graphic);
                let mut bytes = [0; 16];
                bytes.get_mut(..text.len())?.copy_from_slice(text);
                valid.then_some(Self {
                    len: text.len() as u8,
                    bytes,
                })
            }

            /// Returns the bytes.
            pub fn as_bytes(&self) -> &[u8] {
                self.bytes.get(..usize::from(self.len)).unwrap_or_default()
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                std::str::from_utf8(self.as_bytes()).unwrap_or_default()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.as_str())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

short_token!(Mid, "A media identification (`a=mid`, RFC 8843)");
short_token!(Rid, "An RTP stream identifier (`a=rid`, RFC 8851)");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_crosses_the_wrap_both_ways() {
        assert_eq!(SeqNo(65_535).nearest(0), SeqNo(65_536));
        assert_eq!(SeqNo(65_536).nearest(65_535), SeqNo(65_535));
        assert_eq!(SeqNo(3).nearest(65_535), SeqNo(65_535));
    }

    #[test]
    fn tokens_refuse_what_is_too_long_or_blank() {
        assert_eq!(
            Mid::new("audio0").map(|m| m.to_string()).as_deref(),
            Some("audio0")
        );
        assert!(Mid::new("").is_none());
        assert!(Mid::new("12345678901234567").is_none());
        assert!(Rid::new("a b").is_none());
    }
}
