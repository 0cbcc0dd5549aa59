//! A report at full size, and what it costs:
//! `cargo run --release -p aleator-report --example large_report -- FOLDER EXAMPLES CLASSES`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use aleator_report::page::{EncodedPicture, PageSettings, Picture, page};
use support::{Fixture, Random};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, examples, classes] = arguments.as_slice() else {
        return Err("give a folder, a number of examples and a number of classes".into());
    };
    let (folder, examples) = (PathBuf::from(folder), examples.parse()?);
    let dir = folder.join("run");
    if !dir.exists() {
        let fixture = Fixture { examples, rank: 10, ..Fixture::numbered(classes.parse()?) };
        fixture.write(&dir);
    }
    let started = Instant::now();
    let settings = PageSettings { suspects: 200, ambiguous: 24 };
    // As large as the thumbnail of a photograph, which does not compress either.
    let mut random = Random(7);
    let mut noise = || (0..6_000).map(|_| (255.0 * random.uniform()) as u8).collect();
    let made = page(&[dir], &settings, &mut |_| {
        let bytes = noise();
        Picture::Encoded(EncodedPicture {
            media_type: "image/jpeg",
            bytes,
            width: 128,
            height: 128,
        })
    })?;
    let out = folder.join("report.html");
    made.save(&out, &folder.join("figures"))?;
    let (megabytes, seconds) = (made.html.len() as f64 / 1e6, started.elapsed().as_secs_f64());
    writeln!(io::stdout(), "{}: {megabytes:.1} MB in {seconds:.1} s", out.display())?;
    Ok(())
}
