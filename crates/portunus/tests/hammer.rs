//! The load generator against the binary, and against Debian's Janus where that is installed: what
//! it says of a light load is known.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use portunus_hammer::progress::Progress;
use portunus_hammer::record::{Criterion, RunRecord, Sample};
use portunus_hammer::scenario::Scenario;
use tempfile::TempDir;

/// Longer than anything should take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

const VIEWERS: u32 = 20;

/// Runs a scenario by its words on a command line.
fn hammer(words: impl IntoIterator<Item: Into<String>>) -> RunRecord {
    let words: Vec<String> = words.into_iter().map(Into::into).collect();
    let scenario = Scenario::of(&words).unwrap();
    scenario.run(&Progress::start("test")).unwrap()
}

/// A running server, which ends with the test.
struct Server {
    child: Child,
    url: String,
    pages: String,
    _folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A mountpoint that is published over WHIP.
const STAGE: &str = "\
[[streaming.mountpoint]]
name = \"stage\"
type = \"whip\"
id = 9
[[streaming.mountpoint.media]]
type = \"video\"
mid = \"v\"
";

fn portunus() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("portunus.toml");
    let listen = "bind = [\"127.0.0.1\"]\nport = 0\n";
    let text = format!(
        "[http]\n{listen}[websocket]\n{listen}[media]\n{listen}workers = 1\n[admin]\nport = 0\n\
         [server]\noutgoing_networks = [\"127.0.0.0/8\"]\n{STAGE}"
    );
    fs::write(&path, text).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_portunus"))
        .env_remove("PORTUNUS_LOG")
        .arg("--config")
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut row = |name: &str| loop {
        let line = lines.next().expect("the banner").unwrap();
        if let Some(row) = line.trim_start().strip_prefix(name) {
            return row.trim().to_owned();
        }
    };
    Server {
        pages: row("Web pages"),
        url: row("WebSocket"),
        child,
        _folder: folder,
    }
}

/// Debian's Janus on this machine's own address: it does not offer loopback ones. None if either is
/// missing here.
fn debian_janus() -> Option<Server> {
    let libraries = PathBuf::from("/usr/lib/x86_64-linux-gnu/janus");
    let plugins = libraries.join("plugins");
    let program = Path::new("/usr/bin/janus");
    if !program.exists() || !plugins.join("libjanus_streaming.so").exists() {
        return None;
    }
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("198.51.100.1:9").ok()?;
    let ip = socket.local_addr().unwrap().ip();
    let port = TcpListener::bind((ip, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let (dir, libraries) = (folder.path().display(), libraries.display());
    let core = format!(
        "general: {{ configs_folder = \"{dir}\"\n plugins_folder = \"{libraries}/plugins\"\n \
         transports_folder = \"{libraries}/transports\"\n debug_level = 2 }}\n\
         transports: {{ disable = \"libjanus_http.so,libjanus_pfunix.so\" }}\n"
    );
    write("janus.jcfg", &core);
    let sockets = format!("general: {{ ws = true\n ws_port = {port}\n ws_ip = \"{ip}\" }}\n");
    write("janus.transport.websockets.jcfg", &sockets);
    write("janus.plugin.streaming.jcfg", "general: { }\n");
    write("janus.plugin.echotest.jcfg", "general: { }\n");
    write("janus.plugin.videoroom.jcfg", "general: { }\n");
    write("janus.plugin.audiobridge.jcfg", "general: { }\n");
    let sip = format!("general: {{ local_ip = \"{ip}\" }}\n");
    write("janus.plugin.sip.jcfg", &sip);
    let child = Command::new(program)
        .arg("--configs-folder")
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server {
        child,
        url: format!("ws://{ip}:{port}"),
        pages: String::new(),
        _folder: folder,
    };
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect((ip, port)).is_err() {
        assert!(Instant::now() < deadline, "janus does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(server)
}

/// All joined, and all that was sent arrived, in order, once and soon.
fn is_sound(record: &RunRecord, viewers: u32) {
    let RunRecord { steps, summary, .. } = record;
    let first = steps.first().expect("a step");
    assert_eq!(summary.failed_joins, 0, "{summary:?}");
    assert_eq!(first.participants, viewers, "{summary:?}");
    // Nothing is lost (below), but on a machine that runs other tests beside some may be late, and
    // then counts for the next second.
    assert!(first.delivered_share > 0.7, "{first:?}");
    assert!(first.received_bps > 0.0);
    let delay = first.delay.expect("some decrypt");
    assert!(delay.count > 0 && delay.min_us > 0.0, "{delay:?}");
    assert!(delay.min_us < 1e6, "{delay:?}");
    let sum = |of: fn(&Sample) -> u64| record.samples.iter().map(of).sum::<u64>();
    let strange = [
        sum(|s| s.reordered_packets),
        sum(|s| s.repeated_packets),
        sum(|s| s.refused_packets),
    ];
    assert_eq!(strange, [0; 3]);
    // A socket overflows if a server that has no CPU time for seconds cannot read it.
    let (lost, received) = (sum(|s| s.lost_packets), sum(|s| s.received_packets));
    assert!(lost * 100 <= received, "{lost} of {received}");
}

fn stream(server: &Server, more: &[&str]) -> RunRecord {
    let viewers = VIEWERS.to_string();
    let mut line = vec!["streaming", "--janus", &server.url, "--viewers", &viewers];
    line.extend(["--duration", "2", "--settle", "0.5", "--bitrate", "500k"]);
    line.extend(["--check-share", "1"]);
    line.extend(more);
    hammer(line)
}

#[test]
fn viewers_of_a_mountpoint_get_all_that_is_sent() {
    let server = portunus();
    let record = stream(
        &server,
        &["--audio-bitrate", "32k", "--sizes", "almost-equal"],
    );
    is_sound(&record, VIEWERS);
    assert_eq!(
        record.server.version.as_deref(),
        Some(env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn others_that_come_and_go_change_nothing() {
    let server = portunus();
    let record = stream(&server, &["--storm", "20", "--churn", "5"]);
    is_sound(&record, VIEWERS);
    assert!(record.steps.len() == 3, "{:?}", record.steps);
    // Those of the start, of the storm, and five for each second of churn.
    assert!(record.summary.joins >= 50, "{:?}", record.summary);
    // As many came as went; who goes last may be counted before who comes.
    let last = record.steps.last().expect("a step");
    assert!(last.participants + 5 >= 2 * VIEWERS, "{last:?}");
}

#[test]
fn a_share_of_what_is_carried_in_time_is_measured_once_more() {
    let server = portunus();
    let ramp = ["--ramp", "10", "--hold", "0.8", "--max-delay"];
    let record = stream(&server, &[ramp.as_slice(), &["60000"]].concat());
    assert_eq!(record.summary.carried_participants, VIEWERS);
    let held = record.summary.held.expect("a share was held");
    assert_eq!(held.participants, VIEWERS * 8 / 10);
    assert!(held.delivered_share > 0.97, "{held:?}");
    let delay = held.delay.expect("some of them decrypt");
    assert!(delay.count > 0 && held.calm.is_none(), "nobody watched");
    assert_eq!(record.summary.at_all, None, "nobody looked for it");
    // Nothing arrives within a microsecond: the first step is the last.
    let record = stream(&server, &[ramp.as_slice(), &["0.001"]].concat());
    assert_eq!(record.summary.carried_participants, 0);
    let steps: Vec<u32> = record.steps.iter().map(|s| s.participants).collect();
    assert_eq!(steps, [10, 8], "{:?}", record.steps);
}

#[test]
fn what_is_carried_at_all_is_looked_for_beyond_what_is_carried_in_time() {
    let server = portunus();
    // Nothing arrives within a microsecond, and all arrives.
    let record = stream(
        &server,
        &["--ramp", "10", "--at-all", "--max-delay", "0.001"],
    );
    let summary = &record.summary;
    assert_eq!(
        (summary.criterion, summary.carried_participants),
        (Criterion::InTime, 0)
    );
    let at_all = summary.at_all.as_ref().map(|most| most.participants);
    let carried = record.steps.iter().filter(|step| step.carried);
    let most = carried.map(|step| step.participants).max();
    assert_eq!(at_all, most, "{:?}", record.steps);
    // On a machine that runs other tests beside some may be late, and then counts for the next
    // second.
    let first = record.steps.first().expect("a step");
    assert_eq!(first.carried, record.steps.len() > 1, "{:?}", record.steps);
}

#[test]
fn stalls_of_cores_are_told_from_delays() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let server = portunus();
    let pid = server.child.id().to_string();
    let record = stream(&server, &["--server-pid", &pid, "--watch-cores"]);
    is_sound(&record, VIEWERS);
    let cores = record.machine.cores as usize;
    assert!(
        record.samples.iter().all(|s| s.stalls.len() == cores),
        "{:?}",
        record.samples
    );
    let step = record.steps.first().expect("a step");
    let calm = step.calm.expect("cores were watched");
    let disturbed = record
        .samples
        .iter()
        .flat_map(|s| &s.stalls)
        .any(|s| s.count > 0 || s.slow_ms > 0.0);
    assert!((0.0..=1.0).contains(&calm.share), "{calm:?}");
    assert!(disturbed || calm.share == 1.0, "{calm:?}");
    if let Some(calm) = calm.delay {
        let all = step.delay.expect("the same and others");
        assert!(calm.count <= all.count && calm.max_us <= all.max_us);
    }
}

fn room(server: &Server, more: &[&str]) -> RunRecord {
    let mut line = vec!["room", "--janus", &server.url, "--publishers", "3"];
    line.extend(["--subscribers", "4", "--duration", "2", "--settle", "0.5"]);
    line.extend([
        "--bitrate",
        "300k",
        "--audio-bitrate",
        "32k",
        "--check-share",
        "1",
    ]);
    line.extend(more);
    hammer(line)
}

#[test]
fn a_room_is_watched_by_a_connection_for_each_feed() {
    let server = portunus();
    let record = room(&server, &[]);
    is_sound(&record, 4);
    let step = record.steps.first().expect("a step");
    assert_eq!(step.peer_connections, 3 + 4 * 3, "{step:?}");
}

#[test]
fn a_room_is_watched_by_one_connection_and_layers_of_simulcast_are_counted_once() {
    let server = portunus();
    let record = room(
        &server,
        &["--multistream", "--simulcast", "--temporal-layers", "2"],
    );
    is_sound(&record, 4);
    let step = record.steps.first().expect("a step");
    assert_eq!(step.peer_connections, 3 + 4, "{step:?}");
}

#[test]
fn all_watch_all_in_a_star() {
    let server = portunus();
    let mut line = vec!["star", "--janus", &server.url, "--subscribers", "3"];
    line.extend(["--multistream", "--duration", "2", "--settle", "0.5"]);
    line.extend(["--bitrate", "300k", "--audio-bitrate", "32k"]);
    line.extend(["--check-share", "1"]);
    let record = hammer(line);
    is_sound(&record, 3);
    let step = record.steps.first().expect("a step");
    assert_eq!(step.peer_connections, 3 * 2, "{step:?}");
}

#[test]
fn viewers_who_can_take_little_are_counted_apart() {
    let server = portunus();
    let limited = ["--limited-share", "0.5", "--limit", "150k"];
    let record = room(
        &server,
        &[&["--multistream", "--simulcast"][..], &limited[..]].concat(),
    );
    assert_eq!(record.summary.failed_joins, 0, "{:?}", record.summary);
    let last = record.samples.last().expect("samples");
    assert_eq!((last.participants, last.limited), (4, 2), "{last:?}");
    let step = record.steps.first().expect("a step");
    let limited = step.limited_bps.expect("some are limited");
    // All of them would take 332 kbit/s of each of three.
    assert!(limited > 30e3 && limited < 600e3, "{step:?}");
}

#[test]
fn rooms_are_made_and_taken_away() {
    let server = portunus();
    let pid = server.child.id().to_string();
    let mut line = vec!["rooms", "--janus", &server.url, "--server-pid", &pid];
    line.extend([
        "--viewers",
        "2",
        "--endpoints",
        "3",
        "--multistream",
        "--leave",
        "2",
    ]);
    line.extend(["--duration", "1", "--settle", "0.5", "--bitrate", "300k"]);
    line.extend(["--audio-bitrate", "32k", "--check-share", "1"]);
    let record = hammer(line);
    is_sound(&record, 2);
    let step = record.steps.first().expect("a step");
    assert_eq!(step.peer_connections, 2 * 3 * 2, "{step:?}");
    let leaving = record.summary.leaving.expect("memory is watched");
    assert_eq!(
        (leaving.full_bytes.len(), leaving.empty_bytes.len()),
        (2, 2)
    );
    assert_eq!(record.samples.last().expect("samples").participants, 0);
}

#[test]
fn viewers_come_by_whep() {
    let server = portunus();
    let url = format!("{}whep/{{id}}", server.pages);
    is_sound(&stream(&server, &["--whep", &url]), VIEWERS);
}

#[test]
fn a_source_published_by_whip_is_watched_by_whep() {
    let server = portunus();
    let (whip, whep) = (
        format!("{}whip/9", server.pages),
        format!("{}whep/9", server.pages),
    );
    is_sound(
        &stream(&server, &["--whip", &whip, "--whep", &whep]),
        VIEWERS,
    );
}

#[test]
fn peers_get_back_what_they_send() {
    let server = portunus();
    let line = [
        "echo",
        "--janus",
        &server.url,
        "--peers",
        "5",
        "--bitrate",
        "500k",
    ];
    let line = line
        .into_iter()
        .chain(["--duration", "2", "--settle", "0.5"]);
    let record = hammer(line);
    is_sound(&record, 5);
}

fn audio_rooms(server: &Server, more: &[&str]) -> RunRecord {
    let mut line = vec!["bridge", "--janus", &server.url, "--duration", "3"];
    line.extend([
        "--settle",
        "2",
        "--check-share",
        "1",
        "--max-delay",
        "60000",
    ]);
    line.extend(more);
    hammer(line)
}

/// All join, and each hears all who talk in its room, but not itself.
fn is_heard(record: &RunRecord, participants: u32) {
    let RunRecord { steps, summary, .. } = record;
    let step = steps.first().expect("a step");
    assert_eq!(summary.failed_joins, 0, "{summary:?}");
    assert_eq!(step.participants, participants, "{summary:?}");
    assert!(step.delivered_share > 0.7, "{step:?}");
    let sound = step.sound.as_ref().expect("audio rooms");
    assert_eq!(
        (sound.heard_share, sound.own_heard),
        (Some(1.0), 0),
        "{sound:?}"
    );
    assert_eq!(
        (sound.listeners, sound.jumps),
        (participants, 0),
        "{sound:?}"
    );
    assert!(sound.chirps > 0 && sound.chirps_heard > 0, "{sound:?}");
    let took = sound.mouth_to_ear.expect("chirps were heard");
    // An encoder and a packet at the least; a busy machine is late.
    assert!(took.p50_us > 5e3 && took.p50_us < 900e3, "{took:?}");
    assert!(step.delay.is_some_and(|late| late.count > 0), "{step:?}");
}

#[test]
fn talkers_of_an_audio_room_are_heard_by_the_others() {
    let server = portunus();
    is_heard(&audio_rooms(&server, &["--participants", "5"]), 5);
    let rooms = ["--participants", "6", "--room-size", "3", "--talkers", "1"];
    let telephones = ["--codec", "pcma", "--silence", "muted"];
    let record = audio_rooms(&server, &[&rooms[..], &telephones].concat());
    is_heard(&record, 6);
}

#[test]
fn sentences_over_a_bad_way_are_scored() {
    let server = portunus();
    let way = ["--quality", "1", "--loss", "2", "--jitter", "5"];
    let record = audio_rooms(&server, &[&["--participants", "3"], &way[..]].concat());
    let quality = record.summary.quality.expect("it was asked for");
    assert!(
        quality.scored >= 2 && quality.scored <= quality.said,
        "{quality:?}"
    );
    assert!(quality.worst >= 1.0 && quality.best <= 4.65, "{quality:?}");
}

fn calls(server: &Server, more: &[&str]) -> RunRecord {
    let mut line = vec!["sip", "--janus", &server.url];
    line.extend(["--settle", "0.5", "--check-share", "1"]);
    line.extend(more);
    hammer(line)
}

/// All calls are up, and what is said is heard at the far end and comes back.
fn is_called(record: &RunRecord, calls: u32) {
    is_sound(record, calls);
    let far = record.summary.far.expect("a far end");
    // As many as come back, and those on their way.
    assert!(
        far.received_packets > 0 && far.delivered_share > 0.99,
        "{far:?}"
    );
    let delay = far.delay.expect("packets with stamps");
    assert!(delay.min_us > 0.0 && delay.min_us < 1e6, "{delay:?}");
    let set_up = record.summary.set_up.expect("calls were set up");
    let [server, asking, answering] = [set_up.server, set_up.asking, set_up.answering]
        .map(|delays| delays.expect("each has been"));
    assert_eq!(server.count, u64::from(calls));
    assert!(server.p50_us > 0.0 && server.max_us < asking.max_us + answering.max_us + 1.0);
    let changed = |warning: &&String| warning.contains("were changed");
    assert_eq!(record.summary.warnings.iter().find(changed), None);
}

#[test]
fn calls_by_sip_are_heard_at_the_far_end_and_come_back() {
    let server = portunus();
    is_called(&calls(&server, &["--viewers", "5", "--duration", "2"]), 5);
    let opus = ["--viewers", "3", "--codec", "opus", "--duration", "1"];
    is_called(&calls(&server, &opus), 3);
}

#[test]
fn accounts_are_registered_and_refreshed() {
    let server = portunus();
    let pid = server.child.id().to_string();
    let accounts = [
        "--registrations",
        "8",
        "--expires",
        "5",
        "--server-pid",
        &pid,
    ];
    let record = calls(&server, &[&accounts[..], &["--duration", "6"]].concat());
    let registered = record.summary.registered.expect("it was asked for");
    assert_eq!((registered.accounts, registered.granted_s), (8, 5));
    // Each of them is refreshed once at the least.
    assert!(registered.refreshes_per_s * 6.0 >= 7.0, "{registered:?}");
    assert!(registered.refreshes_per_s < 8.0, "{registered:?}");
    let step = record.steps.first().expect("a step");
    assert!(step.in_time && step.server_cpu_cores.is_some(), "{step:?}");
}

#[test]
fn debians_janus_is_measured_as_well() {
    let Some(server) = debian_janus() else {
        eprintln!("janus is not installed here");
        return;
    };
    let record = stream(&server, &[]);
    is_sound(&record, VIEWERS);
    assert_eq!(record.server.name, "Janus WebRTC Server");
    is_sound(&room(&server, &["--multistream"]), 4);
    is_heard(&audio_rooms(&server, &["--participants", "5"]), 5);
    is_called(&calls(&server, &["--viewers", "3", "--duration", "2"]), 3);
}
