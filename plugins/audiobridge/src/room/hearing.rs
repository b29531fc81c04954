//! A participant in the mix: what it sends and hears, and what the mixer tells of it and of announcements.

use std::net::SocketAddr;
use std::sync::Weak;

use portunus_audio::AudioEvent;
use portunus_core::HandleId;
use portunus_dsp::ParticipantId;
use portunus_resources::{Id, RoomContent};
use tokio::sync::mpsc;

use super::recording::{BegunRecording, record_mix, recorded_notice};
use super::{Audience, Link, Room, RoomState};
use crate::plugin::Shared;

impl RoomState {
    /// What somebody's link is from now on; media flows over it if it is `up`. Others are told once it does.
    pub(crate) fn link(&mut self, id: &Id, link: Link, up: bool) {
        let Some(person) = self.roster.get_mut(id) else {
            return;
        };
        let changed = match (&person.link, &link) {
            (Link::Peer(before), Link::Peer(after)) => before != after,
            _ => true,
        };
        person.link = link;
        if up && (changed || !person.setup) {
            person.setup = true;
            self.connect(id);
        }
    }

    /// Takes the link of somebody who goes on to another room; says whether media flows over it.
    pub(crate) fn take_link(&mut self, id: &Id, handle: HandleId) -> (Link, bool) {
        let person = self.roster.get_mut(id);
        let Some(person) = person.filter(|person| person.is(handle)) else {
            return (Link::None, false);
        };
        self.sound.leave(person.number);
        let setup = std::mem::replace(&mut person.setup, false);
        (std::mem::replace(&mut person.link, Link::None), setup)
    }

    /// Whether somebody is there by plain RTP.
    pub(crate) fn is_by_rtp(&self, id: &Id) -> bool {
        let person = self.roster.get(id);
        person.is_some_and(|person| matches!(person.link, Link::Rtp(_)))
    }

    /// How many participants have media without a PeerConnection: by plain RTP, or by a telephone.
    pub(crate) fn without_peer(&self) -> usize {
        let links = self.roster.iter().map(|person| &person.link);
        links
            .filter(|link| matches!(link, Link::Rtp(_) | Link::Phone(_)))
            .count()
    }

    /// Whether somebody by plain RTP is still to say where to send to.
    pub(crate) fn awaits_remote(&self, id: &Id) -> bool {
        let person = self.roster.get(id);
        person.is_some_and(|person| matches!(&person.link, Link::Rtp(rtp) if rtp.offered))
    }

    /// Somebody by plain RTP is where it is sent to from now on: others are told.
    pub(crate) fn rtp_came_up(&mut self, id: &Id, remote: SocketAddr) {
        let Some(person) = self.roster.get_mut(id) else {
            return;
        };
        let Link::Rtp(rtp) = &mut person.link else {
            return;
        };
        rtp.offered = false;
        rtp.options.remote = Some(remote);
        rtp.leg.connect(&rtp.options);
        if !person.setup {
            self.up(id);
        }
    }

    /// Media flows to and from somebody: others are told, if that is news.
    pub(crate) fn came_up(&mut self, id: &Id, handle: HandleId) {
        let person = self.roster.get_mut(id);
        let Some(person) = person.filter(|person| person.is(handle) && !person.setup) else {
            return;
        };
        if !matches!(person.link, Link::None) {
            self.up(id);
        }
    }

    /// Media flows to and from somebody, which is news to others.
    fn up(&mut self, id: &Id) {
        if let Some(person) = self.roster.get_mut(id) {
            person.setup = true;
            self.connect(id);
            self.tell_shown(id);
        }
    }

    /// Puts somebody whose media is up into the mix, in the place of what it was there before.
    pub(super) fn connect(&mut self, id: &Id) {
        let Some(person) = self.roster.get(id) else {
            return;
        };
        let (source, out) = person.ends();
        let options = person.mixed(&self.options);
        self.sound.join(person.number, options, source, out);
        self.sound.connect(person.number, true);
        self.record_person(id);
    }

    /// Makes the mix, and the recording, of somebody what its settings say.
    pub(super) fn remix(&mut self, id: &Id) {
        if let Some(person) = self.roster.get(id) {
            self.sound.set(person.number, person.mixed(&self.options));
        }
        self.gate_recording(id);
    }

    /// Begins anew what somebody sends: nothing of what came before is used any more.
    pub(crate) fn reset_decoder(&mut self, id: &Id) {
        if self.roster.get(id).is_some_and(|person| person.setup) {
            self.connect(id);
        }
    }

    fn talks(&mut self, number: ParticipantId, talking: bool) {
        let Some(person) = self.roster.numbered(number) else {
            return;
        };
        if std::mem::replace(&mut person.talking, talking) == talking {
            return;
        }
        let what = match talking {
            true => "talking",
            false => "stopped-talking",
        };
        let (id, who) = (person.id.clone(), person.who.clone());
        let event = self.message(what).with("id", id.to_json());
        self.notify(who.handle(), || event.clone().into());
        self.tell(Audience::Listening, event);
    }

    /// Nothing is mixed any more, by a fault of ours.
    fn lose_sound(&mut self) {
        if self.destroyed {
            return;
        }
        tracing::error!(room = %self.id, "a room has ended: its sound is lost");
        let reason = "the server has lost the sound of this room";
        self.destroy(Some(reason));
        self.notify(None, || {
            self.notice("destroyed").with("reason", reason).into()
        });
    }

    /// Takes what the mixer tells; gives what is to be recorded now.
    fn heard(&mut self, event: AudioEvent) -> Option<BegunRecording> {
        match event {
            AudioEvent::Talking {
                participant,
                talking,
            } => self.talks(participant, talking),
            AudioEvent::AnnouncementStarted(number) => self.announcement_started(number),
            AudioEvent::AnnouncementEnded { announcement, why } => {
                self.announcement_ended(announcement, &why);
            }
            AudioEvent::RecordingEnded {
                recording,
                file,
                error,
            } => return self.mix_recorded(recording, &file, error),
        }
        None
    }
}

/// Takes what the mixer tells of a room, until there is no more. A room whose sound has ended by a fault of ours ends with it.
pub(crate) async fn hear(
    shared: Weak<Shared>,
    (id, room): (Id, Weak<Room>),
    mut events: mpsc::Receiver<AudioEvent>,
) {
    while let Some(event) = events.recv().await {
        if let Some(room) = room.upgrade() {
            let begun = room.lock().heard(event);
            if let Some(begun) = begun {
                // The log has what goes wrong.
                tokio::spawn(record_mix(room, begun));
            }
        } else if let AudioEvent::RecordingEnded { file, .. } = event
            && let Some(shared) = shared.upgrade()
        {
            // Its file is complete only now.
            shared.events.notify(|| recorded_notice(&id, &file));
        }
    }
    if let Some((shared, room)) = shared.upgrade().zip(room.upgrade()) {
        // It may be destroyed just now.
        let _ = shared.rooms.remove(&room);
        room.lock().lose_sound();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use std::sync::Arc;

    use std::path::Path;
    use std::time::{Duration, Instant};

    use portunus_audio::{AudioConfig, AudioError, AudioThreads, RecordingId};
    use portunus_core::events::{EventBus, EventFilter};
    use portunus_core::media::MediaPlane;
    use portunus_core::record::{Recorder, RecorderConfig};
    use portunus_core::testing::{TestClient, TestServer, everywhere};
    use portunus_core::{ConfiguredPlugin, CoreConfig, Plugin, PluginContext, Services};
    use portunus_telephony::Telephony;
    use serde_json::{Value, json};

    use super::*;
    use crate::config::AudioBridgeConfig;
    use crate::plugin::{AudioBridge, PACKAGE};

    /// A server with room 1, in which somebody by plain RTP is number 1.
    async fn joined(members: Value) -> ((TestServer, Arc<AudioBridge>), TestClient, Arc<Room>) {
        let config = AudioBridgeConfig {
            outgoing: everywhere(),
            ..AudioBridgeConfig::default()
        };
        let mut made = None;
        let server = TestServer::with(CoreConfig::default(), |media| {
            let recorder = portunus_core::record::Recorder::default();
            let audio = AudioThreads::new(AudioConfig::default(), media.clone(), recorder.clone());
            let plugin = AudioBridge::new(config, media.clone(), recorder, audio).unwrap();
            let plugin = Arc::new(plugin);
            made = Some(plugin.clone());
            vec![plugin as Arc<dyn Plugin>]
        });
        let mut client = server.attach(PACKAGE).await;
        let create = json!({
            "request": "create", "room": 1, "allow_rtp_participants": true, "audiolevel_event": true,
        });
        client.request(create).await;
        let mut join = json!({ "request": "join", "room": 1, "id": 1 });
        join.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        client.message(join, None).await;
        client.event().await;
        let made = made.unwrap();
        let room = made.shared.rooms.get(&Id::Number(1)).unwrap();
        ((server, made), client, room)
    }

    #[tokio::test]
    async fn a_room_that_loses_its_sound_ends_and_all_are_told_why() {
        let ((_server, plugin), mut client, room) = joined(json!({})).await;
        // As the mixer ends what it tells if that has led to a fault.
        let shared = Arc::downgrade(&plugin.shared);
        let (_, events) = mpsc::channel(1);
        hear(shared, (room.id.clone(), Arc::downgrade(&room)), events).await;
        let told = client.event().await;
        assert_eq!(told["audiobridge"], "destroyed");
        assert!(told["reason"].is_string(), "{told}");
        let exists = client.request(json!({ "request": "exists", "room": 1 }));
        assert_eq!(exists.await["exists"], false);
    }

    /// A plugin that records below `folder`, and what it tells.
    async fn recording(folder: &Path) -> (AudioBridge, EventBus) {
        let recorder = Recorder::new(RecorderConfig {
            dir: Some(folder.to_owned()),
            keep_free_mb: 0,
            ..RecorderConfig::default()
        });
        let (media, events) = (MediaPlane::detached().0, EventBus::default());
        let services = Services::default()
            .with(AudioThreads::new(
                AudioConfig::default(),
                media.clone(),
                recorder.clone(),
            ))
            .with(Telephony::default());
        let context = PluginContext {
            media,
            recorder,
            outgoing: everywhere(),
            events: events.clone(),
            services,
        };
        let plugin = AudioBridge::from_config(AudioBridgeConfig::default(), context);
        (plugin.await.unwrap(), events)
    }

    fn ended(file: &str, error: Option<AudioError>) -> AudioEvent {
        AudioEvent::RecordingEnded {
            recording: RecordingId(1),
            file: file.to_owned(),
            error: error.map(Arc::new),
        }
    }

    /// As it is destroyed while it is recorded: the file is complete only after that.
    #[tokio::test]
    async fn a_recording_that_ends_with_its_room_is_told_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let (plugin, bus) = recording(folder.path()).await;
        let filter = EventFilter {
            kinds: "plugins".parse().unwrap(),
            plugins: Vec::new(),
        };
        let watched = bus.subscribe("test", filter, 16);
        let (tell, events) = mpsc::channel(1);
        tell.send(ended("mix.wav", None)).await.unwrap();
        drop(tell);
        let gone = (Id::Number(7), Weak::new());
        hear(Arc::downgrade(&plugin.shared), gone, events).await;
        let told = watched.recv().await.unwrap();
        let expected = json!({ "event": "recordingdone", "room": 7, "record_file": "mix.wav" });
        assert_eq!(watched.to_json(&told)["event"]["data"], expected);
    }

    #[tokio::test]
    async fn a_recording_that_is_too_long_for_a_file_goes_on_in_another() {
        let folder = tempfile::tempdir().unwrap();
        let (plugin, _bus) = recording(folder.path()).await;
        let create =
            json!({ "request": "create", "room": 1, "record": true, "record_file": "mix.wav" });
        assert!(plugin.admin(create).is_some());
        let room = plugin.shared.rooms.get(&Id::Number(1)).unwrap();
        let files = async |is: &dyn Fn(&[String]) -> bool| {
            let began = Instant::now();
            loop {
                let names = std::fs::read_dir(folder.path()).unwrap();
                let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
                let names: Vec<_> = names.collect();
                if is(&names) {
                    return;
                }
                assert!(began.elapsed() < Duration::from_secs(20), "{names:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        files(&|names| names == ["mix.wav"]).await;
        // As the mixer has ended it.
        room.lock().sound().stop_recording();
        let (tell, events) = mpsc::channel(1);
        let of_room = (room.id.clone(), Arc::downgrade(&room));
        tokio::spawn(hear(Arc::downgrade(&plugin.shared), of_room, events));
        let full = ended("mix.wav", Some(AudioError::Longest));
        tell.send(full).await.unwrap();
        let goes_on = |name: &String| name.starts_with("mix-") && name.ends_with(".wav");
        files(&|names| names.len() == 2 && names.iter().any(goes_on)).await;
        assert!(room.lock().options.record);
    }

    #[tokio::test]
    async fn nothing_is_sent_until_it_is_known_where_to() {
        let has_output = |room: &Room| {
            let state = room.lock();
            let (source, out) = state.roster.get(&Id::Number(1)).unwrap().ends();
            assert!(source.is_some());
            out.is_some()
        };
        let (_server, _client, room) = joined(json!({ "rtp": {} })).await;
        assert!(!has_output(&room));
        let offered = json!({ "rtp": {}, "generate_offer": true });
        let (_server, mut client, room) = joined(offered).await;
        assert!(!has_output(&room));
        let rtp = json!({ "ip": "127.0.0.1", "port": 5_004 });
        let answer = json!({ "request": "configure", "rtp": rtp });
        client.message(answer, None).await;
        client.event().await;
        assert!(has_output(&room));
    }
}
