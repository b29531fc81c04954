//! The program `portunus`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// Its heap takes huge pages (the options are in `.cargo/config.toml`): what a packet needs of a viewer's state is
/// on half a dozen pages, and looking these up is a good part of relaying where viewers are many. It also gives back
/// what those who have left had.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    portunus::main()
}
