#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use livekit_protocol::{JobStatus, server_message, worker_message};

use super::*;

fn agents() -> Agents {
    let keys = Keys::new([("devkey".to_owned(), "secret".into())]);
    Agents::new(keys, lk::ServerInfo::default())
}

fn room() -> lk::Room {
    lk::Room {
        name: "den".to_owned(),
        ..lk::Room::default()
    }
}

fn report(agents: &Agents, worker: &Connection, message: worker_message::Message) {
    let message = lk::WorkerMessage {
        message: Some(message),
    };
    agents.message(worker.key, message);
}

fn next(worker: &mut Connection) -> server_message::Message {
    worker.messages.try_recv().unwrap().message.unwrap()
}

fn worker(agents: &Agents, kind: JobType, name: &str) -> Connection {
    let mut worker = agents.connect("devkey").unwrap();
    let request = lk::RegisterWorkerRequest {
        r#type: kind.into(),
        agent_name: name.to_owned(),
        ..lk::RegisterWorkerRequest::default()
    };
    report(agents, &worker, worker_message::Message::Register(request));
    assert!(matches!(
        next(&mut worker),
        server_message::Message::Register(_)
    ));
    worker
}

fn offered(worker: &mut Connection) -> lk::Job {
    match next(worker) {
        server_message::Message::Availability(request) => request.job.unwrap(),
        other => unreachable!("{other:?}"),
    }
}

fn accept(agents: &Agents, worker: &Connection, job: &lk::Job) {
    let answer = lk::AvailabilityResponse {
        job_id: job.id.clone(),
        available: true,
        participant_identity: "agent-1".to_owned(),
        ..lk::AvailabilityResponse::default()
    };
    report(
        agents,
        worker,
        worker_message::Message::Availability(answer),
    );
}

#[test]
fn a_room_that_begins_gets_the_agents_without_a_name() {
    let agents = agents();
    let mut nameless = worker(&agents, JobType::JtRoom, "");
    let mut named = worker(&agents, JobType::JtRoom, "bot");
    agents.room_started(&room(), &[]);
    let job = offered(&mut nameless);
    assert!(named.messages.try_recv().is_err());
    accept(&agents, &nameless, &job);
    assert!(matches!(
        next(&mut nameless),
        server_message::Message::Assignment(_)
    ));
    let dispatches = agents.dispatches("den", "");
    let state = dispatches[0].state.clone().unwrap();
    assert_eq!(
        state.jobs[0].state.clone().unwrap().status(),
        JobStatus::JsRunning
    );
    agents.room_finished("den");
    assert!(matches!(
        next(&mut nameless),
        server_message::Message::Termination(_)
    ));
    assert!(agents.dispatches("den", "").is_empty());
}

#[test]
fn participants_and_publishers_get_agents_of_their_kind() {
    let agents = agents();
    let mut publishers = worker(&agents, JobType::JtPublisher, "bot");
    let mut joiners = worker(&agents, JobType::JtParticipant, "bot");
    let dispatch = lk::RoomAgentDispatch {
        agent_name: "bot".to_owned(),
        metadata: "m".to_owned(),
        ..lk::RoomAgentDispatch::default()
    };
    agents.room_started(&room(), &[dispatch]);
    let mut al = lk::ParticipantInfo {
        identity: "al".to_owned(),
        ..lk::ParticipantInfo::default()
    };
    agents.participant(JobType::JtParticipant, &room(), &al);
    let job = offered(&mut joiners);
    assert_eq!(job.participant.unwrap().identity, "al");
    assert_eq!(job.metadata, "m");
    assert!(publishers.messages.try_recv().is_err());
    agents.participant(JobType::JtPublisher, &room(), &al);
    assert_eq!(offered(&mut publishers).r#type(), JobType::JtPublisher);
    al.kind = Kind::Agent.into();
    agents.participant(JobType::JtParticipant, &room(), &al);
    assert!(joiners.messages.try_recv().is_err());
}

#[test]
fn a_dispatch_is_made_listed_and_ended() {
    let agents = agents();
    let mut bot = worker(&agents, JobType::JtRoom, "bot");
    let request = lk::CreateAgentDispatchRequest {
        agent_name: "bot".to_owned(),
        room: "den".to_owned(),
        ..lk::CreateAgentDispatchRequest::default()
    };
    let made = agents.dispatch(request, &room(), &[]).unwrap();
    assert!(made.id.starts_with("AD_"));
    let job = offered(&mut bot);
    assert_eq!(job.dispatch_id, made.id);
    accept(&agents, &bot, &job);
    next(&mut bot);
    assert_eq!(agents.dispatches("den", &made.id).len(), 1);
    assert!(agents.dispatches("den", "AD_other").is_empty());
    assert!(agents.end_dispatch("den", "AD_other").is_none());
    let ended = agents.end_dispatch("den", &made.id).unwrap();
    assert_eq!(ended.agents, ["agent-1"]);
    let jobs = ended.dispatch.state.unwrap().jobs;
    assert_eq!(
        jobs[0].state.clone().unwrap().status(),
        JobStatus::JsSuccess
    );
    assert!(agents.dispatches("den", "").is_empty());
    assert!(matches!(
        next(&mut bot),
        server_message::Message::Termination(_)
    ));
}

#[test]
fn the_job_of_an_agent_that_has_left_is_ended() {
    let agents = agents();
    let mut bot = worker(&agents, JobType::JtRoom, "");
    agents.room_started(&room(), &[]);
    let job = offered(&mut bot);
    accept(&agents, &bot, &job);
    next(&mut bot);
    agents.participant_left("den", "agent-2");
    agents.participant_left("other", "agent-1");
    assert!(bot.messages.try_recv().is_err());
    agents.participant_left("den", "agent-1");
    match next(&mut bot) {
        server_message::Message::Termination(it) => assert_eq!(it.job_id, job.id),
        other => unreachable!("{other:?}"),
    }
    let state = agents.dispatches("den", "")[0].state.clone().unwrap();
    let state = state.jobs[0].state.clone().unwrap();
    assert_eq!(state.status(), JobStatus::JsFailed);
    assert_eq!(state.error, "agent worker left the room");
}

#[test]
fn a_worker_that_reads_nothing_is_disconnected() {
    let agents = agents();
    let silent = worker(&agents, JobType::JtRoom, "bot");
    for _ in 0..=MAX_WAITING {
        report(
            &agents,
            &silent,
            worker_message::Message::Ping(lk::WorkerPing::default()),
        );
    }
    assert!(silent.messages.is_closed());
    agents.disconnect(silent.key);
    assert!(agents.state().workers.is_empty());
}
