//! The random values of a handshake's hellos (RFC 5246 section 7.4.1), from which the keys of the
//! record layer are derived. They are read from the datagrams, since the TLS library does not
//! expose them.

use super::ContentType;
use super::record::{HEADER, RecordHeader};

/// The header of a handshake message (RFC 6347 section 4.2.2): type, length, sequence, offset and
/// length of the fragment.
const MESSAGE_HEADER: usize = 12;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// The values found so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Randoms {
    pub(super) client: Option<[u8; 32]>,
    pub(super) server: Option<[u8; 32]>,
}

impl Randoms {
    /// Returns the values in a datagram.
    pub(super) fn of(datagram: &[u8]) -> Self {
        let mut randoms = Self::default();
        randoms.observe(datagram);
        randoms
    }

    /// Looks for hellos in a sent or received datagram. The first of each counts.
    pub(super) fn observe(&mut self, mut datagram: &[u8]) {
        while let Some(header) = RecordHeader::parse(datagram) {
            let Some((record, rest)) = datagram
                .get(HEADER..)
                .and_then(|after| after.split_at_checked(header.len))
            else {
                return;
            };
            if (header.content, header.epoch) == (ContentType::Handshake, 0) {
                self.observe_messages(record);
            }
            datagram = rest;
        }
    }

    fn observe_messages(&mut self, mut messages: &[u8]) {
        while let Some(([kind, _, _, _, _, _, offset @ .., l0, l1, l2], after)) =
            messages.split_first_chunk::<MESSAGE_HEADER>()
        {
            let len = u32::from_be_bytes([0, *l0, *l1, *l2]) as usize;
            let Some((fragment, rest)) = after.split_at_checked(len) else {
                return;
            };
            let random = match *kind {
                CLIENT_HELLO => &mut self.client,
                SERVER_HELLO => &mut self.server,
                _ => return,
            };
            if *offset == [0; 3] && random.is_none() {
                // The random follows the version.
                *random = fragment
                    .get(2..)
                    .and_then(<[u8]>::first_chunk::<32>)
                    .copied();
            }
            messages = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(kind: u8, offset: u8, body: &[u8]) -> Vec<u8> {
        let len = body.len() as u8;
        let mut record = vec![22, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, len + 12];
        record.extend([kind, 0, 0, 100, 0, 0, 0, 0, offset, 0, 0, len]);
        record.extend(body);
        record
    }

    #[test]
    fn the_first_hello_of_each_side_counts() {
        let mut randoms = Randoms::default();
        let mut body = vec![0xFE, 0xFD];
        body.extend([7; 40]);
        let mut datagram = hello(CLIENT_HELLO, 50, &body);
        datagram.extend(hello(CLIENT_HELLO, 0, &body));
        body.splice(2.., [8; 40]);
        datagram.extend(hello(CLIENT_HELLO, 0, &body));
        datagram.extend(hello(SERVER_HELLO, 0, &body));
        for len in 0..datagram.len() {
            Randoms::default().observe(datagram.get(..len).unwrap_or_default());
        }
        randoms.observe(&datagram);
        assert_eq!(randoms.client, Some([7; 32]));
        assert_eq!(randoms.server, Some([8; 32]));
    }
}
