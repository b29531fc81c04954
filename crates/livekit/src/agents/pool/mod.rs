//! The workers of agents and their jobs, without sockets and clocks.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use livekit_protocol as lk;
use livekit_protocol::{JobStatus, JobType, WorkerStatus, server_message, worker_message};

use super::job_token;
use crate::ids::IdKind;
use crate::token::Keys;

/// How long a worker may take to register, and to say whether it takes a job.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The most workers, and jobs that wait for an answer.
const MAX_WORKERS: usize = 10_000;
const MAX_OFFERS: usize = 10_000;

/// The most jobs of a worker.
const MAX_JOBS: usize = 10_000;

/// The attribute of a participant with the name of its agent.
const AGENT_NAME: &str = "lk.agent_name";

/// A connection of a worker.
pub(crate) type WorkerKey = u64;

/// An effect that the pool asks its owner for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// A message goes to a worker.
    Send(WorkerKey, lk::ServerMessage),
    /// The connection of a worker ends.
    Close(WorkerKey),
    /// A job of a dispatch has another state.
    Changed(lk::Job),
}

/// The workers and their jobs.
#[derive(Debug, Default)]
pub(super) struct Pool {
    keys: Keys,
    /// The description of this server.
    server: lk::ServerInfo,
    workers: BTreeMap<WorkerKey, Worker>,
    next: WorkerKey,
    /// The jobs that wait for an answer, by their ids.
    offers: HashMap<String, Offer>,
}

#[derive(Debug)]
struct Worker {
    /// The API key of its token.
    key: String,
    id: String,
    connected: Instant,
    registered: Option<Registered>,
    status: WorkerStatus,
    load: f32,
    jobs: HashMap<String, lk::Job>,
}

#[derive(Debug)]
struct Registered {
    kind: JobType,
    name: String,
    namespace: String,
    deployment: String,
    permission: lk::ParticipantPermission,
}

/// A job that waits for the answer of a worker.
#[derive(Debug)]
struct Offer {
    job: lk::Job,
    to: WorkerKey,
    until: Instant,
    /// The workers that did not take it.
    asked: HashSet<WorkerKey>,
}

impl Worker {
    /// Returns whether it is for a job.
    fn fits(&self, job: &lk::Job) -> bool {
        self.registered.as_ref().is_some_and(|it| {
            it.kind == job.r#type()
                && it.name == job.agent_name
                && it.namespace == job.namespace
                && it.deployment == job.deployment
        })
    }

    fn is_free(&self) -> bool {
        self.status == WorkerStatus::WsAvailable && self.load < 1.0 && self.jobs.len() < MAX_JOBS
    }
}

impl Pool {
    pub(super) fn new(keys: Keys, server: lk::ServerInfo) -> Self {
        Pool {
            keys,
            server,
            ..Pool::default()
        }
    }

    /// Adds a connection whose token is of this API key. Returns `None` if there are too many.
    pub(super) fn connect(&mut self, key: &str, now: Instant) -> Option<WorkerKey> {
        if self.workers.len() >= MAX_WORKERS {
            return None;
        }
        self.next = self.next.wrapping_add(1);
        let worker = Worker {
            key: key.to_owned(),
            id: IdKind::Worker.random(),
            connected: now,
            registered: None,
            status: WorkerStatus::WsAvailable,
            load: 0.0,
            jobs: HashMap::new(),
        };
        self.workers.insert(self.next, worker);
        Some(self.next)
    }

    /// Forgets a connection. Its jobs have failed, and those that it was asked about go to others.
    pub(super) fn disconnect(&mut self, worker: WorkerKey, now: Instant) -> Vec<Action> {
        let mut actions = Vec::new();
        let Some(gone) = self.workers.remove(&worker) else {
            return actions;
        };
        for (_, mut job) in gone.jobs {
            finish(&mut job, JobStatus::JsFailed, "the worker has gone");
            actions.push(Action::Changed(job));
        }
        let asked = self.offers.values().filter(|it| it.to == worker);
        let asked: Vec<String> = asked.map(|it| it.job.id.clone()).collect();
        for id in asked {
            actions.extend(self.ask_another(&id, now));
        }
        actions
    }

    /// Returns the namespaces of the workers for jobs of a kind by agents of a name.
    pub(super) fn namespaces(&self, kind: JobType, name: &str) -> HashSet<String> {
        let registered = self
            .workers
            .values()
            .filter_map(|it| it.registered.as_ref());
        let fitting = registered.filter(|it| it.kind == kind && it.name == name);
        fitting.map(|it| it.namespace.clone()).collect()
    }

    /// Looks for a worker that takes a job.
    pub(super) fn launch(&mut self, job: lk::Job, now: Instant) -> Vec<Action> {
        if self.offers.len() >= MAX_OFFERS {
            return Vec::new();
        }
        let id = job.id.clone();
        let offer = Offer {
            job,
            to: 0,
            until: now,
            asked: HashSet::new(),
        };
        self.offers.insert(id.clone(), offer);
        self.ask_another(&id, now)
    }

    /// Asks the worker with the least load that was not asked before.
    fn ask_another(&mut self, id: &str, now: Instant) -> Vec<Action> {
        let Some(offer) = self.offers.get_mut(id) else {
            return Vec::new();
        };
        let fitting = self.workers.iter().filter(|(key, worker)| {
            worker.fits(&offer.job) && worker.is_free() && !offer.asked.contains(key)
        });
        let least = fitting.min_by(|(_, a), (_, b)| a.load.total_cmp(&b.load));
        let Some((&key, worker)) = least else {
            let offer = self.offers.remove(id);
            return offer.map_or_else(Vec::new, |mut offer| {
                finish(
                    &mut offer.job,
                    JobStatus::JsFailed,
                    "no worker is available",
                );
                vec![Action::Changed(offer.job)]
            });
        };
        offer.to = key;
        offer.until = now.checked_add(ANSWER_LIMIT).unwrap_or(now);
        offer.asked.insert(key);
        let state = offer.job.state.get_or_insert_default();
        state.worker_id.clone_from(&worker.id);
        let request = lk::AvailabilityRequest {
            job: Some(offer.job.clone()),
            resuming: false,
        };
        vec![send(key, server_message::Message::Availability(request))]
    }

    /// Takes a message of a worker. `seconds` is the time since 1970.
    pub(super) fn message(
        &mut self,
        worker: WorkerKey,
        message: lk::WorkerMessage,
        now: Instant,
        seconds: u64,
    ) -> Vec<Action> {
        use worker_message::Message;
        let Some(from) = self.workers.get_mut(&worker) else {
            return Vec::new();
        };
        let is_registered = from.registered.is_some();
        match (message.message, is_registered) {
            (Some(Message::Ping(ping)), _) => {
                let pong = lk::WorkerPong {
                    last_timestamp: ping.timestamp,
                    timestamp: i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX),
                };
                vec![send(worker, server_message::Message::Pong(pong))]
            }
            (Some(Message::Register(request)), false) => self.register(worker, request),
            (Some(Message::Availability(answer)), true) => {
                self.answered(worker, answer, now, seconds)
            }
            (Some(Message::UpdateWorker(update)), true) => {
                from.load = update.load;
                if let Some(status) = update.status {
                    from.status = WorkerStatus::try_from(status).unwrap_or(WorkerStatus::WsFull);
                }
                Vec::new()
            }
            (Some(Message::UpdateJob(update)), true) => {
                let status = update.status();
                let Some(mut job) = from.jobs.remove(&update.job_id) else {
                    return Vec::new();
                };
                if matches!(status, JobStatus::JsSuccess | JobStatus::JsFailed) {
                    finish(&mut job, status, &update.error);
                } else {
                    job.state.get_or_insert_default().status = update.status;
                    from.jobs.insert(update.job_id, job.clone());
                }
                vec![Action::Changed(job)]
            }
            (Some(Message::SimulateJob(_) | Message::MigrateJob(_)), true) => Vec::new(),
            // It has to register first, and only once.
            (_, _) => vec![Action::Close(worker)],
        }
    }

    fn register(&mut self, key: WorkerKey, request: lk::RegisterWorkerRequest) -> Vec<Action> {
        let Some(worker) = self.workers.get_mut(&key) else {
            return Vec::new();
        };
        let Ok(kind) = JobType::try_from(request.r#type) else {
            return vec![Action::Close(key)];
        };
        let all = || lk::ParticipantPermission {
            can_subscribe: true,
            can_publish: true,
            can_publish_data: true,
            can_update_metadata: true,
            ..lk::ParticipantPermission::default()
        };
        worker.registered = Some(Registered {
            kind,
            name: request.agent_name,
            namespace: request.namespace.unwrap_or_default(),
            deployment: request.deployment,
            permission: request.allowed_permissions.unwrap_or_else(all),
        });
        let response = lk::RegisterWorkerResponse {
            worker_id: worker.id.clone(),
            server_info: Some(self.server.clone()),
            ..lk::RegisterWorkerResponse::default()
        };
        vec![send(key, server_message::Message::Register(response))]
    }

    fn answered(
        &mut self,
        key: WorkerKey,
        answer: lk::AvailabilityResponse,
        now: Instant,
        seconds: u64,
    ) -> Vec<Action> {
        let is_asked = |offer: &Offer| offer.to == key;
        if !self.offers.get(&answer.job_id).is_some_and(is_asked) {
            return Vec::new();
        }
        if answer.terminate || !answer.available {
            if !answer.terminate {
                return self.ask_another(&answer.job_id, now);
            }
            let offer = self.offers.remove(&answer.job_id);
            return offer.map_or_else(Vec::new, |mut offer| {
                finish(&mut offer.job, JobStatus::JsSuccess, "");
                vec![Action::Changed(offer.job)]
            });
        }
        let (Some(offer), Some(worker)) = (
            self.offers.remove(&answer.job_id),
            self.workers.get_mut(&key),
        ) else {
            return Vec::new();
        };
        let Some(registered) = &worker.registered else {
            return Vec::new();
        };
        let mut job = offer.job;
        let state = job.state.get_or_insert_default();
        state.status = JobStatus::JsRunning.into();
        state
            .participant_identity
            .clone_from(&answer.participant_identity);
        let nanos = seconds.saturating_mul(1_000_000_000);
        state.started_at = i64::try_from(nanos).unwrap_or(i64::MAX);
        let room = job.room.as_ref().map(|room| room.name.clone());
        let mut answer = answer;
        let name = registered.name.clone();
        answer
            .participant_attributes
            .insert(AGENT_NAME.to_owned(), name);
        let grants = job_token::grants(room.unwrap_or_default(), answer, &registered.permission);
        let token = self
            .keys
            .sign(&worker.key, &grants, seconds, job_token::VALID);
        let Ok(token) = token else {
            return vec![Action::Close(key)];
        };
        worker.jobs.insert(job.id.clone(), job.clone());
        let assignment = lk::JobAssignment {
            job: Some(job.clone()),
            url: None,
            token,
        };
        vec![
            send(key, server_message::Message::Assignment(assignment)),
            Action::Changed(job),
        ]
    }

    /// Ends the running jobs of a dispatch.
    pub(super) fn terminate(&mut self, dispatch: &str) -> Vec<Action> {
        self.offers
            .retain(|_, offer| offer.job.dispatch_id != dispatch);
        self.end_jobs(|job| job.dispatch_id == dispatch, JobStatus::JsSuccess, "")
    }

    /// Ends the running jobs of an agent that has left a room.
    pub(super) fn left(&mut self, room: &str, identity: &str) -> Vec<Action> {
        let is_its = |job: &lk::Job| room_of(job) == room && identity_of(job) == Some(identity);
        self.end_jobs(is_its, JobStatus::JsFailed, "agent worker left the room")
    }

    /// Tells workers that their jobs have ended.
    fn end_jobs(
        &mut self,
        is_ended: impl Fn(&lk::Job) -> bool,
        status: JobStatus,
        error: &str,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        for (key, worker) in &mut self.workers {
            let ended = worker.jobs.extract_if(|_, job| is_ended(job));
            for (job_id, mut job) in ended {
                let termination = lk::JobTermination { job_id };
                actions.push(send(
                    *key,
                    server_message::Message::Termination(termination),
                ));
                finish(&mut job, status, error);
                actions.push(Action::Changed(job));
            }
        }
        actions
    }

    /// Closes connections that do not register, and gives jobs to others whose worker is silent.
    pub(super) fn tick(&mut self, now: Instant) -> Vec<Action> {
        let is_late = |since: Instant| now.saturating_duration_since(since) >= ANSWER_LIMIT;
        let silent = self.workers.iter();
        let silent = silent.filter(|(_, it)| it.registered.is_none() && is_late(it.connected));
        let mut actions: Vec<Action> = silent.map(|(key, _)| Action::Close(*key)).collect();
        let late = self.offers.values().filter(|it| it.until <= now);
        let late: Vec<String> = late.map(|it| it.job.id.clone()).collect();
        for id in late {
            actions.extend(self.ask_another(&id, now));
        }
        actions
    }
}

fn send(to: WorkerKey, message: server_message::Message) -> Action {
    let message = lk::ServerMessage {
        message: Some(message),
    };
    Action::Send(to, message)
}

/// Returns the name of a job's room.
pub(super) fn room_of(job: &lk::Job) -> &str {
    job.room.as_ref().map_or("", |room| &room.name)
}

/// Returns the identity of the participant that does a job, once a worker has taken it.
pub(super) fn identity_of(job: &lk::Job) -> Option<&str> {
    let identity = &job.state.as_ref()?.participant_identity;
    (!identity.is_empty()).then_some(identity)
}

/// Notes the end of a job.
fn finish(job: &mut lk::Job, status: JobStatus, error: &str) {
    let state = job.state.get_or_insert_default();
    state.status = status.into();
    error.clone_into(&mut state.error);
}

#[cfg(test)]
mod tests;
