//! Changing how the streams of a subscription are received.

use portunus_media::LayerReason;
use portunus_rtp::Mid;
use portunus_sdp::Kind;
use serde::Deserialize;

use super::Subscriber;
use super::layers::{LayerKind, LayerRequest};
use crate::Refusal;
use crate::publication::Publications;

/// How one stream is received, or all are.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LineSetting {
    /// The m-line; `None` means all of them.
    pub mid: Option<String>,
    /// Whether its media is let through.
    pub send: Option<bool>,
    /// Which layers.
    pub layers: LayerRequest,
}

/// How a subscription receives from now on. What is `None` stays as it is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SubscriberConfigure {
    /// What is set of single m-lines. It is not read with the rest.
    #[serde(skip)]
    pub lines: Vec<LineSetting>,
    /// Whether audio is let through.
    pub audio: Option<bool>,
    /// Whether video is let through.
    pub video: Option<bool>,
    /// Whether data is let through.
    pub data: Option<bool>,
    /// ICE is restarted by a new offer.
    pub restart: bool,
    /// The client wants a new offer.
    pub update: bool,
    /// How many speakers are followed.
    pub last_n: Option<usize>,
}

impl SubscriberConfigure {
    /// Whether it asks for an offer.
    pub(crate) const fn offers(&self) -> bool {
        self.restart || self.update
    }

    /// What it says of m-lines of `kind`.
    const fn sends(&self, kind: Kind) -> Option<bool> {
        match kind {
            Kind::Audio => self.audio,
            Kind::Video => self.video,
            Kind::Data => self.data,
        }
    }
}

/// A layer that is requested and there already: on which m-line, of which kind, and why.
pub(crate) type CurrentLayer = (Mid, LayerKind, u8, LayerReason);

impl Subscriber {
    /// Checks that a `configure` can be applied.
    pub(crate) fn check_configure(&self, configure: &SubscriberConfigure) -> Result<(), Refusal> {
        if self.owner_kicked {
            return Err(Refusal::OwnerKicked);
        }
        for mid in configure.lines.iter().filter_map(|s| s.mid.as_deref()) {
            if !self.lines.iter().any(|line| line.mid.as_str() == mid) {
                return Err(Refusal::NoSuchFeed(format!("mid {mid}")));
            }
        }
        if configure.offers() && self.lines.is_empty() {
            return Err(Refusal::SubscribeFirst);
        }
        Ok(())
    }

    /// Changes how streams are received; gives the layers that are there already.
    pub(crate) fn configure(
        &mut self,
        configure: &SubscriberConfigure,
        publications: &Publications,
    ) -> Vec<CurrentLayer> {
        for line in &mut self.lines {
            line.send = configure.sends(line.kind).unwrap_or(line.send);
        }
        let mut current = Vec::new();
        for setting in &configure.lines {
            let mid = setting.mid.as_deref();
            let lines = self.lines.iter_mut();
            for line in lines.filter(|line| mid.is_none_or(|mid| mid == line.mid.as_str())) {
                let layers = line.configure(setting, publications).into_iter();
                let mid = line.mid;
                current.extend(layers.map(|(kind, layer, reason)| (mid, kind, layer, reason)));
            }
        }
        self.relay(publications);
        current
    }
}
