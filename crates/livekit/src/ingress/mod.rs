//! Ingress: media of programs and servers, which comes into rooms as a participant.

mod config;
mod program;
mod whip;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use livekit_protocol as lk;
use livekit_protocol::ingress_state::Status;
use livekit_protocol::{IngressInfo, IngressInput, IngressState};
use portunus_media::MediaPlane;
use tokio::sync::watch;

pub use config::IngressConfig;
pub(crate) use whip::{Begun, NoSession, Whip, begin, tracks};

use crate::hall::{Hall, Halls};
use crate::happening::Happening;
use crate::ids::IdKind;
use crate::limits;
use crate::saved::{Change, Content, Store};
use crate::services::{Answer, Code, ServiceError};
use crate::webhook::Webhooks;

/// The longest URL that media comes from, in bytes.
const MAX_URL: usize = 2_048;

/// The protocols of URLs that media comes from.
const SCHEMES: [&str; 7] = ["http", "https", "rtmp", "rtmps", "rtsp", "rtsps", "srt"];

/// What ingresses need of the server.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    pub(crate) config: IngressConfig,
    /// The program ffmpeg.
    pub(crate) ffmpeg: String,
    /// The address of this server that clients reach.
    pub(crate) address: IpAddr,
    /// The port of the door, and whether it is served by TLS.
    pub(crate) port: u16,
    pub(crate) tls: bool,
    pub(crate) media: MediaPlane,
    pub(crate) webhooks: Webhooks,
    pub(crate) halls: Arc<dyn Halls>,
    /// Where ingresses are kept.
    pub(crate) store: Store,
}

/// The ingresses of a server; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Ingresses(Arc<Shared>);

#[derive(Default)]
struct Shared {
    means: OnceLock<Means>,
    list: Mutex<Vec<Entry>>,
    whip: Whip,
}

/// An ingress.
#[derive(Debug)]
struct Entry {
    info: IngressInfo,
    /// Ends what runs for it when it is dropped.
    running: Option<watch::Sender<()>>,
    /// The port for RTMP.
    port: Option<u16>,
}

impl fmt::Debug for Ingresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ingresses").finish_non_exhaustive()
    }
}

impl Ingresses {
    /// Sets what ingresses need, once.
    pub(crate) fn open(&self, means: Means) {
        let _ = self.0.means.set(means);
    }

    fn means(&self) -> Answer<&Means> {
        let means = self.0.means.get();
        means.ok_or_else(|| error(Code::Unavailable, "the server is starting"))
    }

    /// Makes an ingress. Media from a URL comes at once.
    pub(crate) async fn create(&self, request: lk::CreateIngressRequest) -> Answer<IngressInfo> {
        let (info, saving) = self.add(request)?;
        saving.done().await?;
        Ok(info)
    }

    fn add(&self, request: lk::CreateIngressRequest) -> Answer<(IngressInfo, Change)> {
        let means = self.means()?;
        let input = request.input_type();
        check(&request)?;
        let mut list = self.list();
        if list.len() >= means.config.max {
            let text = "there are too many ingresses (livekit.ingress.max)";
            return Err(error(Code::ResourceExhausted, text));
        }
        let stream_key = match input {
            IngressInput::UrlInput => String::new(),
            IngressInput::RtmpInput | IngressInput::WhipInput => key(),
        };
        let port = match input {
            IngressInput::RtmpInput => Some(free_port(means, &list)?),
            IngressInput::WhipInput | IngressInput::UrlInput => None,
        };
        let info = IngressInfo {
            ingress_id: IdKind::Ingress.random(),
            url: url(means, input, &request.url, port),
            stream_key,
            name: request.name,
            input_type: request.input_type,
            enable_transcoding: Some(input != IngressInput::WhipInput),
            audio: request.audio,
            video: request.video,
            room_name: request.room_name,
            participant_identity: request.participant_identity,
            participant_name: request.participant_name,
            participant_metadata: request.participant_metadata,
            reusable: input != IngressInput::UrlInput,
            state: Some(IngressState {
                updated_at: nanos(),
                ..IngressState::default()
            }),
            enabled: Some(request.enabled.unwrap_or(true)),
            ..IngressInfo::default()
        };
        let mut entry = Entry {
            info: info.clone(),
            running: None,
            port,
        };
        self.run(&mut entry);
        list.push(entry);
        let saving = means.store.keep(Content::Ingress(info.clone()));
        Ok((info, saving))
    }

    /// Adds an ingress of a former run. Media from a URL comes again, unless it had ended.
    pub(crate) fn restore(&self, mut info: IngressInfo) {
        let Ok(means) = self.means() else {
            return;
        };
        let mut list = self.list();
        let input = info.input_type();
        let mut port = None;
        if input == IngressInput::RtmpInput {
            // The one that its clients know, if it is still there.
            let known = info.url.rsplit_once(':').and_then(|(_, end)| {
                let (port, _) = end.split_once('/')?;
                port.parse().ok()
            });
            let known = known.filter(|port| means.config.has_port(*port));
            match known.map_or_else(|| free_port(means, &list), Ok) {
                Ok(found) => port = Some(found),
                Err(error) => {
                    let id = &info.ingress_id;
                    tracing::warn!(ingress = id, "a saved ingress gets no media: {error}");
                    let state = info.state.get_or_insert_default();
                    state.set_status(Status::EndpointError);
                    state.error = error.to_string();
                }
            }
        }
        info.url = url(means, input, &info.url, port);
        let mut entry = Entry {
            info,
            running: None,
            port,
        };
        let state = entry.info.state.as_ref();
        if state.is_none_or(|state| state.status() != Status::EndpointComplete) {
            self.run(&mut entry);
        }
        list.push(entry);
    }

    /// Changes an ingress that gets no media.
    pub(crate) async fn update(&self, request: lk::UpdateIngressRequest) -> Answer<IngressInfo> {
        let (info, saving) = self.change(request)?;
        saving.done().await?;
        Ok(info)
    }

    fn change(&self, request: lk::UpdateIngressRequest) -> Answer<(IngressInfo, Change)> {
        let means = self.means()?;
        let mut list = self.list();
        let entry = find(&mut list, &request.ingress_id)?;
        let info = &mut entry.info;
        if info.input_type() == IngressInput::UrlInput {
            let text = "an ingress from a URL cannot be changed";
            return Err(error(Code::InvalidArgument, text));
        }
        let set = |text: &mut String, new: String| {
            if !new.is_empty() {
                *text = new;
            }
        };
        set(&mut info.name, request.name);
        set(&mut info.room_name, request.room_name);
        set(&mut info.participant_identity, request.participant_identity);
        set(&mut info.participant_name, request.participant_name);
        set(&mut info.participant_metadata, request.participant_metadata);
        info.audio = request.audio.or(info.audio.take());
        info.video = request.video.or(info.video.take());
        info.enabled = request.enabled.or(info.enabled);
        check_names(info)?;
        // Media by the former description ends.
        self.0.whip.end_of(&entry.info.ingress_id);
        entry.running = None;
        self.run(entry);
        let saving = means.store.keep(Content::Ingress(saved(&entry.info)));
        Ok((entry.info.clone(), saving))
    }

    /// Returns ingresses.
    pub(crate) fn find(&self, request: &lk::ListIngressRequest) -> Vec<IngressInfo> {
        let list = self.list();
        let is_wanted = |info: &&IngressInfo| {
            (request.room_name.is_empty() || info.room_name == request.room_name)
                && (request.ingress_id.is_empty() || info.ingress_id == request.ingress_id)
        };
        let infos = list.iter().map(|entry| &entry.info);
        infos.filter(is_wanted).cloned().collect()
    }

    /// Removes an ingress with its participant.
    pub(crate) async fn delete(&self, id: &str) -> Answer<IngressInfo> {
        let means = self.means()?;
        let (mut info, saving) = {
            let mut list = self.list();
            find(&mut list, id)?;
            self.0.whip.end_of(id);
            let index = list.iter().position(|entry| entry.info.ingress_id == id);
            let entry = index.map(|index| list.remove(index));
            let info = entry.map(|entry| entry.info).unwrap_or_default();
            (info, means.store.remove(id))
        };
        saving.done().await?;
        let state = info.state.get_or_insert_default();
        state.set_status(Status::EndpointInactive);
        Ok(info)
    }

    /// Returns the ingress with this stream key that gets media by WHIP.
    pub(crate) fn by_key(&self, key: &str) -> Option<IngressInfo> {
        let list = self.list();
        let mut infos = list.iter().map(|entry| &entry.info);
        let info = infos.find(|info| {
            info.input_type() == IngressInput::WhipInput && is_same(&info.stream_key, key)
        });
        info.cloned()
    }

    /// Returns the sessions of WHIP.
    pub(crate) fn whip(&self) -> &Whip {
        &self.0.whip
    }

    /// Starts the program of an ingress that needs one.
    fn run(&self, entry: &mut Entry) {
        let is_on = entry.info.enabled.unwrap_or(true);
        let input = entry.info.input_type();
        if !is_on || input == IngressInput::WhipInput {
            return;
        }
        if input == IngressInput::RtmpInput && entry.port.is_none() {
            return;
        }
        let Some(means) = self.0.means.get() else {
            return;
        };
        let (running, ended) = watch::channel(());
        entry.running = Some(running);
        let feeder = program::Feeder {
            ingresses: self.clone(),
            means: means.clone(),
            info: entry.info.clone(),
            port: entry.port,
        };
        tokio::spawn(feeder.run(ended));
    }

    /// Changes the state of an ingress, and tells webhooks when it begins and ends.
    fn update_state(&self, id: &str, change: impl FnOnce(&mut IngressState)) {
        let (before, info) = {
            let mut list = self.list();
            let Ok(entry) = find(&mut list, id) else {
                return;
            };
            let state = entry.info.state.get_or_insert_default();
            let before = state.status();
            change(state);
            state.updated_at = nanos();
            (before, Box::new(entry.info.clone()))
        };
        let Some(means) = self.0.means.get() else {
            return;
        };
        let is_on = |status| {
            matches!(
                status,
                Status::EndpointBuffering | Status::EndpointPublishing
            )
        };
        let after = info.state.as_ref().map(|state| state.status());
        match (is_on(before), after.is_some_and(is_on)) {
            (false, true) => means.webhooks.send(Happening::IngressStarted(info)),
            (true, false) => means.webhooks.send(Happening::IngressEnded(info)),
            _ => {}
        }
    }

    /// Notes that media comes, and returns the id of the session.
    pub(crate) fn begins(&self, id: &str) -> String {
        let resource = IdKind::IngressSession.random();
        self.update_state(id, |state| {
            *state = IngressState {
                status: Status::EndpointBuffering.into(),
                resource_id: resource.clone(),
                started_at: nanos(),
                ..IngressState::default()
            };
        });
        resource
    }

    /// Notes that media of a session is in the room, as these tracks.
    fn publishes(&self, id: &str, resource: &str, hall: &Hall, tracks: Vec<lk::TrackInfo>) {
        self.update_state(id, |state| {
            if state.resource_id != resource {
                return;
            }
            state.set_status(Status::EndpointPublishing);
            state.room_id = hall.sid();
            let of = |kind| tracks.iter().find(|track| track.r#type() == kind);
            state.audio = of(lk::TrackType::Audio).map(|track| lk::InputAudioState {
                mime_type: track.mime_type.clone(),
                ..lk::InputAudioState::default()
            });
            state.video = of(lk::TrackType::Video).map(|track| lk::InputVideoState {
                mime_type: track.mime_type.clone(),
                width: track.width,
                height: track.height,
                ..lk::InputVideoState::default()
            });
            state.tracks = tracks;
        });
    }

    /// Notes that no media of a session comes any more. Another session may have begun.
    pub(crate) fn ends(&self, id: &str, resource: &str, status: Status, error: String) {
        self.update_state(id, |state| {
            if state.resource_id != resource {
                return;
            }
            state.set_status(status);
            state.error = error;
            state.ended_at = nanos();
            state.tracks.clear();
        });
    }

    /// Keeps that a URL has ended, so that it is not taken again.
    fn keep_complete(&self, id: &str) {
        let mut list = self.list();
        if let (Ok(entry), Ok(means)) = (find(&mut list, id), self.means()) {
            let mut info = saved(&entry.info);
            let state = info.state.get_or_insert_default();
            state.set_status(Status::EndpointComplete);
            // An error is in the log.
            tokio::spawn(means.store.keep(Content::Ingress(info)).done());
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<'a>(list: &'a mut [Entry], id: &str) -> Answer<&'a mut Entry> {
    let found = list.iter_mut().find(|entry| entry.info.ingress_id == id);
    found.ok_or_else(|| error(Code::NotFound, "ingress does not exist"))
}

/// Returns what is kept of an ingress: not the state of its media.
fn saved(info: &IngressInfo) -> IngressInfo {
    IngressInfo {
        state: Some(IngressState::default()),
        ..info.clone()
    }
}

fn check(request: &lk::CreateIngressRequest) -> Answer<()> {
    let scheme = request.url.split_once("://").map(|(scheme, _)| scheme);
    let is_url = request.input_type() == IngressInput::UrlInput;
    let is_known = scheme.is_some_and(|scheme| SCHEMES.contains(&scheme));
    let is_plain = request.url.bytes().all(|byte| byte.is_ascii_graphic());
    if is_url && (!is_known || !is_plain || request.url.len() > MAX_URL) {
        let text = "expected a URL of http, https, rtmp, rtmps, rtsp, rtsps or srt";
        return Err(error(Code::InvalidArgument, text));
    }
    check_names(&IngressInfo {
        room_name: request.room_name.clone(),
        participant_identity: request.participant_identity.clone(),
        participant_name: request.participant_name.clone(),
        participant_metadata: request.participant_metadata.clone(),
        ..IngressInfo::default()
    })
}

fn check_names(info: &IngressInfo) -> Answer<()> {
    let wrong = |text: &'static str| Err(error(Code::InvalidArgument, text));
    if info.room_name.is_empty() {
        return wrong("room_name is required");
    }
    if info.participant_identity.is_empty() {
        return wrong("participant_identity is required");
    }
    let is_long = info.room_name.len() > limits::ROOM_NAME
        || info.participant_identity.len() > limits::IDENTITY
        || info.participant_name.len() > limits::PARTICIPANT_NAME
        || info.participant_metadata.len() > limits::METADATA;
    match is_long {
        true => wrong("a name or the metadata exceeds the limit"),
        false => Ok(()),
    }
}

/// Returns a port for RTMP that no other ingress has.
fn free_port(means: &Means, list: &[Entry]) -> Answer<u16> {
    let IngressConfig {
        rtmp_port: first,
        rtmp_ports: count,
        ..
    } = means.config;
    if first == 0 {
        let text = "RTMP has no port here (livekit.ingress.rtmp_port)";
        return Err(ServiceError::unimplemented(text));
    }
    let mut ports = (0..count).filter_map(|nth| first.checked_add(nth));
    let is_taken = |port: u16| list.iter().any(|entry| entry.port == Some(port));
    let free = ports.find(|port| !is_taken(*port));
    let text = "all ports for RTMP are taken (livekit.ingress.rtmp_ports)";
    free.ok_or_else(|| error(Code::ResourceExhausted, text))
}

/// Returns the URL of an ingress: where media has to be sent to, or where it comes from.
fn url(means: &Means, input: IngressInput, source: &str, port: Option<u16>) -> String {
    let host = match means.address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let config = &means.config;
    match input {
        IngressInput::UrlInput => source.to_owned(),
        IngressInput::WhipInput if !config.whip_url.is_empty() => config.whip_url.clone(),
        IngressInput::WhipInput => {
            let scheme = if means.tls { "https" } else { "http" };
            format!("{scheme}://{host}:{}/w", means.port)
        }
        IngressInput::RtmpInput => {
            let host = match config.rtmp_host.is_empty() {
                true => host,
                false => config.rtmp_host.clone(),
            };
            format!("rtmp://{host}:{}/live", port.unwrap_or_default())
        }
    }
}

/// Returns a new stream key: 128 bits.
fn key() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// Compares keys in a time that does not depend on where they differ.
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && openssl::memcmp::eq(one.as_bytes(), other.as_bytes())
}

fn error(code: Code, text: &'static str) -> ServiceError {
    ServiceError::new(code, text)
}

/// Returns the time in nanoseconds since 1970.
fn nanos() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or_default()
}
