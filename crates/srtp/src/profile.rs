//! The protection profiles.

/// A DTLS-SRTP protection profile (RFC 5764 section 4.1.2, RFC 7714 section 14.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// `AEAD_AES_128_GCM`
    AeadAes128Gcm,
    /// `AEAD_AES_256_GCM`
    AeadAes256Gcm,
    /// `AES_CM_128_HMAC_SHA1_80`
    Aes128CmSha1_80,
    /// `AES_CM_128_HMAC_SHA1_32`: the short tag is for RTP only (RFC 5764 section 4.1.2).
    Aes128CmSha1_32,
}

impl Profile {
    /// The profiles for DTLS, the most preferred (cheapest to seal) first. The one with a short tag
    /// is not among them: it is for keys from other sources.
    pub const PREFERENCE: [Profile; 3] = [
        Profile::AeadAes128Gcm,
        Profile::AeadAes256Gcm,
        Profile::Aes128CmSha1_80,
    ];

    /// Returns the length of the master key in bytes, which is that of the session's cipher key.
    pub const fn key_len(self) -> usize {
        match self {
            Profile::AeadAes128Gcm | Profile::Aes128CmSha1_80 | Profile::Aes128CmSha1_32 => 16,
            Profile::AeadAes256Gcm => 32,
        }
    }

    /// Returns the length of the master salt in bytes, which is that of the session salt.
    pub const fn salt_len(self) -> usize {
        match self {
            Profile::AeadAes128Gcm | Profile::AeadAes256Gcm => 12,
            Profile::Aes128CmSha1_80 | Profile::Aes128CmSha1_32 => 14,
        }
    }

    /// Returns the length of the authentication tag of an RTP packet, in bytes.
    pub const fn tag_len(self) -> usize {
        match self {
            Profile::AeadAes128Gcm | Profile::AeadAes256Gcm => 16,
            Profile::Aes128CmSha1_80 => 10,
            Profile::Aes128CmSha1_32 => 4,
        }
    }

    /// Returns the length of the authentication tag of an RTCP packet, in bytes.
    pub const fn rtcp_tag_len(self) -> usize {
        match self {
            Profile::AeadAes128Gcm | Profile::AeadAes256Gcm => 16,
            Profile::Aes128CmSha1_80 | Profile::Aes128CmSha1_32 => 10,
        }
    }

    /// Returns the bytes by which sealing lengthens an RTP packet.
    pub const fn rtp_overhead(self) -> usize {
        self.tag_len()
    }

    /// Returns the bytes by which sealing lengthens an RTCP packet: the tag and the index.
    pub const fn rtcp_overhead(self) -> usize {
        self.rtcp_tag_len() + 4
    }

    /// Returns the number in the `use_srtp` extension.
    pub const fn iana_id(self) -> u16 {
        match self {
            Profile::AeadAes128Gcm => 0x0007,
            Profile::AeadAes256Gcm => 0x0008,
            Profile::Aes128CmSha1_80 => 0x0001,
            Profile::Aes128CmSha1_32 => 0x0002,
        }
    }

    /// Returns the profile with number `id`, of those for DTLS.
    pub fn from_iana_id(id: u16) -> Option<Self> {
        Self::PREFERENCE
            .into_iter()
            .find(|profile| profile.iana_id() == id)
    }

    /// Returns the name in OpenSSL and in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::AeadAes128Gcm => "SRTP_AEAD_AES_128_GCM",
            Profile::AeadAes256Gcm => "SRTP_AEAD_AES_256_GCM",
            Profile::Aes128CmSha1_80 => "SRTP_AES128_CM_SHA1_80",
            Profile::Aes128CmSha1_32 => "SRTP_AES128_CM_SHA1_32",
        }
    }

    /// Returns the profile with this OpenSSL name, of those for DTLS.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::PREFERENCE
            .into_iter()
            .find(|profile| profile.name() == name)
    }
}
