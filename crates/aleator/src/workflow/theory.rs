//! `study_temperature`, `draw_coefficients`, `compare_predictions`: what the method says about itself.

use std::fs;
use std::path::{Path, PathBuf};

use aleator_kernels::{Draws, Temperature};
use aleator_report::covariance::{Covariances, Latents, MadeUp, Step};
use aleator_report::expansion::{coefficient_figures, placed, write_coefficients};
use aleator_report::figure::Figure;
use aleator_report::sampling_free::{self, PredictionScores};
use aleator_report::temperature::{
    TemperatureGrid, TemperaturePoint, bias_and_variance, temperature_figures, write_temperatures,
};
use aleator_run::{RunDir, Split, write_file};
use aleator_train::load_run;
use serde::Serialize;

use super::analyse::usual_split;
use crate::{Error, Event, Watch};

/// The Normals that are studied.
#[derive(Clone, Debug, PartialEq)]
pub enum StudiedNormals {
    /// Those that an evaluated run predicts.
    Run {
        /// The run.
        dir: PathBuf,
        /// Which examples; `None`: the test split, or the validation split if there is no other.
        split: Option<Split>,
        /// About how many of them, evenly spread over the split.
        examples: usize,
    },
    /// Random ones.
    MadeUp(MadeUp),
}

/// What [`study_temperature`] measures.
#[derive(Clone, Debug, PartialEq)]
pub struct TemperatureSettings {
    /// The temperatures.
    pub temperatures: Vec<f64>,
    /// S of the gradient; `None`: that of the run's training, or 100 for Normals that are made up.
    pub samples: Option<usize>,
    /// The number of noise keys over which the gradient varies; at least 2.
    pub keys: usize,
}

/// Bias and variance by temperature.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TemperatureStudy {
    /// K.
    pub classes: usize,
    /// The examples that the numbers are means over.
    pub examples: usize,
    /// S of the gradient.
    pub samples: usize,
    /// The noise keys over which the gradient varies.
    pub keys: usize,
    /// Whether the bias is exact, as it is with two classes; otherwise it is simulated.
    pub exact: bool,
    /// τ of the run.
    pub own_temperature: Option<f64>,
    /// The numbers, by ascending temperature.
    pub points: Vec<TemperaturePoint>,
}

/// Sobol' points of the probabilities with more than two classes.
const REFERENCE_SAMPLES: usize = 1 << 13;

/// S of made up Normals.
const SAMPLES: usize = 100;

/// Measures how far the likelihood is from the process that it smooths, and how much its gradient
/// varies, for some temperatures. With `out` it writes `temperature.csv` and two figures there.
///
/// # Errors
/// When the run has no noise model or is not evaluated, a temperature is none, or `out` cannot be
/// written.
///
/// ```
/// use aleator::report::covariance::MadeUp;
/// use aleator::{StudiedNormals, TemperatureSettings, Watch, study_temperature};
///
/// let made = MadeUp { examples: 4, classes: 2, rank: 1, spread: 1.0, scale: 1.0, seed: 0 };
/// let settings = TemperatureSettings { temperatures: vec![0.1, 1.0], samples: None, keys: 8 };
/// let normals = StudiedNormals::MadeUp(made);
/// let study = study_temperature(&normals, &settings, None, &mut Watch::silent())?;
/// assert!(study.points[0].bias < study.points[1].bias);
/// # Ok::<(), aleator::Error>(())
/// ```
pub fn study_temperature(
    normals: &StudiedNormals,
    settings: &TemperatureSettings,
    out: Option<&Path>,
    watch: &mut Watch<'_>,
) -> Result<TemperatureStudy, Error> {
    let mut temperatures = settings.temperatures.iter().map(|tau| {
        Temperature::try_from(*tau as f32).map_err(|error| Error::invalid(error.to_string()))
    });
    let mut temperatures = temperatures.by_ref().collect::<Result<Vec<Temperature>, Error>>()?;
    temperatures.sort_by(|a, b| a.get().total_cmp(&b.get()));
    if settings.keys < 2 {
        return Err(Error::invalid("a variance over noise keys needs at least 2 of them"));
    }
    let (latents, labels, own, samples, draws) = match normals {
        StudiedNormals::MadeUp(made) => {
            check_made_up(made)?;
            let latents = Latents::made_up(made);
            let labels = latents.leading();
            (latents, labels, None, SAMPLES, Draws::Independent)
        }
        StudiedNormals::Run { dir, split, examples } => {
            let (run, recipe) = load_run(dir)?;
            let (latents, labels, tau) = of_run(&run, *split, *examples)?;
            let own = Some(f64::from(tau.get()));
            (latents, labels, own, recipe.head.samples, recipe.head.draws)
        }
    };
    let samples = settings.samples.unwrap_or(samples);
    let (keys, reference_samples) = (settings.keys, REFERENCE_SAMPLES);
    let grid = TemperatureGrid { temperatures, samples, draws, keys, reference_samples };
    let points = bias_and_variance(&latents, &labels, &grid, &mut progress(watch));
    if let Some(out) = out {
        fs::create_dir_all(out).map_err(Error::io(out))?;
        write_temperatures(&out.join("temperature.csv"), &points)?;
        write_figures(out, &temperature_figures(&points, own))?;
    }
    let classes = latents.classes;
    let (examples, exact) = (labels.len(), classes == 2);
    Ok(TemperatureStudy { classes, examples, samples, keys, exact, own_temperature: own, points })
}

/// Draws the coefficients of the expansion, Figures 3 and 4 of the paper, into `out`, with the
/// examples of a run on them where one is given; returns how many.
///
/// # Errors
/// When the run has no noise model or is not evaluated, or `out` cannot be written.
pub fn draw_coefficients(
    run: Option<(&Path, Option<Split>, usize)>,
    out: &Path,
) -> Result<usize, Error> {
    let examples = match run {
        None => vec![],
        Some((dir, split, examples)) => {
            let (latents, labels, tau) = of_run(&RunDir::open(dir)?, split, examples)?;
            placed(&latents, tau, &labels)
        }
    };
    fs::create_dir_all(out).map_err(Error::io(out))?;
    write_coefficients(&out.join("coefficients.csv"))?;
    write_figures(out, &coefficient_figures(&examples))?;
    Ok(examples.len())
}

/// The predictions of an evaluated run next to those that need no sampling: the expansion, the
/// probit and the mean-field approximation, each with its error.
///
/// # Errors
/// When the run is not evaluated, has no noise model, or has the sigmoid link, whose probabilities
/// are exact.
pub fn compare_predictions(
    dir: &Path,
    split: Option<Split>,
    watch: &mut Watch<'_>,
) -> Result<(Split, Vec<PredictionScores>), Error> {
    let (run, recipe) = load_run(dir)?;
    let split = split.unwrap_or(usual_split(run.info()));
    let samples = recipe.evaluation.samples;
    let scores = sampling_free::compare_predictions(&run, split, samples, &mut progress(watch))?;
    Ok((split, scores))
}

fn of_run(
    run: &RunDir,
    split: Option<Split>,
    examples: usize,
) -> Result<(Latents, Vec<u32>, Temperature), Error> {
    let mut covariances = Covariances::open(run, split.unwrap_or(usual_split(run.info())))?;
    let tau = covariances.link_temperature()?;
    let (latents, labels) = covariances.some_latents(examples)?;
    Ok((latents, labels, tau))
}

fn check_made_up(made: &MadeUp) -> Result<(), Error> {
    if made.classes < 2 || made.examples == 0 {
        return Err(Error::invalid("Normals need at least 2 classes and 1 example"));
    }
    for (name, value) in [("spread", made.spread), ("scale", made.scale)] {
        if !(value >= 0.0 && value.is_finite() && value < 1e6) {
            return Err(Error::invalid(format!("{name} must be from 0 to 1e6, found {value}")));
        }
    }
    Ok(())
}

fn write_figures(out: &Path, figures: &[Figure]) -> Result<(), Error> {
    for figure in figures {
        let path = out.join(&figure.name).with_extension("svg");
        write_file(&path, figure.standalone().as_bytes())?;
    }
    Ok(())
}

fn progress(watch: &mut Watch<'_>) -> impl FnMut(Step) {
    |Step { what, done, total }| watch.event(Event::Progress { what, done, total })
}
