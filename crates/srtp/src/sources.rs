//! The replay windows of a peer's synchronisation sources.

use portunus_rtp::Ssrc;

use crate::window::ReplayWindow;
use crate::{OpenError, fetch};

/// A bounded table of replay windows by SSRC.
#[derive(Debug)]
pub(crate) struct SourceTable {
    entries: Vec<(Ssrc, ReplayWindow)>,
    /// The index of the last packet's source, since packets come in runs.
    last: usize,
    limit: usize,
}

/// The place of a source in the table, or a free one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Known(usize, ReplayWindow),
    New,
}

impl SourceTable {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            entries: Vec::new(),
            last: 0,
            limit,
        }
    }

    /// Prefetches the entry of the last packet's source.
    #[inline]
    pub(crate) fn fetch(&self) {
        if let Some(entry) = self.entries.get(self.last) {
            fetch(entry);
        }
    }

    /// Finds the place of `ssrc`. Changes nothing that a forged packet must not change.
    pub(crate) fn find(&mut self, ssrc: Ssrc) -> Result<Place, OpenError> {
        if let Some((_, window)) = self.entries.get(self.last).filter(|entry| entry.0 == ssrc) {
            return Ok(Place::Known(self.last, *window));
        }
        // The newest sources are the active ones. Old ones stay, since their packets must not be
        // replayed.
        let mut newest_first = self.entries.iter().enumerate().rev();
        let found = newest_first.find(|(_, entry)| entry.0 == ssrc);
        if let Some((at, (_, window))) = found {
            self.last = at;
            return Ok(Place::Known(at, *window));
        }
        if self.entries.len() >= self.limit {
            Err(OpenError::TooManySources)
        } else {
            Ok(Place::New)
        }
    }

    /// Records an authentic packet.
    pub(crate) fn accept(&mut self, place: Place, ssrc: Ssrc, index: u64) {
        match place {
            Place::Known(at, _) => {
                if let Some((_, window)) = self.entries.get_mut(at) {
                    window.accept(index);
                }
            }
            Place::New => {
                if self.entries.is_empty() {
                    self.entries.reserve_exact(4);
                }
                self.entries
                    .push((ssrc, ReplayWindow::starting_with(index)));
            }
        }
    }

    /// Forgets `ssrc`.
    pub(crate) fn remove(&mut self, ssrc: Ssrc) {
        self.entries.retain(|entry| entry.0 != ssrc);
    }
}
