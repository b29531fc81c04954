//! Figures 3 to 14 of the evaluation of Janus.

use crate::catalogue::figure::{
    Figure, Load, Needs, Plot, Published, Ramp, Shape, Size, Work, X, Y,
};
use crate::catalogue::peers::Peer;

const WORK: Work = Work {
    title: "Performance analysis of the Janus WebRTC gateway",
    published: "AWeS 2015",
    machine: "Janus 0.0.8, 16 cores of two Intel Xeon E5-2640 v2 at 2.0 GHz, Ubuntu 12.04; clients: Firefox 35",
};

const PEERS: [Peer; 2] = [Peer::Portunus, Peer::Janus];
const OF_16: &str = "Janus 0.0.8, 2015, of 16 cores";

/// The first ten, who see each other.
const PUBLISHERS: Load = Load {
    name: "videoroom-publishers",
    label: "",
    scenario: "star --bitrate 130k --audio-bitrate 50k",
    size: Size::Steps {
        full: Ramp::by(2, 10),
        quick: Ramp::by(5, 10),
    },
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

/// Those who join after them, and watch.
const SUBSCRIBERS: Load = Load {
    name: "videoroom-subscribers",
    label: "",
    scenario: "room --publishers 10 --bitrate 130k --audio-bitrate 50k",
    size: Size::Steps {
        full: Ramp::by(20, 140),
        quick: Ramp::by(70, 140),
    },
    duration: 4.0,
    at: 0.0,
    besides: 10,
    needs: Needs::ONE_CORE,
};

const AUDIO: Load = Load {
    name: "audiobridge",
    label: "",
    scenario: "bridge --sampling-rate 16000 --talkers 200 --join-rate 40",
    size: Size::Steps {
        full: Ramp::by(40, 200),
        quick: Ramp::by(50, 100),
    },
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

const CALLS: Load = Load {
    name: "sip-calls",
    label: "",
    scenario: "sip --check-share 0.1 --join-rate 40",
    size: Size::Steps {
        full: Ramp::by(66, 330),
        quick: Ramp::by(60, 120),
    },
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

const VIEWERS: Load = Load {
    name: "streaming-viewers",
    label: "",
    scenario: "streaming --bitrate 130k --audio-bitrate 50k",
    size: Size::Steps {
        full: Ramp::by(100, 500),
        quick: Ramp::by(100, 200),
    },
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

const SMALL: Size = Size::Steps {
    full: Ramp::by(2, 20),
    quick: Ramp::by(7, 20),
};

const MIXED: Load = Load {
    name: "conference-mcu",
    label: "mixed",
    scenario: "bridge --sampling-rate 16000 --talkers 20",
    size: SMALL,
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

const FORWARDED: Load = Load {
    name: "conference-sfu",
    label: "forwarded",
    scenario: "star --bitrate 0 --audio-bitrate 40k",
    size: SMALL,
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

const REMOTE: Load = Load {
    name: "conference-remote",
    label: "mixed elsewhere",
    scenario: "sip --call sip:1000@{load-ip}:5070 --codec opus",
    size: SMALL,
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs {
        mixer: true,
        ..Needs::ONE_CORE
    },
};

const fn over_participants(
    name: &'static str,
    title: &'static str,
    y: Y,
    published: &'static [Published],
) -> Plot {
    Plot {
        name,
        title,
        x: X::Participants,
        y,
        shape: match y {
            Y::In | Y::Out => Shape::Areas,
            _ => Shape::Lines,
        },
        of: &[],
        published,
    }
}

const fn bandwidth() -> [Plot; 2] {
    [
        over_participants("in", "Bandwidth to the server", Y::In, &[]),
        over_participants("out", "Bandwidth from the server", Y::Out, &[]),
    ]
}

const fn cpu_and_memory() -> [Plot; 2] {
    [
        over_participants("cpu", "CPU", Y::Cpu, &[]),
        over_participants("memory", "Memory", Y::Memory, &[]),
    ]
}

const fn of(
    name: &'static str,
    title: &'static str,
    original: &'static str,
    here: &'static str,
    loads: &'static [&'static Load],
    plots: &'static [Plot],
) -> Figure {
    Figure {
        name,
        title,
        work: &WORK,
        original,
        here,
        peers: &PEERS,
        loads,
        plots,
        missing: None,
    }
}

const ROOM: &str = "10 publish in a video room, then 140 more watch all of them: a PeerConnection for each feed, 1,500 in all; Opus and \
     VP8 of 640x480, some 180 kbit/s each. Drawn there, not printed: memory grows with the square up to 10 and then in a line, in steps; \
     CPU grows steadily. 10 publishers take less than 1 % of 16 cores.";
const ROOM_HERE: &str = "The ten who publish see each other until the others come; then they only send: 1,410 PeerConnections. \
     One core instead of 16: a line ends where packets are late.";
const BRIDGE: &str = "An audio bridge of 16 kHz with up to 200 participants.";
const BRIDGE_HERE: &str =
    "All talk in phrases. Portunus mixes as many as it does by default, Janus all.";
const SIP: &str = "Up to 330 participants, each with a call to an Asterisk that echoes.";
const SIP_HERE: &str = "hammer itself is the far end, and echoes.";
const SMALL_ROOM: &str = "An audio conference of 2 to 20: an audio bridge of 16 kHz (MCU), or a video room with audio alone (SFU). Mixing \
     wins from about 8 participants on, in CPU, memory and bandwidth.";
const REMOTE_ROOM: &str = "The same conference mixed locally (audio bridge), or by another server that participants call by SIP. \
     Mixing elsewhere is cheaper in CPU and memory, mixing locally in bandwidth.";
const REMOTE_HERE: &str = "The other server is a second Portunus on the load's core, which mixes in an audio room. Both legs of its calls \
     count as bandwidth.";

pub(super) const FIGURES: [Figure; 12] = [
    of(
        "janus-3",
        "Video room: CPU and memory",
        ROOM,
        ROOM_HERE,
        &[&PUBLISHERS, &SUBSCRIBERS],
        &[
            over_participants(
                "cpu",
                "CPU",
                Y::Cpu,
                &[Published {
                    label: "10 publishers: less than this; Janus 0.0.8, 2015, of 16 cores",
                    points: &[(10.0, 0.16)],
                }],
            ),
            over_participants("memory", "Memory", Y::Memory, &[]),
        ],
    ),
    of(
        "janus-4",
        "Video room: bandwidth",
        ROOM,
        ROOM_HERE,
        &[&PUBLISHERS, &SUBSCRIBERS],
        &[
            over_participants(
                "in",
                "Bandwidth to the server",
                Y::In,
                &[Published {
                    label: "Janus 0.0.8, 2015 (the last one approximate)",
                    points: &[(10.0, 1.8), (150.0, 3.0)],
                }],
            ),
            over_participants("out", "Bandwidth from the server", Y::Out, &[]),
        ],
    ),
    of(
        "janus-5",
        "Audio bridge: CPU and memory",
        BRIDGE,
        BRIDGE_HERE,
        &[&AUDIO],
        &[
            over_participants(
                "cpu",
                "CPU",
                Y::Cpu,
                &[Published {
                    label: OF_16,
                    points: &[(200.0, 11.68)],
                }],
            ),
            over_participants(
                "memory",
                "Memory",
                Y::Memory,
                &[Published {
                    label: "at most; Janus 0.0.8, 2015",
                    points: &[(200.0, 150.0)],
                }],
            ),
        ],
    ),
    of(
        "janus-6",
        "Audio bridge: bandwidth",
        BRIDGE,
        BRIDGE_HERE,
        &[&AUDIO],
        &bandwidth(),
    ),
    of(
        "janus-7",
        "Calls by SIP: CPU and memory",
        SIP,
        SIP_HERE,
        &[&CALLS],
        &[
            over_participants(
                "cpu",
                "CPU",
                Y::Cpu,
                &[Published {
                    label: OF_16,
                    points: &[(330.0, 3.52)],
                }],
            ),
            over_participants("memory", "Memory", Y::Memory, &[]),
        ],
    ),
    of(
        "janus-8",
        "Calls by SIP: bandwidth",
        SIP,
        SIP_HERE,
        &[&CALLS],
        &bandwidth(),
    ),
    of(
        "janus-9",
        "Streaming: CPU and memory",
        "Viewers of one source. Drawn, not printed: as calls, with media one way.",
        "",
        &[&VIEWERS],
        &cpu_and_memory(),
    ),
    of(
        "janus-10",
        "Audio conference, mixed or forwarded: CPU and memory",
        SMALL_ROOM,
        "",
        &[&MIXED, &FORWARDED],
        &cpu_and_memory(),
    ),
    of(
        "janus-11",
        "Audio conference, mixed or forwarded: CPU over time",
        SMALL_ROOM,
        "Participants come in steps; each server starts at second 0.",
        &[&MIXED, &FORWARDED],
        &[Plot {
            name: "cpu",
            title: "CPU over time",
            x: X::Seconds,
            y: Y::Cpu,
            shape: Shape::Lines,
            of: &[],
            published: &[],
        }],
    ),
    of(
        "janus-12",
        "Audio conference, mixed or forwarded: bandwidth",
        SMALL_ROOM,
        "",
        &[&MIXED, &FORWARDED],
        &bandwidth(),
    ),
    of(
        "janus-13",
        "Audio conference, mixed here or elsewhere: CPU and memory",
        REMOTE_ROOM,
        REMOTE_HERE,
        &[&MIXED, &REMOTE],
        &cpu_and_memory(),
    ),
    of(
        "janus-14",
        "Audio conference, mixed here or elsewhere: bandwidth",
        REMOTE_ROOM,
        REMOTE_HERE,
        &[&MIXED, &REMOTE],
        &bandwidth(),
    ),
];
