//! `aleator noise`: labels made wrong on purpose, for controlled experiments.

use std::path::{Path, PathBuf};

use aleator::data::array::{Array, Values};
use aleator::data::noise::corrupt;
use aleator::data::{Ids, InputShape, Inputs, NoisyLabels, noisy_labels};
use aleator::run::recipe::{
    DataOverlay, InputSource, LabelNoise, NoiseKind, NoiseLaw, Overlay, Source,
};
use aleator::run::write_file;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::output::line;
use crate::values::{Choice, choice};

/// Arguments of `aleator noise`.
#[derive(Args, Debug)]
pub struct NoiseArgs {
    /// Labels to corrupt (.npy or CSV; file#column picks a column); not needed for images by class
    #[arg(long, value_name = "FILE")]
    labels: Option<String>,
    /// The embeddings that the labels belong to; instance noise looks at them
    #[arg(long, value_name = "FILE", conflicts_with = "images")]
    features: Option<String>,
    /// Or the images
    #[arg(long, value_name = "PATH")]
    images: Option<PathBuf>,
    /// What is done to the labels
    #[arg(long)]
    kind: Kind,
    /// The share of labels that change
    #[arg(long)]
    rate: Option<f64>,
    /// Row k of this [K, K] matrix (.npy or CSV) is the law of the label when the true one is k
    #[arg(long, value_name = "FILE")]
    matrix: Option<String>,
    /// From which class to which, as in 3:8,8:3; without it k goes to k + 1
    #[arg(long, value_delimiter = ',')]
    pairs: Vec<String>,
    /// Of latent noise: the mean utility of the true class; that of the others is 0
    #[arg(long)]
    margin: Option<f64>,
    /// Of latent noise: what the own noise of each class is multiplied by
    #[arg(long)]
    scale: Option<f64>,
    /// Of latent noise: the law of the own noise of each class
    #[arg(long, value_parser = choice(&LAWS))]
    law: Option<NoiseLaw>,
    /// Of latent noise: the covariances of pairs of classes, as in 3:8:-2,4:9:1.5
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    covariances: Vec<String>,
    /// The seed of the corruption
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where the noisy labels go: .npy, or .csv with columns id, label, clean_label. The clean
    /// labels are kept beside a .npy file, as NAME_clean.npy
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Another class, all equally likely
    Symmetric,
    /// For exactly the share of --rate any class, the true one included, all equally likely
    SymmetricInclusive,
    /// The next class, or those of --pairs
    Pairwise,
    /// By --matrix
    Matrix,
    /// Harder examples flip more, toward the classes they resemble
    Instance,
    /// The class of the largest utility; by --margin, --scale, --law and --covariances
    Latent,
}

const LAWS: [Choice<NoiseLaw>; 3] = [
    ("normal", NoiseLaw::Normal, "Standard Normal: the model of the paper"),
    ("gumbel", NoiseLaw::Gumbel, "Standard Gumbel: labels have the softmax as their law"),
    ("logistic", NoiseLaw::Logistic, "Standard Logistic"),
];

/// `aleator noise`.
pub fn noise(args: &NoiseArgs) -> Result<()> {
    let resolved = aleator::run::load_over("features-none", &args.overlay()?, &[], None)?;
    let clean_place = clean_place(&args.out)?;
    if let Some(taken) = clean_place.iter().chain([&args.out]).find(|path| path.exists()) {
        bail!("{} exists: choose another --out, or remove it", taken.display());
    }
    let recipe = &resolved.recipe;
    let made = match (&args.labels, &recipe.data.noise) {
        (Some(labels), Some(noise)) if args.features.is_none() && args.images.is_none() => {
            alone(labels, noise)?
        }
        _ => noisy_labels(&recipe.data, recipe.head.link)?,
    };
    match clean_place {
        Some(clean) => {
            write_file(&clean, &made.clean_to_npy())?;
            write_file(&args.out, &made.to_npy())?;
            line(format_args!("clean labels: {}", clean.display()))?;
        }
        None => write_file(&args.out, &made.to_csv())?,
    }
    let pairs = made.labels.iter().zip(&made.clean_labels);
    let changed = pairs.filter(|(label, clean)| label != clean).count();
    let (total, share) = (made.labels.len(), 100.0 * changed as f64 / made.labels.len() as f64);
    line(format_args!(
        "{changed} of {total} labels are wrong now ({share:.2} %): {}",
        args.out.display()
    ))
}

/// Corrupts labels whose inputs do not matter, and are not there.
fn alone(file: &str, noise: &LabelNoise) -> Result<NoisyLabels> {
    let array = Array::load(file)?;
    let (Values::Int(values), [examples]) = (&array.values, array.shape.as_slice()) else {
        bail!(
            "{file}: without inputs, labels must be one column of class numbers; for others give \
             --features FILE or --images PATH too"
        );
    };
    let label = |(row, value): (usize, &i64)| match u32::try_from(*value) {
        Ok(label) => Ok(label),
        Err(_) => bail!("{file}: row {row} is {value}; classes are numbered from 0"),
    };
    let clean = values.iter().enumerate().map(label).collect::<Result<Vec<u32>>>()?;
    let Some(largest) = clean.iter().max() else { bail!("{file}: holds no labels") };
    let classes = *largest as usize + 1;
    if classes > clean.len() {
        bail!("{file}: class {largest} of {} labels; number the classes from 0", clean.len());
    }
    let ids = Ids::Rows(*examples);
    let inputs = Inputs::in_memory(vec![0.0; *examples], InputShape::Features(1));
    let labels = corrupt(&clean, classes, &ids, &inputs, noise)?;
    let class_names = (0..classes).map(|class| class.to_string()).collect();
    Ok(NoisyLabels { class_names, ids, labels, clean_labels: clean })
}

/// Where the clean labels go: beside a .npy file; a CSV file has a column for them.
fn clean_place(out: &Path) -> Result<Option<PathBuf>> {
    match (out.file_stem(), out.extension().and_then(|ending| ending.to_str())) {
        (Some(stem), Some("npy")) => {
            Ok(Some(out.with_file_name(format!("{}_clean.npy", stem.to_string_lossy()))))
        }
        (_, Some("csv")) => Ok(None),
        _ => bail!("{}: --out must end in .npy or .csv", out.display()),
    }
}

impl NoiseArgs {
    /// The data of a recipe, which checks them.
    fn overlay(&self) -> Result<Overlay> {
        let inputs = match (&self.features, &self.images, &self.labels) {
            (Some(features), _, _) => InputSource::Features(features.clone()),
            (None, Some(images), _) => InputSource::images(images),
            // Never opened: only the labels are read.
            (None, None, Some(labels)) if !matches!(self.kind, Kind::Instance) => {
                InputSource::Features(labels.clone())
            }
            _ => bail!("give the inputs of the labels: --features FILE or --images PATH"),
        };
        let rate = || self.rate.context("--rate is missing: the share of labels that change");
        let kind = match self.kind {
            Kind::Symmetric => NoiseKind::Symmetric { rate: rate()? },
            Kind::SymmetricInclusive => NoiseKind::SymmetricInclusive { rate: rate()? },
            Kind::Pairwise => NoiseKind::Pairwise { rate: rate()?, pairs: self.pairs()? },
            Kind::Instance => NoiseKind::Instance { rate: rate()? },
            Kind::Matrix => {
                let file = self.matrix.clone().context("--matrix FILE is missing")?;
                NoiseKind::Matrix { file }
            }
            Kind::Latent => NoiseKind::Latent {
                margin: self.margin.context("--margin is missing: the mean of the true class")?,
                scale: self.scale.context("--scale is missing: the noise of each class")?,
                law: self.law.context("--law is missing: normal, gumbel or logistic")?,
                covariances: self.covariances()?,
            },
        };
        let latent = matches!(kind, NoiseKind::Latent { .. });
        for (given, option, takes) in [
            (
                self.rate.is_some(),
                "--rate",
                !matches!(kind, NoiseKind::Matrix { .. } | NoiseKind::Latent { .. }),
            ),
            (self.margin.is_some(), "--margin", latent),
            (self.scale.is_some(), "--scale", latent),
            (self.law.is_some(), "--law", latent),
            (!self.covariances.is_empty(), "--covariances", latent),
            (self.matrix.is_some(), "--matrix", matches!(kind, NoiseKind::Matrix { .. })),
            (!self.pairs.is_empty(), "--pairs", matches!(kind, NoiseKind::Pairwise { .. })),
        ] {
            if given && !takes {
                bail!("{option} has no meaning with this --kind; remove it");
            }
        }
        let train = Source { inputs, labels: self.labels.clone(), clean_labels: None, ids: None };
        let data = DataOverlay {
            train: Some(train),
            noise: Some(LabelNoise { seed: self.seed, kind }),
            ..DataOverlay::default()
        };
        Ok(Overlay { origin: "aleator noise".to_string(), data, network: None })
    }

    fn pairs(&self) -> Result<Vec<(usize, usize)>> {
        let pair = |pair: &String| {
            let numbers = pair.split_once(':').map(|(from, to)| (from.parse(), to.parse()));
            match numbers {
                Some((Ok(from), Ok(to))) => Ok((from, to)),
                _ => bail!("--pairs {pair}: write it as FROM:TO, as in 3:8"),
            }
        };
        self.pairs.iter().map(pair).collect()
    }

    fn covariances(&self) -> Result<Vec<(usize, usize, f64)>> {
        let covariance = |given: &String| {
            let parts: Vec<&str> = given.split(':').collect();
            let [first, second, covariance] = parts[..] else { return None };
            Some((first.parse().ok()?, second.parse().ok()?, covariance.parse().ok()?))
        };
        let read = |given: &String| {
            covariance(given).with_context(|| {
                format!("--covariances {given}: write it as CLASS:CLASS:NUMBER, as in 3:8:-2")
            })
        };
        self.covariances.iter().map(read).collect()
    }
}
