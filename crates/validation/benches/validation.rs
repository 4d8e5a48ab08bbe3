//! What validation costs: valid objects, which is what nearly all are.

use concord_validation::{Object, Validator, of};
use divan::Bencher;
use serde_json::Value;

fn main() {
    divan::main();
}

/// The valid object that a table of cases begins with, and its kind's rules.
fn subject(name: &str) -> (Validator, Object) {
    let path = format!("{}/tests/cases/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a table of cases");
    let (object, _) = text.split_once("\n\n").expect("an object and rows");
    let Ok(Value::Object(object)) = serde_json::from_str(object) else { panic!("{name}: no object") };
    let (group, kind) = name.rsplit_once('.').expect("group.Kind");
    let group = if group == "core" { "" } else { group };
    (of(group, kind).expect("a kind with rules"), object)
}

const KINDS: [&str; 4] = ["core.ConfigMap", "core.Service", "core.Pod", "apps.Deployment"];

#[divan::bench(args = KINDS)]
fn create(bencher: Bencher<'_, '_>, name: &str) {
    let (validator, object) = subject(name);
    bencher.bench(|| validator.create(&object));
}

#[divan::bench(args = KINDS)]
fn update(bencher: Bencher<'_, '_>, name: &str) {
    let (validator, object) = subject(name);
    bencher.bench(|| validator.update("", &object, &object));
}
