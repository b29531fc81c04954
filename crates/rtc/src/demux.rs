//! The protocol of a datagram (RFC 7983), and the receiver of a STUN datagram.

/// A protocol on the port of a PeerConnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Protocol {
    Stun,
    Dtls,
    Rtp,
    Rtcp,
}

impl Protocol {
    /// Returns the protocol by the first bytes, or `None` for other datagrams.
    pub const fn of(datagram: &[u8]) -> Option<Self> {
        match datagram {
            [0..=3, ..] => Some(Protocol::Stun),
            [20..=63, ..] => Some(Protocol::Dtls),
            // RTCP packet types in the place of payload types (RFC 5761 section 4).
            [128..=191, 192..=223, ..] => Some(Protocol::Rtcp),
            [128..=191, ..] => Some(Protocol::Rtp),
            _ => None,
        }
    }
}

pub(crate) const STUN_HEADER: usize = 20;
pub(crate) const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];
const USERNAME: u16 = 0x0006;

/// The id of a STUN transaction (RFC 8489 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transaction(pub(crate) [u8; 12]);

/// Returns the transaction of a connectivity check (a STUN binding request).
pub fn stun_check(datagram: &[u8]) -> Option<Transaction> {
    let message = StunHeader::split(datagram)?;
    (message.kind == [0, 1]).then_some(message.transaction)
}

/// Returns the transaction of an answer to a connectivity check, be it a success or an error. It
/// identifies the check. Nothing is verified here.
pub fn stun_answer(datagram: &[u8]) -> Option<Transaction> {
    let message = StunHeader::split(datagram)?;
    matches!(message.kind, [1, 0x01 | 0x11]).then_some(message.transaction)
}

/// The header of a STUN message, and its attributes.
pub(crate) struct StunHeader<'a> {
    pub(crate) kind: [u8; 2],
    pub(crate) transaction: Transaction,
    pub(crate) attributes: &'a [u8],
}

impl<'a> StunHeader<'a> {
    pub(crate) fn split(datagram: &'a [u8]) -> Option<Self> {
        let (header, attributes) = datagram.split_first_chunk::<STUN_HEADER>()?;
        let [k0, k1, _, _, c0, c1, c2, c3, transaction @ ..] = *header;
        let is_stun = [c0, c1, c2, c3] == MAGIC_COOKIE;
        is_stun.then_some(StunHeader {
            kind: [k0, k1],
            transaction: Transaction(transaction),
            attributes,
        })
    }
}

/// Returns the receiver's user fragment in a STUN binding request. It identifies the transport for
/// a datagram from an unknown address. Nothing is verified here.
pub fn stun_username(datagram: &[u8]) -> Option<&str> {
    let message = StunHeader::split(datagram)?;
    if message.kind != [0, 1] {
        return None;
    }
    let mut attributes = message.attributes;
    loop {
        let ([k0, k1, l0, l1], rest) = attributes.split_first_chunk::<4>()?;
        let len = usize::from(u16::from_be_bytes([*l0, *l1]));
        let value = rest.get(..len)?;
        if u16::from_be_bytes([*k0, *k1]) == USERNAME {
            let (receiver, _) = std::str::from_utf8(value).ok()?.split_once(':')?;
            return Some(receiver);
        }
        attributes = rest.get(len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_the_first_bytes() {
        let of = |a: u8, b: u8| Protocol::of(&[a, b]);
        assert_eq!(of(0, 1), Some(Protocol::Stun));
        assert_eq!(of(22, 254), Some(Protocol::Dtls));
        assert_eq!(of(0x80, 96), Some(Protocol::Rtp));
        assert_eq!(of(0x90, 0x80 | 111), Some(Protocol::Rtp));
        assert_eq!(of(0x80, 200), Some(Protocol::Rtcp));
        assert_eq!(of(0x81, 206), Some(Protocol::Rtcp));
        assert_eq!(of(64, 0), None);
        assert_eq!(Protocol::of(&[]), None);
    }

    #[test]
    fn the_username_of_a_binding_request() {
        let mut datagram = vec![0, 1, 0, 24];
        datagram.extend(MAGIC_COOKIE);
        datagram.extend([7; 12]);
        datagram.extend([0x80, 0x22, 0, 3, b'a', b'b', b'c', 0]);
        datagram.extend([0, 6, 0, 9]);
        datagram.extend(b"mine:your");
        assert_eq!(stun_username(&datagram), Some("mine"));
        datagram[4] = 0;
        assert_eq!(stun_username(&datagram), None);
    }

    #[test]
    fn the_transaction_of_a_check_and_of_its_answers() {
        let mut datagram = vec![0, 1, 0, 0];
        datagram.extend(MAGIC_COOKIE);
        datagram.extend([7; 12]);
        let transaction = Some(Transaction([7; 12]));
        for (kind, check, answer) in [
            ([0x00, 0x01], transaction, None),
            ([0x01, 0x01], None, transaction),
            ([0x01, 0x11], None, transaction),
            // An indication, and a response of TURN.
            ([0x00, 0x11], None, None),
            ([0x01, 0x03], None, None),
        ] {
            datagram[..2].copy_from_slice(&kind);
            assert_eq!(stun_check(&datagram), check);
            assert_eq!(stun_answer(&datagram), answer);
        }
        datagram[..2].copy_from_slice(&[1, 1]);
        assert_eq!(stun_answer(&datagram[..19]), None);
        datagram[7] = 0;
        assert_eq!(stun_answer(&datagram), None);
    }

    proptest! {
        #[test]
        fn anything_may_come(mut bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = (stun_username(&bytes), stun_check(&bytes), stun_answer(&bytes));
            if let Some(head) = bytes.first_chunk_mut::<8>() {
                *head = [0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42];
            }
            let _ = (stun_username(&bytes), stun_check(&bytes), stun_answer(&bytes));
        }
    }
}
