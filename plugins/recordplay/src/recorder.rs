//! A client that is recorded: the answers to it, and its files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::Local;
use portunus_core::record::{
    Format, JointRecording, JointSpec, Outcome, Participant, RecordedMedia, SessionSpec, TrackSpec,
};
use portunus_core::sdp::{AnswerOptions, CodecName, Description, Direction, Kind, Media};
use portunus_core::{ExtensionKind, Handle, Mid, SentMedia};

use crate::complete_recording::random_key;
use crate::director::Director;
use crate::nfo::{MediaFiles, Nfo};
use crate::refusal::Refusal;
use crate::requests::Record;
use crate::shared::{PACKAGE, Shared};
use crate::shelf::Reserved;

/// The codecs in order of preference, for clients without a preference.
const AUDIO: [CodecName; 9] = [
    CodecName::Opus,
    CodecName::MultiOpus,
    CodecName::Pcmu,
    CodecName::Pcma,
    CodecName::G722,
    CodecName::L16Wide,
    CodecName::L16,
    CodecName::Isac16,
    CodecName::Isac32,
];
const VIDEO: [CodecName; 5] = [
    CodecName::Vp8,
    CodecName::Vp9,
    CodecName::H264,
    CodecName::Av1,
    CodecName::H265,
];

/// The accepted header extensions.
const EXTENSIONS: [ExtensionKind; 6] = [
    ExtensionKind::Mid,
    ExtensionKind::Rid,
    ExtensionKind::RepairedRid,
    ExtensionKind::TransportCc,
    ExtensionKind::AudioLevel,
    ExtensionKind::VideoOrientation,
];

/// The recording of a client.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) nfo: Nfo,
    /// The start of its files' names.
    stem: String,
    reserved: Reserved,
    recording: JointRecording,
    /// The names of all files that it started with.
    names: Vec<String>,
    /// The names of the complete files.
    complete: Arc<Mutex<Vec<String>>>,
    /// The m-lines that are recorded.
    lines: Vec<(Kind, Mid)>,
    /// The properties that all answers share.
    taken: Taken,
    /// The version of the last answer.
    version: u64,
    is_paused: bool,
    /// The description on the disk for the case of a crash, once there is one.
    pub(crate) described: Option<Nfo>,
    pub(crate) e2ee: bool,
    pub(crate) director: Option<Director>,
}

/// The properties of all answers of a recording.
#[derive(Debug, Clone)]
struct Taken {
    options: AnswerOptions,
    text: bool,
}

/// A checked request to record.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) answer: Description,
    pub(crate) reserved: Reserved,
    nfo: Nfo,
    stem: String,
    format: Format,
    taken: Taken,
    e2ee: bool,
}

impl Plan {
    /// Checks a request.
    pub(crate) fn new(shared: &Arc<Shared>, request: &Record<'_>) -> Result<Self, Refusal> {
        let taken = Taken::new(request);
        let probe = taken.answer(request, 0);
        if sent(&probe, &taken, request.offer.e2ee).is_empty() {
            let reason = "it sends nothing that can be recorded";
            return Err(Refusal::Offer(reason.to_owned()));
        }
        let reserved = shared.shelf.reserve(request.id);
        let reserved = reserved.ok_or(Refusal::Exists(request.id.unwrap_or_default()))?;
        let id = reserved.id;
        let stem = request.file.clone().unwrap_or_else(|| format!("rec-{id}"));
        let format = request.format.unwrap_or_else(|| shared.recorder.format());
        let nfo = Nfo {
            id,
            name: request.name.clone(),
            date: Local::now().format("%Y-%m-%d %H:%M:%S").to_string(),
            is_private: request.is_private.unwrap_or(shared.config.private),
            files: MediaFiles::default(),
            key: Some(random_key()),
        };
        Ok(Self {
            answer: taken.answer(request, id),
            reserved,
            nfo,
            stem,
            format,
            taken,
            e2ee: request.offer.e2ee,
        })
    }

    /// Starts recording. The answer is on its way.
    pub(crate) fn start(
        self,
        shared: &Arc<Shared>,
        handle: &Handle,
    ) -> Result<Recorder, portunus_core::record::RecordError> {
        let sent = sent(&self.answer, &self.taken, self.e2ee);
        let session = shared.recorder.session(SessionSpec {
            plugin: PACKAGE,
            dir: None,
            name: self.stem.clone(),
            room: None,
            description: Some(self.nfo.name.clone()),
        });
        let spec = JointSpec {
            dir: None,
            name: self.stem.clone(),
            format: self.format,
            of: Some(Participant {
                session,
                id: self.nfo.id.to_string(),
                display: Some(self.nfo.name.clone()),
            }),
            tracks: tracks(handle, &sent),
        };
        let mut recording = shared.recorder.joint(&shared.media, spec)?;
        let complete: Arc<Mutex<Vec<String>>> = Arc::default();
        let names = Arc::clone(&complete);
        recording.on_complete(move |completed| {
            let name = completed.file.file_name().unwrap_or_default();
            lock(&names).push(name.to_string_lossy().into_owned());
        });
        Ok(Recorder {
            complete,
            names: recording.file_names(),
            recording,
            lines: sent.iter().map(|line| (line.kind, line.mid)).collect(),
            version: self.answer.origin.version,
            nfo: self.nfo,
            stem: self.stem,
            reserved: self.reserved,
            taken: self.taken,
            is_paused: false,
            described: None,
            e2ee: self.e2ee,
            director: None,
        })
    }
}

impl Recorder {
    pub(crate) fn outcome(&self) -> Outcome {
        self.recording.outcome()
    }

    /// Returns the answer to a later offer of the same client.
    pub(crate) fn renegotiate(&mut self, request: &Record<'_>) -> Description {
        self.version = self.version.saturating_add(1);
        let mut answer = self.taken.answer(request, self.nfo.id);
        answer.origin.version = self.version;
        answer
    }

    /// Adds the tracks of a new answer.
    pub(crate) fn agreed(&mut self, handle: &Handle, answer: &Description) {
        let sent = sent(answer, &self.taken, self.e2ee);
        let new = sent.into_iter();
        let new = new.filter(|line| !self.lines.contains(&(line.kind, line.mid)));
        let new: Vec<SentMedia> = new.collect();
        for (line, mut track) in new.iter().zip(tracks(handle, &new)) {
            track.open = !self.is_paused;
            self.recording.add(track);
            self.lines.push((line.kind, line.mid));
        }
        let names = self.recording.file_names();
        let new = names.into_iter().filter(|name| !self.names.contains(name));
        let new: Vec<_> = new.collect();
        self.names.extend(new);
    }

    /// Returns the m-line with video.
    pub(crate) fn video(&self) -> Option<Mid> {
        let video = self.lines.iter().find(|(kind, _)| *kind == Kind::Video);
        video.map(|(_, mid)| *mid)
    }

    pub(crate) fn pause(&mut self, pause: bool) {
        self.is_paused = pause;
        for (_, mid) in &self.lines {
            self.recording.set_open(mid.as_str(), !pause);
        }
    }

    /// Returns its present description, for the case of a crash.
    pub(crate) fn description(&self) -> Nfo {
        let file = |kind: Kind| {
            let is_sent = self.lines.iter().any(|(other, _)| *other == kind);
            is_sent.then(|| self.file(kind)).flatten()
        };
        let files = MediaFiles {
            audio: file(Kind::Audio),
            video: file(Kind::Video),
            data: file(Kind::Data),
            parts: Vec::new(),
        };
        Nfo {
            files,
            ..self.nfo.clone()
        }
    }

    /// Returns the description that should replace the one on the disk, or `None` if that is up to
    /// date.
    pub(crate) fn news(&mut self) -> Option<Nfo> {
        let now = self.description();
        let before = self.described.as_mut().filter(|before| **before != now)?;
        before.clone_from(&now);
        Some(now)
    }

    /// Returns the file with content of this kind.
    fn file(&self, kind: Kind) -> Option<String> {
        let medium = match kind {
            Kind::Audio => "audio",
            Kind::Video => "video",
            Kind::Data => "data",
        };
        let own = format!("{}-{medium}.mjr", self.stem);
        // The first file of a container is named, and the others are its parts. Ogg has audio only.
        let has_it = |name: &&String| {
            !name.ends_with(".mjr") && (kind == Kind::Audio || !name.ends_with(".opus"))
        };
        let mut shared = self.names.iter().filter(has_it);
        match self.names.contains(&own) {
            true => Some(own),
            false => shared.next().cloned(),
        }
    }

    /// Ends the recording. It can be played once its files are complete.
    pub(crate) fn finish(self, shared: &Arc<Shared>) {
        let nfo = self.description();
        let outcome = self.recording.outcome();
        drop(self.recording);
        let complete = self.complete;
        let ended = async move {
            // A file that could not be written to its end can still be played.
            let _ = outcome.ended().await;
            let complete = std::mem::take(&mut *lock(&complete));
            let mut nfo = nfo;
            nfo.files.parts = parts(&nfo.files, complete);
            nfo
        };
        shared.shelf.finish(self.reserved, ended);
    }
}

/// Returns the complete files that continue a container.
fn parts(files: &MediaFiles, complete: Vec<String>) -> Vec<String> {
    let is_part = |name: &String| !name.ends_with(".mjr") && files.named().all(|it| it.1 != name);
    complete.into_iter().filter(is_part).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Taken {
    fn new(request: &Record<'_>) -> Self {
        let mut options = AnswerOptions {
            extensions: EXTENSIONS.to_vec(),
            ..AnswerOptions::default()
        };
        let only = |codec: Option<CodecName>, all: &[CodecName]| {
            codec.map_or_else(|| all.to_vec(), |codec| vec![codec])
        };
        options.audio.codecs = only(request.audio_codec, &AUDIO);
        options.audio.direction = Direction::RecvOnly;
        options.audio.fmtp = request.offer.description.opus_flags().fmtp();
        options.audio.red = request.red;
        options.video.codecs = only(request.video_codec, &VIDEO);
        options.video.direction = Direction::RecvOnly;
        options.video.profile = request.video_profile.clone();
        Self {
            options,
            text: request.text,
        }
    }

    /// Accepts the first audio, the first video and the first data m-line.
    fn answer(&self, request: &Record<'_>, id: u64) -> Description {
        let options = AnswerOptions {
            name: Some(format!("Recording {id}")),
            ..self.options.clone()
        };
        let mut answer = Description::answer(&request.offer.description, &options);
        for kind in [Kind::Audio, Kind::Video] {
            let others = answer.media.iter_mut().filter(|it| it.kind == kind);
            for media in others.filter(|it| !it.rejected).skip(1) {
                *media = media.refused();
            }
        }
        answer
    }
}

/// Returns the media of an answer that can be recorded.
fn sent(answer: &Description, taken: &Taken, e2ee: bool) -> Vec<SentMedia> {
    let recorded = |media: &Media| match media.kind {
        Kind::Data if !media.rejected => Some(RecordedMedia::data(taken.text)),
        Kind::Data => None,
        Kind::Audio | Kind::Video => RecordedMedia::answered(media),
    };
    let sent = answer.media.iter();
    let sent = sent.filter(|it| it.kind == Kind::Data || it.direction.receives());
    let sent = sent.filter_map(|media| {
        Some(SentMedia {
            mid: media.mid,
            kind: media.kind,
            media: recorded(media)?.with_encryption(e2ee),
        })
    });
    sent.collect()
}

fn tracks(handle: &Handle, sent: &[SentMedia]) -> Vec<TrackSpec> {
    let track = |line: &SentMedia| {
        Some(TrackSpec {
            key: line.mid.as_str().to_owned(),
            media: line.media.clone(),
            from: handle.track(line.mid)?.into(),
            open: true,
        })
    };
    sent.iter().filter_map(track).collect()
}
