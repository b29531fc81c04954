//! nats-server as the bus, and what it says of its buckets.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use portunus_tests::free_port;
use serde_json::Value;

use crate::server::{PATIENCE, Process};

/// A nats-server with JetStream.
pub struct Bus {
    pub process: Process,
    /// Its port for figures.
    figures: (Ipv4Addr, u16),
}

impl Bus {
    /// Starts one at this address.
    pub fn at(program: &Path, folder: &Path, (ip, port): (Ipv4Addr, u16)) -> Self {
        let mut command = Command::new(program);
        command.args(["-a", &ip.to_string(), "-p", &port.to_string()]);
        command.arg("-js").arg("-sd").arg(folder);
        Self::start(command, ip)
    }

    /// Starts one of a cluster, whose servers listen at these ports, and for each other at those.
    pub fn of_cluster(
        program: &Path,
        folder: &Path,
        (own, port): (usize, u16),
        routes: &[u16],
    ) -> Self {
        let all = routes.iter().map(|port| format!("nats://127.0.0.1:{port}"));
        let all: Vec<String> = all.collect();
        let config = format!(
            "server_name: n{own}\nlisten: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {:?} }}\n\
             cluster {{ name: bus, listen: \"127.0.0.1:{}\", routes: {all:?} }}\n",
            folder.join("store"),
            routes[own],
        );
        std::fs::create_dir_all(folder).unwrap();
        let path = folder.join("nats.conf");
        std::fs::write(&path, config).unwrap();
        let mut command = Command::new(program);
        command.arg("-c").arg(path);
        Self::start(command, Ipv4Addr::LOCALHOST)
    }

    fn start(mut command: Command, ip: Ipv4Addr) -> Self {
        let figures = (ip, free_port());
        command.args(["-m", &figures.1.to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Bus {
            process: Process(command.spawn().unwrap()),
            figures,
        }
    }

    /// Returns what it says of a bucket, or null if it has none.
    pub fn bucket(&self, name: &str) -> Value {
        let figures = self
            .figures("/jsz?accounts=true&streams=true")
            .unwrap_or_default();
        let accounts = figures["account_details"].as_array().into_iter().flatten();
        let mut streams =
            accounts.flat_map(|it| it["stream_detail"].as_array().into_iter().flatten());
        let stream = streams.find(|it| it["name"] == format!("KV_{name}"));
        stream.cloned().unwrap_or_default()
    }

    /// Returns the number of writes to a bucket.
    pub fn writes(&self, name: &str) -> u64 {
        let writes = self.bucket(name)["state"]["last_seq"].as_u64();
        writes.expect("a bucket")
    }

    /// Returns figures in JSON.
    fn figures(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.figures).ok()?;
        // By HTTP/1.1 the answer would be in chunks.
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        let (_, body) = response.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }

    /// Waits until it listens.
    pub fn until_up(&self) {
        let begin = Instant::now();
        while TcpStream::connect(self.figures).is_err() {
            assert!(begin.elapsed() < PATIENCE, "nats-server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
