mod support;
use aleator_train::EvaluateSettings;
use support::{Files, RECIPE, Trial, column, cycle, npy};
#[test]
fn p2() {
    let files = Files::new();
    let source = files.source(&cycle(40), &column(&cycle(40)));
    let features = files.write("test.npy", npy(1, 4, &[3e38; 4]));
    let labels = files.write("test.csv", "label\n0\n");
    let own = [format!("data.test.features={features}"), format!("data.test.labels={labels}")];
    let all: Vec<String> = source.into_iter().chain(own).collect();
    let trial = Trial::on(RECIPE, &all, &["schedule.epochs=30"]);
    trial.train();
    println!(
        "RESULT {:?}",
        trial.evaluate(EvaluateSettings::default()).map(|_| ()).map_err(|e| e.to_string())
    );
}
