#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use super::*;

const SECONDS: u64 = 1_800_000_000;

fn pool() -> Pool {
    let keys = Keys::new([("devkey".to_owned(), "secret".into())]);
    Pool::new(keys, lk::ServerInfo::default())
}

fn of(message: worker_message::Message) -> lk::WorkerMessage {
    lk::WorkerMessage {
        message: Some(message),
    }
}

fn register(pool: &mut Pool, name: &str, now: Instant) -> WorkerKey {
    let key = pool.connect("devkey", now).unwrap();
    let request = lk::RegisterWorkerRequest {
        agent_name: name.to_owned(),
        ..Default::default()
    };
    let message = of(worker_message::Message::Register(request));
    let actions = pool.message(key, message, now, SECONDS);
    let [
        Action::Send(
            to,
            lk::ServerMessage {
                message: Some(message),
            },
        ),
    ] = &*actions
    else {
        unreachable!("{actions:?}")
    };
    let server_message::Message::Register(response) = message else {
        unreachable!("{message:?}")
    };
    assert_eq!(*to, key);
    assert!(response.worker_id.starts_with("AW_"));
    key
}

fn job(name: &str) -> lk::Job {
    lk::Job {
        id: "AJ_1".to_owned(),
        dispatch_id: "AD_1".to_owned(),
        agent_name: name.to_owned(),
        room: Some(lk::Room {
            name: "den".to_owned(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn answer(available: bool) -> lk::WorkerMessage {
    of(worker_message::Message::Availability(
        lk::AvailabilityResponse {
            job_id: "AJ_1".to_owned(),
            available,
            participant_identity: "agent-1".to_owned(),
            ..Default::default()
        },
    ))
}

/// Returns the worker that is asked whether it takes a job.
fn asked(actions: &[Action]) -> WorkerKey {
    match actions {
        [
            Action::Send(
                key,
                lk::ServerMessage {
                    message: Some(server_message::Message::Availability(_)),
                },
            ),
        ] => *key,
        other => unreachable!("{other:?}"),
    }
}

fn status(action: &Action) -> JobStatus {
    match action {
        Action::Changed(job) => job.state.clone().unwrap().status(),
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn a_worker_that_takes_a_job_gets_a_token_for_its_room() {
    let now = Instant::now();
    let mut pool = pool();
    let worker = register(&mut pool, "bot", now);
    assert_eq!(asked(&pool.launch(job("bot"), now)), worker);
    let actions = pool.message(worker, answer(true), now, SECONDS);
    let [
        Action::Send(
            _,
            lk::ServerMessage {
                message: Some(server_message::Message::Assignment(given)),
            },
        ),
        changed,
    ] = &*actions
    else {
        unreachable!("{actions:?}")
    };
    assert_eq!(status(changed), JobStatus::JsRunning);
    let grants = pool.keys.verify(&given.token, SECONDS).unwrap().grants;
    assert_eq!(grants.join(), Ok("den"));
    assert_eq!(grants.identity, "agent-1");
    assert_eq!(grants.kind, "agent");
    assert_eq!(grants.attributes[AGENT_NAME], "bot");
    let done = of(worker_message::Message::UpdateJob(lk::UpdateJobStatus {
        job_id: "AJ_1".to_owned(),
        status: JobStatus::JsSuccess.into(),
        ..Default::default()
    }));
    let actions = pool.message(worker, done, now, SECONDS);
    assert_eq!(status(&actions[0]), JobStatus::JsSuccess);
}

#[test]
fn a_job_goes_to_the_next_worker_if_one_refuses_is_silent_or_goes() {
    let now = Instant::now();
    let mut pool = pool();
    let workers: Vec<_> = (0..4).map(|_| register(&mut pool, "bot", now)).collect();
    let first = asked(&pool.launch(job("bot"), now));
    let second = asked(&pool.message(first, answer(false), now, SECONDS));
    assert!(pool.tick(now).is_empty());
    let late = now + ANSWER_LIMIT;
    let third = asked(&pool.tick(late));
    // An answer that is too late does not count.
    assert!(pool.message(second, answer(true), late, SECONDS).is_empty());
    let fourth = asked(&pool.disconnect(third, late));
    let all: HashSet<_> = [first, second, third, fourth].into();
    assert_eq!(all, workers.into_iter().collect());
    let actions = pool.message(fourth, answer(false), late, SECONDS);
    assert_eq!(status(&actions[0]), JobStatus::JsFailed);
}

#[test]
fn the_least_loaded_worker_of_the_right_name_is_asked() {
    let now = Instant::now();
    let mut pool = pool();
    let (busy, idle, full) = (
        register(&mut pool, "bot", now),
        register(&mut pool, "bot", now),
        register(&mut pool, "bot", now),
    );
    register(&mut pool, "other", now);
    for (worker, load, status) in [(busy, 0.5, None), (idle, 0.1, None), (full, 0.0, Some(1))] {
        let update = lk::UpdateWorkerStatus {
            load,
            status,
            ..Default::default()
        };
        let message = of(worker_message::Message::UpdateWorker(update));
        assert!(pool.message(worker, message, now, SECONDS).is_empty());
    }
    assert_eq!(asked(&pool.launch(job("bot"), now)), idle);
    assert_eq!(pool.namespaces(JobType::JtRoom, "bot").len(), 1);
    assert!(pool.namespaces(JobType::JtPublisher, "bot").is_empty());
}

#[test]
fn a_dispatch_that_ends_ends_its_jobs() {
    let now = Instant::now();
    let mut pool = pool();
    let worker = register(&mut pool, "bot", now);
    pool.launch(job("bot"), now);
    pool.message(worker, answer(true), now, SECONDS);
    assert!(pool.terminate("AD_2").is_empty());
    let actions = pool.terminate("AD_1");
    assert!(matches!(&actions[0], Action::Send(key, _) if *key == worker));
    assert_eq!(status(&actions[1]), JobStatus::JsSuccess);
    assert!(pool.terminate("AD_1").is_empty());
}

#[test]
fn who_does_not_register_is_disconnected() {
    let now = Instant::now();
    let mut pool = pool();
    let silent = pool.connect("devkey", now).unwrap();
    assert_eq!(pool.tick(now + ANSWER_LIMIT), [Action::Close(silent)]);
    let early = pool.connect("devkey", now).unwrap();
    let actions = pool.message(early, answer(true), now, SECONDS);
    assert_eq!(actions, [Action::Close(early)]);
    let twice = register(&mut pool, "bot", now);
    let again = of(worker_message::Message::Register(Default::default()));
    let actions = pool.message(twice, again, now, SECONDS);
    assert_eq!(actions, [Action::Close(twice)]);
}
