//! Links, pipes and leftovers in directories that somebody else may have made.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::{entries, refused};
use aleator_run::{
    AtomicFolder, CsvFile, EventFile, GroupFile, GroupKind, GroupMember, MetricsLog, RunError,
    RunTree, check_own_folder, create_own_folder, lock_folder, open_file, read_json,
    remove_leftovers, write_file,
};
use tempfile::TempDir;

const LINK: &str = "symbolic link";

/// A folder with an empty folder `run`, and beside it the file and the folder of somebody else.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("run")).unwrap();
    fs::create_dir(place.path().join("theirs")).unwrap();
    fs::write(place.path().join("theirs/.tmp-keep"), "precious").unwrap();
    fs::write(place.path().join("precious"), "precious").unwrap();
    place
}

/// Nothing of somebody else was touched.
#[track_caller]
fn assert_untouched(place: &TempDir) {
    assert_eq!(fs::read_to_string(place.path().join("precious")).unwrap(), "precious");
    assert_eq!(entries(&place.path().join("theirs")), [".tmp-keep"]);
}

#[test]
fn files_that_stay_open_are_not_opened_through_a_link() {
    let place = place();
    for name in [".lock", "metrics.jsonl", "events"] {
        let path = place.path().join("run").join(name);
        for target in ["../precious", "../not-there"] {
            symlink(target, &path).unwrap();
            let result = match name {
                ".lock" => lock_folder(&place.path().join("run")).map(drop),
                "events" => EventFile::create(&path, 0.0).map(drop),
                _ => MetricsLog::create(&path).map(drop),
            };
            refused(result, &[name, LINK]);
            refused(MetricsLog::open_at(&path, 0), &[name, LINK]);
            fs::remove_file(&path).unwrap();
        }
    }
    assert_untouched(&place);
    assert_eq!(entries(place.path()), ["precious", "run", "theirs"]);
}

#[test]
fn a_file_takes_the_place_of_a_link_and_not_of_what_the_link_leads_to() {
    let place = place();
    let path = place.path().join("run/evaluation.json");
    for write in [
        |path: &Path| write_file(path, b"{}"),
        |path: &Path| CsvFile::write::<RunError>(path, &["id"], |_| Ok(())),
    ] {
        symlink("../precious", &path).unwrap();
        write(&path).unwrap();
        assert!(!path.is_symlink());
        fs::remove_file(&path).unwrap();
    }
    let path = place.path().join("run/step-1");
    symlink("../theirs", &path).unwrap();
    AtomicFolder::create(&path).unwrap().commit().unwrap();
    assert!(path.is_dir() && !path.is_symlink());
    assert_untouched(&place);
}

#[test]
fn a_folder_of_ours_is_no_link_nor_below_one() {
    let place = place();
    let run = place.path().join("run");
    symlink("../theirs", run.join("figures")).unwrap();
    for inside in ["figures", "figures/below"] {
        refused(check_own_folder(&run, inside), &["figures", LINK, "directory"]);
        refused(create_own_folder(&run, inside), &[LINK]);
    }
    fs::write(run.join("file"), "").unwrap();
    refused(check_own_folder(&run, "file"), &["it is a file; a directory was expected"]);
    check_own_folder(&run, "not/there").unwrap();
    assert!(create_own_folder(&run, "a/b").unwrap().is_dir());
    // The directory that a user names may be a link.
    symlink("run", place.path().join("named")).unwrap();
    create_own_folder(&place.path().join("named"), "c").unwrap();
    drop(lock_folder(&place.path().join("named")).unwrap());
    assert_untouched(&place);
}

#[test]
fn who_locks_a_folder_removes_leftovers_and_follows_none_of_them() {
    let place = place();
    let run = place.path().join("run");
    symlink("../theirs", run.join(".tmp-1-0-report.html")).unwrap();
    symlink("../theirs", run.join(".old-checkpoints")).unwrap();
    fs::create_dir_all(run.join(".old-step-3/deep")).unwrap();
    fs::write(run.join(".tmp-1-1-group.json"), "{").unwrap();
    let _lock = lock_folder(&run).unwrap();
    assert_eq!(entries(&run), [".lock", "step-3"], "what was replaced is back, if it is no link");
    assert_untouched(&place);
    // Who is refused removes nothing.
    fs::write(run.join(".tmp-2-0-x"), "").unwrap();
    assert!(lock_folder(&run).is_err());
    assert_eq!(entries(&run), [".lock", ".tmp-2-0-x", "step-3"]);
    remove_leftovers(&run).unwrap();
    assert_eq!(entries(&run), [".lock", "step-3"]);
}

#[test]
fn members_of_a_group_are_inside_it() {
    let place = place();
    let dir = place.path().join("run");
    let member = |name: &str| GroupMember { name: name.into(), seed: 0, recipe: String::new() };
    GroupFile::new(GroupKind::Sweep, vec![member("rank=1/seed-0")]).save(&dir).unwrap();
    GroupFile::load(&dir).unwrap();
    symlink("../theirs", dir.join("rank=1")).unwrap();
    refused(GroupFile::load(&dir), &["rank=1", LINK]);
    refused(RunTree::open(&dir), &[LINK]);
    assert_untouched(&place);
}

#[test]
fn pipes_sockets_and_devices_are_refused_at_once() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("pipe.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let socket = place.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    symlink(&pipe, place.path().join("link")).unwrap();
    let link = place.path().join("link");
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let message = |path: &Path| open_file(path).unwrap_err().to_string();
        let json = read_json::<String>(&pipe).unwrap_err().to_string();
        let own = MetricsLog::create(&pipe).unwrap_err().to_string();
        let opened = [&pipe, &link, &socket, Path::new("/dev/zero")].map(message);
        done.send((json, own, opened)).unwrap();
    });
    let (json, own, opened) = wait.recv_timeout(Duration::from_secs(20)).expect("it waits");
    for message in [json, own] {
        assert!(message.contains("pipe.json: it is a named pipe; a file was"), "{message}");
    }
    let found = ["a named pipe", "a named pipe", "a socket", "a device"];
    assert_eq!(opened, found.map(|found| format!("it is {found}; a file was expected")));
}
