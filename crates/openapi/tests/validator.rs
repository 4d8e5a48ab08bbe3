//! An independent judge of the documents: PyPI's openapi-spec-validator, where it is installed.

mod support;

use std::{
    fs,
    process::{Command, Stdio},
};

use support::{ask, everything, keys};

/// Prints what is wrong with the documents in a directory.
const SCRIPT: &str = "
import json, pathlib, sys
from openapi_spec_validator import OpenAPIV30SpecValidator
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    for error in OpenAPIV30SpecValidator.schema_validator.iter_errors(json.loads(path.read_text())):
        print(path.name, list(error.path), error.message[:200])
";

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

#[tokio::test]
async fn every_document_is_valid() {
    if !is_installed() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let openapi = everything();
    for key in keys(&openapi).await {
        let (_, _, body) = ask(&openapi, &format!("/openapi/v3/{key}"), &[]).await;
        fs::write(directory.path().join(key.replace('/', "__")), body).expect("written");
    }
    let output = Command::new("python3").args(["-c", SCRIPT]).arg(directory.path()).output().expect("python");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}
