//! The file of `--admission-control-config-file`: how plugins are configured.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use concord_codec::{FieldTree, FieldValidation, Options, decode_yaml, strict_decoding_error};
use concord_plugins::PodSecurityConfig;
use serde_json::{Map, Value};

/// Plugins whose configuration has no effect here: a server with one would not do what it was told.
const UNSUPPORTED: [&str; 3] = ["MutatingAdmissionWebhook", "ResourceQuota", "ValidatingAdmissionWebhook"];

/// How plugins are configured.
#[derive(Debug, Default)]
pub(crate) struct AdmissionConfig {
    pub(crate) pod_security: PodSecurityConfig,
}

impl AdmissionConfig {
    /// Reads the file, if there is one.
    pub(crate) fn open(path: Option<&PathBuf>) -> anyhow::Result<Self> {
        match path {
            Some(path) => Self::read(path)
                .with_context(|| format!("--admission-control-config-file {}", path.display())),
            None => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let file = fs::read(path)
            .with_context(|| format!("unable to read admission control configuration from {path:?}"))?;
        let object = decode(&file)?;
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_known = ["v1", "v1alpha1"].map(|version| format!("apiserver.config.k8s.io/{version}"));
        let known = text("kind") == "AdmissionConfiguration"
            && (is_known.iter().any(|of| of == text("apiVersion"))
                || text("apiVersion") == "apiserver.k8s.io/v1alpha1");
        ensure!(known, "no kind {:?} is registered for version {:?}", text("kind"), text("apiVersion"));
        let mut config = Self::default();
        let mut seen = Vec::new();
        for plugin in object.get("plugins").and_then(Value::as_array).into_iter().flatten() {
            let name = plugin["name"].as_str().unwrap_or_default();
            // Of two the first counts; what is not on does not matter.
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let Some(given) = configuration(plugin, path)? else { continue };
            match name {
                "PodSecurity" => {
                    config.pod_security = PodSecurityConfig::read(&given).context("PodSecurity")?
                }
                name if UNSUPPORTED.contains(&name) => bail!("a configuration of {name} is not supported"),
                _ => {}
            }
        }
        Ok(config)
    }
}

fn decode(file: &[u8]) -> anyhow::Result<Map<String, Value>> {
    let plugin =
        [("name", FieldTree::Opaque), ("path", FieldTree::Opaque), ("configuration", FieldTree::Any)];
    let fields = FieldTree::object([
        ("kind", FieldTree::Opaque),
        ("apiVersion", FieldTree::Opaque),
        ("plugins", FieldTree::List(Box::new(FieldTree::object(plugin)))),
    ]);
    let options =
        Options { validation: FieldValidation::Strict, fields: Some(&fields), ..Options::default() };
    let decoded = decode_yaml(file, &options)?;
    ensure!(decoded.violations.is_empty(), "{}", strict_decoding_error(&decoded.violations));
    Ok(decoded.object)
}

/// What a plugin is given: what stands in the file, or in another one.
fn configuration(plugin: &Value, file: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    if !plugin["configuration"].is_null() {
        return Ok(Some(plugin["configuration"].to_string().into_bytes()));
    }
    let Some(path) = plugin["path"].as_str().filter(|path| !path.is_empty()) else { return Ok(None) };
    let path = file.parent().unwrap_or(Path::new("")).join(path);
    Ok(Some(fs::read(&path).with_context(|| path.display().to_string())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AdmissionConfig, String> {
        let place = tempfile::tempdir().expect("a directory");
        let other = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n\
                     defaults: {enforce: baseline}\n";
        fs::write(place.path().join("pods.yaml"), other).expect("written");
        let path = place.path().join("admission.yaml");
        fs::write(&path, text).expect("written");
        AdmissionConfig::read(&path).map_err(|error| format!("{error:#}"))
    }

    fn with(plugins: &str) -> Result<AdmissionConfig, String> {
        read(&format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: {plugins}\n"
        ))
    }

    #[test]
    fn configurations_stand_in_the_file_or_beside_it() {
        let beside = with("[{name: PodSecurity, path: pods.yaml}]").expect("a configuration");
        let inside = "{apiVersion: pod-security.admission.config.k8s.io/v1beta1, kind: PodSecurityConfiguration, defaults: {enforce: \
                      baseline}}";
        let inside =
            with(&format!("[{{name: PodSecurity, configuration: {inside}}}]")).expect("a configuration");
        assert_eq!(beside.pod_security, inside.pod_security);
        assert_ne!(beside.pod_security, PodSecurityConfig::default());
        let nothing =
            with("[{name: PodSecurity}, {name: EventRateLimit, configuration: {a: b}}]").expect("known");
        assert_eq!(nothing.pod_security, PodSecurityConfig::default());
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        for (text, why) in [
            ("kind: Pod\napiVersion: v1\n", "no kind \"Pod\" is registered for version \"v1\""),
            (
                "kind: AdmissionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nplugin: []\n",
                "unknown field \"plugin\"",
            ),
        ] {
            let refused = read(text).expect_err("no configuration");
            assert!(refused.contains(why), "{refused}");
        }
        let refused =
            with("[{name: ResourceQuota, configuration: {limitedResources: []}}]").expect_err("unsupported");
        assert_eq!(refused, "a configuration of ResourceQuota is not supported");
        assert!(with("[{name: PodSecurity, path: none.yaml}]").expect_err("no file").contains("none.yaml"));
    }
}
