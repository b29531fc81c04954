//! All that somebody sends, recorded together: into one file where the format has room for it.

use portunus_media::{MediaPlane, SourceRef};
use portunus_sdp::CodecName;

use crate::{
    Format, Medium, Outcome, Participant, RecordError, RecordedMedia, Recorder, Recording,
    RecordingSpec,
};

/// A recording of several sources to be.
#[derive(Debug, Clone)]
pub struct JointSpec {
    /// The folder, as a client or the configuration names it; none: the recorder's own.
    pub dir: Option<String>,
    /// The file's name without its extension. It may have folders in it; they are made if missing.
    pub name: String,
    /// What the files are like. What a container has no room for is recorded as Janus's format beside.
    pub format: Format,
    /// Whose recording it is, for the manifest.
    pub of: Option<Participant>,
    /// What is recorded at first.
    pub tracks: Vec<TrackSpec>,
}

/// A source that is recorded with others.
#[derive(Debug, Clone)]
pub struct TrackSpec {
    /// What it is called among the others: the m-line.
    pub key: String,
    /// What comes from the source.
    pub media: RecordedMedia,
    /// The source.
    pub from: SourceRef,
    /// Whether its gate is open.
    pub open: bool,
}

/// A recording of several sources. To drop it ends it: what came before is written.
#[derive(Debug)]
pub struct JointRecording {
    recorder: Recorder,
    media: MediaPlane,
    spec: JointSpec,
    /// The files with one track each.
    alone: Vec<(String, Medium, Recording)>,
}

impl JointRecording {
    pub(crate) fn start(
        recorder: &Recorder,
        media: &MediaPlane,
        mut spec: JointSpec,
    ) -> Result<Self, RecordError> {
        let tracks = std::mem::take(&mut spec.tracks);
        let mut recording = Self {
            recorder: recorder.clone(),
            media: media.clone(),
            spec,
            alone: Vec::new(),
        };
        for track in tracks {
            recording.try_add(track)?;
        }
        Ok(recording)
    }

    /// Opens or closes the gate of a track: while it is closed nothing of it is recorded.
    pub fn set_open(&mut self, key: &str, open: bool) {
        for (_, _, recording) in self.alone.iter_mut().filter(|(it, ..)| it == key) {
            recording.set_open(open);
        }
    }

    /// Adds a track. One of the same key ends.
    pub fn add(&mut self, track: TrackSpec) {
        self.remove(&track.key);
        if let Err(error) = self.try_add(track) {
            tracing::warn!(file = self.spec.name, "a track is not recorded: {error}");
        }
    }

    /// Ends a track.
    pub fn remove(&mut self, key: &str) {
        self.alone.retain(|(it, ..)| it != key);
    }

    /// Whether all of it has ended: the sources did, or it failed.
    pub fn is_over(&self) -> bool {
        self.alone.iter().all(|(_, _, it)| it.is_over())
    }

    /// The names of the files that are written now, without folders.
    pub fn file_names(&self) -> Vec<String> {
        let running = self.alone.iter().filter(|(_, _, it)| !it.is_over());
        running.map(|(_, _, it)| it.file_name()).collect()
    }

    /// How it turns out: of all that is recorded now.
    pub fn outcome(&self) -> Outcome {
        let outcomes = self.alone.iter().map(|(_, _, it)| it.outcome());
        Outcome::of_all(outcomes)
    }

    fn try_add(&mut self, track: TrackSpec) -> Result<(), RecordError> {
        let medium = track.media.medium();
        let format = match self.spec.format {
            Format::OggOpus if !track.media.is_plain(CodecName::Opus) => return Ok(()),
            Format::OggOpus => Format::OggOpus,
            _ => Format::Mjr,
        };
        let is_first = !self.alone.iter().any(|(_, other, _)| *other == medium);
        let name = &self.spec.name;
        let name = match (format, is_first) {
            (Format::OggOpus, true) => name.clone(),
            (_, true) => format!("{name}-{}", medium.as_str()),
            (_, false) => format!("{name}-{}-{}", medium.as_str(), track.key),
        };
        let spec = RecordingSpec {
            dir: self.spec.dir.clone(),
            name,
            media: track.media,
            format,
            of: self.spec.of.clone(),
        };
        let recording = self
            .recorder
            .start(&self.media, track.from, track.open, spec)?;
        self.alone.push((track.key, medium, recording));
        Ok(())
    }
}
