//! The plugin.

use std::convert::Infallible;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{
    Asked, ConfiguredPlugin, Fields, Handle, Plugin, PluginContext, PluginCounter, PluginHandle,
    PluginInfo, PublicFile, PublicFiles, Reply,
};
use serde_json::Value;

use crate::attached::Attached;
use crate::cluster::Recordings;
use crate::complete_recording::BASE;
use crate::config::RecordPlayConfig;
use crate::counts::Counts;
use crate::opening::Opening;
use crate::refusal::Refusal;
use crate::requests::Request;
use crate::shared::{PACKAGE, Shared};
use crate::shelf::Shelf;

/// The plugin with its folder.
#[derive(Debug)]
pub struct RecordPlay {
    shared: Arc<Shared>,
}

impl RecordPlay {
    /// Starts the plugin with the recordings of its folder, which is below that of `recorder`.
    pub async fn open(config: RecordPlayConfig, media: MediaPlane, recorder: &Recorder) -> Self {
        Self::open_with(config, media, recorder, Recordings::default()).await
    }

    /// The same, with the recordings of other nodes.
    async fn open_with(
        config: RecordPlayConfig,
        media: MediaPlane,
        recorder: &Recorder,
        recordings: Recordings,
    ) -> Self {
        let all = recorder.folder().to_owned();
        let recorder = recorder.in_folder(&config.path);
        let shelf = Arc::new(Shelf::new(
            recorder.folder().to_owned(),
            recorder.temporary(),
        ));
        shelf.open().await;
        recordings.keep_in(&shelf, config.serve);
        let shared = Shared {
            config,
            media,
            recorder,
            all,
            shelf,
            recordings,
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
        // Tests start it without a server around it.
        let recordings = context.services.get::<Recordings>().cloned();
        let recordings = recordings.unwrap_or_default();
        let (media, recorder) = (context.media, &context.recorder);
        Ok(RecordPlay::open_with(config, media, recorder, recordings).await)
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
        let perform = |fields: Fields<'_>| {
            let name: &str = fields.required("request")?;
            match name.to_ascii_lowercase().as_str() {
                "update" => Ok(self.shared.update()),
                "list" => Ok(self.shared.list_for_administrator()),
                _ => Err(Refusal::Unknown(name.to_owned())),
            }
        };
        let request = request.as_object().map(Fields);
        let performed = request.ok_or(Refusal::NotAnObject).and_then(perform);
        Some(performed.unwrap_or_else(|refusal| Reply::Success(refusal.to_json())))
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.shared.counts.counters()
    }
}

/// The key in an address cannot be guessed, so the files need no other protection.
impl PublicFiles for RecordPlay {
    fn find(&self, path: &str) -> Option<PublicFile> {
        let (key, name) = path.strip_prefix(BASE)?.split_once('/')?;
        let name = percent_decode_str(name).decode_utf8().ok()?;
        self.shared.shelf.file(key, &name)
    }
}
