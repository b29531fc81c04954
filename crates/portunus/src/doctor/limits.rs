//! The machine's limits for the server: files, buffers, cores.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use portunus_udp::{Socket, enable_gro, run_first};
use rustix::process::{Resource, getrlimit};

use super::finding::{Check, Finding};
use super::server::Server;
use super::service::Service;
use crate::config::Config;
use crate::open_files;

/// The receive buffer in bytes below which there is a warning, as in the server.
const LITTLE_BUFFER: usize = 1 << 20;

/// Examines all limits.
pub(super) fn examine(config: &Config, server: &Server, service: Option<&Service>) -> Vec<Finding> {
    let mut findings = vec![files(server, service)];
    findings.extend(sockets(service));
    findings.extend(real_time(config, service));
    findings.push(cores(config));
    findings
}

fn files(server: &Server, service: Option<&Service>) -> Finding {
    let of_server = server.pid.and_then(|pid| {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"))?;
        let hard = line.split_whitespace().nth(1)?;
        Some(hard.parse::<u64>().unwrap_or(u64::MAX))
    });
    let of_service = service.and_then(|it| it.files);
    let (limit, whose) = match of_server.or(of_service) {
        Some(limit) => (limit, "The server"),
        None => {
            let limit = getrlimit(Resource::Nofile).maximum;
            (limit.unwrap_or(u64::MAX), "A server started from here")
        }
    };
    if limit >= open_files::FEW {
        let many = match limit {
            u64::MAX => "any number of".to_owned(),
            limit => limit.to_string(),
        };
        return Finding::ok(Check::OpenFiles, format!("{whose} may open {many} files."));
    }
    let text =
        format!("{whose} may open {limit} files only, and each connection of a client takes one.");
    let change = "Raise the hard limit: LimitNOFILE= of systemd, --ulimit nofile= of Docker, \
                  `ulimit -Hn`.";
    Finding::warning(Check::OpenFiles, text).change(change)
}

fn sockets(service: Option<&Service>) -> Vec<Finding> {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let socket = match Socket::bind(any) {
        Ok(socket) => socket,
        Err(error) => {
            let text = format!("There are no sockets of UDP: {error}.");
            return vec![Finding::error(Check::ReceiveBuffer, text)];
        }
    };
    let kib = socket.receive_buffer() >> 10;
    let buffer = if socket.receive_buffer() >= LITTLE_BUFFER {
        let text = format!("The kernel holds {kib} KiB of what comes to a media socket.");
        Finding::ok(Check::ReceiveBuffer, text)
    } else if service.is_some_and(|it| it.has("CAP_NET_ADMIN")) {
        let text = "The service's CAP_NET_ADMIN gives media sockets the room that they need.";
        Finding::ok(Check::ReceiveBuffer, text)
    } else {
        let text = format!(
            "The kernel holds only {kib} KiB of what comes to a media socket: bursts are lost \
             under load."
        );
        let change = "`sysctl -w net.core.rmem_max=8388608`, and net.core.rmem_max = 8388608 in a \
                      file of /etc/sysctl.d to keep it. Or give the server CAP_NET_ADMIN.";
        Finding::warning(Check::ReceiveBuffer, text).change(change)
    };
    let offload = match (socket.probe_gso(), enable_gro(&socket)) {
        (true, true) => Finding::ok(
            Check::Offload,
            "The kernel takes and gives datagrams in batches (GSO, GRO).",
        ),
        (gso, gro) => {
            let lacks = match (gso, gro) {
                (false, false) => "GSO and GRO",
                (false, _) => "GSO",
                _ => "GRO",
            };
            let text = format!(
                "The kernel has no {lacks} of UDP: media takes more CPU time than it has to."
            );
            Finding::note(Check::Offload, text)
                .change("Linux has GSO of UDP since 4.18, and GRO since 5.0.")
        }
    };
    vec![buffer, offload]
}

/// Tries to run a thread in real time, if configured.
fn real_time(config: &Config, service: Option<&Service>) -> Option<Finding> {
    if !config.media.real_time {
        return None;
    }
    // The thread ends immediately.
    let tried = std::thread::spawn(|| run_first(1)).join();
    let error = match tried {
        Ok(Ok(())) => None,
        _ if service.is_some_and(|it| it.has("CAP_SYS_NICE")) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("the thread ended".to_owned()),
    };
    Some(match error {
        None => Finding::ok(Check::RealTime, "Media workers may run in real time."),
        Some(error) => Finding::warning(
            Check::RealTime,
            format!("Media workers may not run in real time (media.real_time): {error}."),
        )
        .change(
            "Give the server CAP_SYS_NICE, or a limit of real-time priority: LimitRTPRIO=1 of \
             systemd, --cap-add SYS_NICE of Docker.",
        ),
    })
}

fn cores(config: &Config) -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = config.media.worker_count();
    let text = format!("Cores: {cores}; media workers: {workers}.");
    match workers > cores {
        true => Finding::warning(Check::Cores, text)
            .change("Set media.workers to 0, which is one for each core."),
        false => Finding::ok(Check::Cores, text),
    }
}
