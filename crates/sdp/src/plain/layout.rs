//! The m-lines, and the relation between the browser's and the far end's.

use portunus_rtp::Mid;

use crate::description::{Description, Media};
use crate::negotiated::Kind;

use super::browser_side;
use super::error::kind_name;
use super::numbers::Numbers;
use super::remote::FarSession;

/// The m-lines of both sides.
#[derive(Debug, Clone, Default)]
pub(super) struct Layout {
    /// The m-lines of the far end, in order.
    pub(super) lines: Vec<Line>,
    /// The m-lines of the browser, in order.
    pub(super) browser: Vec<BrowserLine>,
    /// The numbers that the browser uses.
    pub(super) numbers: Numbers,
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The media type, such as `audio`.
    pub(super) name: String,
    /// The browser's m-line. `None` if the browser has none for it.
    pub(super) mid: Option<Mid>,
}

#[derive(Debug, Clone)]
pub(super) struct BrowserLine {
    pub(super) mid: Mid,
    pub(super) kind: Kind,
    /// The browser's last description of it.
    pub(super) said: Option<Media>,
}

impl Layout {
    /// Takes the m-lines of the browser. New ones are added for the far end too.
    pub(super) fn take(&mut self, browser: &Description) {
        self.take_browser(browser);
        for media in &browser.media {
            let is_known = self.lines.iter().any(|line| line.mid == Some(media.mid));
            if media.kind != Kind::Data && !media.rejected && !is_known {
                self.lines.push(Line {
                    name: kind_name(media.kind).to_owned(),
                    mid: Some(media.mid),
                });
            }
        }
    }

    pub(super) fn take_browser(&mut self, browser: &Description) {
        for (index, media) in browser.media.iter().enumerate() {
            self.numbers.learn(media);
            let line = BrowserLine {
                mid: media.mid,
                kind: media.kind,
                said: Some(media.clone()),
            };
            match self.browser.get_mut(index) {
                Some(known) => *known = line,
                None => self.browser.push(line),
            }
        }
        let gone = |line: &Line| {
            let is = |it: &BrowserLine| Some(it.mid) == line.mid;
            line.mid.is_some() && !self.browser.iter().any(is)
        };
        let gone: Vec<bool> = self.lines.iter().map(gone).collect();
        for (line, gone) in self.lines.iter_mut().zip(gone) {
            line.mid = line.mid.filter(|_| !gone);
        }
    }

    /// Takes the m-lines of the far end.
    pub(super) fn follow(&mut self, far: &FarSession) {
        let lines = far.media.iter().enumerate().map(|(index, media)| {
            let known = self.lines.get(index);
            let known = known.filter(|line| line.name == media.name);
            Line {
                name: media.name.clone(),
                mid: known.and_then(|line| line.mid),
            }
        });
        self.lines = lines.collect();
    }

    /// Returns the mid of the browser's m-line for the far end's m-line at `index`, which may be
    /// new.
    pub(super) fn mid(&mut self, index: usize, kind: Kind) -> Option<Mid> {
        let known = self.lines.get(index).and_then(|line| line.mid);
        if known.is_some() {
            return known;
        }
        let is_new = |mid: &Mid| !self.browser.iter().any(|line| line.mid == *mid);
        let mut mids = (0_u32..).filter_map(|number| Mid::new(&number.to_string()));
        let mid = mids.find(is_new)?;
        self.browser.push(BrowserLine {
            mid,
            kind,
            said: None,
        });
        if let Some(line) = self.lines.get_mut(index) {
            line.mid = Some(mid);
        }
        Some(mid)
    }

    /// Renames the browser's m-lines, from old to new mids.
    pub(super) fn rename(&mut self, names: &[(Mid, Mid)]) {
        for line in &mut self.lines {
            let new = |old: Mid| names.iter().find(|(known, _)| *known == old);
            line.mid = line.mid.and_then(new).map(|(_, new)| *new);
        }
    }

    /// Returns a description of the browser's m-lines, of which `media` are active.
    pub(super) fn describe(&self, name: &str, mut media: Vec<(Mid, Media)>) -> Description {
        let lines = self.browser.iter().map(|line| {
            let at = media.iter().position(|(mid, _)| *mid == line.mid);
            match at {
                Some(at) => media.swap_remove(at).1,
                None => browser_side::unused(line.mid, line.kind),
            }
        });
        let media = lines.collect();
        Description {
            name: match name.trim() {
                "" => "-".to_owned(),
                name => name.to_owned(),
            },
            media,
            ..Description::default()
        }
    }
}
