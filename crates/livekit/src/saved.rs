//! The trunks, rules and ingresses that the services have made, in a file that the next start reads.

use std::path::PathBuf;
use std::sync::Arc;

use livekit_protocol as lk;
use portunus_resources::{Id, Ids, Saved, SavedError, Writing, Written};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::services::{Answer, Code, ServiceError};

/// One of them: its section of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(
    clippy::large_enum_variant,
    reason = "there are few, and none is moved often"
)]
pub(crate) enum Content {
    InboundTrunk(lk::SipInboundTrunkInfo),
    OutboundTrunk(lk::SipOutboundTrunkInfo),
    Rule(lk::SipDispatchRuleInfo),
    Ingress(lk::IngressInfo),
}

impl Content {
    fn id(&self) -> &str {
        match self {
            Content::InboundTrunk(trunk) => &trunk.sip_trunk_id,
            Content::OutboundTrunk(trunk) => &trunk.sip_trunk_id,
            Content::Rule(rule) => &rule.sip_dispatch_rule_id,
            Content::Ingress(info) => &info.ingress_id,
        }
    }
}

/// A section of the file.
#[derive(Debug, Clone)]
struct Entry {
    id: Id,
    content: Content,
}

impl From<Content> for Entry {
    fn from(content: Content) -> Self {
        Entry {
            id: Id::Text(content.id().to_owned()),
            content,
        }
    }
}

impl Written for Entry {
    const ONE: &'static str = "entry";
    const MANY: &'static str = "trunks, rules and ingresses of LiveKit's services";

    fn key(&self) -> Id {
        self.id.clone()
    }

    fn id(&self) -> Option<&Id> {
        Some(&self.id)
    }

    fn read(members: &Map<String, Value>, _: Ids) -> Result<Self, String> {
        let content: Result<Content, _> = serde_json::from_value(members.clone().into());
        let entry: Entry = content.map_err(|error| error.to_string())?.into();
        match entry.content.id() {
            "" => Err("an entry has no id".to_owned()),
            _ => Ok(entry),
        }
    }

    fn to_members(&self) -> Map<String, Value> {
        match serde_json::to_value(&self.content) {
            Ok(Value::Object(members)) => members,
            // The content is always an object.
            Ok(_) | Err(_) => Map::new(),
        }
    }
}

/// The file; cheap to clone. Without one, everything is forgotten with the server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store(Option<Arc<Saved<Entry>>>);

/// A change that is being written.
#[derive(Debug)]
#[must_use]
pub(crate) struct Change(Option<Writing>);

impl Store {
    /// Opens the file, which may be absent. Returns what it contains, too.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<(Self, Vec<Content>), SavedError> {
        let Some(path) = path else {
            return Ok((Store::default(), Vec::new()));
        };
        let (saved, entries) = Saved::<Entry>::open(path, Ids::Texts, Vec::new())?;
        let contents = entries.into_iter().map(|entry| entry.content);
        Ok((Store(Some(Arc::new(saved))), contents.collect()))
    }

    /// Saves an entry in place of the former one with its id. The caller holds the lock of that
    /// change, so that the last change is the last write.
    pub(crate) fn keep(&self, content: Content) -> Change {
        let saved = self.0.as_ref();
        Change(saved.map(|saved| saved.keep_soon(content.into())))
    }

    /// Removes an entry, as [`Store::keep`] saves one.
    pub(crate) fn remove(&self, id: &str) -> Change {
        let id = Id::Text(id.to_owned());
        let saved = self.0.as_ref();
        Change(saved.map(|saved| saved.remove_soon(id.clone(), id)))
    }
}

impl Change {
    /// Waits until it is written.
    pub(crate) async fn done(self) -> Answer<()> {
        let Some(writing) = self.0 else {
            return Ok(());
        };
        let written = writing.done().await;
        let text = "the change holds until the server ends, but cannot be saved (livekit.save)";
        written.map_err(|_| ServiceError::new(Code::Internal, text))
    }
}

/// Reads the text of a file of saved entries and writes it again, for fuzzing.
#[cfg(feature = "testing")]
pub fn rewrite(text: &str) -> Result<String, String> {
    portunus_resources::rewrite_saved::<Entry>(text, Ids::Texts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn contents() -> Vec<Content> {
        vec![
            Content::InboundTrunk(lk::SipInboundTrunkInfo {
                sip_trunk_id: "ST_in".to_owned(),
                numbers: vec!["+4930".to_owned()],
                auth_password: "a \"secret\"\n".to_owned(),
                ..Default::default()
            }),
            Content::OutboundTrunk(lk::SipOutboundTrunkInfo {
                sip_trunk_id: "ST_out".to_owned(),
                transport: lk::SipTransport::Tls.into(),
                headers: [("X-A".to_owned(), "b".to_owned())].into(),
                ..Default::default()
            }),
            Content::Rule(lk::SipDispatchRuleInfo {
                sip_dispatch_rule_id: "SDR_a".to_owned(),
                rule: Some(lk::SipDispatchRule {
                    rule: Some(lk::sip_dispatch_rule::Rule::DispatchRuleDirect(
                        lk::SipDispatchRuleDirect {
                            room_name: "den".to_owned(),
                            pin: "0123".to_owned(),
                        },
                    )),
                }),
                ..Default::default()
            }),
            Content::Ingress(lk::IngressInfo {
                ingress_id: "IN_a".to_owned(),
                stream_key: "key".to_owned(),
                enabled: Some(false),
                state: Some(lk::IngressState {
                    updated_at: i64::MAX,
                    ..Default::default()
                }),
                ..Default::default()
            }),
        ]
    }

    #[tokio::test]
    async fn the_next_start_finds_what_was_kept_and_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().join("livekit.toml"));
        let (store, first) = Store::open(path.clone()).unwrap();
        assert_eq!(first, []);
        for content in contents() {
            store.keep(content).done().await.unwrap();
        }
        let (store, found) = Store::open(path.clone()).unwrap();
        assert_eq!(found, contents());
        store.remove("ST_in").done().await.unwrap();
        store.remove("ST_no").done().await.unwrap();
        let (_, found) = Store::open(path).unwrap();
        let left: Vec<_> = contents().into_iter().skip(1).collect();
        assert_eq!(found, left);
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_or_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("livekit.toml");
        for text in [
            "entry = 1 +",
            "[[entry]]\nrule = {}",
            "[[entry]]\nother = { a = 1 }",
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(Store::open(Some(path.clone())).is_err(), "{text}");
        }
        let missing = folder.path().join("none/livekit.toml");
        let (store, _) = Store::open(Some(missing)).unwrap();
        let kept = store.keep(contents().remove(0)).done().await;
        assert_eq!(kept.unwrap_err().code(), Code::Internal);
        let (store, _) = Store::open(None).unwrap();
        store.remove("ST_in").done().await.unwrap();
    }
}
