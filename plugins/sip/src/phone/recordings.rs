//! `recording` and `keyframe`, and events of media.

use portunus_call::{
    CallNews, KeyframeRequest, LegEvent, LegSide, RecordingAction, RecordingRequest, Sides,
};
use portunus_core::record::{Format, file_safe, stamped};
use portunus_core::{Fields, Message, Object};
use portunus_sip::agent::CallId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Phone;
use super::messages::{MEDIA_CONTROL, body};
use crate::ending::Ending;
use crate::events::named_event;
use crate::refusal::{NOT_IN_A_CALL, Refusal};
use crate::status::PageId;

/// A keyframe request (RFC 5168).
const PICTURE_FAST_UPDATE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<media_control><vc_primitive>\
    <to_encoder><picture_fast_update/></to_encoder></vc_primitive></media_control>\r\n";

/// The members of `recording` after the action and the sides.
#[derive(Deserialize)]
struct RecordingFiles {
    #[serde(default)]
    send_peer_pli: bool,
    filename: Option<String>,
    #[serde(default, deserialize_with = "portunus_core::with::record_format")]
    record_format: Option<Format>,
}

impl Phone {
    /// `recording`.
    pub(super) fn recording(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        self.check_in_call(me)?;
        let fields = Fields(&message.body);
        let action = fields.required("action")?;
        let sides: Sides = fields.read()?;
        let files: RecordingFiles = fields.read()?;
        let action = RecordingAction::from_name(action);
        let action = action.ok_or(Refusal::Value("action should be start|stop|pause|resume"))?;
        if !sides.is_any() {
            return Err(Refusal::NothingToRecord);
        }
        let user = self
            .account_of(me)
            .map(|account| account.spec.user.as_str());
        let default_name = stamped(&format!("sip-{}", file_safe(user.unwrap_or_default())));
        let media = self.side_of_mut(me).and_then(|side| side.media.as_mut());
        let media = media.ok_or(NOT_IN_A_CALL)?;
        media.record(&RecordingRequest {
            action,
            sides,
            filename: files.filename,
            default_name,
            format: files.record_format,
            tell: recording_event,
        })?;
        if files.send_peer_pli {
            media.request_keyframe(false, true);
        }
        self.answer(me, message, "recordingupdated");
        Ok(())
    }

    /// `keyframe`.
    pub(super) fn keyframe(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let call = self.check_in_call(me)?;
        let KeyframeRequest { user, peer } = Fields(&message.body).read()?;
        let media = self.side_of(me).and_then(|side| side.media.as_ref());
        let media = media.ok_or(NOT_IN_A_CALL)?;
        media.request_keyframe(user, peer);
        if peer && media.wants_info_for_keyframes() {
            let request = body(MEDIA_CONTROL, PICTURE_FAST_UPDATE)?;
            self.send_info(call, Vec::new(), request);
        }
        self.answer(me, message, "keyframesent");
        Ok(())
    }

    /// Handles an event of a call's media.
    pub(crate) fn media_event(&mut self, id: CallId, news: CallNews) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        match news.event {
            LegEvent::Key {
                by: LegSide::FarEnd,
                duration,
                ..
            } => {
                let Some(digit) = news.event.digit() else {
                    return;
                };
                for page in call.pages.iter().filter_map(|id| self.page(*id)) {
                    if page.call.as_ref().is_some_and(|side| side.moving) {
                        continue;
                    }
                    let dtmf = named_event("dtmf")
                        .with("sender", call.peer.as_str())
                        .with("signal", digit.to_string())
                        .with("duration", duration);
                    page.send(dtmf, None);
                }
            }
            LegEvent::Failed => {
                // The far end is gone.
                for page in call.pages.iter().filter_map(|id| self.page(*id)) {
                    let hangingup = named_event("hangingup");
                    let data = page.data().with("result", hangingup);
                    page.push(None, data, None);
                }
                let text = "nobody receives media at the peer's port";
                self.end_by(id, Ending::bye().because(text), Vec::new());
            }
            LegEvent::Key { .. }
            | LegEvent::Heard
            | LegEvent::Silent
            | LegEvent::KeyframeWanted
            | LegEvent::Moved(_)
            | LegEvent::Bye => {}
        }
    }
}

/// Makes an event of recordings for clients.
fn recording_event(event: Object) -> Value {
    json!({ "sip": "event", "result": Value::from(event) })
}
