//! `workers_info`: the load of media workers and of the threads of audio rooms. Janus has no such
//! request.

use portunus_audio::{AudioThreadStats, AudioThreads};
use portunus_core::Object;
use portunus_media::{MediaPlane, TurnState, WorkerStats};
use serde_json::{Value, json};

pub(super) fn info(media: &MediaPlane, audio: Option<&AudioThreads>) -> Object {
    let (stats, turn) = (media.worker_stats(), media.turn_states());
    let workers = stats
        .iter()
        .zip(&turn)
        .map(|(stats, turn)| worker(stats, turn));
    let audio = audio.map(AudioThreads::thread_stats);
    let audio = audio.iter().flatten().map(audio_thread);
    Object::new()
        .with("workers", workers.collect::<Value>())
        .with("audio_threads", audio.collect::<Value>())
}

fn audio_thread(stats: &AudioThreadStats) -> Value {
    json!({
        "thread": stats.index,
        "rooms": stats.rooms,
        "participants": stats.participants,
        "late_median": stats.late_median.as_secs_f64(),
        "late_p99": stats.late_p99.as_secs_f64(),
        "late_max": stats.late_max.as_secs_f64(),
        "core_share": stats.core_share,
    })
}

fn worker(stats: &WorkerStats, turn: &TurnState) -> Value {
    let (relayed, fault) = match turn {
        TurnState::Off | TurnState::Allocating => (None, None),
        TurnState::Allocated(relayed) => (Some(relayed.to_string()), None),
        TurnState::Failed(fault) => (None, Some(fault.to_string())),
        TurnState::Unavailable(why) => (None, Some(why.clone())),
    };
    json!({
        "worker": stats.index,
        "peers": stats.peers,
        "lag_median": stats.lag_median.as_secs_f64(),
        "lag_max": stats.lag_max.as_secs_f64(),
        "silent": stats.silent.as_secs_f64(),
        "core_share": stats.core_share,
        "packets_in": stats.received_packets,
        "packets_out": stats.sent_packets,
        "bits_in": stats.received_bits,
        "bits_out": stats.sent_bits,
        "relayed": relayed,
        "relayed_fault": fault,
    })
}
