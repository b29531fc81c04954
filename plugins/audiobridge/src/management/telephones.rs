//! The requests that call telephones into a room. They are additions to the Janus API.

use std::sync::Arc;

use portunus_core::Fields;
use portunus_resources::{Asker, RoomContent, read_with_secret};
use portunus_telephony::{DialId, Dialled};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::refusal::Refusal;
use crate::room::{MAX_DIALLED, PhoneEntrance, end_event, notify_call};
use crate::shared::Shared;

/// The members of `dial_out`.
#[derive(Deserialize)]
struct DialOut {
    to: String,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    trunk: Option<String>,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    display: Option<String>,
}

/// The members of `stop_dial_out`.
#[derive(Deserialize)]
struct StopDialOut {
    call: u64,
}

/// The limit of waiting news of a call. A call has three.
const NEWS: usize = 8;

impl Shared {
    /// Calls a telephone into a room. The reply confirms the start of the call; events report its
    /// progress.
    pub(super) fn dial_out(&self, fields: Fields<'_>, asker: &Asker) -> Result<Value, Refusal> {
        let DialOut { to, trunk, display } = read_with_secret(fields)?;
        self.rooms.ids().required(fields, "room")?;
        let telephone = self.telephony.telephone().ok_or(Refusal::NoTelephone)?;
        let room = self.managed_room(fields)?;
        if room.lock().phones.len() >= MAX_DIALLED {
            return Err(Refusal::Unknown(format!(
                "A room calls {MAX_DIALLED} telephones at a time at most"
            )));
        }
        let (tell, mut news) = mpsc::channel(NEWS);
        let call = telephone.dial(Dialled {
            to: to.clone(),
            trunk,
            display,
            room: Arc::new(PhoneEntrance::of(&room, self)),
            tell,
        });
        let call = call.map_err(Refusal::Dial)?;
        let mut state = room.lock();
        if let Err(ended) = state.check_there() {
            // The caller of this function does not know the call yet.
            telephone.end(call);
            return Err(ended.into());
        }
        state.phones.add(call, to.clone());
        let reply = state.message("success").with("call", call.0).with("to", to);
        drop(state);
        let client = asker.handle.clone();
        let (id, room) = (room.id.clone(), Arc::downgrade(&room));
        tokio::spawn(async move {
            while let Some(news) = news.recv().await {
                if let Some(room) = room.upgrade() {
                    notify_call(&room, call, &news, client.as_ref());
                } else if let Some(client) = &client
                    && let Some(event) = end_event(&id, call, &news)
                {
                    client.push(None, event, None);
                }
            }
        });
        Ok(reply.into())
    }

    /// Ends a call of `dial_out`, ringing or answered.
    pub(super) fn stop_dial_out(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room, StopDialOut { call }| {
            match room.phones.end(DialId(call)) {
                true => Ok(room.message("success").with("call", call).into()),
                false => Err(Refusal::NoSuchCall(call)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use std::sync::{Mutex, OnceLock, Weak};

    use portunus_audio::{AudioConfig, AudioThreads};
    use portunus_core::events::EventBus;
    use portunus_core::media::MediaPlane;
    use portunus_core::record::Recorder;
    use portunus_core::testing::TestServer;
    use portunus_core::{ConfiguredPlugin, CoreConfig, Networks, Plugin, PluginContext, Services};
    use portunus_telephony::{DialError, DialNews, Telephone, Telephony};
    use serde_json::json;

    use super::*;
    use crate::PACKAGE;
    use crate::config::AudioBridgeConfig;
    use crate::plugin::AudioBridge;

    /// A telephone.
    #[derive(Default)]
    struct Fake {
        /// The plugin whose room 1 ends during a dial.
        slow: OnceLock<Weak<Shared>>,
        tell: Mutex<Option<mpsc::Sender<DialNews>>>,
        ended: Mutex<Vec<DialId>>,
    }

    fn destroy(shared: &Shared) {
        let destroy = json!({ "room": 1 });
        let fields = Fields(destroy.as_object().unwrap());
        let destroyed = shared.destroy(fields, &Asker::administrator());
        assert!(destroyed.is_ok());
    }

    impl Telephone for Fake {
        fn dial(&self, call: Dialled) -> Result<DialId, DialError> {
            if let Some(shared) = self.slow.get() {
                destroy(&shared.upgrade().unwrap());
            }
            *self.tell.lock().unwrap() = Some(call.tell);
            Ok(DialId(7))
        }

        fn end(&self, call: DialId) -> bool {
            self.ended.lock().unwrap().push(call);
            true
        }
    }

    /// A plugin with room 1 and this telephone.
    async fn with_telephone(fake: &Arc<Fake>, media: MediaPlane) -> Arc<AudioBridge> {
        let (recorder, telephony) = (Recorder::default(), Telephony::default());
        telephony.offer_telephone(fake.clone());
        let services = Services::default()
            .with(AudioThreads::new(
                AudioConfig::default(),
                media.clone(),
                recorder.clone(),
            ))
            .with(telephony);
        let context = PluginContext {
            media,
            recorder,
            outgoing: Networks::default(),
            events: EventBus::default(),
            services,
        };
        let plugin = AudioBridge::from_config(AudioBridgeConfig::default(), context);
        let plugin = plugin.await.unwrap();
        let create = json!({ "request": "create", "room": 1 });
        assert!(plugin.admin(create).is_some());
        Arc::new(plugin)
    }

    #[tokio::test]
    async fn nobody_is_called_into_a_room_that_has_ended_meanwhile() {
        let fake = Arc::new(Fake::default());
        let plugin = with_telephone(&fake, MediaPlane::detached().0).await;
        fake.slow.set(Arc::downgrade(&plugin.shared)).unwrap();
        let dial = json!({ "room": 1, "to": "+49 30 555" });
        let fields = Fields(dial.as_object().unwrap());
        let refused = plugin
            .shared
            .dial_out(fields, &Asker::administrator())
            .unwrap_err();
        assert!(matches!(refused, Refusal::NoSuchRoom(_)), "{refused}");
        assert_eq!(*fake.ended.lock().unwrap(), [DialId(7)]);
    }

    #[tokio::test]
    async fn whoever_has_called_is_told_of_the_end_that_comes_with_the_rooms() {
        let fake = Arc::new(Fake::default());
        let mut made = None;
        let (from, into) = (&fake, &mut made);
        let server = TestServer::with_media(CoreConfig::default(), move |media| async move {
            let plugin = with_telephone(from, media).await;
            *into = Some(plugin.clone());
            vec![plugin as Arc<dyn Plugin>]
        });
        let server = server.await;
        let mut client = server.attach(PACKAGE).await;
        let dial = json!({ "request": "dial_out", "room": 1, "to": "+49 30 555" });
        assert_eq!(client.request(dial).await["call"], 7);
        destroy(&made.unwrap().shared);
        assert_eq!(*fake.ended.lock().unwrap(), [DialId(7)]);
        let tell = fake.tell.lock().unwrap().take().unwrap();
        let (code, reason) = (200, "the room has ended".to_owned());
        tell.send(DialNews::Ended { code, reason }).await.unwrap();
        let told = client.event().await;
        let expected = json!({
            "audiobridge": "event", "room": 1, "call": 7, "status": "ended", "code": 200,
            "reason": "the room has ended",
        });
        assert_eq!(told, expected);
    }
}
