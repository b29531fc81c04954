//! The figures of Janus Streamer.

use crate::catalogue::figure::{
    Figure, Load, Needs, Plot, Published, Ramp, Shape, Size, Work, X, Y,
};
use crate::catalogue::peers::Peer;

const WORK: Work = Work {
    title: "Janus Streamer",
    published: "CCNC 2026",
    machine: "up to 40 cores of an Intel Xeon Gold 5218R, 100 GbE, Linux 5.4 or later; the streaming plugin",
};

const PEERS: [Peer; 2] = [Peer::Portunus, Peer::Janus];

/// A search for the most viewers at a bit rate.
const fn at_rate(name: &'static str, scenario: &'static str, mbit_s: f64, most: u32) -> Load {
    Load {
        name,
        label: "",
        scenario,
        size: Size::Search {
            full: Ramp {
                step: most / 16,
                factor: 1.6,
                most,
                bisect: most / 50,
            },
            quick: Ramp {
                step: most / 30,
                factor: 3.0,
                most,
                bisect: 0,
            },
        },
        duration: 4.0,
        at: mbit_s,
        besides: 0,
        needs: Needs {
            ceiling: true,
            ..Needs::ONE_CORE
        },
    }
}

const RATE_05: Load = at_rate("stream-500k", "streaming --bitrate 500k", 0.5, 16_000);
const RATE_1: Load = at_rate("stream-1M", "streaming --bitrate 1M", 1.0, 12_000);
pub(super) const RATE_2: Load = at_rate(
    "stream-2M",
    "streaming --bitrate 2M --packets-per-frame 7",
    2.0,
    9_000,
);
const RATE_4: Load = at_rate("stream-4M", "streaming --bitrate 4M", 4.0, 5_000);
const RATE_8: Load = at_rate("stream-8M", "streaming --bitrate 8M", 8.0, 3_200);

const CORES_2: Load = Load {
    name: "stream-2M-2-cores",
    at: 2.0,
    needs: Needs {
        cores: 2,
        ceiling: false,
        ..RATE_2.needs
    },
    ..RATE_2
};
const CORES_4: Load = Load {
    name: "stream-2M-4-cores",
    at: 4.0,
    needs: Needs {
        cores: 4,
        ceiling: false,
        ..RATE_2.needs
    },
    ..RATE_2
};
const CORES_1: Load = Load { at: 1.0, ..RATE_2 };

/// What both servers carry.
const EQUAL: Load = Load {
    name: "stream-equal",
    label: "",
    scenario: "streaming --bitrate 2M --packets-per-frame 7",
    size: Size::Steps {
        full: Ramp::by(40, 200),
        quick: Ramp::by(60, 120),
    },
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

const ORIGINAL: &str = "Viewers of the streaming plugin, at several bit rates and on 1 to 40 cores. On one core 3.1 to 5.7 times the \
     throughput of Janus, depending on the bit rate; on 40 cores 3.6 times, up to 90 Gbit/s; 37 % less CPU time, with the same quality.";

const fn over_viewers(name: &'static str, title: &'static str, y: Y) -> Plot {
    Plot {
        name,
        title,
        x: X::Participants,
        y,
        shape: Shape::Lines,
        of: &[],
        published: &[],
    }
}

pub(super) const FIGURES: [Figure; 4] = [
    Figure {
        name: "streamer-throughput",
        title: "Throughput of one core, by bit rate",
        work: &WORK,
        original: ORIGINAL,
        here: "The most that is carried in time, of one source, beside the bare loop of encrypting and sending on the same core.",
        peers: &PEERS,
        loads: &[&RATE_05, &RATE_1, &RATE_2, &RATE_4, &RATE_8],
        plots: &[
            Plot {
                name: "throughput",
                title: "Throughput of one core",
                x: X::At("Mbit/s for each viewer"),
                y: Y::Throughput,
                shape: Shape::Lines,
                of: &[],
                published: &[],
            },
            Plot {
                name: "viewers",
                title: "Viewers of one core",
                x: X::At("Mbit/s for each viewer"),
                y: Y::Carried(1),
                shape: Shape::Lines,
                of: &[],
                published: &[],
            },
        ],
        missing: None,
    },
    Figure {
        name: "streamer-cpu",
        title: "CPU time at equal load",
        work: &WORK,
        original: ORIGINAL,
        here: "2 Mbit/s for each viewer of one source, as many as Janus carries, too.",
        peers: &PEERS,
        loads: &[&EQUAL],
        plots: &[
            over_viewers("cpu", "CPU", Y::Cpu),
            over_viewers("packet", "CPU time for each packet", Y::CpuPerPacket),
        ],
        missing: None,
    },
    Figure {
        name: "streamer-cores",
        title: "Throughput by cores",
        work: &WORK,
        original: ORIGINAL,
        here: "2 Mbit/s for each viewer. The load needs as many cores as the server, so the machine sets the end of the line.",
        peers: &PEERS,
        loads: &[&CORES_1, &CORES_2, &CORES_4],
        plots: &[Plot {
            name: "throughput",
            title: "Throughput by cores",
            x: X::At("cores"),
            y: Y::Throughput,
            shape: Shape::Lines,
            of: &[],
            published: &[Published {
                label: "Janus Streamer, 2026, 40 cores",
                points: &[(40.0, 90.0)],
            }],
        }],
        missing: None,
    },
    Figure {
        name: "streamer-quality",
        title: "Quality at equal load",
        work: &WORK,
        original: ORIGINAL,
        here: "The runs of streamer-cpu: when packets arrive, and the longest gap of any viewer that decrypts. Frames come each 33 ms.",
        peers: &PEERS,
        loads: &[&EQUAL],
        plots: &[
            over_viewers("half", "Delay of half of the packets", Y::DelayHalf),
            over_viewers("most", "Delay of 99 of 100 packets", Y::Delay99),
            over_viewers("gap", "Longest gap", Y::Gap),
        ],
        missing: None,
    },
];
