//! TURN over TCP and TLS: messages in a stream (RFC 8656 section 2.1).

/// The most bytes of a message. Media and DTLS have datagrams of at most 1,500 bytes.
pub(crate) const MAX_FRAME: usize = 8 << 10;

/// The bytes of the head of a STUN message.
const STUN_HEAD: usize = 20;
/// The bytes of the head of ChannelData.
const CHANNEL_HEAD: usize = 4;
/// The place of the magic cookie in STUN messages, and its value.
const COOKIE: (std::ops::Range<usize>, [u8; 4]) = (4..8, [0x21, 0x12, 0xA4, 0x42]);

/// The reason why a stream is not TURN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// There is neither a STUN message nor ChannelData.
    #[error("neither a STUN message nor ChannelData")]
    Malformed,
    /// A message is too long.
    #[error("a message of {0} bytes is too long")]
    TooLong(usize),
}

/// Finds the first message of a stream. Returns its length, and the start of the next message.
/// Returns `None` if it is incomplete. ChannelData is padded to a multiple of 4 bytes.
pub fn frame(stream: &[u8]) -> Result<Option<(usize, usize)>, FrameError> {
    let Some(&[first, _, high, low]) = stream.first_chunk::<4>() else {
        return Ok(None);
    };
    let body = usize::from(u16::from_be_bytes([high, low]));
    let (len, next) = match first >> 6 {
        0 if body.is_multiple_of(4) => {
            let wrong = |cookie: &[u8]| cookie != COOKIE.1;
            if stream.get(COOKIE.0).is_some_and(wrong) {
                return Err(FrameError::Malformed);
            }
            (STUN_HEAD + body, STUN_HEAD + body)
        }
        1 => {
            let len = CHANNEL_HEAD + body;
            (len, len.next_multiple_of(4))
        }
        _ => return Err(FrameError::Malformed),
    };
    if next > MAX_FRAME {
        return Err(FrameError::TooLong(next));
    }
    Ok((stream.len() >= next).then_some((len, next)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]
    use super::*;

    const STUN: [u8; 8] = [0, 1, 0, 4, 0x21, 0x12, 0xA4, 0x42];

    #[test]
    fn messages_are_found_once_they_have_come_whole() {
        let mut stream = STUN.to_vec();
        stream.resize(24, 0);
        stream.extend([0x40, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0]);
        for short in 0..24 {
            assert_eq!(frame(&stream[..short]), Ok(None), "{short}");
        }
        assert_eq!(frame(&stream), Ok(Some((24, 24))));
        for short in 24..36 {
            assert_eq!(frame(&stream[24..short]), Ok(None), "{short}");
        }
        assert_eq!(frame(&stream[24..]), Ok(Some((9, 12))));
    }

    #[test]
    fn other_protocols_are_told_at_once() {
        for stream in [
            &b"GET / HTTP/1.1"[..],
            &[0x16, 3, 1, 2, 0],
            &[0xFF; 4],
            &[0, 1, 0, 3],
            &[0, 1, 0, 4, 1, 2, 3, 4],
        ] {
            assert!(frame(stream).is_err(), "{stream:?}");
        }
        let long = [0x40, 0, 0xFF, 0xFF];
        assert_eq!(frame(&long), Err(FrameError::TooLong(65_540)));
    }
}
