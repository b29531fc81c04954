//! The plugin: what all of its handles share, and what it answers without one.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{
    Asked, ConfiguredPlugin, FieldError, Fields, Handle, Later, Plugin, PluginContext,
    PluginCounter, PluginHandle, PluginInfo, PublicFile, PublicFiles, Reply, Rights,
};
use serde_json::{Map, Value, json};

use crate::attached::Attached;
use crate::config::RecordPlayConfig;
use crate::counts::Counts;
use crate::opening::Opening;
use crate::recorded::BASE;
use crate::refusal::Refusal;
use crate::requests::Request;
use crate::shelf::Shelf;

/// What clients attach to.
pub(crate) const PACKAGE: &str = "janus.plugin.recordplay";

/// The plugin, with its folder.
#[derive(Debug)]
pub struct RecordPlay {
    shared: Arc<Shared>,
}

/// What all handles of the plugin share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: RecordPlayConfig,
    pub(crate) media: MediaPlane,
    /// Its files are in the plugin's folder.
    pub(crate) recorder: Recorder,
    /// The folder of the recordings of all plugins.
    pub(crate) all: PathBuf,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) opening: Opening,
    pub(crate) counts: Counts,
}

impl RecordPlay {
    /// The plugin on a media plane, with what its folder has, which is below that of `recorder`.
    pub async fn open(config: RecordPlayConfig, media: MediaPlane, recorder: &Recorder) -> Self {
        let all = recorder.folder().to_owned();
        let recorder = recorder.in_folder(&config.path);
        let shelf = Arc::new(Shelf::new(
            recorder.folder().to_owned(),
            recorder.temporary(),
        ));
        shelf.open().await;
        let shared = Shared {
            config,
            media,
            recorder,
            all,
            shelf,
            opening: Opening::default(),
            counts: Counts::default(),
        };
        RecordPlay {
            shared: Arc::new(shared),
        }
    }
}

impl ConfiguredPlugin for RecordPlay {
    const NAME: &'static str = "recordplay";
    type Config = RecordPlayConfig;
    type Error = Infallible;

    async fn from_config(
        config: RecordPlayConfig,
        context: PluginContext,
    ) -> Result<Self, Infallible> {
        Ok(RecordPlay::open(config, context.media, &context.recorder).await)
    }
}

impl Plugin for RecordPlay {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: PACKAGE,
            name: "Record&Play plugin",
            description: "What a client sends is recorded, and played again.",
            version: 5,
            version_string: "0.0.5",
        }
    }

    fn begins(&self, request: &str) -> bool {
        Asked::<Request>::named(request).is_some_and(Asked::begins)
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(Attached::new(handle, Arc::clone(&self.shared)))
    }

    fn files(&self) -> Option<&dyn PublicFiles> {
        self.shared.config.serve.then_some(self)
    }

    fn admin(&self, request: Value) -> Option<Reply> {
        let named = |fields: Fields<'_>| {
            let name: &str = fields.required("request")?;
            match name.to_ascii_lowercase().as_str() {
                "update" => Ok(()),
                _ => Err(Refusal::Unknown(name.to_owned())),
            }
        };
        let request = request.as_object().map(Fields);
        Some(match request.ok_or(Refusal::NotAnObject).and_then(named) {
            Ok(()) => self.shared.update(),
            Err(refusal) => Reply::Success(refusal.to_json()),
        })
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.shared.counts.counters()
    }
}

/// Whoever knows the key of a recording, which nobody can guess, gets its files.
impl PublicFiles for RecordPlay {
    fn find(&self, path: &str) -> Option<PublicFile> {
        let (key, name) = path.strip_prefix(BASE)?.split_once('/')?;
        let name = percent_decode_str(name).decode_utf8().ok()?;
        self.shared.shelf.file(key, &name)
    }
}

impl Shared {
    /// Looks at the folder again.
    pub(crate) fn update(&self) -> Reply {
        let shelf = Arc::clone(&self.shelf);
        Reply::Later(Later::new(async move {
            shelf.scan().await;
            json!({ "recordplay": "ok" })
        }))
    }

    /// The recordings that there are; private ones for those who show the key.
    pub(crate) fn list(&self, with_private: bool) -> Reply {
        let (shelf, serve) = (Arc::clone(&self.shelf), self.config.serve);
        Reply::Later(Later::new(async move {
            let all = shelf.list().await;
            let seen = all.iter().filter(|it| with_private || !it.nfo.is_private);
            let list: Vec<_> = seen.map(|it| it.to_json(serve)).collect();
            json!({ "recordplay": "list", "list": list })
        }))
    }

    /// Whether a request shows the key; an error if it shows another one. Without a key in the configuration none does.
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

    /// Whether a request may change what all see.
    pub(crate) fn may_update(&self, body: &Map<String, Value>) -> Result<(), Refusal> {
        let missing = || FieldError::Missing("admin_key".to_owned());
        match (self.shows_key(body)?, self.config.admin_key()) {
            (true, _) | (false, None) => Ok(()),
            (false, Some(_)) if body.contains_key("admin_key") => Err(Refusal::WrongKey),
            (false, Some(_)) => Err(missing().into()),
        }
    }
}
