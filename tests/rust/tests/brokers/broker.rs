//! Brokers as processes, each with its own ports and folder.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use portunus_api::testing::write_certificate;
use portunus_tests::free_port;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// The longest time for a broker to start.
const PATIENCE: Duration = Duration::from_secs(90);

/// Users of RabbitMQ. `narrow` may not write by the broker's own exchange.
const RABBITMQ_USERS: &str = r#"{
    "vhosts": [{ "name": "/" }],
    "users": [
        { "name": "guest", "password": "guest", "tags": "administrator" },
        { "name": "narrow", "password": "narrow", "tags": "" }
    ],
    "permissions": [
        { "user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*" },
        { "user": "narrow", "vhost": "/", "configure": ".*", "write": "^(janus|to-janus.*)$", "read": ".*" }
    ]
}"#;

/// The kind of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Mosquitto,
    RabbitMq,
    Nats,
}

/// A broker that runs, or has run.
#[derive(Debug)]
pub struct Broker {
    kind: Kind,
    folder: TempDir,
    /// Its port.
    pub port: u16,
    /// Its TLS port.
    pub tls_port: u16,
    process: Option<Process>,
    /// The process by which nodes of Erlang find each other.
    names: Option<(u16, Process)>,
}

/// A process with all that it starts.
#[derive(Debug)]
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Self {
        let command = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Process(command.spawn().expect("a process"))
    }

    fn end(&mut self, signal: &str) {
        let group = format!("kill -{signal} -{}", self.0.id());
        let _ = Command::new("sh").args(["-c", &group]).output();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end("KILL");
    }
}

impl Broker {
    /// Starts a broker. Returns `None` if it is not installed.
    pub async fn start(kind: Kind) -> Option<Self> {
        let Some(program) = program(kind) else {
            println!("{kind:?} is not installed: what needs it is not tested");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        write_certificate(folder.path());
        let names = (kind == Kind::RabbitMq).then(|| {
            let port = free_port();
            let mut epmd = Command::new("epmd");
            epmd.args(["-port", &port.to_string(), "-address", "127.0.0.1"]);
            (port, Process::start(&mut epmd))
        });
        let mut broker = Broker {
            kind,
            folder,
            port: free_port(),
            tls_port: free_port(),
            process: None,
            names,
        };
        broker.run(&program).await;
        Some(broker)
    }

    /// Returns its certificate, for `localhost`.
    pub fn certificate(&self) -> String {
        self.folder.path().join("cert.pem").display().to_string()
    }

    /// Stops the broker: `gently` like a system's shutdown, which gives it time to save its state,
    /// or at once.
    pub fn stop(&mut self, gently: bool) {
        if let Some(mut process) = self.process.take() {
            process.end(if gently { "TERM" } else { "KILL" });
        }
    }

    /// Starts it again, in the same place.
    pub async fn start_again(&mut self) {
        let program = program(self.kind).expect("it was there before");
        self.run(&program).await;
    }

    async fn run(&mut self, program: &Path) {
        let mut command = Command::new(program);
        match self.kind {
            Kind::Mosquitto => self.mosquitto(&mut command),
            Kind::RabbitMq => self.rabbitmq(&mut command),
            Kind::Nats => self.nats(&mut command),
        }
        self.process = Some(Process::start(&mut command));
        let up = async {
            for port in [self.port, self.tls_port] {
                while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                    sleep(Duration::from_millis(50)).await;
                }
            }
        };
        let started = timeout(PATIENCE, up).await;
        started.unwrap_or_else(|_| panic!("{:?} does not start", self.kind));
    }

    fn mosquitto(&self, command: &mut Command) {
        let folder = self.folder.path();
        let config = folder.join("mosquitto.conf");
        let (port, tls_port, at) = (self.port, self.tls_port, folder.display());
        let text = format!(
            "user root\nallow_anonymous true\npersistence true\npersistence_location {at}/\n\
             listener {port} 127.0.0.1\n\
             listener {tls_port} 127.0.0.1\ncertfile {at}/cert.pem\nkeyfile {at}/key.pem\n"
        );
        fs::write(&config, text).unwrap();
        command.arg("-c").arg(config);
    }

    /// Two servers, since each has TLS for all clients or for none.
    fn nats(&self, command: &mut Command) {
        let at = self.folder.path().display();
        // Nobody may publish below `forbidden`.
        let config = self.folder.path().join("nats.conf");
        let text = "authorization { users = [ { user: any, password: any, \
                    permissions: { publish: { deny: \"forbidden.>\" } } } ] }\nno_auth_user: any\n";
        fs::write(&config, text).unwrap();
        let plain = format!(
            "PATH=$PATH:/usr/sbin; nats-server -a 127.0.0.1 -p {} -c {}",
            self.port,
            config.display()
        );
        let secure = format!(
            "nats-server -a 127.0.0.1 -p {} --tls --tlscert {at}/cert.pem --tlskey {at}/key.pem",
            self.tls_port
        );
        command.args(["-c", &format!("{plain} & {secure} & wait")]);
    }

    /// In the foreground, under its own name, with all files in its folder.
    fn rabbitmq(&self, command: &mut Command) {
        let folder = self.folder.path();
        let at = folder.display();
        let (epmd, _) = self.names.as_ref().expect("its names");
        fs::write(folder.join("plugins"), "[].").unwrap();
        let definitions = folder.join("definitions.json");
        fs::write(&definitions, RABBITMQ_USERS).unwrap();
        let config = format!(
            "listeners.tcp.default = 127.0.0.1:{}\nlisteners.ssl.default = 127.0.0.1:{}\n\
             ssl_options.certfile = {at}/cert.pem\nssl_options.keyfile = {at}/key.pem\n\
             ssl_options.cacertfile = {at}/cert.pem\nssl_options.verify = verify_none\n\
             load_definitions = {}\n",
            self.port,
            self.tls_port,
            definitions.display()
        );
        fs::write(folder.join("rabbitmq.conf"), config).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", folder)
            .env("ERL_EPMD_PORT", epmd.to_string())
            .env(
                "RABBITMQ_NODENAME",
                format!("portunus{}@localhost", self.port),
            )
            .env("RABBITMQ_DIST_PORT", free_port().to_string())
            .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", folder.join("log"))
            .env("RABBITMQ_GENERATED_CONFIG_DIR", folder.join("generated"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("plugins"))
            .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq"))
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1}",
            );
    }
}

/// Returns the path of the broker's program. Two of them are in unusual places.
fn program(kind: Kind) -> Option<PathBuf> {
    let (names, run) = match kind {
        Kind::Mosquitto => (["/usr/sbin/mosquitto", "/usr/bin/mosquitto"], None),
        Kind::RabbitMq => (["/usr/lib/rabbitmq/bin/rabbitmq-server", ""], None),
        Kind::Nats => (
            ["/usr/sbin/nats-server", "/usr/bin/nats-server"],
            Some("/bin/sh"),
        ),
    };
    let found = names.iter().find(|name| Path::new(name).exists())?;
    Some(PathBuf::from(run.unwrap_or(found)))
}
