//! A run that is stopped, however often and by whatever, comes to the same bits.

use crate::support;
use std::fs;
use std::path::Path;

use crate::support::{ADAM, Ended, FILES, Outcome, Place, SMALL, last_checkpoint, npy_i64, sgd};

/// 36 steps in 4 epochs, with everything that has a state: Adam, running average, parts.
fn adam(out: &str) -> String {
    format!(
        "train features-full {FILES} {SMALL} {ADAM} --set head.rank=2 --set schedule.epochs=4 \
         --set training.batch=16 --set training.parts=2 --set training.ema=0.9 \
         --set checkpoint.every_steps=4 --seed 3 --set training.min_steps= --out {out}"
    )
}

/// 20 steps or so in 2 epochs.
fn conv(out: &str) -> String {
    format!(
        "train digits-full {} --set network.kind=conv --set network.hidden= \
         --set network.channels=[4,6] --set head.rank=2 --set head.samples=16 \
         --set evaluation.samples=16 --set schedule.epochs=2 --set schedule.warm_up=0.5 \
         --set training.batch=128 --set checkpoint.every_steps=5 -q --out {out}",
        sgd("0.05", "0.9", true)
    )
}

/// The run in folder `whole`, which nothing stopped.
fn uninterrupted(place: &Place, command: &str) -> Outcome {
    place.succeeds(command);
    Outcome::of(&place.path("whole"))
}

/// Starts a run, kills it when its log has that many lines, and says whether it was in time.
fn killed_at_line(place: &Place, command: &str, run: &str, lines: usize) -> bool {
    let mut started = place.start(command);
    started.wait_until(|| place.lines(&format!("{run}/metrics.jsonl")) >= lines);
    started.kill()
}

fn same_after_kills(place: &Place, whole: &Outcome, command: fn(&str) -> String, lines: &[usize]) {
    let mut in_time = 0;
    for (at, lines) in lines.iter().enumerate() {
        let run = format!("killed-{lines}");
        // Killed with one number of threads, resumed with the other.
        let (before, after) = (1 + at % 2, 2 - at % 2);
        let command = format!("{} --threads {before}", command(&run));
        in_time += usize::from(killed_at_line(place, &command, &run, *lines));
        place.succeeds(&format!("resume {run} --threads {after} -q"));
        let what = format!("killed at line {lines}, {before} then {after} threads");
        Outcome::of(&place.path(&run)).assert_same(whole, &what);
    }
    assert!(in_time > lines.len() / 2, "only {in_time} runs were killed before their end");
}

#[test]
fn a_killed_run_comes_to_the_same_bits_with_any_number_of_threads() {
    let place = Place::with_features();
    let whole = uninterrupted(&place, &(adam("whole") + " --threads 1"));
    for name in ["step-00000036/average", "step-00000036/optimizer", "predictions/test"] {
        let file = format!("{name}.safetensors");
        assert!(whole.names().contains(&file.as_str()), "{:?}", whole.names());
    }
    place.succeeds(&(adam("two") + " --threads 2"));
    Outcome::of(&place.path("two")).assert_same(&whole, "one thread and two");
    // The first checkpoint is of step 4; lines 31 to 40 are those of the last epoch.
    same_after_kills(&place, &whole, adam, &[1, 6, 21, 33, 40]);
}

#[test]
fn a_killed_convolutional_run_comes_to_the_same_bits() {
    let place = Place::empty();
    let whole = uninterrupted(&place, &(conv("whole") + " --threads 2"));
    same_after_kills(&place, &whole, conv, &[3, 8, 18]);
}

#[test]
fn a_run_killed_while_it_is_evaluated_comes_to_the_same_bits() {
    let place = Place::with_features();
    // Many samples, so that there is time between the two files of predictions. That it is to be
    // calibrated must be remembered.
    let command = |out: &str| adam(out) + " --set evaluation.samples=20000 --calibrate";
    let whole = uninterrupted(&place, &command("whole"));
    let mut started = place.start(&command("run"));
    started.wait_until(|| place.path("run/predictions/validation.safetensors").exists());
    started.kill();
    place.succeeds("resume run -q");
    Outcome::of(&place.path("run")).assert_same(&whole, "killed between the splits");
    assert!(place.json("run/evaluation.json")["calibration"]["temperature"].is_number());
}

#[test]
fn signals_save_the_run_and_say_how_to_go_on() {
    let place = Place::with_features();
    let whole = uninterrupted(&place, &adam("whole"));
    for signal in ["INT", "TERM"] {
        let run = format!("stopped-{signal}");
        let mut started = place.start(&adam(&run));
        started.wait_until(|| place.lines(&format!("{run}/metrics.jsonl")) >= 7);
        started.signal(signal);
        let ended = started.end();
        assert_eq!(ended.code, Some(130), "{signal}: {}", ended.stderr);
        let advice = format!("aleator resume {run}");
        assert!(ended.stderr.contains(&advice), "{signal}: {}", ended.stderr);
        let saved = last_checkpoint(&place.path(&run));
        let step = saved.file_name().unwrap().to_string_lossy().into_owned();
        let number = step.trim_start_matches("step-").trim_start_matches('0');
        let said = format!("saved at step {number}");
        assert!(ended.stderr.contains(&said), "{said}: {}", ended.stderr);
        assert!(!place.path(&format!("{run}/evaluation.json")).exists());
        place.succeeds(&format!("resume {run} -q"));
        Outcome::of(&place.path(&run)).assert_same(&whole, signal);
    }
}

#[test]
fn several_seeds_that_were_stopped_go_on_to_the_same_ensemble() {
    let place = Place::with_features();
    let command = |out: &str| adam(out).replace("--seed 3", "--set seeds=[3,4]");
    place.succeeds(&command("whole"));
    let mut started = place.start(&command("run"));
    started.wait_until(|| place.lines("run/seed-4/metrics.jsonl") >= 5);
    started.signal("TERM");
    let ended = started.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("of seed-4; continue with `aleator resume run`"),
        "{}",
        ended.stderr
    );
    place.succeeds("resume run -q");
    for member in ["seed-3", "seed-4"] {
        let outcome = |run: &str| Outcome::of(&place.path(run).join(member));
        outcome("run").assert_same(&outcome("whole"), member);
    }
    for file in ["evaluation.json", "predictions/test.safetensors"] {
        let bytes = |run: &str| place.read(&format!("{run}/ensemble/{file}"));
        assert!(bytes("run") == bytes("whole"), "{file}");
    }
}

#[test]
fn a_tuning_that_was_stopped_goes_on_to_the_same_choice() {
    let place = Place::with_features();
    let command = |out: &str| {
        adam(out)
            .replace("train features-full", "tune features-full --temperatures 0.5,1 --ranks 1")
    };
    place.succeeds(&command("whole"));
    let mut started = place.start(&command("run"));
    started.wait_until(|| place.lines("run/rank=1,temperature=1/metrics.jsonl") >= 5);
    started.signal("INT");
    let ended = started.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(ended.stderr.contains("aleator resume run"), "{}", ended.stderr);
    place.succeeds("resume run -q");
    for file in ["tune.json", "best.toml"] {
        let bytes = |run: &str| place.read(&format!("{run}/{file}"));
        assert!(bytes("run") == bytes("whole"), "{file}");
    }
}

/// A copy of a finished run as it was before its evaluation.
fn unevaluated(place: &Place, run: &str) -> std::path::PathBuf {
    let (from, to) = (place.path("whole"), place.path(run));
    copy(&from, &to);
    fs::remove_file(to.join("evaluation.json")).unwrap();
    to
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Does harm to a file.
type Damage = fn(&Path);

fn shorten(file: &Path) {
    let bytes = support::read(file);
    fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
}

fn flip_a_byte(file: &Path) {
    let mut bytes = support::read(file);
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn delete(file: &Path) {
    fs::remove_file(file).unwrap();
}

#[test]
fn a_damaged_checkpoint_is_named_and_the_one_before_it_is_taken() {
    let place = Place::with_features();
    let whole = uninterrupted(&place, &adam("whole"));
    let damages: [(&str, Damage); 7] = [
        ("model.safetensors", shorten),
        ("optimizer.safetensors", flip_a_byte),
        ("average.safetensors", delete),
        ("state.json", flip_a_byte),
        ("state.json", delete),
        ("manifest.json", delete),
        ("manifest.json", shorten_to_half),
    ];
    for (at, (file, damage)) in damages.into_iter().enumerate() {
        let run = format!("damaged-{at}");
        let newest = last_checkpoint(&unevaluated(&place, &run));
        damage(&newest.join(file));
        // Quiet or not, a warning is shown.
        let quiet = if at % 2 == 0 { "-q" } else { "" };
        let ended = place.succeeds(&format!("resume {run} {quiet}"));
        let name = format!("step-00000036/{file}");
        assert!(ended.stderr.contains(&name), "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains("damaged checkpoint"), "{name}: {}", ended.stderr);
        Outcome::of(&place.path(&run)).assert_same(&whole, &name);
    }
}

fn shorten_to_half(file: &Path) {
    let bytes = support::read(file);
    fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
}

#[test]
fn without_a_whole_checkpoint_the_run_begins_again_and_says_so() {
    let place = Place::with_features();
    let whole = uninterrupted(&place, &adam("whole"));
    let run = unevaluated(&place, "run");
    for entry in fs::read_dir(run.join("checkpoints")).unwrap() {
        shorten(&entry.unwrap().path().join("model.safetensors"));
    }
    // Checkpoints of this second attempt must not give way to the damaged ones, which are newer.
    let mut started = place.start("resume run");
    started.wait_until(|| (10..36).contains(&place.lines("run/metrics.jsonl")));
    let in_time = started.kill();
    let ended = started.end();
    assert!(ended.stderr.contains("from the beginning"), "{}", ended.stderr);
    let ended = place.succeeds("resume run");
    assert!(!in_time || ended.stderr.contains("from step"), "{}", ended.stderr);
    Outcome::of(&run).assert_same(&whole, "all checkpoints damaged");
}

/// Runs the program with a limit on the size of files, in KiB.
fn with_small_files(place: &Place, kib: usize, arguments: &str) -> Ended {
    place.shell(&format!("trap '' XFSZ; ulimit -f {kib}; exec \"$ALEATOR\" {arguments}"))
}

#[test]
fn a_log_that_cannot_grow_ends_the_run_which_can_be_resumed() {
    let place = Place::with_features();
    let whole = uninterrupted(&place, &adam("whole"));
    let ended = with_small_files(&place, 4, &adam("run"));
    ended.check_refusal("a full disk", &["cannot write", "larger than is allowed"]);
    let saved = last_checkpoint(&place.path("run"));
    let ended = place.succeeds("resume run");
    assert!(!ended.stderr.contains("damaged"), "{saved:?}: {}", ended.stderr);
    assert!(ended.stderr.contains("from step"), "{}", ended.stderr);
    Outcome::of(&place.path("run")).assert_same(&whole, "after a full disk");
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_one_before_it() {
    let place = Place::with_features();
    let command = |out: &str| adam(out) + " --set network.hidden=[128]";
    let whole = uninterrupted(&place, &command("whole"));
    assert!(killed_at_line(&place, &command("run"), "run", 6));
    let saved = last_checkpoint(&place.path("run"));
    let ended = with_small_files(&place, 8, "resume run -q");
    ended.check_refusal("a full disk", &["safetensors", "larger than is allowed"]);
    assert_eq!(last_checkpoint(&place.path("run")), saved);
    let ended = place.succeeds("resume run");
    assert!(!ended.stderr.contains("damaged"), "{saved:?}: {}", ended.stderr);
    Outcome::of(&place.path("run")).assert_same(&whole, "after a full disk");
}

#[test]
fn a_loss_that_is_not_finite_ends_the_run_with_the_step_and_the_examples() {
    let place = Place::with_features();
    let command = format!(
        "train features-none {FILES} {SMALL} {} --set schedule.warm_up=0 \
         --set checkpoint.every_steps=1 --set training.batch=16 --set training.min_steps= \
         --out run",
        sgd("1e30", "0", false)
    );
    let words = ["not finite at step 1", "16 of the batch's examples", "learning_rate"];
    let ended = place.refuses(&command, &words);
    let names = ended.stderr.split("examples: ").nth(1).unwrap();
    let first: usize = names.split(',').next().unwrap().parse().unwrap();
    assert!(first < 160);
    assert!(last_checkpoint(&place.path("run")).ends_with("step-00000001"));
    let again = place.refuses("resume run", &words);
    assert!(again.stderr.contains("from step 1"), "{}", again.stderr);
    assert!(!again.stderr.contains("damaged"), "{}", again.stderr);
}

#[test]
fn a_finished_run_is_left_as_it_is() {
    let place = Place::with_features();
    let whole = uninterrupted(&place, &adam("whole"));
    place.succeeds("resume whole -q");
    Outcome::of(&place.path("whole")).assert_same(&whole, "resumed after its end");
}

#[test]
fn data_that_moved_are_accepted_at_their_new_place_if_they_are_the_same() {
    let place = Place::with_features();
    place.succeeds(&format!("train features-full {FILES} {SMALL} --out run"));
    place.succeeds(&format!("train features-none {FILES} {SMALL} --set seeds=[0,1] --out group"));
    let before = place.json("run/evaluation.json");
    let files = ["x.npy", "y.npy", "tx.npy", "ty.npy"];
    fs::create_dir(place.path("new")).unwrap();
    for file in files {
        fs::rename(place.path(file), place.path("new").join(file)).unwrap();
    }
    for command in ["eval run", "resume group"] {
        place.refuses(command, &["x.npy", "aleator resume", "--data PATH"]);
    }
    let recipe = place.read("run/recipe.toml");
    place.refuses("resume run --data nowhere", &["nowhere", "no such file"]);
    place.refuses("resume run --data run", &["does not hold all files", "x.npy"]);
    let labels = place.read("new/y.npy");
    place.write("new/y.npy", npy_i64(&[160], [0, 1, 2, 3].repeat(40)));
    place.refuses("resume run --data new", &["data", "run"]);
    assert!(place.read("run/recipe.toml") == recipe, "nothing is written for other data");
    place.write("new/y.npy", labels);

    place.succeeds("resume run --data new -q");
    let moved = String::from_utf8(place.read("run/recipe.toml")).unwrap();
    let old = String::from_utf8(recipe).unwrap();
    let folder = place.path("").display().to_string();
    assert_eq!(moved, old.replace(&folder, &format!("{folder}new/")));
    place.succeeds("eval run -q");
    assert_eq!(place.json("run/evaluation.json"), before);
    // The training inputs say where the other files are; those of a group are in several recipes.
    place.succeeds("resume group --data new/x.npy -q");
    place.succeeds("eval group/seed-1 -q");
    let group = String::from_utf8(place.read("group/group.json")).unwrap();
    assert_eq!(group.matches("new/x.npy").count(), 2, "{group}");
}
