//! The usage of server, link and hammer from /proc, sampled once per second.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use clap::Args;
use procfs::process::Process;
use procfs::{CpuInfo, Current, CurrentSI, KernelStats, ProcError, ProcResult};

use super::stalls::{Disturbance, Watch, WatchError};
use crate::record::{LinkUse, LoadUse, Machine, ServerUse, ThreadUse};

/// The number of busiest threads kept.
const BUSIEST: usize = 8;
/// The proportional memory is read once in this many samples, since reading it blocks the server's
/// memory management for a moment.
const PSS_EVERY: u64 = 5;

/// The options of watching.
#[derive(Debug, Clone, Default, Args)]
#[group(id = "watch")]
pub struct Options {
    /// The server's process, if it runs on this machine: its CPU time, memory and threads are
    /// recorded, its children's too
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<i32>,
    /// The interface of this network namespace that leads to the server: its traffic is recorded
    #[arg(long, value_name = "INTERFACE")]
    pub link: Option<String>,
    /// See for how long the server's cores and hammer's stand still, by a thread on each that wakes
    /// each millisecond before all others (as root only; half a percent of a core): delays are
    /// given without what that held up, too
    #[arg(long)]
    pub watch_cores: bool,
}

/// The usage between two samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Usage {
    /// The time between the samples.
    pub length_s: f64,
    /// `None` without a server process, or after its end.
    pub server: Option<ServerUse>,
    /// `None` without an interface.
    pub link: Option<LinkUse>,
    /// The usage of hammer.
    pub load: LoadUse,
    /// The disturbances of watched cores.
    pub disturbances: Vec<Disturbance>,
}

/// Returns this machine's properties. Unknown ones are empty.
pub fn machine() -> Machine {
    let processors = CpuInfo::current().ok();
    let model = processors.as_ref().and_then(|cpus| cpus.model_name(0));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    Machine {
        processor: model.unwrap_or_default().to_owned(),
        cores: processors.map_or(0, |cpus| cpus.num_cores() as u32),
        kernel: kernel.unwrap_or_default().trim().to_owned(),
    }
}

/// Reads counters, and returns their growth.
#[derive(Debug)]
pub struct Sampler {
    options: Options,
    own_pid: i32,
    server_cores: Vec<usize>,
    own_cores: Vec<usize>,
    watch: Option<Watch>,
    samples: u64,
    pss_bytes: Option<u64>,
    before: Counters,
}

/// The reason why nothing can be sampled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsageError {
    /// The process does not exist, or may not be read.
    #[error("process {pid} cannot be watched: {source}")]
    Process {
        /// Its id.
        pid: i32,
        /// The error of /proc.
        source: ProcError,
    },
    /// The interface does not exist.
    #[error("there is no interface {0} here")]
    Interface(String),
    /// Cores cannot be watched.
    #[error("--watch-cores: {0}")]
    Watch(#[from] WatchError),
    /// /proc lacks a required value.
    #[error("/proc: {0}")]
    Proc(#[from] ProcError),
}

impl Sampler {
    /// Starts to count.
    pub fn new(options: Options) -> Result<Self, UsageError> {
        let own = Process::myself()?;
        let server_cores = match options.server_pid {
            Some(pid) => Process::new(pid)
                .and_then(|process| allowed_cores(&process))
                .map_err(|source| UsageError::Process { pid, source })?,
            None => Vec::new(),
        };
        let own_cores = allowed_cores(&own)?;
        let mut watched = [server_cores.as_slice(), &own_cores].concat();
        watched.sort_unstable();
        watched.dedup();
        let watch = match options.watch_cores {
            true => Some(Watch::start(&watched)?),
            false => None,
        };
        let mut this = Self {
            own_pid: own.pid,
            options,
            server_cores,
            own_cores,
            watch,
            samples: 0,
            pss_bytes: None,
            before: Counters::at(Instant::now()),
        };
        this.before = this.read()?;
        match &this.options.link {
            Some(link) if this.before.link.is_none() => Err(UsageError::Interface(link.clone())),
            _ => Ok(this),
        }
    }

    /// Returns the server's current memory, with shared pages in proportion if the kernel reports
    /// it.
    pub fn server_memory_bytes(&self) -> Option<u64> {
        let tree = Tree::read(self.options.server_pid?, true).ok()?;
        Some(pss_bytes(&tree).unwrap_or(tree.rss_bytes))
    }

    /// Returns the cores that the server may use.
    pub fn server_cores(&self) -> &[usize] {
        &self.server_cores
    }

    /// Returns the cores that are watched for disturbances.
    pub fn watched_cores(&self) -> &[usize] {
        self.watch.as_ref().map(Watch::cores).unwrap_or_default()
    }

    /// Makes the next sample read the proportional memory.
    pub fn refresh_memory(&mut self) {
        self.samples = 0;
    }

    /// Returns the usage since the last call.
    pub fn sample(&mut self) -> Result<Usage, UsageError> {
        let now = self.read()?;
        let before = std::mem::replace(&mut self.before, now);
        let (before, now) = (&before, &self.before);
        let length_s = (now.at - before.at).as_secs_f64().max(1e-3);
        if self.samples.is_multiple_of(PSS_EVERY) {
            self.pss_bytes = now.server.as_ref().and_then(pss_bytes);
        }
        self.samples += 1;
        let server = before.server.as_ref().zip(now.server.as_ref());
        let server = server.map(|(before_tree, tree)| ServerUse {
            cpu_cores: tree.cpu_s_since(before_tree) / length_s,
            core_busy_share: busy(&self.server_cores, before, now),
            rss_bytes: tree.rss_bytes,
            pss_bytes: self.pss_bytes,
            threads: tree.threads.len() as u32,
            busiest: tree.busiest_since(before_tree, length_s),
        });
        let link = before.link.as_ref().zip(now.link.as_ref());
        let link = link.map(|(before, now)| now.since(before, length_s));
        let load = LoadUse {
            cpu_cores: now.own.cpu_s_since(&before.own) / length_s,
            core_busy_share: busy(&self.own_cores, before, now),
            thread_busy_share: 0.0,
            stolen_cores: (now.stolen_s - before.stolen_s).max(0.0) / length_s,
        };
        Ok(Usage {
            length_s,
            server,
            link,
            load,
            disturbances: self.watch.as_ref().map(Watch::take).unwrap_or_default(),
        })
    }

    fn read(&self) -> ProcResult<Counters> {
        let mut counters = Counters::at(Instant::now());
        counters.own = Tree::read(self.own_pid, false)?;
        // The scenario notices the end of a server.
        counters.server = self
            .options
            .server_pid
            .and_then(|pid| Tree::read(pid, true).ok());
        counters.link = match &self.options.link {
            Some(link) => Link::read(link)?,
            None => None,
        };
        let ticks = procfs::ticks_per_second() as f64;
        let kernel = KernelStats::current()?;
        for core in &kernel.cpu_time {
            let idle = core.idle + core.iowait.unwrap_or(0);
            let stolen = core.steal.unwrap_or(0);
            let busy = core.user + core.nice + core.system;
            let interrupts = core.irq.unwrap_or(0) + core.softirq.unwrap_or(0);
            counters.cores.push(Core {
                busy: busy + interrupts + stolen,
                idle,
            });
            counters.stolen_s += stolen as f64 / ticks;
        }
        Ok(counters)
    }
}

/// The kernel's counters so far.
#[derive(Debug)]
struct Counters {
    at: Instant,
    own: Tree,
    server: Option<Tree>,
    link: Option<Link>,
    cores: Vec<Core>,
    stolen_s: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Core {
    busy: u64,
    idle: u64,
}

/// A process, with its descendants if requested.
#[derive(Debug, Default)]
struct Tree {
    processes: Vec<i32>,
    /// CPU time by the clock ticks of whole processes, in seconds. It is coarse, but includes ended
    /// threads.
    coarse_cpu_s: f64,
    rss_bytes: u64,
    threads: HashMap<i32, Thread>,
}

#[derive(Debug)]
struct Thread {
    name: String,
    cpu_ns: u64,
}

#[derive(Debug)]
struct Link {
    received_bytes: u64,
    received_packets: u64,
    sent_bytes: u64,
    sent_packets: u64,
    dropped: u64,
    buffer_drops: u64,
}

impl Counters {
    fn at(at: Instant) -> Self {
        Self {
            at,
            own: Tree::default(),
            server: None,
            link: None,
            cores: Vec::new(),
            stolen_s: 0.0,
        }
    }
}

impl Tree {
    fn read(pid: i32, descendants: bool) -> ProcResult<Self> {
        let mut tree = Self::default();
        let mut seen = HashSet::from([pid]);
        let mut left = vec![pid];
        while let Some(next) = left.pop() {
            match tree.add(next) {
                Ok(children) if descendants => {
                    left.extend(children.into_iter().filter(|child| seen.insert(*child)));
                }
                Ok(_) => {}
                Err(error) if next == pid => return Err(error),
                // A child that has just ended.
                Err(_) => {}
            }
        }
        Ok(tree)
    }

    /// Adds one process. Returns its children.
    fn add(&mut self, pid: i32) -> ProcResult<Vec<i32>> {
        let process = Process::new(pid)?;
        let stat = process.stat()?;
        self.coarse_cpu_s += (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64;
        self.rss_bytes += stat.rss * procfs::page_size();
        self.processes.push(pid);
        let mut children = Vec::new();
        for task in process.tasks()?.flatten() {
            let (Ok(stat), Ok(times)) = (task.stat(), task.schedstat()) else {
                continue;
            };
            if let Ok(of_task) = task.children() {
                children.extend(of_task.into_iter().map(|child| child as i32));
            }
            let thread = Thread {
                name: stat.comm,
                cpu_ns: times.sum_exec_runtime,
            };
            self.threads.insert(task.tid, thread);
        }
        Ok(children)
    }

    fn cpu_s_since(&self, before: &Tree) -> f64 {
        if before
            .threads
            .keys()
            .any(|tid| !self.threads.contains_key(tid))
        {
            return (self.coarse_cpu_s - before.coarse_cpu_s).max(0.0);
        }
        let growth = self
            .threads
            .iter()
            .map(|(tid, thread)| thread.cpu_s_since(before.threads.get(tid)));
        growth.sum()
    }

    fn busiest_since(&self, before: &Tree, length_s: f64) -> Vec<ThreadUse> {
        let uses = self.threads.iter().map(|(tid, thread)| ThreadUse {
            name: thread.name.clone(),
            id: *tid,
            cpu_cores: thread.cpu_s_since(before.threads.get(tid)) / length_s,
        });
        let mut uses: Vec<ThreadUse> = uses.filter(|thread| thread.cpu_cores > 0.0).collect();
        uses.sort_by(|a, b| b.cpu_cores.total_cmp(&a.cpu_cores));
        uses.truncate(BUSIEST);
        uses
    }
}

impl Thread {
    fn cpu_s_since(&self, before: Option<&Thread>) -> f64 {
        let before = before.map_or(0, |thread| thread.cpu_ns);
        self.cpu_ns.saturating_sub(before) as f64 / 1e9
    }
}

impl Link {
    fn read(interface: &str) -> ProcResult<Option<Self>> {
        let devices = procfs::net::dev_status()?;
        let snmp = procfs::net::snmp()?;
        Ok(devices.get(interface).map(|device| Self {
            received_bytes: device.recv_bytes,
            received_packets: device.recv_packets,
            sent_bytes: device.sent_bytes,
            sent_packets: device.sent_packets,
            dropped: device.recv_drop + device.sent_drop,
            buffer_drops: snmp.udp_rcvbuf_errors,
        }))
    }

    fn since(&self, before: &Link, length_s: f64) -> LinkUse {
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / length_s;
        LinkUse {
            from_server_bps: rate(self.received_bytes, before.received_bytes) * 8.0,
            from_server_pps: rate(self.received_packets, before.received_packets),
            to_server_bps: rate(self.sent_bytes, before.sent_bytes) * 8.0,
            to_server_pps: rate(self.sent_packets, before.sent_packets),
            dropped: self.dropped.saturating_sub(before.dropped),
            load_buffer_drops: self.buffer_drops.saturating_sub(before.buffer_drops),
        }
    }
}

fn busy(cores: &[usize], before: &Counters, now: &Counters) -> Vec<f64> {
    let share = |core: &usize| {
        let (before, now) = (before.cores.get(*core)?, now.cores.get(*core)?);
        let busy = now.busy.saturating_sub(before.busy) as f64;
        let idle = now.idle.saturating_sub(before.idle) as f64;
        Some(if busy + idle > 0.0 {
            busy / (busy + idle)
        } else {
            0.0
        })
    };
    cores.iter().filter_map(share).collect()
}

/// Returns `None` if it can be read of no process. One that has ended since the tree was read
/// counts as 0.
fn pss_bytes(tree: &Tree) -> Option<u64> {
    let of = |pid: &i32| -> Option<u64> {
        let rollup = Process::new(*pid).ok()?.smaps_rollup().ok()?;
        let map = rollup.memory_map_rollup.0.first()?;
        map.extension.map.get("Pss").copied()
    };
    let each = tree.processes.iter().filter_map(of);
    each.reduce(|sum, bytes| sum + bytes)
}

fn allowed_cores(process: &Process) -> ProcResult<Vec<usize>> {
    let ranges = process.status()?.cpus_allowed_list.unwrap_or_default();
    Ok(ranges
        .into_iter()
        .flat_map(|(from, to)| from as usize..=to as usize)
        .collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use std::process::Command;

    #[test]
    fn a_busy_child_is_seen_with_its_children() {
        let script = "while :; do :; done & wait";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let options = Options {
            server_pid: Some(pid),
            link: Some("lo".to_owned()),
            ..Options::default()
        };
        let mut sampler = Sampler::new(options).unwrap();
        // Until the kernel has counted some of the work, however long that takes.
        let started = Instant::now();
        let usage = loop {
            let usage = sampler.sample().unwrap();
            let server = usage.server.clone().unwrap();
            if server.cpu_cores > 0.0 && server.threads >= 2 || started.elapsed().as_secs() > 20 {
                break usage;
            }
            std::thread::yield_now();
        };
        for process in Tree::read(pid, true).unwrap().processes {
            Command::new("kill")
                .args(["-9", &process.to_string()])
                .status()
                .unwrap();
        }
        child.wait().unwrap();
        let server = usage.server.unwrap();
        assert!(
            server.cpu_cores > 0.0 && server.threads >= 2 && server.rss_bytes > 0,
            "{server:?}"
        );
        assert!(!server.busiest.is_empty());
        assert!(usage.link.is_some());
        assert!(
            sampler.sample().unwrap().server.is_none(),
            "an ended server is no error"
        );
    }

    #[test]
    fn the_proportional_memory_is_read_when_it_is_asked_for() {
        let options = Options {
            server_pid: i32::try_from(std::process::id()).ok(),
            link: None,
            ..Options::default()
        };
        let mut sampler = Sampler::new(options).unwrap();
        let pss = |usage: Usage| usage.server.unwrap().pss_bytes.unwrap();
        let before = pss(sampler.sample().unwrap());
        let held = vec![1u8; 64 << 20];
        sampler.refresh_memory();
        let after = pss(sampler.sample().unwrap());
        assert!(after >= before + (60 << 20), "{before}, then {after}");
        drop(std::hint::black_box(held));
    }

    #[test]
    fn the_machine_is_described() {
        let machine = machine();
        assert!(
            machine.cores > 0 && !machine.kernel.is_empty(),
            "{machine:?}"
        );
    }

    #[test]
    fn what_is_not_there_is_named() {
        let options = Options {
            server_pid: None,
            link: Some("nowhere0".to_owned()),
            ..Options::default()
        };
        let error = Sampler::new(options).unwrap_err();
        assert_eq!(error.to_string(), "there is no interface nowhere0 here");
        let options = Options {
            server_pid: Some(i32::MAX),
            link: None,
            ..Options::default()
        };
        assert!(matches!(
            Sampler::new(options),
            Err(UsageError::Process { .. })
        ));
    }
}
