//! `analyse_pair`: two classes that somebody asks for.

use std::path::{Path, PathBuf};

use aleator_report::covariance::{Covariances, NamedPair, PairExample, Step};
use aleator_run::{ExampleRow, RunDir, RunInfo, Split};
use serde_json::{Value, json};

use super::findings::pair_json;
use super::usual_split;
use crate::workflow::class_name::class_of;
use crate::{Error, Event, Watch};

/// What [`analyse_pair`] found.
#[derive(Clone, Debug)]
pub struct PairFindings {
    /// The run.
    pub dir: PathBuf,
    /// The run's `run.json`.
    pub info: RunInfo,
    /// The analysed split.
    pub split: Split,
    /// The numbers, and the examples in which the classes are tied most.
    pub found: NamedPair,
    /// The examples of the split.
    pub examples: Vec<ExampleRow>,
}

impl PairFindings {
    /// The names of the classes.
    pub fn classes(&self) -> [&str; 2] {
        [self.found.pair.first, self.found.pair.second]
            .map(|class| self.info.class_names[class].as_str())
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let example =
            |it: &PairExample| json!({"id": self.examples[it.row].id, "covariance": it.covariance});
        let mut value = pair_json(&self.found.pair, &self.info.class_names);
        value["run"] = self.dir.display().to_string().into();
        value["split"] = self.split.name().into();
        let examples = self.found.examples.as_ref();
        value["examples"] = examples.map(|it| it.iter().map(example).collect::<Value>()).into();
        value
    }
}

/// The average covariance of two classes of a run, by their names or numbers, with their other
/// numbers and the `top` examples in which they are tied most.
///
/// # Errors
/// When the run is not evaluated or has no noise model, or has no such class.
pub fn analyse_pair(
    run: &Path,
    classes: [&str; 2],
    split: Option<Split>,
    top: usize,
    watch: &mut Watch<'_>,
) -> Result<PairFindings, Error> {
    let run = RunDir::open(run)?;
    let names = &run.info().class_names;
    let [first, second] = classes.map(|name| class_of(name, names));
    let (first, second) = (first?, second?);
    if first == second {
        return Err(Error::invalid(format!(
            "a pair needs two classes, found {} twice",
            classes[0]
        )));
    }
    let split = split.unwrap_or(usual_split(run.info()));
    let mut covariances = Covariances::open(&run, split)?;
    let mut observer = |Step { what, done, total }: Step| {
        watch.event(Event::Progress { what, done, total });
    };
    let found = covariances.pair(first, second, top, &mut observer)?;
    Ok(PairFindings {
        dir: run.path().to_path_buf(),
        info: run.info().clone(),
        split,
        found,
        examples: covariances.examples().to_vec(),
    })
}
