use super::*;

/// Name and the kind of answer of each test case of JUnit XML that is of cuts.
fn cut_cases(compared: &Compared) -> Vec<(String, String)> {
    let text = crate::formats::junit::junit(compared);
    let document = Document::parse(&text).unwrap();
    let cases = document.descendants();
    cases
        .filter(|case| ["power cuts", "promise"].contains(&case.attribute("name").unwrap_or("")))
        .map(|case| {
            let answer = case.first_element_child();
            let answer = answer.map_or("passed", |answer| answer.tag_name().name());
            let name = case.attribute("classname").unwrap();
            (name.to_owned(), answer.to_owned())
        })
        .collect()
}

#[test]
fn each_program_that_was_cut_is_a_test_case() {
    let mut compared = compared();
    let names = ["baseline", "sync@exe:cleanup=off", "conf.queue=tmpfs"];
    let all = |answers: [&str; 3]| -> Vec<(String, String)> {
        let pairs = names.into_iter().zip(answers);
        pairs
            .map(|(name, answer)| (name.to_owned(), answer.to_owned()))
            .collect()
    };
    assert_eq!(cut_cases(&compared), all(["passed"; 3]));
    report_of(&mut compared).modes[3].may_lose = false;
    assert_eq!(cut_cases(&compared), all(["passed", "passed", "failure"]));
    report_of(&mut compared).invalid = Some("nothing was lost".to_owned());
    assert_eq!(cut_cases(&compared), all(["error"; 3]));
    compared.proof = Some(Proof::NotCut("root is needed".to_owned()));
    assert_eq!(
        cut_cases(&compared),
        [("power cuts".to_owned(), "skipped".to_owned())]
    );
}
