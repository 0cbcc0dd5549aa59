//! The page of runs and audits: what is on it, and that nothing in their files can break it.

use std::fs;
use std::path::PathBuf;

use crate::support::{Fixture, SETTINGS, audit, plain, write_group};
use aleator_report::ReportError;
use aleator_report::page::{EncodedPicture, Page, Picture, page};
use aleator_run::Link;
use aleator_run::recipe::Normalize;
use aleator_run::tuning::{NoiseSettings, Settings, Trial, Tuning};

const ANIMALS: [&str; 4] = ["cat", "dog", "fox", "owl"];

fn hostile() -> Vec<String> {
    let long = "x".repeat(10_000);
    let names = [
        "<script>alert(1)</script>",
        "\"onmouseover=\"alert(1)\" x=\"",
        "</style><b>",
        "]]>",
        "\u{202e}evil\u{202c}",
        &long,
        "",
        "a\u{0}b\u{2028}c",
        "' onload='alert(1)",
        "</title></svg><img src=x onerror=alert(1)>",
        "&amp;",
    ];
    names.map(str::to_string).to_vec()
}

/// Tags, attributes and text: what a parser of the page sees outside of style and script.
fn check_harmless(html: &str) {
    for markup in ["<script>alert", "<img src=x", "</style><b>", "<b>"] {
        // The page's own tiles are bold.
        let found = html.matches(markup).count();
        let own = if markup == "<b>" { html.matches("<dd><b>").count() } else { 0 };
        assert_eq!(found, own, "{markup}");
    }
    assert!(!html.contains(" onmouseover=\"alert"));
    assert!(!html.contains("' onload='alert"));
    assert!(!html.contains('\u{202e}') && !html.contains('\u{2028}') && !html.contains('\u{0}'));
    assert_eq!(html.matches("<script>").count(), 1);
    assert_eq!(html.matches("<style>").count(), 1);
    assert!(!html.contains(&"x".repeat(400)));
}

fn check_references(page: &Page) {
    for address in ["src=\"http", "href=\"http", "url(", "@import", "//fonts"] {
        assert!(!page.html.contains(address), "{address}");
    }
    assert!(page.html.contains("default-src 'none'; img-src data:; style-src 'sha256-"));
    assert!(!page.html.contains("unsafe-inline") && !page.html.contains(" style=\""));
}

#[test]
fn a_run_has_all_its_parts_and_the_same_bytes_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    Fixture::of(&ANIMALS).write(&dir);
    let made = plain(std::slice::from_ref(&dir));
    for part in [
        "scores",
        "training",
        "calibration",
        "confusions",
        "suspects",
        "ambiguous",
        "classes",
        "repeat",
    ] {
        assert!(made.html.contains(&format!("<section id=\"{part}\"")), "{part}");
    }
    assert!(made.html.contains("aleator train "));
    assert!(made.html.contains("--seed 0 --out again"));
    check_references(&made);
    assert_eq!(made, plain(&[dir]));
}

#[test]
fn seeds_are_mean_and_deviation_and_unfinished_members_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("seeds");
    let seed = |seed| Fixture { seed, ..Fixture::of(&ANIMALS) };
    write_group(&dir, "seeds", &[("seed-0", seed(0)), ("seed-1", seed(1)), ("seed-2", seed(2))]);
    fs::remove_file(dir.join("seed-2/evaluation.json")).unwrap();
    let html = plain(&[dir]).html;
    assert!(html.contains("±"));
    assert!(html.contains("1 of the runs"), "{}", &html[..200]);
    assert!(html.contains("aleator resume"));
}

#[test]
fn settings_stand_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("demo");
    let fixture = || Fixture::of(&ANIMALS);
    write_group(&dir, "demo", &[("none/seed-0", fixture()), ("full/seed-0", fixture())]);
    let made = plain(&[dir]);
    assert!(made.figures.iter().any(|figure| figure.name == "compared-accuracy"));
    assert!(made.html.contains("full/seed-0"));
    assert!(made.html.contains("aleator demo --out again"));
}

#[test]
fn an_audit_has_its_findings_and_says_which_images_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = ANIMALS.map(String::from).to_vec();
    audit(&names, 30).save(folder.path()).unwrap();
    let dirs = [folder.path().to_path_buf()];
    let mut keys = vec![];
    let made = page(&dirs, &SETTINGS, &mut |key| {
        keys.push(key.id.to_string());
        match keys.len() {
            1 => Picture::Encoded(EncodedPicture {
                media_type: "image/png",
                bytes: vec![1, 2, 3],
                width: 8,
                height: 8,
            }),
            _ => Picture::Vanished,
        }
    })
    .unwrap();
    assert_eq!(keys.len(), 20);
    assert_eq!(keys[0], "img/0.png");
    assert!(made.html.contains("src=\"data:image/png;base64,AQID\""));
    assert_eq!(made.html.matches("image not found").count(), 19);
    for words in
        ["1234", "between 1100 and 1350 is plausible", "0.961", "annotator 2", "12\u{202f}345"]
    {
        assert!(made.html.contains(words), "{words}");
    }
}

#[test]
fn classes_that_are_on_or_off_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    Fixture { link: Link::Sigmoid, ..Fixture::of(&ANIMALS) }.write(&dir);
    let html = plain(&[dir]).html;
    assert!(html.contains("gAP") && html.contains("Average precision"));
    assert!(html.contains("each on or off"));
    assert!(html.contains("<s>on</s> → off") || html.contains("<s>off</s> → on"));
}

#[test]
fn names_that_others_chose_are_shown_and_do_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let names = hostile();
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    let (run, found) = (folder.path().join("run"), folder.path().join("<b>\"audit'"));
    Fixture::of(&texts).write(&run);
    fs::create_dir(&found).unwrap();
    audit(&names, 30).save(&found).unwrap();
    let made = plain(&[run, found]);
    check_harmless(&made.html);
    check_references(&made);
    assert!(made.html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(made.html.contains("(empty)"));
    for figure in &made.figures {
        let svg = figure.standalone();
        assert!(
            !svg.contains("<script") && !svg.contains("<b>") && !svg.contains("onerror=alert(1)>")
        );
        assert!(!svg.contains('\u{0}') && !svg.contains('\u{202e}'));
        assert_eq!(svg.matches("<svg").count(), 1, "{}", figure.name);
    }
}

#[test]
fn a_thousand_classes_fit_a_small_page() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    Fixture { examples: 400, ..Fixture::numbered(1000) }.write(&dir);
    let made = plain(&[dir]);
    assert!(made.html.len() < 3_000_000, "{} bytes", made.html.len());
    assert!(made.html.matches("<rect").count() < 2_000);
    assert!(made.html.contains("class 999"));
    let map = made.figures.iter().find(|figure| figure.name == "confusion").unwrap();
    assert!(map.standalone().contains("data:image/png;base64,"));
}

#[test]
fn what_cannot_be_reported_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let refused = |dirs: &[PathBuf]| match page(dirs, &SETTINGS, &mut |_| Picture::None) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{dirs:?} were reported"),
    };
    fs::create_dir(at("empty")).unwrap();
    assert!(refused(&[at("empty")]).contains("neither a run"));

    Fixture::of(&ANIMALS).write(&at("run"));
    Fixture::of(&["cat", "dog", "fox", "emu"]).write(&at("other"));
    let message = refused(&[at("run"), at("other")]);
    assert!(message.contains("class 3 is \"owl\" and \"emu\""), "{message}");

    fs::remove_file(at("other").join("predictions/validation.safetensors")).unwrap();
    assert!(refused(&[at("other")]).contains("aleator eval"));
    fs::remove_file(at("other").join("evaluation.json")).unwrap();
    assert!(refused(&[at("other")]).contains("aleator resume"));

    for (file, content) in [
        ("evaluation.json", "{"),
        ("metrics.jsonl", "nonsense\n"),
        ("examples.csv", "id,split\n"),
        ("predictions/test.safetensors", "short"),
        ("run.json", "[]"),
    ] {
        let dir = at(&format!("damaged-{}", file.replace('/', "-")));
        Fixture::of(&ANIMALS).write(&dir);
        fs::write(dir.join(file), content).unwrap();
        let message = refused(std::slice::from_ref(&dir));
        let name = file.rsplit('/').next().unwrap();
        assert!(message.contains(name), "{file}: {message}");
    }
}

#[test]
fn reports_are_replaced_and_other_files_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    Fixture::of(&ANIMALS).write(&dir);
    let made = plain(&[dir]);
    let (out, figures) = (folder.path().join("a/report.html"), folder.path().join("a/figures"));
    made.save(&out, &figures).unwrap();
    made.save(&out, &figures).unwrap();
    assert_eq!(fs::read_to_string(&out).unwrap(), made.html);
    assert!(figures.join("confusion.svg").is_file());
    fs::write(&out, "mine").unwrap();
    let refused = made.save(&out, &figures);
    assert!(matches!(refused, Err(ReportError::NotOurs { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
}

#[test]
fn an_unfinished_audit_says_how_to_resume_it() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("audit");
    let fold = |seed| Fixture { seed, ..Fixture::of(&ANIMALS) };
    write_group(&dir, "audit", &[("fold-0", fold(0)), ("fold-1", fold(1))]);
    let made = page(std::slice::from_ref(&dir), &SETTINGS, &mut |_| Picture::None);
    let message = made.unwrap_err().to_string();
    let resume = format!("resume with `aleator resume {}`", dir.display());
    assert!(message.contains("is not finished") && message.contains(&resume), "{message}");
}

#[test]
fn chosen_settings_are_shown_with_their_trials() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let run = Fixture::of(&ANIMALS).write(&dir);
    assert!(!plain(std::slice::from_ref(&dir)).html.contains("id=\"settings\""));
    let trial =
        |normalize, mean, noise, nll| Trial { settings: Settings { normalize, mean, noise }, nll };
    let noise = NoiseSettings { diagonal: 3e-3, loadings: 2e-4, rank: Some(5) };
    let trials = vec![
        trial(Normalize::Global, 1.0, None, 1.9),
        trial(Normalize::Global, 0.1, None, 1.7),
        trial(Normalize::PerFeature, 0.1, None, 1.6),
        trial(Normalize::PerFeature, 0.1, Some(noise), 1.5),
    ];
    let chosen = trials[3].settings;
    let tuning = Tuning { trained_on: 4321, folds: 5, trials, chosen };
    run.write_json(Tuning::NAME, &tuning).unwrap();
    let made = plain(std::slice::from_ref(&dir));
    let section = made.html.split("<section id=\"settings\"").nth(1).unwrap();
    let section = section.split("</section>").next().unwrap();
    for words in [
        "each feature divided by its own standard deviation",
        "<dd>1.0e-1</dd>",
        "<dd>3.0e-3</dd>",
        "<dd>2.0e-4</dd>",
        "<dt>Rank</dt><dd>5</dd>",
        "<dt>Trials</dt><dd>4</dd>",
        "<dd>4321</dd>",
        "5 folds",
        "per feature",
    ] {
        assert!(section.contains(words), "{words} is not in {section}");
    }
    // A dot for each trial, and a larger one for the choice.
    assert_eq!(section.matches("<circle").count(), 5, "{section}");

    // Any numbers make a figure; a damaged file is refused by name.
    let odd =
        vec![trial(Normalize::None, 0.0, None, 1e300), trial(Normalize::None, 1e-8, None, 0.0)];
    let odd = Tuning { chosen: odd[0].settings, trials: odd, ..tuning };
    run.write_json(Tuning::NAME, &odd).unwrap();
    assert!(!plain(std::slice::from_ref(&dir)).html.contains("NaN"));
    fs::write(dir.join(Tuning::NAME), "{}").unwrap();
    let refused = page(&[dir], &SETTINGS, &mut |_| Picture::None).unwrap_err().to_string();
    assert!(refused.contains("tuning.json"), "{refused}");
}

#[test]
fn suspects_of_a_run_leave_room_for_those_of_an_audit() {
    let folder = tempfile::tempdir().unwrap();
    let (run, found) = (folder.path().join("run"), folder.path().join("audit"));
    Fixture::of(&ANIMALS).write(&run);
    fs::create_dir(&found).unwrap();
    audit(&ANIMALS.map(str::to_string), 30).save(&found).unwrap();
    let titles = |dirs: &[PathBuf]| {
        let html = plain(dirs).html;
        ["validation split", "audit"]
            .map(|of| html.matches(&format!("Suspect labels of the {of}</h2>")).count())
    };
    assert_eq!(titles(std::slice::from_ref(&run)), [1, 0]);
    assert_eq!(titles(&[run, found]), [0, 1]);
}

#[test]
fn a_page_starts_with_what_it_comes_to_and_where_to_begin() {
    let folder = tempfile::tempdir().unwrap();
    audit(&ANIMALS.map(str::to_string), 30).save(folder.path()).unwrap();
    let html = plain(&[folder.path().to_path_buf()]).html;
    let verdict = html.split("<p class=\"verdict\">").nth(1).unwrap();
    let verdict = verdict.split("</p>").next().unwrap();
    for words in [
        "About 1234 of 12\u{202f}345 labels (10.0\u{202f}%) look wrong; between 1100 and 1350 is plausible.",
        "Most often: <bdi>dog</bdi> labelled <bdi>cat</bdi>, about 3 labels.",
        "<a href=\"#suspects\">suspect labels</a>",
        "aleator review ",
    ] {
        assert!(verdict.contains(words), "{words}: {verdict}");
    }
    // The suspects follow at once.
    let section = |id: &str| html.find(&format!("<section id=\"{id}\"")).unwrap();
    assert!(section("scores") < section("suspects"));
    assert!(section("suspects") < section("label-confusions"));
}

/// Among many pairs of classes the strongest of one seed are chance, and so are those of several
/// whose signs agree no more often than coins.
#[test]
fn noise_that_chance_explains_is_said_to_be_and_not_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = |page: &Page| page.figures.iter().any(|figure| figure.name == "noise-correlation");
    let many = |seed, is_noise_learned| Fixture {
        seed,
        examples: 60,
        is_noise_learned,
        ..Fixture::numbered(100)
    };
    let one = folder.path().join("one");
    many(0, true).write(&one);
    let made = plain(&[one]);
    assert!(made.html.contains("this is one seed, and among 4950 pairs") && !drawn(&made));
    assert!(!made.html.contains("Correlation"));

    let few = folder.path().join("few");
    Fixture::of(&ANIMALS).write(&few);
    let made = plain(&[few]);
    assert!(made.html.contains("test split, one seed") && drawn(&made));

    for is_noise_learned in [false, true] {
        let seeds = folder.path().join(format!("seeds-{is_noise_learned}"));
        let seed = |seed| many(seed, is_noise_learned);
        write_group(
            &seeds,
            "seeds",
            &[("seed-0", seed(0)), ("seed-1", seed(1)), ("seed-2", seed(2))],
        );
        let made = plain(&[seeds]);
        let said = made.html.contains("have the same sign in all 3 seeds");
        assert_eq!((said, drawn(&made)), (!is_noise_learned, is_noise_learned));
    }
}
