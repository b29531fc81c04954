//! The questions of clients of this node to the homes of rooms, until they are answered.

use std::collections::HashMap;

use portunus_cluster::NodeId;
use tokio::sync::oneshot;

/// The questions that wait for their answers.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    last: u64,
    waiting: HashMap<u64, Question>,
}

#[derive(Debug)]
struct Question {
    home: NodeId,
    answer: oneshot::Sender<Option<String>>,
}

impl Questions {
    /// Adds a question. Returns its number.
    pub(crate) fn add(&mut self, home: NodeId, answer: oneshot::Sender<Option<String>>) -> u64 {
        // Those whose clients do not wait any more.
        if self.waiting.len() >= 1_000 {
            self.waiting.retain(|_, it| !it.answer.is_closed());
        }
        self.last = self.last.wrapping_add(1);
        self.waiting.insert(self.last, Question { home, answer });
        self.last
    }

    /// A node has answered.
    pub(crate) fn answered(&mut self, from: &NodeId, number: u64, answer: Option<String>) {
        let is_its = |question: &Question| question.home == *from;
        if self.waiting.get(&number).is_some_and(is_its)
            && let Some(question) = self.waiting.remove(&number)
        {
            // The client may be gone.
            let _ = question.answer.send(answer);
        }
    }

    /// A node is lost, or messages of it may be missing: it will not answer.
    pub(crate) fn lost(&mut self, node: &NodeId) {
        self.waiting.retain(|_, question| question.home != *node);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn only_the_node_that_was_asked_can_answer() {
        let [a, b] = ["a", "b"].map(|name| NodeId::new(name).unwrap());
        let mut questions = Questions::default();
        let (answer, mut answered) = oneshot::channel();
        let number = questions.add(a.clone(), answer);
        questions.answered(&b, number, Some("b".to_owned()));
        assert!(answered.try_recv().is_err());
        questions.answered(&a, number, Some("a".to_owned()));
        assert_eq!(answered.try_recv(), Ok(Some("a".to_owned())));
        let (answer, answered) = oneshot::channel();
        questions.add(a.clone(), answer);
        questions.lost(&a);
        assert!(answered.blocking_recv().is_err());
    }
}
