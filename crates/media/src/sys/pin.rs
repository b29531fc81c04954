//! Pinning a thread to a core.

use std::{io, mem};

/// Lets the calling thread run on the `n`-th of the cores that the process may use only.
pub(crate) fn pin_to_core(n: usize) -> io::Result<()> {
    // SAFETY: cpu_set_t is plain integers; the calls get its exact size and a valid pointer, and
    // CPU_ISSET and CPU_SET check nothing beyond the index, which stays below CPU_SETSIZE.
    unsafe {
        let mut allowed: libc::cpu_set_t = mem::zeroed();
        let size = mem::size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &mut allowed) != 0 {
            return Err(io::Error::last_os_error());
        }
        let cores = 0..libc::CPU_SETSIZE as usize;
        let cores: Vec<usize> = cores
            .filter(|core| libc::CPU_ISSET(*core, &allowed))
            .collect();
        let Some(core) = cores.get(n % cores.len().max(1)) else {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        };
        let mut wanted: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(*core, &mut wanted);
        match libc::sched_setaffinity(0, size, &wanted) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
