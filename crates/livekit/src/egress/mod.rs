//! Egress: recordings and streams of rooms, participants and tracks, which the services start.

mod config;
mod conversion;
mod encoding;
mod file_name;
mod plan;
mod recordings;
mod run;
mod source;
mod stream_url;
mod streams;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use livekit_protocol as lk;
use livekit_protocol::egress_info::Request;
use livekit_protocol::{EgressStatus, StreamProtocol};
use portunus_media::MediaPlane;
use portunus_record::Recorder;
use tokio::sync::mpsc;

pub use config::EgressConfig;
pub(crate) use plan::{Plan, plan};

use crate::hall::{Hall, Halls};
use crate::happening::{Happening, Observer};
use crate::ids::IdKind;
use crate::services::{Answer, Code, ServiceError};
use crate::webhook::Webhooks;
use file_name::Values;
use plan::MAX_STREAMS;
use run::{Command, Run, started};
use source::Source;
use stream_url::StreamUrl;

/// The most egresses that are remembered after their end.
const MAX_ENDED: usize = 1_000;

/// The number of commands that wait for an egress.
const COMMANDS: usize = 16;

/// What egresses need of the server.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    pub(crate) config: EgressConfig,
    /// The program ffmpeg.
    pub(crate) ffmpeg: String,
    /// The program that composes rooms: this server's own. `None` if it is unknown.
    pub(crate) composer: Option<PathBuf>,
    pub(crate) media: MediaPlane,
    /// The recorder for the folder of egresses.
    pub(crate) recorder: Recorder,
    pub(crate) webhooks: Webhooks,
    pub(crate) halls: Arc<dyn Halls>,
}

/// The egresses of a server; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Egresses(Arc<Shared>);

#[derive(Default)]
struct Shared {
    means: OnceLock<Means>,
    list: Mutex<Vec<Entry>>,
    /// What is recorded by itself, by rooms.
    automatic: Mutex<HashMap<String, lk::RoomEgress>>,
}

/// An egress.
#[derive(Debug)]
struct Entry {
    info: lk::EgressInfo,
    commands: mpsc::Sender<Command>,
    /// The whole URLs of its streams.
    streams: Vec<StreamUrl>,
    is_room: bool,
}

impl fmt::Debug for Egresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egresses").finish_non_exhaustive()
    }
}

impl Egresses {
    /// Sets what egresses need, once.
    pub(crate) fn open(&self, means: Means) {
        let _ = self.0.means.set(means);
    }

    /// Starts an egress in its room.
    pub(crate) fn start(
        &self,
        hall: &Arc<Hall>,
        request: Request,
        plan: Plan,
    ) -> Answer<lk::EgressInfo> {
        let means = self.0.means.get().cloned();
        let means = means.ok_or_else(|| error(Code::Unavailable, "the server is starting"))?;
        let running = self.list().iter().filter(|it| is_running(&it.info)).count();
        if running >= means.config.max {
            let text = "too many egresses run (livekit.egress.max)";
            return Err(error(Code::ResourceExhausted, text));
        }
        let values = values(hall);
        if let Some(file) = &plan.file {
            let checked = means.recorder.check(None, &file.name(&values.complete()));
            let wrong = |fault: portunus_record::RecordError| fault.to_string();
            checked.map_err(|fault| error(Code::InvalidArgument, wrong(fault)))?;
        }
        if let Source::Tracks(ids) = &plan.source {
            let selection = plan.source.select(hall);
            if selection.is_encrypted {
                let text = "the track is encrypted end to end";
                return Err(error(Code::FailedPrecondition, text));
            }
            if selection.tracks.len() < ids.len() {
                return Err(ServiceError::no_track());
            }
        }
        let info = lk::EgressInfo {
            egress_id: IdKind::Egress.random(),
            room_id: hall.sid(),
            room_name: hall.name.clone(),
            source_type: lk::EgressSourceType::Sdk.into(),
            status: EgressStatus::EgressStarting.into(),
            updated_at: nanos(),
            stream_results: plan.streams.iter().map(started).collect(),
            request: Some(hidden(request, &plan)),
            ..lk::EgressInfo::default()
        };
        let (commands, commanded) = mpsc::channel(COMMANDS);
        self.add(Entry {
            info: info.clone(),
            commands,
            streams: plan.streams.clone(),
            is_room: plan.source.is_room(),
        });
        means
            .webhooks
            .send(Happening::EgressStarted(Box::new(info.clone())));
        let changes = hall.room.lock().changes();
        let run = Run {
            id: info.egress_id.clone(),
            hall: Arc::downgrade(hall),
            plan,
            values,
            egresses: self.clone(),
            means,
            commands: commanded,
        };
        tokio::spawn(run.serve(changes));
        Ok(info)
    }

    /// Ends an egress.
    pub(crate) fn stop(&self, id: &str) -> Answer<lk::EgressInfo> {
        let mut list = self.list();
        let entry = find(&mut list, id)?;
        match entry.info.status() {
            EgressStatus::EgressStarting | EgressStatus::EgressActive => {
                // It may end by itself just now.
                let _ = entry.commands.try_send(Command::Stop);
                entry.info.set_status(EgressStatus::EgressEnding);
                entry.info.updated_at = nanos();
                Ok(entry.info.clone())
            }
            EgressStatus::EgressEnding => Ok(entry.info.clone()),
            status => {
                let text = format!(
                    "egress with status {} cannot be stopped",
                    status.as_str_name()
                );
                Err(error(Code::FailedPrecondition, text))
            }
        }
    }

    /// Returns egresses, the latest first.
    pub(crate) fn find(&self, request: &lk::ListEgressRequest) -> Vec<lk::EgressInfo> {
        let list = self.list();
        let is_wanted = |info: &&lk::EgressInfo| {
            (request.room_name.is_empty() || info.room_name == request.room_name)
                && (request.egress_id.is_empty() || info.egress_id == request.egress_id)
                && (!request.active || is_running(info))
        };
        let infos = list.iter().rev().map(|entry| &entry.info);
        infos.filter(is_wanted).cloned().collect()
    }

    /// Adds URLs to the streams of an egress, and ends others.
    pub(crate) fn update_stream(&self, request: lk::UpdateStreamRequest) -> Answer<lk::EgressInfo> {
        let mut list = self.list();
        let entry = running(&mut list, &request.egress_id)?;
        if entry.streams.is_empty() {
            let text = "the egress has no stream";
            return Err(error(Code::InvalidArgument, text));
        }
        let new = request.add_output_urls.iter();
        let new: Vec<StreamUrl> = new
            .map(|url| StreamUrl::new(url, StreamProtocol::DefaultProtocol))
            .collect::<Answer<_>>()?;
        let is_known = |url: &String| entry.streams.iter().any(|known| known.url() == url);
        if !request.remove_output_urls.iter().all(is_known) {
            return Err(error(Code::NotFound, "there is no stream to this URL"));
        }
        let removed = request.remove_output_urls.iter();
        let mut commands = Vec::new();
        for url in removed {
            let index = entry.streams.iter().position(|known| known.url() == url);
            let removed = index.map(|index| entry.streams.remove(index));
            commands.extend(removed.map(Command::RemoveStream));
        }
        if entry.streams.len() + new.len() > MAX_STREAMS {
            return Err(error(Code::InvalidArgument, "there are 16 URLs at most"));
        }
        for url in new {
            entry.streams.push(url.clone());
            commands.push(Command::AddStream(url));
        }
        for command in commands {
            let busy = |_| error(Code::Unavailable, "the egress is busy");
            entry.commands.try_send(command).map_err(busy)?;
        }
        Ok(entry.info.clone())
    }

    /// Changes the layout of a room that is composed.
    pub(crate) fn update_layout(&self, request: lk::UpdateLayoutRequest) -> Answer<lk::EgressInfo> {
        let mut list = self.list();
        let entry = running(&mut list, &request.egress_id)?;
        if !entry.is_room {
            let text = "only an egress of a room has a layout";
            return Err(error(Code::InvalidArgument, text));
        }
        let busy = |_| error(Code::Unavailable, "the egress is busy");
        let command = Command::Layout(request.layout.clone());
        entry.commands.try_send(command).map_err(busy)?;
        if let Some(Request::RoomComposite(composite)) = &mut entry.info.request {
            composite.layout = request.layout;
        }
        entry.info.updated_at = nanos();
        Ok(entry.info.clone())
    }

    /// Changes the description of an egress, and tells webhooks.
    fn update(&self, id: &str, change: impl FnOnce(&mut lk::EgressInfo)) {
        let info = {
            let mut list = self.list();
            let Ok(entry) = find(&mut list, id) else {
                return;
            };
            change(&mut entry.info);
            entry.info.updated_at = nanos();
            Box::new(entry.info.clone())
        };
        let Some(means) = self.0.means.get() else {
            return;
        };
        means.webhooks.send(match info.status() {
            EgressStatus::EgressComplete
            | EgressStatus::EgressFailed
            | EgressStatus::EgressAborted
            | EgressStatus::EgressLimitReached => Happening::EgressEnded(info),
            _ => Happening::EgressUpdated(info),
        });
    }

    /// Starts an egress in a while, since the caller holds the lock of the room.
    fn begin(&self, room: &str, request: Request) {
        let (egresses, room) = (self.clone(), room.to_owned());
        tokio::spawn(async move {
            let means = egresses.0.means.get();
            let hall = means.and_then(|means| means.halls.find(&room));
            let Some(hall) = hall else { return };
            let started = plan(&request).and_then(|plan| egresses.start(&hall, request, plan));
            if let Err(error) = started {
                tracing::warn!(room, "nothing is recorded: {error}");
            }
        });
    }

    fn add(&self, entry: Entry) {
        let mut list = self.list();
        list.push(entry);
        let ended = list.iter().filter(|it| !is_running(&it.info)).count();
        if ended > MAX_ENDED
            && let Some(oldest) = list.iter().position(|it| !is_running(&it.info))
        {
            list.remove(oldest);
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn automatic(&self) -> MutexGuard<'_, HashMap<String, lk::RoomEgress>> {
        let automatic = self.0.automatic.lock();
        automatic.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Egresses {
    fn room_started(&self, room: &lk::Room, egress: Option<lk::RoomEgress>) {
        let Some(egress) = egress else { return };
        if let Some(request) = egress.room.clone() {
            let request = lk::RoomCompositeEgressRequest {
                room_name: room.name.clone(),
                ..request
            };
            self.begin(&room.name, Request::RoomComposite(request));
        }
        self.automatic().insert(room.name.clone(), egress);
    }

    fn is_interested(&self) -> bool {
        !self.automatic().is_empty()
    }

    fn happened(&self, happening: &Happening) {
        match happening {
            Happening::RoomFinished(room, _) => drop(self.automatic().remove(&room.name)),
            Happening::Joined(room, participant) => {
                let automatic = self.automatic().get(&room.name).cloned();
                if let Some(egress) = automatic.and_then(|it| it.participant) {
                    let request = of_participant(&room.name, &participant.identity, egress);
                    self.begin(&room.name, Request::Participant(request));
                }
            }
            Happening::Published(room, _, track) => {
                let automatic = self.automatic().get(&room.name).cloned();
                if let Some(egress) = automatic.and_then(|it| it.tracks) {
                    let request = of_track(&room.name, &track.sid, egress);
                    self.begin(&room.name, Request::Track(request));
                }
            }
            _ => {}
        }
    }
}

fn find<'a>(list: &'a mut [Entry], id: &str) -> Answer<&'a mut Entry> {
    let found = list.iter_mut().find(|entry| entry.info.egress_id == id);
    found.ok_or_else(|| error(Code::NotFound, "egress does not exist"))
}

/// Returns an egress that runs.
fn running<'a>(list: &'a mut [Entry], id: &str) -> Answer<&'a mut Entry> {
    let entry = find(list, id)?;
    match is_running(&entry.info) {
        true => Ok(entry),
        false => Err(error(Code::FailedPrecondition, "the egress has ended")),
    }
}

fn is_running(info: &lk::EgressInfo) -> bool {
    matches!(
        info.status(),
        EgressStatus::EgressStarting | EgressStatus::EgressActive | EgressStatus::EgressEnding
    )
}

/// Returns a request without the secrets of its URLs.
fn hidden(mut request: Request, plan: &Plan) -> Request {
    let outputs = match &mut request {
        Request::Participant(request) => &mut request.stream_outputs,
        Request::TrackComposite(request) => {
            use lk::track_composite_egress_request::Output;
            if let Some(Output::Stream(stream)) = &mut request.output {
                hide(stream, plan);
            }
            &mut request.stream_outputs
        }
        _ => return request,
    };
    for output in outputs {
        hide(output, plan);
    }
    request
}

fn hide(output: &mut lk::StreamOutput, plan: &Plan) {
    for url in &mut output.urls {
        if let Some(known) = plan.streams.iter().find(|known| known.url() == url) {
            *url = known.shown();
        }
    }
}

fn of_participant(
    room: &str,
    identity: &str,
    egress: lk::AutoParticipantEgress,
) -> lk::ParticipantEgressRequest {
    use lk::{auto_participant_egress, participant_egress_request};
    lk::ParticipantEgressRequest {
        room_name: room.to_owned(),
        identity: identity.to_owned(),
        options: egress.options.map(|options| match options {
            auto_participant_egress::Options::Preset(preset) => {
                participant_egress_request::Options::Preset(preset)
            }
            auto_participant_egress::Options::Advanced(options) => {
                participant_egress_request::Options::Advanced(options)
            }
        }),
        file_outputs: egress.file_outputs,
        segment_outputs: egress.segment_outputs,
        ..lk::ParticipantEgressRequest::default()
    }
}

fn of_track(room: &str, track: &str, egress: lk::AutoTrackEgress) -> lk::TrackEgressRequest {
    use lk::{auto_track_egress, direct_file_output, track_egress_request};
    let output = egress.output.map(|output| match output {
        auto_track_egress::Output::S3(upload) => direct_file_output::Output::S3(upload),
        auto_track_egress::Output::Gcp(upload) => direct_file_output::Output::Gcp(upload),
        auto_track_egress::Output::Azure(upload) => direct_file_output::Output::Azure(upload),
        auto_track_egress::Output::AliOss(upload) => direct_file_output::Output::AliOss(upload),
    });
    lk::TrackEgressRequest {
        room_name: room.to_owned(),
        track_id: track.to_owned(),
        output: Some(track_egress_request::Output::File(lk::DirectFileOutput {
            filepath: egress.filepath,
            disable_manifest: egress.disable_manifest,
            output,
        })),
        ..lk::TrackEgressRequest::default()
    }
}

fn values(hall: &Hall) -> Values {
    Values {
        room_name: hall.name.clone(),
        room_id: hall.sid(),
        time: chrono::Utc::now().format("%Y-%m-%dT%H%M%S").to_string(),
        ..Values::default()
    }
}

fn error(code: Code, text: impl Into<std::borrow::Cow<'static, str>>) -> ServiceError {
    ServiceError::new(code, text)
}

/// Returns the time in nanoseconds since 1970.
fn nanos() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or_default()
}
