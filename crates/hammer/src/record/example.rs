//! An example report for tests.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::BTreeMap;

use serde_json::json;

use crate::record::{
    BareLoop, Carried, Ceiling, Criterion, Delays, LinkUse, LoadUse, Machine, Report, RunRecord,
    Sample, Scenario, Server, ServerUse, Step, Summary, ThreadUse,
};

/// Returns two rounds of two servers. The first server carries 23 times what the second does.
pub(crate) fn report() -> Report {
    let mut runs = Vec::new();
    for round in 1..=2 {
        runs.push(run(
            "portunus",
            round,
            &[500, 1_000, 2_000, 4_000, 6_000, 7_000, 8_000],
            7_200.0,
        ));
        runs.push(run("janus", round, &[50, 100, 200, 300, 400], 300.0));
    }
    Report::new("One source to many viewers, 2 Mbit/s each", runs)
}

fn run(name: &str, round: u32, participants: &[u32], most: f64) -> RunRecord {
    let jitter = 1.0 + 0.02 * f64::from(round);
    let (mut samples, mut steps) = (Vec::new(), Vec::new());
    for (at, n) in participants.iter().enumerate() {
        let load = f64::from(*n) / most / jitter;
        let share = if load < 1.0 { 1.0 } else { 1.0 / load };
        let (pps, bps) = (
            f64::from(*n) * 210.0 * share,
            f64::from(*n) * 2.03e6 * share,
        );
        let delay = delays(40.0 + 30.0 / (1.05 - load.min(1.0)));
        let cpu = load.min(1.0);
        let memory = 20_000_000 + u64::from(*n) * if name == "janus" { 190_000 } else { 20_000 };
        for second in 0..8u32 {
            let joining = second < 2;
            samples.push(Sample {
                at_s: at as f64 * 8.0 + f64::from(second) + 1.0,
                length_s: 1.0,
                participants: *n,
                joined: if joining { n / 2 } else { 0 },
                expected_packets: u64::from(*n) * 210,
                received_packets: pps as u64,
                received_bytes: (bps / 8.0) as u64,
                delay: Some(delay),
                send_late: None,
                join_delay: joining.then(|| delays(90_000.0)),
                longest_gap_ms: Some(34.0),
                server: Some(ServerUse {
                    cpu_cores: cpu,
                    core_busy_share: vec![cpu],
                    rss_bytes: memory + 2_000_000,
                    pss_bytes: Some(memory),
                    threads: 6,
                    busiest: vec![ThreadUse {
                        name: "worker-0".into(),
                        id: 7,
                        cpu_cores: cpu * 0.98,
                    }],
                }),
                link: Some(LinkUse {
                    from_server_bps: bps * 1.035,
                    from_server_pps: pps / 7.0,
                    to_server_bps: 2e6 + f64::from(*n) * 900.0,
                    to_server_pps: 210.0 + f64::from(*n),
                    ..LinkUse::default()
                }),
                load: Some(LoadUse {
                    cpu_cores: cpu * 0.6,
                    core_busy_share: vec![cpu * 0.65],
                    ..LoadUse::default()
                }),
                ..Sample::default()
            });
        }
        steps.push(Step {
            start_s: at as f64 * 8.0 + 2.0,
            end_s: at as f64 * 8.0 + 8.0,
            participants: *n,
            peer_connections: *n,
            limited_bps: None,
            delivered_share: share,
            received_bps: bps,
            received_pps: pps,
            carried: share >= 0.995,
            in_time: load < 0.9,
            loop_cpu_ns_per_packet: Some(380.0),
            server_cpu_cores: Some(cpu),
            server_rss_bytes: Some(memory + 2_000_000),
            server_pss_bytes: Some(memory),
            server_threads: Some(6),
            load_cpu_cores: Some(cpu * 0.6),
            delay: Some(delay),
            calm: None,
            sound: None,
            far: None,
            send_late: None,
            longest_gap_ms: Some(34.0),
        });
    }
    let best = steps.iter().rfind(|step| step.in_time).unwrap().clone();
    let most = Carried::of(steps.iter().rfind(|step| step.carried).unwrap());
    let in_time = BareLoop {
        delivered_bps: 19.6e9 * jitter,
        delivered_pps: 2.03e6 * jitter,
        delivered_share: 1.0,
        viewers: 9_660.0 * jitter,
        participants: Some(9_660.0 * jitter),
        addresses: 9_600,
        frames_joined: 1,
        sources_joined: false,
        padded: false,
        crypto_ns: 185.0,
        send_ns: 305.0,
        batch_bytes: 192 << 10,
        cpu_share: Some(0.999),
    };
    let at_all = BareLoop {
        delivered_bps: in_time.delivered_bps * 1.2,
        delivered_pps: in_time.delivered_pps * 1.2,
        viewers: in_time.viewers * 1.2,
        participants: Some(in_time.viewers * 1.2),
        frames_joined: 6,
        ..in_time.clone()
    };
    let ceiling = Ceiling {
        srtp_profile: "SRTP_AEAD_AES_128_GCM".into(),
        in_time,
        at_all: Some(at_all),
    };
    let mut run = RunRecord {
        scenario: Scenario {
            name: "streaming".into(),
            options: BTreeMap::from([
                ("bitrate".into(), json!(2_000_000)),
                ("packets-per-frame".into(), json!(7)),
            ]),
        },
        server: Server {
            name: name.into(),
            version: Some("1.1.2".into()),
            url: Some("ws://10.99.0.1:8188/".into()),
            command: Some(format!("{name} --config <x>")),
            cores: vec![0],
            srtp_profile: Some("SRTP_AEAD_AES_128_GCM".into()),
            webhook: None,
        },
        version: "0.1.0".into(),
        machine: Machine {
            processor: "An Example Processor".into(),
            cores: 2,
            kernel: "6.12.0".into(),
        },
        started_unix_s: 1_760_000_000.0 + f64::from(round) * 100.0,
        round,
        samples,
        steps,
        summary: Summary {
            criterion: Criterion::InTime,
            in_time_at_least_share: 0.99,
            at_all: Some(most),
            carried_participants: best.participants,
            carried_bps: best.received_bps,
            carried_pps: best.received_pps,
            delivered_share: best.delivered_share,
            server_cpu_cores: best.server_cpu_cores,
            bytes_per_participant: Some(if name == "janus" { 190_000.0 } else { 20_000.0 }),
            joins: 1_000,
            failed_joins: 0,
            joins_per_s: Some(900.0),
            joins_per_cpu_s: Some(if name == "janus" { 280.0 } else { 1_700.0 }),
            join_delay: Some(delays(90_000.0)),
            delay: best.delay,
            calm: None,
            longest_gap_ms: Some(34.0),
            peer_connections: best.peer_connections,
            cpu_ns_per_packet: best.cpu_ns_per_packet(),
            bytes_per_peer_connection: None,
            limited_bps: None,
            resumed: None,
            leaving: None,
            held: None,
            sound: None,
            far: None,
            set_up: None,
            registered: None,
            quality: None,
            recorded: None,
            longest_gap_frames: Some(1.02),
            ceiling_share: None,
            efficiency_share: None,
            warnings: if name == "janus" {
                vec!["an example of a <warning>".into()]
            } else {
                Vec::new()
            },
        },
        ceiling: Some(ceiling),
        lateness: Vec::new(),
        browsers: None,
        cluster: None,
    };
    run.compare();
    run
}

fn delays(p50_us: f64) -> Delays {
    Delays {
        count: 1_000,
        min_us: p50_us * 0.6,
        p50_us,
        p90_us: p50_us * 1.8,
        p99_us: p50_us * 4.0,
        max_us: p50_us * 9.0,
    }
}
