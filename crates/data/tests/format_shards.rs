//! WebDataset shards: keys, labels, patterns, packing, and archives that are wrong.

use std::path::{Path, PathBuf};

use crate::format_support::*;
use aleator_data::DataError;
use aleator_data::inputs::{CarriedLabels, InputShape, Inputs, Opened};
use aleator_run::recipe::{Framing, InputSource};
use tar::{Builder, EntryType, Header};

fn picture(grey: u8) -> Vec<u8> {
    plain_png(2, 2, [grey; 3])
}

/// Two examples with keys that begin with `prefix`.
fn two(prefix: &str) -> Vec<u8> {
    let (a, b) = (format!("{prefix}0"), format!("{prefix}1"));
    tar_file(&[
        (&format!("{a}.png"), &picture(0)),
        (&format!("{a}.cls"), b"3"),
        (&format!("{b}.cls"), b"1\n"),
        (&format!("{b}.png"), &picture(255)),
    ])
}

fn said(opened: &Opened) -> Vec<&str> {
    let Some(CarriedLabels::Written(labels)) = &opened.labels else { panic!("{opened:?}") };
    (0..labels.len()).map(|at| labels.get(at)).collect()
}

fn ids(opened: &Opened) -> Vec<&str> {
    opened.ids.as_ref().unwrap().iter().map(String::as_str).collect()
}

#[test]
fn examples_are_entries_with_one_key() {
    let folder = Folder::new();
    let opened = images(folder.write("x.tar", two("a/k"))).unwrap();
    assert_eq!((ids(&opened), said(&opened)), (vec!["a/k0", "a/k1"], vec!["3", "1"]));
    let shape = InputShape::Image { channels: 3, height: 2, width: 2 };
    assert_eq!(opened.inputs.shape(), shape);
    assert_eq!(all_rows(&opened.inputs).unwrap(), [[-1.0; 12], [1.0; 12]].concat());
}

#[test]
fn labels_come_from_cls_then_json_then_txt() {
    let folder = Folder::new();
    let image = picture(9);
    let caption = "a long caption ".repeat(40);
    let path = folder.write(
        "x.tar",
        tar_file(&[
            ("0.png", &image),
            ("0.cls", b"5"),
            ("0.txt", caption.as_bytes()),
            ("0.json", br#"{"label": "no", "clean_label": "a", "weight": 2, "size": [1]}"#),
            ("1.png", &image),
            ("1.txt", b"no"),
            ("1.json", br#"{"label": "cat", "clean_label": 7, "weight": 0.5}"#),
            ("2.JPG", &image),
            ("2.txt", b" dog\n"),
            ("2.json", br#"{"clean_label": "b", "weight": 1}"#),
            ("index.json", b"{}"),
            ("notes/.hidden.png", b""),
            ("2.seg.png", b"not an image of the set"),
        ]),
    );
    let opened = images(path).unwrap();
    assert_eq!(said(&opened), ["5", "cat", "dog"]);
    assert_eq!(opened.weights.as_deref(), Some(&[2.0, 0.5, 1.0][..]));
    let clean = opened.clean_labels.as_ref().unwrap();
    assert_eq!([clean.get(0), clean.get(1), clean.get(2)], ["a", "7", "b"]);
}

#[test]
fn shards_are_found_by_folder_list_pattern_and_gzip() {
    let folder = Folder::new();
    folder.write("s-000.tar", two("a"));
    folder.write("s-001.tar.gz", gzip(&two("b")));
    folder.write("s-002.tar", two("c"));
    let expected = ["a0", "a1", "b0", "b1", "c0", "c1"];
    let white = [[-1.0; 12], [1.0; 12]].concat();
    let at = |name: &str| folder.path().join(name);
    let list = ["s-000.tar", "s-001.tar.gz", "s-002.tar"].map(at).to_vec();
    for paths in [list, vec![at("s-*")], vec![at("s-{000,001,002}*")], vec![folder.path().into()]] {
        let opened = Inputs::open(&InputSource::Images(paths), &Framing::PLAIN).unwrap();
        assert_eq!(ids(&opened), expected);
        assert_eq!(all_rows(&opened.inputs).unwrap(), white.repeat(3));
    }
    let opened = images(at("s-{000..002..2}.tar"));
    assert!(opened.unwrap_err().to_string().contains("number"));
    let opened = images(at("s-{000..001}.tar"));
    assert_refused(opened, &at("s-001.tar"), &["no such file"]);
    assert_refused(images(at("t-*.tar")), &at("t-*.tar"), &["matches no file"]);
}

#[test]
fn a_key_of_two_shards_gets_the_shards_name() {
    let folder = Folder::new();
    folder.write("s-0.tar", two("k"));
    folder.write("s-1.tar", two("k"));
    let opened = images(folder.path()).unwrap();
    assert_eq!(ids(&opened), ["s-0/k0", "s-0/k1", "s-1/k0", "s-1/k1"]);
}

#[test]
fn a_folder_of_several_splits_is_refused() {
    let folder = Folder::new();
    folder.write("train-0.tar", two("a"));
    folder.write("test-0.tar", two("b"));
    assert_refused(images(folder.path()), folder.path(), &["holds splits", "train*.tar"]);
}

#[test]
fn the_fingerprint_is_that_of_names_and_contents_whatever_the_packing() {
    let folder = Folder::new();
    let print = |name: &str, content: Vec<u8>| {
        fingerprint(&images(folder.write(name, content)).unwrap().inputs).unwrap()
    };
    let base = print("a.tar", two("k"));
    assert_eq!(base, print("b.tar", two("k")));
    assert_eq!(base, print("b.tar.gz", gzip(&two("k"))));
    assert_ne!(base, print("b.tar", two("l")));
    let other = tar_file(&[("k0.png", &picture(1)), ("k1.png", &picture(255))]);
    assert_ne!(base, print("b.tar", other));
}

#[test]
fn duplicate_and_incomplete_examples_are_refused() {
    let folder = Folder::new();
    let image = picture(0);
    let open = |entries: &[(&str, &[u8])]| images(folder.write("x.tar", tar_file(entries)));
    for (entries, words) in [
        (&[("a.png", &image[..]), ("a.jpg", &image)][..], &["a.jpg", "second image"][..]),
        (&[("a.png", &image), ("a.cls", b"1"), ("a.cls", b"1")], &["a.cls", "second .cls"]),
        (&[("a.cls", b"1")], &["x.tar/a", "no image"]),
        (&[("a.png", &image), ("a.cls", b"cat")], &["a.cls", "\"cat\"", "number"]),
        (&[("a.png", &image), ("a.cls", &[b'1'; 65])], &["a.cls", "65 bytes"]),
        (&[("a.png", &image), ("a.txt", b"\xff")], &["a.txt", "UTF-8"]),
        (&[("a.png", &image), ("a.json", b"{")], &["a.json", "not JSON"]),
        (&[("a.png", &image), ("a.json", br#"{"label": {}}"#)], &["x.tar/a", "label", "neither"]),
        (&[("a.png", &image), ("a.json", br#"{"weight": 0}"#)], &["x.tar/a", "weight 0"]),
        (&[("a.png", &image), ("a.cls", b"1"), ("b.png", &image)], &["x.tar/b", "has no label"]),
        (&[("a.png", &image), ("b.png", &image), ("b.cls", b"1")], &["x.tar/b", "has a label"]),
        (&[("a.b.png", &image)], &["holds no images", "without a dot"]),
        (&[], &["holds no images"]),
    ] {
        assert_refused(open(entries), Path::new("x.tar"), words);
    }
    // Without any label, a label file may name them.
    assert!(open(&[("a.png", &image)]).unwrap().labels.is_none());
}

fn with_entry(change: impl FnOnce(&mut Header), name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_size(content.len() as u64);
    // As no honest tool would write it.
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    change(&mut header);
    header.set_cksum();
    let mut file = header.as_bytes().to_vec();
    file.extend(content);
    file.resize(file.len().next_multiple_of(512) + 1024, 0);
    file
}

fn refused(folder: &Folder, file: &[u8], words: &[&str]) {
    let path = folder.write("x.tar", file);
    assert_refused(images(&path), &path, words);
    let path = folder.write("x.tar.gz", gzip(file));
    assert_refused(images(&path), &path, words);
}

#[test]
fn names_that_leave_the_archive_are_refused() {
    let folder = Folder::new();
    for name in ["/etc/passwd.png", "../a.png", "a/../../b.png", "a\\..\\b.png"] {
        let file = with_entry(|_| {}, name.as_bytes(), &picture(0));
        refused(&folder, &file, &[&format!("{name:?}"), "outside"]);
    }
    refused(&folder, &with_entry(|_| {}, b"\xff.png", &picture(0)), &["UTF-8"]);
    refused(&folder, &with_entry(|_| {}, b"", &picture(0)), &["no proper name"]);
}

#[test]
fn links_devices_and_sparse_files_are_refused() {
    let folder = Folder::new();
    for (kind, word) in [
        (EntryType::Symlink, "a link"),
        (EntryType::Link, "a link"),
        (EntryType::Char, "a device"),
        (EntryType::Block, "a device"),
        (EntryType::Fifo, "a pipe"),
        (EntryType::GNUSparse, "a sparse file"),
        (EntryType::new(b'?'), "unknown kind"),
    ] {
        let file = with_entry(|header| header.set_entry_type(kind), b"a.png", b"");
        refused(&folder, &file, &["\"a.png\"", word]);
    }
    let mut tar = Builder::new(vec![]);
    let sparse: [(&str, &[u8]); 1] = [("GNU.sparse.major", b"1")];
    tar.append_pax_extensions(sparse).unwrap();
    let file = tar.into_inner().unwrap();
    refused(&folder, &file, &["GNU.sparse.major"]);
    let mut tar = Builder::new(vec![]);
    let size: [(&str, &[u8]); 1] = [("size", b"1")];
    tar.append_pax_extensions(size).unwrap();
    refused(&folder, &tar.into_inner().unwrap(), &["\"size\""]);
}

#[test]
fn long_names_of_gnu_and_pax_are_read_and_longer_ones_refused() {
    let folder = Folder::new();
    let long = format!("{}/{}", "d".repeat(90), "k".repeat(90));
    let path = folder.write("x.tar", tar_file(&[(&format!("{long}.png"), &picture(0))]));
    assert_eq!(ids(&images(path).unwrap()), [&long]);

    let mut tar = Builder::new(vec![]);
    let name = format!("{long}.png");
    let pax: [(&str, &[u8]); 1] = [("path", name.as_bytes())];
    tar.append_pax_extensions(pax).unwrap();
    let mut header = Header::new_ustar();
    header.set_size(picture(0).len() as u64);
    tar.append_data(&mut header, "short.png", &picture(0)[..]).unwrap();
    let path = folder.write("x.tar", tar.into_inner().unwrap());
    assert_eq!(ids(&images(path).unwrap()), [&long]);

    let name = "n".repeat(5_000);
    let header = |header: &mut Header| header.set_entry_type(EntryType::GNULongName);
    refused(&folder, &with_entry(header, b"././@LongLink", name.as_bytes()), &["4097 bytes"]);
}

#[test]
fn an_archive_that_lies_about_its_sizes_is_refused() {
    let folder = Folder::new();
    // The entry says a gigabyte, then as much as a number can.
    for size in [1 << 30, u64::MAX] {
        let file = with_entry(|header| header.set_size(size), b"a.png", &picture(0));
        let path = folder.write("x.tar", &file);
        let message = images(&path).unwrap_err().to_string();
        assert!(message.contains("x.tar"), "{message}");
        let path = folder.write("x.tar.gz", gzip(&file));
        assert!(images(&path).is_err());
    }
    let file = with_entry(|header| header.set_size(1 << 20), b"a.png", &picture(0));
    let path = folder.write("x.tar", &file);
    assert_refused(images(&path), &path, &["\"a.png\"", "1048576 bytes", "cut short or lies"]);
}

#[test]
fn an_image_of_too_many_bytes_is_refused() {
    let folder = Folder::new();
    // A hole of 257 MiB in the archive takes no room on the disk.
    let len = 257 << 20;
    let file = with_entry(|header| header.set_size(len), b"a.png", b"");
    let path = folder.write("x.tar", &file[..512]);
    std::fs::File::options().write(true).open(&path).unwrap().set_len(2048 + len).unwrap();
    assert_refused(images(&path), Path::new("x.tar"), &["a.png", "256 MiB"]);
    // The same for a file by itself.
    let path = folder.write("classes/a/1.png", "");
    std::fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
    let opened =
        Inputs::open(&InputSource::images(folder.path().join("classes")), &Framing::sized(2));
    assert_refused(all_rows(&opened.unwrap().inputs), &path, &["256 MiB", "remove it"]);
}

#[test]
fn an_archive_that_is_cut_short_or_doubled_is_refused() {
    let folder = Folder::new();
    let whole = two("k");
    let content = whole.len() - 1024;
    for len in [content, content - 100, 700, 600, 511, 100, 1] {
        let path = folder.write("x.tar", &whole[..len]);
        let message = images(&path).unwrap_err().to_string();
        assert!(message.contains("x.tar"), "{len}: {message}");
        let path = folder.write("x.tar.gz", gzip(&whole[..len]));
        assert!(images(&path).is_err(), "{len} bytes packed");
    }
    let packed = gzip(&whole);
    let path = folder.write("x.tar.gz", &packed[..packed.len() - 9]);
    assert_refused(images(&path), &path, &["whole tar file"]);
    refused(&folder, &[&whole[..], &two("l")].concat(), &["goes on after the mark"]);
    let path = folder.write("x.tar", "this is text, and no archive at all".repeat(50));
    assert_refused(images(&path), &path, &["not a whole tar file"]);
}

#[test]
fn a_gzip_bomb_is_refused() {
    let folder = Folder::new();
    let mut bomb = two("k");
    bomb.truncate(bomb.len() - 1024);
    bomb.resize(bomb.len() + (40 << 20), 0);
    let path = folder.write("x.tar.gz", gzip(&bomb));
    assert_refused(images(&path), &path, &["gzipped bytes become more than"]);
}

#[test]
fn a_shard_that_shrinks_or_vanishes_is_named_when_it_is_read() {
    let folder = Folder::new();
    let path = folder.write("x.tar", two("k"));
    let opened = images(&path).unwrap();
    let read = || -> Result<Vec<f32>, DataError> { all_rows(&opened.inputs) };
    read().unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(520).unwrap();
    assert_refused(read(), &path, &["shorter than when it was opened"]);
    std::fs::remove_file(&path).unwrap();
    assert_refused(read(), &path, &["no such file"]);
}

#[test]
fn a_damaged_image_is_named_with_its_shard() {
    let folder = Folder::new();
    let path: PathBuf = folder.write("x.tar", tar_file(&[("0007.png", b"text")]));
    assert_refused(images(path), Path::new("x.tar"), &["x.tar/0007.png", "cannot be decoded"]);
}
