//! SRTP of an ingest (RFC 3711, with a key from RFC 4568): one context for all senders.

use std::fmt;
use std::time::{Duration, Instant};

use portunus_rtp::{Header, Ssrc};
use portunus_srtp::{OpenError, Opener};

use super::{IngestSrtp, Refused};

/// The maximum number of senders whose replay windows are kept: a sender that restarts has another
/// SSRC.
const SENDERS: usize = 16;
/// After this time without an authentic packet, and this many that are not, the sender is assumed
/// to have restarted with a roll-over counter of 0.
const LOST: Duration = Duration::from_secs(1);
const STRIKES: u32 = 3;

/// Decrypts packets.
pub(crate) struct Protection {
    key: IngestSrtp,
    opener: Option<Opener>,
    last_authentic: Option<Instant>,
    strikes: u32,
}

impl Protection {
    pub(crate) fn new(key: IngestSrtp) -> Self {
        Self {
            opener: opener(&key),
            key,
            last_authentic: None,
            strikes: 0,
        }
    }

    /// Decrypts a packet in place. Returns its header, and the length of the decrypted packet.
    pub(crate) fn open(
        &mut self,
        packet: &mut [u8],
        now: Instant,
    ) -> Result<(Header, usize), Refused> {
        let header = Header::parse_encrypted(packet).map_err(|_| Refused::Malformed)?;
        let opener = self.opener.as_mut().ok_or(Refused::Unauthentic)?;
        let opened = opener.open_rtp(header.header_len(), header.ssrc, header.sequence, packet);
        match opened {
            Ok(opened) => {
                self.last_authentic = Some(now);
                self.strikes = 0;
                let plain = packet.get(..opened.len).unwrap_or_default();
                let header = header.decrypted(plain);
                Ok((header.map_err(|_| Refused::Malformed)?, opened.len))
            }
            Err(OpenError::TooManySources) => {
                self.opener = self::opener(&self.key);
                Err(Refused::Late)
            }
            Err(error) => {
                self.strike(header.ssrc, now);
                Err(match error {
                    OpenError::Truncated => Refused::Malformed,
                    OpenError::Replayed => Refused::Late,
                    _ => Refused::Unauthentic,
                })
            }
        }
    }

    fn strike(&mut self, ssrc: Ssrc, now: Instant) {
        self.strikes += 1;
        let since = |at| now.saturating_duration_since(at);
        if self.strikes >= STRIKES && self.last_authentic.is_some_and(|at| since(at) >= LOST) {
            self.strikes = 0;
            if let Some(opener) = &mut self.opener {
                opener.forget(ssrc);
            }
        }
    }
}

/// Keys are not shown.
impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protection")
            .field("key", &self.key)
            .field("strikes", &self.strikes)
            .finish_non_exhaustive()
    }
}

fn opener(key: &IngestSrtp) -> Option<Opener> {
    let profile = key.suite.profile();
    let (master, salt) = key.key_and_salt.split_at_checked(profile.key_len())?;
    let opener = Opener::new(profile, master, salt);
    opener.ok().map(|opener| opener.with_source_limit(SENDERS))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a failed test panics"
    )]
    use portunus_rtp::{Fields, Pt, SeqNo, write_header};
    use portunus_srtp::Sealer;

    use super::*;
    use crate::ingest::SrtpSuite;

    struct Sender {
        sealer: Sealer,
        ssrc: u32,
    }

    fn pair(suite: SrtpSuite) -> (Sender, Protection) {
        let key_and_salt = std::array::from_fn(|n| n as u8);
        let profile = suite.profile();
        let sealer = Sealer::new(profile, &key_and_salt[..16], &key_and_salt[16..]).unwrap();
        let key = IngestSrtp {
            suite,
            key_and_salt,
        };
        (Sender { sealer, ssrc: 7 }, Protection::new(key))
    }

    impl Sender {
        fn packet(&self, index: u64) -> Vec<u8> {
            let mut packet = vec![0; 200];
            let fields = Fields {
                marker: false,
                padding: false,
                pt: Pt(96),
                sequence: index as u16,
                timestamp: 0,
                ssrc: Ssrc(self.ssrc),
            };
            let header = write_header(&mut packet, &fields, []).unwrap();
            let sealed = self
                .sealer
                .seal_rtp(SeqNo(index), header, header + 100, &mut packet);
            packet.truncate(sealed.unwrap());
            packet
        }
    }

    #[test]
    fn both_suites_open() {
        for suite in [
            SrtpSuite::AesCm128HmacSha1_80,
            SrtpSuite::AesCm128HmacSha1_32,
        ] {
            let (sender, mut protection) = pair(suite);
            let now = Instant::now();
            let mut packet = sender.packet(5);
            let (header, len) = protection.open(&mut packet, now).unwrap();
            assert_eq!((header.sequence, len), (5, 112));
            let open = |protection: &mut Protection, mut packet: Vec<u8>| {
                protection.open(&mut packet, now).unwrap_err()
            };
            assert_eq!(open(&mut protection, sender.packet(5)), Refused::Late);
            let mut forged = sender.packet(6);
            forged[20] ^= 1;
            assert_eq!(open(&mut protection, forged), Refused::Unauthentic);
            assert_eq!(open(&mut protection, vec![0x80; 3]), Refused::Malformed);
            assert_eq!(open(&mut protection, vec![0x80; 12]), Refused::Malformed);
        }
    }

    #[test]
    fn a_sender_that_begins_anew_is_heard_again() {
        let (sender, mut protection) = pair(SrtpSuite::AesCm128HmacSha1_80);
        let start = Instant::now();
        for index in (30_000..200_000).step_by(10_000) {
            assert!(protection.open(&mut sender.packet(index), start).is_ok());
        }
        let later = start + Duration::from_secs(2);
        let heard = (0..5).map(|n| protection.open(&mut sender.packet(n), later).is_ok());
        assert_eq!(heard.collect::<Vec<_>>(), [false, false, false, true, true]);
    }

    #[test]
    fn senders_may_change_for_ever() {
        let (mut sender, mut protection) = pair(SrtpSuite::AesCm128HmacSha1_80);
        let now = Instant::now();
        let heard = (0..100).filter(|ssrc| {
            sender.ssrc = *ssrc;
            (0..2).any(|n| protection.open(&mut sender.packet(n), now).is_ok())
        });
        assert_eq!(heard.count(), 100);
    }
}
