//! Changing how the streams of a subscription are received.

use portunus_core::media::LayerReason;
use portunus_core::sdp::Kind;
use portunus_core::{FieldError, Fields, Mid};

use super::Subscriber;
use super::layers::LayerRequest;
use super::watch::last_n;
use crate::publication::Publications;
use crate::refusal::Refusal;

/// One entry of `configure`: for one stream, or for all.
#[derive(Debug)]
pub(super) struct Setting {
    mid: Option<String>,
    pub(super) send: Option<bool>,
    pub(super) layers: LayerRequest,
}

/// A subscriber's `configure`.
#[derive(Debug)]
pub(crate) struct SubscriberConfigure {
    settings: Vec<Setting>,
    /// `send` by kind of media.
    audio: Option<bool>,
    video: Option<bool>,
    data: Option<bool>,
    restart: bool,
    update: bool,
    /// How many speakers are followed from now on.
    last_n: Option<usize>,
}

impl Setting {
    fn read(fields: Fields<'_>) -> Result<Self, FieldError> {
        for ignored in ["audio_level_average", "audio_active_packets"] {
            fields.positive(ignored)?;
        }
        Ok(Setting {
            mid: fields.string("mid")?.map(str::to_owned),
            send: fields.boolean("send")?,
            layers: LayerRequest::read(fields)?,
        })
    }
}

impl SubscriberConfigure {
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let settings = match fields.objects("streams")? {
            Some(entries) => entries.into_iter().map(Setting::read).collect(),
            None => Setting::read(fields).map(|setting| vec![setting]),
        };
        let settings: Vec<Setting> = settings?;
        if settings.len() > 1 && settings.iter().any(|setting| setting.mid.is_none()) {
            return Err(Refusal::value(
                "mid",
                "needed where there are several streams",
            ));
        }
        Ok(SubscriberConfigure {
            settings,
            audio: fields.boolean("audio")?,
            video: fields.boolean("video")?,
            data: fields.boolean("data")?,
            restart: fields.boolean("restart")?.unwrap_or(false),
            update: fields.boolean("update")?.unwrap_or(false),
            last_n: last_n(fields)?,
        })
    }
}

impl SubscriberConfigure {
    /// How many speakers are to be followed.
    pub(crate) const fn last_n(&self) -> Option<usize> {
        self.last_n
    }

    /// Whether it asks for an offer.
    pub(crate) const fn offers(&self) -> bool {
        self.restart || self.update
    }

    /// Whether ICE is to be restarted.
    pub(crate) const fn restarts(&self) -> bool {
        self.restart
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

/// A layer that is requested and there already: on which m-line, by which name, and why.
pub(crate) type CurrentLayer = (Mid, &'static str, u8, LayerReason);

impl Subscriber {
    /// Checks that a `configure` can be applied.
    pub(crate) fn check_configure(&self, configure: &SubscriberConfigure) -> Result<(), Refusal> {
        self.check_blocked()?;
        for mid in configure.settings.iter().filter_map(|s| s.mid.as_deref()) {
            if !self.lines.iter().any(|line| line.mid().as_str() == mid) {
                return Err(Refusal::NoSuchFeed(format!("mid {mid}")));
            }
        }
        if configure.offers() && self.lines.is_empty() {
            let text = "There is nothing to offer: subscribe first";
            return Err(Refusal::Sdp(text.to_owned()));
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
            line.set_send(configure.sends(line.kind()));
        }
        let mut current = Vec::new();
        for setting in &configure.settings {
            let mid = setting.mid.as_deref();
            let lines = self.lines.iter_mut();
            for line in lines.filter(|line| mid.is_none_or(|mid| mid == line.mid().as_str())) {
                let layers = line.configure(setting, publications).into_iter();
                let mid = line.mid();
                current.extend(layers.map(|(name, layer, reason)| (mid, name, layer, reason)));
            }
        }
        self.relay(publications);
        current
    }
}
