//! Figures of this project.

use super::streamer::RATE_2;
use crate::catalogue::figure::{Figure, Load, Needs, Plot, Ramp, Shape, Size, Work, X, Y};
use crate::catalogue::peers::Peer;

const WORK: Work = Work {
    title: "Portunus",
    published: "this project",
    machine: "this machine",
};

const BOTH: [Peer; 2] = [Peer::Portunus, Peer::Janus];

const IDLE: Load = Load {
    name: "idle-viewers",
    label: "",
    scenario: "streaming --bitrate 20k --fps 5 --packets-per-frame 1 --joins-at-a-time 400",
    size: Size::Steps {
        full: Ramp::by(1_500, 3_000),
        quick: Ramp::by(400, 800),
    },
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

const SOURCES: Load = Load {
    name: "delay",
    label: "",
    scenario: "streaming --packets-per-frame 7 --mountpoints 100",
    size: Size::Steps {
        full: Ramp::by(400, 2_000),
        quick: Ramp::by(200, 400),
    },
    duration: 5.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

const SHOWN: Load = Load {
    name: "not-recorded",
    label: "not recorded",
    scenario: "record --publishers 50 --bitrate 1M --audio-bitrate 32k --check-share 1 --not-recorded",
    size: Size::Each {
        full: &[20],
        quick: &[10],
    },
    duration: 8.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

const RECORDED: Load = Load {
    name: "recorded",
    label: "recorded",
    scenario: "record --publishers 50 --bitrate 1M --audio-bitrate 32k --check-share 1 --folder {disk}",
    ..SHOWN
};

const MOST_CALLS: Load = Load {
    name: "most-calls",
    label: "",
    scenario: "sip --check-share 0.05",
    size: Size::Search {
        full: Ramp {
            step: 100,
            factor: 1.5,
            most: 5_000,
            bisect: 50,
        },
        quick: Ramp {
            step: 50,
            factor: 3.0,
            most: 200,
            bisect: 0,
        },
    },
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

const DOOR: Load = Load {
    name: "livekit-rooms",
    label: "",
    scenario: "rooms --endpoints 8 --multistream --bitrate 1M --audio-bitrate 50k",
    size: Size::Search {
        full: Ramp {
            step: 5,
            factor: 1.5,
            most: 200,
            bisect: 2,
        },
        quick: Ramp {
            step: 4,
            factor: 3.0,
            most: 16,
            bisect: 0,
        },
    },
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs {
        livekit: true,
        ..Needs::ONE_CORE
    },
};

const TWO_NODES: Load = Load {
    name: "cluster-2",
    label: "",
    scenario: "cluster --nodes 2 --bitrate 1M --packets-per-frame 4",
    size: Size::Each {
        full: &[1_000],
        quick: &[100],
    },
    duration: 10.0,
    at: 2.0,
    besides: 0,
    needs: Needs {
        cluster: true,
        ..Needs::ONE_CORE
    },
};

const FOUR_NODES: Load = Load {
    name: "cluster-4",
    scenario: "cluster --nodes 4 --bitrate 1M --packets-per-frame 4",
    at: 4.0,
    ..TWO_NODES
};

const fn nodes(name: &'static str, title: &'static str, y: Y) -> Plot {
    Plot {
        x: X::At("nodes"),
        ..bars(name, title, y)
    }
}

const fn bars(name: &'static str, title: &'static str, y: Y) -> Plot {
    Plot {
        name,
        title,
        x: X::Servers,
        y,
        shape: Shape::Lines,
        of: &[],
        published: &[],
    }
}

const fn lines(name: &'static str, title: &'static str, y: Y) -> Plot {
    Plot {
        x: X::Participants,
        ..bars(name, title, y)
    }
}

const fn of(
    name: &'static str,
    title: &'static str,
    here: &'static str,
    peers: &'static [Peer],
    loads: &'static [&'static Load],
    plots: &'static [Plot],
) -> Figure {
    Figure {
        name,
        title,
        work: &WORK,
        original: "",
        here,
        peers,
        loads,
        plots,
        missing: None,
    }
}

pub(super) const FIGURES: [Figure; 8] = [
    of(
        "viewers",
        "Viewers of one source of 2 Mbit/s",
        "The most that one core carries in time, beside the bare loop on the same core.",
        &BOTH,
        &[&RATE_2],
        &[
            bars("viewers", "Viewers carried in time", Y::Carried(1)),
            bars("packet", "CPU time for each packet", Y::CpuPerPacket),
            lines("delay", "Delay of half of the packets", Y::DelayHalf),
        ],
    ),
    of(
        "joins",
        "Joins for each second of CPU time",
        "Signalling, ICE, DTLS and the first packet of viewers of hardly any media.",
        &BOTH,
        &[&IDLE],
        &[bars("joins", "Joins", Y::Joins)],
    ),
    of(
        "memory",
        "Memory of a viewer",
        "What one more viewer of hardly any media adds to the server's resident memory.",
        &BOTH,
        &[&IDLE],
        &[
            bars("each", "Memory for one more", Y::MemoryEach),
            lines("all", "Memory", Y::Memory),
        ],
    ),
    of(
        "delay",
        "Delay by viewers",
        "100 sources of 2 Mbit/s, each with moments of its own: from a packet's sending to its arrival at the viewer's socket.",
        &BOTH,
        &[&SOURCES],
        &[
            lines("half", "Delay of half of the packets", Y::DelayHalf),
            lines("most", "Delay of 99 of 100 packets", Y::Delay99),
        ],
    ),
    of(
        "recordings",
        "CPU time of recording",
        "50 who publish 1 Mbit/s of video and audio in one room, while some watch; all are recorded, or nobody.",
        &BOTH,
        &[&SHOWN, &RECORDED],
        &[bars("cpu", "CPU", Y::Cpu)],
    ),
    of(
        "telephony",
        "Calls by SIP that one core carries",
        "Each call is a PeerConnection and a plain RTP leg, PCMU both ways; packets are in time within 20 ms.",
        &BOTH,
        &[&MOST_CALLS],
        &[
            bars("calls", "Calls carried in time", Y::Carried(1)),
            bars("packet", "CPU time for each packet", Y::CpuPerPacket),
        ],
    ),
    of(
        "livekit-door",
        "Rooms of 8 by LiveKit's protocol",
        "Both servers are loaded by LiveKit's protocol: Portunus at its door, livekit-server as it comes.",
        &[Peer::Portunus, Peer::LiveKit],
        &[&DOOR],
        &[
            bars("participants", "Participants in rooms of 8", Y::Carried(8)),
            bars("packet", "CPU time for each packet", Y::CpuPerPacket),
        ],
    ),
    of(
        "cluster",
        "Viewers of one source on several nodes",
        "All nodes share one core, so CPU times are compared: the times the viewers of one server are the sum over the nodes of the \
         CPU time of one server alone, divided by that of the node with as many viewers. Links have no delay of their own. At the end \
         the last node is killed.",
        &[Peer::Portunus],
        &[&TWO_NODES, &FOUR_NODES],
        &[
            nodes("viewers", "Viewers of all nodes", Y::TimesOne),
            nodes("hop", "What a hop adds to the delay", Y::Hop),
            nodes("relay", "The cost of a relayed source", Y::RelayCost),
            nodes("gone", "Until people of a dead node are gone", Y::Gone),
        ],
    ),
];
