//! Messages, and their way into datagrams.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use portunus_core::events::{ServerEvent, Subscription};
use serde::Serialize;

use portunus_core::JsonForm;

/// The limit of datagrams of a message.
const MOST_CHUNKS: usize = 128;

/// The first bytes of a datagram with a part of a message.
const CHUNK: [u8; 2] = [0x1e, 0x0f];

/// An event as a message (version 1.1 of the format).
#[derive(Serialize)]
struct Message<'a> {
    version: &'static str,
    host: &'a str,
    timestamp: f64,
    level: u16,
    short_message: &'static str,
    full_message: &'a ServerEvent,
}

/// Why a message is not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum MessageError {
    #[error("a message of {length} bytes would take more than {MOST_CHUNKS} datagrams")]
    TooLong { length: usize },
    #[error("a message cannot be compressed: {0}")]
    Compression(#[from] io::Error),
}

/// Writes an event as a message.
pub(super) fn write(event: &ServerEvent, events: &Subscription) -> Vec<u8> {
    let message = Message {
        version: "1.1",
        host: events.emitter(),
        timestamp: event.timestamp as f64 / 1e6,
        level: event.kind.number(),
        short_message: event.kind.name(),
        full_message: event,
    };
    let mut text = Vec::new();
    JsonForm::Compact.write(&mut text, &message);
    text
}

/// Makes a message shorter, by zlib.
pub(super) fn compressed(message: &[u8], level: u32) -> io::Result<Vec<u8>> {
    let mut to = ZlibEncoder::new(Vec::new(), Compression::new(level));
    to.write_all(message)?;
    to.finish()
}

/// Returns the datagrams of a message: itself, or parts of `length` bytes with headers.
pub(super) fn datagrams(
    message: Vec<u8>,
    length: usize,
    id: [u8; 8],
) -> Result<Vec<Vec<u8>>, MessageError> {
    if message.len() <= length {
        return Ok(vec![message]);
    }
    let parts: Vec<&[u8]> = message.chunks(length.max(1)).collect();
    let count = u8::try_from(parts.len())
        .ok()
        .filter(|_| parts.len() <= MOST_CHUNKS);
    let too_long = MessageError::TooLong {
        length: message.len(),
    };
    let count = count.ok_or(too_long)?;
    let datagram = |(number, part): (u8, &&[u8])| {
        let number = &[number, count];
        [&CHUNK[..], &id[..], &number[..], part].concat()
    };
    Ok((0..count).zip(&parts).map(datagram).collect())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn long_messages_are_cut_and_can_be_put_together() {
        let message: Vec<u8> = (0..1_234).map(|n| n as u8).collect();
        let id = [7; 8];
        let sent = datagrams(message.clone(), 500, id).unwrap();
        assert_eq!(sent.len(), 3);
        let mut whole = Vec::new();
        for (number, datagram) in (0u8..).zip(&sent) {
            assert_eq!(datagram[..2], CHUNK);
            assert_eq!(datagram[2..10], id);
            assert_eq!(datagram[10..12], [number, 3]);
            whole.extend_from_slice(&datagram[12..]);
        }
        assert_eq!(whole, message);
        assert_eq!(datagrams(vec![1; 500], 500, id).unwrap(), [vec![1; 500]]);
        assert_eq!(datagrams(vec![1; 12_800], 100, id).unwrap().len(), 128);
        let error = datagrams(vec![1; 12_801], 100, id).unwrap_err();
        assert!(error.to_string().contains("12801 bytes"), "{error}");
    }

    #[test]
    fn compressed_messages_are_those_of_zlib() {
        let message = b"twice, twice, twice, twice, twice, twice".repeat(10);
        let small = compressed(&message, 9).unwrap();
        assert!(small.len() < message.len());
        let mut back = Vec::new();
        ZlibDecoder::new(&small[..]).read_to_end(&mut back).unwrap();
        assert_eq!(back, message);
    }
}
