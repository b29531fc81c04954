//! A writer of recordings: from frames to bytes.

use super::{FILE_MAGIC, FRAME_MAGIC, Info, MESSAGE_TIME, MjrError, UnixMicros};

/// The longest packet in bytes.
pub const MAX_PACKET: usize = u16::MAX as usize;
/// The longest message in bytes.
pub const MAX_MESSAGE: usize = MAX_PACKET - MESSAGE_TIME;

/// Writes a recording frame by frame. Nothing is read back or changed, so a torn file is valid up
/// to there.
#[derive(Debug)]
pub struct FrameWriter {
    info: Info,
    /// Whether the first frame, and the header before it, were written.
    has_header: bool,
}

impl FrameWriter {
    /// Starts a file, and writes its first bytes to `out`. The header follows with the first frame,
    /// when it is complete.
    pub fn new(info: Info, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(FILE_MAGIC);
        Self {
            info,
            has_header: false,
        }
    }

    /// Returns the header.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Changes the header. After the first frame this has no effect.
    pub fn set_info(&mut self, change: impl FnOnce(&mut Info)) {
        if !self.has_header {
            change(&mut self.info);
        }
    }

    /// Adds an RTP packet that came at `at`.
    pub fn packet(
        &mut self,
        at: UnixMicros,
        packet: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), MjrError> {
        let len = length(packet.len(), MAX_PACKET)?;
        self.begin_frame(at, len, out);
        out.extend_from_slice(packet);
        Ok(())
    }

    /// Adds a message of a data channel that came at `at`.
    pub fn message(
        &mut self,
        at: UnixMicros,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), MjrError> {
        let len = length(message.len(), MAX_MESSAGE)?;
        self.begin_frame(at, len + MESSAGE_TIME as u16, out);
        out.extend_from_slice(&at.0.to_be_bytes());
        out.extend_from_slice(message);
        Ok(())
    }

    fn begin_frame(&mut self, at: UnixMicros, len: u16, out: &mut Vec<u8>) {
        if !self.has_header {
            self.has_header = true;
            self.info.first_frame = at;
            let json = self.info.to_json();
            // It is always shorter than 2^16, see `MAX_INFO`.
            out.extend_from_slice(&(json.len() as u16).to_be_bytes());
            out.extend_from_slice(json.as_bytes());
        }
        let millis = at.since(self.info.first_frame).as_millis();
        let millis = u32::try_from(millis).unwrap_or(u32::MAX);
        out.extend_from_slice(FRAME_MAGIC);
        out.extend_from_slice(&millis.to_be_bytes());
        out.extend_from_slice(&len.to_be_bytes());
    }
}

fn length(len: usize, max: usize) -> Result<u16, MjrError> {
    let fits = u16::try_from(len).ok().filter(|_| len <= max);
    fits.ok_or(MjrError::TooLong { len, max })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::mjr::Medium;

    #[test]
    fn bytes_are_those_of_the_format() {
        let mut out = Vec::new();
        let info = Info::new(Medium::Data, "text", UnixMicros(5));
        let mut writer = FrameWriter::new(info, &mut out);
        assert_eq!(out, b"MJR00002");
        writer
            .message(UnixMicros(1_000_000), b"hi", &mut out)
            .unwrap();
        writer
            .message(UnixMicros(1_258_999), b"", &mut out)
            .unwrap();
        let json = r#"{"t":"d","c":"text","s":5,"u":1000000}"#;
        let mut expected = b"MJR00002".to_vec();
        expected.extend_from_slice(&[0, json.len() as u8]);
        expected.extend_from_slice(json.as_bytes());
        expected.extend_from_slice(b"MEET\0\0\0\0\0\x0a\0\0\0\0\0\x0f\x42\x40hi");
        expected.extend_from_slice(b"MEET\0\0\x01\x02\0\x08\0\0\0\0\0\x13\x35\xf7");
        assert_eq!(out, expected);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_leaves_nothing_behind() {
        let mut out = Vec::new();
        let info = Info::new(Medium::Audio, "opus", UnixMicros(0));
        let mut writer = FrameWriter::new(info, &mut out);
        let long = vec![0; 65_536];
        let at = UnixMicros(1);
        assert!(writer.packet(at, &long, &mut out).is_err());
        let message = long.get(..MAX_MESSAGE + 1).unwrap();
        assert!(writer.message(at, message, &mut out).is_err());
        assert_eq!(out.len(), 8);
    }
}
