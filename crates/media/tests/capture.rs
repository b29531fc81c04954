//! Captures of a call, read by tshark and text2pcap.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed test panics"
)]

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use portunus_media::{
    CaptureEnd, CaptureError, CaptureFormat, CaptureOptions, MediaConfig, MediaPlane, PeerId,
    PeerOptions, RouteOptions, TrackRef,
};
use portunus_rtc::streams::{Burst, NtpClock};
use portunus_rtc::testing::{AUDIO_PT, Side, audio, credentials, mirrored};
use portunus_rtc::{Connection, StreamConfig};
use portunus_rtp::{Fields, SeqNo, Ssrc, write_header};
use portunus_sdp::negotiated::{DtlsRole, Negotiated, RemoteTransport};

const PAYLOAD: &[u8] = b"heard in the clear";
const INTERVAL: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(20);

/// A server, and a client that hears itself.
struct Call {
    media: MediaPlane,
    peer: PeerId,
    connection: Connection,
    socket: UdpSocket,
    next: SeqNo,
    next_at: Instant,
    runtime: tokio::runtime::Runtime,
    folder: PathBuf,
    _events: tokio::sync::mpsc::Receiver<portunus_media::PeerEvent>,
}

impl Call {
    fn start(name: &str) -> Self {
        let config = MediaConfig {
            workers: 1,
            pin: false,
            port: 0,
            bind: vec![[127, 0, 0, 1].into()],
            ..MediaConfig::default()
        };
        let (media, events) = MediaPlane::start(config).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        let address = socket.local_addr().unwrap();
        let side = Side::new("client", address, true, DtlsRole::Client);
        let line = audio("a", 1_000);
        let peer = media.create_peer(PeerOptions {
            ice: credentials("server", 1),
            controlling: false,
            worker: None,
        });
        let negotiated = Negotiated {
            transport: side.describe(),
            media: vec![line.clone()],
        };
        media.negotiate(peer, negotiated);
        let track = TrackRef {
            peer,
            mid: line.mid,
        };
        media.route(track, track, RouteOptions::default());
        let now = Instant::now();
        let clock = NtpClock::new(now, Duration::from_secs(1_700_000_000));
        let mut connection = Connection::new(side.config, StreamConfig::default(), clock, now);
        let server = RemoteTransport {
            ice: credentials("server", 1),
            ice_lite: false,
            fingerprints: vec![media.fingerprint().clone()],
            dtls_role: DtlsRole::Client,
            candidates: media.candidates(peer).to_vec(),
        };
        let negotiated = Negotiated {
            transport: server,
            media: vec![mirrored(&line)],
        };
        connection.negotiate(&negotiated, now).unwrap();
        let folder = std::env::temp_dir().join(format!("portunus-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self {
            media,
            peer,
            connection,
            socket,
            next: SeqNo(1),
            next_at: now,
            runtime: tokio::runtime::Runtime::new().unwrap(),
            folder,
            _events: events,
        }
    }

    /// Continues until it is `done`.
    fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        let mut buf = vec![0; 2_048];
        while !done(self) {
            assert!(start.elapsed() < PATIENCE, "it takes too long");
            let now = Instant::now();
            if self.connection.poll_timeout().is_some_and(|at| at <= now) {
                self.connection.handle_timeout(now);
            }
            if self.connection.transport.is_connected() && self.next_at <= now {
                self.next_at = now + INTERVAL;
                self.talk(now, &mut buf);
            }
            while let Some(transmit) = self.connection.poll_transmit(now, &mut buf) {
                let datagram = &buf[..transmit.len];
                let _ = self.socket.send_to(datagram, transmit.destination);
            }
            while self.connection.poll_feedback().is_some() {}
            while self.connection.transport.poll_event().is_some() {}
            if let Ok((len, from)) = self.socket.recv_from(&mut buf) {
                let local = self.socket.local_addr().unwrap();
                let now = Instant::now();
                self.connection.receive(now, local, from, &mut buf[..len]);
            }
        }
    }

    fn talk(&mut self, now: Instant, buf: &mut [u8]) {
        let seq = self.next;
        self.next = SeqNo(seq.0 + 1);
        let timestamp = seq.0 as u32 * 240;
        let ssrc = self.connection.media()[0].sent().unwrap().ssrc();
        let fields = Fields {
            marker: false,
            padding: false,
            pt: AUDIO_PT,
            sequence: seq.wire(),
            timestamp,
            ssrc,
        };
        let mid = self
            .connection
            .extensions()
            .id(portunus_rtp::ExtensionKind::Mid);
        let mid = mid.map(|id| (id, &b"a"[..]));
        let header = write_header(buf, &fields, mid).unwrap();
        let end = header + PAYLOAD.len();
        buf[header..end].copy_from_slice(PAYLOAD);
        let sealed = self.connection.seal_rtp(seq, ((header, end), &[]), buf);
        let mut burst = Burst::default();
        burst.add(seq, timestamp, PAYLOAD.len());
        self.connection.sent(0, &burst, now);
        let pair = self.connection.transport.selected_pair();
        if let (Ok(len), Some(pair)) = (sealed, pair) {
            let _ = self.socket.send_to(&buf[..len], pair.remote);
        }
    }

    fn capture(&self, options: CaptureOptions) -> Result<(), CaptureError> {
        let capture = self.media.capture(self.peer, options);
        self.runtime.block_on(capture)
    }

    /// Continues until the file has this number of packets.
    fn run_until_captured(&mut self, packets: u64) {
        self.run_until(|call| {
            let stats = call.runtime.block_on(call.media.stats(call.peer));
            stats.unwrap().capture.unwrap().packets >= packets
        });
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.media.shutdown();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The output of a program of Wireshark, or `None` with a message if it is not installed.
fn wireshark(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output();
    let Ok(output) = output else {
        eprintln!("skipped: {program} is not installed");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The packets of a file, read by tshark: addresses, SSRC, sequence number and payload of RTP, type
/// of RTCP.
fn read(file: &Path, port: u16) -> Option<Vec<Vec<String>>> {
    let decode = format!("udp.port=={port},rtp");
    let fields = [
        "ip.src",
        "udp.srcport",
        "ip.dst",
        "udp.dstport",
        "rtp.ssrc",
        "rtp.seq",
        "rtp.payload",
        "rtcp.pt",
        "frame.packet_flags_direction",
    ];
    let mut arguments = vec!["-r", file.to_str().unwrap(), "-d", &decode, "-T", "fields"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let text = wireshark("tshark", &arguments)?;
    let packets = text
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect());
    Some(packets.collect())
}

fn hex(ssrc: Ssrc) -> String {
    format!("0x{:08x}", ssrc.0)
}

#[test]
fn tshark_reads_the_capture_of_a_call() {
    let mut call = Call::start("pcap");
    call.run_until(|call| call.connection.transport.is_connected());
    let (pcap, text) = (call.path("call.pcap"), call.path("call.txt"));
    call.capture(CaptureOptions::new(&pcap, CaptureFormat::Pcap))
        .unwrap();
    assert!(call.media.is_captured(call.peer));
    // Long enough for reports of both sides.
    let start = Instant::now();
    call.run_until(|_| start.elapsed() > Duration::from_millis(1_500));
    call.run_until_captured(200);
    let stopped = call
        .runtime
        .block_on(call.media.stop_capture(call.peer))
        .unwrap();
    assert_eq!(
        (stopped.dropped, stopped.end),
        (0, Some(CaptureEnd::Stopped))
    );
    assert_eq!(stopped.bytes, fs::metadata(&pcap).unwrap().len());
    assert!(!call.media.is_captured(call.peer));

    let options = CaptureOptions::new(&text, CaptureFormat::Text2pcap);
    call.capture(options).unwrap();
    call.run_until_captured(100);
    let written = call
        .runtime
        .block_on(call.media.stop_capture(call.peer))
        .unwrap();

    let server = call.media.sockets().next().unwrap();
    let client = call.socket.local_addr().unwrap();
    let ends = |from: SocketAddr, to: SocketAddr| {
        [from, to]
            .map(|end| [end.ip().to_string(), end.port().to_string()])
            .concat()
    };
    let Some(packets) = read(&pcap, server.port()) else {
        return;
    };
    assert_eq!(packets.len() as u64, stopped.packets);
    let ours = Ssrc(1_000);
    let theirs = call.connection.media()[0].sent().unwrap().ssrc();
    let payload: String = PAYLOAD.iter().map(|byte| format!("{byte:02x}")).collect();
    for (ends, ssrc) in [(ends(client, server), theirs), (ends(server, client), ours)] {
        let of: Vec<_> = packets.iter().filter(|it| it[..4] == ends[..]).collect();
        let rtp: Vec<_> = of.iter().filter(|it| it[4] == hex(ssrc)).collect();
        assert!(rtp.len() > 80, "{ends:?}: {}", rtp.len());
        assert!(rtp.iter().all(|it| it[6] == payload), "{:?}", rtp[0]);
        let numbers: Vec<u64> = rtp.iter().map(|it| it[5].parse().unwrap()).collect();
        assert!(numbers.windows(2).all(|two| two[1] == two[0] + 1));
        assert!(
            of.iter().any(|it| it[7].contains("200")),
            "no sender report"
        );
        assert_eq!(
            of.len(),
            packets.len() - packets.iter().filter(|it| it[..4] != ends[..]).count()
        );
    }

    let converted = call.path("call.pcapng");
    let arguments = [
        "-D",
        "-n",
        "-l",
        "1",
        "-i",
        "17",
        "-u",
        "1000,2000",
        "-t",
        "%H:%M:%S.",
    ];
    let files = [text.to_str().unwrap(), converted.to_str().unwrap()];
    let Some(_) = wireshark("text2pcap", &[&arguments[..], &files[..]].concat()) else {
        return;
    };
    let packets = read(&converted, 1_000).unwrap();
    assert_eq!(packets.len() as u64, written.packets);
    for ssrc in [ours, theirs] {
        let of = packets
            .iter()
            .filter(|it| it[4] == hex(ssrc) && it[6] == payload);
        assert!(of.count() > 30);
    }
}

#[test]
fn what_cannot_be_captured_is_an_error_and_disturbs_no_call() {
    let mut call = Call::start("errors");
    call.run_until(|call| call.connection.transport.is_connected());
    let options =
        |call: &Call, name: &str| CaptureOptions::new(call.path(name), CaptureFormat::Pcap);
    let stop = |call: &Call| call.runtime.block_on(call.media.stop_capture(call.peer));
    assert!(matches!(stop(&call), Err(CaptureError::NotStarted)));
    let missing = call.capture(options(&call, "no/such/folder"));
    let Err(CaptureError::File { path, error }) = missing else {
        panic!("{missing:?}");
    };
    assert!(path.ends_with("no/such/folder"));
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    call.capture(options(&call, "one")).unwrap();
    let taken = call.capture(options(&call, "two"));
    let Err(CaptureError::AlreadyStarted { path }) = taken else {
        panic!("{taken:?}");
    };
    assert!(path.ends_with("one"));
    assert!(!call.path("two").exists(), "an empty file would stay");
    call.run_until_captured(10);
    stop(&call).unwrap();
    let mode = fs::metadata(call.path("one")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "nobody else may read it");
    // Existing files are not overwritten.
    let again = call.capture(options(&call, "one"));
    assert!(matches!(again, Err(CaptureError::File { .. })), "{again:?}");
    // A full file ends by itself, and another capture may start.
    let mut small = options(&call, "small");
    (small.max_bytes, small.truncate) = (2_000, Some(20));
    call.capture(small).unwrap();
    call.run_until(|call| {
        let stats = call.runtime.block_on(call.media.stats(call.peer));
        stats.unwrap().capture.unwrap().end == Some(CaptureEnd::Full)
    });
    assert!(fs::metadata(call.path("small")).unwrap().len() <= 2_000);
    call.capture(options(&call, "next")).unwrap();
    call.run_until_captured(10);
    // The capture ends with the peer.
    let next = call.path("next");
    call.media.close_peer(call.peer);
    call.run_until(|call| call.runtime.block_on(call.media.stats(call.peer)).is_none());
    assert!(matches!(stop(&call), Err(CaptureError::NoPeer)));
    assert!(fs::metadata(next).unwrap().len() > 24);
}

#[test]
fn workers_tell_what_they_do() {
    let mut call = Call::start("workers");
    call.run_until(|call| {
        let stats = call.media.worker_stats();
        stats[0].received_packets > 100 && stats[0].sent_packets > 100
    });
    let stats = &call.media.worker_stats()[0];
    assert_eq!((stats.index, stats.peers), (0, 1));
    assert!(stats.received_bits > stats.received_packets * 8 * 20);
    assert!(
        stats.core_share >= 0.0 && stats.core_share < 1.1,
        "{stats:?}"
    );
    assert!(stats.lag_median <= stats.lag_max, "{stats:?}");
    assert!(stats.silent < Duration::from_secs(5), "{stats:?}");
    let settings = call.media.settings();
    call.media.set_nack_queue(Duration::from_secs(5));
    call.media.set_no_media(Duration::ZERO);
    call.media.set_slow_link_threshold(9);
    call.media.set_nack_optimizations(true);
    let changed = call.media.settings();
    assert_eq!(changed.nack_queue, settings.nack_queue, "a second at most");
    assert_eq!((changed.no_media, changed.slow_link_threshold), (None, 9));
    assert!(changed.nack_optimizations && !settings.nack_optimizations);
}
