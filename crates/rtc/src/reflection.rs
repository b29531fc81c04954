//! Asks a STUN server for the public address (RFC 8489 section 2). ICE checks differ: they are
//! signed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rand::Rng;

use crate::demux::{MAGIC_COOKIE, STUN_HEADER, StunHeader, Transaction};

const BINDING_REQUEST: [u8; 2] = [0x00, 0x01];
const BINDING_SUCCESS: [u8; 2] = [0x01, 0x01];
const MAPPED_ADDRESS: u16 = 0x0001;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;

/// A request, which may be sent several times.
#[derive(Debug, Clone, Copy)]
pub struct Reflection {
    transaction: [u8; 12],
}

impl Default for Reflection {
    fn default() -> Self {
        Reflection::new()
    }
}

impl Reflection {
    /// Makes a request with a new transaction.
    pub fn new() -> Self {
        Reflection {
            transaction: rand::rng().random(),
        }
    }

    /// Returns the datagram for the server.
    pub fn request(&self) -> [u8; STUN_HEADER] {
        let mut request = [0; STUN_HEADER];
        let fields = BINDING_REQUEST.into_iter().chain([0, 0]);
        let fields = fields.chain(MAGIC_COOKIE).chain(self.transaction);
        for (byte, value) in request.iter_mut().zip(fields) {
            *byte = value;
        }
        request
    }

    /// Returns the address in the server's answer, or `None` for other datagrams.
    pub fn seen(&self, datagram: &[u8]) -> Option<SocketAddr> {
        let answer = StunHeader::split(datagram)?;
        let is_answer = answer.kind == BINDING_SUCCESS;
        if !is_answer || answer.transaction != Transaction(self.transaction) {
            return None;
        }
        let mut attributes = answer.attributes;
        let mut plain = None;
        while let Some(([k0, k1, l0, l1], rest)) = attributes.split_first_chunk::<4>() {
            let length = usize::from(u16::from_be_bytes([*l0, *l1]));
            let value = rest.get(..length)?;
            match u16::from_be_bytes([*k0, *k1]) {
                XOR_MAPPED_ADDRESS => return self.address(value, true),
                // Servers of RFC 3489 send this one.
                MAPPED_ADDRESS => plain = self.address(value, false),
                _ => {}
            }
            attributes = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        plain
    }

    /// Reads the value of MAPPED-ADDRESS or XOR-MAPPED-ADDRESS (RFC 8489 sections 14.1 and 14.2).
    fn address(&self, value: &[u8], masked: bool) -> Option<SocketAddr> {
        let ([_, family, p0, p1], address) = value.split_first_chunk::<4>()?;
        let mask = |bytes: &mut [u8]| {
            let key = MAGIC_COOKIE.into_iter().chain(self.transaction);
            for (byte, key) in bytes.iter_mut().zip(key).filter(|_| masked) {
                *byte ^= key;
            }
        };
        let mut port = [*p0, *p1];
        mask(&mut port);
        let ip: IpAddr = match family {
            1 => {
                let mut octets: [u8; 4] = address.try_into().ok()?;
                mask(&mut octets);
                Ipv4Addr::from(octets).into()
            }
            2 => {
                let mut octets: [u8; 16] = address.try_into().ok()?;
                mask(&mut octets);
                Ipv6Addr::from(octets).into()
            }
            _ => return None,
        };
        Some(SocketAddr::new(ip, u16::from_be_bytes(port)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use proptest::prelude::*;

    use super::*;

    const QUESTION: Reflection = Reflection {
        transaction: *b"transaction!",
    };

    fn answer(attributes: &[u8]) -> Vec<u8> {
        let mut answer = BINDING_SUCCESS.to_vec();
        answer.extend(u16::try_from(attributes.len()).unwrap().to_be_bytes());
        answer.extend(MAGIC_COOKIE);
        answer.extend(QUESTION.transaction);
        answer.extend(attributes);
        answer
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut attribute = kind.to_be_bytes().to_vec();
        attribute.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        attribute.extend(value);
        attribute.resize(attribute.len().next_multiple_of(4), 0);
        attribute
    }

    #[test]
    fn the_request_is_a_binding_request_without_attributes() {
        let request = QUESTION.request();
        assert!(request.starts_with(&[0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42]));
        assert!(request.ends_with(b"transaction!"));
    }

    #[test]
    fn both_forms_of_the_address_are_read() {
        // 192.0.2.1:32853, plain and masked, as in RFC 5769 section 2.2.
        let plain = attribute(MAPPED_ADDRESS, &[0, 1, 0x80, 0x55, 192, 0, 2, 1]);
        let masked = [0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43];
        let masked = attribute(XOR_MAPPED_ADDRESS, &masked);
        let address = Some("192.0.2.1:32853".parse().unwrap());
        let software = attribute(0x8022, b"test");
        for attributes in [
            masked.clone(),
            plain.clone(),
            [software, masked.clone()].concat(),
            [
                attribute(MAPPED_ADDRESS, &[0, 1, 0, 1, 10, 0, 0, 1]),
                masked,
            ]
            .concat(),
        ] {
            assert_eq!(QUESTION.seen(&answer(&attributes)), address);
        }
        let mut six = vec![0, 2, 0xa1, 0x47];
        let ip: Ipv6Addr = "2001:db8::7".parse().unwrap();
        let key = MAGIC_COOKIE.into_iter().chain(QUESTION.transaction);
        six.extend(ip.octets().iter().zip(key).map(|(byte, key)| byte ^ key));
        let six = answer(&attribute(XOR_MAPPED_ADDRESS, &six));
        assert_eq!(QUESTION.seen(&six), Some((ip, 32_853).into()));
    }

    #[test]
    fn what_answers_something_else_is_nothing() {
        let address = attribute(
            XOR_MAPPED_ADDRESS,
            &[0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43],
        );
        let right = answer(&address);
        assert!(QUESTION.seen(&right).is_some());
        for index in [1, 4, 8, 25] {
            let mut wrong = right.clone();
            *wrong.get_mut(index).unwrap() ^= 0x10;
            assert_eq!(QUESTION.seen(&wrong), None, "byte {index}");
        }
        assert_eq!(QUESTION.seen(&answer(&[])), None);
        for length in 0..right.len() {
            assert_eq!(QUESTION.seen(right.get(..length).unwrap()), None);
        }
    }

    proptest! {
        #[test]
        fn anything_may_come(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = (QUESTION.seen(&bytes), QUESTION.seen(&answer(&bytes)));
        }
    }
}
