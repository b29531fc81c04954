//! The messages that wait for a node: each is made when it leaves, so that no source has two of a
//! kind.

use std::collections::{HashSet, VecDeque};

use crate::sending::SentId;
use crate::{NodeName, SourceId};

/// The number of waiting messages from which on refusals are left out: whoever asks that much is
/// not answered, and tries another node.
const MAX_WITH_REFUSALS: usize = 10_000;

/// The subjects of the messages that wait.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    queue: VecDeque<Subject>,
    queued: HashSet<Subject>,
}

/// What a message is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Again,
    /// Asks for encodings of a source of the node.
    Want(SourceId),
    /// Who carries a source of the node?
    Seek(SourceId),
    /// The answer to that, or to a want.
    Carriers(SourceId),
    /// Will the node carry a source of a third one?
    Ask(NodeName, SourceId),
    /// Asks for encodings of such a source.
    Carry(NodeName, SourceId),
    /// A source of a third node is carried for the node.
    Carrying(NodeName, SourceId),
    Refused(NodeName, SourceId),
    Gone(NodeName, SourceId),
    Withheld(SentId),
    Ended(SourceId),
}

impl Pending {
    pub(crate) fn push(&mut self, subject: Subject) {
        if matches!(subject, Subject::Refused(..)) && self.queue.len() >= MAX_WITH_REFUSALS {
            return;
        }
        if self.queued.insert(subject.clone()) {
            self.queue.push_back(subject);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn pop(&mut self) -> Option<Subject> {
        let subject = self.queue.pop_front()?;
        self.queued.remove(&subject);
        Some(subject)
    }

    /// Begins again. Ends are told in any case, as nothing else says them. They are returned.
    pub(crate) fn begin_again(&mut self) -> Vec<Subject> {
        let before = std::mem::take(self).queue.into_iter();
        self.push(Subject::Again);
        let is_end = |it: &Subject| {
            matches!(
                it,
                Subject::Ended(_) | Subject::Gone(..) | Subject::Refused(..)
            )
        };
        before.filter(is_end).collect()
    }
}
