//! The document around the sections.

use aleator_run::{EvaluatedRun, Link, Noise};
use base64::Engine;
use sha2::{Digest, Sha256};

use super::Section;
use super::material::{AuditAt, Material, dir_name};
use crate::escape;
use crate::number;

/// Marks a file as a report that may be overwritten.
pub(super) const GENERATOR: &str = "<meta name=\"generator\" content=\"aleator report\">";

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

pub(super) fn html(
    material: &Material,
    detailed: Option<&EvaluatedRun>,
    sections: &[Section],
) -> String {
    let names: Vec<String> = material.origins.iter().map(|origin| dir_name(&origin.dir)).collect();
    let title = escape::shortened(&names.join(", "), 80);
    let policy = format!(
        "default-src 'none'; img-src data:; style-src '{}'; script-src '{}'; base-uri 'none'; \
         form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    let title = escape::text(&title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{GENERATOR}\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} · Aleator</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the results</a>\n<header>\n<p class=\"brand\">\
         Aleator report</p>\n<h1>{title}</h1>\n"
    );
    out += &lead(material, detailed);
    out += "</header>\n<nav aria-label=\"Sections\"><ul>\n";
    let ids = unique_ids(sections);
    for (Section { title, .. }, id) in sections.iter().zip(&ids) {
        out += &format!("<li><a href=\"#{id}\">{title}</a></li>\n");
    }
    out += "</ul></nav>\n<main id=\"main\">\n";
    for (Section { title, body, .. }, id) in sections.iter().zip(&ids) {
        out += &format!(
            "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{title}</h2>\n\
             {body}</section>\n"
        );
    }
    out + &format!(
        "</main>\n<footer><p>Made by aleator {} from the files of the runs; it needs no network.\
         </p></footer>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Several audits have sections of the same name, which get a number.
fn unique_ids(sections: &[Section]) -> Vec<String> {
    let id = |(at, Section { id, .. }): (usize, &Section)| match sections[..at]
        .iter()
        .filter(|earlier| earlier.id == *id)
        .count()
    {
        0 => id.to_string(),
        earlier => format!("{id}-{}", earlier + 1),
    };
    sections.iter().enumerate().map(id).collect()
}

/// The hash by which the content security policy allows a script or style.
fn hash(content: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(digest))
}

/// A summary in one or two sentences.
fn lead(material: &Material, detailed: Option<&EvaluatedRun>) -> String {
    let classes = number::count(material.class_names.len());
    if let Some(run) = detailed {
        let info = run.dir.info();
        let noise = match info.noise {
            Noise::None => "no noise model".to_string(),
            Noise::Diagonal => "independent noise on each class".to_string(),
            Noise::LowRank { rank } => format!("a noise covariance of rank {rank}"),
            Noise::OnFeatures { rank } => format!("noise on the features of rank {rank}"),
            Noise::SharedLowRank { rank } => format!("a shared noise covariance of rank {rank}"),
        };
        let kind = match info.link {
            Link::Softmax => "classes",
            Link::Sigmoid => "classes, each on or off",
        };
        let runs = material.runs().count();
        let counts = &info.examples;
        let mut out = format!(
            "<p class=\"lead\">{} examples to learn from, {} for validation, {} for the test; \
             {classes} {kind}; {noise}.",
            number::count(counts.train),
            number::count(counts.validation),
            number::count(counts.test),
        );
        if runs > 1 {
            out += &format!(
                " {runs} runs; what is shown of a single one is of <code>{}</code>.",
                escape::text(&run.dir.path().display().to_string())
            );
        }
        out += "</p>\n";
        if !info.set_aside.is_empty() {
            out += &format!(
                "<p class=\"note\">{} images that cannot be decoded were set aside; \
                 <code>run.json</code> names them.</p>\n",
                number::count(info.set_aside.len())
            );
        }
        return out;
    }
    let lead = |at: &AuditAt| {
        format!(
            "<p class=\"lead\">{} labels of {} examples in {classes} classes, each judged by \
             {}.</p>\n",
            number::count(at.audit.summary.labels),
            number::count(at.audit.summary.examples),
            at.audit.summary.judged_by(),
        )
    };
    material.audits.first().map(lead).unwrap_or_default()
}
