//! The events of the mixer.

use std::sync::Weak;

use portunus_audio::AudioEvent;
use portunus_dsp::ParticipantId;
use portunus_resources::{Id, RoomContent};
use tokio::sync::mpsc;

use super::mix_recorder::PendingRecording;
use super::recording::{record_mix, recorded_notice};
use super::{Audience, Room, RoomState};
use crate::shared::Shared;

impl RoomState {
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
        self.send(Audience::Listening, event);
    }

    /// Ends the room, because the mixer has lost it by a fault of ours.
    fn lose_sound(&mut self) {
        if self.profile.has_ended() {
            return;
        }
        tracing::error!(room = %self.id(), "a room has ended: its sound is lost");
        let reason = "the server has lost the sound of this room";
        self.destroy(Some(reason));
        self.notify(None, || {
            self.notice("destroyed").with("reason", reason).into()
        });
    }

    /// Handles an event of the mixer. Returns a recording to start, if any.
    fn handle(&mut self, event: AudioEvent) -> Option<PendingRecording> {
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
            } => return self.mix_recording_ended(recording, &file, error),
        }
        None
    }
}

/// Handles the events of the mixer until there are no more. If they end by a fault of ours, the
/// room ends.
pub(crate) async fn handle_sound_events(
    shared: Weak<Shared>,
    id: Id,
    room: Weak<Room>,
    mut events: mpsc::Receiver<AudioEvent>,
) {
    while let Some(event) = events.recv().await {
        if let Some(room) = room.upgrade() {
            let pending = room.lock().handle(event);
            if let Some(pending) = pending {
                // A failure is logged.
                tokio::spawn(record_mix(room, pending));
            }
        } else if let AudioEvent::RecordingEnded { file, .. } = event
            && let Some(shared) = shared.upgrade()
        {
            // The file is complete only after the room's end.
            shared.events.notify(|| recorded_notice(&id, &file));
        }
    }
    if let Some((shared, room)) = shared.upgrade().zip(room.upgrade()) {
        // Another request may destroy it at the same time.
        let _ = shared.rooms.remove(&room);
        room.lock().lose_sound();
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
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
    use crate::PACKAGE;
    use crate::config::AudioBridgeConfig;
    use crate::plugin::AudioBridge;

    /// A server with room 1, in which participant 1 uses plain RTP.
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
        // The mixer ends its events like this after a fault.
        let shared = Arc::downgrade(&plugin.shared);
        let (_, events) = mpsc::channel(1);
        handle_sound_events(shared, room.id.clone(), Arc::downgrade(&room), events).await;
        let told = client.event().await;
        assert_eq!(told["audiobridge"], "destroyed");
        assert!(told["reason"].is_string(), "{told}");
        let exists = client.request(json!({ "request": "exists", "room": 1 }));
        assert_eq!(exists.await["exists"], false);
    }

    /// A plugin that records below `folder`, and its events.
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

    /// The room is destroyed during the recording, and the file is complete only later.
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
        let shared = Arc::downgrade(&plugin.shared);
        handle_sound_events(shared, Id::Number(7), Weak::new(), events).await;
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
        // The mixer ends it like this.
        room.lock().mix.room().stop_recording();
        let (tell, events) = mpsc::channel(1);
        let (shared, of) = (Arc::downgrade(&plugin.shared), Arc::downgrade(&room));
        tokio::spawn(handle_sound_events(shared, room.id.clone(), of, events));
        let full = ended("mix.wav", Some(AudioError::Longest));
        tell.send(full).await.unwrap();
        let goes_on = |name: &String| name.starts_with("mix-") && name.ends_with(".wav");
        files(&|names| names.len() == 2 && names.iter().any(goes_on)).await;
        assert!(room.lock().profile.options().record);
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
