//! Simulcast in SDP: by rid (RFC 8851, RFC 8853), by rid in the form of old Firefox, and by SSRC
//! groups.

use portunus_rtp::{Mid, Rid, Ssrc};

use crate::negotiated::RemoteSsrc;

/// The most layers of a simulcast stream.
pub(crate) const MAX_LAYERS: usize = 3;
/// The longest rid, in characters.
const MAX_RID: usize = 15;

/// The order of the rids in an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RidOrder {
    /// The first rid is the highest layer (`hml`).
    #[default]
    HighestFirst,
    /// The first rid is the lowest layer (`lmh`).
    LowestFirst,
}

impl RidOrder {
    /// Returns the order with this name in the API: `hml` or `lmh`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "hml" => Some(RidOrder::HighestFirst),
            "lmh" => Some(RidOrder::LowestFirst),
            _ => None,
        }
    }
}

/// A simulcast stream of the remote side, for plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulcast {
    /// The mid.
    pub mid: Mid,
    /// The rids, the lowest layer (substream 0) first. Empty if SSRCs identify the layers.
    pub rids: Vec<Rid>,
    /// The SSRCs of the layers, the lowest first. Empty with rids.
    pub ssrcs: Vec<Ssrc>,
}

/// A rid that the remote side offers to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferedRid {
    /// The rid.
    pub rid: Rid,
    /// Whether it is marked `~`: paused for now.
    pub paused: bool,
}

/// The form of the `a=simulcast` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulcastForm {
    /// `a=simulcast:send h;m;l` (RFC 8853).
    Standard,
    /// `a=simulcast: send rid=h;m;l`, as in Firefox before version 63.
    Legacy,
}

/// Collects the rids of one m-line from its `a=rid` and `a=simulcast` lines.
#[derive(Debug, Default)]
pub(crate) struct RidCollector {
    declared: Vec<Rid>,
    listed: Vec<OfferedRid>,
    form: Option<SimulcastForm>,
}

impl RidCollector {
    /// Takes the value of an `a=rid` line: `h send pt=96`.
    pub(crate) fn rid(&mut self, value: &str) {
        let mut fields = value.split_ascii_whitespace();
        if let (Some(rid), Some("send")) = (fields.next().and_then(short_rid), fields.next())
            && self.declared.len() < MAX_LAYERS
            && !self.declared.contains(&rid)
        {
            self.declared.push(rid);
        }
    }

    /// Takes the value of an `a=simulcast` line: `send h;~m,n;l recv x`.
    pub(crate) fn simulcast(&mut self, value: &str) {
        let mut fields = value.split_ascii_whitespace();
        while let Some(direction) = fields.next() {
            let Some(streams) = fields.next() else { return };
            if direction != "send" || self.form.is_some() {
                continue;
            }
            let (form, streams) = match streams.strip_prefix("rid=") {
                Some(streams) => (SimulcastForm::Legacy, streams),
                None => (SimulcastForm::Standard, streams),
            };
            self.form = Some(form);
            // The first alternative of a stream, which is the preferred one, stands for all.
            let first = streams
                .split(';')
                .filter_map(|alternatives| alternatives.split(',').next());
            self.listed = first
                .filter_map(|text| {
                    let name = text.strip_prefix('~');
                    let rid = short_rid(name.unwrap_or(text))?;
                    Some(OfferedRid {
                        rid,
                        paused: name.is_some(),
                    })
                })
                .collect();
        }
    }

    /// Returns the rids in order, and their form if there was an `a=simulcast` line.
    pub(crate) fn finish(self) -> (Vec<OfferedRid>, Option<SimulcastForm>) {
        let RidCollector {
            declared,
            mut listed,
            form,
        } = self;
        listed.retain(|offered| declared.contains(&offered.rid));
        listed.truncate(MAX_LAYERS);
        if listed.is_empty() {
            listed = declared
                .into_iter()
                .map(|rid| OfferedRid { rid, paused: false })
                .collect();
        }
        (listed, form)
    }
}

fn short_rid(text: &str) -> Option<Rid> {
    Rid::new(text).filter(|_| text.len() <= MAX_RID)
}

/// Returns the values of the `a=rid` lines and of the `a=simulcast` line that accept `rids`.
pub(crate) fn accept_lines(
    rids: &[OfferedRid],
    form: Option<SimulcastForm>,
) -> (Vec<String>, Option<String>) {
    let lines = rids
        .iter()
        .map(|offered| format!("{} recv", offered.rid))
        .collect();
    let list = rids
        .iter()
        .map(|offered| format!("{}{}", if offered.paused { "~" } else { "" }, offered.rid))
        .collect::<Vec<_>>()
        .join(";");
    let simulcast = form.filter(|_| !rids.is_empty()).map(|form| match form {
        SimulcastForm::Standard => format!("recv {list}"),
        SimulcastForm::Legacy => format!(" recv rid={list}"),
    });
    (lines, simulcast)
}

/// Collects the streams of one m-line from its `a=ssrc` and `a=ssrc-group` lines (RFC 5576).
#[derive(Debug, Default)]
pub(crate) struct SsrcCollector {
    ssrcs: Vec<Ssrc>,
    layers: Vec<Ssrc>,
    repairs: Vec<(Ssrc, Ssrc)>,
    other: Vec<Ssrc>,
}

/// SSRCs beyond this number on one m-line are ignored.
const MAX_SSRCS: usize = 32;

impl SsrcCollector {
    /// Takes the value of an `a=ssrc` line.
    pub(crate) fn ssrc(&mut self, value: &str) {
        let number = value
            .split_ascii_whitespace()
            .next()
            .and_then(|text| text.parse().ok());
        if let Some(ssrc) = number.map(Ssrc)
            && self.ssrcs.len() < MAX_SSRCS
            && !self.ssrcs.contains(&ssrc)
        {
            self.ssrcs.push(ssrc);
        }
    }

    /// Takes the value of an `a=ssrc-group` line.
    pub(crate) fn group(&mut self, value: &str) {
        let mut fields = value.split_ascii_whitespace();
        let semantics = fields.next().unwrap_or_default();
        let members: Vec<Ssrc> = fields
            .take(MAX_SSRCS)
            .filter_map(|text| text.parse().ok())
            .map(Ssrc)
            .collect();
        match (semantics, members.as_slice()) {
            ("SIM", _) if self.layers.is_empty() => self.layers = members,
            ("FID", &[media, repair]) if self.repairs.len() < MAX_SSRCS => {
                self.repairs.push((media, repair));
            }
            // FEC groups name the protected stream first.
            (_, [_, others @ ..]) if semantics.starts_with("FEC") => {
                self.other.extend(others.iter().take(MAX_SSRCS));
            }
            _ => {}
        }
    }

    /// Returns the media streams: the layers of a simulcast stream, the lowest first, or a single
    /// stream.
    pub(crate) fn finish(self) -> Vec<RemoteSsrc> {
        let SsrcCollector {
            ssrcs,
            layers,
            repairs,
            other,
        } = self;
        let is_media = |ssrc: &Ssrc| {
            !other.contains(ssrc) && !repairs.iter().any(|(_, repair)| repair == ssrc)
        };
        let media: Vec<Ssrc> = if layers.is_empty() {
            ssrcs.into_iter().filter(is_media).take(1).collect()
        } else {
            layers.into_iter().take(MAX_LAYERS).collect()
        };
        media
            .into_iter()
            .map(|ssrc| {
                let rtx = repairs
                    .iter()
                    .find(|(media, _)| *media == ssrc)
                    .map(|(_, rtx)| *rtx);
                RemoteSsrc { ssrc, rtx }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn collect(rids: &[&str], simulcast: &str) -> (Vec<String>, Option<SimulcastForm>) {
        let mut collector = RidCollector::default();
        rids.iter().for_each(|rid| collector.rid(rid));
        collector.simulcast(simulcast);
        let (rids, form) = collector.finish();
        let mark = |r: &OfferedRid| format!("{}{}", if r.paused { "~" } else { "" }, r.rid);
        (rids.iter().map(mark).collect(), form)
    }

    #[test]
    fn reads_rids_in_the_order_of_the_simulcast_line() {
        let (rids, form) = collect(&["l send", "m send", "h send"], "send h;~m;l");
        assert_eq!(rids, ["h", "~m", "l"]);
        assert_eq!(form, Some(SimulcastForm::Standard));
    }

    #[test]
    fn reads_the_old_form_of_firefox() {
        let (rids, form) = collect(&["h send", "l send"], " send rid=h;l");
        assert_eq!(rids, ["h", "l"]);
        assert_eq!(form, Some(SimulcastForm::Legacy));
    }

    #[test]
    fn ignores_what_is_too_much_too_long_or_not_sent() {
        let rids = [
            "a send",
            "b recv",
            "c send",
            "d send",
            "e send",
            "sixteencharacter send",
        ];
        let (rids, _) = collect(&rids, "send a,x;b;c;d;e recv z");
        assert_eq!(rids, ["a", "c", "d"]);
    }

    #[test]
    fn answers_with_the_same_form() {
        let offered = |rid, paused| OfferedRid {
            rid: Rid::new(rid).unwrap(),
            paused,
        };
        let rids = [offered("h", false), offered("l", true)];
        let (lines, simulcast) = accept_lines(&rids, Some(SimulcastForm::Standard));
        assert_eq!(lines, ["h recv", "l recv"]);
        assert_eq!(simulcast.as_deref(), Some("recv h;~l"));
        let (_, simulcast) = accept_lines(&rids, Some(SimulcastForm::Legacy));
        assert_eq!(simulcast.as_deref(), Some(" recv rid=h;~l"));
        assert_eq!(accept_lines(&rids, None).1, None);
    }

    #[test]
    fn reads_ssrc_groups() {
        let mut collector = SsrcCollector::default();
        [
            "1 cname:x",
            "1 msid:a b",
            "2 cname:x",
            "3 cname:x",
            "11 cname:x",
        ]
        .iter()
        .for_each(|line| collector.ssrc(line));
        ["SIM 1 2 3", "FID 1 11", "FID 2 12"]
            .iter()
            .for_each(|line| collector.group(line));
        let stream = |ssrc, rtx: Option<u32>| RemoteSsrc {
            ssrc: Ssrc(ssrc),
            rtx: rtx.map(Ssrc),
        };
        assert_eq!(
            collector.finish(),
            [stream(1, Some(11)), stream(2, Some(12)), stream(3, None)]
        );
    }

    #[test]
    fn takes_the_first_stream_that_is_neither_rtx_nor_fec() {
        let mut collector = SsrcCollector::default();
        ["12 cname:x", "13 cname:x", "11 cname:x"]
            .iter()
            .for_each(|line| collector.ssrc(line));
        collector.group("FID 11 12");
        collector.group("FEC-FR 11 13");
        assert_eq!(
            collector.finish(),
            [RemoteSsrc {
                ssrc: Ssrc(11),
                rtx: Some(Ssrc(12))
            }]
        );
    }
}
