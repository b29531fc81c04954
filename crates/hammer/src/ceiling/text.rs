//! The figures of a ceiling for a terminal.

use std::fmt::Write;

use super::Options;
use crate::doubts::{NOT_OPTIMISED, UNDISTURBED};
use crate::figures::{bits_per_s, bytes, count, digits, percent};
use crate::record::{BareLoad, BareLoop, Ceiling, Criterion, DELIVERED_AT_LEAST};

// Writing into a string cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => { let _ = writeln!($out, $($arguments)*); };
}

pub(super) fn ceiling(options: &Options, ceiling: &Ceiling, loads: &[BareLoad]) -> String {
    let mut out = String::new();
    put!(
        out,
        "ceiling of core {} with {}",
        options.server_core,
        ceiling.srtp_profile
    );
    for criterion in Criterion::BOTH {
        if let Some(bare) = ceiling.of(criterion) {
            most(&mut out, criterion, bare);
        }
    }
    for load in loads {
        put!(
            out,
            "  {} participants  {} ns of CPU time a packet, {} cores, {} delivered",
            count(load.participants.into()),
            digits(load.cpu_ns_per_packet),
            digits(load.cpu_cores),
            percent(load.delivered_share)
        );
    }
    warnings(&mut out, options, ceiling);
    out
}

fn most(out: &mut String, criterion: Criterion, bare: &BareLoop) {
    put!(
        out,
        "  {:<8}  {}, {} packets/s: enough for {} participants",
        criterion.name(),
        bits_per_s(bare.delivered_bps),
        count(bare.delivered_pps),
        count(bare.participants.unwrap_or(bare.viewers))
    );
    put!(
        out,
        "            {} ns a packet: {} crypto and header, {} sending; {} delivered to {} addresses",
        digits(bare.crypto_ns + bare.send_ns),
        digits(bare.crypto_ns),
        digits(bare.send_ns),
        percent(bare.delivered_share),
        count(bare.addresses.into())
    );
    put!(
        out,
        "            {}, {} between two system calls",
        bare.joined(),
        bytes(bare.batch_bytes as f64)
    );
}

fn warnings(out: &mut String, options: &Options, ceiling: &Ceiling) {
    for criterion in Criterion::BOTH {
        let Some(bare) = ceiling.of(criterion) else {
            continue;
        };
        let name = criterion.name();
        if bare.delivered_share < DELIVERED_AT_LEAST {
            put!(
                out,
                "  WARNING: {name}, core {} could not count all that was sent",
                options.load_core
            );
        }
        if let Some(share) = bare.cpu_share.filter(|share| *share < UNDISTURBED) {
            put!(
                out,
                "  WARNING: {name}, something else had core {} for {} of the time; by CPU time it is {}",
                options.server_core,
                percent(1.0 - share),
                bits_per_s(bare.delivered_bps / share)
            );
        }
    }
    if cfg!(debug_assertions) {
        put!(out, "  WARNING: {NOT_OPTIMISED}");
    }
}
