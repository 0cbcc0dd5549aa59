//! How to repeat the runs: commands, versions and recipes.

use std::path::Path;

use aleator_run::{EvaluatedRun, GroupKind, RunError};

use super::Section;
use super::material::{Material, Origin, Setting, dir_name};
use crate::error::ReportError;
use crate::escape;

pub(super) fn section(material: &Material) -> Result<Section, ReportError> {
    let mut body =
        String::from("<p>These commands do the same again, to the same numbers.</p>\n<pre>");
    for origin in &material.origins {
        body += &escape::text(&command(material, origin));
        body.push('\n');
    }
    body += "</pre>\n";
    body += &facts(material);
    let (mut folded, mut seen) = (String::new(), vec![]);
    for (name, path) in recipes(material) {
        // It is shown as it is: a link could lead to any text of the reader.
        if path.is_symlink() {
            continue;
        }
        let text = match aleator_run::read_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(RunError::io("read", &path)(error).into()),
        };
        if seen.contains(&text) {
            continue;
        }
        let of = if name.is_empty() { "" } else { &format!(" of {}", escape::name(&name)) };
        let recipe = escape::text(&text);
        folded += &format!("<details><summary>Recipe{of}</summary><pre>{recipe}</pre></details>\n");
        seen.push(text);
    }
    body += &match seen.len() {
        0 | 1 => folded,
        recipes => format!("<details><summary>{recipes} recipes</summary>\n{folded}</details>\n"),
    };
    Ok(Section::new("repeat", "Recipe", body))
}

/// The command that repeats a directory.
fn command(material: &Material, origin: &Origin) -> String {
    let mut runs = material.runs().filter(|run| run.dir.path().starts_with(&origin.dir));
    let train = |run: &EvaluatedRun| format!("aleator train {}", shell(&run.dir.recipe_path()));
    let with_seed = |run: &EvaluatedRun, out: &Path| {
        format!("{} --seed {} --out {}", train(run), run.dir.info().seed, shell(out))
    };
    match origin.group {
        None => runs.next().map_or(String::new(), |run| with_seed(run, Path::new("again"))),
        Some(GroupKind::Seeds) => {
            runs.next().map_or(String::new(), |run| format!("{} --out again", train(run)))
        }
        Some(GroupKind::Demo) => "aleator demo --out again".to_string(),
        Some(GroupKind::Audit) => {
            let recipe = origin.dir.join("recipe.toml");
            let at = material.audits.iter().find(|at| at.dir == origin.dir);
            match at.and_then(|at| at.audit.summary.files.as_ref()) {
                _ if recipe.is_file() => format!("aleator audit {} --out again", shell(&recipe)),
                Some(files) => files.command("again", &shell),
                None => format!("aleator report {}", shell(&origin.dir)),
            }
        }
        Some(GroupKind::Sweep | GroupKind::Tune | GroupKind::Transfer) => {
            let each = |run: &EvaluatedRun| {
                let name = run.dir.path().strip_prefix(&origin.dir).unwrap_or(run.dir.path());
                with_seed(run, &Path::new("again").join(name))
            };
            runs.map(each).collect::<Vec<_>>().join("\n")
        }
    }
}

/// A path as one word of a command line.
pub(super) fn shell(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-=,+:".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What identifies the data and the program.
fn facts(material: &Material) -> String {
    let runs = material.runs().map(|run| run.dir.info());
    let runs = runs.map(|info| (&info.version, &info.fingerprint));
    let audits = material.audits.iter().map(|at| &at.audit.summary);
    let audits = audits.map(|summary| (&summary.version, &summary.fingerprint));
    let (mut versions, mut data): (Vec<&str>, Vec<&str>) = (vec![], vec![]);
    for (version, fingerprint) in runs.chain(audits) {
        for (known, new) in [(&mut versions, version), (&mut data, fingerprint)] {
            if !known.contains(&new.as_str()) {
                known.push(new);
            }
        }
    }
    let fact = |name: &str, value: String| format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n");
    let program = |it: &&str| fact("Program", format!("aleator {}", escape::text(it)));
    let files = |it: &&str| fact("Data", format!("<code>{}</code>", escape::text(it)));
    let facts: String = versions.iter().map(program).chain(data.iter().map(files)).collect();
    format!("<dl class=\"facts\">\n{facts}</dl>\n")
}

fn recipes(material: &Material) -> Vec<(String, std::path::PathBuf)> {
    let mut all = vec![];
    let detailed = material.detailed().map(|(at, _)| at);
    let mut settings: Vec<(usize, &Setting)> = material.settings.iter().enumerate().collect();
    // The run that is shown in detail comes first.
    settings.sort_by_key(|(at, _)| Some(*at) != detailed);
    for (_, setting) in settings {
        let first = setting.runs.first();
        all.extend(first.map(|run| (setting.name.clone(), run.dir.recipe_path())));
    }
    for at in &material.audits {
        all.push((dir_name(&at.dir), at.dir.join("recipe.toml")));
    }
    all
}
