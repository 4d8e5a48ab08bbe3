//! What no server may tell, whatever it is put through: looked for in the output of every server that a test starts.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Shorter ones are words that anybody may use.
const SHORTEST: usize = 12;

/// How tokens of service accounts, and private keys in files, begin.
const MARKS: [&str; 5] = ["eyJhbGciOi", "PRIVATE KEY-----", "Bearer ey", CANARY, CANARY_ENCODED];

/// What tests put into Secrets.
pub(crate) const CANARY: &str = "a-canary-in-a-secret";

/// The same as it is sent and stored.
pub(crate) const CANARY_ENCODED: &str = "YS1jYW5hcnktaW4tYS1zZWNyZXQ=";

/// Where a server has its secrets, and where it writes besides its output.
pub(super) struct Secrets {
    keys: Vec<PathBuf>,
    tokens: Option<PathBuf>,
    encryption: Option<PathBuf>,
    audit_log: Option<PathBuf>,
}

impl Secrets {
    /// Of a program with these arguments. Other programs than a server may have been asked to print keys.
    pub(super) fn of(arguments: &[&str]) -> Option<Self> {
        if arguments.first() != Some(&"serve") {
            return None;
        }
        let value = |flag: &str| {
            let with = |(at, argument): (usize, &&str)| {
                let rest = argument.strip_prefix(flag)?;
                match rest.strip_prefix('=') {
                    Some(value) => Some(PathBuf::from(value)),
                    None if rest.is_empty() => arguments.get(at + 1).map(PathBuf::from),
                    None => None,
                }
            };
            arguments.iter().enumerate().find_map(with)
        };
        let own = value("--data-dir").map(|data| data.join("pki"));
        Some(Self {
            keys: own.into_iter().chain(value("--pki-dir")).collect(),
            tokens: value("--token-auth-file"),
            encryption: value("--encryption-provider-config"),
            audit_log: value("--audit-log-path"),
        })
    }

    /// Panics if something of it is in the output. Directories that are gone keep their secrets.
    pub(super) fn assert_kept(&self, stdout: &str, stderr: &str) {
        let read = |path: &Option<PathBuf>| path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        let mut hidden: Vec<String> = self.keys.iter().flat_map(|pki| key_material(pki)).collect();
        let tokens = read(&self.tokens).unwrap_or_default();
        hidden.extend(tokens.lines().filter_map(|line| line.split(',').next()).map(str::to_owned));
        let encryption = read(&self.encryption).unwrap_or_default();
        hidden.extend(encryption.lines().filter_map(|line| line.split_once("secret:")).map(|of| {
            let quotes: &[char] = &[' ', '"', '}'];
            of.1.trim_matches(quotes).to_owned()
        }));
        hidden.retain(|secret| secret.len() >= SHORTEST);
        let audited = read(&self.audit_log).unwrap_or_default();
        for (output, text) in [("standard output", stdout), ("log", stderr), ("audit log", &audited)] {
            let found = hidden.iter().find(|secret| text.contains(secret.as_str()));
            assert_eq!(found, None, "in the {output}");
            let mark = MARKS.into_iter().find(|mark| text.contains(mark));
            assert_eq!(mark, None, "in the {output}");
        }
    }
}

/// The lines of all private keys in a directory.
pub(crate) fn key_material(pki: &Path) -> Vec<String> {
    let entries = fs::read_dir(pki).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let keys = paths.filter(|path| path.extension().is_some_and(|extension| extension == "key"));
    let texts = keys.filter_map(|path| fs::read_to_string(path).ok());
    texts
        .flat_map(|text| {
            text.lines().filter(|line| line.len() > 40).map(str::to_owned).collect::<Vec<String>>()
        })
        .collect()
}

#[test]
fn what_is_told_is_found() {
    let place = tempfile::tempdir().expect("a directory");
    let key = "MHcCAQEEIPtF8X0qvJx5sZkGxvJb8m2WkH3n1uYp4rQd9cE7tL6aoAoGCCqG";
    fs::create_dir(place.path().join("pki")).expect("a directory");
    fs::write(place.path().join("pki/ca.key"), format!("-----BEGIN-----\n{key}\n")).expect("written");
    let tokens = place.path().join("tokens.csv");
    fs::write(&tokens, "a-token-of-alice,alice,1\n").expect("written");
    let tokens = format!("--token-auth-file={}", tokens.display());
    let audit_log = place.path().join("audit.log");
    let audit = format!("--audit-log-path={}", audit_log.display());
    let arguments = ["serve", "--data-dir", place.path().to_str().expect("text"), &tokens, &audit];
    let secrets = Secrets::of(&arguments).expect("a server");
    let is_kept = |stderr: &str| {
        std::panic::catch_unwind(|| secrets.assert_kept("https://127.0.0.1:6443", stderr)).is_ok()
    };
    assert!(is_kept("a server said something harmless"));
    let marked = ["eyJhbGciOiJFUzI1NiJ9", "-----BEGIN EC PRIVATE KEY-----", CANARY, CANARY_ENCODED];
    for told in marked.into_iter().chain([key, "for a-token-of-alice"]) {
        assert!(!is_kept(&format!("DEBUG {told}")), "{told}");
        fs::write(&audit_log, format!("{{\"message\":\"{told}\"}}\n")).expect("written");
        assert!(!is_kept(""), "{told} in the audit log");
        fs::remove_file(&audit_log).expect("removed");
    }
    assert!(Secrets::of(&["kubeconfig"]).is_none(), "who asks for keys may get them");
}
