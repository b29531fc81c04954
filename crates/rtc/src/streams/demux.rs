//! From an RTP packet to its m-line and encoding (RFC 9143 section 9.2, RFC 8852).

use portunus_rtp::{ExtensionKind, ExtensionMap, Header, Mid, Pt, Rid, Ssrc};
use portunus_sdp::negotiated::{Kind, NegotiatedMedia};
use smallvec::SmallVec;

/// Where an RTP packet belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamKey {
    /// Index of the m-line.
    pub media: u8,
    /// Simulcast encoding, 0 the lowest.
    pub encoding: u8,
    /// An RTX stream (RFC 4588): it repairs the encoding.
    pub repair: bool,
}

/// SSRCs that a peer may bring to life; further ones are refused.
const MAX_SSRCS: usize = 64;
/// SSRCs of an encoding that outlive a renegotiation: the one in use, and the one that it replaces.
const KEPT_SSRCS: usize = 2;

/// Knows the SSRCs of a peer, and learns new ones from the mid and rid extensions.
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
    /// Takes the outcome of a negotiation. Of the SSRCs learnt before the newest stay, unless their
    /// m-line is gone.
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
                    media: index as u8,
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

    /// The numbers of the header extensions; the same on all m-lines (RFC 9143 section 14).
    pub fn extensions(&self) -> &ExtensionMap {
        &self.extensions
    }

    /// Where the packet belongs; none if nothing says so.
    pub fn resolve(&mut self, header: &Header, packet: &[u8]) -> Option<StreamKey> {
        if let Some((_, key)) = self.known.iter().find(|(ssrc, _)| *ssrc == header.ssrc) {
            return Some(*key);
        }
        let key = self.recognise(header, packet)?;
        self.learn(header.ssrc, key).then_some(key)
    }

    /// The SSRC of an encoding or of its repair stream, once known.
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
            media: media as u8,
            encoding: encoding as u8,
            repair,
        })
    }

    /// A peer that changes its tracks all day would run out of SSRCs otherwise.
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
