//! A reader of recordings: from bytes to frames.

use std::time::Duration;

use super::{
    FILE_MAGIC, FRAME_HEADER, FRAME_MAGIC, Info, MESSAGE_TIME, Medium, MjrError, UnixMicros,
};

/// Reads a recording as its bytes come. It keeps bytes that were pushed but not taken. If bytes are
/// pushed only when [`FrameReader::next`] needs more, it keeps at most a frame and a push.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// The bytes of `buffer` that were taken.
    taken: usize,
    /// The bytes that were taken before those.
    before: u64,
    magic: bool,
    info: Option<Info>,
}

/// A frame and its arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The time since the first frame, in whole ms.
    pub at: Duration,
    /// The time of day, of a message only.
    pub clock: Option<UnixMicros>,
    /// The RTP packet or the message.
    pub bytes: &'a [u8],
}

impl FrameReader {
    /// Returns a reader without bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a reader that continues at byte `position` of a file, where a frame starts.
    pub(crate) fn resume(info: Info, position: u64) -> Self {
        Self {
            before: position,
            magic: true,
            info: Some(info),
            ..Self::default()
        }
    }

    /// Returns the position of the next byte in the file.
    pub fn position(&self) -> u64 {
        self.before.saturating_add(self.taken as u64)
    }

    /// Reads the header and nothing after it. Returns `None` if more bytes are needed.
    pub(crate) fn read_head(&mut self) -> Result<Option<&Info>, MjrError> {
        if self.read_magic()? {
            self.read_info()?;
        }
        Ok(self.info.as_ref())
    }

    /// Takes the next bytes of the file, in pieces of any size.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.before = self.before.saturating_add(self.taken as u64);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the header, once [`FrameReader::next`] has read it.
    pub fn info(&self) -> Option<&Info> {
        self.info.as_ref()
    }

    /// Returns the next frame, or `None` if more bytes are needed. After an error the results are
    /// undefined.
    #[expect(
        clippy::should_implement_trait,
        reason = "the frame borrows from the reader"
    )]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, MjrError> {
        if !self.read_magic()? {
            return Ok(None);
        }
        let Some(medium) = self.read_info()? else {
            return Ok(None);
        };
        let position = self.position();
        let rest = self.buffer.get(self.taken..).unwrap_or_default();
        let Some((header, rest)) = rest.split_first_chunk::<FRAME_HEADER>() else {
            return Ok(None);
        };
        let [m, e, t, c, ms0, ms1, ms2, ms3, len0, len1] = *header;
        if [m, e, t, c] != *FRAME_MAGIC {
            return Err(MjrError::NoFrame(position));
        }
        let len = usize::from(u16::from_be_bytes([len0, len1]));
        let Some(bytes) = rest.get(..len) else {
            return Ok(None);
        };
        self.taken = self.taken.saturating_add(FRAME_HEADER + len);
        let (clock, bytes) = match medium {
            Medium::Audio | Medium::Video => (None, bytes),
            Medium::Data => {
                let split = bytes.split_first_chunk::<MESSAGE_TIME>();
                let (clock, bytes) = split.ok_or(MjrError::ShortMessage(position))?;
                (Some(UnixMicros(u64::from_be_bytes(*clock))), bytes)
            }
        };
        let millis = u32::from_be_bytes([ms0, ms1, ms2, ms3]);
        Ok(Some(Frame {
            at: Duration::from_millis(millis.into()),
            clock,
            bytes,
        }))
    }

    /// Checks that a file without more bytes ends after a frame. A file without frames is valid.
    pub fn finish(&self) -> Result<(), MjrError> {
        match self.buffer.len().saturating_sub(self.taken) {
            0 if self.magic => Ok(()),
            0 => Err(MjrError::NotARecording),
            left => Err(MjrError::Truncated(left)),
        }
    }

    fn read_magic(&mut self) -> Result<bool, MjrError> {
        if self.magic {
            return Ok(true);
        }
        let Some(magic) = self.buffer.first_chunk::<8>() else {
            return Ok(false);
        };
        match magic {
            FILE_MAGIC => {
                self.taken = magic.len();
                self.magic = true;
                Ok(true)
            }
            b"MJR00001" | b"MEETECHO" => Err(MjrError::OldVersion),
            _ => Err(MjrError::NotARecording),
        }
    }

    /// Returns the medium, once it is known.
    fn read_info(&mut self) -> Result<Option<Medium>, MjrError> {
        if let Some(info) = &self.info {
            return Ok(Some(info.medium));
        }
        let rest = self.buffer.get(self.taken..).unwrap_or_default();
        let Some((len, rest)) = rest.split_first_chunk::<2>() else {
            return Ok(None);
        };
        let len = usize::from(u16::from_be_bytes(*len));
        let Some(json) = rest.get(..len) else {
            return Ok(None);
        };
        let info = Info::from_json(json)?;
        self.taken = self.taken.saturating_add(2 + len);
        Ok(Some(self.info.insert(info).medium))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn what_is_no_recording_is_told_from_an_old_one() {
        let error = |bytes: &[u8]| {
            let mut reader = FrameReader::new();
            reader.push(bytes);
            reader.next().unwrap_err()
        };
        assert!(matches!(error(b"MJR00001.."), MjrError::OldVersion));
        assert!(matches!(error(b"MEETECHO.."), MjrError::OldVersion));
        assert!(matches!(error(b"OggS0000.."), MjrError::NotARecording));
    }

    #[test]
    fn a_file_without_a_frame_is_no_mistake_and_an_empty_one_is() {
        let mut reader = FrameReader::new();
        assert!(matches!(reader.finish(), Err(MjrError::NotARecording)));
        reader.push(b"MJR00002");
        assert_eq!(reader.next().unwrap(), None);
        reader.finish().unwrap();
        reader.push(b"\0");
        assert_eq!(reader.next().unwrap(), None);
        assert!(matches!(reader.finish(), Err(MjrError::Truncated(1))));
    }

    #[test]
    fn errors_say_where() {
        let mut reader = FrameReader::new();
        reader.push(b"MJR00002\0\x11{\"t\":\"d\",\"c\":\"x\"}");
        assert_eq!(reader.next().unwrap(), None);
        assert_eq!(reader.info().unwrap().medium, Medium::Data);
        reader.push(b"MEET\0\0\0\0\0\x02hi");
        assert!(matches!(reader.next(), Err(MjrError::ShortMessage(27))));
        reader.push(b"MEAT\0\0\0\0\0\x02hi");
        assert!(matches!(reader.next(), Err(MjrError::NoFrame(39))));
    }
}
