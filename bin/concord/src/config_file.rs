//! The file behind `--config`: the flags of `serve`, by name, in YAML.
//!
//! Each entry becomes the flag of that name in front of those on the command line, so a file can say all that flags
//! can, is checked in the same way, and is overruled by what is typed.

use std::{ffi::OsString, fs, path::Path};

use anyhow::{Context as _, bail};
use concord_codec::{Options, decode_yaml};
use serde_json::Value;

/// Flags whose values have commas in them: a list of values is a list of flags.
const REPEATED: [&str; 1] = ["tls-sni-cert-key"];

/// The arguments with those of the file that `--config` names, if any, put in after the subcommand.
pub(crate) fn expand(arguments: Vec<OsString>) -> anyhow::Result<Vec<OsString>> {
    let is_serve = arguments.get(1).is_some_and(|command| command == "serve");
    let Some(file) = config_file(&arguments).filter(|_| is_serve) else { return Ok(arguments) };
    let flags = read(Path::new(&file), &arguments)?;
    let (head, tail) = arguments.split_at(2);
    Ok([head, &flags, tail].concat())
}

/// What `--config` says; the last one counts.
fn config_file(arguments: &[OsString]) -> Option<OsString> {
    let pairs = arguments.iter().zip(arguments.iter().skip(1).map(Some).chain([None]));
    let values = pairs.filter_map(|(argument, next)| {
        let text = argument.to_str()?;
        match text.strip_prefix("--config=") {
            Some(file) => Some(file.into()),
            None if text == "--config" => next.cloned(),
            None => None,
        }
    });
    values.last()
}

fn read(file: &Path, arguments: &[OsString]) -> anyhow::Result<Vec<OsString>> {
    let bytes = fs::read(file).with_context(|| format!("cannot read --config {}", file.display()))?;
    let decoded = decode_yaml(&bytes, &Options::default());
    let decoded = decoded.with_context(|| format!("--config {} is not YAML", file.display()))?;
    if let Some(violation) = decoded.violations.first() {
        bail!("--config {}: {violation}", file.display());
    }
    let mut flags = Vec::new();
    for (name, value) in &decoded.object {
        if name == "config" {
            bail!("--config {} cannot name another file", file.display());
        }
        if is_typed(name, arguments) {
            continue;
        }
        let values = match value {
            Value::Array(items) if REPEATED.contains(&name.as_str()) => items.as_slice(),
            value => std::slice::from_ref(value),
        };
        for value in values {
            let text = text(value).with_context(|| format!("--config {}: {name}", file.display()))?;
            flags.push(format!("--{name}={text}").into());
        }
    }
    Ok(flags)
}

/// Whether a flag stands on the command line.
fn is_typed(name: &str, arguments: &[OsString]) -> bool {
    arguments.iter().filter_map(|argument| argument.to_str()).any(|argument| {
        let flag = argument.strip_prefix("--").and_then(|flag| flag.strip_prefix(name));
        flag.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

/// A value as it would be typed: lists with commas, maps as `key=value` pairs.
fn text(value: &Value) -> anyhow::Result<String> {
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => items.iter().map(text).collect::<anyhow::Result<Vec<_>>>()?.join(","),
        Value::Object(members) => {
            let pairs = members.iter().map(|(key, value)| Ok(format!("{key}={}", text(value)?)));
            pairs.collect::<anyhow::Result<Vec<_>>>()?.join(",")
        }
        Value::Null => bail!("has no value"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(file: &str, typed: &[&str]) -> anyhow::Result<Vec<String>> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("config.yaml");
        fs::write(&path, file).expect("written");
        let config = format!("--config={}", path.display());
        let arguments = ["concord", "serve", &config].iter().chain(typed).map(OsString::from).collect();
        let arguments = expand(arguments)?.into_iter().map(|argument| argument.into_string().expect("text"));
        Ok(arguments.filter(|argument| !argument.starts_with("--config")).skip(2).collect())
    }

    #[test]
    fn a_file_says_what_flags_say() {
        let file =
            "secure-port: 7443\netcd-servers: [https://a, https://b]\nruntime-config:\n  api/all: true\n";
        let flags = expanded(file, &[]).expect("good");
        assert_eq!(
            flags,
            ["--etcd-servers=https://a,https://b", "--runtime-config=api/all=true", "--secure-port=7443"]
        );
    }

    #[test]
    fn values_with_commas_are_flags_of_their_own() {
        let flags = expanded("tls-sni-cert-key: ['a,b:c,d', 'e,f']\ntls-cipher-suites: [g, h]\n", &[]);
        let expected = ["--tls-cipher-suites=g,h", "--tls-sni-cert-key=a,b:c,d", "--tls-sni-cert-key=e,f"];
        assert_eq!(flags.expect("good"), expected);
    }

    #[test]
    fn what_is_typed_counts_more() {
        let file = "secure-port: 7443\nbind-address: ::1\n";
        let flags = expanded(file, &["--secure-port", "1"]).expect("good");
        assert_eq!(flags, ["--bind-address=::1", "--secure-port", "1"]);
    }

    #[test]
    fn a_bad_file_is_named() {
        for (file, complaint) in
            [("a: [", "is not YAML"), ("data-dir:\n", "has no value"), ("config: x", "another file")]
        {
            let error = format!("{:#}", expanded(file, &[]).expect_err(complaint));
            assert!(error.contains(complaint) && error.contains("config.yaml"), "{error}");
        }
    }

    #[test]
    fn other_commands_have_no_file() {
        let arguments: Vec<OsString> = ["concord", "version", "--config=none"].map(OsString::from).into();
        assert_eq!(expand(arguments.clone()).expect("untouched"), arguments);
    }
}
