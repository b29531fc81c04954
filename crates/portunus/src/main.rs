//! The program `portunus`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    portunus::main()
}
