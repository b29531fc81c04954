//! The headers of Ogg Opus (RFC 7845 section 5).

/// The identification header for decoders (RFC 7845 section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpusHead {
    /// 1 or 2. Decoders convert each packet to this number of channels.
    pub channels: u8,
    /// The samples of 48 kHz that a player skips at the start.
    pub pre_skip: u16,
    /// The sampling rate of the original in Hz, for information; 0 if unknown.
    pub input_rate: u32,
}

impl Default for OpusHead {
    /// Returns the header of WebRTC's Opus: two channels at 48 kHz without pre-skip (RFC 7587
    /// section 7).
    fn default() -> Self {
        Self {
            channels: 2,
            pre_skip: 0,
            input_rate: 48_000,
        }
    }
}

impl OpusHead {
    /// Returns the first packet of a stream.
    pub(crate) fn packet(&self) -> Vec<u8> {
        const VERSION: u8 = 1;
        /// Gain 0, and both channels in the usual order.
        const GAIN_AND_FAMILY: [u8; 3] = [0; 3];
        let mut packet = b"OpusHead".to_vec();
        packet.extend([VERSION, self.channels.clamp(1, 2)]);
        packet.extend(self.pre_skip.to_le_bytes());
        packet.extend(self.input_rate.to_le_bytes());
        packet.extend(GAIN_AND_FAMILY);
        packet
    }
}

/// The comment header for people (RFC 7845 section 5.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpusTags(Vec<String>);

impl OpusTags {
    /// Adds a tag. The name is one of Vorbis, such as `TITLE` or `DATE`. Tags with an invalid name,
    /// or a value of more than 1,000 bytes, are left out.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        const LONGEST: usize = 1_000;
        let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic() && b != b'=');
        if named && name.len() <= LONGEST && value.len() <= LONGEST && self.0.len() < LONGEST {
            self.0.push(format!("{name}={value}"));
        }
        self
    }

    /// Returns the second packet of a stream.
    pub(super) fn packet(&self) -> Vec<u8> {
        const VENDOR: &str = concat!("Portunus ", env!("CARGO_PKG_VERSION"));
        let mut packet = b"OpusTags".to_vec();
        put(&mut packet, VENDOR);
        packet.extend((self.0.len() as u32).to_le_bytes());
        for tag in &self.0 {
            put(&mut packet, tag);
        }
        packet
    }
}

/// Writes a text after its length.
fn put(packet: &mut Vec<u8>, text: &str) {
    packet.extend((text.len() as u32).to_le_bytes());
    packet.extend_from_slice(text.as_bytes());
}

/// Returns the number of channels in an identification header, if it is one.
pub(crate) fn channels_of_head(head: &[u8]) -> Option<u8> {
    let rest = head.strip_prefix(b"OpusHead")?;
    // Version, then channels; the fixed part has 19 bytes.
    (head.len() >= 19).then_some(())?;
    rest.get(1).copied().filter(|channels| *channels > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]

    use super::*;

    #[test]
    fn heads() {
        let head = b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0";
        let written = OpusHead {
            pre_skip: 312,
            ..OpusHead::default()
        };
        assert_eq!(written.packet(), head);
        assert_eq!(channels_of_head(head), Some(2));
        assert_eq!(channels_of_head(&head[..18]), None);
        assert_eq!(
            channels_of_head(b"OpusTags\x01\x02\x38\x01\x80\xbb\0\0\0\0\0"),
            None
        );
    }

    #[test]
    fn tags_that_cannot_be_are_left_out() {
        let tags = OpusTags::default()
            .with("TITLE", "Hello")
            .with("a=b", "c")
            .with("", "c")
            .with("COMMENT", &"a".repeat(2_000));
        assert_eq!(tags.0, ["TITLE=Hello"]);
        assert!(tags.packet().starts_with(b"OpusTags"));
        assert!(tags.packet().ends_with(b"\x01\0\0\0\x0b\0\0\0TITLE=Hello"));
    }
}
