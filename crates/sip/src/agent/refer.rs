//! REFERs of peers (RFC 3515): they ask us to call somebody, and hear how that goes.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::call::Call;
use super::compose::Speaker;
use super::exchange::{Answer, Owner, Sending};
use super::guard::network;
use super::{AccountId, Agent, AgentEvent, CallId, ReferId, Timer};
use crate::dialog::Dialog;
use crate::flow::Flow;
use crate::message::{Method, StatusCode};
use crate::transaction::NewRequest;

/// For how long a peer hears of its REFER.
const EXPIRES: Duration = Duration::from_secs(300);

/// REFERs of one call of which the peer still hears.
const MOST_OF_CALL: usize = 8;

/// Whose a REFER is, for the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    Call(CallId),
    /// An address, outside of calls.
    Source(IpAddr),
    /// One outside of calls whose address says nothing of who it is: it came from a registrar or a trunk, for this account.
    Account(Option<AccountId>),
}

/// A REFER of a peer, and the subscription that it is.
#[derive(Debug)]
pub(super) struct Refer {
    speaker: Speaker,
    asker: Asker,
    /// The call in whose dialog it came, as long as there is that call.
    call: Option<CallId>,
    /// The dialog, if there is no call.
    dialog: Option<Dialog>,
    flow: Option<Flow>,
    /// The `id` of Event, if it is not the first in its dialog.
    event_id: Option<u32>,
    /// What was told last.
    code: u16,
    until: Instant,
    /// The last word is said, or waits to be.
    over: bool,
    /// A NOTIFY is under way; what else there is to tell waits for its answer, so that nothing overtakes it.
    busy: bool,
    waiting: VecDeque<News>,
}

/// A status with its phrase, and the Subscription-State that goes with it.
type News = (u16, Option<String>, &'static str);

const ACTIVE: &str = "active";
/// News that wait. More are left out, but for the last.
const MOST_WAITING: usize = 16;

impl Agent {
    /// Takes a REFER, in a call or outside of dialogs.
    pub(super) fn take_refer(&mut self, now: Instant, new: &NewRequest, call: Option<CallId>) {
        if !matches!(new.request.headers.refer_to(), Ok(Some(_))) {
            self.refuse(new, 400, &[]);
            return;
        }
        let asker = self.asker(new, call);
        if self.load().subscriptions >= self.options.limits.subscriptions || self.asks_much(asker) {
            self.refuse_full(new);
            return;
        }
        let (speaker, dialog) = match call {
            Some(id) => {
                let Some(speaker) = self.calls.get(&id).map(|call| call.speaker.clone()) else {
                    return;
                };
                if self.answer_within(now, new, id, 202).is_none() {
                    return;
                }
                (speaker, None)
            }
            None => {
                let Some(speaker) = self
                    .account_for(&new.request, &new.flow)
                    .and_then(|id| self.speaker(id))
                else {
                    return;
                };
                let tag = self.tag();
                let Ok(dialog) = Dialog::of_request(&new.request, &tag) else {
                    self.refuse(new, 400, &[]);
                    return;
                };
                let trusted = self.is_known(new.flow.remote.ip());
                let Ok(server) = self.transactions.accept(now, new, trusted) else {
                    self.refuse_full(new);
                    return;
                };
                let response = self.dialog_response(&speaker, &new.request, &new.flow, 202, &tag);
                self.answer(now, None, &speaker, server, &response);
                (speaker, Some(dialog))
            }
        };
        let id = ReferId::own(self.number());
        let is_first =
            call.is_none_or(|call| !self.refers.values().any(|refer| refer.call == Some(call)));
        let number = new
            .request
            .headers
            .cseq()
            .ok()
            .flatten()
            .map(|cseq| cseq.number);
        let refer = Refer {
            speaker,
            asker,
            call,
            dialog,
            flow: new.flow.connection.is_some().then_some(new.flow),
            event_id: number.filter(|_| !is_first),
            code: 100,
            until: now + EXPIRES,
            over: false,
            busy: false,
            waiting: VecDeque::new(),
        };
        let account = refer.speaker.account;
        self.refers.insert(id, refer);
        self.deadlines.set(Timer::Refer(id), Some(now + EXPIRES));
        self.tell(AgentEvent::Refer {
            refer: id,
            account,
            call,
            request: new.request.clone(),
        });
        self.notify_refer(now, id, 100, None, false);
    }

    fn asker(&self, new: &NewRequest, call: Option<CallId>) -> Asker {
        let source = new.flow.remote.ip();
        match call {
            Some(call) => Asker::Call(call),
            None if self.is_known(source) => {
                Asker::Account(self.account_for(&new.request, &new.flow))
            }
            None => Asker::Source(network(source.to_canonical())),
        }
    }

    /// Whether so many of its REFERs are under way that it has to wait: nobody takes the room of all others.
    fn asks_much(&self, asker: Asker) -> bool {
        let most = match asker {
            Asker::Call(_) => MOST_OF_CALL,
            Asker::Source(_) => self.options.limits.refers_of_source,
            Asker::Account(_) => self.options.limits.refers_of_account,
        };
        let own = self.refers.values().filter(|refer| refer.asker == asker);
        own.take(most).count() >= most
    }

    /// Tells the peer how it goes.
    pub(super) fn notify_refer(
        &mut self,
        now: Instant,
        id: ReferId,
        code: u16,
        reason: Option<String>,
        last: bool,
    ) {
        let state = if last {
            "terminated;reason=noresource"
        } else {
            ACTIVE
        };
        self.tell_refer(now, id, (code, reason, state));
    }

    fn tell_refer(&mut self, now: Instant, id: ReferId, news: News) {
        let Some(refer) = self.refers.get_mut(&id).filter(|refer| !refer.over) else {
            return;
        };
        refer.code = news.0;
        refer.over = news.2 != ACTIVE;
        if !refer.busy {
            self.send_notify(now, id, news);
        } else if refer.over || refer.waiting.len() < MOST_WAITING {
            refer.waiting.push_back(news);
        }
    }

    fn send_notify(&mut self, now: Instant, id: ReferId, (code, reason, state): News) {
        let Some(refer) = self.refers.get_mut(&id) else {
            return;
        };
        refer.busy = true;
        let (speaker, call, event_id) = (refer.speaker.clone(), refer.call, refer.event_id);
        let (flow, left) = (
            refer.flow,
            refer.until.saturating_duration_since(now).as_secs(),
        );
        let Some(dialog) = self.refer_dialog(id) else {
            self.drop_refer(id);
            return;
        };
        let flow = flow.filter(|_| !dialog.has_route());
        let mut request = dialog.request(Method::Notify);
        self.sign(&speaker, &mut request.headers, "User-Agent");
        match event_id {
            Some(number) => request
                .headers
                .push("Event", format_args!("refer;id={number}")),
            None => request.headers.push("Event", "refer"),
        }
        if state != ACTIVE {
            request.headers.push("Subscription-State", state);
        } else {
            request
                .headers
                .push("Subscription-State", format_args!("{state};expires={left}"));
        }
        let usual = StatusCode::new(code)
            .map_or("Unknown", StatusCode::reason)
            .to_owned();
        let reason = reason
            .filter(|reason| !reason.contains(['\r', '\n']))
            .unwrap_or(usual);
        request.set_body(
            "message/sipfrag;version=2.0",
            format!("SIP/2.0 {code} {reason}\r\n"),
        );
        let mut sending = Sending::within(Owner::NotifyRefer(id), speaker, request, call);
        sending.flow = flow;
        self.send(now, sending);
    }

    /// Takes the answer to a NOTIFY.
    pub(super) fn notified_refer(&mut self, now: Instant, id: ReferId, answer: &Answer) {
        let Some(refer) = self.refers.get_mut(&id) else {
            return;
        };
        refer.busy = false;
        // Who does not answer, or does not know it any more, hears no more (RFC 6665 section 4.2.2).
        let unheard = answer.response.is_none() || answer.code == 481;
        match refer.waiting.pop_front() {
            Some(news) if !unheard => self.send_notify(now, id, news),
            _ if unheard || refer.over => self.drop_refer(id),
            _ => {}
        }
    }

    pub(super) fn refer_due(&mut self, now: Instant, id: ReferId) {
        if let Some(refer) = self.refers.get(&id) {
            let code = refer.code;
            self.tell_refer(now, id, (code, None, "terminated;reason=timeout"));
        }
    }

    fn drop_refer(&mut self, id: ReferId) {
        self.refers.remove(&id);
        self.deadlines.set(Timer::Refer(id), None);
    }

    /// The dialog in which the peer is told.
    pub(super) fn refer_dialog(&mut self, id: ReferId) -> Option<&mut Dialog> {
        let refer = self.refers.get_mut(&id)?;
        match refer.call {
            Some(call) => self.calls.get_mut(&call)?.dialog.as_mut(),
            None => refer.dialog.as_mut(),
        }
    }

    /// A call has ended: its REFERs go on in its dialog.
    pub(super) fn call_left_refers(&mut self, id: CallId, call: &Call) {
        for refer in self
            .refers
            .values_mut()
            .filter(|refer| refer.call == Some(id))
        {
            refer.call = None;
            refer.dialog.clone_from(&call.dialog);
        }
    }
}
