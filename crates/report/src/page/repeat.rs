//! How to repeat the runs: commands, versions and recipes.

use std::fmt::Write;
use std::path::Path;

use aleator_run::{EvaluatedRun, GroupKind, RunError};

use super::Section;
use super::material::{Kind, Material, Origin};
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
    let mut seen: Vec<String> = vec![];
    for (name, path) in recipes(material) {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(source) => return Err(RunError::Io { action: "read", path, source }.into()),
        };
        if seen.contains(&text) {
            continue;
        }
        let open = if seen.is_empty() { " open" } else { "" };
        let _ = writeln!(
            body,
            "<details{open}><summary>Recipe{}</summary><pre>{}</pre></details>",
            if name.is_empty() { String::new() } else { format!(" of {}", escape::name(&name)) },
            escape::text(&text)
        );
        seen.push(text);
    }
    Ok(Section { id: "repeat".to_string(), title: "Recipe".to_string(), body })
}

/// The command that repeats a directory.
fn command(material: &Material, origin: &Origin) -> String {
    let runs: Vec<&EvaluatedRun> = material
        .settings
        .iter()
        .flat_map(|setting| &setting.runs)
        .filter(|run| run.dir.path().starts_with(&origin.dir))
        .collect();
    let first = runs.first().map(|run| shell(&run.dir.recipe_path()));
    let seed = runs.first().map_or(0, |run| run.dir.info().seed);
    match (origin.kind, first) {
        (Kind::Run, Some(recipe)) => {
            format!("aleator train {recipe} --seed {seed} --out again")
        }
        (Kind::Group(GroupKind::Demo), _) => "aleator demo --out again".to_string(),
        (Kind::Group(GroupKind::Seeds), Some(recipe)) => {
            format!("aleator train {recipe} --out again")
        }
        (Kind::Group(_), _) => {
            let each = |run: &&EvaluatedRun| {
                let name = run.dir.path().strip_prefix(&origin.dir).unwrap_or(run.dir.path());
                format!(
                    "aleator train {} --seed {} --out {}",
                    shell(&run.dir.recipe_path()),
                    run.dir.info().seed,
                    shell(&Path::new("again").join(name))
                )
            };
            runs.iter().map(each).collect::<Vec<_>>().join("\n")
        }
        (Kind::Audit, _) => match origin.dir.join("recipe.toml") {
            recipe if recipe.is_file() => {
                format!("aleator audit {} --out again", shell(&recipe))
            }
            _ => {
                let at = material.audits.iter().find(|at| at.dir == origin.dir);
                match at.and_then(|at| at.audit.summary.files.as_ref()) {
                    Some(files) => files.command("again", &shell),
                    None => format!("aleator report {}", shell(&origin.dir)),
                }
            }
        },
        (Kind::Run, None) => String::new(),
    }
}

/// A path as one word of a command line.
fn shell(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-=,+:".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What identifies the data and the program.
fn facts(material: &Material) -> String {
    let mut rows: Vec<(String, String, String)> = vec![];
    for run in material.settings.iter().flat_map(|setting| &setting.runs) {
        let info = run.dir.info();
        let place = run.dir.path().display().to_string();
        rows.push((place, info.version.clone(), info.fingerprint.clone()));
    }
    for at in &material.audits {
        let summary = &at.audit.summary;
        let place = at.dir.display().to_string();
        rows.push((place, summary.version.clone(), summary.fingerprint.clone()));
    }
    let mut out = String::from("<dl class=\"facts\">\n");
    let mut listed: Vec<(String, String)> = vec![];
    for (_, version, fingerprint) in rows {
        if !listed.contains(&(version.clone(), fingerprint.clone())) {
            let _ = writeln!(
                out,
                "<div><dt>Program</dt><dd>aleator {}</dd></div><div><dt>Data</dt><dd><code>{}</code>\
                 </dd></div>",
                escape::text(&version),
                escape::text(&fingerprint)
            );
            listed.push((version, fingerprint));
        }
    }
    out + "</dl>\n"
}

fn recipes(material: &Material) -> Vec<(String, std::path::PathBuf)> {
    let mut all = vec![];
    let detailed = material.detailed().map(|(at, _)| at);
    let mut settings: Vec<usize> = (0..material.settings.len()).collect();
    // The run that is shown in detail comes first.
    settings.sort_by_key(|at| (Some(*at) != detailed, *at));
    for setting in settings.into_iter().map(|at| &material.settings[at]) {
        let first = setting.runs.first();
        all.extend(first.map(|run| (setting.name.clone(), run.dir.recipe_path())));
    }
    for at in &material.audits {
        all.push((at.name.clone(), at.dir.join("recipe.toml")));
    }
    all
}
