//! Trunks: telephones in audio rooms. Each call is a task, which gets the events of the SIP stack.

mod admin;
mod config;
mod incoming;
mod keys;
mod numbers;
mod outgoing;
mod pins;
mod prompts;
mod registration;
mod talk;
#[cfg(test)]
mod tests;
mod visit;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use portunus_audio::AudioThreads;
use portunus_call::{CallSettings, ServerCall};
use portunus_core::{Network, Networks};
use portunus_sip::agent::{
    AccountId, AgentEvent, CallId, Command, Invite, Profile, Registration, RequestId,
};
use portunus_sip::digest::{Credentials, Kind, Rules, Verdict, Verifier};
use portunus_sip::message::{Method, Request, Uri};
use portunus_telephony::{DialError, DialId, Dialled, IncomingCall, PhoneTrunk, Telephony};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

pub use config::TrunkConfig;
pub(crate) use config::check;
pub use numbers::PhoneTrunks;

use crate::commands::Commands;
use crate::config::SipConfig;
use crate::descriptions::sdp_body;
use crate::headers;
use crate::sip_message::SipMessage;
use crate::sip_message::host_address;
use config::NotCalled;
use incoming::{Destination, Incoming};
use numbers::Numbers;
use outgoing::Outgoing;
use pins::WrongPins;
use prompts::Prompts;
use registration::Standing;
use talk::Talk;

/// The first id of accounts and calls of trunks.
const FIRST: u64 = 1 << 62;
/// The maximum number of events that wait for a call's task.
const EVENTS: usize = 32;

/// A place among a trunk's calls.
type Line = OwnedSemaphorePermit;

/// All trunks, and their calls.
pub(crate) struct Trunks {
    office: Arc<Office>,
    trunks: Vec<Trunk>,
    calls: HashMap<CallId, mpsc::Sender<AgentEvent>>,
    /// The server takes no new calls.
    pub(crate) draining: bool,
    /// The number of the next call.
    next: u64,
    /// The number of the next account.
    next_account: u64,
    config: Arc<SipConfig>,
}

/// The parts of the server that trunks use.
pub(crate) struct TrunkMeans<'a> {
    pub(crate) call: &'a CallSettings,
    pub(crate) audio: AudioThreads,
    pub(crate) telephony: Telephony,
}

/// The state that all calls of trunks share.
pub(crate) struct Office {
    commands: Commands,
    call: Arc<CallSettings>,
    audio: AudioThreads,
    telephony: Telephony,
    prompts: Arc<Prompts>,
    pins: WrongPins,
}

impl Office {
    fn command(&self, command: Command) {
        (self.commands)(command);
    }

    fn reject(&self, call: CallId, code: u16) {
        self.reject_with(call, code, Vec::new());
    }

    fn reject_with(&self, call: CallId, code: u16, headers: Vec<(String, String)>) {
        self.command(Command::Reject {
            call,
            code,
            reason: None,
            headers,
        });
    }
}

struct Trunk {
    config: TrunkConfig,
    /// The numbers of a trunk whose calls the reception takes. `None` for one of the configuration.
    numbers: Option<Numbers>,
    /// The account of its outgoing calls.
    account: AccountId,
    lines: Arc<Semaphore>,
    verifier: Option<Mutex<Verifier>>,
    /// The state of its registration; `None` if it does not register.
    standing: Option<Standing>,
}

impl Trunk {
    /// Returns where a call goes, or `None` if its number is not the trunk's.
    fn destination(&self, called: &str, invite: &SipMessage) -> Option<Destination> {
        let Some(numbers) = &self.numbers else {
            return self.config.room_of(called).map(Destination::Room);
        };
        let from = invite.sender().uri.parse::<Uri>().ok();
        let caller = from.and_then(|uri| Some(uri.subscriber()?.into_owned()));
        let is_taken = numbers.take(called, caller.as_deref());
        is_taken.then(|| {
            Destination::Reception(IncomingCall {
                trunk: self.config.name.clone(),
                called: called.to_owned(),
                caller,
                call_id: invite.headers().call_id().unwrap_or_default().to_owned(),
            })
        })
    }

    /// Decides on a call from one of its addresses.
    fn admit(&self, invite: &Request) -> Admission {
        let Some(verifier) = &self.verifier else {
            return Admission::In;
        };
        let mut verifier = verifier.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let lookup = |user: &str| {
            let config = &self.config;
            (user == config.caller_user)
                .then(|| Credentials::password(&config.caller_user, &config.caller_password))
        };
        match verifier.verify(now, Kind::Server, invite, lookup) {
            Verdict::Accepted(_) => Admission::In,
            Verdict::Missing => Admission::Challenge(verifier.challenges(now, false)),
            Verdict::Stale => Admission::Challenge(verifier.challenges(now, true)),
            Verdict::Refused => Admission::Refused,
        }
    }
}

/// The decision on a call from an address of a trunk.
#[derive(Debug, PartialEq, Eq)]
enum Admission {
    /// The call is the trunk's.
    In,
    /// The caller has to authenticate.
    Challenge(Vec<String>),
    /// The caller has failed to authenticate.
    Refused,
}

impl Trunks {
    /// Makes the trunks of the configuration.
    pub(crate) fn new(
        config: &SipConfig,
        means: TrunkMeans<'_>,
        commands: Commands,
    ) -> io::Result<Self> {
        let TrunkMeans {
            call,
            audio,
            telephony,
        } = means;
        let settings = CallSettings {
            // The peers of trunks are trusted with the addresses of media.
            networks: everywhere(),
            latching: true,
            silence: (!config.rtp_timeout.is_zero()).then_some(config.rtp_timeout),
            ..call.clone()
        };
        let office = Office {
            commands,
            call: Arc::new(settings),
            audio,
            telephony,
            prompts: Arc::new(Prompts::new(config.prompts.as_deref())?),
            pins: WrongPins::new(config.pin_attempts, config.pin_wait),
        };
        let mut trunks = Trunks {
            office: Arc::new(office),
            trunks: Vec::new(),
            calls: HashMap::new(),
            draining: false,
            next: FIRST,
            next_account: FIRST,
            config: Arc::new(config.clone()),
        };
        for trunk in &config.trunks {
            trunks.add(trunk.clone(), None);
        }
        Ok(trunks)
    }

    fn add(&mut self, config: TrunkConfig, numbers: Option<Numbers>) {
        let account = AccountId::new(self.next_account);
        self.next_account = self.next_account.wrapping_add(1);
        if let Some(profile) = profile(&config, &self.config) {
            self.office.command(Command::SetAccount {
                account,
                profile: Box::new(profile),
            });
        }
        let key = std::array::from_fn(|_| rand::random());
        let verifier = (!config.caller_user.is_empty())
            .then(|| Mutex::new(Verifier::new(Rules::new(&config.name), key, Instant::now())));
        self.trunks.push(Trunk {
            account,
            numbers,
            lines: Arc::new(Semaphore::new(config.max_calls)),
            verifier,
            standing: config.register.then_some(Standing::Registering),
            config,
        });
    }

    /// Adds a trunk, or replaces the one of its name. Calls go on.
    pub(crate) fn set(&mut self, trunk: PhoneTrunk) -> Result<(), DialError> {
        let numbers = Numbers {
            called: trunk.called.clone(),
            callers: trunk.callers.clone(),
        };
        let config = TrunkConfig::of(trunk).map_err(DialError::Fault)?;
        self.remove(&config.name);
        self.config.phone_trunks.add(config.clone());
        self.add(config, Some(numbers));
        Ok(())
    }

    /// Removes a trunk of [`Trunks::set`]. Calls go on.
    pub(crate) fn remove(&mut self, name: &str) {
        self.config.phone_trunks.remove(name);
        let is_it = |trunk: &mut Trunk| trunk.numbers.is_some() && trunk.config.name == name;
        for trunk in self.trunks.extract_if(.., is_it) {
            self.office.command(Command::RemoveAccount {
                account: trunk.account,
            });
        }
    }

    /// Asks the far end of a call to call somebody else.
    pub(crate) fn transfer(&self, call: DialId, to: &str) -> bool {
        let is_line = !to.contains(['\r', '\n', '<', '>']);
        let known = self.calls.keys().find(|known| known.get() == call.0);
        let Some(call) = known.filter(|_| is_line).copied() else {
            return false;
        };
        self.office.command(Command::InDialog {
            call,
            request: RequestId::new(call.get()),
            method: Method::Refer,
            headers: vec![("Refer-To".to_owned(), format!("<{to}>"))],
            body: None,
        });
        true
    }

    /// Takes an event about trunks. Returns other events.
    pub(crate) fn take(&mut self, event: AgentEvent) -> Option<AgentEvent> {
        match event {
            AgentEvent::Incoming {
                call,
                account,
                ref entrances,
                ref request,
                ref flow,
                ..
            } if self.is_ours(account, entrances, flow.remote.ip()) => {
                self.called(call, (flow.remote.ip(), entrances), request);
                None
            }
            AgentEvent::RegistrationFailed { account, .. }
            | AgentEvent::Registered { account, .. }
            | AgentEvent::Unregistered { account, .. }
                if self.of(account).is_some() =>
            {
                self.registration_changed(account, &event);
                None
            }
            event => {
                let Some(call) = call_of(&event).filter(|call| self.calls.contains_key(call))
                else {
                    return Some(event);
                };
                let is_end = matches!(event, AgentEvent::Ended { .. });
                let to = self.calls.get(&call);
                let is_taken = to.is_some_and(|to| to.try_send(event).is_ok());
                if is_end || !is_taken {
                    // A task that does not take its events sees the end of the channel.
                    self.calls.remove(&call);
                }
                None
            }
        }
    }

    fn of(&self, account: AccountId) -> Option<&Trunk> {
        self.trunks.iter().find(|trunk| trunk.account == account)
    }

    /// Whether a call is a trunk's: not to the account of a page, and from a trunk's registrar or
    /// addresses.
    fn is_ours(&self, account: Option<AccountId>, entrances: &[AccountId], from: IpAddr) -> bool {
        let is_of_page = account.is_some_and(|account| self.of(account).is_none());
        let mut trunks = self.trunks.iter();
        let is_there = !entrances.is_empty() || trunks.any(|trunk| trunk.config.calls_from(from));
        !is_of_page && is_there
    }

    /// Handles a call from an address where these trunks are registered.
    fn called(
        &mut self,
        call: CallId,
        (from, registered): (IpAddr, &[AccountId]),
        invite: &Arc<Request>,
    ) {
        if self.draining {
            let later = vec![headers::retry_after_drain()];
            return self.office.reject_with(call, 503, later);
        }
        let called = invite.uri.subscriber().unwrap_or_default();
        // Trunks may share an address. Their numbers tell them apart.
        let calls =
            |trunk: &&Trunk| registered.contains(&trunk.account) || trunk.config.calls_from(from);
        let mut trunks = self.trunks.iter().filter(calls);
        let message = SipMessage::from(invite);
        let found = trunks.find_map(|trunk| Some((trunk, trunk.destination(&called, &message)?)));
        let Some((trunk, destination)) = found else {
            return self.office.reject(call, 404);
        };
        match trunk.admit(invite) {
            Admission::In => {}
            Admission::Challenge(values) => {
                let header = |value| ("WWW-Authenticate".to_owned(), value);
                let headers = values.into_iter().map(header).collect();
                return self.office.reject_with(call, 401, headers);
            }
            Admission::Refused => return self.office.reject(call, 403),
        }
        let Ok(line) = Arc::clone(&trunk.lines).try_acquire_owned() else {
            tracing::warn!(trunk = trunk.config.name, "all lines are busy");
            return self.office.reject(call, 486);
        };
        let (to, events) = mpsc::channel(EVENTS);
        self.calls.insert(call, to);
        let incoming = Incoming {
            call,
            from,
            invite: message,
            destination,
            line,
        };
        tokio::spawn(incoming::attend(Arc::clone(&self.office), incoming, events));
    }

    /// Calls a telephone into a room.
    pub(crate) fn dial(&mut self, dialled: Dialled) -> Result<DialId, DialError> {
        let wanted = dialled.trunk.as_deref();
        let is_wanted = |trunk: &&Trunk| match wanted {
            Some(name) => trunk.config.name == name,
            None => !trunk.config.server.is_empty(),
        };
        let unknown = || DialError::NoTrunk(wanted.unwrap_or_default().to_owned());
        let trunk = self.trunks.iter().find(is_wanted).ok_or_else(unknown)?;
        let to = || dialled.to.clone();
        let uri = trunk.config.callee(&dialled.to).map_err(|why| match why {
            NotCalled::NoServer => unknown(),
            NotCalled::NoNumber => DialError::Address(to()),
            NotCalled::Forbidden => DialError::Forbidden(to()),
        })?;
        let line = Arc::clone(&trunk.lines)
            .try_acquire_owned()
            .map_err(|_| DialError::Busy)?;
        let fault = |error: portunus_call::CallError| DialError::Fault(error.to_string());
        let (mut media, legs) = ServerCall::new(self.office.call.clone()).map_err(fault)?;
        if let Some(server) = host_address(&uri) {
            media.expect_at(server);
        }
        let offer = media.offer().map_err(fault)?;
        let number = self.next;
        self.next = number.wrapping_add(1);
        let call = CallId::new(number);
        let (to, events) = mpsc::channel(EVENTS);
        self.calls.insert(call, to);
        self.office.command(Command::Invite {
            account: trunk.account,
            call,
            invite: Box::new(Invite {
                uri,
                call_id: None,
                offer: Some(sdp_body(offer)),
                headers: Vec::new(),
                credentials: None,
                cancel_early: false,
            }),
        });
        let talk = Talk::new(Arc::clone(&self.office), call, (media, legs), events);
        let outgoing = Outgoing {
            room: dialled.room,
            display: dialled.display.unwrap_or(dialled.to),
            tell: dialled.tell,
            line,
        };
        tokio::spawn(outgoing::attend(talk, outgoing));
        Ok(DialId(number))
    }
}

/// Returns all addresses.
fn everywhere() -> Networks {
    Networks(vec![Network::ALL_IPV4, Network::ALL_IPV6])
}

/// Returns the profile of a trunk for the SIP stack, or `None` if it only calls us.
fn profile(trunk: &TrunkConfig, config: &SipConfig) -> Option<Profile> {
    let (server, identity) = trunk.outgoing()?;
    let user = identity.user_name();
    let user = match trunk.user.as_str() {
        "" => user.unwrap_or_default().into_owned(),
        user => user.to_owned(),
    };
    let keepalive = (!config.keepalive_interval.is_zero()).then_some(config.keepalive_interval);
    Some(Profile {
        identity: identity.clone().into(),
        display_name: String::new(),
        credentials: (!trunk.password.is_empty())
            .then(|| Credentials::password(&user, &trunk.password)),
        registration: trunk.register.then(|| Registration {
            registrar: Some(server.clone().into()),
            expires: config.register_ttl,
            headers: Vec::new(),
            keepalive,
            retry: true,
        }),
        outbound_proxy: Some(server.into()),
        transport: None,
        user_agent: None,
        contact_params: Vec::new(),
        behind_nat: config.behind_nat,
        // Rooms call nobody for a telephone.
        refers: false,
        entrance: true,
        trace: false,
    })
}

/// Returns the call of an event.
fn call_of(event: &AgentEvent) -> Option<CallId> {
    match event {
        AgentEvent::Provisional { call, .. }
        | AgentEvent::Accepted { call, .. }
        | AgentEvent::Acknowledged { call, .. }
        | AgentEvent::Ended { call, .. }
        | AgentEvent::Reinvite { call, .. }
        | AgentEvent::ReinviteCancelled { call }
        | AgentEvent::ReinviteAccepted { call, .. }
        | AgentEvent::ReinviteRejected { call, .. }
        | AgentEvent::ReferNotify { call, .. } => Some(*call),
        AgentEvent::Request { call, .. } | AgentEvent::Refer { call, .. } => *call,
        _ => None,
    }
}
