//! A report without pictures: `cargo run --release -p aleator-report --example page -- DIR OUT`.

use std::error::Error;
use std::path::PathBuf;

use aleator_report::page::{PageSettings, Picture, page};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [dirs @ .., out] = arguments.as_slice() else {
        return Err("give the directories and the page to write".into());
    };
    let settings = PageSettings { suspects: 60, ambiguous: 24 };
    let page = page(dirs, &settings, &mut |_| Picture::None)?;
    page.save(out, &out.with_file_name("figures"))?;
    Ok(())
}
