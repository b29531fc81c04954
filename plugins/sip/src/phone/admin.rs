//! The state of a page for administrators.

use portunus_core::Object;
use serde_json::{Value, json};

use super::Phone;
use crate::page::Role;
use crate::status::{CallStatus, PageId, RegistrationStatus};

impl Phone {
    /// Returns `plugin_specific` of `handle_info`.
    pub(crate) fn state_of(&self, me: PageId) -> Value {
        let Some(page) = self.page(me) else {
            return json!({});
        };
        let side = page.call.as_ref();
        let media = side.and_then(|side| side.media.as_ref());
        let call = side.and_then(|side| self.calls.get(side.id));
        let master = match page.role {
            Role::Master => None,
            Role::Helper(master) => {
                let status = self.page(master).map(|page| page.registration);
                Some(self.identity_of(me, status.unwrap_or_default()))
            }
        };
        let yes_no = |holds: bool| if holds { "yes" } else { "no" };
        let sdes = media.map(|media| media.sdes()).unwrap_or_default();
        let is = |holds: bool| i32::from(holds);
        Object::new()
            .with("unique_id", page.unique_id.as_str())
            .with("helper", master.is_some())
            .with_some("master", master)
            .with_all(Value::from(self.identity_of(me, page.registration)))
            .with("master_id", page.master_id)
            .with("call_status", page.status().name())
            .with("helpers", self.pages.helpers(me).len())
            .with_some("name", page.name.as_deref())
            .with_some("call_id", page.call_id())
            .with_some("callee", call.map(|call| call.peer.as_str()))
            .with(
                "srtp-required",
                yes_no(side.is_some_and(|side| side.srtp_required)),
            )
            .with("sdes-local-audio", yes_no(sdes.local_audio))
            .with("sdes-local-video", yes_no(sdes.local_video))
            .with("sdes-remote-audio", yes_no(sdes.remote_audio))
            .with("sdes-remote-video", yes_no(sdes.remote_video))
            .with_some("media", media.map(|media| media.figures()))
            .with_some("recording", media.and_then(|media| media.recordings()))
            .with("establishing", is(page.status() == CallStatus::Inviting))
            .with("established", is(page.status().is_in_call()))
            .with("hangingup", is(page.status() == CallStatus::Closing))
            .with("destroyed", 0)
            .into()
    }

    /// Returns the identity of an account, without its secret.
    fn identity_of(&self, me: PageId, status: RegistrationStatus) -> Object {
        let account = self.account_of(me);
        let spec = account.map(|account| &account.spec);
        let pages = account
            .map(|account| account.pages.len())
            .unwrap_or_default();
        Object::new()
            .with_some("username", spec.map(|spec| spec.user.as_str()))
            .with_some("authuser", spec.and_then(|spec| spec.authuser.as_deref()))
            .with_some(
                "secret",
                spec.and_then(|spec| spec.secret.as_ref())
                    .map(|_| "(hidden)"),
            )
            .with_some(
                "display_name",
                spec.and_then(|spec| spec.display_name.as_deref()),
            )
            .with_some(
                "user_agent",
                spec.and_then(|spec| spec.user_agent.as_deref()),
            )
            .with_some("identity", spec.map(|spec| spec.identity.to_string()))
            .with("registration_status", status.name())
            .with_some("pages", (pages > 1).then_some(pages))
    }
}
