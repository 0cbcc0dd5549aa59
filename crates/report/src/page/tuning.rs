//! How the settings of a run were chosen, from `tuning.json`.

use std::path::Path;

use aleator_run::RunError;
use aleator_run::tuning::{NoiseSettings, Tuning};

use super::{Figures, Section, row};
use crate::figure::trials;
use crate::number;

/// `None` for a run whose settings were fixed.
pub(super) fn section(run: &Path, figures: &mut Figures) -> Result<Option<Section>, RunError> {
    let Some(tuning) = Tuning::load(run)? else { return Ok(None) };
    let mut body = facts(&tuning);
    if tuning.trials.len() > 1 {
        let figure = figures.add(trials::draw("tuning", &tuning));
        body += &row(&[figure], &caption(&tuning));
    }
    Ok(Some(Section::new("settings", "Settings", body)))
}

fn facts(tuning: &Tuning) -> String {
    let chosen = &tuning.chosen;
    let decay = |value: f64| format!("{value:.1e}");
    let mut facts = vec![
        ("Scale", chosen.normalize.in_words().to_string()),
        ("Decay of the mean", decay(chosen.mean)),
    ];
    match chosen.noise {
        Some(NoiseSettings { diagonal, loadings, rank }) => {
            facts.push(("Decay of the noise", decay(diagonal)));
            if let Some(rank) = rank {
                facts.push(("Decay of the factors", decay(loadings)));
                facts.push(("Rank", rank.to_string()));
            }
        }
        None if tuning.tried_noise() => {
            facts.push(("Noise", "none: it does not lower the loss".to_string()));
        }
        None => {}
    }
    let held_out = match tuning.folds {
        1 => "one part".to_string(),
        folds => format!("{folds} folds"),
    };
    facts.extend([
        ("Trials", number::count(tuning.trials.len())),
        ("Examples", number::count(tuning.trained_on)),
        ("Held out", held_out),
    ]);
    let fact =
        |(name, value): &(&str, String)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n");
    format!(
        "<p>Chosen by the loss on held-out examples with their given labels.</p>\n\
         <dl class=\"facts\">\n{}</dl>\n",
        facts.iter().map(fact).collect::<String>()
    )
}

fn caption(tuning: &Tuning) -> String {
    let noise = if tuning.tried_noise() { "; grey dots are trials with noise" } else { "" };
    format!(
        "Each dot is a trial, each line a way to scale the features without noise{noise}. The large \
         dot is what was chosen; lower is better."
    )
}
