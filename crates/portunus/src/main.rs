//! The program `portunus`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// Its heap uses huge pages (see `.cargo/config.toml`): a viewer's state for one packet is on half
/// a dozen pages, and address translation is a large part of relaying to many viewers. The heap
/// also returns memory of clients that have left.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    portunus::main()
}
