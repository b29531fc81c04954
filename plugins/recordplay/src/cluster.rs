//! The recordings of the other nodes of a cluster. They stay where they were made; lists name their node.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::shelf::Shelf;

/// Recordings, as clients are told of them.
type List = Vec<Map<String, Value>>;

/// How long another node has time to say what it has.
const PATIENCE: Duration = Duration::from_secs(4);
/// The messages that wait for the cluster. More are dropped, and their nodes are left out.
const MESSAGES: usize = 256;
/// The longest list of a node, in bytes. The rest is left out.
const LONGEST: usize = 7 << 20;
/// The most lists that are waited for.
const MAX_QUESTIONS: usize = 1_000;

/// A message between two nodes. Later versions may add messages and members, which earlier ones skip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
enum FarMessage {
    /// What recordings there are.
    List { call: u64, with_private: bool },
    /// Which recording has this id.
    Find { call: u64, id: u64 },
    /// The answer: a list of one at most to `find`.
    Listed { call: u64, list: List },
    /// A message of a later version.
    #[serde(other)]
    Later,
}

/// The recordings of all nodes, as the server and the plugin share them; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Recordings(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    own: OnceLock<Own>,
    node: OnceLock<ThisNode>,
    known: Mutex<Known>,
}

/// The recordings of this node.
#[derive(Debug)]
struct Own {
    shelf: Weak<Shelf>,
    /// Whether the files have addresses.
    serve: bool,
}

/// This node of the cluster.
struct ThisNode {
    name: String,
    /// The address of its HTTP server for clients, if it is known.
    url: Option<String>,
    messages: mpsc::Sender<(String, Vec<u8>)>,
}

impl fmt::Debug for ThisNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThisNode")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Known {
    nodes: BTreeSet<String>,
    last_call: u64,
    questions: HashMap<u64, Question>,
}

#[derive(Debug)]
struct Question {
    node: String,
    answer: oneshot::Sender<List>,
}

impl Recordings {
    /// Sets where the recordings of this node are. The first place stays.
    pub(crate) fn keep_in(&self, shelf: &Arc<Shelf>, serve: bool) {
        // A server has one plugin of this kind.
        let shelf = Arc::downgrade(shelf);
        let _ = self.0.own.set(Own { shelf, serve });
    }

    /// The server is a node with this name, and this address for clients. Returns the messages for
    /// other nodes.
    pub fn join_cluster(
        &self,
        name: &str,
        url: Option<String>,
    ) -> mpsc::Receiver<(String, Vec<u8>)> {
        let (messages, waiting) = mpsc::channel(MESSAGES);
        // A server is a node of one cluster.
        let _ = self.0.node.set(ThisNode {
            name: name.to_owned(),
            url,
            messages,
        });
        waiting
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is a link to a node.
    pub fn node_is_there(&self, node: &str) {
        self.known().nodes.insert(node.to_owned());
    }

    /// A node is lost.
    pub fn node_lost(&self, node: &str) {
        let mut known = self.known();
        known.nodes.remove(node);
        known.questions.retain(|_, question| question.node != node);
    }

    /// Takes a message of another node.
    pub fn take(&self, from: &str, message: &[u8]) {
        match serde_json::from_slice(message) {
            Ok(FarMessage::List { call, with_private }) => {
                let (recordings, to) = (self.clone(), from.to_owned());
                tokio::spawn(async move {
                    let list = recordings.own(with_private, None).await;
                    recordings.send(&to, &FarMessage::Listed { call, list });
                });
            }
            Ok(FarMessage::Find { call, id }) => {
                let (recordings, to) = (self.clone(), from.to_owned());
                tokio::spawn(async move {
                    let list = recordings.own(true, Some(id)).await;
                    recordings.send(&to, &FarMessage::Listed { call, list });
                });
            }
            Ok(FarMessage::Listed { call, list }) => {
                let mut known = self.known();
                let question = known.questions.get(&call);
                if question.is_some_and(|question| question.node == from)
                    && let Some(question) = known.questions.remove(&call)
                {
                    // The client may be gone.
                    let _ = question.answer.send(list);
                }
            }
            Ok(FarMessage::Later) => {}
            Err(error) => tracing::warn!(node = from, %error, "recordplay: a message is skipped"),
        }
    }

    fn send(&self, node: &str, message: &FarMessage) {
        let Some(this) = self.0.node.get() else {
            return;
        };
        // The types have no maps with other keys than texts, so this cannot fail.
        let bytes = serde_json::to_vec(message).unwrap_or_default();
        if this.messages.try_send((node.to_owned(), bytes)).is_err() {
            tracing::warn!(node, "recordplay: too many messages for other nodes wait");
        }
    }

    /// Returns the recordings of this node for another one, or only the one with the id `only`.
    /// Entries have the name of this node, and whole addresses of files.
    async fn own(&self, with_private: bool, only: Option<u64>) -> List {
        let own = self.0.own.get();
        let own = own.and_then(|own| Some((own.shelf.upgrade()?, own.serve)));
        let Some(((shelf, serve), this)) = own.zip(self.0.node.get()) else {
            return Vec::new();
        };
        let all = match only {
            Some(id) => shelf.get(id).await.into_iter().collect(),
            None => shelf.list().await,
        };
        let seen = all.iter().filter(|it| with_private || !it.nfo.is_private);
        let (mut bytes, mut list) = (0_usize, Vec::new());
        for recording in seen {
            let Value::Object(mut entry) = recording.to_json(serve) else {
                continue;
            };
            located(&mut entry, this.url.as_deref());
            self.sign(&mut entry, false);
            bytes = bytes.saturating_add(Value::from(entry.clone()).to_string().len());
            if bytes > LONGEST {
                break;
            }
            list.push(entry);
        }
        list
    }

    /// Returns the name of this node, if the server is one of a cluster.
    pub(crate) fn node(&self) -> Option<&str> {
        self.0.node.get().map(|node| node.name.as_str())
    }

    /// Adds the name and the address of this node to an entry of its own list. `wholly`: the
    /// addresses of files become whole ones, if this one is known.
    pub(crate) fn sign(&self, entry: &mut Map<String, Value>, wholly: bool) {
        if let Some(this) = self.0.node.get() {
            if wholly && this.url.is_some() {
                located(entry, this.url.as_deref());
            }
            entry.insert("node".to_owned(), this.name.as_str().into());
            if let Some(url) = &this.url {
                entry.insert("node_url".to_owned(), url.as_str().into());
            }
        }
    }

    /// Returns the recordings of the other nodes. Those of nodes that do not answer are left out.
    pub(crate) async fn elsewhere(&self, with_private: bool) -> List {
        let mut all = Vec::new();
        let mut answers = self.ask(|call| FarMessage::List { call, with_private });
        while let Some(list) = answers.next(self).await {
            all.extend(list);
        }
        all
    }

    /// Returns the place of a recording of another node.
    pub(crate) async fn find(&self, id: u64) -> Option<FarPlace> {
        let mut answers = self.ask(|call| FarMessage::Find { call, id });
        while let Some(list) = answers.next(self).await {
            let found = list.iter().find(|it| it.get("id") == Some(&id.into()));
            if let Some(place) = found.and_then(FarPlace::of) {
                return Some(place);
            }
        }
        None
    }

    /// Asks all other nodes.
    fn ask(&self, question: impl Fn(u64) -> FarMessage) -> Answers {
        let mut answers = Vec::new();
        {
            let mut known = self.known();
            for node in known.nodes.clone() {
                if known.questions.len() >= MAX_QUESTIONS {
                    break;
                }
                let (answer, answered) = oneshot::channel();
                known.last_call = known.last_call.wrapping_add(1);
                let call = known.last_call;
                let question = Question {
                    node: node.clone(),
                    answer,
                };
                known.questions.insert(call, question);
                answers.push((call, node, answered));
            }
        }
        for (call, node, _) in &answers {
            self.send(node, &question(*call));
        }
        let answers = answers.into_iter().map(|(call, _, answer)| (call, answer));
        Answers {
            waiting: answers.collect(),
            deadline: Instant::now() + PATIENCE,
        }
    }
}

/// The answers of the other nodes to a question.
#[derive(Debug)]
struct Answers {
    waiting: Vec<(u64, oneshot::Receiver<List>)>,
    deadline: Instant,
}

impl Answers {
    /// Returns the answer of another node, or `None` if no more come in time.
    async fn next(&mut self, recordings: &Recordings) -> Option<List> {
        while let Some((call, answered)) = self.waiting.pop() {
            match timeout_at(self.deadline, answered).await {
                Ok(Ok(list)) => return Some(list),
                Ok(Err(_)) | Err(_) => drop(recordings.known().questions.remove(&call)),
            }
        }
        None
    }
}

/// The node of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FarPlace {
    pub(crate) node: String,
    /// Its address for clients, if it is known.
    pub(crate) url: Option<String>,
}

impl FarPlace {
    fn of(entry: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| Some(entry.get(name)?.as_str()?.to_owned());
        let (node, url) = (text("node")?, text("node_url"));
        Some(Self { node, url })
    }
}

/// Makes addresses of files whole, or removes them if that of their node is unknown.
fn located(entry: &mut Map<String, Value>, url: Option<&str>) {
    let Some(url) = url.map(|url| url.trim_end_matches('/')) else {
        entry.remove("urls");
        entry.remove("parts");
        return;
    };
    let whole = |address: &mut Value| {
        if let Value::String(address) = address
            && address.starts_with('/')
        {
            address.insert_str(0, url);
        }
    };
    if let Some(Value::Object(urls)) = entry.get_mut("urls") {
        urls.values_mut().for_each(whole);
    }
    if let Some(Value::Array(parts)) = entry.get_mut("parts") {
        parts.iter_mut().for_each(whole);
    }
}

/// Reads a message of another node. What can be read can be written and read again.
#[cfg(feature = "testing")]
pub fn read_message(bytes: &[u8]) {
    if let Ok(message) = serde_json::from_slice::<FarMessage>(bytes) {
        let written = serde_json::to_vec(&message).unwrap_or_default();
        assert_eq!(serde_json::from_slice(&written).ok(), Some(message));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]
    use serde_json::json;

    use super::*;

    fn entry(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn addresses_of_files_are_those_of_their_node() {
        let there = json!({ "id": 7, "urls": { "audio": "/f/a.opus" }, "parts": ["/f/b"] });
        let mut known = entry(there.clone());
        located(&mut known, Some("https://b.example.org/"));
        let whole = json!({
            "id": 7, "urls": { "audio": "https://b.example.org/f/a.opus" },
            "parts": ["https://b.example.org/f/b"],
        });
        assert_eq!(Value::from(known), whole);
        let mut unknown = entry(there);
        located(&mut unknown, None);
        assert_eq!(Value::from(unknown), json!({ "id": 7 }));
    }

    #[tokio::test]
    async fn a_list_has_what_the_other_nodes_say_and_leaves_out_lost_ones() {
        let recordings = Recordings::default();
        let mut messages = recordings.join_cluster("a", None);
        recordings.node_is_there("b");
        recordings.node_is_there("c");
        let there = recordings.clone();
        let answering = async move {
            for _ in 0..2 {
                let (node, message) = messages.recv().await.unwrap();
                let FarMessage::List { call, .. } = serde_json::from_slice(&message).unwrap()
                else {
                    panic!("a question");
                };
                if node == "c" {
                    there.node_lost("c");
                    continue;
                }
                let list = vec![entry(json!({ "id": 7, "node": "b" }))];
                let answer = serde_json::to_vec(&FarMessage::Listed { call, list }).unwrap();
                // Nobody answers for others.
                there.take("c", &answer);
                there.take("b", &answer);
            }
        };
        let (list, ()) = tokio::join!(recordings.elsewhere(false), answering);
        assert_eq!(list, [entry(json!({ "id": 7, "node": "b" }))]);
    }

    #[tokio::test]
    async fn a_recording_is_found_at_the_node_that_has_it() {
        let recordings = Recordings::default();
        let mut messages = recordings.join_cluster("a", None);
        for node in ["b", "c"] {
            recordings.node_is_there(node);
        }
        let there = recordings.clone();
        let answering = async move {
            for _ in 0..2 {
                let (node, message) = messages.recv().await.unwrap();
                let FarMessage::Find { call, id: 7 } = serde_json::from_slice(&message).unwrap()
                else {
                    panic!("a question");
                };
                let url = format!("https://{node}.example.org");
                let has_it = json!({ "id": 7, "node": node, "node_url": url });
                let list = match node.as_str() {
                    "b" => vec![entry(has_it)],
                    _ => Vec::new(),
                };
                let answer = serde_json::to_vec(&FarMessage::Listed { call, list }).unwrap();
                there.take(&node, &answer);
            }
        };
        let (place, ()) = tokio::join!(recordings.find(7), answering);
        let place = place.unwrap();
        assert_eq!(place.node, "b");
        assert_eq!(place.url.as_deref(), Some("https://b.example.org"));
    }
}
