//! `decisions.jsonl` in the hands of other programs.

use std::fs;
use std::path::Path;

use aleator_review::{Decision, Session};
use serde_json::json;
use tempfile::TempDir;

use crate::server::{pets, suspects};
use crate::support::single;

const JOURNAL: &str = "decisions.jsonl";
const SAVED: &str = "decisions-saved-1.jsonl";

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A review of three labels, the first of which is decided.
fn begun() -> (TempDir, Session) {
    let folder = tempfile::tempdir().unwrap();
    let labels = [("a", 0, 1, true), ("b", 1, 0, true), ("c", 0, 1, true)];
    single(&["cat", "dog"], &labels).save(folder.path()).unwrap();
    let mut review = Session::open(folder.path()).unwrap();
    review.decide(0, Decision::Accept).unwrap();
    (folder, review)
}

/// The next decision is refused, nothing is decided by it, and all before it are in a file.
fn assert_saved(dir: &Path, review: &mut Session, confirmed: &str) {
    let message = review.decide(1, Decision::Keep).unwrap_err().to_string();
    for words in [JOURNAL, "nothing more is decided", SAVED, "Ctrl-C"] {
        assert!(message.contains(words), "{words:?} is not in {message}");
    }
    assert_eq!((review.decision(0), review.decision(1)), (Some(Decision::Accept), None));
    assert_eq!(read(dir, SAVED), confirmed);
    let again = review.decide(1, Decision::Keep).unwrap_err().to_string();
    assert_eq!(again, message, "saved once");
    assert_eq!(review.keep_decisions().unwrap_err().to_string(), message);
}

#[test]
fn a_removed_file_comes_back_with_the_next_decision_and_at_the_end() {
    let (folder, mut review) = begun();
    let journal = folder.path().join(JOURNAL);
    fs::remove_file(&journal).unwrap();
    review.decide(1, Decision::Keep).unwrap();
    let text = read(folder.path(), JOURNAL);
    assert_eq!(text.lines().count(), 3, "{text}");
    fs::remove_file(&journal).unwrap();
    review.keep_decisions().unwrap();
    drop(review);
    assert_eq!(read(folder.path(), JOURNAL), text);
    let review = Session::open(folder.path()).unwrap();
    assert_eq!(review.decision(0), Some(Decision::Accept));
    assert_eq!(review.decision(1), Some(Decision::Keep));
}

#[test]
fn a_file_that_was_replaced_by_another_is_left_alone_and_the_decisions_are_saved() {
    let (folder, mut review) = begun();
    let confirmed = read(folder.path(), JOURNAL);
    let other = confirmed.lines().next().unwrap().to_string() + "\n";
    for change in ["replaced", "cut", "longer"] {
        let text = if change == "longer" { confirmed.repeat(2) } else { other.clone() };
        if change == "replaced" {
            fs::remove_file(folder.path().join(JOURNAL)).unwrap();
        }
        fs::write(folder.path().join(JOURNAL), &text).unwrap();
        assert_saved(folder.path(), &mut review, &confirmed);
        assert_eq!(read(folder.path(), JOURNAL), text, "{change}");
    }
    // As the message says.
    fs::rename(folder.path().join(SAVED), folder.path().join(JOURNAL)).unwrap();
    review.decide(1, Decision::Keep).unwrap();
    drop(review);
    assert_eq!(Session::open(folder.path()).unwrap().progress().decided, 2);
}

#[test]
fn a_file_that_was_replaced_by_its_copy_is_continued() {
    let (folder, mut review) = begun();
    let (journal, copy) = (folder.path().join(JOURNAL), folder.path().join("copy"));
    fs::copy(&journal, &copy).unwrap();
    fs::rename(&copy, &journal).unwrap();
    review.decide(1, Decision::Keep).unwrap();
    assert_eq!(read(folder.path(), JOURNAL).lines().count(), 3);
}

#[test]
fn a_name_that_is_taken_is_not_overwritten_by_saved_decisions() {
    let (folder, mut review) = begun();
    fs::write(folder.path().join(SAVED), "of an earlier accident").unwrap();
    fs::write(folder.path().join(JOURNAL), "").unwrap();
    let message = review.decide(1, Decision::Keep).unwrap_err().to_string();
    assert!(message.contains("decisions-saved-2.jsonl"), "{message}");
    assert_eq!(read(folder.path(), SAVED), "of an earlier accident");
    assert_eq!(read(folder.path(), "decisions-saved-2.jsonl").lines().count(), 2);
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_the_file_is_not_followed() {
    let (folder, mut review) = begun();
    let confirmed = read(folder.path(), JOURNAL);
    let target = folder.path().join("elsewhere");
    fs::write(&target, &confirmed).unwrap();
    fs::remove_file(folder.path().join(JOURNAL)).unwrap();
    std::os::unix::fs::symlink(&target, folder.path().join(JOURNAL)).unwrap();
    assert_saved(folder.path(), &mut review, &confirmed);
    drop(review);
    let message = Session::open(folder.path()).unwrap_err().to_string();
    assert!(message.contains("decisions.jsonl: it is a symbolic link"), "{message}");
    assert_eq!(read(folder.path(), "elsewhere"), confirmed);
}

#[test]
fn the_page_is_told_and_so_is_the_terminal() {
    let mut running = pets();
    let decide = |issue: usize| {
        let body = json!({"issue": issue, "decision": "keep", "filter": suspects()});
        running.post("/api/decide", &body)
    };
    assert_eq!(decide(0).0, 200);
    let journal = running.path().join(JOURNAL);
    fs::remove_file(&journal).unwrap();
    assert_eq!(decide(1).0, 200);
    let confirmed = read(running.path(), JOURNAL);
    assert_eq!(confirmed.lines().count(), 3, "{confirmed}");

    fs::write(&journal, "something else\n").unwrap();
    let (status, text) = decide(2);
    assert_eq!(status, 500);
    assert!(text.contains("nothing more is decided") && text.contains(SAVED), "{text}");
    assert_eq!(running.get("/api/overview")["suspects"], 3, "it can still be looked at");
    let error = running.ended().unwrap_err().to_string();
    assert!(error.contains(SAVED), "{error}");
    assert_eq!(read(running.path(), SAVED), confirmed);
    assert_eq!(read(running.path(), "corrected.csv").lines().count(), 5);
}
