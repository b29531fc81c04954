//! Elements as bytes (RFC 8794), where the library does not fit: sizes of a fixed length, or
//! unknown ones.

/// The identifier of an element, as in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(pub u32);

impl Id {
    pub const EBML: Id = Id(0x1a45_dfa3);
    pub const SEGMENT: Id = Id(0x1853_8067);
    pub const SEEK_HEAD: Id = Id(0x114d_9b74);
    pub const SEEK: Id = Id(0x4dbb);
    pub const SEEK_ID: Id = Id(0x53ab);
    pub const SEEK_POSITION: Id = Id(0x53ac);
    pub const VOID: Id = Id(0xec);
    pub const INFO: Id = Id(0x1549_a966);
    pub const DURATION: Id = Id(0x4489);
    pub const TRACKS: Id = Id(0x1654_ae6b);
    pub const CLUSTER: Id = Id(0x1f43_b675);
    pub const TIMESTAMP: Id = Id(0xe7);
    pub const SIMPLE_BLOCK: Id = Id(0xa3);
    pub const CUES: Id = Id(0x1c53_bb6b);

    /// Writes the identifier.
    pub fn put(self, out: &mut Vec<u8>) {
        let bytes = self.0.to_be_bytes();
        let leading = self.0.leading_zeros() as usize / 8;
        out.extend(bytes.iter().skip(leading));
    }
}

/// An unknown size with 8 bytes (RFC 8794 section 6.2).
pub(super) const UNKNOWN_SIZE: [u8; 8] = [0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

/// Returns a size with 8 bytes.
pub(super) fn wide_size(size: u64) -> [u8; 8] {
    const MARKER: u64 = 1 << 56;
    (MARKER | size.min(MARKER - 2)).to_be_bytes()
}

/// Writes a size of less than 2^28 - 1 with the fewest bytes.
pub(super) fn put_size(out: &mut Vec<u8>, size: usize) {
    let size = size as u32;
    // All ones would mean an unknown size.
    match size {
        0..0x7f => out.push(0x80 | size as u8),
        0x7f..0x3fff => out.extend((0x4000 | size as u16).to_be_bytes()),
        0x3fff..0x1f_ffff => out.extend((0x20_0000 | size).to_be_bytes().iter().skip(1)),
        _ => out.extend((0x1000_0000 | size.min(0x0fff_fffe)).to_be_bytes()),
    }
}

/// Writes an element, whose size has 8 bytes.
pub(super) fn put_element(out: &mut Vec<u8>, id: Id, body: &[u8]) {
    id.put(out);
    out.extend(wide_size(body.len() as u64));
    out.extend_from_slice(body);
}

/// Writes an element that readers skip, with `len` bytes including its head. A single byte is not
/// possible.
pub(super) fn put_void(out: &mut Vec<u8>, len: usize) {
    const WIDE_HEAD: usize = 9;
    match len {
        0 | 1 => {}
        2..WIDE_HEAD => {
            Id::VOID.put(out);
            put_size(out, len - 2);
            out.resize(out.len() + len - 2, 0);
        }
        _ => {
            Id::VOID.put(out);
            out.extend(wide_size((len - WIDE_HEAD) as u64));
            out.resize(out.len() + len - WIDE_HEAD, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_short_as_can_be_and_never_all_ones() {
        for (size, bytes) in [
            (0, &[0x80][..]),
            (126, &[0xfe]),
            (127, &[0x40, 0x7f]),
            (16_382, &[0x7f, 0xfe]),
            (16_383, &[0x20, 0x3f, 0xff]),
            (2_097_151, &[0x10, 0x1f, 0xff, 0xff]),
        ] {
            let mut out = Vec::new();
            put_size(&mut out, size);
            assert_eq!(out, bytes, "{size}");
        }
        assert_eq!(wide_size(5), [1, 0, 0, 0, 0, 0, 0, 5]);
    }

    #[test]
    fn void_is_as_long_as_it_is_told() {
        for len in (2..40).chain([8_000]) {
            let mut out = Vec::new();
            put_void(&mut out, len);
            assert_eq!(out.len(), len);
            assert_eq!(out.first(), Some(&0xec));
        }
    }
}
