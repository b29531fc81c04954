//! The encryption of media.

use clap::ValueEnum;

/// The SRTP profile of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Profile {
    /// AEAD_AES_128_GCM
    #[default]
    Gcm,
    /// AES_CM_128_HMAC_SHA1_80
    Cm,
}

impl Profile {
    /// Returns its name in OpenSSL.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Gcm => "SRTP_AEAD_AES_128_GCM",
            Profile::Cm => "SRTP_AES128_CM_SHA1_80",
        }
    }

    /// Returns the bytes that sealing adds.
    pub(crate) fn tag_bytes(self) -> usize {
        match self {
            Profile::Gcm => 16,
            Profile::Cm => 10,
        }
    }
}
