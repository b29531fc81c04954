//! REFERs of peers (RFC 3515): requests to call somebody, and notifications of progress.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::accounts::Speaker;
use super::calls::{Calls, EndedCall};
use super::guard::network;
use super::stack::{Answer, Owner, Sending, Stack};
use super::timers::Timer;
use super::{AccountId, AgentEvent, CallId, ReferId};
use crate::dialog::Dialog;
use crate::flow::Flow;
use crate::message::{Method, StatusCode};
use crate::transaction::NewRequest;

/// The time that a peer gets notifications for.
const EXPIRES: Duration = Duration::from_secs(300);

/// The maximum number of REFERs of one call at a time.
const MOST_OF_CALL: usize = 8;

/// The origin of a REFER, for the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    Call(CallId),
    /// An address, outside of calls.
    Source(IpAddr),
    /// A registrar or trunk, outside of calls: its address does not identify the sender, so the
    /// account counts.
    Account(Option<AccountId>),
}

/// A REFER of a peer with its implicit subscription.
#[derive(Debug)]
struct Refer {
    speaker: Speaker,
    asker: Asker,
    /// The call in whose dialog it came, until that call ends.
    call: Option<CallId>,
    /// The dialog, if there is no call.
    dialog: Option<Dialog>,
    flow: Option<Flow>,
    /// The `id` of Event, if it is not the first in its dialog.
    event_id: Option<u32>,
    /// The status in the last NOTIFY.
    code: u16,
    until: Instant,
    /// The last NOTIFY was sent, or waits.
    over: bool,
    /// A NOTIFY is under way. Others wait for its response, so that they stay in order.
    busy: bool,
    waiting: VecDeque<News>,
}

/// The progress of the call that a REFER asked for.
#[derive(Debug)]
pub(super) struct News {
    code: u16,
    /// The reason phrase; `None` for the usual one.
    reason: Option<String>,
    /// The Subscription-State.
    state: &'static str,
}

const ACTIVE: &str = "active";
/// The maximum number of waiting notifications. More are dropped, except the last.
const MOST_WAITING: usize = 16;

/// All REFERs of peers.
#[derive(Debug, Default)]
pub(super) struct Refers {
    refers: HashMap<ReferId, Refer>,
}

impl Refers {
    pub(super) fn len(&self) -> usize {
        self.refers.len()
    }

    /// Takes a REFER, in a call or outside of dialogs. `others` is the number of subscriptions and
    /// publications.
    pub(super) fn take(
        &mut self,
        stack: &mut Stack,
        calls: &mut Calls,
        new: &NewRequest,
        call: Option<CallId>,
        others: usize,
    ) {
        if !matches!(new.request.headers.refer_to(), Ok(Some(_))) {
            stack.refuse(new, 400, &[]);
            return;
        }
        let asker = asker_of(stack, new, call);
        if self.len().saturating_add(others) >= stack.options.limits.subscriptions
            || self.asks_much(stack, asker)
        {
            stack.refuse_full(new);
            return;
        }
        let (speaker, dialog) = match call {
            Some(id) => {
                let Some(speaker) = calls.speaker(id) else {
                    return;
                };
                if calls.answer_within(stack, new, id, 202).is_none() {
                    return;
                }
                (speaker, None)
            }
            None => {
                let Some(speaker) = stack
                    .account_for(&new.request, &new.flow)
                    .and_then(|id| stack.speaker(id))
                else {
                    return;
                };
                let tag = stack.random.tag();
                let Ok(dialog) = Dialog::of_request(&new.request, &tag) else {
                    stack.refuse(new, 400, &[]);
                    return;
                };
                let Some(server) = stack.open_new(new) else {
                    return;
                };
                let response = stack.dialog_response(&speaker, &new.request, &new.flow, 202, &tag);
                stack.answer(None, &speaker, server, &response);
                (speaker, Some(dialog))
            }
        };
        let id = ReferId::own(stack.random.number());
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
            until: stack.now + EXPIRES,
            over: false,
            busy: false,
            waiting: VecDeque::new(),
        };
        let account = refer.speaker.account;
        self.refers.insert(id, refer);
        stack
            .deadlines
            .set(Timer::Refer(id), Some(stack.now + EXPIRES));
        stack.report(AgentEvent::Refer {
            refer: id,
            account,
            call,
            request: new.request.clone(),
        });
        self.notify(stack, calls, id, News::new(100, None, false));
    }

    /// Whether the asker has too many REFERs under way. It must not use the room of all others.
    fn asks_much(&self, stack: &Stack, asker: Asker) -> bool {
        let most = match asker {
            Asker::Call(_) => MOST_OF_CALL,
            Asker::Source(_) => stack.options.limits.refers_of_source,
            Asker::Account(_) => stack.options.limits.refers_of_account,
        };
        let own = self.refers.values().filter(|refer| refer.asker == asker);
        own.take(most).count() >= most
    }

    /// Notifies the peer of progress, after earlier news.
    pub(super) fn notify(&mut self, stack: &mut Stack, calls: &mut Calls, id: ReferId, news: News) {
        let Some(refer) = self.refers.get_mut(&id).filter(|refer| !refer.over) else {
            return;
        };
        refer.code = news.code;
        refer.over = news.state != ACTIVE;
        if !refer.busy {
            self.send_notify(stack, calls, id, news);
        } else if refer.over || refer.waiting.len() < MOST_WAITING {
            refer.waiting.push_back(news);
        }
    }

    fn send_notify(&mut self, stack: &mut Stack, calls: &mut Calls, id: ReferId, news: News) {
        let News {
            code,
            reason,
            state,
        } = news;
        let Some(refer) = self.refers.get_mut(&id) else {
            return;
        };
        refer.busy = true;
        let (speaker, call, event_id) = (refer.speaker.clone(), refer.call, refer.event_id);
        let (flow, left) = (
            refer.flow,
            refer.until.saturating_duration_since(stack.now).as_secs(),
        );
        let Some(dialog) = self.dialog(calls, id) else {
            self.drop_refer(stack, id);
            return;
        };
        let flow = flow.filter(|_| !dialog.has_route());
        let mut request = dialog.request(Method::Notify);
        stack.sign(&speaker, &mut request.headers, "User-Agent");
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
        stack.send(sending);
    }

    /// Takes the answer to a NOTIFY.
    pub(super) fn notified(
        &mut self,
        stack: &mut Stack,
        calls: &mut Calls,
        id: ReferId,
        answer: &Answer,
    ) {
        let Some(refer) = self.refers.get_mut(&id) else {
            return;
        };
        refer.busy = false;
        // A peer that does not respond, or has lost the subscription, gets no more (RFC 6665
        // section 4.2.2).
        let unheard = answer.response.is_none() || answer.code == 481;
        match refer.waiting.pop_front() {
            Some(news) if !unheard => self.send_notify(stack, calls, id, news),
            _ if unheard || refer.over => self.drop_refer(stack, id),
            _ => {}
        }
    }

    /// Ends a REFER that has expired.
    pub(super) fn timer_due(&mut self, stack: &mut Stack, calls: &mut Calls, id: ReferId) {
        if let Some(refer) = self.refers.get(&id) {
            let news = News {
                code: refer.code,
                reason: None,
                state: "terminated;reason=timeout",
            };
            self.notify(stack, calls, id, news);
        }
    }

    fn drop_refer(&mut self, stack: &mut Stack, id: ReferId) {
        self.refers.remove(&id);
        stack.deadlines.set(Timer::Refer(id), None);
    }

    /// The dialog of a REFER.
    pub(super) fn dialog<'a>(
        &'a mut self,
        calls: &'a mut Calls,
        id: ReferId,
    ) -> Option<&'a mut Dialog> {
        let refer = self.refers.get_mut(&id)?;
        match refer.call {
            Some(call) => calls.dialog(call),
            None => refer.dialog.as_mut(),
        }
    }

    /// Takes the dialog of a call that has ended, for its REFERs.
    pub(super) fn adopt(&mut self, ended: &EndedCall) {
        let refers = self.refers.values_mut();
        for refer in refers.filter(|refer| refer.call == Some(ended.id)) {
            refer.call = None;
            refer.dialog.clone_from(&ended.dialog);
        }
    }
}

impl News {
    /// The state of the call; `is_last` ends the subscription.
    pub(super) fn new(code: u16, reason: Option<String>, is_last: bool) -> Self {
        let state = match is_last {
            true => "terminated;reason=noresource",
            false => ACTIVE,
        };
        Self {
            code,
            reason,
            state,
        }
    }
}

fn asker_of(stack: &Stack, new: &NewRequest, call: Option<CallId>) -> Asker {
    let source = new.flow.remote.ip();
    match call {
        Some(call) => Asker::Call(call),
        None if stack.is_known(source) => {
            Asker::Account(stack.account_for(&new.request, &new.flow))
        }
        None => Asker::Source(network(source.to_canonical())),
    }
}
