//! The search for the most participants that are carried.

use super::Run;
use crate::record::{Criterion, Step};
use crate::scenario::ScenarioError;

impl Run<'_> {
    /// Searches for the most participants that are carried in time, and then, if requested, at all.
    /// Returns the step with the most in time, or the first one.
    pub(super) async fn ramp(&mut self, step: u32) -> Result<Step, ScenarioError> {
        let mut step = f64::from(step);
        let mut failed = self.climb(&mut step, Criterion::InTime).await?;
        self.narrow(failed.as_ref(), Criterion::InTime).await?;
        if self.options.at_all
            && let Some(late) = failed.as_ref().filter(|step| step.carried)
        {
            self.resize(late.participants).await?;
            failed = self.climb(&mut step, Criterion::AtAll).await?;
        }
        if self.options.at_all {
            self.narrow(failed.as_ref(), Criterion::AtAll).await?;
        }
        let best = self.recorder.best(Criterion::InTime).cloned();
        best.or_else(|| self.recorder.first_step().cloned())
            .ok_or_else(|| ScenarioError::Nobody("no step was measured".to_owned()))
    }

    /// Increases the number of participants until they are not carried, and returns that step. A
    /// step that not all of them joined is neither in time nor carried at all.
    async fn climb(
        &mut self,
        step: &mut f64,
        criterion: Criterion,
    ) -> Result<Option<Step>, ScenarioError> {
        loop {
            let now = self.present();
            let left = self.options.viewers.saturating_sub(now);
            let more = (step.round() as u32).min(left);
            if more == 0 {
                return Ok(None);
            }
            let grown = self.grow_at_most(more, Some(self.growth(more))).await;
            let burst = match grown {
                // The new set failed. What was measured before remains.
                Err(ScenarioError::Nobody(reason)) if self.recorder.best(criterion).is_some() => {
                    let wanted = now + more;
                    self.recorder
                        .warn(format!("{wanted} participants could not come: {reason}"));
                    return Ok(None);
                }
                grown => grown?,
            };
            let measured = self.step().await?;
            if self.joining.is_none() {
                self.note_joins(&burst, None, &measured);
            }
            let all_came = self.present() >= now + more && burst.failed == 0;
            if !measured.meets(criterion) || !all_came {
                return Ok(Some(Step {
                    carried: measured.carried && all_came,
                    in_time: measured.in_time && all_came,
                    ..measured
                }));
            }
            *step *= self.options.ramp_factor;
        }
    }

    /// Searches between the most participants that were carried and the number that `failed`.
    async fn narrow(
        &mut self,
        failed: Option<&Step>,
        criterion: Criterion,
    ) -> Result<(), ScenarioError> {
        let Some((failed, precision)) = failed.zip(self.options.bisect) else {
            return Ok(());
        };
        let best = |run: &Self| {
            let best = run.recorder.best(criterion);
            best.map_or(0, |step| step.participants)
        };
        let mut bad = failed.participants;
        loop {
            let good = best(self);
            if bad.saturating_sub(good) <= precision {
                return Ok(());
            }
            let middle = good.midpoint(bad);
            match self.resize(middle).await {
                Err(ScenarioError::Nobody(_)) => {
                    bad = middle;
                    continue;
                }
                resized => resized?,
            }
            let step = self.step().await?;
            if !step.meets(criterion) || step.participants <= good {
                bad = middle;
            }
        }
    }
}
