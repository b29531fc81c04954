//! Figures of other servers' evaluations: Jitsi's and OpenVidu's.

use crate::catalogue::figure::{
    Figure, Load, Needs, Plot, Published, Ramp, Shape, Size, Work, X, Y,
};
use crate::catalogue::peers::Peer;

const JITSI: Work = Work {
    title: "Jitsi Videobridge performance evaluation",
    published: "jitsi.org",
    machine: "Jitsi Videobridge, four cores of an Intel Xeon E5-1620 v2 at 3.7 GHz; CPU is that of all cores",
};

const OPENVIDU: Work = Work {
    title: "OpenVidu: mediasoup in place of Pion",
    published: "openvidu.io",
    machine: "OpenVidu with mediasoup and with Pion (LiveKit's engine), m6in.xlarge (4 vCPU); browsers on c5.xlarge",
};

const STAR: Load = Load {
    name: "star",
    label: "",
    scenario: "star --multistream --bitrate 465k --audio-bitrate 50k",
    size: Size::Each {
        full: &[10, 20, 25, 29, 33],
        quick: &[10, 20],
    },
    duration: 5.0,
    at: 0.0,
    besides: 0,
    needs: Needs::ONE_CORE,
};

/// Rooms of eight, as many as are carried in time.
const ROOMS: Load = Load {
    name: "rooms",
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
            step: 5,
            factor: 3.0,
            most: 65,
            bisect: 0,
        },
    },
    duration: 4.0,
    at: 0.0,
    besides: 0,
    needs: Needs {
        ceiling: true,
        ..Needs::ONE_CORE
    },
};

const BROWSERS: Load = Load {
    name: "browsers",
    label: "",
    scenario: "browsers --room-size 8",
    size: Size::Each {
        full: &[64],
        quick: &[3],
    },
    duration: 10.0,
    at: 0.0,
    besides: 0,
    needs: Needs {
        browser: true,
        ..Needs::ONE_CORE
    },
};

pub(super) const FIGURES: [Figure; 3] = [
    Figure {
        name: "jvb",
        title: "Everybody sees everybody: CPU, bandwidth and memory",
        work: &JITSI,
        original: "One conference of K senders (515 kbit/s of video and audio each), in which all see each other, and a silent focus: \
                   K (K - 1) streams. Memory was never over 1,500 MB.",
        here: "One PeerConnection for all that an endpoint watches. There is no focus.",
        peers: &[
            Peer::Portunus,
            Peer::Janus,
            Peer::Mediasoup,
            Peer::LiveKit,
            Peer::Jvb,
        ],
        loads: &[&STAR],
        plots: &[
            Plot {
                name: "cpu",
                title: "CPU",
                x: X::Streams,
                y: Y::Cpu,
                shape: Shape::Lines,
                of: &[],
                published: &[Published {
                    label: "Jitsi Videobridge, of 4 cores",
                    points: &[
                        (90.0, 0.124),
                        (380.0, 0.32),
                        (600.0, 0.468),
                        (812.0, 0.628),
                        (1_056.0, 0.812),
                    ],
                }],
            },
            Plot {
                name: "bandwidth",
                title: "Bandwidth, in and out",
                x: X::Streams,
                y: Y::Both,
                shape: Shape::Areas,
                of: &[],
                published: &[Published {
                    label: "Jitsi Videobridge",
                    points: &[
                        (90.0, 47.6),
                        (380.0, 199.4),
                        (600.0, 314.7),
                        (812.0, 425.5),
                        (1_056.0, 550.4),
                    ],
                }],
            },
            Plot {
                name: "memory",
                title: "Memory",
                x: X::Streams,
                y: Y::Memory,
                shape: Shape::Lines,
                of: &[],
                published: &[Published {
                    label: "Jitsi Videobridge, never over",
                    points: &[(90.0, 1_430.0), (1_056.0, 1_430.0)],
                }],
            },
        ],
        missing: None,
    },
    Figure {
        name: "openvidu-rooms",
        title: "Participants in rooms of 8 that fit",
        work: &OPENVIDU,
        original: "Rooms of 8 browsers who send 640x480 and audio, and get all others; participants are added until one has failed to \
                   connect 5 times. Drawn, not printed: mediasoup takes nearly twice as many as Pion.",
        here: "hammer's participants instead of browsers: 1 Mbit/s of video and 50 kbit/s of audio each, as many as are carried in time \
               by one core.",
        peers: &[Peer::Portunus, Peer::Janus, Peer::Mediasoup, Peer::LiveKit],
        loads: &[&ROOMS],
        plots: &[
            Plot {
                name: "participants",
                title: "Participants in rooms of 8",
                x: X::Servers,
                y: Y::Carried(8),
                shape: Shape::Lines,
                of: &[],
                published: &[],
            },
            Plot {
                name: "packet",
                title: "CPU time for each packet",
                x: X::Servers,
                y: Y::CpuPerPacket,
                shape: Shape::Lines,
                of: &[],
                published: &[],
            },
        ],
        missing: None,
    },
    Figure {
        name: "openvidu-progression",
        title: "Connection progression of browsers in rooms of 8",
        work: &OPENVIDU,
        original: "A bar for each participant over time: connecting, connected, failed; the server's CPU load as a line from 0 to 1.",
        here: "Real Chromium on the load's cores. Where five connections fail before the server's core is full, the browsers' \
               machine is the limit.",
        peers: &[Peer::Portunus, Peer::Janus],
        loads: &[&BROWSERS],
        plots: &[Plot {
            name: "progression",
            title: "Connection progression",
            x: X::Progression,
            y: Y::Cpu,
            shape: Shape::Lines,
            of: &[],
            published: &[],
        }],
        missing: None,
    },
];
