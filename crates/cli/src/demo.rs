//! `aleator demo`: the likelihood at work on a problem that fits a screen.

use std::io::Write;
use std::time::Instant;

use aleator::kernels::{Covariance, Latent, Sampling, Targets, Vectors, fused, multilabel};
use aleator::{Draws, NoiseKey, Temperature};
use anyhow::Result;
use clap::Args;

/// See the likelihood at work.
#[derive(Args)]
pub struct DemoArgs {
    /// Where the noise is drawn from
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

const CLASSES: [&str; 4] = ["partridge", "ruffed grouse", "quail", "teapot"];

/// Mean, own noise and loadings of four classes: the first two are substitutes, their noise is
/// of opposite sign, so that labels flip between them.
const MEAN: [f32; 4] = [1.6, 1.2, 0.4, -2.0];
const DIAG_SCALE: [f32; 4] = [0.4, 0.4, 0.6, 0.3];
const LOADINGS: [f32; 8] = [1.3, 0.2, -1.3, 0.2, 0.2, -0.8, 0.0, 0.1];
const RANK: usize = 2;

pub fn run(args: &DemoArgs) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let tau = Temperature::try_from(0.9)?;
    let covariance =
        Covariance::LowRank { diag_scale: &DIAG_SCALE, loadings: &LOADINGS, rank: RANK };
    let latent = Latent { batch: 1, classes: CLASSES.len(), mean: &MEAN, covariance };
    writeln!(
        out,
        "One picture, four classes. Utilities are u ~ N(mean, Sigma): the annotators' noise.\n\
         partridge and ruffed grouse are substitutes: their noise has opposite signs.\n"
    )?;
    draw_noise(&mut out, &latent, args.seed)?;
    one_label(&mut out, &latent, tau, args.seed)?;
    many_labels(&mut out, &latent, tau, args.seed)?;
    timing(&mut out, tau, args.seed)
}

fn sampling(seed: u64, samples: usize, draws: Draws) -> Sampling<'static> {
    Sampling { key: NoiseKey { seed, step: 0 }, ids: &[0], samples, draws }
}

fn draw_noise(out: &mut impl Write, latent: &Latent, seed: u64) -> Result<()> {
    writeln!(out, "Draws of the utilities, and the label that each makes:")?;
    let mut wins = [0usize; CLASSES.len()];
    let mut shown = 0;
    let mut lines = vec![];
    let sampling = sampling(seed, 10_000, Draws::Independent);
    fused::for_each_utility_block(latent, &sampling, 0, |_, block| {
        for utility in block.chunks_exact(CLASSES.len()) {
            let label = (0..CLASSES.len())
                .max_by(|a, b| utility[*a].total_cmp(&utility[*b]))
                .unwrap_or_default();
            wins[label] += 1;
            if shown < 4 {
                let numbers: Vec<String> = utility.iter().map(|u| format!("{u:>6.2}")).collect();
                lines.push(format!("  [{} ]  -> {}", numbers.join(" "), CLASSES[label]));
                shown += 1;
            }
        }
    });
    for line in lines {
        writeln!(out, "{line}")?;
    }
    let total: usize = wins.iter().sum();
    let share = |(name, wins): (&&str, usize)| {
        format!("{name} {:.1} %", 100.0 * wins as f64 / total as f64)
    };
    let shares: Vec<String> = CLASSES.iter().zip(wins).map(share).collect();
    writeln!(out, "  of {total}: {}\n", shares.join(", "))?;
    Ok(())
}

/// Softmax: sampled probabilities close in on those of 2^20 Sobol' points.
fn one_label(out: &mut impl Write, latent: &Latent, tau: Temperature, seed: u64) -> Result<()> {
    let probs = |samples: usize, draws: Draws| -> Vec<f32> {
        let mut log_probs = vec![0.0; CLASSES.len()];
        let sampling = sampling(seed, samples, draws);
        fused::log_probs(latent, tau, &sampling, Vectors::Detected, &mut log_probs);
        log_probs.iter().map(|l| l.exp()).collect()
    };
    let converged = probs(1 << 20, Draws::Sobol);
    writeln!(
        out,
        "One label (softmax, temperature {}): p, and the largest error of S samples",
        tau.get()
    )?;
    write_header(out)?;
    write_probs(out, "converged", &converged)?;
    let plain: Latent = Latent { covariance: Covariance::None, ..*latent };
    let mut noiseless = vec![0.0; CLASSES.len()];
    let none = sampling(seed, 1, Draws::Independent);
    fused::log_probs(&plain, tau, &none, Vectors::Detected, &mut noiseless);
    let noiseless: Vec<f32> = noiseless.iter().map(|l| l.exp()).collect();
    write_probs(out, "without noise", &noiseless)?;
    writeln!(
        out,
        "  {:<16}{:>14}{:>14}{:>14}",
        "largest error", "S = 100", "S = 1,000", "S = 10,000"
    )?;
    for (name, draws) in [
        ("independent", Draws::Independent),
        ("antithetic", Draws::Antithetic),
        ("Sobol'", Draws::Sobol),
    ] {
        let error = |samples: usize| {
            let found = probs(samples, draws);
            found.iter().zip(&converged).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        let errors = [error(100), error(1000), error(10_000)];
        writeln!(out, "  {name:<16}{:>14.5}{:>14.5}{:>14.5}", errors[0], errors[1], errors[2])?;
    }
    writeln!(out)?;
    Ok(())
}

/// Sigmoid: the closed form, and sampling beside it.
fn many_labels(out: &mut impl Write, latent: &Latent, tau: Temperature, seed: u64) -> Result<()> {
    writeln!(out, "Many labels (sigmoid): exact, in closed form, beside 10,000 samples")?;
    write_header(out)?;
    let probs = |log_probs: Vec<f32>| log_probs.iter().map(|l| l.exp()).collect::<Vec<f32>>();
    let exact = probs(multilabel::log_probs(latent, tau, Vectors::Detected).on);
    write_probs(out, "exact", &exact)?;
    let sampling = sampling(seed, 10_000, Draws::Independent);
    write_probs(out, "sampled", &probs(multilabel::sampled_log_probs(latent, tau, &sampling).on))?;
    let given = multilabel::conditional_log_probs(latent, tau, &sampling, 0, &[(0, true)]);
    let given: Vec<f32> = given.iter().map(|l| l.exp() as f32).collect();
    write_probs(out, "given partridge", &given)?;
    writeln!(out)?;
    Ok(())
}

fn write_header(out: &mut impl Write) -> Result<()> {
    let names: Vec<String> = CLASSES.iter().map(|name| format!("{name:>14}")).collect();
    writeln!(out, "  {:<16}{}", "", names.join(""))?;
    Ok(())
}

fn write_probs(out: &mut impl Write, name: &str, probs: &[f32]) -> Result<()> {
    let columns: Vec<String> = probs.iter().map(|p| format!("{p:>14.5}")).collect();
    writeln!(out, "  {name:<16}{}", columns.join(""))?;
    Ok(())
}

/// Loss and all gradients of a batch of the paper's size for 1,000 classes.
fn timing(out: &mut impl Write, tau: Temperature, seed: u64) -> Result<()> {
    let (batch, classes, rank, samples) = (64, 1000, 15, 1000);
    let wave = |count: usize, size: f32| -> Vec<f32> {
        (0..count).map(|i| size * (i as f32 * 0.7).sin()).collect()
    };
    let (mean, loadings) = (wave(batch * classes, 1.0), wave(batch * classes * rank, 0.3));
    let diag_scale = vec![0.5; batch * classes];
    let covariance = Covariance::LowRank { diag_scale: &diag_scale, loadings: &loadings, rank };
    let latent = Latent { batch, classes, mean: &mean, covariance };
    let ids: Vec<u64> = (0..batch as u64).collect();
    let labels: Vec<usize> = (0..batch).map(|i| i * 37 % classes).collect();
    let weights = vec![1.0 / batch as f32; batch];
    let key = NoiseKey { seed, step: 0 };
    let sampling = Sampling { key, ids: &ids, samples, draws: Draws::Independent };
    let start = Instant::now();
    let repetitions = 3;
    for _ in 0..repetitions {
        let targets = Targets::Classes(&labels);
        let step =
            fused::loss_and_grad(&latent, tau, &sampling, targets, &weights, Vectors::Detected);
        std::hint::black_box(step);
    }
    let elapsed = start.elapsed().as_secs_f64() / repetitions as f64;
    writeln!(
        out,
        "Loss and all gradients of {batch} examples, {classes} classes, rank {rank}, {samples} samples: \
         {:.0} ms\n({:.2} ns for each of the {} million sampled utilities, {} threads; memory does \
         not depend on the samples)",
        elapsed * 1e3,
        elapsed * 1e9 / (batch * classes * samples) as f64,
        batch * classes * samples / 1_000_000,
        rayon::current_num_threads()
    )?;
    Ok(())
}
