//! The form of SCTP packets (RFC 9260 section 3).

/// Bytes before the payload of a packet with one DATA chunk.
pub(super) const HEADERS: usize = COMMON_HEADER + 16;
const COMMON_HEADER: usize = 12;
const CHUNK_HEADER: usize = 4;
/// Bytes before the parameters of an INIT or INIT ACK.
const INIT_FIELDS: usize = 16;
/// Bytes before the lists of a SACK.
const SACK_FIELDS: usize = 12;

const CHUNK_DATA: u8 = 0;
const CHUNK_INIT: u8 = 1;
const CHUNK_INIT_ACK: u8 = 2;
const CHUNK_SACK: u8 = 3;
const CHUNK_HEARTBEAT: u8 = 4;
const CHUNK_HEARTBEAT_ACK: u8 = 5;
const CHUNK_ABORT: u8 = 6;
const CHUNK_SHUTDOWN: u8 = 7;
const CHUNK_ERROR: u8 = 9;
const CHUNK_RECONFIG: u8 = 130;
const CHUNK_FORWARD_TSN: u8 = 192;

/// Returns whether a packet holds an INIT.
pub(super) fn begins_association(packet: &[u8]) -> bool {
    packet.get(COMMON_HEADER) == Some(&CHUNK_INIT)
}

/// Returns whether the lengths of all chunks are consistent and sufficient for their types (RFC 9260
/// section 3, RFC 3758, RFC 6525).
pub(super) fn is_well_formed(packet: &[u8]) -> bool {
    let chunks = packet.get(COMMON_HEADER..);
    let Some(mut rest) = chunks.filter(|chunks| !chunks.is_empty()) else {
        return false;
    };
    while !rest.is_empty() {
        let Some(chunk) = Chunk::split(rest) else {
            return false;
        };
        if !chunk.is_complete() {
            return false;
        }
        rest = chunk.rest;
    }
    true
}

/// A chunk at the start of some bytes.
struct Chunk<'a> {
    kind: u8,
    value: &'a [u8],
    /// The bytes after the chunk.
    rest: &'a [u8],
}

impl<'a> Chunk<'a> {
    fn split(bytes: &'a [u8]) -> Option<Self> {
        let [kind, _, high, low] = *bytes.first_chunk::<CHUNK_HEADER>()?;
        let len = usize::from(u16::from_be_bytes([high, low]));
        let value = bytes.get(CHUNK_HEADER..len)?;
        let rest = bytes.get(len.next_multiple_of(4)..)?;
        Some(Chunk { kind, value, rest })
    }

    /// Returns whether the chunk has all fields that its type requires.
    fn is_complete(&self) -> bool {
        let value = self.value;
        match self.kind {
            CHUNK_DATA => value.len() >= HEADERS - COMMON_HEADER - CHUNK_HEADER,
            CHUNK_INIT | CHUNK_INIT_ACK => value.get(INIT_FIELDS..).is_some_and(are_parameters),
            CHUNK_SACK => is_sack(value),
            CHUNK_HEARTBEAT | CHUNK_HEARTBEAT_ACK | CHUNK_RECONFIG => {
                !value.is_empty() && are_parameters(value)
            }
            // Their causes look like parameters.
            CHUNK_ABORT | CHUNK_ERROR => are_parameters(value),
            CHUNK_SHUTDOWN => value.len() == 4,
            CHUNK_FORWARD_TSN => value.len() >= 4 && value.len().is_multiple_of(4),
            _ => true,
        }
    }
}

/// Returns whether a SACK has room for its lists of gaps and duplicates.
fn is_sack(value: &[u8]) -> bool {
    let Some([.., gaps, more_gaps, duplicates, more_duplicates]) =
        value.first_chunk::<SACK_FIELDS>()
    else {
        return false;
    };
    let gaps = u16::from_be_bytes([*gaps, *more_gaps]);
    let duplicates = u16::from_be_bytes([*duplicates, *more_duplicates]);
    value.len() >= SACK_FIELDS + 4 * (usize::from(gaps) + usize::from(duplicates))
}

/// Returns whether the lengths of the parameters are consistent. Fewer than 4 bytes are padding.
fn are_parameters(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some([_, _, high, low]) = rest.first_chunk::<4>() {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        if len < 4 || len > rest.len() {
            return false;
        }
        // The last parameter may lack its padding.
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(chunks: &[&[u8]]) -> Vec<u8> {
        let mut packet = vec![0; COMMON_HEADER];
        packet.extend(chunks.concat());
        packet
    }

    const COOKIE_ACK: &[u8] = &[11, 0, 0, 4];
    const SACK: &[u8] = &[3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    const HEARTBEAT: &[u8] = &[4, 0, 0, 10, 0, 1, 0, 6, 7, 7, 0, 0];
    const DATA: &[u8] = &[0, 3, 0, 17, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 51, 7, 0, 0, 0];

    #[test]
    fn packets_of_whole_chunks_are_taken() {
        for chunks in [
            vec![COOKIE_ACK, SACK, DATA],
            vec![HEARTBEAT],
            // With one gap and one duplicate.
            vec![
                &[
                    3, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 2, 0, 3, 0, 0, 0, 1,
                ][..],
            ],
            // An ABORT without and with a cause, a SHUTDOWN, and an unknown type.
            vec![&[6, 0, 0, 4][..]],
            vec![&[6, 0, 0, 8, 0, 12, 0, 4][..]],
            vec![&[7, 0, 0, 8, 0, 0, 0, 1][..]],
            vec![&[200, 0, 0, 4][..]],
        ] {
            assert!(is_well_formed(&packet(&chunks)), "{chunks:?}");
        }
    }

    #[test]
    fn packets_with_a_chunk_too_short_are_malformed() {
        for chunks in [
            vec![],
            vec![&[3, 0, 0][..]],
            vec![&[3, 0, 0, 4][..]],
            vec![&[3, 0, 0, 0][..]],
            vec![&[4, 0, 0, 4][..]],
            vec![&[4, 0, 0, 8, 0, 1, 0, 3][..]],
            vec![&[4, 0, 0, 8, 0, 1, 0, 9][..]],
            vec![&[0, 3, 0, 8, 0, 0, 0, 1][..]],
            vec![&[1, 0, 0, 8, 0, 0, 0, 1][..]],
            vec![&[7, 0, 0, 4][..]],
            vec![&[192, 0, 0, 6, 0, 0, 0, 0][..]],
            // More gaps than the chunk holds, a chunk beyond the end of the packet, a chunk without
            // its padding, and a bad chunk after a good one.
            vec![&[3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0][..]],
            vec![&[11, 0, 0, 8][..]],
            vec![DATA.get(..17).unwrap_or_default()],
            vec![SACK, &[3, 0, 0, 4][..]],
        ] {
            assert!(!is_well_formed(&packet(&chunks)), "{chunks:?}");
        }
        assert!(!is_well_formed(&[0; 11]));
    }
}
