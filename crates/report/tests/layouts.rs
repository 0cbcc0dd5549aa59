//! `reports/*.toml`: every file loads, names recipes that exist, and has the paper's numbers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::runs_on_disk::{Made, Place};
use aleator_report::compare::{Layout, LayoutRow, Published, Test, Values, fill, layouts, scores};
use aleator_report::table::{Cell, Table};
use aleator_run::{Document, load, paper_recipes, presets};

/// Read from the paper's tables a second time, by hand, column by column as printed there:
/// mean, standard deviation (0 where none is printed), †.
type Printed = (f64, f64, bool);

const NONE: Printed = (0.0, 0.0, false);

fn once(mean: f64) -> Printed {
    (mean, 0.0, false)
}

fn paper(name: &str) -> Vec<Vec<Printed>> {
    match name {
        // Table 1. Rows of the paper have 90 and 270 epochs side by side.
        "ilsvrc12" => {
            let top1 = [
                [(76.5, 0.22, true), (76.7, 0.13, true)],
                [(78.3, 0.06, true), (78.7, 0.09, true)],
                [(78.5, 0.06, false), (79.3, 0.10, false)],
            ];
            let top5 = [
                [(93.0, 0.16, true), (92.9, 0.12, true)],
                [(94.0, 0.06, true), (94.0, 0.08, true)],
                [(94.3, 0.03, false), (94.5, 0.11, false)],
            ];
            let nll = [
                [(0.98, 0.010, true), (1.08, 0.007, true)],
                [(0.88, 0.003, true), (0.95, 0.008, true)],
                [(0.86, 0.002, false), (0.92, 0.006, false)],
            ];
            let row = |epochs: usize, at: usize| {
                vec![top1[at][epochs], top5[at][epochs], nll[at][epochs]]
            };
            (0..2).flat_map(|epochs| (0..3).map(move |at| row(epochs, at))).collect()
        }
        // Table 2.
        "webvision" => {
            let quoted = |numbers: [f64; 4]| {
                let [a, b, c, d] = numbers.map(|it| if it == 0.0 { NONE } else { once(it) });
                vec![a, b, NONE, c, d, NONE]
            };
            vec![
                quoted([69.1, 86.7, 61.0, 82.0]),
                quoted([72.6, 88.9, 64.2, 84.8]),
                quoted([72.1, 89.2, 64.8, 84.9]),
                quoted([67.5, 0.0, 0.0, 0.0]),
                quoted([74.3, 90.5, 67.5, 87.2]),
                quoted([75.0, 90.6, 67.1, 86.7]),
                [
                    (76.1, 0.07),
                    (91.2, 0.07),
                    (1.03, 0.006),
                    (67.0, 0.08),
                    (86.0, 0.11),
                    (1.49, 0.008),
                ]
                .map(|(mean, std)| (mean, std, true))
                .to_vec(),
                [
                    (76.2, 0.15),
                    (91.4, 0.08),
                    (1.01, 0.002),
                    (67.3, 0.10),
                    (86.1, 0.07),
                    (1.47, 0.004),
                ]
                .map(|(mean, std)| (mean, std, true))
                .to_vec(),
                [
                    (76.6, 0.13),
                    (92.1, 0.09),
                    (0.98, 0.004),
                    (68.6, 0.17),
                    (87.1, 0.13),
                    (1.41, 0.010),
                ]
                .map(|(mean, std)| (mean, std, false))
                .to_vec(),
            ]
        }
        // Table 3: Imagenet-21k, then JFT.
        "imagenet21k-jft" => vec![
            vec![(45.9, 0.14, true), (3.65, 0.010, true)],
            vec![(45.9, 0.06, true), (3.64, 0.003, true)],
            vec![(46.8, 0.04, true), (3.63, 0.002, false)],
            vec![(47.0, 0.08, false), (3.62, 0.005, false)],
            vec![(63.1, 0.22, true), (20.12, 0.090, true)],
            vec![(63.1, 0.03, true), (19.95, 0.022, true)],
            vec![(64.1, 0.07, true), (19.61, 0.030, true)],
            vec![(64.7, 0.06, false), (19.34, 0.026, false)],
        ],
        // Table 6.
        "vtab" => {
            vec![vec![(70.46, 0.5, true)], vec![(71.12, 0.19, false)], vec![(71.34, 0.23, false)]]
        }
        // Table 7.
        "ensembles" => [
            [76.1, 0.943, 0.0392],
            [77.5, 0.877, 0.0305],
            [77.5, 0.898, 0.033],
            [79.5, 0.79, 0.015],
        ]
        .map(|row| row.map(once).to_vec())
        .to_vec(),
        // Table 8.
        "taylor" => [76.7, 78.7, 78.2].map(|mean| vec![once(mean)]).to_vec(),
        // Table 9.
        "samples" => [78.5, 78.6, 79.1, 79.2, 79.3].map(|mean| vec![once(mean)]).to_vec(),
        // Table 10.
        "equal-parameters" => [76.7, 77.1, 79.3].map(|mean| vec![once(mean)]).to_vec(),
        // Table 11.
        "sigmoid" => [(76.7, 0.13), (78.2, 0.16), (79.3, 0.10), (79.35, 0.05)]
            .map(|(mean, std)| vec![(mean, std, false)])
            .to_vec(),
        _ => vec![],
    }
}

fn printed(row: &LayoutRow) -> Vec<Printed> {
    let cell = |cell: &Option<Published>| match cell {
        None => NONE,
        Some(it) => (it.mean.value, it.std.as_ref().map_or(0.0, |std| std.value), it.dagger),
    };
    row.published.iter().map(cell).collect()
}

#[test]
fn every_file_is_inside_the_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reports");
    let stem =
        |entry: fs::DirEntry| entry.path().file_stem().unwrap().to_str().unwrap().to_string();
    let files: BTreeSet<String> =
        fs::read_dir(&folder).unwrap().map(|entry| stem(entry.unwrap())).collect();
    let inside = layouts().unwrap();
    assert_eq!(files, inside.iter().map(|layout| layout.name.clone()).collect());
    for layout in inside {
        let path = folder.join(format!("{}.toml", layout.name));
        assert_eq!(Layout::load(path.to_str().unwrap()).unwrap(), layout);
    }
}

#[test]
fn every_table_has_the_numbers_of_the_paper() {
    let mut tables = BTreeSet::new();
    for layout in layouts().unwrap() {
        let expected = paper(&layout.name);
        assert_eq!(layout.paper.is_some(), !expected.is_empty(), "{}", layout.name);
        let Some(place) = layout.paper else { continue };
        assert!(tables.insert(place.clone()), "{place} stands twice");
        assert_eq!(layout.test, Test::Unpaired, "{}: the paper's test", layout.name);
        let found: Vec<Vec<Printed>> = layout.rows.iter().map(printed).collect();
        assert_eq!(found, expected, "{}", layout.name);
    }
    // All but the two of covariances, 4 and 5.
    let expected = [1, 2, 3, 6, 7, 8, 9, 10, 11].map(|number| format!("Table {number}"));
    assert_eq!(tables, expected.into_iter().collect());
}

/// Five runs with the mean and the standard deviation that were printed.
fn five_runs(&(mean, std, _): &Printed) -> Values {
    let values = if std == 0.0 {
        vec![]
    } else {
        [-2.0, -1.0, 0.0, 1.0, 2.0].map(|at: f64| mean + std * at / 2.5f64.sqrt()).to_vec()
    };
    Values { values, seeds: None }
}

/// So † means here what it means there: worse than the best row, by the test that we take for the
/// paper's.
#[test]
fn the_papers_daggers_follow_from_its_means_and_deviations() {
    let mut compared = 0;
    for layout in layouts().unwrap() {
        // Where nothing is marked, nothing was tested.
        if !layout.rows.iter().flat_map(printed).any(|cell| cell.2) {
            continue;
        }
        for (column, spec) in layout.columns.iter().enumerate() {
            for group in layout.groups() {
                let rows = layout.rows.iter().filter(|row| row.group.as_deref() == group);
                let cells: Vec<Printed> = rows.map(|row| printed(row)[column]).collect();
                let values: Vec<Values> = cells.iter().map(five_runs).collect();
                let found = scores(&values, spec.measure.direction(), Test::Unpaired);
                // The one that is not marked though its digits say so.
                let cells = found.iter().zip(&cells).filter(|(_, cell)| cell.0 != 3.63);
                for (score, cell) in cells {
                    let dagger = score.is_some_and(|score| score.is_significant());
                    assert_eq!(dagger, cell.2, "{}: {cell:?}", layout.name);
                    compared += usize::from(score.is_some());
                }
            }
        }
    }
    assert_eq!(compared, 18 + 18 + 15 + 3);
}

/// What `aleator train RECIPE` calls the folder when nobody says.
fn default_folder(recipe: &str) -> String {
    let open = ["webvision/", "jft/", "ensembles/"];
    let mut sets = vec!["data.train.images=images".to_string()];
    if open.iter().any(|start| recipe.starts_with(start)) {
        sets.push("data.validation.images=others".to_string());
    }
    let resolved = load(recipe, &sets, None).unwrap_or_else(|error| panic!("{recipe}: {error}"));
    let seeds: Vec<String> = resolved.recipe.seeds.iter().map(u64::to_string).collect();
    format!("{}-seed{}", resolved.name, seeds.join("-"))
}

#[test]
fn every_recipe_exists_and_the_papers_runs_stand_where_training_puts_them() {
    let mut used = BTreeSet::new();
    for layout in layouts().unwrap() {
        for row in &layout.rows {
            let what = format!("{}: {}", layout.name, row.name);
            assert_eq!(row.run.is_some(), row.recipe.is_some(), "{what}");
            let (Some(recipe), Some(run)) = (&row.recipe, &row.run) else { continue };
            Document::preset(recipe).unwrap_or_else(|error| panic!("{what}: {error}"));
            used.insert(recipe.clone());
            if layout.paper.is_some() && layout.name != "vtab" {
                let folder = run.strip_suffix("/ensemble").unwrap_or(run);
                assert_eq!(folder, default_folder(recipe), "{what}");
            }
        }
    }
    // Every experiment of the paper has its row; sweeps and small twins repeat them.
    for recipe in paper_recipes() {
        let repeats = recipe.is_sweep() || recipe.is_tasks() || recipe.name.contains("small");
        assert!(repeats || used.contains(recipe.name), "{} is in no table", recipe.name);
    }
    assert!(presets().iter().any(|preset| used.contains(preset.name)));
}

fn row<'a>(table: &'a Table, section: usize, name: &str) -> &'a [Cell] {
    &table.sections[section].rows.iter().find(|row| row.name == name).unwrap().cells
}

#[test]
fn runs_stand_beside_the_papers_numbers_and_missing_ones_leave_a_dash() {
    let place = Place::new();
    let layout = Layout::load("ilsvrc12").unwrap();
    let empty = fill(&layout, &place.path("runs")).unwrap();
    let headings: Vec<&str> = empty.columns.iter().map(|it| it.heading.as_str()).collect();
    let expected = ["top-1", "paper: top-1", "top-5", "paper: top-5", "NLL", "paper: NLL"];
    assert_eq!(headings, expected);
    assert!(matches!(row(&empty, 1, "Het. Full")[..2], [Cell::Missing, Cell::Published(_)]));
    assert!(empty.notes[0].starts_with("No runs of this table in"), "{:?}", empty.notes);

    place.seeds("runs/ilsvrc12-none-seed0-1-2-3-4", &[(0.76, 1.0), (0.77, 1.1)]);
    place.seeds("runs/ilsvrc12-full-seed0-1-2-3-4", &[(0.79, 0.9), (0.80, 0.8)]);
    place.seeds("runs/ilsvrc12-diagonal-seed0-1-2-3-4", &[(0.78, 0.9), (0.80, 0.8)]);
    fs::remove_file(place.path("runs/ilsvrc12-diagonal-seed0-1-2-3-4/seed-1/evaluation.json"))
        .unwrap();
    let table = fill(&layout, &place.path("runs")).unwrap();
    let Cell::Score(full) = row(&table, 1, "Het. Full")[0] else { panic!() };
    let Cell::Score(none) = row(&table, 1, "Homoscedastic")[0] else { panic!() };
    assert!(full.best && !none.best);
    assert!(none.against_best.is_some_and(|against| !against.paired));
    assert_eq!(row(&table, 1, "Het. Diag")[0], Cell::Missing);
    assert_eq!(row(&table, 0, "Het. Full")[0], Cell::Missing);
    let notes = table.notes.join("\n");
    assert!(notes.contains("Het. Diag: ") && notes.contains("aleator resume"), "{notes}");
    assert!(notes.contains("of ilsvrc12/none-90, ilsvrc12/diagonal-90"), "{notes}");
    assert!(notes.contains("unpaired two-tailed"), "{notes}");
}

#[test]
fn transfers_ensembles_and_the_demo_fill_their_tables() {
    let place = Place::new();
    place.seeds("ensembles-none-seed0-1-2-3", &[(0.7, 1.0), (0.72, 0.9)]);
    let mut made = Made::new(0, 0.8, 0.5);
    made.evaluation.weights = "ensemble".to_string();
    made.write(&place.path("ensembles-none-seed0-1-2-3/ensemble"));
    let table = fill(&Layout::load("ensembles").unwrap(), &place.path("")).unwrap();
    let Cell::Score(single) = row(&table, 0, "Hom. Single Model")[0] else { panic!() };
    let Cell::Score(ensemble) = row(&table, 0, "Hom. Ensemble 4×")[0] else { panic!() };
    assert_eq!((single.runs, ensemble.runs, ensemble.best), (2, 1, true));

    for name in ["none", "full"] {
        place.seeds(&format!("demo/{name}"), &[(0.7, 1.0), (0.72, 0.9)]);
    }
    let table = fill(&Layout::load("digits").unwrap(), &place.path("")).unwrap();
    assert_eq!(table.columns.len(), 4);
    assert_eq!(row(&table, 0, "diagonal")[0], Cell::Missing);
    place.seeds("demo/diagonal/a", &[(0.7, 1.0)]);
    place.seeds("demo/diagonal/b", &[(0.7, 1.0)]);
    let error = fill(&Layout::load("digits").unwrap(), &place.path("")).unwrap_err().to_string();
    assert!(error.contains("demo/diagonal holds several rows"), "{error}");
}

#[test]
fn a_file_of_ones_own_is_checked_key_by_key() {
    let place = Place::new();
    let good = "title = \"Mine\"\ntest = \"paired\"\n[[column]]\nmetric = \"nll\"\nsplit = \
                \"test\"\n[[row]]\nname = \"a\"\nrun = \"a\"\npaper = [\"1.0 ± 0.1\"]\n";
    let path = place.path("mine.toml");
    let load = |text: &str| {
        fs::write(&path, text).unwrap();
        Layout::load(path.to_str().unwrap())
    };
    let layout = load(good).unwrap();
    assert_eq!((layout.name.as_str(), layout.rows[0].published.len()), ("mine", 1));
    for (from, to, words) in [
        ("title", "tilte", "mine.toml:1: unknown key tilte; did you mean title?"),
        ("title = \"Mine\"", "", "mine.toml: title is missing"),
        ("\"Mine\"", "3", "mine.toml:1: title must be a text, found the integer 3"),
        ("\"paired\"", "\"welch\"", "mine.toml:2: test must be one of \"unpaired\", \"paired\""),
        ("metric", "measure", "mine.toml:4: unknown key column[0].measure"),
        ("\"nll\"", "\"nil\"", "column[0].metric must be one of"),
        ("split", "spilt", "column[0].spilt; did you mean column[0].split?"),
        ("\"test\"\n", "\"train\"\n", "column[0].split must be one of"),
        ("name = \"a\"", "nam = \"a\"", "row[0].nam; did you mean row[0].name?"),
        ("name = \"a\"\n", "", "mine.toml: row[0].name is missing"),
        ("run = \"a\"", "run = \"../a\"", "row[0].run must be a directory inside"),
        ("run = \"a\"", "run = \"/a\"", "row[0].run must be a directory inside"),
        ("run = \"a\"", "run = \"\"", "row[0].run must name a file or folder"),
        (
            "\"1.0 ± 0.1\"",
            "\"1.0\", \"2.0\"",
            "row[0].paper must have a text for each of 1 columns",
        ),
        ("\"1.0 ± 0.1\"", "1.0", "row[0].paper[0] must be a text"),
        ("\"1.0 ± 0.1\"", "\"1.0 +- 0.1\"", "row[0].paper[0]: expected a text as"),
        ("[[row]]", "[row]", "row must be tables, each under [[row]]"),
        ("[[column]]", "[[columns]]", "unknown key columns; did you mean column?"),
        ("[[row]]", "[[row", "mine.toml:6:"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let message = load(&text).unwrap_err().to_string();
        assert!(message.contains(words), "{message} lacks {words:?}");
    }
    let message = Layout::load("nowhere.toml").unwrap_err().to_string();
    assert!(message.contains("neither a file nor a table") && message.contains("ilsvrc12"));
    fs::write(&path, [0xff, 0xfe]).unwrap();
    let message = Layout::load(path.to_str().unwrap()).unwrap_err().to_string();
    assert!(message.contains("mine.toml"), "{message}");
}
