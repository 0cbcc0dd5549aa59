//! `aleator noise`: labels made wrong on purpose, for controlled experiments.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aleator_data::noisy_labels;
use aleator_run::write_file;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

/// Arguments of `aleator noise`.
#[derive(Args, Debug)]
pub struct NoiseArgs {
    /// Labels to corrupt (.npy or CSV; file#column picks a column); not needed for images by class
    #[arg(long, value_name = "FILE")]
    labels: Option<String>,
    /// The embeddings that the labels belong to
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
    /// The next class, or those of --pairs
    Pairwise,
    /// By --matrix
    Matrix,
    /// Harder examples flip more, toward the classes they resemble
    Instance,
}

/// `aleator noise`.
pub fn noise(args: &NoiseArgs) -> Result<()> {
    let resolved = aleator_run::load("features-none", &args.settings()?, None)?;
    let clean_place = clean_place(&args.out)?;
    if let Some(taken) = clean_place.iter().chain([&args.out]).find(|path| path.exists()) {
        bail!("{} exists: choose another --out, or remove it", taken.display());
    }
    let made = noisy_labels(&resolved.recipe.data, resolved.recipe.head.link)?;
    match clean_place {
        Some(clean) => {
            write_file(&clean, &made.clean_to_npy())?;
            write_file(&args.out, &made.to_npy())?;
            writeln!(io::stdout(), "clean labels: {}", clean.display())?;
        }
        None => write_file(&args.out, &made.to_csv())?,
    }
    let pairs = made.labels.iter().zip(&made.clean_labels);
    let changed = pairs.filter(|(label, clean)| label != clean).count();
    let (total, share) = (made.labels.len(), 100.0 * changed as f64 / made.labels.len() as f64);
    writeln!(
        io::stdout(),
        "{changed} of {total} labels are wrong now ({share:.2} %): {}",
        args.out.display()
    )?;
    Ok(())
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
    /// The same as settings of a recipe, which checks them.
    fn settings(&self) -> Result<Vec<String>> {
        let mut sets = vec![format!("data.noise.seed={}", self.seed)];
        let kind = match self.kind {
            Kind::Symmetric => "symmetric",
            Kind::Pairwise => "pairwise",
            Kind::Matrix => "matrix",
            Kind::Instance => "instance",
        };
        sets.push(format!("data.noise.kind={kind}"));
        match (&self.features, &self.images) {
            (Some(features), _) => sets.push(format!("data.train.features={features}")),
            (None, Some(images)) => sets.push(format!("data.train.images={}", images.display())),
            (None, None) => {
                bail!("give the inputs of the labels: --features FILE or --images PATH")
            }
        }
        sets.extend(self.labels.iter().map(|labels| format!("data.train.labels={labels}")));
        sets.extend(self.rate.map(|rate| format!("data.noise.rate={rate:?}")));
        sets.extend(self.matrix.iter().map(|matrix| format!("data.noise.matrix={matrix}")));
        if !self.pairs.is_empty() {
            let pair = |pair: &String| match pair.split_once(':') {
                Some((from, to)) => Ok(format!("[{from},{to}]")),
                None => bail!("--pairs {pair}: write it as FROM:TO, as in 3:8"),
            };
            let pairs = self.pairs.iter().map(pair).collect::<Result<Vec<_>>>()?;
            sets.push(format!("data.noise.pairs=[{}]", pairs.join(",")));
        }
        Ok(sets)
    }
}
