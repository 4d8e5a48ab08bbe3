//! What may stand in the file.

use concord_encryption::{Configuration, Encryption};

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n";
/// 32 bytes.
const SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

fn rules(rules: &str) -> String {
    format!("{HEAD}resources: [{rules}]")
}

fn refusal(file: &str) -> String {
    let read = Configuration::read(file.as_bytes()).and_then(|read| Encryption::new(&read).map(drop));
    read.expect_err(file).to_string()
}

#[test]
fn files_that_are_something_else_are_refused() {
    for (file, text) in [
        ("", "the encryption provider configuration is empty"),
        ("kind: Pod\napiVersion: v1", "no kind \"Pod\" is registered for version \"v1\""),
        (HEAD, "resources: Required value: at least one resources is required"),
    ] {
        let told = refusal(file);
        assert!(told.contains(text), "{file:?}: {told}");
    }
    let told = refusal(&format!("{HEAD}resources: []\nother: 1"));
    assert!(told.contains("unknown field \"other\""), "{told}");
    let told = refusal(&format!("{HEAD}resources: []\nresources: []"));
    assert!(told.contains("already set in map"), "{told}");
    refusal(&format!("{HEAD}resources: 7"));
    refusal("{");
}

#[test]
fn resources_are_checked() {
    let provider = "providers: [{identity: {}}]";
    for (names, text) in [
        ("", "resources[0].resources: Required value: at least one resources[0].resources is required"),
        (
            "Secrets",
            "resources[0].resources[0]: Invalid value: \"Secrets\": resource name should not contain capital letters",
        ),
        ("'*'", "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"),
        ("apiserveripinfo", "resources which do not have REST API/s cannot be encrypted"),
        ("events.events.k8s.io", "Use 'events' instead in the config file"),
        ("jobs.extensions", "'extensions' group has been removed and cannot be used for encryption"),
        ("'secrets.*'", "encrypting the same resource across groups is not supported"),
        (
            "secrets, secrets",
            "resources[0].resources: Invalid value: [\"secrets\",\"secrets\"]: the same resource cannot be specified multiple times",
        ),
        ("secrets, '*.'", "using overlapping resources"),
        ("'*.*', '*.apps'", "using overlapping resources"),
    ] {
        let told = refusal(&rules(&format!("{{resources: [{names}], {provider}}}")));
        assert!(told.contains(text), "{names}: {told}");
    }
    let masked =
        format!("{{resources: ['*.apps'], {provider}}}, {{resources: [deployments.apps], {provider}}}");
    assert_eq!(
        refusal(&rules(&masked)),
        "resource \"deployments.apps\" is masked by earlier rule \"*.apps\""
    );
    let masked = format!("{{resources: ['*.*'], {provider}}}, {{resources: [secrets], {provider}}}");
    assert_eq!(refusal(&rules(&masked)), "resource \"secrets\" is masked by earlier rule \"*.*\"");
}

#[test]
fn providers_are_checked_and_keys_never_shown() {
    for (providers, text) in [
        ("", "resources[0].providers: Required value: at least one resources[0].providers is required"),
        (
            "{}",
            "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
        ),
        (
            &format!("{{identity: {{}}, aescbc: {{keys: [{{name: a, secret: {SECRET}}}]}}}}"),
            "more than one provider specified in a single element",
        ),
        (
            "{aescbc: {keys: []}}",
            "resources[0].providers[0].aescbc.keys: Required value: at least one keys is required",
        ),
        (
            &format!("{{aesgcm: {{keys: [{{secret: {SECRET}}}]}}}}"),
            "resources[0].providers[0].aesgcm.keys[0].name: Required value: name is a mandatory field for a key",
        ),
        ("{aesgcm: {keys: [{name: a}]}}", "secret: Required value: secret is a mandatory field for a key"),
        (
            "{secretbox: {keys: [{name: a, secret: 'c2Vj cmV0'}]}}",
            "secret: Invalid value: \"REDACTED\": secrets must be base64 encoded",
        ),
        (
            "{secretbox: {keys: [{name: a, secret: c2VjcmV0}]}}",
            "secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 6, expected one of [32]",
        ),
        ("{aescbc: {keys: [{name: a, secret: c2VjcmV0}]}}", "expected one of [16 24 32]"),
        (
            "{kms: {apiVersion: v2, name: 'a:b', endpoint: 'unix:///s'}}",
            "invalid KMS provider name a:b, must not contain ':'",
        ),
        (
            "{kms: {apiVersion: v2, name: a, endpoint: 'tcp://s'}}",
            "unsupported scheme \"tcp\" for KMS provider, only unix is supported",
        ),
        (
            "{kms: {apiVersion: v2, name: a, endpoint: 'unix:///s', cachesize: 7}}",
            "cachesize is not supported in v2",
        ),
        (
            "{kms: {apiVersion: v3, name: a}}",
            "endpoint: Invalid value: \"\": endpoint is a mandatory field for a kms",
        ),
        (
            "{kms: {name: a, endpoint: 'unix:///s'}}",
            "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.",
        ),
        (
            "{kms: {apiVersion: v2, name: a, endpoint: 'unix:///s', timeout: -1s}}",
            "timeout: Invalid value: \"-1s\": timeout should be a positive value",
        ),
        (
            "{kms: {apiVersion: v2, name: a, endpoint: 'unix:///s', timeout: soon}}",
            "time: invalid duration \"soon\"",
        ),
    ] {
        let file = rules(&format!("{{resources: [secrets], providers: [{providers}]}}"));
        let told = refusal(&file);
        assert!(told.contains(text), "{providers}: {told}");
        assert!(!told.contains("c2Vj") && !told.contains(SECRET), "{told}");
    }
    let file = rules(&format!(
        "{{resources: [secrets], providers: [{{aescbc: {{keys: [{{name: a, secret: {SECRET}}}]}}}}]}}"
    ));
    let shown = format!("{:?}", Configuration::read(file.as_bytes()).expect("in order"));
    assert!(shown.contains("\"a\"") && !shown.contains(SECRET), "{shown}");
}

#[test]
fn the_nearest_rule_counts() {
    let keys =
        |name: &str| format!("providers: [{{aescbc: {{keys: [{{name: {name}, secret: {SECRET}}}]}}}}]");
    let file = rules(&format!(
        "{{resources: [secrets, deployments.apps], {}}}, {{resources: ['*.apps'], {}}}, {{resources: ['*.*'], {}}}",
        keys("exact"),
        keys("group"),
        keys("all")
    ));
    let encryption = Encryption::new(&Configuration::read(file.as_bytes()).expect("read")).expect("in order");
    for (group, resource, label) in [
        ("", "secrets", "aescbc:v1:exact"),
        ("apps", "deployments", "aescbc:v1:exact"),
        ("apps", "replicasets", "aescbc:v1:group"),
        ("", "configmaps", "aescbc:v1:all"),
        ("example.com", "gadgets", "aescbc:v1:all"),
    ] {
        let says = encryption.of(group, resource).label();
        assert!(says.starts_with(&format!("{label}:")), "{resource}.{group}: {says}");
    }
    assert_eq!(Encryption::none().of("", "secrets").label(), "");
}
