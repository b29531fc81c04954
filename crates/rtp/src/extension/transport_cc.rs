/// The transport-wide sequence number of a packet (draft-holmer-rmcat-transport-wide-cc).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TransportCc(pub u16);

impl TransportCc {
    /// Parses an element's value. Returns `None` if it is shorter than two bytes. (The second
    /// version of the extension adds a feedback request, which is ignored.)
    pub fn parse(value: &[u8]) -> Option<Self> {
        value
            .first_chunk()
            .map(|bytes| Self(u16::from_be_bytes(*bytes)))
    }

    /// Returns the element's value.
    pub fn to_bytes(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        assert_eq!(TransportCc::parse(&[0x12, 0x34]), Some(TransportCc(0x1234)));
        assert_eq!(TransportCc(0x1234).to_bytes(), [0x12, 0x34]);
        assert_eq!(TransportCc::parse(&[0x12]), None);
    }
}
