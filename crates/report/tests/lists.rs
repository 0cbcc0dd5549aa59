//! Near duplicates, outliers and ambiguous labels, on data that are made for it.

use std::path::PathBuf;

use aleator_report::audit::{
    Answer, Audit, AuditInput, AuditLabels, AuditSettings, ModelOutput, judge,
};

use crate::audit_support::uniform;
use crate::support::plain;

/// Rows of features, all of one width.
type Rows = Vec<Vec<f32>>;

/// A stream of numbers.
struct Random {
    seed: u64,
    drawn: usize,
}

impl Random {
    fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    fn uniform(&mut self) -> f64 {
        self.drawn += 1;
        uniform(self.seed, self.drawn, 0)
    }

    /// A standard Normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform().max(1e-12), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    fn normals(&mut self, width: usize, scale: f64) -> Vec<f32> {
        (0..width).map(|_| (scale * self.normal()) as f32).collect()
    }

    /// Student's t with three degrees of freedom.
    fn heavy(&mut self) -> f64 {
        let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / (squares / 3.0).sqrt()
    }

    /// Normal clusters around `classes` centres.
    fn clusters(&mut self, examples: usize, width: usize, classes: usize) -> Rows {
        let centres: Rows = (0..classes).map(|_| self.normals(width, 4.0)).collect();
        let row = |at: usize| {
            let noise = self.normals(width, 1.0);
            noise.iter().zip(&centres[at % classes]).map(|(a, b)| a + b).collect()
        };
        (0..examples).map(row).collect()
    }

    /// Rows that vary in few directions, as embeddings and images do.
    fn low_rank(&mut self, examples: usize, width: usize, rank: usize) -> Rows {
        let basis: Rows = (0..rank).map(|_| self.normals(width, 1.0)).collect();
        let row = |_| {
            let factors = self.normals(rank, 1.0);
            let noise = self.normals(width, 0.3);
            let at = |column: usize| {
                let sum: f32 = factors.iter().zip(&basis).map(|(a, row)| a * row[column]).sum();
                sum + noise[column]
            };
            (0..width).map(at).collect()
        };
        (0..examples).map(row).collect()
    }
}

/// An audit of examples with these labels whose features are compared.
fn compared(rows: &Rows, labels: Vec<u32>) -> Audit {
    let log_probs = ModelOutput::LogProbs(vec![0.5f32.ln(); 2 * labels.len()]);
    let names = vec!["=cat".to_string(), "dog".to_string()];
    let paths = (0..labels.len()).map(|at| PathBuf::from(format!("/gone/{at}.png"))).collect();
    let labels = AuditLabels::Single(labels);
    let input = AuditInput { paths: Some(paths), ..AuditInput::new(names, labels, log_probs) };
    let mut audit = judge(input, &AuditSettings::STANDARD, &mut |_| {}).unwrap().audit;
    audit.compare_features(&rows.concat(), rows[0].len(), "as they are").unwrap();
    audit
}

fn alternating(rows: &Rows) -> Audit {
    compared(rows, (0..rows.len() as u32).map(|at| at % 2).collect())
}

fn ids(audit: &Audit) -> Vec<usize> {
    audit.lists.outliers.iter().map(|it| it.id.parse().unwrap()).collect()
}

#[test]
fn copies_are_grouped_and_those_with_different_labels_come_first() {
    let mut random = Random::new(1);
    let mut rows = random.low_rank(600, 40, 8);
    let mut labels: Vec<u32> = (0..600).map(|at| at % 2).collect();
    // 10 and 11 are one example with two labels, 20 and 22 with one; 30, 31 and 32 almost one.
    (rows[11], rows[22]) = (rows[10].clone(), rows[20].clone());
    for at in [31, 32] {
        let noise = random.normals(40, 0.01);
        rows[at] = rows[30].iter().zip(noise).map(|(a, b)| a + b).collect();
    }
    labels[0] = 1;
    let audit = compared(&rows, labels);
    let found = &audit.lists.near_duplicates;
    let brief: Vec<(usize, &str, bool)> =
        found.iter().map(|it| (it.group, it.id.as_str(), it.labels_differ)).collect();
    assert_eq!(
        brief,
        [
            (1, "10", true),
            (1, "11", true),
            (2, "30", true),
            (2, "31", true),
            (2, "32", true),
            (3, "20", false),
            (3, "22", false)
        ]
    );
    assert_eq!(audit.lists.duplicate_groups(), (3, 2));
    assert_eq!(found[0].distance, 0.0);
    assert!(found[2].distance > 0.0 && found[2].distance < 0.1, "{}", found[2].distance);
    assert_eq!((found[0].label.as_str(), found[1].label.as_str()), ("=cat", "dog"));
    assert_eq!(found[0].path, Some(PathBuf::from("/gone/10.png")));
}

#[test]
fn examples_that_are_near_by_chance_are_no_duplicates() {
    let mut random = Random::new(2);
    let heavy: Rows = (0..800).map(|_| (0..10).map(|_| random.heavy() as f32).collect()).collect();
    let flat: Rows = (0..800).map(|_| vec![random.uniform() as f32]).collect();
    for rows in [
        random.clusters(800, 2, 4),
        random.clusters(800, 10, 4),
        random.clusters(800, 100, 4),
        random.low_rank(800, 60, 6),
        heavy,
        flat,
    ] {
        let audit = alternating(&rows);
        let found = audit.lists.near_duplicates.len();
        assert!(found <= 2, "{found} of {} dimensions", rows[0].len());
        let dimension = audit.lists.comparison.unwrap().dimension.unwrap();
        assert!(dimension < 1.1 * rows[0].len() as f64, "{dimension} of {}", rows[0].len());
    }
}

#[test]
fn near_copies_of_a_fifth_of_all_examples_are_found() {
    let mut random = Random::new(3);
    let mut rows = random.low_rank(1000, 40, 10);
    for at in 0..100 {
        let noise = random.normals(40, 0.02);
        rows[at + 100] = rows[at].iter().zip(noise).map(|(a, b)| a + b).collect();
    }
    let audit = alternating(&rows);
    let found = &audit.lists.near_duplicates;
    assert!(found.len() >= 196, "{}", found.len());
    assert!(found.iter().all(|it| it.id.parse::<usize>().unwrap() < 200));
}

#[test]
fn plain_data_have_few_outliers() {
    let mut random = Random::new(4);
    let cases = [
        ("one cluster in a plane", random.clusters(2000, 2, 1), 8),
        ("clusters in a plane", random.clusters(2000, 2, 5), 8),
        ("ten dimensions", random.clusters(2000, 10, 5), 1),
        ("a hundred dimensions", random.clusters(1000, 100, 5), 1),
        ("low rank", random.low_rank(1000, 60, 6), 2),
    ];
    for (name, rows, most) in cases {
        let found = alternating(&rows).lists.outliers.len();
        assert!(found <= most, "{name}: {found}");
    }
}

#[test]
fn heavy_tails_have_few_outliers() {
    let mut random = Random::new(5);
    let rows: Rows = (0..2000).map(|_| (0..10).map(|_| random.heavy() as f32).collect()).collect();
    let found = alternating(&rows).lists.outliers.len();
    assert!(found <= 20, "{found}");
}

/// Replaces one in a hundred rows; precision and recall of the list.
fn planted(mut rows: Rows, mut foreign: impl FnMut(&[f32]) -> Vec<f32>) -> (f64, f64) {
    let planted: Vec<usize> = (0..rows.len()).step_by(100).collect();
    planted.iter().for_each(|at| rows[*at] = foreign(&rows[*at]));
    let found = ids(&alternating(&rows));
    let right = found.iter().filter(|at| planted.contains(at)).count() as f64;
    (right / found.len() as f64, right / planted.len() as f64)
}

#[test]
fn planted_outliers_are_found_in_data_of_four_kinds() {
    let mut random = Random::new(6);
    let mut other = Random::new(7);
    let mut images = random.low_rank(1500, 64, 6);
    let usual = random.normals(64, 3.0);
    for row in &mut images {
        row.iter_mut().zip(&usual).for_each(|(value, usual)| *value += usual);
    }
    let cases = [
        ("noise among clusters", planted(random.clusters(2000, 10, 5), |_| other.normals(10, 8.0))),
        (
            "permuted features of low rank",
            planted(images, |row| {
                let mut row = row.to_vec();
                (1..row.len()).rev().for_each(|at| {
                    let other = (other.uniform() * (at + 1) as f64) as usize;
                    row.swap(at, other);
                });
                row
            }),
        ),
        (
            "jitter in many dimensions",
            planted(random.low_rank(1500, 200, 20), |row| {
                let noise = other.normals(200, 6.0);
                row.iter().zip(noise).map(|(a, b)| a + b).collect()
            }),
        ),
        (
            "far points among dense and sparse clusters",
            planted(
                {
                    let mut rows = random.clusters(2000, 8, 4);
                    // Every fourth example, a class, varies ten times less.
                    let centre = rows[1].clone();
                    for row in rows.iter_mut().skip(1).step_by(4) {
                        row.iter_mut().zip(&centre).for_each(|(a, b)| *a = b + 0.1 * (*a - b));
                    }
                    rows
                },
                |_| other.normals(8, 20.0),
            ),
        ),
    ];
    for (name, (precision, recall)) in cases {
        assert!(precision >= 0.85 && recall >= 0.85, "{name}: {precision:.2} {recall:.2}");
    }
}

#[test]
fn data_without_any_scale_break_nothing() {
    let mut random = Random::new(8);
    let equal = vec![vec![1.5f32; 3]; 300];
    let binary: Rows =
        (0..300).map(|_| (0..4).map(|_| f32::from(random.uniform() < 0.5)).collect()).collect();
    let mut lonely = equal.clone();
    lonely[7] = vec![9.0; 3];
    for (rows, groups, outliers) in [
        (vec![vec![0.5]], 0, 0),
        (vec![vec![0.5], vec![0.5]], 1, 0),
        (vec![vec![0.0], vec![-0.0], vec![1.0]], 1, 0),
        (equal, 1, 0),
        (binary, 16, 0),
        (lonely, 1, 0),
    ] {
        let lists = alternating(&rows).lists;
        assert_eq!((lists.duplicate_groups().0, lists.outliers.len()), (groups, outliers));
    }
}

#[test]
fn features_that_do_not_fit_are_refused() {
    let mut audit = alternating(&Random::new(9).clusters(30, 2, 2));
    let before = audit.clone();
    let mut refusal = |features: &[f32], width| {
        audit.compare_features(features, width, "").unwrap_err().to_string()
    };
    assert!(refusal(&[0.0; 59], 2).contains("[30, 2]"));
    assert!(refusal(&[], 0).contains("D > 0"));
    let mut features = vec![0.0; 60];
    features[13] = f32::NAN;
    assert!(refusal(&features, 2).contains("row 6, column 1"));
    features[13] = 1e30;
    assert!(refusal(&features, 2).contains("row 6, column 1"));
    assert_eq!(audit, before);
}

#[test]
fn ambiguous_labels_are_close_and_not_listed_as_wrong() {
    let mut audit = alternating(&Random::new(10).clusters(6, 2, 2));
    let probabilities =
        [(0.1, 0.9), (0.48, 0.52), (0.5, 0.25), (0.5, 0.24), (0.0, 0.0), (0.3, 0.3)];
    for (issue, (given, suggested)) in audit.issues.iter_mut().zip(probabilities) {
        (issue.given_probability, issue.suggested_probability) = (given, suggested);
        issue.wrong = given == 0.48;
    }
    let found: Vec<f64> = audit.ambiguous().iter().map(|it| it.given_probability).collect();
    assert_eq!(found, [0.3, 0.5]);
    audit.issues[1].wrong = false;
    assert_eq!(audit.ambiguous()[1].given_probability, 0.48);
}

#[test]
fn lists_are_written_read_back_and_shown() {
    let mut random = Random::new(11);
    let mut rows = random.clusters(400, 6, 2);
    rows[1] = rows[0].clone();
    rows[2] = random.normals(6, 60.0);
    let mut audit = alternating(&rows);
    audit.issues[0].given_probability = 0.4;
    audit.issues[0].suggested_probability = 0.5;
    (audit.issues[0].wrong, audit.issues[0].given) = (false, Answer::Class(0));
    let folder = tempfile::tempdir().unwrap();
    audit.save(folder.path()).unwrap();
    assert_eq!(Audit::load(folder.path()).unwrap().lists, audit.lists);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("near_duplicates.csv").starts_with(
        "group,id,path,label,labels_differ,distance\n1,0,/gone/0.png,'=cat,yes,0.0\n1,1,"
    ));
    assert!(read("outliers.csv").starts_with("id,path,label,distance_ratio\n2,/gone/2.png,'=cat,"));
    assert!(read("ambiguous_examples.csv").lines().count() > 1);
    assert!(read("neighbours.json").contains("\"scale\": \"as they are\""));
    let dirs = [folder.path().to_path_buf()];
    let html = plain(&dirs).html;
    for (id, words) in [
        ("near-duplicates", "identical features"),
        ("outliers", "times as far as usual"),
        ("ambiguous-labels", "not among the suspects"),
    ] {
        assert!(html.contains(&format!("id=\"{id}\"")) && html.contains(words), "{id}: {words}");
    }
}

#[test]
fn an_audit_without_features_has_no_lists_of_them() {
    let audit = alternating(&Random::new(12).clusters(30, 2, 2));
    let audit = Audit { lists: Default::default(), ..audit };
    let folder = tempfile::tempdir().unwrap();
    audit.save(folder.path()).unwrap();
    for name in ["near_duplicates.csv", "outliers.csv", "neighbours.json"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
    assert!(folder.path().join("ambiguous_examples.csv").exists());
    let dirs = [folder.path().to_path_buf()];
    let html = plain(&dirs).html;
    assert!(!html.contains("near-duplicates"));
}
