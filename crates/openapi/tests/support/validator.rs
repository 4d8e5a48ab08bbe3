//! An independent judge of documents: PyPI's openapi-spec-validator, where it is installed.

use std::{
    fs,
    process::{Command, Stdio},
};

/// Prints what is wrong with the documents in a directory: first whether they have the form of their version, then whether
/// what they say fits together, such as defaults with their schemas. The defaults of upstream's types are Go's zeroes, which
/// do not fit everywhere; nothing else may be wrong with them, and nothing at all with what others say.
const SCRIPT: &str = r##"
import json, pathlib, sys
from openapi_spec_validator import OpenAPIV2SpecValidator, OpenAPIV30SpecValidator

def without_defaults(value):
    if isinstance(value, dict):
        return {k: without_defaults(v) for k, v in value.items() if k != "default" or isinstance(v, dict) and "type" in v}
    return [without_defaults(v) for v in value] if isinstance(value, list) else value

def told(path, error):
    print(path.name, list(error.path), error.message[:200])

for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    document = json.loads(path.read_text())
    if "swagger" in document:
        for error in OpenAPIV2SpecValidator.schema_validator.iter_errors(document):
            told(path, error)
        continue
    for error in OpenAPIV30SpecValidator.schema_validator.iter_errors(document):
        told(path, error)
    for error in OpenAPIV30SpecValidator(document).iter_errors():
        if (error.instance, error.validator) not in [({}, "required"), ("", "enum")]:
            told(path, error)
    schemas = document["components"].get("schemas", {})
    if all(name.startswith("io.k8s.") for name in schemas):
        continue
    for name in schemas:
        if name.startswith("io.k8s."):
            schemas[name] = without_defaults(schemas[name])
    for error in OpenAPIV30SpecValidator(document).iter_errors():
        told(path, error)
"##;

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn is_installed() -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", "import openapi_spec_validator"]).stdout(Stdio::null()).stderr(Stdio::null());
    let installed = python.status().is_ok_and(|status| status.success());
    if !installed {
        println!("skipped: there is no openapi-spec-validator");
    }
    installed
}

/// Asks whether all documents are valid, given with their keys.
pub(crate) fn validate(documents: &[(String, String)]) {
    if !is_installed() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    for (key, document) in documents {
        fs::write(directory.path().join(key.replace('/', "__")), document).expect("written");
    }
    let output = Command::new("python3").args(["-c", SCRIPT]).arg(directory.path()).output().expect("python");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}
