//! The number of expected packets: those that the sources sent, once for each of their viewers.

use std::sync::Arc;

use crate::source::Sent;

/// The expected packets of each source's viewers, from the moment they have media.
#[derive(Debug, Default)]
pub(super) struct Expectation {
    sources: Vec<SourceView>,
    /// The expected packets of viewers that have left.
    settled: u64,
    /// The sum of what [`Expectation::take`] has returned.
    taken: u64,
}

#[derive(Debug)]
struct SourceView {
    sent: Arc<Sent>,
    viewers: u64,
    /// The sum of the packets sent before each of the viewers joined.
    before: u64,
}

impl Expectation {
    pub(super) fn add_source(&mut self, sent: Arc<Sent>) {
        self.sources.push(SourceView {
            sent,
            viewers: 0,
            before: 0,
        });
    }

    /// Adds a viewer of `sources` with its first packets.
    pub(super) fn join(&mut self, sources: &[usize], mut packets: u64) {
        for source in sources {
            let Some(view) = self.sources.get_mut(*source) else {
                continue;
            };
            view.viewers += 1;
            // The packets that it has received are expected, too.
            let sent = view.sent.packets();
            view.before += sent.saturating_sub(packets);
            packets = packets.saturating_sub(sent);
        }
    }

    /// Removes a viewer of `sources` with media.
    pub(super) fn leave(&mut self, sources: &[usize]) {
        for source in sources {
            let Some(view) = self.sources.get_mut(*source) else {
                continue;
            };
            // Which of the viewers left does not matter for the sum: the mean is removed.
            let before = view.before / view.viewers.max(1);
            view.before -= before;
            view.viewers = view.viewers.saturating_sub(1);
            self.settled += view.sent.packets().saturating_sub(before);
        }
    }

    /// Returns the packets expected since the last call.
    pub(super) fn take(&mut self) -> u64 {
        let since = self.due();
        self.taken += since;
        since
    }

    /// Returns the packets expected since the last [`Expectation::take`].
    pub(super) fn due(&self) -> u64 {
        let due =
            |view: &SourceView| (view.viewers * view.sent.packets()).saturating_sub(view.before);
        let total = self.settled + self.sources.iter().map(due).sum::<u64>();
        total.saturating_sub(self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_viewer_is_due_what_was_sent_while_it_was_there() {
        let sent = Arc::new(Sent::default());
        let send = |n: usize| (0..n).for_each(|_| sent.count(0, 1));
        let mut expectation = Expectation::default();
        expectation.add_source(Arc::clone(&sent));
        send(10);
        expectation.join(&[0], 1);
        send(5);
        assert_eq!(expectation.take(), 6);
        expectation.join(&[0], 1);
        send(10);
        assert_eq!(expectation.take(), 21);
        expectation.leave(&[0]);
        let rounding = expectation.take();
        assert!(rounding <= 1, "{rounding}");
        send(10);
        assert_eq!(expectation.take(), 10);
        expectation.join(&[], 1);
        assert_eq!(expectation.take(), 0);
    }
}
