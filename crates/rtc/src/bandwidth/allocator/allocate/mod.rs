//! The allocator: decisions from estimates and tracks.

use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::hysteresis::{Excess, Hold, Raises};
use super::ladder::Ladder;
use super::limit::{Asked, Overload};
use super::proven_rate::Proven;
use super::share::{Claim, divide, divide_as_equals};
use super::{Decision, Reason, Target, Track, TrackKind};
use crate::bandwidth::{DataRate, Estimate, Limit};

/// The share of the estimate for tracks. The rest is for retransmissions and RTCP.
const FOR_TRACKS: f64 = 0.95;
/// A raise has to fit with this factor. With less, the keyframe that it starts with would fill the
/// queue, the estimate would drop to 85 % of the link, and the raise would be undone.
const MARGIN: f64 = 1.25;
/// The divisor of the budget for a publisher whose frames are dropped. It makes them fit again: it
/// is the margin, with headers and the variation of encoders on top.
const LEFT_OUT: f64 = 1.08 * MARGIN;
/// The assumed rate of a video track that has not been measured.
const UNMEASURED: DataRate = DataRate::kbps(1_500);
/// The publisher of a single layer may send this factor more than now, and at least this much more.
const GROWTH: f64 = 1.5;
const LEAST_SHARE: DataRate = DataRate::kbps(100);
/// Above this multiple of the budget, the excess is cut.
const CUT: f64 = 1.5;
/// A queue so long that video may freeze until a keyframe.
const VERY_LONG_QUEUE: Duration = Duration::from_millis(250);
/// The interval of updates while the result is not yet the best one.
const AGAIN: Duration = Duration::from_millis(250);

/// Divides the bandwidth of a link among the tracks of one viewer.
#[derive(Debug, Default)]
pub struct Allocator {
    states: Vec<State>,
    decisions: Vec<Decision>,
    hold: Hold,
    excess: Excess,
    proven: Proven,
    overload: Overload,
    /// More than the budget was sent when a queue became long. A queue that a keyframe leaves
    /// behind empties by itself.
    emptying: bool,
    /// The rate of the best layers.
    best: DataRate,
    wanted: DataRate,
    follows: bool,
    next: Option<Instant>,
}

/// The state of a video track.
#[derive(Debug)]
struct State {
    media: usize,
    /// The current target. `None` before the first one, and after the client has paused the track.
    target: Option<Target>,
    /// The link does not carry the track.
    is_paused: bool,
    most: Target,
    priority: u8,
    raises: Raises,
    asked: Asked,
}

type Steps = SmallVec<[usize; 8]>;

/// The working data of an update.
struct Round {
    /// The video tracks that are measured and wanted.
    claims: SmallVec<[Claim; 8]>,
    /// The budget for these tracks.
    budget: DataRate,
    /// The part of the budget that may be used now.
    present: DataRate,
    /// The rate of audio.
    audio: DataRate,
    /// The steps that would be reached if nothing was held.
    could: Steps,
    /// The same without priorities.
    equals: Steps,
    /// The steps to reach.
    steps: Steps,
    /// The steps while a queue is emptied.
    flows: Steps,
    cut: bool,
}

impl Allocator {
    /// Decides again after a change of the estimate, of a track, or of the source's rates. The
    /// decisions are in the order of `tracks`.
    pub fn update(&mut self, estimate: &Estimate, tracks: &[Track], now: Instant) -> &[Decision] {
        self.states
            .retain(|state| tracks.iter().any(|track| track.media == state.media));
        let round = self.round(estimate, tracks, now);
        self.decisions.clear();
        for (index, track) in tracks.iter().enumerate() {
            let decision = round.decision(index, track);
            self.decisions.push(decision);
        }
        self.ask_publishers(&round, estimate, now);
        let asked = |claim: &Claim| tracks.get(claim.track).is_some_and(|track| track.asked);
        // The receiver's own estimate comes without signs of congestion.
        self.follows = estimate.limit != Limit::Receiver
            && !round.claims.is_empty()
            && round.claims.iter().all(asked);
        let below = |(claim, step): (&Claim, &usize)| *step < claim.ladder.top();
        let pending = round.claims.iter().zip(&round.flows).any(below)
            || self.excess.is_any()
            || self
                .decisions
                .iter()
                .any(|d| d.reason == Reason::Unmeasured);
        self.next = pending.then_some(now + AGAIN);
        self.wanted = round.wanted(&self.decisions);
        &self.decisions
    }

    /// Returns the decisions of the last update.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// Returns the rate of all wanted layers, with a margin. Probes look for it.
    pub fn wanted(&self) -> DataRate {
        self.wanted
    }

    /// Returns whether the sent rate follows the estimate: all video comes from publishers with a
    /// single layer that are asked to keep to it.
    pub fn follows(&self) -> bool {
        self.follows
    }

    /// Returns when the next update is due if nothing changes before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    fn round(&mut self, estimate: &Estimate, tracks: &[Track], now: Instant) -> Round {
        let audio = tracks
            .iter()
            .filter(|track| track.kind == TrackKind::Audio && track.wanted);
        let audio: DataRate = audio.map(|track| track.rates.total()).sum();
        let estimated = estimate.rate.times(FOR_TRACKS) - audio;
        let present = estimate.budget.times(FOR_TRACKS) - audio;
        let mut claims: SmallVec<[Claim; 8]> = SmallVec::new();
        for (track, input) in tracks.iter().enumerate() {
            claims.extend(self.claim(track, input, estimate.limit, now));
        }
        let flows: DataRate = claims.iter().map(Claim::present_rate).sum();
        self.proven.update((flows, estimated), estimate, now);
        let budget = estimated.max(self.proven.counts(now).times(MARGIN));
        let best = claims
            .iter()
            .map(|claim| claim.ladder.rate(claim.ladder.top()))
            .sum();
        let before = std::mem::replace(&mut self.best, best);
        if best > before.times(MARGIN) && best.times(MARGIN) > budget {
            self.hold.wait_for_probes(now);
        }
        let could = divide(&claims, budget, MARGIN);
        let differ = |pair: &[Claim]| matches!(pair, [a, b] if a.priority != b.priority);
        let equals = match claims.windows(2).any(differ) {
            true => divide_as_equals(&claims, budget, MARGIN),
            false => could.clone(),
        };
        let steps = self.choose(&mut claims, &could, budget, estimate, now);
        let mut round = Round {
            claims,
            budget,
            present,
            audio,
            could,
            equals,
            flows: steps.clone(),
            steps,
            cut: false,
        };
        if self.emptying {
            round.empty_queue(estimate.queue);
        }
        let sent: DataRate = round.claims.iter().map(Claim::present_rate).sum();
        round.cut = self.emptying || sent > budget.times(CUT);
        round
    }

    /// Computes the shares of publishers that have to send less.
    fn ask_publishers(&mut self, round: &Round, estimate: &Estimate, now: Instant) {
        let tops = round.claims.iter().map(|claim| claim.top_if_single());
        let singles: DataRate = tops.flatten().sum();
        let chosen = round.claims.iter().zip(&round.steps);
        let layered = chosen.filter(|(claim, _)| !claim.ladder.is_single);
        let layered: DataRate = layered.map(|(claim, step)| claim.ladder.rate(*step)).sum();
        self.overload
            .update((singles + layered, round.budget), estimate, now);
        for claim in &round.claims {
            let decision = self.decisions.get_mut(claim.track);
            let state = self.states.iter_mut().find(|s| s.media == claim.media);
            if let (Some(state), Some(decision), Some(sends)) =
                (state, decision, claim.top_if_single())
            {
                let share = decision.share;
                decision.share =
                    share.filter(|share| state.asked.update(&self.overload, (sends, *share), now));
            }
        }
    }

    /// Returns the claim of a track, or `None` unless it is a wanted and measured video track.
    fn claim(&mut self, track: usize, input: &Track, limit: Limit, now: Instant) -> Option<Claim> {
        if input.kind != TrackKind::Video {
            return None;
        }
        let state = self
            .states
            .iter_mut()
            .position(|state| state.media == input.media);
        if state.is_none() {
            self.states.push(State {
                media: input.media,
                target: None,
                is_paused: false,
                most: input.most,
                priority: input.priority,
                raises: Raises::default(),
                asked: Asked::default(),
            });
        }
        let last = self.states.len().checked_sub(1)?;
        let state = self.states.get_mut(state.unwrap_or(last))?;
        if !input.wanted {
            (state.target, state.is_paused) = (None, false);
            return None;
        }
        let before = std::mem::replace(&mut state.most, input.most);
        let priority = std::mem::replace(&mut state.priority, input.priority);
        if before != input.most || priority != input.priority {
            state.raises = Raises::default();
            self.hold.end();
            if before.is_below(input.most) {
                self.proven.asked(now);
            }
        }
        let mut ladder = Ladder::new(&input.rates, input.most);
        if ladder.steps.is_empty() {
            return None;
        }
        // Nothing pauses for a link of which nothing is known.
        let is_known = !matches!(limit, Limit::Start | Limit::NoFeedback);
        if input.pausable && (is_known || state.is_paused) {
            ladder.allow_pause();
        }
        let current = match state.is_paused && ladder.may_pause {
            true => Some(0),
            false => state.target.and_then(|target| ladder.at_most(target)),
        };
        Some(Claim {
            track,
            media: input.media,
            priority: input.priority,
            current,
            most: ladder.top(),
            ladder,
        })
    }

    /// Chooses the step of each claim, and updates the state.
    fn choose(
        &mut self,
        claims: &mut [Claim],
        could: &Steps,
        budget: DataRate,
        estimate: &Estimate,
        now: Instant,
    ) -> Steps {
        let flows: DataRate = claims.iter().map(Claim::present_rate).sum();
        let raised = self.states.iter().any(|state| state.raises.are_recent(now));
        let excess = self
            .excess
            .has_to_go((flows, budget), (raised, self.follows), estimate, now);
        self.emptying = estimate.is_emptying() && (self.emptying || excess);
        let is_new = claims.iter().any(|claim| claim.current.is_none());
        // A layer that the client asked for and that fits need not wait.
        let is_asked = self.proven.is_asked(now);
        let is_top = |(claim, could): (&Claim, &usize)| *could == claim.ladder.top();
        let is_asked_in_full = is_asked && claims.iter().zip(could).all(is_top);
        let is_held = !self.hold.is_over(now) || estimate.is_probing;
        let steps = if excess || is_new {
            // No track is raised while others have to be lowered.
            let fits = divide(claims, budget, 1.0);
            let step = |(claim, fits): (&Claim, usize)| {
                claim.current.map_or(fits, |current| current.min(fits))
            };
            claims.iter().zip(fits).map(step).collect()
        } else if estimate.is_emptying() || is_held && !is_asked_in_full {
            claims
                .iter()
                .map(|claim| claim.current.unwrap_or(0))
                .collect()
        } else {
            self.raise(claims, could, budget, now)
        };
        for (claim, step) in claims.iter().zip(&steps) {
            let state = self
                .states
                .iter_mut()
                .find(|state| state.media == claim.media);
            let (Some(state), Some(next)) = (state, claim.ladder.steps.get(*step)) else {
                continue;
            };
            state.target = Some(next.target);
            state.is_paused = claim.ladder.is_pause(*step);
            match claim.current {
                Some(current) if *step > current => {
                    state.raises.raised(claim.ladder.rate(*step), now)
                }
                Some(current) if *step < current => {
                    if excess {
                        state.raises.lowered(now);
                    }
                }
                _ => continue,
            }
            if !is_asked || excess {
                self.hold.begin(now);
            }
        }
        steps
    }

    /// Raises the claims as far as possible. Without a raise, all stay as they are.
    fn raise(
        &mut self,
        claims: &mut [Claim],
        could: &Steps,
        budget: DataRate,
        now: Instant,
    ) -> Steps {
        let mut held = false;
        for (claim, could) in claims.iter_mut().zip(could) {
            let state = self.states.iter().find(|state| state.media == claim.media);
            let Some((state, current)) = state.zip(claim.current) else {
                continue;
            };
            let allowed = |step: &usize| state.raises.allow(claim.ladder.rate(*step), now);
            if current < *could && !allowed(could) {
                claim.most = (current + 1..*could).rev().find(allowed).unwrap_or(current);
                held = true;
            }
        }
        let steps = if held {
            divide(claims, budget, MARGIN)
        } else {
            could.clone()
        };
        let rises = |(claim, step): (&Claim, &usize)| claim.current.is_some_and(|c| *step > c);
        if claims.iter().zip(&steps).any(rises) {
            return steps;
        }
        claims
            .iter()
            .map(|claim| claim.current.unwrap_or(0))
            .collect()
    }
}

impl Round {
    /// Lowers all tracks to what fits, within the same decisions, to empty a queue.
    ///
    /// Leaving an encoding and coming back takes two keyframes, which is worth it only for a very
    /// long queue. Otherwise, fewer frames of the same encoding have to do.
    fn empty_queue(&mut self, queue: Duration) {
        for (claim, step) in self.claims.iter_mut().zip(&self.steps) {
            claim.most = *step;
        }
        self.flows = divide(&self.claims, self.present, 1.0);
        // A queue is soon empty, so no track pauses for it.
        for ((claim, step), flows) in self.claims.iter().zip(&self.steps).zip(&mut self.flows) {
            *flows = claim.ladder.least().min(*step).max(*flows);
        }
        if queue > VERY_LONG_QUEUE {
            return;
        }
        for ((claim, step), flows) in self.claims.iter().zip(&self.steps).zip(&mut self.flows) {
            *flows = claim.ladder.lowest_like(*step).max(*flows);
        }
    }

    fn decision(&self, index: usize, track: &Track) -> Decision {
        let nothing = |target, rate, reason| Decision {
            media: track.media,
            target,
            rate,
            reason,
            cut: false,
            share: None,
        };
        if !track.wanted {
            return nothing(None, DataRate::ZERO, Reason::NotWanted);
        }
        if track.kind == TrackKind::Audio {
            return nothing(Some(track.most), track.rates.total(), Reason::Audio);
        }
        let Some(at) = self.claims.iter().position(|claim| claim.track == index) else {
            // The rate of a new track is unknown, so it starts with the lowest layer.
            let least = Target {
                encoding: 0,
                spatial: 0,
                ..track.most
            };
            return nothing(Some(least), DataRate::ZERO, Reason::Unmeasured);
        };
        let known = (
            self.claims.get(at),
            self.flows.get(at),
            self.steps.get(at),
            self.could.get(at).zip(self.equals.get(at)),
        );
        let (Some(claim), Some(&flows), Some(&step), Some((&could, &equal))) = known else {
            return nothing(Some(track.most), DataRate::ZERO, Reason::Unmeasured);
        };
        let ladder = &claim.ladder;
        let raised = step > ladder.least();
        let reason = if ladder.is_pause(step) {
            Reason::Paused
        } else if flows < step {
            Reason::EmptyingQueue
        } else if step == ladder.top() && ladder.is_bounded {
            Reason::ClientBound
        } else if step == ladder.top() && raised {
            Reason::Best
        } else if could > step {
            Reason::Holding
        } else if raised || self.lowest() <= self.budget {
            if step == ladder.top() {
                Reason::Best
            } else if equal > step {
                Reason::Priority
            } else {
                Reason::Bandwidth
            }
        } else {
            Reason::Least
        };
        Decision {
            media: track.media,
            target: ladder
                .steps
                .get(flows)
                .map(|step| step.target)
                .filter(|_| !ladder.is_pause(flows)),
            rate: ladder.rate(flows),
            reason,
            cut: self.cut,
            share: self.share(claim, flows),
        }
    }

    /// Returns the rate of the lowest steps of all claims that are not paused.
    fn lowest(&self) -> DataRate {
        let claims = self.claims.iter().zip(&self.steps);
        let lowest = claims.map(|(claim, step)| (&claim.ladder, claim.ladder.least().min(*step)));
        lowest.map(|(ladder, step)| ladder.rate(step)).sum()
    }

    /// Returns the share of a single-layer publisher: an equal part of what the tracks with layers
    /// leave. It is less while frames are dropped, so that they fit again.
    fn share(&self, claim: &Claim, step: usize) -> Option<DataRate> {
        let is_single = |claim: &Claim| claim.ladder.is_single;
        if !is_single(claim) {
            return None;
        }
        let layered = self
            .claims
            .iter()
            .zip(&self.steps)
            .filter(|(claim, _)| !is_single(claim));
        let taken: DataRate = layered.map(|(claim, step)| claim.ladder.rate(*step)).sum();
        let singles = self.claims.iter().filter(|claim| is_single(claim)).count();
        let room = if step < claim.ladder.top() {
            LEFT_OUT
        } else {
            1.0
        };
        let share = (self.budget - taken).times(1.0 / (room * singles.max(1) as f64));
        Some(share.max(LEAST_SHARE))
    }

    fn wanted(&self, decisions: &[Decision]) -> DataRate {
        let claimed = self.claims.iter().zip(&self.steps).map(|(claim, step)| {
            let top = claim.ladder.rate(claim.ladder.top());
            if claim.ladder.is_single {
                top.times(GROWTH)
            } else if *step < claim.ladder.top() {
                top.times(MARGIN)
            } else {
                top
            }
        });
        let unmeasured = decisions.iter().filter(|d| d.reason == Reason::Unmeasured);
        let unmeasured: DataRate = unmeasured.map(|_| UNMEASURED).sum();
        let wanted = claimed.sum::<DataRate>() + unmeasured.min(UNMEASURED.times(2.0)) + self.audio;
        wanted.times(1.02 / FOR_TRACKS)
    }
}

#[cfg(test)]
mod tests;
