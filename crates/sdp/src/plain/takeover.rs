//! Calls that continue without the browser, or with another one.

use portunus_rtp::Mid;

use crate::codecs::CodecSpec;
use crate::description::Description;

use super::browser_side;
use super::numbers::Numbers;
use super::pending::Pending;
use super::session::PlainSession;

impl PlainSession {
    /// Returns the browser's last description of the agreed media, to repeat it without asking the
    /// browser: in a new offer to the far end, or as the answer to an offer that needs nothing new
    /// of the browser.
    pub fn said(&self) -> Description {
        let layout = match &self.pending {
            Pending::Taken(taken) => &taken.layout,
            Pending::None | Pending::Offered(_) => &self.layout,
        };
        let media = layout.browser.iter().map(|line| {
            let Some(media) = line.said.clone().filter(|it| !it.rejected) else {
                return browser_side::unused(line.mid, line.kind);
            };
            media
        });
        Description {
            origin: self.origin.clone().unwrap_or_default(),
            name: self.name.clone(),
            attributes: Vec::new(),
            media: media.collect(),
        }
    }

    /// Returns the offer for another browser that takes over a running call. Its answer goes to
    /// [`PlainSession::moved`].
    pub fn offer_to_another(&self) -> Description {
        let mids = (0_u8..).filter_map(|number| Mid::new(&number.to_string()));
        let media = self.agreed.iter().zip(mids);
        Description {
            name: self.name.clone(),
            media: media
                .map(|(media, mid)| browser_side::offered_again(mid, media))
                .collect(),
            ..Description::default()
        }
    }

    /// Replaces the browser by the one that answered [`PlainSession::offer_to_another`]. The far
    /// end is not notified: agreed media that the new browser does not accept ends.
    pub fn moved(&mut self, browser: &Description) {
        let mids = (0_u8..).filter_map(|number| Mid::new(&number.to_string()));
        let mut kept = Vec::new();
        let mut names = Vec::new();
        for (mut media, mid) in std::mem::take(&mut self.agreed).into_iter().zip(mids) {
            let Some(said) = browser.media_by_mid(mid).filter(|it| !it.rejected) else {
                continue;
            };
            let has = |spec: &CodecSpec| said.codec(spec.pt).is_some();
            media.codecs.retain(|codec| has(&codec.spec));
            media.events.retain(|codec| has(&codec.spec));
            media.transcoding = media.transcoding.filter(|it| has(&it.browser));
            names.push((media.mid, mid));
            media.mid = mid;
            media.direction = said.direction;
            if !media.codecs.is_empty() || media.transcoding.is_some() {
                kept.push(media);
            }
        }
        self.layout.rename(&names);
        self.layout.browser.clear();
        self.layout.numbers = Numbers::default();
        self.layout.take_browser(browser);
        self.agreed = kept;
        self.pending = Pending::None;
    }
}
