//! Ports for programs that need a configured one.

use std::collections::HashSet;
use std::net::{TcpListener, UdpSocket};
use std::sync::Mutex;

/// Returns an even port of the loopback interface that was free a moment ago for TCP and UDP, as
/// was the next one for UDP. It is returned only once in this process, and is below the range from
/// which Linux chooses (32768 to 60999).
pub fn free_port() -> u16 {
    static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    loop {
        let port = rand::random_range(5_000..16_000) * 2;
        let is_free = TcpListener::bind(("127.0.0.1", port)).is_ok()
            && UdpSocket::bind(("127.0.0.1", port)).is_ok()
            && UdpSocket::bind(("127.0.0.1", port + 1)).is_ok();
        let mut given = GIVEN.lock().unwrap();
        if is_free && given.get_or_insert_default().insert(port) {
            return port;
        }
    }
}
