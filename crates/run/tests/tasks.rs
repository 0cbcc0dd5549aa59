//! Files of tasks to carry a network over to.

use aleator_run::load_tasks;

fn load(text: &str) -> Result<aleator_run::Tasks, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.toml");
    std::fs::write(&path, text).unwrap();
    load_tasks(&path).map_err(|error| error.to_string())
}

#[test]
fn tasks_come_in_the_order_of_the_file() {
    let text = "recipe = \"mine.toml\"\n[tasks.b]\ndata = \"x\"\n[tasks.a]\nset = [\"data.train.builtin=digits\"]\n";
    let tasks = load(text).unwrap();
    assert_eq!(tasks.recipe.as_deref(), Some("mine.toml"));
    let names: Vec<&str> = tasks.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(tasks.tasks[0].data.as_deref(), Some("x".as_ref()));
    assert_eq!(tasks.tasks[1].sets, ["data.train.builtin=digits"]);
}

#[test]
fn what_is_wrong_with_a_file_of_tasks_is_said_with_its_line() {
    for (text, words) in [
        ("", "tasks.NAME.data is missing"),
        ("tasks = 3", "a section for each task"),
        ("[tasks]\na = 3", "tasks.a must be a section"),
        ("[tasks.a]\n", "tasks.a has no data"),
        ("[tasks.a]\ndta = \"x\"", "did you mean tasks.a.data"),
        ("[task.a]\ndata = \"x\"", "did you mean tasks"),
        ("[tasks.\"../a\"]\ndata = \"x\"", "becomes that of a folder"),
        ("[tasks.a]\ndata = 3", "tasks.a.data must be a path"),
        ("[tasks.a]\nset = [1]", "tasks.a.set[0] must be a text"),
    ] {
        let message = load(text).unwrap_err();
        assert!(message.contains("tasks.toml") && message.contains(words), "{text}: {message}");
    }
}

#[test]
fn the_example_of_the_documents_loads() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/tasks.toml");
    let tasks = load_tasks(path.as_ref()).unwrap();
    assert_eq!(tasks.recipe.as_deref(), Some("small/transfer"));
    assert_eq!(tasks.tasks.len(), 4);
}
