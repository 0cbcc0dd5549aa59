//! Decisions, what is left of them after anything, and the labels that follow.

use crate::support;
use std::fs;
use std::path::Path;

use crate::support::{multi, single};
use aleator_data::DataSet;
use aleator_report::audit::Audit;
use aleator_review::{Decision, Filter, Progress, Scope, Session};
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
    // What is ambiguous is not verified.
    assert_eq!(read(folder.path(), "verified.csv"), "id,label\na,'=dog\nb,'=dog\nc,'=dog\n");
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
    assert!(!folder.path().join("verified.csv").exists());
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

/// What somebody has looked at, and no more, is what methods with verified labels take.
#[test]
fn verified_labels_of_digits_are_read_back() {
    let folder = saved(&support::digits());
    let mut review = Session::open(folder.path()).unwrap();
    for issue in 0..30 {
        review.decide(issue, Decision::Accept).unwrap();
    }
    review.accept_all(Filter { scope: Scope::All, pair: Some(0) }).unwrap();
    review.write_corrected().unwrap();
    assert_eq!(read(folder.path(), "verified.csv").lines().count(), 1 + 30);
    let recipe =
        aleator_run::load("digits-none", &["data.noise=".to_string()], None).unwrap().recipe;
    let set = DataSet::open(&recipe.data, Link::Softmax).unwrap();
    let verified = set.verified(folder.path().join("verified.csv").to_str().unwrap()).unwrap();
    let truth = set.train.labels.hard(0, &set.train.ids).unwrap();
    let mut found = 0;
    for (verified, truth) in verified.into_iter().zip(truth) {
        assert!(verified.is_none_or(|class| class == truth));
        found += usize::from(verified.is_some());
    }
    // The rows about examples that are held out are passed over.
    assert!((1..=30).contains(&found), "{found}");
}

/// Twenty labels of two pairs, of which those of the first are suspects.
fn two_pairs() -> tempfile::TempDir {
    let ids: Vec<String> = (0..20).map(|at| format!("e{at:02}")).collect();
    let label = |at: usize| (ids[at].as_str(), (at % 2) as u32, ((at + 1) % 2) as u32, at < 10);
    saved(&single(&["cat", "dog"], &(0..20).map(label).collect::<Vec<_>>()))
}

#[test]
fn all_of_a_pair_are_accepted_and_undone_at_once() {
    let folder = two_pairs();
    let pair = Filter { scope: Scope::Suspects, pair: Some(0) };
    let mut review = Session::open(folder.path()).unwrap();
    review.decide(0, Decision::Keep).unwrap();
    assert_eq!(review.accept_all(pair).unwrap(), 4, "five suspects, of which one is decided");
    assert_eq!(review.accept_all(pair).unwrap(), 0);
    assert_eq!(review.undoes(), 4);
    drop(review);
    let line = r#"{"ids":["e02","e04","e06","e08"],"decision":"accept_all","label":"dog"}"#;
    assert_eq!(read(folder.path(), "decisions.jsonl").lines().nth(2), Some(line));

    let mut review = Session::open(folder.path()).unwrap();
    let accepted = |review: &Session| {
        (0..20).filter(|at| review.decision(*at) == Some(Decision::Accept)).collect::<Vec<_>>()
    };
    assert_eq!(accepted(&review), [2, 4, 6, 8]);
    assert_eq!(review.decision(0), Some(Decision::Keep), "a decision of its own stays");
    // One of them is decided again, and that is undone before the others.
    review.decide(4, Decision::Ambiguous).unwrap();
    assert_eq!(review.undo().unwrap(), Some(4));
    assert_eq!(accepted(&review), [2, 4, 6, 8]);
    assert_eq!(review.undo().unwrap(), Some(2));
    drop(review);
    let review = Session::open(folder.path()).unwrap();
    assert_eq!(review.progress().decided, 1);
    assert_eq!(review.decision(0), Some(Decision::Keep));
}

#[test]
fn a_kill_leaves_all_of_a_batch_or_nothing_of_it() {
    let folder = two_pairs();
    let path = folder.path().join("decisions.jsonl");
    let mut review = Session::open(folder.path()).unwrap();
    review.accept_all(Filter { scope: Scope::All, pair: Some(1) }).unwrap();
    drop(review);
    let whole = fs::read(&path).unwrap();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let review = Session::open(folder.path()).unwrap();
        let expected = if length == whole.len() { 10 } else { 0 };
        assert_eq!(review.progress().corrected, expected, "after {length} bytes");
    }
    let head = String::from_utf8_lossy(&whole).lines().next().unwrap().to_string();
    for (line, words) in [
        (r#"{"decision":"accept_all","label":"dog"}"#, "ids is missing"),
        (r#"{"ids":["e00","zebra"],"decision":"accept_all","label":"dog"}"#, "\"zebra\""),
        (r#"{"ids":["e00"],"decision":"accept_all","label":"zebra"}"#, "does not suit"),
    ] {
        fs::write(&path, format!("{head}\n{line}\n")).unwrap();
        let message = refusal(folder.path());
        assert!(message.contains("line 2: ") && message.contains(words), "{message}");
    }
}

/// Labels in random order give a count; those that were accepted unseen, or surest first, do not.
#[test]
fn the_count_comes_from_labels_that_were_looked_at_in_random_order() {
    let folder = saved(&support::digits());
    let mut review = Session::open(folder.path()).unwrap();
    for issue in 0..40 {
        review.decide(issue, Decision::Accept).unwrap();
    }
    review.accept_all(Filter { scope: Scope::All, pair: Some(0) }).unwrap();
    assert_eq!(review.count(), None);
    assert!(review.write_corrected().unwrap().count.is_none());
    drop(review);

    let mut review = Session::open(folder.path()).unwrap();
    // 257 of the 1,797 labels are wrong: those that are suspected.
    for issue in review.sampling_order().into_iter().take(240) {
        let decision =
            if review.audit().issues[issue].wrong { Decision::Accept } else { Decision::Keep };
        review.decide(issue, decision).unwrap();
    }
    let count = review.count().unwrap();
    assert!(count.sampled >= 240, "{count:?}");
    assert!(count.low <= 257.0 && 257.0 <= count.high && count.high < 500.0, "{count:?}");
    assert_eq!(review.write_corrected().unwrap().count, Some(count));
    let text = read(folder.path(), "review.json");
    assert!(text.contains("\"sampled\"") && text.contains("\"to_halve\""), "{text}");
    drop(review);
    assert_eq!(Session::open(folder.path()).unwrap().count(), Some(count));
}

#[test]
fn probable_suggestions_are_accepted_where_nobody_decides() {
    let folder = pets();
    let mut review = Session::open(folder.path()).unwrap();
    review.decide(1, Decision::Keep).unwrap();
    // Of ranks 0 to 3 the suggestions have 0.9, 0.8, 0.7 and 0.6, the scores 1, 0.75, 0.5, 0.25.
    review.accept_above(0.7);
    let accept = review.write_corrected().unwrap().accept.unwrap();
    assert_eq!((accept.threshold, accept.accepted, accept.pruned), (0.7, 2, 1));
    let corrected = "id,label\n'=d,cat\na,'=dog\nb,'=dog\nc,cat\n";
    assert_eq!(read(folder.path(), "corrected.csv"), corrected);
    assert_eq!(read(folder.path(), "pruned.csv"), "id,label\n'=d,2020\na,'=dog\nc,cat\n");
    let weights = read(folder.path(), "weights.csv");
    let weights: Vec<&str> = weights.lines().collect();
    assert_eq!(weights[0], "id,label,weight");
    assert_eq!((weights[2], weights[3]), ("a,'=dog,1.0", "b,cat,1e-6"), "{weights:?}");
    // The threshold is kept, and later decisions count before it.
    drop(review);
    let mut review = Session::open(folder.path()).unwrap();
    assert!(review.notes()[0].contains("at least 0.7"), "{:?}", review.notes());
    review.decide(0, Decision::Keep).unwrap();
    review.decide(2, Decision::Ambiguous).unwrap();
    let accept = review.write_corrected().unwrap().accept.unwrap();
    assert_eq!((accept.accepted, accept.pruned), (0, 0));
    assert_eq!(read(folder.path(), "corrected.csv"), "id,label\n'=d,2020\na,'=dog\nb,cat\nc,cat\n");
}

#[test]
fn entries_of_rows_are_accepted_one_by_one_and_pruned_as_rows() {
    let examples: [(&str, &[u32]); 3] = [("a", &[0, 1]), ("b", &[]), ("c", &[1])];
    let folder = saved(&multi(&["cat", "dog"], &examples, &[1]));
    let mut review = Session::open(folder.path()).unwrap();
    let entry = |at: usize| {
        let issue = &review.audit().issues[at];
        (issue.id.clone(), issue.suggested, issue.score, issue.suggested_probability)
    };
    let all: Vec<_> = (0..6).map(entry).collect();
    let least = 0.8;
    review.accept_above(least);
    let accept = review.write_corrected().unwrap().accept.unwrap();
    let sure = all.iter().filter(|(.., probability)| *probability >= least).count();
    let rows: std::collections::BTreeSet<&String> =
        all.iter().filter(|(_, _, score, _)| *score >= least).map(|(id, ..)| id).collect();
    assert_eq!((accept.accepted, accept.pruned), (sure, rows.len()), "{all:?}");
    assert!(0 < sure && sure < 6 && rows.len() < 3, "{all:?}");
    assert_eq!(read(folder.path(), "pruned.csv").lines().count(), 1 + 3 - rows.len());
    assert!(!folder.path().join("weights.csv").exists());
}
