//! Calls to telephones: `CreateSIPParticipant`.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use livekit_protocol::{CreateSipParticipantRequest, SipParticipantInfo, participant_info};
use portunus_telephony::{DialId, DialNews, Dialled};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::entrance::{OutgoingEntrance, Waiting};
use super::trunks::name;
use super::{CallEntry, Sip, attribute, error};
use crate::guest::{Guest, GuestProfile};
use crate::ids::IdKind;
use crate::limits;
use crate::services::{Answer, Code, ServiceError};

/// How long a telephone rings by default, and the longest time.
const RINGING: Duration = Duration::from_secs(30);
const LONGEST_RINGING: Duration = Duration::from_secs(80);

/// How long a call may take by default.
const LONGEST_CALL: Duration = Duration::from_secs(24 * 3_600);

/// The number of news that wait for the task of a call.
const NEWS: usize = 8;

/// A call that was begun.
struct Dialling {
    sip: Sip,
    dialled: DialId,
    waiting: Waiting,
    /// Gets the outcome, if somebody waits for the answer.
    answered: Option<oneshot::Sender<Answer<()>>>,
    rings_until: Instant,
    longest: Duration,
}

impl Sip {
    /// Calls a telephone, whose participant is in the room at once.
    pub(super) async fn call(
        &self,
        request: CreateSipParticipantRequest,
    ) -> Answer<SipParticipantInfo> {
        check(&request)?;
        let trunk = self.outbound(&request.sip_trunk_id)?;
        let number = match request.sip_number.is_empty() {
            true => trunk.numbers.first(),
            false => trunk.numbers.iter().find(|it| **it == request.sip_number),
        };
        let text = "sip_number is no number of the trunk";
        let number = number.ok_or_else(|| error(Code::InvalidArgument, text))?;
        let telephone = self.telephone()?;
        let unready = || error(Code::Unavailable, "the server is starting");
        let means = self.means().ok_or_else(unready)?;
        let hall = means.halls.open(&request.room_name, None);
        let hall = hall.map_err(|reason| error(Code::InvalidArgument, reason))?;
        let call_id = IdKind::SipCall.random();
        let identity = match request.participant_identity.is_empty() {
            true => format!("sip_{}", request.sip_call_to),
            false => request.participant_identity.clone(),
        };
        let mut attributes = request.participant_attributes.clone();
        let mut set = |name: &str, value: &str| {
            attributes.insert(name.to_owned(), value.to_owned());
        };
        set(attribute::CALL_ID, &call_id);
        set(attribute::STATUS, "dialing");
        set(attribute::TRUNK, &request.sip_trunk_id);
        set(attribute::TRUNK_NUMBER, number);
        if !request.hide_phone_number {
            set(attribute::NUMBER, &request.sip_call_to);
        }
        let shown = match request.hide_phone_number {
            true => String::new(),
            false => request.sip_call_to.clone(),
        };
        let profile = GuestProfile {
            identity: identity.clone(),
            name: match request.participant_name.is_empty() {
                true => format!("Phone {shown}").trim().to_owned(),
                false => request.participant_name.clone(),
            },
            metadata: request.participant_metadata.clone(),
            attributes,
            kind: participant_info::Kind::Sip,
        };
        let entered = Guest::enter(&hall, &means.media, profile);
        let (guest, news) = entered
            .map_err(|refusal| ServiceError::new(Code::AlreadyExists, refusal.to_string()))?;
        let info = SipParticipantInfo {
            participant_id: guest.sid().to_owned(),
            participant_identity: identity.clone(),
            room_name: hall.name.clone(),
            sip_call_id: call_id,
        };
        let waiting = Waiting::default();
        *waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some((guest, news));
        let (tell, news) = mpsc::channel(NEWS);
        let dialled = telephone.dial(Dialled {
            to: request.sip_call_to.clone(),
            trunk: Some(name(&request.sip_trunk_id, number)),
            display: None,
            room: Arc::new(OutgoingEntrance {
                sip: self.clone(),
                entry: CallEntry {
                    room: hall.name.clone(),
                    identity,
                },
                waiting: waiting.clone(),
            }),
            tell,
        });
        let refused = |fault: portunus_telephony::DialError| {
            ServiceError::new(Code::InvalidArgument, fault.to_string())
        };
        let dialled = dialled.map_err(refused)?;
        let (answered, outcome) = oneshot::channel();
        let ringing = duration(request.ringing_timeout.as_ref().map(|it| it.seconds));
        let longest = duration(request.max_call_duration.as_ref().map(|it| it.seconds));
        let dialling = Dialling {
            sip: self.clone(),
            dialled,
            waiting,
            answered: Some(answered),
            rings_until: Instant::now() + ringing.unwrap_or(RINGING).min(LONGEST_RINGING),
            longest: longest.unwrap_or(LONGEST_CALL).min(LONGEST_CALL),
        };
        tokio::spawn(dialling.run(news));
        if request.wait_until_answered {
            let gone = || error(Code::Canceled, "the call has ended");
            outcome.await.map_err(|_| gone())??;
        }
        Ok(info)
    }
}

impl Dialling {
    /// Follows the call to its end.
    async fn run(mut self, mut news: mpsc::Receiver<DialNews>) {
        let mut limit = self.rings_until;
        loop {
            let news = tokio::select! {
                news = news.recv() => news,
                () = sleep_until(limit) => {
                    self.end();
                    // The end is still told.
                    limit = Instant::now() + LONGEST_CALL;
                    continue;
                }
            };
            match news {
                Some(DialNews::Ringing) => {
                    let waiting = self.waiting.lock();
                    let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
                    if let Some((guest, _)) = &*waiting {
                        let status = (attribute::STATUS.to_owned(), "ringing".to_owned());
                        guest.set_attributes([status]);
                    }
                }
                Some(DialNews::Answered(_)) => {
                    limit = Instant::now() + self.longest;
                    self.tell(Ok(()));
                }
                Some(DialNews::Ended { code, reason }) => {
                    self.tell(Err(ServiceError::sip(code, &reason)));
                    break;
                }
                None => break,
            }
        }
        // Unless it was answered, the participant is still here.
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let guest = waiting.take();
        drop(waiting);
        drop(guest);
    }

    fn tell(&mut self, outcome: Answer<()>) {
        if let Some(answered) = self.answered.take() {
            // The caller may not wait.
            let _ = answered.send(outcome);
        }
    }

    fn end(&self) {
        if let Ok(telephone) = self.sip.telephone() {
            telephone.end(self.dialled);
        }
    }
}

fn check(request: &CreateSipParticipantRequest) -> Answer<()> {
    let wrong = |text: &'static str| Err(error(Code::InvalidArgument, text));
    let missing = |what: &str| {
        Err(ServiceError::unimplemented(format!(
            "{what}: not implemented"
        )))
    };
    if request.room_name.is_empty() {
        return wrong("room_name is required");
    }
    if request.sip_call_to.is_empty() {
        return wrong("sip_call_to is required");
    }
    if request.trunk.is_some() || request.sip_trunk_id.is_empty() {
        return match request.trunk.is_some() {
            true => missing("a trunk within the request"),
            false => wrong("sip_trunk_id is required"),
        };
    }
    if request.room_name.len() > limits::ROOM_NAME
        || request.participant_identity.len() > limits::IDENTITY
        || request.participant_name.len() > limits::PARTICIPANT_NAME
        || request.participant_metadata.len() > limits::METADATA
        || !limits::attributes_fit(&request.participant_attributes)
    {
        return wrong("a name, the metadata or the attributes exceed the limit");
    }
    if !request.dtmf.is_empty() {
        return missing("dtmf");
    }
    if !request.headers.is_empty() {
        return missing("headers");
    }
    Ok(())
}

fn duration(seconds: Option<i64>) -> Option<Duration> {
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    seconds
        .filter(|seconds| *seconds > 0)
        .map(Duration::from_secs)
}
