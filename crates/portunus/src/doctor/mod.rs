//! `portunus doctor`: checks whether the server can work with its configuration on this machine,
//! and reports remedies.
//!
//! It changes nothing, and needs neither network nor rights: it reports what it could not check.
//! Each subject has a file with its checks. Their names are in [`finding`].

mod addresses;
mod certificates;
mod clock;
mod configuration;
mod connections;
mod disk;
mod finding;
mod firewall;
mod limits;
mod media_ports;
mod ports;
mod report;
mod server;
mod service;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::time::timeout;
use tokio_rustls::rustls;

pub(crate) use finding::Check;
use finding::{Finding, Level};
use report::Report;
use server::{Holders, Server};
use service::Service;

use crate::config::{Config, DEFAULT_FILE};
use crate::source::Source;

/// The exit statuses for warnings and errors.
const WARNED: u8 = 1;
const FAILED: u8 = 2;

/// The time limit for resolving names of media.announced.
const NAMES: Duration = Duration::from_secs(4);

/// The options of `portunus doctor`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Doctor {
    #[command(flatten)]
    source: Source,

    /// The name by which clients reach the server: its certificate has to be for it
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Leave out what a check finds; may be given several times
    #[arg(long, value_name = "CHECK", hide_possible_values = true)]
    ignore: Vec<Check>,
}

const AFTER_HELP: &str = "\
It changes nothing, and can run beside the server. Run it as the server's user,
which is `sudo -u portunus portunus doctor` with the packages: then it sees what
that user may do. docs/doctor.md explains each check; --json says their names.
Exit status: 0 nothing has to be changed; 1 there are warnings; 2 there are
errors, or the command line is wrong.";

impl Doctor {
    /// Runs all checks, prints the report, and returns the exit status.
    pub(crate) fn run(&self) -> ExitCode {
        let file = self.source.file();
        let mut findings = match self.source.configuration() {
            Ok(config) => match self.examine(config, file.as_deref()) {
                Ok(findings) => findings,
                Err(error) => {
                    eprintln!("portunus: cannot start the runtime: {error}");
                    return ExitCode::from(FAILED);
                }
            },
            Err(error) => configuration::unread(&error),
        };
        findings.retain(|finding| !self.ignore.contains(&finding.check));
        let report = Report::new(file.map(|file| file.display().to_string()), findings);
        let printed = match self.json {
            true => report.print_json(),
            false => report.print(),
        };
        // The reader may have closed the pipe.
        let _ = printed;
        match report.level {
            Level::Error => ExitCode::from(FAILED),
            Level::Warning => ExitCode::from(WARNED),
            Level::Note | Level::Ok => ExitCode::SUCCESS,
        }
    }

    fn examine(&self, config: Config, file: Option<&Path>) -> std::io::Result<Vec<Finding>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        // Another provider may be installed already; any will do.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let findings = runtime.block_on(examine(config, file, self.host.as_deref()));
        // Does not wait for DNS.
        runtime.shutdown_background();
        Ok(findings)
    }
}

/// Runs all checks. Those that wait for others run at the same time.
async fn examine(mut config: Config, file: Option<&Path>, host: Option<&str>) -> Vec<Finding> {
    config.count_media_ports();
    let mut probe = config.look();
    let remotes = tokio::spawn(connections::examine(probe.take_remotes()));
    let unresolved = match timeout(NAMES, config.resolve_announced()).await {
        Ok(resolved) => resolved.err().map(|error| error.to_string()),
        Err(_) => Some("DNS does not answer".to_owned()),
    };
    let text = file.and_then(|file| fs::read_to_string(file).ok());
    let text = text.unwrap_or_default();
    let found = config.findings(&probe);
    let mut findings =
        configuration::examine(&config, &found, (file, &text), unresolved.as_deref());
    let is_default = file.is_some_and(|file| file == Path::new(DEFAULT_FILE));
    let service = Service::read(Path::new("/")).filter(|_| is_default);
    if let Some(service) = &service {
        let is_root = rustix::process::geteuid().is_root();
        findings.extend(configuration::of_service(&config, &probe, service, is_root));
    }
    let holders = tokio::task::block_in_place(Holders::read);
    let server = Server::find(&config, &holders).await;
    findings.push(server.finding());
    findings.extend(ports::examine(
        &config.listeners,
        &holders,
        &server,
        service.as_ref(),
    ));
    let by_network = async {
        let (mut findings, told) = addresses::examine(&config).await;
        findings.extend(media_ports::examine(&config, &told, &server).await);
        findings
    };
    let (by_network, clock) = tokio::join!(by_network, clock::examine(file));
    findings.extend(by_network);
    findings.push(clock);
    findings.extend(firewall::examine(&config.listeners, Path::new("/")));
    findings.extend(tokio::task::block_in_place(|| {
        let mut findings = certificates::examine(probe.certificates(), &config, host, &server);
        findings.extend(limits::examine(&config, &server, service.as_ref()));
        findings.extend(disk::examine(&config, &probe));
        findings
    }));
    findings.extend(remotes.await.unwrap_or_default());
    findings
}
