//! The `unsafe` code: AES-GCM by the crypto library's low-level interface, and prefetching memory.
//!
//! A server that sends a packet to thousands of peers has the keys of none in its cache.
//! `aws-lc-rs` does not expose the addresses of its keys. The interface below it does, so keys can
//! be prefetched while other peers are served.
#![allow(unsafe_code, reason = "calls of the crypto library")]

use std::mem;
use std::ptr::{self, NonNull};

use aws_lc_sys::{
    EVP_AEAD, EVP_AEAD_CTX, EVP_AEAD_CTX_free, EVP_AEAD_CTX_new, EVP_AEAD_CTX_open_gather,
    EVP_AEAD_CTX_seal_scatter, EVP_aead_aes_128_gcm, EVP_aead_aes_256_gcm,
};

use crate::error::Refused;

/// Bytes of a GCM tag (RFC 7714 section 13.1).
const TAG: usize = 16;

/// The bytes of a cache line, or fewer.
const LINE: usize = 64;

/// Prefetches `value` into the CPU's cache without waiting. Memory that it points to is not
/// fetched. Use it for values that are needed soon, after prefetching others: a cache miss takes
/// some hundred instructions, but several at once take hardly longer.
#[inline]
pub fn fetch<T>(value: &T) {
    fetch_lines(ptr::from_ref(value).cast(), mem::size_of::<T>());
}

/// Prefetches the first `len` bytes of `value`, for types with a fixed order of fields (`repr(C)`).
#[inline]
pub fn fetch_head<T>(value: &T, len: usize) {
    fetch_lines(ptr::from_ref(value).cast(), len.min(mem::size_of::<T>()));
}

#[inline]
fn fetch_lines(start: *const u8, len: usize) {
    let mut offset = 0;
    while offset < len {
        fetch_line(start.wrapping_add(offset));
        offset += LINE;
    }
    // A value that is not aligned to a line ends in one more line.
    fetch_line(start.wrapping_add(len.saturating_sub(1)));
}

#[inline]
fn fetch_line(of: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it only hints at an address and reads nothing, so any address is valid.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(of.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = of;
}

/// An expanded key of AES-GCM with tags of 16 bytes (RFC 5116 section 5).
pub(crate) struct GcmKey(NonNull<EVP_AEAD_CTX>);

// SAFETY: the library's contexts belong to no thread, and the functions that seal and open with one
// take it as const and may be called by several threads at once.
unsafe impl Send for GcmKey {}
// SAFETY: as above.
unsafe impl Sync for GcmKey {}

impl GcmKey {
    /// Expands a key of 16 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Result<Self, Refused> {
        aws_lc_rs::init();
        let aead: *const EVP_AEAD = match key.len() {
            // SAFETY: these take nothing and return a pointer to a constant.
            16 => unsafe { EVP_aead_aes_128_gcm() },
            // SAFETY: as above.
            32 => unsafe { EVP_aead_aes_256_gcm() },
            _ => return Err(Refused),
        };
        // SAFETY: `aead` is a constant of the library, and the pointer and length are those of
        // `key`.
        let context = unsafe { EVP_AEAD_CTX_new(aead, key.as_ptr(), key.len(), TAG) };
        NonNull::new(context).map(Self).ok_or(Refused)
    }

    /// Encrypts `payload` in place and `tail` to the start of `tail_and_tag`, and writes the tag
    /// after it. `tail_and_tag` must be 16 bytes longer than `tail`.
    #[inline]
    pub(crate) fn seal(
        &self,
        nonce: &[u8; 12],
        aad: &[u8],
        payload: &mut [u8],
        tail: &[u8],
        tail_and_tag: &mut [u8],
    ) -> Result<(), Refused> {
        if tail_and_tag.len() != tail.len() + TAG {
            return Err(Refused);
        }
        let mut written = 0;
        let out = payload.as_mut_ptr();
        // SAFETY: the context is whole, since `new` gave it; every pointer comes with the length of
        // the slice that it is of. `in` may be `out`, and the mutable slices overlap with no other,
        // as their borrows say.
        let done = unsafe {
            EVP_AEAD_CTX_seal_scatter(
                self.0.as_ptr(),
                out,
                tail_and_tag.as_mut_ptr(),
                &raw mut written,
                tail_and_tag.len(),
                nonce.as_ptr(),
                nonce.len(),
                out,
                payload.len(),
                tail.as_ptr(),
                tail.len(),
                aad.as_ptr(),
                aad.len(),
            )
        };
        match done == 1 && written == tail_and_tag.len() {
            true => Ok(()),
            false => Err(Refused),
        }
    }

    /// Checks `tag` and decrypts `payload` in place. If it is not authentic, `payload` is
    /// undefined.
    #[inline]
    pub(crate) fn open(
        &self,
        nonce: &[u8; 12],
        aad: &[u8],
        payload: &mut [u8],
        tag: &[u8],
    ) -> Result<(), Refused> {
        let out = payload.as_mut_ptr();
        // SAFETY: as in `seal`; it writes as many bytes as it reads.
        let done = unsafe {
            EVP_AEAD_CTX_open_gather(
                self.0.as_ptr(),
                out,
                nonce.as_ptr(),
                nonce.len(),
                out,
                payload.len(),
                tag.as_ptr(),
                tag.len(),
                aad.as_ptr(),
                aad.len(),
            )
        };
        match done == 1 {
            true => Ok(()),
            false => Err(Refused),
        }
    }

    /// Prefetches the expanded key.
    #[inline]
    pub(crate) fn fetch(&self) {
        fetch_lines(self.0.as_ptr().cast(), mem::size_of::<EVP_AEAD_CTX>());
    }
}

impl Drop for GcmKey {
    fn drop(&mut self) {
        // SAFETY: `new` gave it, and nobody uses it any more.
        unsafe { EVP_AEAD_CTX_free(self.0.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_does_what_the_library_s_safe_interface_does(
            is_long in any::<bool>(),
            key in any::<[u8; 32]>(),
            nonce in any::<[u8; 12]>(),
            aad in prop::collection::vec(any::<u8>(), 0..80),
            payload in prop::collection::vec(any::<u8>(), 0..600),
            split in 0..600_usize,
        ) {
            let (algorithm, len) = if is_long { (&AES_256_GCM, 32) } else { (&AES_128_GCM, 16) };
            let key = key.get(..len).unwrap();
            let safe = LessSafeKey::new(UnboundKey::new(algorithm, key).unwrap());
            let mut expected = payload.clone();
            let unique = Nonce::assume_unique_for_key(nonce);
            safe.seal_in_place_append_tag(unique, Aad::from(&aad), &mut expected).unwrap();

            let ours = GcmKey::new(key).unwrap();
            ours.fetch();
            let (head, tail) = payload.split_at(split.min(payload.len()));
            let (mut sealed, mut tail_and_tag) = (head.to_vec(), vec![0; tail.len() + TAG]);
            ours.seal(&nonce, &aad, &mut sealed, tail, &mut tail_and_tag).unwrap();
            sealed.extend(tail_and_tag);
            prop_assert_eq!(&sealed, &expected);

            let (opened, tag) = sealed.split_at_mut(payload.len());
            ours.open(&nonce, &aad, opened, tag).unwrap();
            prop_assert_eq!(&*opened, &payload);
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        assert!(GcmKey::new(&[0; 24]).is_err());
        let key = GcmKey::new(&[7; 16]).unwrap();
        let (mut payload, mut tag) = ([1, 2, 3], [0; TAG]);
        let too_short = tag.get_mut(..TAG - 1).unwrap();
        assert!(
            key.seal(&[0; 12], &[], &mut payload, &[], too_short)
                .is_err()
        );
        key.seal(&[0; 12], b"aad", &mut payload, &[], &mut tag)
            .unwrap();
        let open = |nonce, aad: &[u8], mut payload: [u8; 3], tag: &[u8]| {
            key.open(&nonce, aad, &mut payload, tag).is_ok()
        };
        assert!(open([0; 12], b"aad", payload, &tag));
        assert!(!open([1; 12], b"aad", payload, &tag));
        assert!(!open([0; 12], b"add", payload, &tag));
        assert!(!open([0; 12], b"aad", [0; 3], &tag));
        assert!(!open([0; 12], b"aad", payload, &[0; TAG]));
        assert!(!open([0; 12], b"aad", payload, tag.get(..TAG - 1).unwrap()));
    }

    #[test]
    fn what_is_fetched_stays_as_it_is() {
        let values: Vec<[u8; 1_000]> = (0..100).map(|n| [n; 1_000]).collect();
        values.iter().for_each(fetch);
        fetch(&());
        values.iter().for_each(|value| fetch_head(value, 2_000));
        assert!((0..).zip(&values).all(|(n, value)| *value == [n; 1_000]));
    }
}
