//! Directories from somebody else: links that lead out of them, pipes, paths of pictures.

use std::fs;
use std::os::unix::fs::symlink;

use crate::onnx::mean_colours;
use crate::support::{Ended, FILES, Place, SMALL, picture};

const LINK: &[&str] = &["symbolic link"];

const AUDIT: &str = "audit features-audit -q --set data.train.features=x.npy \
                     --set data.train.labels=y.npy";

/// A run, a group of two seeds and an audit, and beside them what belongs to somebody else.
fn place() -> Place {
    let place = Place::with_features();
    place.succeeds(&format!("train features-none {FILES} {SMALL} --out whole/run"));
    place.succeeds(&format!(
        "train features-none {FILES} {SMALL} --set seeds=[1,2] --out whole/group"
    ));
    place.succeeds(&format!("{AUDIT} --out whole/audit"));
    place.write("precious", PRECIOUS);
    place.write("theirs/step-00000001/keep", PRECIOUS);
    place.write("theirs/.tmp-keep", PRECIOUS);
    place
}

/// Without a line break at its end: a log would take it for a line that a kill cut off.
const PRECIOUS: &str = "precious";

/// Copies `whole/NAME` to NAME, puts a link there to what belongs to somebody else, in place of what
/// is there, and runs a command that must not follow it.
fn refuses(place: &Place, name: &str, link: &str, target: &str, command: &str, words: &[&str]) {
    let copied = place.shell(&format!("rm -rf {name} && cp -r whole/{name} {name}"));
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    let link = place.path(&format!("{name}/{link}"));
    match link.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(&link).unwrap(),
        Ok(_) => fs::remove_file(&link).unwrap(),
        Err(_) => {}
    }
    symlink(place.path(target), &link).unwrap();
    place.refuses(command, words);
    assert_untouched(place, &format!("{command}, {}", link.display()));
}

fn assert_untouched(place: &Place, what: &str) {
    let found = place.shell("find precious theirs -type f -exec cat {} + ; find theirs | sort");
    let expected = format!(
        "{}theirs\ntheirs/.tmp-keep\ntheirs/step-00000001\ntheirs/step-00000001/keep\n",
        PRECIOUS.repeat(3)
    );
    assert_eq!(found.stdout, expected, "{what}");
}

#[test]
fn nothing_is_written_through_a_link_inside_a_run_a_group_or_an_audit() {
    let place = place();
    for command in ["resume run", "eval run"] {
        refuses(&place, "run", ".lock", "precious", command, LINK);
        for folder in ["checkpoints", "predictions", "tensorboard"] {
            refuses(&place, "run", folder, "theirs", command, LINK);
        }
    }
    refuses(&place, "run", "figures", "theirs", "report run", LINK);
    refuses(&place, "run", "report.html", "precious", "report run", &["report.html"]);
    refuses(&place, "group", ".lock", "precious", "resume group", LINK);
    for command in ["resume", "report", "compare", "predict", "analyse"] {
        let data = if command == "predict" { " tx.npy" } else { "" };
        refuses(&place, "group", "seed-1", "whole/run", &format!("{command} group{data}"), LINK);
    }
    for command in ["review audit --export", "resume audit"] {
        refuses(&place, "audit", ".lock", "precious", command, LINK);
    }
    // A link that leads nowhere makes no file there either.
    for target in ["precious", "not-there"] {
        refuses(
            &place,
            "audit",
            "decisions.jsonl",
            target,
            "review audit --export",
            &["decisions"],
        );
    }
    assert!(!place.path("not-there").exists());
}

/// The logs are opened when nothing else is left to refuse.
#[test]
fn a_run_that_begins_again_does_not_cut_what_its_logs_lead_to() {
    let place = place();
    let script = "rm -r whole/run/evaluation.json whole/run/checkpoints/* whole/run/predictions/*";
    assert_eq!(place.shell(script).code, Some(0));
    for log in ["metrics.jsonl", "tensorboard/events.out.tfevents.0.aleator"] {
        refuses(&place, "run", log, "precious", "resume run", LINK);
    }
    // The directory that the user names may be a link.
    symlink("whole/run", place.path("named")).unwrap();
    place.succeeds("resume named -q");
    assert!(place.path("whole/run/evaluation.json").exists());
}

#[test]
fn embeddings_are_not_written_through_a_link() {
    let place = Place::empty();
    place.write("net.onnx", mean_colours(-1, -1).file());
    (0..4).for_each(|at| place.write(&format!("photos/cat/{at}.ppm"), picture(8, at, true)));
    place.write("precious", PRECIOUS);
    let embed = "embed photos --model net.onnx --runtime rten --size 8 --out x.safetensors -q";
    symlink("precious", place.path("x.safetensors.partial")).unwrap();
    place.refuses(embed, LINK);
    fs::remove_file(place.path("x.safetensors.partial")).unwrap();
    symlink("precious", place.path("x.safetensors.progress")).unwrap();
    place.succeeds(embed);
    assert_eq!(place.read("precious"), PRECIOUS.as_bytes());
    assert!(!place.path("x.safetensors.progress").is_symlink());
}

/// Runs a command that must come to its end.
fn ends(place: &Place, command: &str) -> Ended {
    let ended = place.shell(&format!("timeout -s KILL 20 \"$ALEATOR\" {command}"));
    assert_ne!(ended.code, Some(137), "aleator {command} waits for ever");
    ended.check_no_panic(command);
    ended
}

#[test]
fn a_pipe_in_place_of_a_file_is_refused_at_once() {
    let place = place();
    let script = "mkfifo pipe pipe.npy pipe.csv pipe.onnx pipe.safetensors && mkdir -p photos/c0 \
                  photos/c1 && mkfifo photos/c0/pipe.png && echo 'base = \"pipe\"' > based.toml";
    assert_eq!(place.shell(script).code, Some(0));
    (0..4).for_each(|at| place.write(&format!("photos/c1/{at}.ppm"), picture(8, at, true)));
    place.write("net.onnx", mean_colours(-1, -1).file());
    let run = |name: &str, file: &str| {
        let copied = format!("cp -r whole/run {name} && rm {name}/{file} && mkfifo {name}/{file}");
        assert_eq!(place.shell(&copied).code, Some(0), "{name}");
    };
    run("log", "metrics.jsonl");
    run("recipe", "recipe.toml");
    let weights = "cp -r whole/run weights && for file in weights/checkpoints/*/model.safetensors; \
                   do rm $file && mkfifo $file; done";
    assert_eq!(place.shell(weights).code, Some(0));
    let audit = "cp -r whole/audit audit && rm audit/issues.csv && mkfifo audit/issues.csv";
    assert_eq!(place.shell(audit).code, Some(0));
    let labels = "--set data.train.features=x.npy --set data.train.labels";
    for command in [
        "train based.toml --out new",
        "train --data pipe.npy --out new",
        &format!("train features-none {labels}=pipe.npy --out new"),
        &format!("train features-none {labels}=y.npy --set data.class_names=pipe --out new"),
        "train --weights pipe.safetensors --data photos --out new",
        "doctor pipe.csv",
        "predict whole/run pipe.npy",
        "predict weights tx.npy",
        "eval recipe",
        "report log",
        "report audit",
        "embed photos --model pipe.onnx --out new.safetensors",
    ] {
        ends(&place, command).check_refusal(command, &["named pipe"]);
    }
    let ended = ends(&place, "doctor photos");
    assert!(ended.stdout.contains("named pipe"), "{}{}", ended.stdout, ended.stderr);
}

/// Every row of `issues.csv` names a picture of the reader, which nothing else in the audit names.
#[test]
fn a_path_in_an_audit_puts_no_picture_of_the_reader_into_the_report() {
    let place = Place::with_features();
    place.succeeds(&format!("{AUDIT} --out audit"));
    place.write("secret.ppm", picture(16, 1, true));
    let secret = place.path("secret.ppm").display().to_string();
    let issues = String::from_utf8(place.read("audit/issues.csv")).unwrap();
    let row = |line: &str| {
        let (id, rest) = line.split_once(",,").expect("no path");
        format!("{id},{secret},{rest}\n")
    };
    let (header, rows) = issues.split_once('\n').unwrap();
    let rows: String = rows.lines().map(row).collect();
    place.write("audit/issues.csv", format!("{header}\n{rows}"));
    for recipe in [true, false] {
        if !recipe {
            fs::remove_file(place.path("audit/recipe.toml")).unwrap();
        }
        place.succeeds("report audit -q");
        let page = String::from_utf8(place.read("audit/report.html")).unwrap();
        assert!(page.contains("suspect") && !page.contains("<img"), "with a recipe: {recipe}");
        fs::remove_file(place.path("audit/report.html")).unwrap();
    }
}
