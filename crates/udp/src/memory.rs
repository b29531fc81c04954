//! Memory that is free, but still with the process.

/// Gives what the allocator holds for later back to the system; says whether there was something. It takes
/// milliseconds for each hundred megabytes, in which other threads may have to wait when they allocate.
///
/// glibc keeps what is freed in the middle of its heaps, which is all but a little of it: without this
/// the memory of those who have left is free for others, but not for other programs.
pub fn give_back_memory() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: it takes a number of bytes and may be called at any time by any thread.
    return unsafe { libc::malloc_trim(0) == 1 };
    #[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_use_stays() {
        let kept: Vec<Vec<u8>> = (0..1_000).map(|n| vec![n as u8; 1_000]).collect();
        drop((0..1_000).map(|_| vec![0u8; 1_000]).collect::<Vec<_>>());
        give_back_memory();
        assert!(
            (0..)
                .zip(&kept)
                .all(|(n, kept)| kept.iter().all(|byte| *byte == n as u8))
        );
    }
}
