//! Checking and decrypting incoming packets.

use std::fmt;

use portunus_rtp::{SeqNo, Ssrc};

use crate::derive::{SessionKeys, Use};
use crate::error::Refused;
use crate::sealer::{ENCRYPTED, RTCP_HEADER, rtcp_aad, rtcp_ssrc};
use crate::sources::{Place, SourceTable};
use crate::transform::{Packet, Transform};
use crate::{KeyError, OpenError, Profile, fetch};

/// The default limit of SSRCs, for RTP and for RTCP each: room for a peer that keeps changing its
/// tracks, in at most 96 KiB.
pub const DEFAULT_SOURCE_LIMIT: usize = 2_048;

/// Opens SRTP and SRTCP packets with one master key.
///
/// Only authentic packets change its state.
pub struct Opener {
    profile: Profile,
    rtp: Transform,
    rtcp: Transform,
    rtp_sources: SourceTable,
    rtcp_sources: SourceTable,
}

/// An opened RTP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// The length of the plain packet, in bytes.
    pub len: usize,
    /// The extended sequence number.
    pub index: SeqNo,
}

impl Opener {
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
            rtp_sources: SourceTable::new(DEFAULT_SOURCE_LIMIT),
            rtcp_sources: SourceTable::new(DEFAULT_SOURCE_LIMIT),
        })
    }

    /// Sets the limit of SSRCs, for RTP and for RTCP each.
    #[must_use]
    pub fn with_source_limit(mut self, limit: usize) -> Self {
        self.rtp_sources = SourceTable::new(limit);
        self.rtcp_sources = SourceTable::new(limit);
        self
    }

    /// [`fetch`]es the pointers to the key for RTP and to the sources.
    #[inline]
    pub fn fetch(&self) {
        fetch(&self.rtp);
        fetch(&self.rtp_sources);
    }

    /// [`fetch`]es the key for RTP and the sources, once the pointers to them are in the cache.
    #[inline]
    pub fn fetch_key(&self) {
        self.rtp.fetch();
        self.rtp_sources.fetch();
    }

    /// Returns the profile.
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// Opens the SRTP packet `buf` in place: `buf[..opened.len]` is the plain packet.
    ///
    /// `header_len` is the length in bytes of fixed header, CSRCs and extensions. With `ssrc` and
    /// `sequence`, it is what the caller read in the header. After an error the content of `buf` is
    /// undefined.
    pub fn open_rtp(
        &mut self,
        header_len: usize,
        ssrc: Ssrc,
        sequence: u16,
        buf: &mut [u8],
    ) -> Result<Opened, OpenError> {
        if buf.len() < header_len.saturating_add(self.profile.rtp_overhead()) {
            return Err(OpenError::Truncated);
        }
        let place = self.rtp_sources.find(ssrc)?;
        let index = match place {
            Place::Known(_, window) => {
                let index = SeqNo(window.highest()).nearest(sequence);
                if !window.is_fresh(index.0) {
                    return Err(OpenError::Replayed);
                }
                index
            }
            Place::New => SeqNo(u64::from(sequence)),
        };
        let len = self.open_rtp_at(index, header_len, ssrc, buf)?;
        self.rtp_sources.accept(place, ssrc, index.0);
        Ok(Opened { len, index })
    }

    /// Opens the SRTP packet `buf` in place, whose extended sequence number is `index`. Returns the
    /// length of the plain packet. For callers that keep the [`ReplayWindow`](crate::ReplayWindow)
    /// of each stream themselves: they check it before, and record the packet after.
    #[inline]
    pub fn open_rtp_at(
        &self,
        index: SeqNo,
        header_len: usize,
        ssrc: Ssrc,
        buf: &mut [u8],
    ) -> Result<usize, OpenError> {
        let len = buf
            .len()
            .checked_sub(self.profile.rtp_overhead())
            .ok_or(OpenError::Truncated)?;
        let (packet, tag) = buf.split_at_mut_checked(len).ok_or(OpenError::Truncated)?;
        let (header, payload) = packet
            .split_at_mut_checked(header_len)
            .ok_or(OpenError::Truncated)?;
        let packet = Packet {
            ssrc,
            index: index.0,
            header,
            payload,
            aad: header,
            trailer: index.roc().to_be_bytes(),
        };
        self.rtp
            .open(packet, tag)
            .map_err(|Refused| OpenError::Unauthenticated)?;
        Ok(len)
    }

    /// Opens the SRTCP packet `buf` in place. Returns the length of the plain packet. After an
    /// error the content of `buf` is undefined.
    pub fn open_rtcp(&mut self, buf: &mut [u8]) -> Result<usize, OpenError> {
        let len = buf
            .len()
            .checked_sub(self.profile.rtcp_overhead())
            .ok_or(OpenError::Truncated)?;
        let (packet, rest) = buf.split_at_mut_checked(len).ok_or(OpenError::Truncated)?;
        let (header, payload) = packet
            .split_first_chunk_mut::<RTCP_HEADER>()
            .ok_or(OpenError::Truncated)?;
        // GCM puts the tag before the index, counter mode after it.
        let (tag, word) = match self.rtcp {
            Transform::Gcm { .. } => rest.split_last_chunk::<4>(),
            Transform::Cm(_) => rest.split_first_chunk::<4>().map(|(word, tag)| (tag, word)),
        }
        .ok_or(OpenError::Truncated)?;
        let (word, ssrc) = (*word, rtcp_ssrc(header));
        let flagged = u32::from_be_bytes(word);
        // WebRTC always encrypts (RFC 8827 section 6.5).
        if flagged & ENCRYPTED == 0 {
            return Err(OpenError::Unauthenticated);
        }
        let index = u64::from(flagged & !ENCRYPTED);

        let place = self.rtcp_sources.find(ssrc)?;
        if let Place::Known(_, window) = place
            && !window.is_fresh(index)
        {
            return Err(OpenError::Replayed);
        }

        let packet = Packet {
            ssrc,
            index,
            header: &*header,
            payload,
            aad: &rtcp_aad(header, word),
            trailer: word,
        };
        self.rtcp
            .open(packet, tag)
            .map_err(|Refused| OpenError::Unauthenticated)?;
        self.rtcp_sources.accept(place, ssrc, index);
        Ok(len)
    }

    /// Forgets an SSRC that the peer no longer uses, to make room for another. Its packets could be
    /// replayed, so the caller must no longer accept them.
    pub fn forget(&mut self, ssrc: Ssrc) {
        self.rtp_sources.remove(ssrc);
        self.rtcp_sources.remove(ssrc);
    }
}

/// Shows the profile and the sources, but never a key.
impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener")
            .field("profile", &self.profile)
            .field("rtp_sources", &self.rtp_sources)
            .field("rtcp_sources", &self.rtcp_sources)
            .finish_non_exhaustive()
    }
}
