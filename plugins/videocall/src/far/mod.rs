//! The side of a call that is at another node.

mod description;
mod message;
mod others;

use std::sync::Arc;

use portunus_core::Mid;
use portunus_core::media::ingest::IngestId;
use portunus_core::media::{DataMessage, SourceRef};
use portunus_core::sdp::{Description, Kind};
use portunus_relay::{Offer, SourceDescription, Sources};

pub(crate) use description::Described;
pub(crate) use message::{CallMessage, FarData, Unwilling};
pub(crate) use others::Others;
pub use others::{CallDemand, ClaimError, Crossing};

/// The most m-lines of a call whose sources are taken.
const MOST_LINES: usize = 64;

/// A user of another node, as one side of a call. Its media ends with it.
#[derive(Debug)]
pub(crate) struct Far {
    pub(crate) node: String,
    /// The number of the call.
    pub(crate) call: u64,
    others: Others,
    sources: Arc<dyn Sources>,
    /// The m-lines of its description, in their order.
    lines: Vec<FarLine>,
    /// What it was offered, by the places of m-lines.
    offered: Vec<Option<(OfferedSource, Offer)>>,
    /// What it offers, and what was taken of it.
    received: Vec<(Option<Offer>, Option<IngestId>)>,
}

/// An m-line of a user of another node.
#[derive(Debug, Clone, Copy)]
struct FarLine {
    mid: Mid,
    kind: Kind,
    is_active: bool,
}

/// A source of this node for another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfferedSource {
    pub(crate) source: SourceRef,
    pub(crate) description: SourceDescription,
}

impl Far {
    pub(crate) fn new(others: Others, node: &str, call: u64) -> Self {
        Far {
            node: node.to_owned(),
            call,
            sources: others.crossing.sources(node),
            others,
            lines: Vec::new(),
            offered: Vec::new(),
            received: Vec::new(),
        }
    }

    pub(crate) fn send(&self, message: &CallMessage) {
        self.others.send(&self.node, message);
    }

    pub(crate) fn send_data(&self, message: &DataMessage) {
        self.send(&CallMessage::Data {
            id: self.call,
            message: FarData::of(message),
        });
    }

    /// Ends the call there: on request, with its text, or because its partner is gone.
    pub(crate) fn send_end(&self, reason: Option<&str>) {
        self.send(&CallMessage::End {
            id: self.call,
            reason: reason.map(str::to_owned),
        });
    }

    /// Notes the m-lines of its user.
    pub(crate) fn note_lines(&mut self, description: &Description) {
        let lines = description.media.iter().take(MOST_LINES);
        let lines = lines.map(|media| FarLine {
            mid: media.mid,
            kind: media.kind,
            is_active: !media.rejected,
        });
        self.lines = lines.collect();
    }

    /// Returns the mid, the kind and the source of each m-line, in their order.
    pub(crate) fn tracks(&self) -> impl Iterator<Item = (Mid, Kind, Option<SourceRef>)> {
        let received = self.received.iter().map(|(_, ingest)| *ingest);
        let received = received.chain(std::iter::repeat(None));
        self.lines.iter().zip(received).map(|(line, ingest)| {
            let ingest = ingest.filter(|_| line.is_active);
            (line.mid, line.kind, ingest.map(SourceRef::from))
        })
    }

    /// Offers the sources of its partner, by the places of their m-lines.
    pub(crate) fn offer(&mut self, sources: Vec<Option<OfferedSource>>) {
        let mut former = std::mem::take(&mut self.offered).into_iter();
        let mut is_changed = false;
        for source in sources {
            let before = former.next().flatten();
            let same = before.as_ref().map(|(known, _)| known) == source.as_ref();
            if same {
                self.offered.push(before);
                continue;
            }
            is_changed = true;
            if let Some((_, offer)) = before {
                self.others.crossing.withdraw(offer.id);
            }
            let crossing = &self.others.crossing;
            let offer = |it: OfferedSource| {
                let offer = crossing.offer(it.source, it.description.clone());
                (it, offer)
            };
            self.offered.push(source.map(offer));
        }
        for (_, offer) in former.flatten() {
            is_changed = true;
            self.others.crossing.withdraw(offer.id);
        }
        if is_changed {
            let offers = self.offered.iter();
            let offers = offers.map(|it| it.as_ref().map(|(_, offer)| offer.clone()));
            self.send(&CallMessage::Sources {
                id: self.call,
                offers: offers.collect(),
            });
        }
    }

    /// Takes the sources that its user offers, in place of those before.
    pub(crate) fn receive(&mut self, offers: Vec<Option<Offer>>) {
        let id = |offer: &Option<Offer>| offer.as_ref().map(|offer| offer.id);
        let mut former = std::mem::take(&mut self.received).into_iter();
        for offer in offers.into_iter().take(MOST_LINES) {
            let before = former.next();
            match before {
                Some((known, ingest)) if id(&known) == id(&offer) && ingest.is_some() => {
                    self.received.push((known, ingest));
                }
                before => {
                    self.release(before.and_then(|(_, ingest)| ingest));
                    let ingest = offer.as_ref().and_then(|it| self.sources.take(it));
                    self.received.push((offer, ingest));
                }
            }
        }
        for (_, ingest) in former {
            self.release(ingest);
        }
    }

    fn release(&self, ingest: Option<IngestId>) {
        if let Some(ingest) = ingest {
            self.sources.release(ingest);
        }
    }

    /// Takes its sources again: the media link to its node is a new one.
    pub(crate) fn take_again(&mut self) {
        for (offer, ingest) in &mut self.received {
            if let Some(ended) = ingest.take() {
                self.sources.release(ended);
            }
            *ingest = offer.as_ref().and_then(|it| self.sources.take(it));
        }
    }

    /// Forgets a source that has ended.
    pub(crate) fn forget(&mut self, ended: IngestId) {
        for (_, ingest) in &mut self.received {
            if *ingest == Some(ended) {
                *ingest = None;
            }
        }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        for (_, offer) in self.offered.iter().flatten() {
            self.others.crossing.withdraw(offer.id);
        }
        for (_, ingest) in &self.received {
            self.release(*ingest);
        }
    }
}
