//! `concord kubeconfig`: how clients reach a server as its administrator.

use std::{fs, path::Path};

use anyhow::{Context as _, bail};
use concord_codec::{Options, decode_yaml, encode_yaml};
use serde_json::Value;

use crate::{cli::KubeconfigOptions, host, say};

/// The file in the data directory.
pub(crate) const FILE: &str = "admin.kubeconfig";

/// Prints the file that `concord serve` wrote.
pub(crate) fn run(options: &KubeconfigOptions) -> anyhow::Result<()> {
    let path = host::data_dir(&options.data)?.join(FILE);
    let text = fs::read_to_string(&path).with_context(|| {
        format!("cannot read {}: has `concord serve` run with this data directory?", path.display())
    })?;
    let text = match &options.server {
        None => text,
        Some(server) => at(&text, server, &path)?,
    };
    say(text.trim_end())
}

/// The same, for a server that is reached at another URL.
fn at(text: &str, server: &str, path: &Path) -> anyhow::Result<String> {
    let decoded = decode_yaml(text.as_bytes(), &Options::default());
    let mut config =
        Value::Object(decoded.with_context(|| format!("{} is not YAML", path.display()))?.object);
    match config.pointer_mut("/clusters/0/cluster/server") {
        Some(url) => *url = server.into(),
        None => bail!("{} is not a kubeconfig with a cluster in it", path.display()),
    }
    let mut text = Vec::new();
    encode_yaml(&config, &mut text);
    Ok(String::from_utf8(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_can_be_another_one() {
        let text = "clusters:\n- cluster:\n    server: https://127.0.0.1:6443\n  name: c\n";
        let changed = at(text, "https://api.example.com", Path::new("f")).expect("a kubeconfig");
        assert_eq!(changed, "clusters:\n- cluster:\n    server: https://api.example.com\n  name: c\n");
        let error = at("a: 1", "x", Path::new("f")).expect_err("no cluster").to_string();
        assert!(error.contains("not a kubeconfig"), "{error}");
    }
}
