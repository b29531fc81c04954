//! Ports for programs that need a configured one.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Mutex;

/// Returns an even port of the loopback interface that was free a moment ago for TCP and UDP, as
/// was the next one for UDP. No other test gets it before this process ends, and it is below the
/// range from which Linux chooses (32768 to 60999).
pub fn free_port() -> u16 {
    static GIVEN: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    loop {
        let port = rand::random_range(5_000..16_000) * 2;
        // An abstract name that all tests see, and that ends with the process.
        let name = format!("portunus-test-port-{port}");
        let name = SocketAddr::from_abstract_name(name).unwrap();
        let Ok(held) = UnixListener::bind_addr(&name) else {
            continue;
        };
        let is_free = TcpListener::bind(("127.0.0.1", port)).is_ok()
            && UdpSocket::bind(("127.0.0.1", port)).is_ok()
            && UdpSocket::bind(("127.0.0.1", port + 1)).is_ok();
        if is_free {
            GIVEN.lock().unwrap().push(held);
            return port;
        }
    }
}
