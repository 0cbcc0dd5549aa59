//! Decisions, what is left of them after anything, and the labels that follow.

use crate::support;
use std::fs;
use std::path::Path;

use crate::support::{multi, single};
use aleator_data::DataSet;
use aleator_report::audit::Audit;
use aleator_review::{Decision, Progress, Session};
use aleator_run::Link;

const CLASSES: [&str; 3] = ["cat", "=dog", "2020"];

fn saved(audit: &Audit) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    audit.save(folder.path()).unwrap();
    folder
}

fn pets() -> tempfile::TempDir {
    saved(&single(
        &CLASSES,
        &[("b", 0, 1, true), ("a", 1, 0, true), ("=d", 2, 0, true), ("c", 0, 2, false)],
    ))
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap()
}

fn refusal(dir: &Path) -> String {
    Session::open(dir).unwrap_err().to_string()
}

#[test]
fn decisions_become_corrected_labels_in_the_order_of_the_examples() {
    let folder = pets();
    let mut review = Session::open(folder.path()).unwrap();
    review.decide(0, Decision::Accept).unwrap();
    review.decide(1, Decision::Keep).unwrap();
    review.decide(2, Decision::Ambiguous).unwrap();
    review.decide(3, Decision::Class(1)).unwrap();
    review.write_corrected().unwrap();
    let expected = "id,label\n'=d,2020\na,'=dog\nb,'=dog\nc,'=dog\n";
    assert_eq!(read(folder.path(), "corrected.csv"), expected);
    assert_eq!(read(folder.path(), "ambiguous.csv"), "id,given,suggested\n'=d,2020,cat\n");
    let progress = Progress {
        suspects: 3,
        suspects_decided: 3,
        decided: 4,
        corrected: 2,
        kept: 1,
        ambiguous: 1,
    };
    assert_eq!(review.progress(), progress);
}

#[test]
fn decisions_and_undo_survive_and_go_on() {
    let folder = pets();
    let mut review = Session::open(folder.path()).unwrap();
    review.decide(0, Decision::Accept).unwrap();
    review.decide(0, Decision::Class(2)).unwrap();
    review.decide(1, Decision::Ambiguous).unwrap();
    assert_eq!(review.undo().unwrap(), Some(1));
    drop(review);
    let mut review = Session::open(folder.path()).unwrap();
    assert!(review.notes().is_empty());
    assert_eq!(review.decision(0), Some(Decision::Class(2)));
    assert_eq!(review.decision(1), None);
    assert_eq!(review.undo().unwrap(), Some(0));
    assert_eq!(review.decision(0), Some(Decision::Accept));
    assert_eq!(review.undo().unwrap(), Some(0));
    assert_eq!(review.undo().unwrap(), None);
    assert_eq!(read(folder.path(), "decisions.jsonl").lines().count(), 7);
}

#[test]
fn whatever_is_cut_off_the_end_leaves_the_decisions_before_it() {
    let folder = pets();
    let path = folder.path().join("decisions.jsonl");
    let mut review = Session::open(folder.path()).unwrap();
    review.decide(0, Decision::Accept).unwrap();
    review.decide(1, Decision::Accept).unwrap();
    drop(review);
    let whole = fs::read(&path).unwrap();
    let ends: Vec<usize> = (1..=whole.len()).filter(|end| whole[end - 1] == b'\n').collect();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let mut review = Session::open(folder.path()).unwrap();
        let lines = ends.iter().filter(|end| **end <= length).count();
        assert_eq!(review.progress().decided, lines.saturating_sub(1), "after {length} bytes");
        let torn = length > 0 && !ends.contains(&length);
        assert_eq!(!review.notes().is_empty(), torn, "after {length} bytes");
        review.decide(2, Decision::Keep).unwrap();
        drop(review);
        let review = Session::open(folder.path()).unwrap();
        assert_eq!(review.decision(2), Some(Decision::Keep));
        assert!(review.notes().is_empty());
    }
}

#[test]
fn a_damaged_line_is_named() {
    let folder = pets();
    drop(Session::open(folder.path()).unwrap());
    let path = folder.path().join("decisions.jsonl");
    let head = read(folder.path(), "decisions.jsonl");
    for (line, words) in [
        ("{", "line 2: "),
        (r#"{"id":"zebra","decision":"keep","label":"cat"}"#, "no issue of \"zebra\""),
        (r#"{"id":"b","decision":"class","label":"zebra"}"#, "\"zebra\" does not suit"),
        (r#"{"id":"b","decision":"keep","label":"2020"}"#, "does not suit"),
        (r#"{"id":"b","decision":"undo"}"#, "not the last one"),
        (r#"{"id":"b","decision":"sing"}"#, "unknown variant"),
        (r#"{"id":"b","class":"cat","decision":"keep","label":"on"}"#, "class \"cat\""),
    ] {
        fs::write(&path, format!("{head}{line}\n")).unwrap();
        let message = refusal(folder.path());
        assert!(message.contains("line 2: ") && message.contains(words), "{message}");
    }
    fs::write(&path, [head.as_bytes(), b"\xff\n"].concat()).unwrap();
    assert!(refusal(folder.path()).contains("line 2: is not valid UTF-8"));
    fs::write(&path, "{\"format\":1,\"fingerprint\":\"other\"}\n").unwrap();
    assert!(refusal(folder.path()).contains("about other data"));
    fs::write(&path, "{\"format\":2,\"fingerprint\":\"other\"}\n").unwrap();
    assert!(refusal(folder.path()).contains("has format 2"));
}

#[test]
fn damaged_and_unfinished_audits_are_refused() {
    let folder = pets();
    let issues = read(folder.path(), "issues.csv");
    fs::write(folder.path().join("issues.csv"), issues.replace("'=dog", "zebra")).unwrap();
    let message = refusal(folder.path());
    assert!(message.contains("issues.csv: line 2: column suggested"), "{message}");
    fs::write(folder.path().join("issues.csv"), issues.replace("\nb,", "\nbb,")).unwrap();
    let message = refusal(folder.path());
    assert!(message.contains("line 2: \"bb\" is not in examples.csv"), "{message}");
    fs::write(folder.path().join("issues.csv"), &issues).unwrap();
    let examples = read(folder.path(), "examples.csv");
    fs::write(folder.path().join("examples.csv"), examples.replace("a,train,1", "b,train,1"))
        .unwrap();
    assert!(refusal(folder.path()).contains("\"b\" occurs twice"));
    fs::write(folder.path().join("examples.csv"), examples.replace("a,train,1", "a,train,9"))
        .unwrap();
    assert!(refusal(folder.path()).contains("class 9 of 3"));
    fs::remove_file(folder.path().join("audit.json")).unwrap();
    assert!(refusal(folder.path()).contains("no finished audit"));
    assert!(refusal(Path::new("/nowhere")).contains("does not exist"));
}

#[test]
fn a_second_reviewer_is_refused_and_a_folder_that_cannot_be_written_to() {
    let folder = pets();
    let review = Session::open(folder.path()).unwrap();
    let message = refusal(folder.path());
    assert!(message.contains("is in use by process"), "{message}");
    drop(review);
    fs::remove_file(folder.path().join("decisions.jsonl")).unwrap();
    fs::remove_file(folder.path().join(".lock")).unwrap();
    // Root may write to read-only folders, but not to a folder as to a file.
    fs::create_dir(folder.path().join(".lock")).unwrap();
    let message = refusal(folder.path());
    assert!(
        message.contains("copy") && message.contains("a directory that you can write to"),
        "{message}"
    );
}

#[test]
fn classes_that_are_on_or_off_are_flipped() {
    let examples: [(&str, &[u32]); 3] = [("a", &[0, 1]), ("b", &[]), ("c", &[1])];
    let folder = saved(&multi(&["cat", "=dog"], &examples, &[1]));
    let mut review = Session::open(folder.path()).unwrap();
    assert_eq!(review.progress().suspects, 3);
    for (issue, decision) in [
        (0, Decision::Accept),
        (1, Decision::Accept),
        (2, Decision::Ambiguous),
        (4, Decision::Accept),
    ] {
        review.decide(issue, decision).unwrap();
    }
    review.write_corrected().unwrap();
    let expected = "id,cat,'=dog\na,1,0\nb,1,1\nc,0,1\n";
    assert_eq!(read(folder.path(), "corrected.csv"), expected);
    assert_eq!(read(folder.path(), "ambiguous.csv"), "id,class,given,suggested\nc,'=dog,on,off\n");
    drop(review);
    let review = Session::open(folder.path()).unwrap();
    assert_eq!(review.decision(1), Some(Decision::Accept));
    assert_eq!(review.decision(4), Some(Decision::Accept));
    let first = read(folder.path(), "decisions.jsonl");
    let expected = r#"{"id":"a","class":"=dog","decision":"accept","label":"off"}"#;
    assert_eq!(first.lines().nth(1), Some(expected));
}

/// What is written is what `data.train.labels` takes.
#[test]
fn corrected_labels_of_digits_are_read_back() {
    let folder = saved(&support::digits());
    let mut review = Session::open(folder.path()).unwrap();
    review.decide(0, Decision::Accept).unwrap();
    review.write_corrected().unwrap();
    let labels = folder.path().join("corrected.csv");
    let sets = ["data.noise=".to_string(), format!("data.train.labels={}", labels.display())];
    let recipe = aleator_run::load("digits-none", &sets, None).unwrap().recipe;
    let set = DataSet::open(&recipe.data, Link::Softmax).unwrap();
    let all = set.train.len() + set.validation.len() + set.test.as_ref().unwrap().len();
    assert_eq!(all, 1797);
}
