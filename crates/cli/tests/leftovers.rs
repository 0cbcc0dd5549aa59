//! What commands leave on the disk: files that others may read as the umask says, and nothing of
//! what was killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::onnx::mean_colours;
use crate::support::{FILES, Place, SMALL, picture};

#[test]
fn every_file_and_folder_has_the_permissions_of_the_umask() {
    let place = Place::with_features();
    place.write("net.onnx", mean_colours(-1, -1).file());
    (0..8)
        .for_each(|at| place.write(&format!("photos/c{}/{at}.ppm", at % 2), picture(8, at, true)));
    let script = format!(
        "umask 027 && mkdir out && run() {{ \"$ALEATOR\" \"$@\" -q || exit 1; }}
        run train features-full {FILES} {small} --set seeds=[1,2] --out out/group
        run train features-full {FILES} --set schedule.epochs=4 --out out/tuned
        run eval out/group/seed-1 --calibrate
        run predict out/group tx.npy --out out/predictions.npy
        run predict out/tuned tx.npy --out out/predictions.csv
        run analyse out/group/seed-1 --out out/analysis
        run report out/group
        run compare out/group --out out/table.md
        run audit features-audit --set data.train.features=x.npy --set data.train.labels=y.npy \
            --out out/audit
        run audit features-none {FILES} {small} --folds 2 --out out/folds
        run review out/audit --accept 0.9
        run report out/audit
        run embed photos --model net.onnx --runtime rten --size 8 --out out/x.safetensors
        run noise --kind symmetric --rate 0.2 --labels y.npy --out out/noisy.npy",
        small = SMALL.replace(" -q", "")
    );
    let ended = place.shell(&script);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let (mut seen, mut folders) = (0, vec![place.path("out")]);
    while let Some(dir) = folders.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o7777;
            let expected = if path.is_dir() { 0o750 } else { 0o640 };
            assert!(mode == expected, "{}: {mode:o}", path.display());
            seen += 1;
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    assert!(seen > 100, "only {seen} files and folders");
}

/// Names that only a killed process leaves.
fn left(place: &Place) -> Vec<String> {
    let names = "-name '.tmp*' -o -name '.old-*' -o -name '*.progress' -o -name '*.partial'";
    let found = place.shell(&format!("find . {names} | sort"));
    found.stdout.lines().map(String::from).collect()
}

#[test]
fn the_next_command_that_writes_removes_what_killed_ones_left_and_readers_do_not() {
    let place = Place::with_features();
    let small = format!("{FILES} {SMALL}");
    place.write("ranks.toml", "base = \"features-full\"\n[axes]\n\"head.rank\" = [1, 2]\n");
    place.succeeds(&format!("train features-none {small} --set seeds=[1,2] --out seeds"));
    place.succeeds(&format!("sweep ranks.toml {small} --out sweep"));
    place.succeeds(&format!("tune features-full {small} --temperatures 1 --ranks 1,2 --out tune"));
    place.succeeds(&format!("audit features-none {small} --folds 2 --out audit"));
    assert_eq!(left(&place), [""; 0]);
    for dir in ["seeds", "sweep", "tune", "audit"] {
        let run = fs::read_dir(place.path(dir)).unwrap().map(|entry| entry.unwrap().path());
        let run = run.filter(|path| path.join("metrics.jsonl").exists()).min().expect("a member");
        let run = run.strip_prefix(place.path("")).unwrap().display().to_string();
        for name in ["group.json", "audit.json"] {
            place.write(&format!("{dir}/.tmp-7-0-{name}"), "{");
        }
        place.write(&format!("{run}/checkpoints/.tmp-7-1-step-3/model.safetensors"), "");
        place.write(&format!("{run}/predictions/.tmpAbc123"), "");
        place.write(&format!("{run}/.old-tuning/trials.json"), "[]");
        let before = left(&place);
        assert_eq!(before.len(), 5, "{before:?}");
        place.succeeds(&format!("compare {run}"));
        assert_eq!(left(&place), before, "a reader removes nothing");
        place.succeeds(&format!("resume {dir} -q"));
        assert_eq!(left(&place), [""; 0], "{dir}");
    }
    place.write("seeds/.tmp-7-0-report.html", "<");
    place.write("seeds/figures/.tmp-7-0-curves.svg", "<");
    place.succeeds("report seeds -q");
    assert_eq!(left(&place), [""; 0], "report");
}

#[test]
fn embeddings_are_cleaned_up_when_they_are_complete() {
    let place = Place::empty();
    place.write("net.onnx", mean_colours(-1, -1).file());
    (0..4).for_each(|at| place.write(&format!("photos/cat/{at}.ppm"), picture(8, at, true)));
    let embed = "embed photos --model net.onnx --runtime rten --size 8 --out x.safetensors -q";
    let leave = |all: bool| {
        place.write(".tmp-7-0-x.safetensors.progress", "{");
        place.write(".tmp-7-0-other.progress", "{");
        if all {
            place.write("x.safetensors.progress", "{}");
            place.write("x.safetensors.partial", "rows");
        }
    };
    // Killed while it wrote, and after the file had its name.
    for all in [false, true] {
        leave(all);
        place.succeeds(embed);
        assert_eq!(left(&place), ["./.tmp-7-0-other.progress"], "that of another file stays");
    }
}
