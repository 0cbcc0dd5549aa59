//! Finished runs, groups and audits as every reader of them opens them.

use std::fs;
use std::path::Path;

use aleator_run::{
    CreateRun, EvaluatedRun, ExampleRow, FORMAT, Field, GroupFile, GroupKind, GroupMember, Link,
    Noise, Predictions, RunDir, RunError, RunInfo, RunTree, Split, SplitCounts, SplitReader,
};

fn create(path: &Path) -> RunDir {
    let info = RunInfo {
        format: FORMAT,
        version: "0.1.0".to_string(),
        seed: 7,
        fingerprint: "5d41402a".to_string(),
        link: Link::Softmax,
        likelihood: Default::default(),
        noise: Noise::None,
        class_names: ["cat", "dog"].map(String::from).to_vec(),
        input_shape: vec![4],
        feature_names: None,
        examples: SplitCounts { train: 0, validation: 0, test: 3 },
        set_aside: vec![],
        pretrained: None,
    };
    RunDir::create(path, &CreateRun { recipe: String::new(), info }).unwrap()
}

fn write_test_split(run: &RunDir, labels: &[u32], log_probs: Vec<f32>) {
    let row = |(at, label): (usize, &u32)| ExampleRow {
        id: at.to_string(),
        split: Split::Test,
        label: Some(vec![*label]),
        clean_label: None,
    };
    run.write_examples(labels.iter().enumerate().map(row)).unwrap();
    let predictions = Predictions {
        classes: 2,
        rank: 0,
        temperature: 1.0,
        mean: log_probs.clone(),
        log_probs,
        log_probs_off: None,
        diag_scale: None,
        loadings: None,
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: None,
    };
    predictions.save(&run.predictions_path(Split::Test)).unwrap();
}

#[track_caller]
fn refused<T>(result: Result<T, RunError>, words: &[&str]) {
    let message = result.err().expect("a refusal").to_string();
    for word in words {
        assert!(message.contains(word), "{message} lacks {word:?}");
    }
}

#[test]
fn a_directory_is_an_audit_a_group_a_run_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    assert!(RunTree::open(dir).unwrap().is_none());
    create(&dir.join("fold-0"));
    assert!(matches!(RunTree::open(&dir.join("fold-0")), Ok(Some(RunTree::Run(_)))));
    let member =
        |name: &str| GroupMember { name: name.to_string(), seed: 0, recipe: String::new() };
    GroupFile::new(GroupKind::Audit, vec![member("fold-0"), member("fold-1")]).save(dir).unwrap();
    let Some(RunTree::Group(group)) = RunTree::open(dir).unwrap() else { panic!("a group") };
    let resume = format!("resume with `aleator resume {}`", dir.display());
    for member in &group.members {
        refused(group.open(member), &[&member.name, "no evaluation.json", &resume]);
    }
    refused(Err::<(), _>(group.unfinished()), &["no audit.json", &resume]);
    fs::write(dir.join("audit.json"), "{}").unwrap();
    assert!(matches!(RunTree::open(dir), Ok(Some(RunTree::Audit(_)))));
}

#[test]
fn a_run_is_finished_when_it_has_an_evaluation_of_this_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    refused(EvaluatedRun::open(&path), &["does not exist"]);
    let run = create(&path);
    let resume = format!("aleator resume {}", path.display());
    refused(EvaluatedRun::open(&path), &["is not finished", &resume]);
    let summary = serde_json::json!({
        "examples": 1, "top1": 1.0, "nll": 0.5, "brier": 0.1, "ece": 0.1, "per_class": [],
        "reliability": [],
    });
    let evaluation = |format: u32| {
        serde_json::json!({
            "format": format, "weights": "last", "class_names": ["cat", "dog"],
            "validation": summary,
        })
    };
    run.write_json("evaluation.json", &evaluation(99)).unwrap();
    refused(EvaluatedRun::open(&path), &["evaluation.json", "format 99", "expected 1"]);
    run.write_json("evaluation.json", &evaluation(1)).unwrap();
    assert_eq!(EvaluatedRun::open(&path).unwrap().evaluation.validation.given.nll, 0.5);
    let mut with_other = evaluation(1);
    for (other, words) in [
        (serde_json::json!({"weights": "best", "step": 4}), None),
        (serde_json::json!({"weights": "last", "step": 4}), Some("must be \"best\"")),
        (
            serde_json::json!({"weights": "best", "step": 4, "scores": {"validation": {
                "examples": 1, "top1": 7.0, "nll": 0.5, "brier": 0.1, "ece": 0.1,
                "per_class": [], "reliability": [],
            }}}),
            Some("other_weights.scores.validation: top1 must be from 0 to 1, found 7"),
        ),
    ] {
        with_other["other_weights"] = other;
        run.write_json("evaluation.json", &with_other).unwrap();
        match words {
            None => assert!(EvaluatedRun::open(&path).is_ok()),
            Some(words) => refused(EvaluatedRun::open(&path), &["evaluation.json", words]),
        }
    }
}

#[test]
fn the_two_files_of_a_split_must_agree() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(&folder.path().join("run"));
    refused(SplitReader::open(&run, Split::Test), &["no predictions of the test split"]);
    write_test_split(&run, &[0, 1], vec![-0.5; 6]);
    refused(SplitReader::open(&run, Split::Test), &["holds 3 examples", "the run has 2 of 2"]);
    write_test_split(&run, &[0, 1, 2], vec![-0.5; 6]);
    refused(SplitReader::open(&run, Split::Test), &["example \"2\" has class 2", "below 2"]);
}

#[test]
fn a_split_is_read_in_pieces_of_finite_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(&folder.path().join("run"));
    write_test_split(&run, &[0, 1, 1], vec![-0.5, -1.0, -1.5, -2.0, f32::NEG_INFINITY, 0.0]);
    let mut reader = SplitReader::open(&run, Split::Test).unwrap();
    assert_eq!(reader.examples[2].id, "2");
    assert_eq!(reader.pieces(2, 2).collect::<Vec<_>>(), [0..2, 2..3]);
    assert_eq!(reader.read(Field::LogProbs, 1..3).unwrap()[2], f32::NEG_INFINITY);
    assert_eq!(reader.read(Field::Mean, 0..2).unwrap(), [-0.5, -1.0, -1.5, -2.0]);
    refused(reader.read(Field::Mean, 1..3), &["\"mean\": row 2", "not a finite number"]);
    refused(reader.read(Field::DiagScale, 0..1), &["\"diag_scale\" is missing"]);
}
