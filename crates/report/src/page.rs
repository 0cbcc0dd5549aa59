//! The HTML report of runs and audits: one file that needs no other.

mod audited_confusions;
mod cards;
mod classes;
mod confusions;
mod curves;
mod document;
mod held_out;
mod material;
mod people;
mod pictures;
mod reliability;
mod repeat;
mod scores;
mod table;
mod tuning;
mod verdict;

use std::path::{Path, PathBuf};

use aleator_run::{EvaluatedRun, RunDir, RunError, Split, check_own_folder, write_file};

use crate::error::ReportError;
use crate::figure::Figure;
use held_out::HeldOut;
use material::Material;
pub use pictures::{EncodedPicture, Picture, PictureKey, PictureSource};

/// How much to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSettings {
    /// Most suspect labels.
    pub suspects: usize,
    /// Most ambiguous examples.
    pub ambiguous: usize,
}

/// A report that is not yet written.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The document.
    pub html: String,
    /// Its figures, which are also saved as files.
    pub figures: Vec<Figure>,
}

/// A part of the page with a heading, which names the examples that it is about.
struct Section {
    id: &'static str,
    title: String,
    body: String,
}

impl Section {
    fn new(id: &'static str, title: impl Into<String>, body: String) -> Self {
        Self { id, title: title.into(), body }
    }
}

/// The figures of the page so far.
#[derive(Default)]
struct Figures(Vec<Figure>);

impl Figures {
    /// Adds a figure and returns its element.
    fn add(&mut self, figure: Figure) -> String {
        let element = figure.inline(&format!("fig{}", self.0.len()));
        self.0.push(figure);
        element
    }
}

/// Figures next to each other, four of them in two rows; the caption may be empty.
fn row(figures: &[String], caption: &str) -> String {
    let two = if figures.len() == 4 { " two" } else { "" };
    let figures = figures.concat();
    let caption = match caption {
        "" => String::new(),
        words => format!("<figcaption>{words}</figcaption>"),
    };
    format!("<figure><div class=\"row{two}\">\n{figures}</div>{caption}</figure>\n")
}

/// Makes the report of runs, groups of runs and audits with the same classes.
///
/// The same directories give the same bytes.
///
/// # Errors
/// When a directory is none of these, is not finished, is damaged, or has other classes.
pub fn page(
    dirs: &[PathBuf],
    settings: &PageSettings,
    pictures: &mut PictureSource<'_>,
) -> Result<Page, ReportError> {
    let material = Material::load(dirs)?;
    let mut figures = Figures::default();
    let mut sections = vec![scores::section(&material, &mut figures)];
    // The suspects come first: the sentence above them says to start there.
    for audit in &material.audits {
        sections.extend(cards::suspects(audit, settings.suspects, pictures));
        sections.extend(cards::lists::sections(audit, settings, pictures));
        sections.extend(audited_confusions::section(audit, &mut figures));
        sections.extend(classes::of_audit(audit));
        sections.extend(people::section(audit));
    }
    if !material.audits.is_empty() {
        sections.extend(scores::of_runs(&material, &mut figures));
    }
    sections.extend(curves::section(&material, &mut figures)?);
    let detailed = material.detailed().map(|(_, run)| run);
    if let Some((at, run)) = material.detailed() {
        let seeds = material.settings[at].runs.iter().map(|run| run.dir.clone()).collect();
        let details = Details::load(run, seeds, settings)?;
        sections.extend(tuning::section(run.dir.path(), &mut figures)?);
        sections.extend(reliability::section(run, &mut figures));
        sections.extend(confusions::of_run(&details, &mut figures)?);
        // An audit judges these labels too, and by models that did not choose their weights by them.
        if material.audits.is_empty() {
            sections.extend(cards::doubted(&details, pictures));
        }
        let mut ambiguous = cards::ambiguous(&details, pictures);
        if let Some(Section { body, .. }) =
            ambiguous.as_mut().filter(|_| !material.audits.is_empty())
        {
            // The suspects of an audit are what to look at.
            *body = format!("<details><summary>Show them</summary>\n{body}</details>\n");
        }
        sections.extend(ambiguous);
        sections.push(classes::of_run(run));
    }
    if let (None, Some(first)) = (detailed, material.audits.first()) {
        // All folds share their settings.
        sections.extend(tuning::section(&first.dir.join("fold-0"), &mut figures)?);
    }
    sections.push(repeat::section(&material)?);
    let html = document::html(&material, detailed, &sections);
    Ok(Page { html, figures: figures.0 })
}

/// The run that is shown in detail.
struct Details<'a> {
    run: &'a EvaluatedRun,
    /// This run and those that differ from it in their seeds only.
    seeds: Vec<RunDir>,
    /// The validation split, whose labels are like those of training.
    validation: Option<HeldOut>,
    /// The test split.
    test: Option<HeldOut>,
}

impl<'a> Details<'a> {
    fn load(
        run: &'a EvaluatedRun,
        seeds: Vec<RunDir>,
        settings: &PageSettings,
    ) -> Result<Self, ReportError> {
        let tested = run.dir.info().examples.test > 0;
        let ambiguous = if tested { 0 } else { settings.ambiguous };
        let own = PageSettings { ambiguous, ..*settings };
        let validation = HeldOut::load(&run.dir, Split::Validation, &own)?;
        let own = PageSettings { suspects: 0, ..*settings };
        let test = HeldOut::load(&run.dir, Split::Test, &own)?;
        Ok(Self { run, seeds, validation, test })
    }

    fn names(&self) -> &[String] {
        &self.run.dir.info().class_names
    }

    /// The test split, or the validation split if there is no other.
    fn unseen(&self) -> Option<&HeldOut> {
        self.test.as_ref().or(self.validation.as_ref())
    }
}

impl Page {
    /// Writes the page to `out` and its figures as SVG files into the directory `figures`.
    ///
    /// An existing report is replaced atomically; any other file is left alone.
    ///
    /// # Errors
    /// When `out` exists and is not a report, `figures` is a link beside it, or the file system
    /// refuses.
    pub fn save(&self, out: &Path, figures: &Path) -> Result<(), ReportError> {
        check_replaceable(out)?;
        let folder = out.parent().unwrap_or(Path::new(""));
        if let Some(name) = figures.file_name().filter(|_| figures.parent() == out.parent()) {
            check_own_folder(folder, name)?;
        }
        for dir in [folder, figures] {
            if !dir.as_os_str().is_empty() {
                std::fs::create_dir_all(dir).map_err(RunError::io("create", dir))?;
            }
        }
        for figure in &self.figures {
            let path = figures.join(&figure.name);
            write_file(&path.with_extension("svg"), figure.standalone().as_bytes())?;
        }
        Ok(write_file(out, self.html.as_bytes())?)
    }
}

/// Checks that a path is free or holds a report.
///
/// # Errors
/// When it holds anything else.
pub fn check_replaceable(out: &Path) -> Result<(), ReportError> {
    use std::io::Read;
    let not_ours = || ReportError::NotOurs { path: out.to_path_buf() };
    match std::fs::metadata(out) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(RunError::io("read", out)(error).into()),
        Ok(found) if !found.is_file() => return Err(not_ours()),
        Ok(_) => {}
    }
    let mut beginning = vec![];
    aleator_run::open_file(out)
        .and_then(|file| file.take(1024).read_to_end(&mut beginning))
        .map_err(RunError::io("read", out))?;
    let is_ours = String::from_utf8_lossy(&beginning).contains(document::GENERATOR);
    if is_ours { Ok(()) } else { Err(not_ours()) }
}
