//! Which packets of a source a route relays: simulcast encoding, spatial and temporal layer.

use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::Reason;

use super::{Packet, Part};
use crate::{Layer, LayerReason, RouteOptions, SentLayers};

/// Encodings that a source has at most.
pub(crate) const ENCODINGS: usize = 3;
/// How often a keyframe of an encoding that is waited for is asked for.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// An encoding is not silent before so many frames of others came since its last packet: slow streams have long pauses.
const MISSED_FRAMES: u8 = 4;
/// How long a picture stays until a keyframe of what follows it comes: longer than encoders that cannot be asked for one take
/// to make it, as a rule. Some never make another, but refresh the picture part by part.
const LONGEST_STILL: Duration = Duration::from_secs(10);
/// The same where no keyframe can be told: of what is encrypted end to end.
const LONGEST_STILL_UNTOLD: Duration = Duration::from_millis(700);

/// Which encodings flow is known so long after the first packet came: slow streams have a frame of each by then.
const SETTLING: Duration = Duration::from_millis(300);
/// How long a keyframe of the best encoding that flows is waited for before a lower one will do.
const LONGEST_START: Duration = Duration::from_secs(3);

/// What to do with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Relay it, as it belongs to this part of the stream.
    Forward(Part),
    /// Leave it out of the relayed stream.
    Skip,
    /// It is of another encoding than the one relayed.
    Other,
}

/// The state of a route's layer selection.
#[derive(Debug, Default)]
pub(crate) struct Selector {
    encoding: Option<u8>,
    /// Spatial layers up to this one are relayed.
    spatial: Option<u8>,
    /// Temporal layers up to this one are relayed.
    temporal: Option<u8>,
    /// The highest layers that the stream has shown.
    seen: (u8, u8),
    last_packet: [Option<Instant>; ENCODINGS],
    /// Frames of other encodings since the last packet of each.
    missed: [u8; ENCODINGS],
    /// The timestamps of those that were counted last.
    counted: [Option<u32>; ENCODINGS],
    /// The receiver has the picture of another stream: what refers to pictures that it lacks is not for it.
    awaits_keyframe: bool,
    /// When the first such packet came; with encodings to choose from, the first before the stream began.
    awaiting_since: Option<Instant>,
    /// What begins begins with the best encoding that flows.
    starts_best: bool,
    asked: Option<Instant>,
    svc: bool,
    /// The receiver lacks decode targets, or has lacked some since the last keyframe.
    tells_targets: bool,
    /// What the sender said last of the layers that it sends.
    sent: Option<SentLayers>,
    announced: Layer,
}

impl Selector {
    /// A selector that begins with the best encoding that flows, and not with the first keyframe that comes: what is recorded
    /// or passed on should not change its size after a few frames.
    pub(crate) fn starting_best() -> Self {
        Self {
            starts_best: true,
            ..Self::default()
        }
    }

    /// Chooses for one packet. `encodings` is how many the source has.
    pub(crate) fn select(
        &mut self,
        packet: &Packet,
        encodings: u8,
        options: &RouteOptions,
    ) -> Selection {
        self.sent = packet.sent_layers.or(self.sent);
        if encodings > 1 {
            self.note_arrival(packet);
            if !self.choose_encoding(packet, encodings, options) {
                return Selection::Other;
            }
        } else if self.awaits_keyframe && !self.may_begin(packet) {
            return Selection::Other;
        }
        self.encoding = Some(packet.encoding);
        self.choose_layers(packet, options)
    }

    /// The encoding of which a keyframe is needed for what the options ask; not too often.
    pub(crate) fn keyframe_wanted(
        &mut self,
        encodings: u8,
        options: &RouteOptions,
        now: Instant,
    ) -> Option<u8> {
        let wanted = if encodings <= 1 && self.awaiting_since.is_some() {
            Some(0)
        } else if encodings > 1 {
            let target = self.reachable(encodings, options, now)?;
            (self.encoding != Some(target)).then_some(target)
        } else if self.svc {
            let reachable = options.spatial.min(self.seen.0);
            self.spatial
                .is_some_and(|spatial| spatial < reachable)
                .then_some(0)
        } else {
            None
        }?;
        if self
            .asked
            .is_some_and(|asked| now.saturating_duration_since(asked) < ASK_AGAIN)
        {
            return None;
        }
        self.asked = Some(now);
        Some(wanted)
    }

    /// What is relayed now, if that changed since the last call.
    pub(crate) fn take_change(&mut self, encodings: u8) -> Option<Layer> {
        let layer = self.relayed(encodings);
        let nothing = Layer {
            sent: layer.sent,
            ..Layer::default()
        };
        if layer == self.announced || layer == nothing {
            return None;
        }
        self.announced = layer;
        Some(layer)
    }

    /// What is relayed now.
    pub(crate) fn relayed(&self, encodings: u8) -> Layer {
        Layer {
            substream: self.encoding.filter(|_| encodings > 1),
            spatial: self
                .spatial
                .filter(|_| self.svc)
                .map(|spatial| spatial.min(self.seen.0)),
            temporal: self
                .temporal
                .filter(|_| self.seen.1 > 0 && (encodings > 1 || self.svc))
                .map(|temporal| temporal.min(self.seen.1)),
            sent: self.sent.filter(|_| encodings > 1 || self.svc),
        }
    }

    /// Why what is relayed is relayed: `wanted` is what the client asks for as far as its link carries it, and `chosen`
    /// why that is no more, if the link is known.
    pub(crate) fn reason(
        &self,
        encodings: u8,
        (options, wanted): (&RouteOptions, &RouteOptions),
        chosen: Option<Reason>,
        now: Instant,
    ) -> LayerReason {
        let top = encodings.saturating_sub(1);
        let target = wanted.substream.min(top);
        if encodings > 1 && self.encoding != Some(target) {
            let waits = self.encoding.is_none_or(|now| now < target);
            let is_silent = match waits {
                true => self.silent(target, wanted.fallback, now),
                false => self.reachable(encodings, wanted, now) == self.encoding,
            };
            return match is_silent {
                true => LayerReason::Silent,
                false => LayerReason::Keyframe,
            };
        }
        let (spatial, temporal) = self.seen;
        if self.svc
            && self
                .spatial
                .is_some_and(|now| now < wanted.spatial.min(spatial))
        {
            return LayerReason::Keyframe;
        }
        let bound = encodings > 1 && options.substream < top
            || self.svc && options.spatial < spatial
            || options.temporal < temporal;
        LayerReason::Chosen(chosen.unwrap_or(match bound {
            true => Reason::ClientBound,
            false => Reason::Best,
        }))
    }

    /// The encoding that is relayed.
    pub(crate) fn encoding(&self) -> Option<u8> {
        self.encoding
    }

    /// The options ask for other layers than before: a keyframe that this takes is asked for at once.
    pub(crate) fn retarget(&mut self) {
        self.asked = None;
    }

    /// If the encoding that is relayed is above what the options ask, and something below it flows, it is relayed no
    /// longer, and the route waits for a keyframe; says whether it was.
    pub(crate) fn cut(&mut self, encodings: u8, options: &RouteOptions, now: Instant) -> bool {
        let least = self.reachable(encodings, options, now);
        let least = least.unwrap_or(0).max(options.substream);
        let above = self.encoding.is_some_and(|encoding| encoding > least);
        if above {
            (self.encoding, self.temporal) = (None, None);
        }
        above
    }

    /// The gate was opened, or the sink is another.
    pub(crate) fn restart(&mut self) {
        *self = Self {
            sent: self.sent,
            announced: self.announced,
            awaits_keyframe: self.awaits_keyframe || self.encoding.is_some(),
            starts_best: self.starts_best,
            ..Self::default()
        };
    }

    /// The receiver has the picture of another source.
    pub(crate) fn await_keyframe(&mut self) {
        self.awaits_keyframe = true;
    }

    /// Whether a stream without encodings to choose from can begin with the packet.
    fn may_begin(&mut self, packet: &Packet) -> bool {
        let now = packet.arrival;
        let since = *self.awaiting_since.get_or_insert_with(|| {
            // Whoever made it wait has asked already.
            self.asked = Some(now);
            now
        });
        let longest = match packet.tells_keyframes() {
            true => LONGEST_STILL,
            false => LONGEST_STILL_UNTOLD,
        };
        let begins = packet.layers.keyframe && packet.layers.start
            || !packet.codec.is_video()
            || now.saturating_duration_since(since) >= longest;
        if begins {
            (self.awaits_keyframe, self.awaiting_since) = (false, None);
        }
        begins
    }

    fn note_arrival(&mut self, packet: &Packet) {
        let of = usize::from(packet.encoding);
        if let Some(last) = self.last_packet.get_mut(of) {
            *last = Some(packet.arrival);
        }
        let frame = Some(packet.header.timestamp);
        let counted = self.counted.get_mut(of);
        let is_new = counted.is_some_and(|counted| std::mem::replace(counted, frame) != frame);
        for (encoding, missed) in self.missed.iter_mut().enumerate() {
            *missed = match encoding == of {
                true => 0,
                false => missed.saturating_add(u8::from(is_new)),
            };
        }
    }

    /// Says whether the packet's encoding is (now) the one to relay.
    fn choose_encoding(&mut self, packet: &Packet, encodings: u8, options: &RouteOptions) -> bool {
        let (now, is) = (packet.arrival, packet.encoding);
        let target = options.substream;
        if self.encoding == Some(is) {
            return true;
        }
        if self.starts_best && self.encoding.is_none() {
            self.awaiting_since.get_or_insert(now);
        }
        if !(packet.layers.keyframe && packet.layers.start) {
            return false;
        }
        let Some(current) = self.encoding else {
            // Nothing is relayed yet: start with whatever is not above the target, if there is such a thing.
            let may_begin = is <= target || self.above(target, options, now) == Some(is);
            return may_begin && self.is_best_start(is, encodings, options, now);
        };
        let nearer = if current < target {
            is > current && is <= target
        } else {
            is < current && is >= target
        };
        let fell_silent = self.silent(current, options.fallback, now)
            && (is < current || self.above(target, options, now) == Some(is));
        let switches = nearer || current > target && is <= target || fell_silent;
        if switches {
            self.temporal = None;
        }
        switches
    }

    /// Whether what begins may begin with an encoding: with any, unless it is to be the best that flows.
    fn is_best_start(
        &mut self,
        is: u8,
        encodings: u8,
        options: &RouteOptions,
        now: Instant,
    ) -> bool {
        if !self.starts_best {
            return true;
        }
        let since = self.awaiting_since.unwrap_or(now);
        let waited = now.saturating_duration_since(since);
        let top = options.substream.min(encodings.saturating_sub(1));
        let best = self.reachable(encodings, options, now);
        let begins = is == top
            || waited >= SETTLING && best.is_none_or(|best| is >= best)
            || waited >= LONGEST_START;
        if begins {
            self.awaiting_since = None;
        }
        begins
    }

    /// The best encoding up to the target that has sent lately; if none has, the one nearest above it.
    fn reachable(&self, encodings: u8, options: &RouteOptions, now: Instant) -> Option<u8> {
        let target = options.substream.min(encodings.saturating_sub(1));
        let flows = |encoding: &u8| !self.silent(*encoding, options.fallback, now);
        let within = (0..=target).rev().find(flows);
        within.or_else(|| self.above(target, options, now))
    }

    /// The lowest encoding above the target that has sent lately, if none up to the target has while others went on.
    fn above(&self, target: u8, options: &RouteOptions, now: Instant) -> Option<u8> {
        let flows = |encoding: &u8| !self.silent(*encoding, options.fallback, now);
        let encodings = (0..ENCODINGS as u8).zip(&self.missed);
        let mut within = encodings.filter(|(encoding, _)| *encoding <= target);
        if within.any(|(encoding, missed)| *missed < MISSED_FRAMES || flows(&encoding)) {
            return None;
        }
        (0..ENCODINGS as u8).find(|encoding| *encoding > target && flows(encoding))
    }

    /// Whether nothing of an encoding came for long, while others went on.
    fn silent(&self, encoding: u8, fallback: Duration, now: Instant) -> bool {
        let of = usize::from(encoding);
        let missed = self.missed.get(of).copied().unwrap_or_default();
        match self.last_packet.get(of).copied().flatten() {
            Some(last) => {
                missed >= MISSED_FRAMES
                    && now.saturating_duration_since(last) > fallback.max(Duration::from_millis(1))
            }
            None => true,
        }
    }

    fn choose_layers(&mut self, packet: &Packet, options: &RouteOptions) -> Selection {
        let layers = packet.layers;
        let (spatial, temporal) = self.seen;
        self.seen = (spatial.max(layers.spatial), temporal.max(layers.temporal));
        self.svc |= layers.svc;
        if self.svc && !self.choose_spatial(packet, options) {
            return Selection::Skip;
        }
        let current = self.temporal.get_or_insert(options.temporal);
        if *current > options.temporal {
            *current = options.temporal;
        }
        if layers.temporal > *current {
            let rises =
                layers.start && layers.switching_point && layers.temporal <= options.temporal;
            if !rises {
                return Selection::Skip;
            }
            *current = layers.temporal;
        }
        let temporal = *current;
        let top = self.spatial.filter(|_| self.svc);
        let targets = top.map_or(0, |spatial| self.targets(packet, spatial, temporal));
        Selection::Forward(Part { top, targets })
    }

    /// The decode targets that the receiver is to be told with each packet, since any may be lost: it would wait for
    /// those that it does not get. Where all are relayed the source's word will do, from the next keyframe on.
    fn targets(&mut self, packet: &Packet, spatial: u8, temporal: u8) -> u32 {
        let Some(targets) = &packet.targets else {
            return 0;
        };
        let within = targets.within(spatial, temporal);
        if within != targets.active {
            self.tells_targets = true;
        } else if packet.layers.keyframe && packet.layers.start {
            self.tells_targets = false;
        }
        if self.tells_targets { within } else { 0 }
    }

    /// SVC: down at the start of a picture, up at a keyframe only.
    fn choose_spatial(&mut self, packet: &Packet, options: &RouteOptions) -> bool {
        let layers = packet.layers;
        let wanted = options.spatial;
        match &mut self.spatial {
            None => self.spatial = Some(if layers.keyframe { wanted } else { 0 }),
            Some(current) if layers.start && layers.spatial == 0 => {
                if wanted < *current || layers.keyframe {
                    *current = wanted;
                }
            }
            Some(_) => {}
        }
        self.spatial
            .is_some_and(|current| layers.spatial <= current)
    }
}

#[cfg(test)]
mod tests;
