//! Which settings are tried, in which order.
//!
//! First the mean alone, which is cheap: for each way to scale the features, decays from strong to
//! weak, a decade apart, until the held-out loss rises; then between the best and its neighbours.
//! Then the noise: its decay, that of the mean again, the rank, the decay of the diagonal part, one
//! after the other, each as long as the loss falls.

use aleator_run::recipe::Normalize;
use aleator_run::tuning::{NoiseSettings, Settings};

use super::loss::HeldOutLoss;

/// What may be chosen.
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// Ways to scale the features, the preferred one first.
    pub normalize: Vec<Normalize>,
    /// Where noise is searched at all: the rank to begin with, none without factors, and the
    /// largest that is of use.
    pub noise: Option<Option<(usize, usize)>>,
}

/// What the weights of a trial begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Fresh weights.
    Fresh,
    /// The weights of the trial before.
    Previous,
    /// The weights of the trial that was kept last.
    Kept,
    /// The same for the mean only. Noise that a strong decay has driven to zero would stay there,
    /// because zero is a saddle point.
    KeptMean,
}

/// Trains and measures.
pub(super) trait Trials {
    type Error;

    /// The held-out loss of some settings.
    fn score(&mut self, settings: &Settings, start: Start) -> Result<HeldOutLoss, Self::Error>;

    /// Keeps the weights of the last trial for [`Start::Kept`].
    fn keep(&mut self);

    /// By how much a decay of the noise has to be multiplied to weigh as heavily on noise of some
    /// size as it does where layers give the noise of the utilities themselves, with the weights of
    /// the mean that were kept last.
    fn noise_scale(&self) -> f64;
}

/// The factor between decays of the mean in the first pass, and its root, between neighbours.
const DECADE: f64 = 10.0;
const STEP: f64 = 3.162_277_660_168_379_5;
/// Decays of the mean that are tried. Features have unit variance, so these are far too strong
/// and far too weak for any data.
const STRONGEST: f64 = 10.0;
const WEAKEST: f64 = 1e-8;
/// Smaller relative changes of the held-out loss are no change.
const NEGLIGIBLE: f64 = 1e-4;
/// Trials with noise, which take most of the time.
const NOISE_TRIALS: usize = 10;

/// Settings with their held-out loss.
#[derive(Clone, Debug)]
struct Scored {
    settings: Settings,
    loss: HeldOutLoss,
}

/// The settings with the lowest held-out loss.
pub(super) fn search<T: Trials>(space: &Space, trials: &mut T) -> Result<Settings, T::Error> {
    let mut best: Option<Scored> = None;
    for normalize in &space.normalize {
        let own = mean_path(*normalize, best.as_ref(), trials)?;
        if best.as_ref().is_none_or(|best| falls(best.loss.nll(), own.loss.nll())) {
            best = Some(own);
        }
    }
    let plain = best.expect("there is a way to scale the features");
    let Some(rank) = space.noise else { return Ok(plain.settings) };
    let noisy = NoiseSearch::start(plain.settings, rank, trials)?.run(rank)?;
    // Noise has to pay for its parameters.
    Ok(if noisy.loss.is_surely_below(&plain.loss) { noisy.settings } else { plain.settings })
}

/// Weaker and weaker decays of the mean, each from the weights of the one before, until the loss
/// rises; then half a decade on either side of the best, and where the parabola through the lowest
/// three has its vertex. Keeps the weights of what is better than all before it.
fn mean_path<T: Trials>(
    normalize: Normalize,
    best: Option<&Scored>,
    trials: &mut T,
) -> Result<Scored, T::Error> {
    let mut own: Option<Scored> = None;
    let mut tried: Vec<(f64, f64)> = vec![];
    let mut score = |mean: f64, start: Start, own: &mut Option<Scored>, tried: &mut Vec<_>| {
        let settings = Settings { normalize, mean, noise: None };
        let loss = trials.score(&settings, start)?;
        tried.push((mean, loss.nll()));
        let lower = |than: Option<&Scored>| than.is_none_or(|it| falls(it.loss.nll(), loss.nll()));
        let lowest = lower(own.as_ref());
        if lowest {
            if lower(best) {
                trials.keep();
            }
            *own = Some(Scored { settings, loss });
        }
        Ok(lowest)
    };
    let (mut mean, mut start) = (STRONGEST, Start::Fresh);
    while mean > WEAKEST && score(mean, start, &mut own, &mut tried)? {
        (mean, start) = (mean / DECADE, Start::Previous);
    }
    // From the weights of the last trial, the weakest decay, to those around the best.
    let centre = own.as_ref().map_or(mean, |best| best.settings.mean);
    score(centre / STEP, Start::Previous, &mut own, &mut tried)?;
    score(centre * STEP, Start::Previous, &mut own, &mut tried)?;
    let lowest = own.as_ref().map_or(centre, |best| best.settings.mean);
    if let Some(mean) = vertex(&tried, lowest) {
        score(mean, Start::Previous, &mut own, &mut tried)?;
    }
    Ok(own.expect("a path has a first trial"))
}

/// The vertex of the parabola in the logarithm of the decay through the lowest loss and its
/// neighbours; none where one of them was not tried, or the vertex is as good as there already.
fn vertex(tried: &[(f64, f64)], lowest: f64) -> Option<f64> {
    let loss_at = |mean: f64| {
        let near = |other: f64| (other / mean).ln().abs() < 0.1;
        tried.iter().find(|(other, _)| near(*other)).map(|(_, nll)| *nll)
    };
    let (weaker, stronger) = (loss_at(lowest / STEP)?, loss_at(lowest * STEP)?);
    let bend = weaker - 2.0 * loss_at(lowest)? + stronger;
    let offset = 0.5 * (weaker - stronger) / bend;
    (offset.abs() > 0.1 && offset.abs() <= 0.5).then(|| lowest * STEP.powf(offset))
}

/// From the best settings without noise to the best with it.
struct NoiseSearch<'a, T> {
    trials: &'a mut T,
    best: Scored,
    /// Trials that may still be made.
    left: usize,
}

impl<'a, T: Trials> NoiseSearch<'a, T> {
    fn start(
        plain: Settings,
        rank: Option<(usize, usize)>,
        trials: &'a mut T,
    ) -> Result<Self, T::Error> {
        let decay = plain.mean * trials.noise_scale();
        let noise =
            NoiseSettings { diagonal: decay, loadings: decay, rank: rank.map(|(first, _)| first) };
        let settings = Settings { noise: Some(noise), ..plain };
        let loss = trials.score(&settings, Start::KeptMean)?;
        trials.keep();
        Ok(Self { trials, best: Scored { settings, loss }, left: NOISE_TRIALS - 1 })
    }

    /// The decay of the noise, that of the mean again, the rank, the decay of the diagonal part.
    fn run(mut self, rank: Option<(usize, usize)>) -> Result<Scored, T::Error> {
        self.descend(Start::KeptMean, |settings, factor| {
            if let Some(noise) = &mut settings.noise {
                noise.diagonal *= factor;
                noise.loadings *= factor;
            }
        })?;
        self.descend(Start::Kept, |settings, factor| settings.mean *= factor)?;
        if let Some((_, most)) = rank {
            self.ranks(most)?;
            self.descend(Start::Kept, |settings, factor| {
                settings.noise.iter_mut().for_each(|noise| noise.diagonal *= factor);
            })?;
        }
        Ok(self.best)
    }

    /// Changes a setting by a factor as long as the loss falls; if it never does, by its inverse,
    /// from weights of their own.
    fn descend(
        &mut self,
        start_down: Start,
        change: impl Fn(&mut Settings, f64),
    ) -> Result<(), T::Error> {
        for (factor, start) in [(STEP, Start::Kept), (1.0 / STEP, start_down)] {
            let before = self.best.loss.nll();
            loop {
                let mut settings = self.best.settings;
                change(&mut settings, factor);
                if !self.is_better(settings, start)? {
                    break;
                }
            }
            if self.best.loss.nll() < before {
                break;
            }
        }
        Ok(())
    }

    /// Twice the rank, or half of it.
    fn ranks(&mut self, most: usize) -> Result<(), T::Error> {
        let noise = self.best.settings.noise;
        let Some(rank) = noise.and_then(|noise| noise.rank) else { return Ok(()) };
        for other in [(2 * rank).min(most), rank.div_ceil(2)] {
            let mut settings = self.best.settings;
            settings.noise.iter_mut().for_each(|noise| noise.rank = Some(other));
            if other != rank && self.is_better(settings, Start::Kept)? {
                break;
            }
        }
        Ok(())
    }

    fn is_better(&mut self, settings: Settings, start: Start) -> Result<bool, T::Error> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        let loss = self.trials.score(&settings, start)?;
        let better = falls(self.best.loss.nll(), loss.nll());
        if better {
            self.best = Scored { settings, loss };
            self.trials.keep();
        }
        Ok(better)
    }
}

fn falls(from: f64, to: f64) -> bool {
    to < from - NEGLIGIBLE * from.abs().min(f64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A held-out loss in closed form, with what was asked for.
    struct Surface<F> {
        loss: F,
        asked: Vec<(Settings, Start)>,
        noise_scale: f64,
    }

    impl<F: Fn(&Settings) -> f64> Trials for Surface<F> {
        type Error = std::convert::Infallible;

        fn score(&mut self, settings: &Settings, start: Start) -> Result<HeldOutLoss, Self::Error> {
            self.asked.push((*settings, start));
            let nll = (self.loss)(settings);
            let mut loss = HeldOutLoss::new();
            [-0.01, 0.01].iter().zip(0..).for_each(|(off, key)| loss.add(key, 1.0, nll + off));
            Ok(loss)
        }

        fn keep(&mut self) {}

        fn noise_scale(&self) -> f64 {
            self.noise_scale
        }
    }

    fn found(space: &Space, loss: impl Fn(&Settings) -> f64) -> (Settings, Vec<(Settings, Start)>) {
        found_with(space, 1.0, loss)
    }

    fn found_with(
        space: &Space,
        noise_scale: f64,
        loss: impl Fn(&Settings) -> f64,
    ) -> (Settings, Vec<(Settings, Start)>) {
        let mut surface = Surface { loss, asked: vec![], noise_scale };
        let Ok(settings) = search(space, &mut surface);
        (settings, surface.asked)
    }

    /// How far a decay is from another, in powers of ten, squared.
    fn apart(decay: f64, from: f64) -> f64 {
        (decay / from).log10().powi(2)
    }

    const BOTH: [Normalize; 2] = [Normalize::Global, Normalize::PerFeature];

    #[test]
    fn the_scale_and_the_decay_with_the_lowest_loss_are_found() {
        let space = Space { normalize: BOTH.to_vec(), noise: None };
        for (best, lowest) in [(1.0, 3e-1), (1e-3, 1e-3), (1e-6, 2e-6)] {
            for normalize in BOTH {
                let (settings, asked) = found(&space, |settings| {
                    let other = f64::from(u8::from(settings.normalize != normalize));
                    0.5 + 0.1 * apart(settings.mean, best) + 0.2 * other
                });
                assert_eq!(settings.normalize, normalize);
                assert!(apart(settings.mean, best) <= 0.0626, "{settings:?} for {best}");
                assert!(asked.iter().any(|(asked, _)| asked.mean < lowest));
                assert!(asked.len() < 40, "{}", asked.len());
            }
        }
    }

    #[test]
    fn the_vertex_between_tried_decays_is_tried() {
        let space = Space { normalize: vec![Normalize::Global], noise: None };
        for best in [0.17, 0.06, 0.0021] {
            let (settings, _) = found(&space, |settings| 1.0 + apart(settings.mean, best));
            assert!((settings.mean / best).ln().abs() < 0.15, "{} {best}", settings.mean);
        }
    }

    #[test]
    fn a_path_ends_soon_after_its_lowest_point() {
        let space = Space { normalize: vec![Normalize::Global], noise: None };
        let (_, asked) = found(&space, |settings| 1.0 + apart(settings.mean, 1.0));
        assert_eq!(asked.len(), 5, "10, 3.2, 1, and two that are worse");
        assert_eq!(asked[0].1, Start::Fresh);
        assert!(asked[1..].iter().all(|(_, start)| *start == Start::Previous));
    }

    #[test]
    fn noise_is_chosen_where_it_pays() {
        let space = Space { normalize: vec![Normalize::Global], noise: Some(Some((6, 9))) };
        let loss = |settings: &Settings| match settings.noise {
            None => 1.0 + 0.1 * apart(settings.mean, 1e-2),
            Some(noise) => {
                let decays = apart(noise.loadings, 1e-1) + 0.1 * apart(noise.diagonal, 1e-3);
                let rank = if noise.rank == Some(9) { 0.0 } else { 0.01 };
                0.9 + 0.1 * apart(settings.mean, 3e-3) + 0.02 * decays + rank
            }
        };
        let (settings, asked) = found(&space, loss);
        let noise = settings.noise.unwrap();
        assert!(apart(noise.loadings, 1e-1) < 0.3, "{settings:?}");
        assert_eq!(noise.rank, Some(9));
        // The last of the trials go this way.
        assert!(noise.diagonal < noise.loadings, "{settings:?}");
        let with_noise = asked.iter().filter(|(settings, _)| settings.noise.is_some()).count();
        assert_eq!(with_noise, NOISE_TRIALS);
        assert!(loss(&settings) < 1.0);
    }

    #[test]
    fn the_decay_of_the_noise_begins_where_it_weighs_as_that_of_the_mean() {
        let space = Space { normalize: vec![Normalize::Global], noise: Some(Some((6, 9))) };
        // Six steps below the decay of the mean: too far to be found from there.
        for scale in [1e-3, 20.0] {
            let (settings, asked) = found_with(&space, scale, |settings| match settings.noise {
                None => 1.0 + 0.1 * apart(settings.mean, 1e-1),
                // Noise under too strong a decay collapses, and nothing tells a way down.
                Some(noise) if noise.loadings > 9e-1 * scale => 1.0,
                Some(noise) => 0.9 + 0.1 * apart(noise.loadings, 1e-1 * scale),
            });
            let (first, _) = asked.iter().find(|(asked, _)| asked.noise.is_some()).unwrap();
            let noise = first.noise.unwrap();
            assert_eq!([noise.diagonal, noise.loadings], [first.mean * scale; 2]);
            let noise = settings.noise.expect("noise pays");
            assert!(apart(noise.loadings, 1e-1 * scale) < 0.07, "{settings:?}");
        }
    }

    #[test]
    fn noise_that_does_not_pay_is_left_out() {
        let space = Space { normalize: vec![Normalize::Global], noise: Some(None) };
        let (settings, _) = found(&space, |settings| {
            let cost = if settings.noise.is_some() { 0.001 } else { 0.0 };
            0.3 + 0.1 * apart(settings.mean, 1e-2) + cost
        });
        assert_eq!(settings.noise, None);
    }

    #[test]
    fn noise_that_may_have_collapsed_starts_anew() {
        let space = Space { normalize: vec![Normalize::Global], noise: Some(None) };
        let (_, asked) = found(&space, |settings| match settings.noise {
            None => 1.0 + 0.1 * apart(settings.mean, 1e-1),
            Some(noise) => 0.9 + 0.1 * apart(noise.loadings, 1e-4),
        });
        let weaker = |(settings, _): &&(Settings, Start)| {
            settings.noise.is_some_and(|noise| noise.loadings < 0.9 * settings.mean)
        };
        let starts: Vec<Start> = asked.iter().filter(weaker).map(|(_, start)| *start).collect();
        assert!(!starts.is_empty() && starts.contains(&Start::KeptMean));
    }
}
