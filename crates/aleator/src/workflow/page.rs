//! `report`: runs and audits as one page to look at.

mod gallery;

use std::path::{Path, PathBuf};

use aleator_report::page::{PageSettings, check_replaceable, page};
use aleator_run::{RunLock, RunTree, lock_folder, remove_leftovers};

use crate::{Error, Event, Watch};
use gallery::Gallery;

/// What a report shows, and where it is written.
///
/// ```no_run
/// use aleator::{ReportSettings, Watch, report};
///
/// let settings = ReportSettings { suspects: 50, ..ReportSettings::inside("run".as_ref()) };
/// report(&["run".into()], &settings, &mut Watch::silent())?;
/// # Ok::<(), aleator::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportSettings {
    /// The page. An older report there is replaced; any other file is an error.
    pub page: PathBuf,
    /// The directory that the figures are saved to, as SVG.
    pub figures: PathBuf,
    /// Images to show with the examples: those that features were made from, or images that were
    /// moved.
    pub images: Option<PathBuf>,
    /// At most this many suspect labels are shown.
    pub suspects: usize,
    /// At most this many ambiguous examples are shown.
    pub ambiguous: usize,
}

impl ReportSettings {
    /// `report.html` inside a run or audit directory, with figures beside it.
    pub fn inside(dir: &Path) -> Self {
        Self {
            page: dir.join("report.html"),
            figures: dir.join("figures"),
            images: None,
            suspects: 60,
            ambiguous: 24,
        }
    }
}

/// Writes the report of runs, groups of runs and audits that share their classes.
///
/// # Errors
/// When something in the directories is missing or damaged, the runs do not belong together, or
/// another file stands where the page should go.
pub fn report(
    dirs: &[PathBuf],
    settings: &ReportSettings,
    watch: &mut Watch<'_>,
) -> Result<(), Error> {
    let out = &settings.page;
    if out.file_name().is_none() || out.is_dir() {
        return Err(Error::invalid(format!(
            "{} is a directory: name a file in it, such as {}",
            out.display(),
            out.join("report.html").display()
        )));
    }
    check_replaceable(out)?;
    let limits = PageSettings { suspects: settings.suspects, ambiguous: settings.ambiguous };
    let total = settings.suspects + settings.ambiguous;
    let mut gallery = Gallery::new(settings.images.as_deref());
    let mut done = 0;
    let page = page(dirs, &limits, &mut |key| {
        done += 1;
        watch.event(Event::Progress { what: "pictures", done, total });
        gallery.picture(key)
    })?;
    let _lock = lock_for_page(out, &settings.figures)?;
    page.save(out, &settings.figures)?;
    gallery.warnings().iter().for_each(|warning| watch.warn(warning));
    Ok(())
}

/// Where the page goes into a run, a group or an audit: removes what killed writers left there,
/// unless another one is at work, whose files these may be.
fn lock_for_page(out: &Path, figures: &Path) -> Result<Option<RunLock>, Error> {
    let Some(dir) = out.parent().filter(|dir| RunTree::open(dir).is_ok_and(|it| it.is_some()))
    else {
        return Ok(None);
    };
    let Ok(lock) = lock_folder(dir) else { return Ok(None) };
    if figures.parent() == Some(dir) && !figures.is_symlink() {
        remove_leftovers(figures)?;
    }
    Ok(Some(lock))
}
