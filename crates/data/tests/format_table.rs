//! Tables with a column for each feature.

use std::path::Path;

use crate::format_support::*;
use aleator_data::inputs::recognise::{ColumnNames, Recognised, recognise, recognise_columns};
use aleator_data::{DataSet, Inputs, Labels, Sources};
use aleator_run::recipe::{Data, HeldOut, Link};

const WINE: &str = "id,alcohol,ash,colour,grape,split\n\
                    a,12.5,2.1,red,barolo,train\n\
                    b,13.5,2.2,red,barbera,train\n\
                    c,14.5,2.3,white,barolo,test\n\
                    d,15.5,2.4,red,barbera,train\n\
                    e,16.5,2.5,red,barolo,train\n";

fn label(name: &str) -> ColumnNames {
    ColumnNames { label: Some(name.into()), ..ColumnNames::default() }
}

/// The data as training opens them.
fn opened(found: &Recognised) -> DataSet {
    let validation = HeldOut::Fraction { fraction: 0.5, seed: 0 };
    let data = Data { test: found.data.test.clone(), ..Data::of(found.train.clone(), validation) };
    Sources::open(&data, Link::Softmax).unwrap().divide(&data).unwrap()
}

#[test]
fn columns_are_recognised_or_named_and_the_rest_is_said() {
    let folder = Folder::new();
    let path = folder.write("wine.csv", WINE);
    let columns = ColumnNames { ignore: vec!["colour".into()], ..ColumnNames::default() };
    for found in [recognise_columns(&path, &label("grape")), recognise_columns(&path, &columns)] {
        let found = found.unwrap();
        let expected = [
            ("data.train.table.file", "wine.csv"),
            ("data.train.table.label", "grape"),
            ("data.train.table.id", "id"),
            ("data.train.table.split", "split"),
            ("data.train.table.rows", "train"),
            ("data.train.table.ignore", "colour"),
            ("data.test.table.file", "wine.csv"),
            ("data.test.table.label", "grape"),
            ("data.test.table.id", "id"),
            ("data.test.table.split", "split"),
            ("data.test.table.rows", "test"),
            ("data.test.table.ignore", "colour"),
        ];
        assert_found(&found, &folder, &expected);
        for word in ["2 features (alcohol, ash)", "\"grape\"", "ids in column \"id\"", "\"colour\""]
        {
            assert!(found.explanation.contains(word), "{word:?}: {}", found.explanation);
        }
    }
    let words = ["which column holds the labels?", "--label", "colour (words), grape (words)"];
    assert_refused(recognise(&path), &path, &words);
    assert_refused(recognise_columns(&path, &label("grapes")), &path, &["\"grapes\"", "alcohol"]);
}

#[test]
fn rows_of_the_test_split_are_tested_on() {
    let folder = Folder::new();
    let path = folder.write("wine.csv", WINE);
    let set = opened(&recognise_columns(&path, &label("grape")).unwrap());
    assert_eq!(set.class_names, ["barbera", "barolo"]);
    assert_eq!(set.train.inputs.feature_names().unwrap(), ["alcohol", "ash"]);
    let test = set.test.unwrap();
    assert_eq!((test.len(), test.ids.name(0).as_ref()), (1, "c"));
    assert_eq!(test.labels, Labels::Single(vec![1]));
    assert_eq!(all_rows(&test.inputs).unwrap(), [14.5, 2.3]);
    assert_eq!(all_rows(&set.train.inputs).unwrap()[..4], [12.5, 2.1, 13.5, 2.2]);
}

#[test]
fn a_new_table_is_read_by_the_names_of_its_columns() {
    let folder = Folder::new();
    let path = folder.write("new.csv", "ash,more,alcohol,id\n2.5,x,12,q\n2.6,y,13,r\n");
    let features = ["alcohol", "ash"].map(String::from);
    let opened = Inputs::open_columns(&path, &features, Some("id")).unwrap();
    assert_eq!(all_rows(&opened.inputs).unwrap(), [12.0, 2.5, 13.0, 2.6]);
    assert_eq!(opened.ids.unwrap(), ["q", "r"]);
    let features = ["alcohol", "malic", "ash", "hue"].map(String::from);
    let lacking = Inputs::open_columns(&path, &features, None);
    assert_refused(lacking, &path, &["lacks 2 of the 4", "malic, hue"]);
}

#[test]
fn a_test_table_may_have_its_columns_in_another_order() {
    let folder = Folder::new();
    let path = folder.write("train.tsv", "a\tb\tlabel\n1\t2\t0\n3\t4\t1\n5\t6\t0\n7\t8\t1\n");
    folder.write("test.tsv", "label\tb\ta\n1\t20\t10\n");
    for path in [path.as_path(), folder.path()] {
        let test = opened(&recognise(path).unwrap()).test.unwrap();
        assert_eq!(all_rows(&test.inputs).unwrap(), [10.0, 20.0]);
    }
}

#[track_caller]
fn assert_bad(text: &str, words: &[&str]) {
    let folder = Folder::new();
    let path = folder.write("bad.csv", text);
    let result = recognise(&path).and_then(|found| {
        Inputs::open(&found.train.inputs, &aleator_run::recipe::Framing::PLAIN).map(drop)
    });
    assert_refused(result, &path, words);
}

#[test]
fn what_is_missing_or_no_number_is_refused_with_row_and_column() {
    assert_bad("a,b,y\n1,2,0\n3,,1\n", &["row 1", "column \"b\"", "is missing"]);
    assert_bad("a,b,y\n1,NA,0\n3,4,1\n", &["row 0", "column \"b\"", "is missing"]);
    assert_bad("a,b,y\n1,inf,0\n3,4,1\n", &["row 0", "column \"b\"", "not finite"]);
    assert_bad("a,b,y\n1,2,0\n3,4,\n", &["row 1", "\"y\"", "add the label"]);
    assert_bad("a,a,y\n1,2,0\n", &["two columns called \"a\""]);
    assert_bad("a,b,label,class\n1,2,0,0\n", &["label or class", "--label"]);
}

#[test]
fn a_table_without_a_header_is_called_by_position() {
    let folder = Folder::new();
    let path = folder.write("iris.csv", "5.1,3.5,setosa\n6.2,3.1,virginica\n5.0,3.4,setosa\n");
    let found = recognise(&path).unwrap();
    assert_found(
        &found,
        &folder,
        &[("data.train.table.file", "iris.csv"), ("data.train.table.label", "2")],
    );
}

fn parquet_table() -> Vec<u8> {
    let schema = "required double a; required int64 b; required int64 target; \
                  required binary name (UTF8);";
    parquet_columns(schema, None, |columns| {
        columns.doubles(&[0.5, 1.5, 2.5, 3.5]);
        columns.numbers(&[1, 2, 3, 4]);
        columns.numbers(&[7, 9, 7, 9]);
        columns.words(&["p", "q", "r", "s"]);
    })
}

#[test]
fn parquet_files_are_tables_too() {
    let folder = Folder::new();
    let path = folder.write("wide.parquet", parquet_table());
    let found = recognise(&path).unwrap();
    assert!(found.explanation.contains("\"name\" (words"), "{}", found.explanation);
    let set = opened(&found);
    assert_eq!(set.class_names, ["7", "9"]);
    assert_eq!(all_rows(&set.train.inputs).unwrap(), [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]);
}

#[test]
fn a_missing_number_in_parquet_has_its_row_and_column() {
    let folder = Folder::new();
    let schema = "optional double a; required int64 label;";
    let file = parquet_columns(schema, None, |columns| {
        columns.optional_doubles(&[Some(0.5), None]);
        columns.numbers(&[0, 1]);
    });
    let path = folder.write("gap.parquet", file);
    let found = recognise(&path).unwrap();
    let opened = Inputs::open(&found.train.inputs, &aleator_run::recipe::Framing::PLAIN);
    assert_refused(opened, &path, &["row 1", "column \"a\"", "is missing"]);
}

#[test]
fn a_column_of_lists_may_have_any_name_and_ids_and_splits_are_used() {
    let folder = Folder::new();
    let schema = format!(
        "required binary id (UTF8); {} required int64 label; required binary split (UTF8);",
        list_of("vector", "float element;")
    );
    let file = parquet_columns(&schema, None, |columns| {
        columns.words(&["p", "q", "r", "s", "t"]);
        columns.lists(&[&[0.0, 1.0], &[2.0, 3.0], &[4.0, 5.0], &[6.0, 7.0], &[8.0, 9.0]]);
        columns.numbers(&[0, 1, 0, 1, 0]);
        columns.words(&["train", "train", "train", "test", "train"]);
    });
    let path = folder.write("v1.parquet", file);
    let set = opened(&recognise(&path).unwrap());
    let test = set.test.unwrap();
    assert_eq!((test.len(), test.ids.name(0).as_ref()), (1, "s"));
    assert_eq!(all_rows(&test.inputs).unwrap(), [6.0, 7.0]);
}

#[test]
fn the_index_of_pandas_is_no_feature() {
    let folder = Folder::new();
    let note = r#"{"index_columns": ["row", "__index_level_1__"]}"#;
    let table = |index: &str, write: &dyn Fn(&mut Columns)| {
        let schema = format!("required double a; required int64 label; required {index};");
        let file = parquet_columns(&schema, Some(("pandas", note)), |columns| {
            columns.doubles(&[0.5, 1.5, 2.5, 3.5]);
            columns.numbers(&[0, 1, 0, 1]);
            write(columns);
        });
        let path = folder.write("frame.parquet", file);
        let found = recognise(&path).unwrap();
        let set = opened(&found);
        assert_eq!(set.train.inputs.feature_names().unwrap(), ["a"], "{index}");
        (found.explanation, set.train.ids.clone())
    };
    let (said, _) = table("int64 row", &|columns| columns.numbers(&[5, 3, 9, 1]));
    assert!(said.contains("\"row\" (the index of the rows)"), "{said}");
    let (said, ids) = table("binary row (UTF8)", &|columns| columns.words(&["p", "q", "r", "s"]));
    assert!(said.contains("ids in column \"row\""), "{said}");
    assert!(["p", "q", "r", "s"].contains(&ids.name(0).as_ref()));
    let (said, _) = table("binary row (UTF8)", &|columns| columns.words(&["p", "q", "p", "q"]));
    assert!(said.contains("\"row\" (the index of the rows)"), "{said}");
    let csv = folder.write("frame.csv", ",a,grape\np,0.5,x\nq,1.5,y\nr,2.5,x\ns,3.5,y\n");
    let said = recognise(&csv).unwrap().explanation;
    assert!(said.contains("labels in column \"grape\"; ids in column \"column 0\""), "{said}");
}

#[test]
fn columns_are_named_of_tables_only() {
    let folder = Folder::new();
    let path = folder.write("x.npy", npy_f32("(2, 2)", &[0.5; 4]));
    assert_refused(recognise_columns(&path, &label("y")), &path, &["--label", "no table"]);
    let missing = Path::new("nowhere.csv");
    assert_refused(recognise_columns(missing, &label("y")), missing, &["no such file"]);
}
