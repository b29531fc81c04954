//! The record layer of DTLS 1.2 with AES-GCM (RFC 6347 section 4.1, RFC 5288), epoch 1 only.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use portunus_srtp::ReplayWindow;

use super::ContentType;
use super::key_block::DirectionKeys;

/// The bytes before a record's fragment: type, version, epoch, sequence number, length.
pub(crate) const HEADER: usize = 13;
/// The explicit part of the nonce, before the ciphertext.
const EXPLICIT_NONCE: usize = 8;
const TAG: usize = 16;

/// The bytes by which a record is longer than its content.
pub(crate) const OVERHEAD: usize = HEADER + EXPLICIT_NONCE + TAG;

const VERSION: [u8; 2] = [0xFE, 0xFD];

/// A record's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) content: ContentType,
    pub(crate) epoch: u16,
    /// 48 bits.
    pub(crate) sequence: u64,
    /// The bytes after the header.
    pub(crate) len: usize,
}

impl RecordHeader {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let [content, 0xFE, _, e0, e1, s @ .., l0, l1] = *bytes.first_chunk::<HEADER>()? else {
            return None;
        };
        let [s0, s1, s2, s3, s4, s5] = s;
        Some(Self {
            content: ContentType::from_wire(content)?,
            epoch: u16::from_be_bytes([e0, e1]),
            sequence: u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]),
            len: usize::from(u16::from_be_bytes([l0, l1])),
        })
    }
}

/// A record in a datagram.
pub(crate) struct Record<'a> {
    pub(crate) header: RecordHeader,
    /// The whole record with its header.
    pub(crate) bytes: &'a mut [u8],
}

impl<'a> Record<'a> {
    /// Splits the first record off a datagram. Returns `None` if it is malformed or truncated.
    pub(crate) fn split(datagram: &'a mut [u8]) -> Option<(Self, &'a mut [u8])> {
        let header = RecordHeader::parse(datagram)?;
        let (bytes, rest) = datagram.split_at_mut_checked(HEADER + header.len)?;
        Some((Record { header, bytes }, rest))
    }
}

/// Returns the headers of a datagram's records, up to the first malformed one.
pub(crate) fn headers(mut datagram: &[u8]) -> impl Iterator<Item = RecordHeader> {
    std::iter::from_fn(move || {
        let header = RecordHeader::parse(datagram)?;
        datagram = datagram.get(HEADER + header.len..)?;
        Some(header)
    })
}

/// Seals outgoing records.
pub(crate) struct RecordSealer {
    key: LessSafeKey,
    iv: [u8; 4],
    sequence: u64,
}

impl RecordSealer {
    /// Makes a sealer. `sequence` is the first unused number of epoch 1.
    pub(crate) fn new(keys: &DirectionKeys, sequence: u64) -> Option<Self> {
        Some(Self {
            key: expand(keys)?,
            iv: keys.iv,
            sequence,
        })
    }

    /// Makes a record with `payload`. Returns `None` if it is too long for one.
    pub(crate) fn seal(&mut self, content: ContentType, payload: &[u8]) -> Option<Vec<u8>> {
        let mut record = Vec::with_capacity(payload.len() + OVERHEAD);
        let number = sequence_number(self.sequence);
        let [n0, n1, s @ ..] = number;
        let fragment = u16::try_from(payload.len() + EXPLICIT_NONCE + TAG).ok()?;
        record.push(content.wire());
        record.extend(VERSION);
        record.extend([n0, n1]);
        record.extend(s);
        record.extend(fragment.to_be_bytes());
        record.extend(number);
        record.extend(payload);
        let aad = Aad::from(additional_data(content, self.sequence, payload.len())?);
        let body = record.get_mut(HEADER + EXPLICIT_NONCE..)?;
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce(self.iv, number), aad, body)
            .ok()?;
        record.extend_from_slice(tag.as_ref());
        self.sequence += 1;
        Some(record)
    }
}

/// Opens incoming records.
pub(crate) struct RecordOpener {
    key: LessSafeKey,
    iv: [u8; 4],
    window: ReplayWindow,
}

impl RecordOpener {
    pub(crate) fn new(keys: &DirectionKeys) -> Option<Self> {
        // Number 0 is the peer's Finished message, which AWS-LC has taken.
        Some(Self {
            key: expand(keys)?,
            iv: keys.iv,
            window: ReplayWindow::starting_with(0),
        })
    }

    /// Opens a record of epoch 1 in place and returns its content. Returns `None` if it is not
    /// authentic or repeated.
    pub(crate) fn open<'a>(
        &mut self,
        header: RecordHeader,
        record: &'a mut [u8],
    ) -> Option<&'a mut [u8]> {
        if header.epoch != 1 || !self.window.is_fresh(header.sequence) {
            return None;
        }
        let (explicit, sealed) = record
            .get_mut(HEADER..)?
            .split_first_chunk_mut::<EXPLICIT_NONCE>()?;
        let len = sealed.len().checked_sub(TAG)?;
        let aad = Aad::from(additional_data(header.content, header.sequence, len)?);
        let plain = self
            .key
            .open_in_place(nonce(self.iv, *explicit), aad, sealed)
            .ok()?;
        self.window.accept(header.sequence);
        Some(plain)
    }
}

fn expand(keys: &DirectionKeys) -> Option<LessSafeKey> {
    let algorithm = if keys.key_len == 16 {
        &AES_128_GCM
    } else {
        &AES_256_GCM
    };
    Some(LessSafeKey::new(
        UnboundKey::new(algorithm, keys.key.get(..keys.key_len)?).ok()?,
    ))
}

/// Returns epoch 1 and the sequence number, as in the header.
fn sequence_number(sequence: u64) -> [u8; 8] {
    ((1 << 48) | (sequence & 0xFFFF_FFFF_FFFF)).to_be_bytes()
}

fn nonce([a, b, c, d]: [u8; 4], [e, f, g, h, i, j, k, l]: [u8; 8]) -> Nonce {
    Nonce::assume_unique_for_key([a, b, c, d, e, f, g, h, i, j, k, l])
}

fn additional_data(content: ContentType, sequence: u64, len: usize) -> Option<[u8; 13]> {
    let [a, b, c, d, e, f, g, h] = sequence_number(sequence);
    let [l0, l1] = u16::try_from(len).ok()?.to_be_bytes();
    let [v0, v1] = VERSION;
    Some([a, b, c, d, e, f, g, h, content.wire(), v0, v1, l0, l1])
}
