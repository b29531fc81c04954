//! Two network namespaces with a veth pair between them.
//!
//! The namespaces have no names: the kernel keeps them while a thread is in them or this program
//! has them open, and removes them with the pair when the program ends, however it ends.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};

use super::addresses::Addresses;

/// The server's address.
pub const SERVER_IP: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
/// The load's address.
pub const LOAD_IP: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    handle: File,
    /// The name of the pair's interface in it.
    pub interface: &'static str,
    /// The address of that interface.
    pub ip: IpAddr,
}

/// Two namespaces with the link between them.
#[derive(Debug)]
pub struct Link {
    /// The namespace of the server.
    pub server: Namespace,
    /// The namespace of the load.
    pub load: Namespace,
}

/// The reason why there are no namespaces.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// Not root, or in a container without the right.
    #[error(
        "network namespaces cannot be made: {0}; run as root, or give --loopback where it is known"
    )]
    NotAllowed(nix::Error),
    /// The program `ip` is missing.
    #[error("the program ip cannot be run: {0}; it comes with the package iproute2")]
    NoIp(io::Error),
    /// `ip` refused.
    #[error("ip {arguments}: {message}")]
    Ip {
        /// Its arguments.
        arguments: String,
        /// Its message.
        message: String,
    },
    /// TUN devices cannot be made.
    #[error(
        "a link that delays or loses packets cannot be made: {0}; it takes /dev/net/tun and the kernel's module tun"
    )]
    NoTun(io::Error),
    /// There is no such link.
    #[error("there is no link between {0} and {1}")]
    NoLink(String, String),
    /// A step of the set-up failed.
    #[error("{step}: {source}")]
    Step {
        /// The step.
        step: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl Link {
    /// Makes and links both namespaces. Disables receive packet steering, so that the sender's core
    /// processes packets in the kernel.
    pub fn new() -> Result<Self, NamespaceError> {
        let server = Namespace::new("server0", SERVER_IP)?;
        let load = Namespace::new("load0", LOAD_IP)?;
        let peer = load.path().display().to_string();
        server.ip(&[
            "link",
            "add",
            server.interface,
            "type",
            "veth",
            "peer",
            "name",
            load.interface,
            "netns",
            &peer,
        ])?;
        for namespace in [&server, &load] {
            let address = format!("{}/24", namespace.ip);
            namespace.ip(&["address", "add", &address, "dev", namespace.interface])?;
            namespace.ip(&["link", "set", namespace.interface, "up"])?;
            namespace.ip(&["link", "set", "lo", "up"])?;
            namespace.steering_off()?;
        }
        // All addresses of the network belong to the load, and the server reaches it through the
        // load's address.
        let network = Addresses::LAB.to_string();
        load.ip(&["route", "add", "local", &network, "dev", "lo"])?;
        // Firefox gathers no candidates without a default route.
        let server_ip = server.ip.to_string();
        load.ip(&["route", "add", "default", "via", &server_ip])?;
        let gateway = load.ip.to_string();
        server.ip(&["route", "add", &network, "via", &gateway])?;
        Ok(Self { server, load })
    }
}

impl Namespace {
    pub(super) fn new(interface: &'static str, ip: Ipv4Addr) -> Result<Self, NamespaceError> {
        let made = in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(NamespaceError::NotAllowed)?;
            File::open("/proc/thread-self/ns/net").map_err(|source| NamespaceError::Step {
                step: "opening a namespace",
                source,
            })
        });
        Ok(Self {
            handle: made?,
            interface,
            ip: ip.into(),
        })
    }

    /// Returns its path for other processes while this one runs.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            self.handle.as_raw_fd()
        ))
    }

    /// Moves the calling thread into it.
    pub fn enter(&self) -> io::Result<()> {
        setns(&self.handle, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
    }

    /// Runs `work` in a thread in it. Processes and threads that it starts are in it, too.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        in_thread(|| {
            self.enter()?;
            Ok(work())
        })
    }

    /// Runs `ip` in it.
    pub(super) fn ip(&self, arguments: &[&str]) -> Result<(), NamespaceError> {
        let output = self.within(|| Command::new("ip").args(arguments).output());
        let output = output.and_then(|it| it).map_err(NamespaceError::NoIp)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(NamespaceError::Ip {
                arguments: arguments.join(" "),
                message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }),
        }
    }

    pub(super) fn steering_off(&self) -> Result<(), NamespaceError> {
        let outcome = in_thread(|| {
            self.enter()?;
            // /sys shows the namespace in which it was mounted, so it is mounted again for this
            // thread only.
            unshare(CloneFlags::CLONE_NEWNS)?;
            mount(
                None::<&str>,
                "/",
                None::<&str>,
                MsFlags::MS_REC | MsFlags::MS_PRIVATE,
                None::<&str>,
            )?;
            mount(
                Some("sysfs"),
                "/sys",
                Some("sysfs"),
                MsFlags::empty(),
                None::<&str>,
            )?;
            for interface in fs::read_dir("/sys/class/net")? {
                let Ok(queues) = fs::read_dir(interface?.path().join("queues")) else {
                    continue;
                };
                for queue in queues {
                    let path = queue?.path();
                    if path.join("rps_cpus").exists() {
                        fs::write(path.join("rps_cpus"), "0")?;
                    }
                }
            }
            Ok(())
        });
        outcome.map_err(|source: io::Error| match source.kind() {
            // A container that permits namespaces, but no mounts.
            io::ErrorKind::PermissionDenied => NamespaceError::NotAllowed(nix::Error::EPERM),
            _ => NamespaceError::Step {
                step: "switching receive steering off",
                source,
            },
        })
    }
}

/// Runs `work` in a new thread, whose namespaces can be changed without affecting others.
pub(crate) fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        scope
            .spawn(work)
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn each_address_of_the_network_is_the_loads() {
        let link = match Link::new() {
            Ok(link) => link,
            Err(error) => return eprintln!("SKIPPED: {error}"),
        };
        let receiver = in_thread(|| {
            link.load.enter().unwrap();
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap()
        });
        let port = receiver.local_addr().unwrap().port();
        in_thread(|| {
            link.server.enter().unwrap();
            let socket = UdpSocket::bind((link.server.ip, 0)).unwrap();
            for to in ["10.64.0.1", "10.79.255.254"] {
                socket.send_to(to.as_bytes(), (to, port)).unwrap();
            }
        });
        let mut buffer = [0; 16];
        for expected in ["10.64.0.1", "10.79.255.254"] {
            let (len, _) = receiver.recv_from(&mut buffer).unwrap();
            assert_eq!(buffer.get(..len), Some(expected.as_bytes()));
        }
    }

    #[test]
    fn datagrams_pass_between_the_namespaces_and_nowhere_else() {
        let link = match Link::new() {
            Ok(link) => link,
            Err(error @ (NamespaceError::NotAllowed(_) | NamespaceError::NoIp(_))) => {
                eprintln!("SKIPPED: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let receiver = in_thread(|| {
            link.load.enter().unwrap();
            UdpSocket::bind((link.load.ip, 0)).unwrap()
        });
        let to = receiver.local_addr().unwrap();
        in_thread(|| {
            link.server.enter().unwrap();
            UdpSocket::bind((link.server.ip, 0))
                .unwrap()
                .send_to(b"here", to)
                .unwrap();
        });
        let mut buffer = [0; 16];
        let (len, from) = receiver.recv_from(&mut buffer).unwrap();
        assert_eq!(
            (buffer.get(..len), from.ip()),
            (Some(&b"here"[..]), link.server.ip)
        );
        assert!(
            UdpSocket::bind((link.load.ip, 0)).is_err(),
            "not from outside"
        );
    }
}
