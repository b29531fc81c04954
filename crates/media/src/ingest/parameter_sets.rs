//! H.264 parameter sets from the SDP (RFC 6184 section 8.1), which are sent before each I-frame.

use std::sync::Arc;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// A sequence parameter set and picture parameter sets as one aggregation packet (STAP-A).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterSets {
    payload: Arc<[u8]>,
}

/// Accepts base64 without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The type of an aggregation packet (RFC 6184 section 5.7.1).
const STAP_A: u8 = 24;
const SEQUENCE_PARAMETER_SET: u8 = 7;
const PICTURE_PARAMETER_SET: u8 = 8;
/// The maximum payload in bytes: with a header it fits any datagram.
const MAX_PAYLOAD: usize = 1_000;

/// Why parameter sets cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterSetsError {
    /// A part is not base64.
    #[error("sprop-parameter-sets are base64, separated by commas")]
    NotBase64,
    /// One of the two kinds is missing.
    #[error("a sequence and a picture parameter set are needed")]
    Missing,
    /// There is a unit of another kind.
    #[error("a NAL unit of type {0} is no parameter set")]
    Foreign(u8),
    /// They do not fit into a packet.
    #[error("parameter sets of more than {MAX_PAYLOAD} bytes do not fit a packet")]
    TooLong,
}

impl ParameterSets {
    /// Reads `sprop-parameter-sets` of SDP: units in base64, separated by commas.
    pub fn from_sprop(text: &str) -> Result<Self, ParameterSetsError> {
        let mut payload = vec![0];
        let (mut reference, mut sequence, mut picture) = (0, false, false);
        for part in text.split(',') {
            let unit = BASE64
                .decode(part.trim())
                .map_err(|_| ParameterSetsError::NotBase64)?;
            let head = *unit.first().ok_or(ParameterSetsError::NotBase64)?;
            match head & 0x1f {
                SEQUENCE_PARAMETER_SET => sequence = true,
                PICTURE_PARAMETER_SET => picture = true,
                other => return Err(ParameterSetsError::Foreign(other)),
            }
            reference = reference.max(head & 0x60);
            let len = u16::try_from(unit.len()).map_err(|_| ParameterSetsError::TooLong)?;
            payload.extend_from_slice(&len.to_be_bytes());
            payload.extend_from_slice(&unit);
        }
        if !(sequence && picture) {
            return Err(ParameterSetsError::Missing);
        }
        if payload.len() > MAX_PAYLOAD {
            return Err(ParameterSetsError::TooLong);
        }
        if let Some(head) = payload.first_mut() {
            *head = reference | STAP_A;
        }
        Ok(Self {
            payload: payload.into(),
        })
    }

    /// The payload of the packet with the parameter sets.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    #[test]
    fn they_become_one_aggregation_packet() {
        let sets = ParameterSets::from_sprop("Z0LAHg==,aM48gA==").unwrap();
        assert_eq!(
            sets.payload(),
            [
                0x78, 0, 4, 0x67, 0x42, 0xc0, 0x1e, 0, 4, 0x68, 0xce, 0x3c, 0x80
            ]
        );
    }

    #[test]
    fn what_is_no_parameter_set_is_refused() {
        let refused = |text: &str| ParameterSets::from_sprop(text).unwrap_err();
        assert_eq!(refused(""), ParameterSetsError::NotBase64);
        assert_eq!(refused("Z0LAHg=="), ParameterSetsError::Missing);
        assert_eq!(refused("Z0LAHg==,%%"), ParameterSetsError::NotBase64);
        assert_eq!(refused("Z0LAHg==,ZUg="), ParameterSetsError::Foreign(5));
        let long = format!("Z0LAHg==,aM48gA==,{}", "aM48".repeat(1_000));
        assert_eq!(refused(&long), ParameterSetsError::TooLong);
    }
}
