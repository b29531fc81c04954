//! The m-line and encoding of an RTP packet (RFC 9143 section 9.2, RFC 8852).

use portunus_rtp::{ExtensionKind, ExtensionMap, Header, Mid, Pt, Rid, Ssrc};
use portunus_sdp::negotiated::{Kind, NegotiatedMedia};
use portunus_srtp::fetch;
use smallvec::SmallVec;

/// The stream of an RTP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamKey {
    /// The index of the m-line.
    pub media: u16,
    /// The simulcast encoding. 0 is the lowest.
    pub encoding: u8,
    /// Whether it is an RTX stream (RFC 4588) that repairs the encoding.
    pub repair: bool,
}

/// The most SSRCs of a peer. More are refused.
const MAX_SSRCS: usize = 64;
/// The SSRCs of an encoding that outlive a renegotiation: the current one and its predecessor.
const KEPT_SSRCS: usize = 2;

/// The known SSRCs of a peer. New ones are learnt from the mid and rid extensions.
#[derive(Debug, Default)]
pub struct Demux {
    known: Vec<(Ssrc, StreamKey)>,
    media: SmallVec<[Line; 3]>,
    extensions: ExtensionMap,
}

#[derive(Debug)]
struct Line {
    mid: Mid,
    receives: bool,
    rids: SmallVec<[Rid; 3]>,
    payloads: SmallVec<[Pt; 4]>,
    rtx_payloads: SmallVec<[Pt; 4]>,
}

impl Demux {
    /// Applies a negotiation. The newest of the learnt SSRCs stay, unless their m-line is gone.
    pub fn configure(&mut self, media: &[NegotiatedMedia]) {
        self.extensions = ExtensionMap::default();
        self.media = media.iter().map(Line::new).collect();
        let lines = &self.media;
        let receives = |key: &StreamKey| {
            lines
                .get(usize::from(key.media))
                .is_some_and(|l| l.receives)
        };
        self.known.retain(|(_, key)| receives(key));
        self.forget_replaced();
        for (index, line) in media.iter().enumerate() {
            for (kind, id) in line.extensions.iter() {
                self.extensions.set(kind, id);
            }
            if line.disabled || !line.recv {
                continue;
            }
            for (encoding, remote) in line.remote_ssrcs.iter().enumerate() {
                let key = StreamKey {
                    media: index as u16,
                    encoding: encoding as u8,
                    repair: false,
                };
                self.learn(remote.ssrc, key);
                if let Some(rtx) = remote.rtx {
                    self.learn(
                        rtx,
                        StreamKey {
                            repair: true,
                            ..key
                        },
                    );
                }
            }
        }
    }

    /// Returns the ids of the header extensions, which are the same on all m-lines (RFC 9143
    /// section 14).
    pub fn extensions(&self) -> &ExtensionMap {
        &self.extensions
    }

    /// Prefetches what [`Demux::known`] searches.
    #[inline]
    pub(crate) fn fetch(&self) {
        if let Some(first) = self.known.first() {
            fetch(first);
        }
    }

    /// Returns the stream of a known SSRC.
    #[inline]
    pub fn known(&self, ssrc: Ssrc) -> Option<StreamKey> {
        let known = self.known.iter().find(|(known, _)| *known == ssrc);
        known.map(|(_, key)| *key)
    }

    /// Returns the rids of an m-line, lowest first.
    pub fn rids(&self, media: usize) -> &[Rid] {
        self.media.get(media).map_or(&[], |line| &line.rids)
    }

    /// Returns the stream of a packet, or `None` if it cannot be determined.
    pub fn resolve(&mut self, header: &Header, packet: &[u8]) -> Option<StreamKey> {
        if let Some(key) = self.known(header.ssrc) {
            return Some(key);
        }
        let key = self.recognise(header, packet)?;
        self.learn(header.ssrc, key).then_some(key)
    }

    /// Returns the SSRC of an encoding or of its repair stream, once known.
    pub fn ssrc(&self, key: StreamKey) -> Option<Ssrc> {
        self.known
            .iter()
            .rev()
            .find(|(_, k)| *k == key)
            .map(|(ssrc, _)| *ssrc)
    }

    fn recognise(&self, header: &Header, packet: &[u8]) -> Option<StreamKey> {
        let value = |kind| header.extension(packet, self.extensions.id(kind)?);
        let mid = value(ExtensionKind::Mid).and_then(Mid::from_bytes);
        let rid = value(ExtensionKind::Rid).and_then(Rid::from_bytes);
        let repaired = value(ExtensionKind::RepairedRid).and_then(Rid::from_bytes);
        let mut lines = self
            .media
            .iter()
            .enumerate()
            .filter(|(_, line)| line.receives);
        let (media, line) = match mid {
            Some(mid) => lines.find(|(_, line)| line.mid == mid)?,
            None => {
                let mut takers = lines.filter(|(_, line)| line.takes(header.pt));
                let only = takers.next()?;
                if takers.next().is_some() {
                    return None;
                }
                only
            }
        };
        let encoding = match repaired.or(rid) {
            Some(rid) if !line.rids.is_empty() => line.rids.iter().position(|r| *r == rid)?,
            _ if line.rids.len() > 1 => return None,
            _ => 0,
        };
        let repair = repaired.is_some() || line.rtx_payloads.contains(&header.pt);
        Some(StreamKey {
            media: media as u16,
            encoding: encoding as u8,
            repair,
        })
    }

    /// Forgets replaced SSRCs, so that a peer that keeps changing its tracks does not run out of
    /// them.
    fn forget_replaced(&mut self) {
        let mut kept: Vec<(Ssrc, StreamKey)> = Vec::new();
        for (ssrc, key) in self.known.drain(..).rev() {
            if kept.iter().filter(|(_, k)| *k == key).count() < KEPT_SSRCS {
                kept.push((ssrc, key));
            }
        }
        kept.reverse();
        self.known = kept;
    }

    fn learn(&mut self, ssrc: Ssrc, key: StreamKey) -> bool {
        if let Some((_, known)) = self.known.iter_mut().find(|(s, _)| *s == ssrc) {
            *known = key;
            return true;
        }
        if self.known.len() >= MAX_SSRCS {
            return false;
        }
        self.known.push((ssrc, key));
        true
    }
}

impl Line {
    fn new(media: &NegotiatedMedia) -> Self {
        Self {
            mid: media.mid,
            receives: media.recv && !media.disabled && media.kind != Kind::Data,
            rids: media.rids.iter().copied().collect(),
            payloads: media.payloads.iter().map(|p| p.pt).collect(),
            rtx_payloads: media.payloads.iter().filter_map(|p| p.rtx).collect(),
        }
    }

    fn takes(&self, pt: Pt) -> bool {
        self.payloads.contains(&pt) || self.rtx_payloads.contains(&pt)
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use portunus_rtp::{Fields, write_header};
    use portunus_sdp::negotiated::RemoteSsrc;

    use super::*;
    use crate::testing::{AUDIO_PT, RTX_PT, VIDEO_PT, audio, data, simulcast, video};

    const fn key(media: u16, encoding: u8, repair: bool) -> StreamKey {
        StreamKey {
            media,
            encoding,
            repair,
        }
    }

    fn configured(media: &[NegotiatedMedia]) -> Demux {
        let mut demux = Demux::default();
        demux.configure(media);
        demux
    }

    /// Returns the stream of a packet with these extensions.
    fn resolve(
        demux: &mut Demux,
        ssrc: u32,
        pt: Pt,
        extensions: &[(ExtensionKind, &str)],
    ) -> Option<StreamKey> {
        let fields = Fields {
            marker: false,
            padding: false,
            pt,
            sequence: 1,
            timestamp: 0,
            ssrc: Ssrc(ssrc),
        };
        let extensions: Vec<(u8, &[u8])> = extensions
            .iter()
            .map(|(kind, value)| (demux.extensions().id(*kind).unwrap(), value.as_bytes()))
            .collect();
        let mut packet = [0; 128];
        let len = write_header(&mut packet, &fields, extensions.iter().copied()).unwrap();
        let header = Header::parse(&packet[..len]).unwrap();
        demux.resolve(&header, &packet[..len])
    }

    const fn mid(mid: &str) -> (ExtensionKind, &str) {
        (ExtensionKind::Mid, mid)
    }

    #[test]
    fn declared_ssrcs_need_no_extensions() {
        let mut line = video("v", 1);
        line.remote_ssrcs = [(10, Some(11)), (20, None)]
            .map(|(ssrc, rtx)| RemoteSsrc {
                ssrc: Ssrc(ssrc),
                rtx: rtx.map(Ssrc),
            })
            .to_vec();
        let mut demux = configured(&[audio("a", 1), line]);
        assert_eq!(
            resolve(&mut demux, 10, VIDEO_PT, &[]),
            Some(key(1, 0, false))
        );
        assert_eq!(resolve(&mut demux, 11, RTX_PT, &[]), Some(key(1, 0, true)));
        assert_eq!(
            resolve(&mut demux, 20, VIDEO_PT, &[]),
            Some(key(1, 1, false))
        );
        assert_eq!(demux.ssrc(key(1, 0, true)), Some(Ssrc(11)));
    }

    #[test]
    fn a_mid_tells_lines_of_the_same_payload_type_apart() {
        let mut demux = configured(&[video("x", 1), video("y", 3)]);
        assert_eq!(
            resolve(&mut demux, 10, VIDEO_PT, &[]),
            None,
            "either may be"
        );
        let second = Some(key(1, 0, false));
        assert_eq!(resolve(&mut demux, 10, VIDEO_PT, &[mid("y")]), second);
        assert_eq!(resolve(&mut demux, 10, VIDEO_PT, &[]), second, "learnt");
        assert_eq!(resolve(&mut demux, 11, VIDEO_PT, &[mid("z")]), None);
    }

    #[test]
    fn without_a_mid_the_only_taker_of_a_payload_type_gets_it() {
        let mut demux = configured(&[audio("a", 1), video("v", 3), data("d")]);
        assert_eq!(
            resolve(&mut demux, 1, AUDIO_PT, &[]),
            Some(key(0, 0, false))
        );
        assert_eq!(
            resolve(&mut demux, 2, VIDEO_PT, &[]),
            Some(key(1, 0, false))
        );
        assert_eq!(resolve(&mut demux, 3, RTX_PT, &[]), Some(key(1, 0, true)));
        assert_eq!(resolve(&mut demux, 4, Pt(0), &[]), None);
        assert_eq!(resolve(&mut demux, 5, Pt(0), &[mid("d")]), None);
    }

    #[test]
    fn rids_tell_encodings_and_what_repairs_them() {
        let mut demux = configured(&[simulcast("v", 1, &["q", "f"])]);
        let rid = |rid| (ExtensionKind::Rid, rid);
        let repaired = |rid| (ExtensionKind::RepairedRid, rid);
        let mut told = |ssrc, list: &[_]| resolve(&mut demux, ssrc, VIDEO_PT, list);
        assert_eq!(told(1, &[mid("v"), rid("f")]), Some(key(0, 1, false)));
        assert_eq!(told(2, &[mid("v"), rid("q")]), Some(key(0, 0, false)));
        assert_eq!(told(3, &[mid("v"), repaired("f")]), Some(key(0, 1, true)));
        assert_eq!(told(4, &[mid("v"), rid("h")]), None);
        assert_eq!(told(5, &[mid("v")]), None, "which of the two?");
    }

    #[test]
    fn the_number_of_ssrcs_is_bounded_and_a_negotiation_makes_room() {
        let lines = [video("v", 1)];
        let mut demux = configured(&lines);
        let known = (0..1_000).filter(|ssrc| resolve(&mut demux, *ssrc, VIDEO_PT, &[]).is_some());
        assert_eq!(known.count(), MAX_SSRCS);
        demux.configure(&lines);
        assert_eq!(demux.known.len(), KEPT_SSRCS);
        assert_eq!(demux.ssrc(key(0, 0, false)), Some(Ssrc(63)), "the newest");
        assert!(resolve(&mut demux, 1_000, VIDEO_PT, &[]).is_some());
    }

    #[test]
    fn what_a_removed_line_learnt_is_forgotten() {
        let mut lines = [video("v", 1), video("w", 3)];
        let mut demux = configured(&lines);
        resolve(&mut demux, 10, VIDEO_PT, &[mid("v")]);
        resolve(&mut demux, 20, VIDEO_PT, &[mid("w")]);
        lines[1].disabled = true;
        demux.configure(&lines);
        let first = Some(key(0, 0, false));
        assert_eq!(resolve(&mut demux, 10, VIDEO_PT, &[]), first);
        assert_eq!(resolve(&mut demux, 20, VIDEO_PT, &[mid("w")]), None);
    }
}
