//! `workers_info`: how busy the media workers are; an addition of ours.

use portunus_media::WorkerStats;
use serde_json::{Value, json};

use crate::{Gateway, Object};

pub(super) fn info(gateway: &Gateway) -> Object {
    let workers = gateway.context().media.worker_stats();
    let workers = workers.iter().map(worker);
    Object::new().with("workers", workers.collect::<Value>())
}

fn worker(stats: &WorkerStats) -> Value {
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
    })
}
