//! The bytes of a recording to frames.

use std::time::Duration;

use super::{
    FILE_MAGIC, FRAME_HEADER, FRAME_MAGIC, Info, MESSAGE_TIME, Medium, MjrError, UnixMicros,
};

/// Reads a recording as its bytes come. It keeps what was pushed and not yet taken, so whoever pushes only when
/// [`FrameReader::next`] has nothing more needs no more memory than a frame and a push.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were taken.
    taken: usize,
    /// Bytes that were taken before those.
    before: u64,
    magic: bool,
    info: Option<Info>,
}

/// A frame and when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Since the first frame, in whole milliseconds.
    pub at: Duration,
    /// Of a message, when it came.
    pub clock: Option<UnixMicros>,
    /// The RTP packet or the message.
    pub bytes: &'a [u8],
}

impl FrameReader {
    /// A reader that has no bytes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that goes on at byte `position` of a file, where a frame begins.
    pub(crate) fn resume(info: Info, position: u64) -> Self {
        Self {
            before: position,
            magic: true,
            info: Some(info),
            ..Self::default()
        }
    }

    /// The byte of the file that is next.
    pub fn position(&self) -> u64 {
        self.before.saturating_add(self.taken as u64)
    }

    /// What the recording says of itself, and nothing behind that; none if more bytes are needed.
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

    /// What the recording says of itself, once [`FrameReader::next`] has come that far.
    pub fn info(&self) -> Option<&Info> {
        self.info.as_ref()
    }

    /// The next frame; none if more bytes are needed for it. After an error nothing comes that makes sense.
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

    /// Says whether the file, of which no more bytes come, ended where a frame did. One without any frame is as good.
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

    /// What kind of frames there are, if that is known.
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
    #![allow(clippy::unwrap_used)]
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
