//! Selects the packets that a route relays, by simulcast encoding, spatial and temporal layer.

use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::Reason;

use super::{ENCODINGS, Packet, Part};
use crate::{Layer, LayerReason, RouteOptions, SentLayers};

/// How often a keyframe that the route waits for is requested.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// An encoding is silent only after this many frames of others: slow streams have long pauses.
const MISSED_FRAMES: u8 = 4;
/// How long the last picture may stand while the route waits for a keyframe. Most encoders that
/// ignore requests send one sooner. Some never do, and refresh the picture part by part.
const LONGEST_STILL: Duration = Duration::from_secs(10);
/// The same if keyframes cannot be recognized, because media is encrypted end to end.
const LONGEST_STILL_UNTOLD: Duration = Duration::from_millis(700);

/// How long after the first packet all flowing encodings are known: even slow streams have sent a
/// frame.
const SETTLING: Duration = Duration::from_millis(300);
/// How long the best flowing encoding may take to send a keyframe before a lower one is used.
const LONGEST_START: Duration = Duration::from_secs(3);

/// What to do with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Relay it, as this part of the stream.
    Forward(Part),
    /// Drop it from the relayed stream.
    Skip,
    /// Ignore it: it is of another encoding than the relayed one.
    Other,
}

/// The state of a route's layer selection.
#[derive(Debug, Default)]
pub struct Selector {
    encoding: Option<u8>,
    /// The highest spatial layer that is relayed.
    spatial: Option<u8>,
    /// The highest temporal layer that is relayed.
    temporal: Option<u8>,
    /// The highest spatial and temporal layer that the stream has had.
    seen: (u8, u8),
    last_packet: [Option<Instant>; ENCODINGS],
    /// Frames of other encodings since the last packet of each encoding.
    missed: [u8; ENCODINGS],
    /// The timestamps of the frames that were counted last.
    counted: [Option<u32>; ENCODINGS],
    /// The receiver has the picture of another stream, so it needs a keyframe first.
    awaits_keyframe: bool,
    /// When the first packet came while it waited. With several encodings, the first before the
    /// stream started.
    awaiting_since: Option<Instant>,
    /// A stream starts with the best flowing encoding.
    starts_best: bool,
    asked: Option<Instant>,
    svc: bool,
    /// The receiver lacks decode targets, or has lacked some since the last keyframe.
    tells_targets: bool,
    /// The number of layers that the sender last said it sends.
    sent: Option<SentLayers>,
    announced: Layer,
}

impl Selector {
    /// Returns a selector that starts with the best flowing encoding instead of the first keyframe:
    /// the size of a recorded or forwarded picture should not change after a few frames.
    pub fn starting_best() -> Self {
        Self {
            starts_best: true,
            ..Self::default()
        }
    }

    /// Decides on a packet of a source with `encodings` encodings.
    #[inline]
    pub fn select(&mut self, packet: &Packet, encodings: u8, options: &RouteOptions) -> Selection {
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

    /// Returns the encoding that a keyframe is needed of, but not too often.
    #[inline]
    pub fn keyframe_wanted(
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

    /// Returns the relayed layers if they have changed since the last call.
    #[inline]
    pub fn take_change(&mut self, encodings: u8) -> Option<Layer> {
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

    /// Returns the relayed layers.
    pub fn relayed(&self, encodings: u8) -> Layer {
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

    /// Returns why these layers are relayed. `wanted` is the client's choice as far as the link
    /// carries it, and `chosen` is why the link allows no more, if the link is known.
    pub fn reason(
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

    /// Returns the relayed encoding.
    #[inline]
    pub fn encoding(&self) -> Option<u8> {
        self.encoding
    }

    /// Notes that the options changed, so that a keyframe may be requested at once.
    pub fn retarget(&mut self) {
        self.asked = None;
    }

    /// Stops relaying the current encoding if it is above the options and a lower one flows. The
    /// route then waits for a keyframe. Returns whether it stopped.
    pub fn cut(&mut self, encodings: u8, options: &RouteOptions, now: Instant) -> bool {
        let least = self.reachable(encodings, options, now);
        let least = least.unwrap_or(0).max(options.substream);
        let above = self.encoding.is_some_and(|encoding| encoding > least);
        if above {
            (self.encoding, self.temporal) = (None, None);
        }
        above
    }

    /// Starts over, because the gate was opened or the sink was replaced.
    pub fn restart(&mut self) {
        *self = Self {
            sent: self.sent,
            announced: self.announced,
            awaits_keyframe: self.awaits_keyframe || self.encoding.is_some(),
            starts_best: self.starts_best,
            ..Self::default()
        };
    }

    /// Waits for a keyframe, because the receiver has the picture of another source.
    pub fn await_keyframe(&mut self) {
        self.awaits_keyframe = true;
    }

    /// Whether a stream of a single encoding may start with the packet.
    fn may_begin(&mut self, packet: &Packet) -> bool {
        let now = packet.arrival;
        let since = *self.awaiting_since.get_or_insert_with(|| {
            // Whoever requested the wait has requested a keyframe, too.
            self.asked = Some(now);
            now
        });
        let longest = match packet.shows_keyframes() {
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

    /// Chooses the encoding. Returns whether it is that of the packet.
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
            // At the start, any encoding that is not above the target will do, if one flows.
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

    /// Whether a stream may start with an encoding. Any will do, unless the best flowing one is
    /// required.
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

    /// Returns the best encoding up to the target that flows, or else the nearest one above it.
    fn reachable(&self, encodings: u8, options: &RouteOptions, now: Instant) -> Option<u8> {
        let target = options.substream.min(encodings.saturating_sub(1));
        let flows = |encoding: &u8| !self.silent(*encoding, options.fallback, now);
        let within = (0..=target).rev().find(flows);
        within.or_else(|| self.above(target, options, now))
    }

    /// Returns the lowest flowing encoding above the target, if none up to the target flows.
    fn above(&self, target: u8, options: &RouteOptions, now: Instant) -> Option<u8> {
        let flows = |encoding: &u8| !self.silent(*encoding, options.fallback, now);
        let encodings = (0..ENCODINGS as u8).zip(&self.missed);
        let mut within = encodings.filter(|(encoding, _)| *encoding <= target);
        if within.any(|(encoding, missed)| *missed < MISSED_FRAMES || flows(&encoding)) {
            return None;
        }
        (0..ENCODINGS as u8).find(|encoding| *encoding > target && flows(encoding))
    }

    /// Whether an encoding has been silent for long while others flowed.
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

    /// Returns the decode targets to write into each packet, as any packet may be lost. A receiver
    /// would wait for targets that it does not get. Returns 0 if the source's own mask will do.
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

    /// Chooses the spatial layer: lower at the start of a picture, higher only at a keyframe.
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
