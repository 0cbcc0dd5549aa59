//! What a fuzzer must notice, it notices: whatever ends a case, its number is told.

use crate::fuzz::{Case, Form, Seed, Target};

/// Tries ten cases, of which the attempt ends the process at one.
fn failure(test: &'static str, attempt: impl FnMut(&Case)) -> String {
    let seeds = vec![Seed::new("x", Form::Bytes, "seed")];
    Target { test, cases: 10, seeds }.outcome(attempt).expect_err("a failure")
}

/// The path of a test of this file.
macro_rules! here {
    ($name:literal) => {
        concat!(module_path!(), "::", $name)
    };
}

#[test]
fn a_panic_is_told_with_its_case_and_its_words() {
    let test = here!("a_panic_is_told_with_its_case_and_its_words");
    let told = failure(test, |case| assert!(case.number != 3, "three is too many"));
    assert!(told.contains("case 3:") && told.contains("three is too many"), "{told}");
}

#[test]
fn an_abort_is_told_with_its_case() {
    let test = here!("an_abort_is_told_with_its_case");
    let told = failure(test, |case| {
        if case.number == 4 {
            std::process::abort();
        }
    });
    assert!(told.contains("case 4:"), "{told}");
}

#[cfg(target_os = "linux")]
#[test]
fn too_much_memory_is_told_with_its_case() {
    let test = here!("too_much_memory_is_told_with_its_case");
    let told = failure(test, |case| {
        let promised = if case.number == 5 { 1 << 33 } else { 16 };
        assert!(std::hint::black_box(vec![1_u8; promised]).ends_with(&[1]));
    });
    assert!(told.contains("case 5:") && told.contains("memory allocation"), "{told}");
}

/// Damage depends on the number alone, and mostly leaves a document.
#[test]
fn a_case_is_the_same_every_time() {
    let document = r#"{"a":[1,2,{"b":"c"}],"d":null}"#;
    let target = || {
        let seeds = vec![Seed::new("x.json", Form::Json, document)];
        Target { test: "none", cases: 0, seeds }
    };
    let (one, two) = (target(), target());
    let (mut changed, mut left) = (0, 0);
    for number in 0..100 {
        let case = one.case(number, "".as_ref());
        assert_eq!(two.case(number, "".as_ref()).bytes, case.bytes, "case {number}");
        changed += usize::from(case.bytes != document.as_bytes());
        left += usize::from(serde_json::from_slice::<serde_json::Value>(&case.bytes).is_ok());
    }
    assert!(changed > 90 && (40..95).contains(&left), "{changed} changed, {left} documents");
}
