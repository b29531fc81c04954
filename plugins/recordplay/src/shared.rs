//! The state that all handles of the plugin share, and the requests that concern the whole folder.

use std::path::PathBuf;
use std::sync::Arc;

use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{FieldError, Fields, Later, Object, Reply, Rights};
use serde_json::{Map, Value, json};

use crate::cluster::Recordings;
use crate::config::RecordPlayConfig;
use crate::counts::Counts;
use crate::opening::Opening;
use crate::refusal::Refusal;
use crate::shelf::Shelf;

/// The name that clients attach to.
pub(crate) const PACKAGE: &str = "janus.plugin.recordplay";

/// The state that all handles of the plugin share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: RecordPlayConfig,
    pub(crate) media: MediaPlane,
    /// Records into the plugin's folder.
    pub(crate) recorder: Recorder,
    /// The folder of the recordings of all plugins.
    pub(crate) all: PathBuf,
    pub(crate) shelf: Arc<Shelf>,
    /// Those of other nodes.
    pub(crate) recordings: Recordings,
    pub(crate) opening: Opening,
    pub(crate) counts: Counts,
}

impl Shared {
    /// Reads the folder again.
    pub(crate) fn update(&self) -> Reply {
        let shelf = Arc::clone(&self.shelf);
        Reply::Later(Later::new(async move {
            shelf.scan().await;
            json!({ "recordplay": "ok" })
        }))
    }

    /// Lists all recordings for administrators, whose programs do not know the port of the files:
    /// addresses are whole if the node knows its own.
    pub(crate) fn list_for_administrator(&self) -> Reply {
        self.list_as(true, true)
    }

    /// Lists the recordings, with private ones if wanted.
    pub(crate) fn list(&self, with_private: bool) -> Reply {
        self.list_as(with_private, false)
    }

    fn list_as(&self, with_private: bool, with_whole_addresses: bool) -> Reply {
        let (shelf, serve) = (Arc::clone(&self.shelf), self.config.serve);
        let recordings = self.recordings.clone();
        Reply::Later(Later::new(async move {
            let (all, elsewhere) = tokio::join!(shelf.list(), recordings.elsewhere(with_private));
            let seen = all.iter().filter(|it| with_private || !it.nfo.is_private);
            let mut list: Vec<_> = seen.map(|it| it.to_json(serve)).collect();
            for entry in list.iter_mut().filter_map(Value::as_object_mut) {
                recordings.sign(entry, with_whole_addresses);
            }
            list.extend(elsewhere.into_iter().map(Value::from));
            Object::new()
                .with("recordplay", "list")
                .with_some("node", recordings.node())
                .with("list", list)
                .into()
        }))
    }

    /// Whether a request shows the key. Fails if it shows a wrong one. Without a configured key it
    /// shows none.
    pub(crate) fn shows_key(&self, body: &Map<String, Value>) -> Result<bool, Refusal> {
        let fields = Fields(body);
        let shown = fields.text("admin_key")?;
        let Some((key, _)) = self.config.admin_key().zip(shown) else {
            return Ok(false);
        };
        match portunus_core::with_admin_key(Rights::NONE, fields, Some(key)) == Rights::ALL {
            true => Ok(true),
            false => Err(Refusal::WrongKey),
        }
    }

    /// Checks that a request may change the list for all.
    pub(crate) fn may_update(&self, body: &Map<String, Value>) -> Result<(), Refusal> {
        let missing = || FieldError::Missing("admin_key".to_owned());
        match (self.shows_key(body)?, self.config.admin_key()) {
            (true, _) | (false, None) => Ok(()),
            (false, Some(_)) if body.contains_key("admin_key") => Err(Refusal::WrongKey),
            (false, Some(_)) => Err(missing().into()),
        }
    }
}
