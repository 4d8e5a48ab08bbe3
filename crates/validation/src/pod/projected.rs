//! Volumes that bring several sources together. Bundles of trust anchors and certificates of pods are behind gates
//! that are off: such sources are left out without a word.

use super::{Options, sources::key_to_path, volumes::downward_api_file};
use crate::{node::Node, rules::local_non_reserved_path};

const CONFLICT: &str = "conflicting duplicate paths";

/// The paths that are taken already.
struct Paths<'v> {
    volume: Node<'v>,
    taken: Vec<&'v str>,
}

impl<'v> Paths<'v> {
    fn take(&mut self, path: &'v str, shown: &str) {
        match self.taken.contains(&path) {
            true => self.volume.invalid(shown, CONFLICT),
            false => self.taken.push(path),
        }
    }
}

pub(super) fn projected<'v>(volume: Node<'v>, options: &Options<'v>) {
    volume.get("defaultMode").file_mode();
    let mut paths = Paths { volume, taken: Vec::new() };
    for source in volume.get("sources").items() {
        let mut count = 0;
        let mut given = |name: &'static str| {
            let found = source.has(name);
            count += usize::from(found);
            found.then(|| source.get(name))
        };
        for files in [given("secret"), given("configMap")].into_iter().flatten() {
            keys(files, &mut paths);
        }
        if let Some(files) = given("downwardAPI") {
            for file in files.get("items").items() {
                downward_api_file(file, files);
                if !file.str("path").is_empty() {
                    paths.take(file.str("path"), file.str("path"));
                }
            }
        }
        if let Some(token) = given("serviceAccountToken") {
            service_account_token(token, volume, options);
        }
        if count > 1 {
            source.forbidden("may not specify more than 1 volume type per source");
        }
    }
}

fn keys<'v>(files: Node<'v>, paths: &mut Paths<'v>) {
    files.need(&["name"]);
    for item in files.get("items").items() {
        key_to_path(item);
        if !item.str("path").is_empty() {
            paths.take(item.str("path"), files.str("name"));
        }
    }
}

fn service_account_token<'v>(token: Node<'v>, volume: Node<'v>, options: &Options<'v>) {
    let seconds = token.get("expirationSeconds");
    let number = seconds.int().unwrap_or_default();
    if number < 600 {
        seconds.invalid(number, "may not specify a duration less than 10 minutes");
    }
    if number > 1 << 32 {
        seconds.invalid(number, "may not specify a duration larger than 2^32 seconds");
    }
    let path = volume.child("path");
    match token.str("path") {
        "" => path.required(""),
        _ if options.non_local_token_path => {}
        text => local_non_reserved_path(path, text),
    }
}
