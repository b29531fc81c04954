//! `portunus cluster`: makes and joins clusters, and shows their state.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use portunus_cluster::{Folder, Invitation, NodeId, join, renew};
use serde_json::{Value, json};

use super::table;
use crate::config::Config;
use crate::exit_status::{CANNOT_START, WRONG_USE};
use crate::{health, source};

/// What to do with a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a cluster: its certificate authority, and the certificate of this node, in the folder
    /// cluster.folder
    Init(Init),
    /// Print an invitation for one node, which it can use once; on the node where the cluster was
    /// made
    Invite(Invite),
    /// Join a cluster by an invitation: get the certificate of this node from the inviting node,
    /// which has to run
    Join(Join),
    /// Make the key and the certificate of a node in a folder, to be taken to that node; on the node
    /// where the cluster was made
    Issue(Issue),
    /// Revoke the certificates of a node, so that it, or who has stolen one, has to be invited anew; on
    /// the node where the cluster was made
    Revoke(Revoke),
    /// Get a new certificate of this node for its present one, which has to be valid, from the node
    /// that has invited it
    Renew(Renew),
    /// Show nodes, links and homes, and what disagrees, as the running server sees them
    Status(Status),
}

/// The options of `portunus cluster init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    #[command(flatten)]
    place: Place,
    /// The name of this node [default: cluster.name of the configuration]
    #[arg(long)]
    name: Option<NodeName>,
}

/// The options of `portunus cluster invite`.
#[derive(Debug, Args)]
pub(crate) struct Invite {
    /// The name of the new node: cluster.name of its configuration
    name: NodeName,
    #[command(flatten)]
    place: Place,
    /// Where the new node reaches this one, HOST or HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    address: String,
    /// For how many hours the invitation is valid
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=720))]
    hours: u64,
}

/// The options of `portunus cluster join`.
#[derive(Debug, Args)]
pub(crate) struct Join {
    /// The invitation, as `portunus cluster invite` has printed it
    invitation: String,
    #[command(flatten)]
    place: Place,
}

/// The options of `portunus cluster issue`.
#[derive(Debug, Args)]
pub(crate) struct Issue {
    /// The name of the node: cluster.name of its configuration
    name: NodeName,
    #[command(flatten)]
    place: Place,
    /// The folder for its files ca.pem, node.pem and node.key
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

/// The options of `portunus cluster revoke`.
#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The name of the node
    name: NodeName,
    #[command(flatten)]
    place: Place,
    /// The SHA-256 of a further certificate, in hexadecimal; may be given several times
    #[arg(long, value_name = "HEX", value_parser = fingerprint)]
    fingerprint: Vec<String>,
}

/// The options of `portunus cluster renew`.
#[derive(Debug, Args)]
pub(crate) struct Renew {
    #[command(flatten)]
    place: Place,
    /// Where this node reaches the one that has invited it, HOST:PORT [default: as in the invitation]
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// On the node where the cluster was made: make a new certificate authority first. Nodes trust the
    /// one before, too, until it is forgotten
    #[arg(long)]
    authority: bool,
    /// On the node where the cluster was made: trust the authority before no longer. All other nodes
    /// have to have renewed their certificates since --authority
    #[arg(long, conflicts_with = "authority")]
    forget_authority: bool,
}

/// The options of `portunus cluster status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The server's configuration, which says where its Admin API is [default: as for the server]
    #[arg(short, long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where the certificates are.
#[derive(Debug, Args)]
struct Place {
    /// The server's configuration [default: as for the server]
    #[arg(short, long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// The folder of the certificates [default: cluster.folder of the configuration]
    #[arg(long)]
    folder: Option<PathBuf>,
}

/// The name of a node on the command line.
#[derive(Debug, Clone)]
struct NodeName(NodeId);

impl std::str::FromStr for NodeName {
    type Err = portunus_cluster::IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        NodeId::new(text).map(NodeName)
    }
}

/// Reads a SHA-256 in hexadecimal, also with colons as OpenSSL prints it.
fn fingerprint(text: &str) -> Result<String, String> {
    let digits = text.replace(':', "").to_ascii_lowercase();
    let is_whole = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_whole {
        true => Ok(digits),
        false => Err("64 hexadecimal digits are expected".to_owned()),
    }
}

/// What the program prints last, and its exit status.
type Outcome = Result<String, (u8, String)>;

impl Place {
    fn read(&self) -> Result<(Config, Folder), (u8, String)> {
        let config = source::load(source::file(&self.config).as_deref());
        let config = config.map_err(|error| (WRONG_USE, error.to_string()))?;
        let folder = self.folder.as_ref().unwrap_or(&config.cluster.node.folder);
        let folder = Folder::new(folder);
        Ok((config, folder))
    }
}

fn failed(error: impl std::fmt::Display) -> (u8, String) {
    (CANNOT_START, format!("portunus: {error}"))
}

impl Command {
    pub(crate) fn run(&self) -> ExitCode {
        let outcome = match self {
            Command::Init(init) => init.run(),
            Command::Invite(invite) => invite.run(),
            Command::Join(join) => join.run(),
            Command::Issue(issue) => issue.run(),
            Command::Revoke(revoke) => revoke.run(),
            Command::Renew(renew) => renew.run(),
            Command::Status(status) => status.run(),
        };
        match outcome {
            Ok(text) => {
                println!("{text}");
                ExitCode::SUCCESS
            }
            Err((status, text)) => {
                eprintln!("{text}");
                ExitCode::from(status)
            }
        }
    }
}

impl Init {
    fn run(&self) -> Outcome {
        let (config, folder) = self.place.read()?;
        let name = match &self.name {
            Some(NodeName(name)) => name.clone(),
            None => NodeId::new(&config.cluster.node.name)
                .map_err(|error| (WRONG_USE, format!("portunus: cluster.name: {error}")))?,
        };
        folder.init(&name).map_err(failed)?;
        Ok(format!(
            "The cluster is made, and this node is {name}.\n\
             For each other node: portunus cluster invite NAME --address THIS-HOST"
        ))
    }
}

impl Invite {
    fn run(&self) -> Outcome {
        let (config, folder) = self.place.read()?;
        let issuer = folder.identity().map_err(failed)?.id;
        let has_port = self.address.rsplit_once(':').is_some_and(|(host, port)| {
            port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
        });
        let address = match has_port {
            true => self.address.clone(),
            false if self.address.contains(':') && !self.address.starts_with('[') => {
                format!("[{}]:{}", self.address, config.cluster.node.port)
            }
            false => format!("{}:{}", self.address, config.cluster.node.port),
        };
        let valid = Duration::from_secs(self.hours.saturating_mul(3_600));
        let invitation = folder.invite(&self.name.0, &issuer, address, valid);
        invitation.map(|it| it.to_string()).map_err(failed)
    }
}

impl Issue {
    fn run(&self) -> Outcome {
        let (_, folder) = self.place.read()?;
        let NodeName(name) = &self.name;
        folder.issue(name, &Folder::new(&self.to)).map_err(failed)?;
        Ok(format!(
            "The certificate of {name} is in {}. Its key is secret.",
            self.to.display()
        ))
    }
}

impl Join {
    fn run(&self) -> Outcome {
        let (_, folder) = self.place.read()?;
        let invitation = self.invitation.parse::<Invitation>();
        let invitation = invitation.map_err(|error| (WRONG_USE, format!("portunus: {error}")))?;
        let runtime = runtime()?;
        let name = runtime
            .block_on(join(&folder, &invitation))
            .map_err(failed)?;
        Ok(format!(
            "This node is {name}, which has to be cluster.name of its configuration."
        ))
    }
}

impl Revoke {
    fn run(&self) -> Outcome {
        let (_, folder) = self.place.read()?;
        let NodeName(name) = &self.name;
        let count = folder.revoke(name, &self.fingerprint).map_err(failed)?;
        Ok(format!(
            "{count} certificates of {name} are revoked. Running nodes refuse them within seconds.\n\
             To let {name} in again: portunus cluster invite {name} --address THIS-HOST"
        ))
    }
}

impl Renew {
    fn run(&self) -> Outcome {
        let (_, folder) = self.place.read()?;
        if self.authority {
            folder.renew_authority().map_err(failed)?;
        }
        if self.forget_authority {
            folder.forget_authority().map_err(failed)?;
        }
        let renewed = runtime()?.block_on(renew(&folder, self.address.clone()));
        let name = renewed.map_err(failed)?;
        let next = match (self.authority, self.forget_authority) {
            (true, _) => {
                "\nThe authority is a new one. On each other node: portunus cluster renew\n\
                 When all have done so: portunus cluster renew --forget-authority"
            }
            (_, true) => {
                "\nThe authority before is not trusted here any more. On each other node: portunus cluster renew"
            }
            _ => "",
        };
        Ok(format!(
            "{name} has a new certificate, which its running server takes within a second.{next}"
        ))
    }
}

impl Status {
    fn run(&self) -> Outcome {
        let config = source::load(source::file(&self.config).as_deref());
        let config = config.map_err(|error| (WRONG_USE, error.to_string()))?;
        let runtime = runtime()?;
        let status = runtime.block_on(ask(&config)).map_err(failed)?;
        Ok(match self.json {
            true => format!("{status:#}"),
            false => table::text(&status),
        })
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, (u8, String)> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().map_err(failed)
}

/// Asks the Admin API of the running server.
async fn ask(config: &Config) -> Result<Value, String> {
    let admin = &config.api.admin;
    let (scheme, port) = match (admin.enabled, admin.https) {
        (true, _) => ("http", admin.port),
        (false, true) => ("https", admin.https_port),
        (false, false) => return Err("the Admin API is off: set admin.enabled".to_owned()),
    };
    let ip = admin.bind.first().copied();
    let ip = ip.unwrap_or(std::net::Ipv4Addr::LOCALHOST.into());
    let path = admin.base_path.trim_start_matches('/');
    let url = health::at(scheme, (ip, port).into(), path);
    let mut body = json!({ "janus": "cluster_status", "transaction": "cluster" });
    if let (Some(secret), Some(body)) = (&config.admin.secret, body.as_object_mut()) {
        body.insert("admin_secret".to_owned(), Value::from(&**secret));
    }
    let text = health::post(&url, body.to_string()).await;
    let text = text.map_err(|error| format!("{url}: {error}; does the server run?"))?;
    let mut answer: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if let Some(reason) = answer.pointer("/error/reason") {
        return Err(format!("{url}: {}", reason.as_str().unwrap_or_default()));
    }
    match answer.get_mut("cluster") {
        Some(status) => Ok(status.take()),
        None => Err(format!("{url}: the answer has no state of a cluster")),
    }
}
