//! Placement and scheduling of threads.

use std::{io, mem};

/// Pins the calling thread to the `n`-th core that the process may use.
pub fn pin_to_core(n: usize) -> io::Result<()> {
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

/// Gives the calling thread precedence over all ordinary ones of its core (SCHED_FIFO), and over
/// those of the same class with a lower `priority`, from 1 to 99. Requires CAP_SYS_NICE, or a limit
/// RLIMIT_RTPRIO of at least the priority.
pub fn run_first(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority.into(),
    };
    // SAFETY: the call reads `parameters` only; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "asks the scheduler")]
    fn any_number_names_a_core() {
        let pinned = std::thread::spawn(|| (pin_to_core(0).is_ok(), pin_to_core(1_000).is_ok()));
        assert_eq!(pinned.join().ok(), Some((true, true)));
    }
}
