//! The names of a resource.

use concord_meta::{
    field::{Error, Path},
    names::dns1035_label,
};

use crate::{props::Props, resource::kind_problem};

/// What is wrong with the names at `path`. None of them has to be given.
pub(super) fn validate(names: Props<'_>, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    for name in ["plural", "singular"] {
        let text = names.text(name);
        errors.extend(label_error(text, &path.child(name)).filter(|_| !text.is_empty()));
    }
    for name in ["kind", "listKind"] {
        let text = names.text(name);
        let problem = kind_problem(text).filter(|_| !text.is_empty());
        errors.extend(problem.map(|problem| Error::invalid(&path.child(name), text, problem)));
    }
    errors.extend(each(names, "shortNames", path));
    let (kind, list_kind) = (names.text("kind"), names.text("listKind"));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(Error::invalid(&path.child("listKind"), list_kind, detail));
    }
    errors.extend(each(names, "categories", path));
    errors
}

fn each(names: Props<'_>, list: &str, path: &Path) -> Vec<Error> {
    let path = path.child(list);
    let texts = names.texts(list).enumerate();
    texts.filter_map(|(index, text)| label_error(text, &path.index(index))).collect()
}

fn label_error(text: &str, path: &Path) -> Option<Error> {
    let problems = dns1035_label(text);
    (!problems.is_empty()).then(|| Error::invalid(path, text, problems.join(",")))
}
