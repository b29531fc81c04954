//! Calls that go on without the browser, or with another one.

use portunus_rtp::Mid;

use crate::codecs::CodecSpec;
use crate::description::Description;

use super::numbers::Numbers;
use super::session::{Pending, PlainSession};
use super::to_browser;

impl PlainSession {
    /// What the browser said last of what is agreed on, to be said again without asking it: in a new offer to the far end, or as the answer to
    /// an offer of the far end that needs nothing new of the browser.
    pub fn said(&self) -> Description {
        let layout = match &self.pending {
            Pending::Taken(taken) => &taken.layout,
            Pending::None | Pending::Offered(_) => &self.layout,
        };
        let media = layout.browser.iter().map(|line| {
            let Some(media) = line.said.clone().filter(|it| !it.rejected) else {
                return to_browser::unused(line.mid, line.kind);
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

    /// What another browser is to be offered to take a running call over. What it answers goes to [`PlainSession::moved`].
    pub fn offer_to_another(&self) -> Description {
        let mids = (0_u8..).filter_map(|number| Mid::new(&number.to_string()));
        let media = self.agreed.iter().zip(mids);
        Description {
            name: self.name.clone(),
            media: media
                .map(|(media, mid)| to_browser::offered_again(mid, media))
                .collect(),
            ..Description::default()
        }
    }

    /// The browser that answered [`PlainSession::offer_to_another`] takes the place of the one before. The far end learns nothing of it:
    /// what the new browser does not take of what was agreed on ends.
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
