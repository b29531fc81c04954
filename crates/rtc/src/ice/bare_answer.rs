//! Responses to connectivity checks with a missing or unknown XOR-MAPPED-ADDRESS.
//!
//! RFC 8489 section 7.3.1.1 demands this attribute, but ffmpeg's WHIP muxer omits it. It is not
//! needed to know that the pair works: with host candidates it is the address from which the check
//! was sent.

use std::net::SocketAddr;

use aws_lc_rs::hmac;

const SUCCESS: [u8; 2] = [0x01, 0x01];
const MAGIC: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];
const HEADER: usize = 20;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
const MESSAGE_INTEGRITY: u16 = 0x0008;
/// The bytes of MESSAGE-INTEGRITY with its head.
const INTEGRITY_LEN: usize = 24;

/// Rewrites a response: the response, the password that signs it, and the new mapped address.
pub(super) type Rewrite = fn(&[u8], &str, SocketAddr) -> Option<Vec<u8>>;

/// Returns the response with the missing attribute, signed again. Returns `None` for other
/// datagrams, and if it is not authentic.
pub(super) fn complete(datagram: &[u8], password: &str, mapped: SocketAddr) -> Option<Vec<u8>> {
    rewrite(datagram, password, mapped, Mapped::Missing)
}

/// Returns the response with another mapped address, signed again. Returns `None` for other
/// datagrams, and if it is not authentic.
pub(super) fn replace(datagram: &[u8], password: &str, mapped: SocketAddr) -> Option<Vec<u8>> {
    rewrite(datagram, password, mapped, Mapped::There)
}

/// Whether a response has XOR-MAPPED-ADDRESS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mapped {
    Missing,
    There,
}

fn rewrite(
    datagram: &[u8],
    password: &str,
    mapped: SocketAddr,
    expected: Mapped,
) -> Option<Vec<u8>> {
    let (head, attributes) = datagram.split_at_checked(HEADER)?;
    if !head.starts_with(&SUCCESS) || head.get(4..8)? != MAGIC {
        return None;
    }
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, password.as_bytes());
    verify(&key, head, attributes, expected)?;
    let mapped = xor(mapped, head.get(4..HEADER)?);
    let mut answer = Vec::with_capacity(HEADER + 4 + mapped.len() + INTEGRITY_LEN);
    answer.extend(SUCCESS);
    answer.extend(
        u16::try_from(4 + mapped.len() + INTEGRITY_LEN)
            .ok()?
            .to_be_bytes(),
    );
    answer.extend(head.get(4..HEADER)?);
    answer.extend(XOR_MAPPED_ADDRESS.to_be_bytes());
    answer.extend(u16::try_from(mapped.len()).ok()?.to_be_bytes());
    answer.extend(mapped);
    let sum = hmac::sign(&key, &answer);
    answer.extend(MESSAGE_INTEGRITY.to_be_bytes());
    answer.extend([0, 20]);
    answer.extend(sum.as_ref());
    Some(answer)
}

/// Returns `None` unless the attributes have an authentic MESSAGE-INTEGRITY, with the mapped
/// address before it as `expected`.
fn verify(key: &hmac::Key, head: &[u8], attributes: &[u8], expected: Mapped) -> Option<()> {
    let mut offset = 0_usize;
    let mut found = Mapped::Missing;
    loop {
        let rest = attributes.get(offset..)?;
        let (kind, len) = (rest.first_chunk::<2>()?, rest.get(2..4)?.first_chunk()?);
        let len = usize::from(u16::from_be_bytes(*len));
        let kind = u16::from_be_bytes(*kind);
        if kind == MESSAGE_INTEGRITY {
            let claimed = rest
                .get(4..4 + 20)
                .filter(|_| len == 20 && found == expected)?;
            // The length in the head has to end here (RFC 8489 section 14.5).
            let covered = u16::try_from(offset.checked_add(INTEGRITY_LEN)?).ok()?;
            let mut signed = head.get(..2)?.to_vec();
            signed.extend(covered.to_be_bytes());
            signed.extend(head.get(4..)?);
            signed.extend(attributes.get(..offset)?);
            return hmac::verify(key, &signed, claimed).ok();
        }
        if kind == XOR_MAPPED_ADDRESS {
            found = Mapped::There;
        }
        offset = offset
            .checked_add(4)?
            .checked_add(len.next_multiple_of(4))?;
    }
}

/// Returns the value of XOR-MAPPED-ADDRESS. `mask` is the magic cookie and the transaction id (RFC
/// 8489 section 14.2).
fn xor(address: SocketAddr, mask: &[u8]) -> Vec<u8> {
    let (family, ip) = match address {
        SocketAddr::V4(v4) => (1, v4.ip().octets().to_vec()),
        SocketAddr::V6(v6) => (2, v6.ip().octets().to_vec()),
    };
    let mut value = vec![0, family];
    let port = address.port().to_be_bytes();
    value.extend(port.iter().zip(mask).map(|(byte, mask)| byte ^ mask));
    value.extend(ip.iter().zip(mask).map(|(byte, mask)| byte ^ mask));
    value
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use is::stun::StunMessage;

    use super::*;

    const PASSWORD: &str = "wn4SThBjs9wW9YL1kKHE9lwT";

    /// Returns a response like that of ffmpeg 8.1: MESSAGE-INTEGRITY, then FINGERPRINT, which is
    /// ignored.
    fn bare() -> Vec<u8> {
        let mut answer = vec![1, 1, 0, 24, 0x21, 0x12, 0xA4, 0x42];
        answer.extend(*b"transaction!");
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, PASSWORD.as_bytes());
        let sum = hmac::sign(&key, &answer);
        answer.extend([0, 8, 0, 20]);
        answer.extend(sum.as_ref());
        answer.extend([0x80, 0x28, 0, 4, 1, 2, 3, 4]);
        answer[3] = 32;
        answer
    }

    #[test]
    fn an_answer_gets_what_it_lacks() {
        for mapped in ["192.0.2.7:28600", "[2001:db8::7]:28600"] {
            let mapped: SocketAddr = mapped.parse().unwrap();
            assert!(StunMessage::parse(&bare()).is_err());
            let complete = complete(&bare(), PASSWORD, mapped).unwrap();
            let message = StunMessage::parse(&complete).unwrap();
            assert!(message.is_successful_binding_response());
            assert_eq!(message.mapped_address(), Some(mapped));
        }
    }

    #[test]
    fn what_is_not_authentic_stays_what_it_is() {
        let mapped = ([192, 0, 2, 7], 1).into();
        assert_eq!(complete(&bare(), "another password of peer", mapped), None);
        let mut request = bare();
        request[1] = 0;
        assert_eq!(complete(&request, PASSWORD, mapped), None);
        for len in 0..44 {
            assert_eq!(complete(&bare()[..len], PASSWORD, mapped), None, "{len}");
        }
        let whole = complete(&bare(), PASSWORD, mapped).unwrap();
        assert_eq!(complete(&whole, PASSWORD, mapped), None, "it lacks nothing");
    }

    #[test]
    fn a_mapped_address_is_replaced() {
        let (one, other) = (([192, 0, 2, 7], 1).into(), ([192, 0, 2, 8], 2).into());
        assert_eq!(replace(&bare(), PASSWORD, other), None, "it has none");
        let whole = complete(&bare(), PASSWORD, one).unwrap();
        assert_eq!(replace(&whole, "another password of peer", other), None);
        let replaced = replace(&whole, PASSWORD, other).unwrap();
        let message = StunMessage::parse(&replaced).unwrap();
        assert_eq!(message.mapped_address(), Some(other));
        assert_eq!(replaced, complete(&bare(), PASSWORD, other).unwrap());
    }
}
