//! Protecting outgoing packets.

use std::fmt;

use portunus_rtp::{SeqNo, Ssrc};

use crate::derive::{SessionKeys, Use};
use crate::error::Refused;
use crate::sys::fetch;
use crate::transform::{Packet, Transform};
use crate::{KeyError, Profile, SealError};

/// The flag of SRTCP for encryption (RFC 3711 section 3.4).
pub(crate) const ENCRYPTED: u32 = 1 << 31;

/// The unencrypted bytes of an RTCP packet: its header and the sender's SSRC.
pub(crate) const RTCP_HEADER: usize = 8;

/// Seals RTP and RTCP packets with one master key.
pub struct Sealer {
    profile: Profile,
    rtp: Transform,
    rtcp: Transform,
    /// The index of the next SRTCP packet, which is common to all SSRCs.
    rtcp_index: u32,
}

impl Sealer {
    /// Derives the session keys and expands them.
    pub fn new(profile: Profile, master_key: &[u8], master_salt: &[u8]) -> Result<Self, KeyError> {
        let rtp = SessionKeys::derive(profile, master_key, master_salt, Use::Rtp)?;
        let rtcp = SessionKeys::derive(profile, master_key, master_salt, Use::Rtcp)?;
        Self::with_session_keys(profile, &rtp, &rtcp)
    }

    pub(crate) fn with_session_keys(
        profile: Profile,
        rtp: &SessionKeys,
        rtcp: &SessionKeys,
    ) -> Result<Self, KeyError> {
        Ok(Self {
            profile,
            rtp: Transform::new(profile, rtp)?,
            rtcp: Transform::new(profile, rtcp)?,
            rtcp_index: 0,
        })
    }

    /// [`fetch`]es the pointer to the key for RTP.
    #[inline]
    pub fn fetch(&self) {
        fetch(&self.profile);
        fetch(&self.rtp);
    }

    /// [`fetch`]es the key for RTP, once the pointer to it is in the cache.
    #[inline]
    pub fn fetch_key(&self) {
        self.rtp.fetch();
    }

    /// Returns the profile.
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// Seals the RTP packet `buf[..len]` in place. Returns its new length, which is longer by
    /// [`Profile::rtp_overhead`]; `buf` must have room for it.
    ///
    /// `header_len` is the length in bytes of fixed header, CSRCs and extensions. `index` is the
    /// packet's extended sequence number, whose low 16 bits are in the header.
    ///
    /// Security requires that the caller never seals two *different* packets with the same SSRC and
    /// index: a packet may be sent again only if all bits are equal.
    pub fn seal_rtp(
        &self,
        index: SeqNo,
        header_len: usize,
        len: usize,
        buf: &mut [u8],
    ) -> Result<usize, SealError> {
        self.seal_rtp_with_tail(index, header_len, len, &[], buf)
    }

    /// Seals a packet whose payload continues in `tail` after `buf[..len]`, like
    /// [`Self::seal_rtp`]. AES-GCM encrypts the tail from there without copying it first.
    pub fn seal_rtp_with_tail(
        &self,
        index: SeqNo,
        header_len: usize,
        len: usize,
        tail: &[u8],
        buf: &mut [u8],
    ) -> Result<usize, SealError> {
        let capacity = buf.len();
        let room = SealError::Room { len, capacity };
        if matches!(self.rtp, Transform::Cm(_)) && !tail.is_empty() {
            let whole = len + tail.len();
            let room = buf.get_mut(len..whole).ok_or(room)?;
            room.copy_from_slice(tail);
            return self.seal_rtp_with_tail(index, header_len, whole, &[], buf);
        }
        let (packet, rest) = buf.split_at_mut_checked(len).ok_or(room)?;
        let end = tail.len() + self.profile.tag_len();
        let tail_and_tag = rest.get_mut(..end).ok_or(room)?;
        let (header, payload) = packet.split_at_mut_checked(header_len).ok_or(room)?;
        let ssrc = header
            .get(8..12)
            .and_then(|b| b.first_chunk())
            .ok_or(room)?;
        let packet = Packet {
            ssrc: Ssrc(u32::from_be_bytes(*ssrc)),
            index: index.0,
            header,
            payload,
            aad: header,
            trailer: index.roc().to_be_bytes(),
        };
        self.rtp
            .seal(packet, tail, tail_and_tag)
            .map_err(|Refused| SealError::Refused)?;
        Ok(len + tail.len() + self.profile.rtp_overhead())
    }

    /// Seals the compound RTCP packet `buf[..len]` in place. Returns its new length, which is
    /// longer by [`Profile::rtcp_overhead`]; `buf` must have room for it.
    pub fn seal_rtcp(&mut self, len: usize, buf: &mut [u8]) -> Result<usize, SealError> {
        let room = SealError::Room {
            len,
            capacity: buf.len(),
        };
        if self.rtcp_index & ENCRYPTED != 0 {
            return Err(SealError::Exhausted);
        }
        let word = (self.rtcp_index | ENCRYPTED).to_be_bytes();
        let (packet, rest) = buf.split_at_mut_checked(len).ok_or(room)?;
        let rest = rest.get_mut(..self.profile.rtcp_overhead()).ok_or(room)?;
        let (header, payload) = packet.split_first_chunk_mut::<RTCP_HEADER>().ok_or(room)?;
        // GCM puts the tag before the index, counter mode after it.
        let (tag, place) = match self.rtcp {
            Transform::Gcm { .. } => rest.split_at_mut(self.profile.tag_len()),
            Transform::Cm(_) => {
                let (place, tag) = rest.split_at_mut(word.len());
                (tag, place)
            }
        };
        place.copy_from_slice(&word);
        let packet = Packet {
            ssrc: rtcp_ssrc(header),
            index: u64::from(self.rtcp_index),
            header: &*header,
            payload,
            aad: &rtcp_aad(header, word),
            trailer: word,
        };
        self.rtcp
            .seal(packet, &[], tag)
            .map_err(|Refused| SealError::Refused)?;
        self.rtcp_index += 1;
        Ok(len + self.profile.rtcp_overhead())
    }

    #[cfg(test)]
    pub(crate) fn set_rtcp_index(&mut self, index: u32) {
        self.rtcp_index = index;
    }
}

/// Shows the profile, but never a key.
impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

/// Returns the data that GCM authenticates in SRTCP (RFC 7714 section 9.2).
pub(crate) fn rtcp_aad(header: &[u8; RTCP_HEADER], word: [u8; 4]) -> [u8; RTCP_HEADER + 4] {
    let [a, b, c, d, e, f, g, h] = *header;
    let [i, j, k, l] = word;
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

/// Returns the sender's SSRC.
pub(crate) fn rtcp_ssrc(header: &[u8; RTCP_HEADER]) -> Ssrc {
    let [.., a, b, c, d] = *header;
    Ssrc(u32::from_be_bytes([a, b, c, d]))
}
