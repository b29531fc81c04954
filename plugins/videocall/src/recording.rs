//! Recordings of users.

use portunus_core::record::{RecordedMedia, file_safe, stamped};
use portunus_core::sdp::{Description, Kind};
use portunus_core::{ClientRecording, Object, SentMedia, Wish};
use serde_json::{Value, json};

use crate::request::Changes;
use crate::users::{Call, Line, UserId, Users};

impl Users {
    /// Starts and stops recording a user, and closes the gates that it asks for.
    pub(crate) fn record(&mut self, id: UserId, changes: &Changes) {
        let peer = self.peer_of(id).and_then(|peer| self.get(peer));
        let peer_name = peer.and_then(|peer| peer.name.clone()).unwrap_or_default();
        let session = peer.and_then(|peer| peer.call.recorded.clone());
        let Some(user) = self.get_mut(id) else {
            return;
        };
        let Line::Here(handle) = &user.line else {
            return;
        };
        let call = &mut user.call;
        let (audio, video) = (call.settings.audio, call.settings.video);
        let open = |kind| match kind {
            Kind::Audio => audio,
            Kind::Video => video,
            Kind::Data => true,
        };
        call.recording = call.recording.take().filter(|it| !it.is_over());
        match (changes.record, &mut call.recording) {
            (Some(false), _) => call.recording = None,
            (_, Some(recording)) => recording.set_open(open),
            (Some(true), None) => {
                let own = user.name.clone().unwrap_or_default();
                let name = match &changes.filename {
                    Some(name) => name.clone(),
                    None => stamped(&format!(
                        "videocall-{}-{}",
                        file_safe(&own),
                        file_safe(&peer_name)
                    )),
                };
                // Both sides of a call are in one manifest.
                let mut of = handle.recorded_alone(&name);
                if let Some(session) = call.recorded.clone().or(session) {
                    of.session = session;
                }
                call.recorded = Some(of.session.clone());
                (of.id, of.display) = (own.clone(), Some(own));
                let wish = Wish {
                    format: changes.record_format,
                    of: Some(of),
                };
                let sent = &call.sent;
                let tell = recording_event;
                call.recording = ClientRecording::start(handle, &name, sent, open, tell, wish);
            }
            (None, None) => {}
        }
    }
}

impl Call {
    /// Notes the media that the user sends by the answer, which is the user's own or the other
    /// side's.
    pub(crate) fn note_sent(&mut self, answer: &Description, own: bool) {
        let sends = |direction: portunus_core::sdp::Direction| match own {
            true => direction.sends(),
            false => direction.receives(),
        };
        let sent = answer.media.iter().filter(|media| sends(media.direction));
        let e2ee = self.e2ee;
        self.sent = sent
            .filter_map(|media| {
                Some(SentMedia {
                    mid: media.mid,
                    kind: media.kind,
                    media: RecordedMedia::answered(media)?.with_encryption(e2ee),
                })
            })
            .collect();
    }
}

/// Makes an event of recordings for clients.
fn recording_event(event: Object) -> Value {
    json!({ "videocall": "event", "result": Value::from(event) })
}
