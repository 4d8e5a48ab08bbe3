//! Which names a definition gets.

use concord_meta::go;

use crate::definition::Names;

/// Which names other definitions of the group have.
pub(crate) trait Taken {
    /// Whether one of them has this name as its plural, singular or one of its short names.
    fn has_resource(&self, name: &str) -> bool;
    /// Whether one of them has this name for its objects or lists.
    fn has_kind(&self, name: &str) -> bool;
}

/// Why not all names were accepted: a reason and a text.
pub(crate) type Conflict = (&'static str, String);

/// Gives a definition the names it wants as far as nobody else has them; it keeps those that it has. Of several
/// conflicts the last is told, as upstream does.
pub(crate) fn accept(wanted: &Names, accepted: &Names, taken: &impl Taken) -> (Names, Option<Conflict>) {
    let mut names = accepted.clone();
    let (resource, kind) = (|name: &str| taken.has_resource(name), |name: &str| taken.has_kind(name));
    let short = short_names(wanted, accepted, resource);
    if short.is_none() {
        names.short_names.clone_from(&wanted.short_names);
    }
    names.categories.clone_from(&wanted.categories);
    let conflicts = [
        ("PluralConflict", claim(&wanted.plural, &mut names.plural, resource)),
        ("SingularConflict", claim(&wanted.singular, &mut names.singular, resource)),
        ("ShortNamesConflict", short),
        ("KindConflict", claim(&wanted.kind, &mut names.kind, kind)),
        ("ListKindConflict", claim(&wanted.list_kind, &mut names.list_kind, kind)),
    ];
    let last = conflicts.into_iter().rev().find_map(|(reason, text)| Some((reason, text?)));
    (names, last)
}

/// Takes a name unless another definition has it.
fn claim(wanted: &str, had: &mut String, taken: impl Fn(&str) -> bool) -> Option<String> {
    if wanted != had && taken(wanted) {
        return Some(in_use(wanted));
    }
    wanted.clone_into(had);
    None
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", go::quote(name))
}

/// What is wrong with the short names, if anything.
fn short_names(wanted: &Names, accepted: &Names, taken: impl Fn(&str) -> bool) -> Option<String> {
    let new = wanted.short_names.iter().filter(|name| !accepted.short_names.contains(name));
    let mut texts: Vec<String> = Vec::new();
    for text in new.filter(|name| taken(name)).map(|name| in_use(name)) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Others(Vec<Names>);

    impl Taken for Others {
        fn has_resource(&self, name: &str) -> bool {
            let short = |names: &Names| names.short_names.iter().any(|short| short == name);
            self.0.iter().any(|names| names.plural == name || names.singular == name || short(names))
        }

        fn has_kind(&self, name: &str) -> bool {
            self.0.iter().any(|names| names.kind == name || names.list_kind == name)
        }
    }

    fn names(plural: &str, singular: &str, kind: &str, short: &[&str]) -> Names {
        Names {
            plural: plural.to_owned(),
            singular: singular.to_owned(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            short_names: short.iter().map(|name| (*name).to_owned()).collect(),
            categories: vec!["all".to_owned()],
        }
    }

    #[test]
    fn free_names_are_accepted() {
        let wanted = names("foos", "foo", "Foo", &["f"]);
        assert_eq!(accept(&wanted, &Names::default(), &Others::default()), (wanted, None));
    }

    #[test]
    fn names_of_others_are_not() {
        let taken = Others(vec![names("bars", "foo", "Bar", &["f", "g"])]);
        let wanted = names("foos", "foo", "Foo", &["f", "g", "h"]);
        let (accepted, conflict) = accept(&wanted, &Names::default(), &taken);
        assert_eq!((accepted.plural.as_str(), accepted.singular.as_str()), ("foos", ""));
        assert_eq!(accepted.short_names, Vec::<String>::new());
        let text = "[\"f\" is already in use, \"g\" is already in use]".to_owned();
        assert_eq!(conflict, Some(("ShortNamesConflict", text)));
        let wanted = names("foos", "foo", "Bar", &[]);
        let (accepted, conflict) = accept(&wanted, &Names::default(), &taken);
        assert_eq!(
            (accepted.kind.as_str(), conflict),
            ("", Some(("ListKindConflict", "\"BarList\" is already in use".to_owned())))
        );
    }

    #[test]
    fn each_name_that_is_taken_is_told() {
        let taken = Others(vec![names("bars", "bar", "Bar", &["b"])]);
        let free = names("foos", "foo", "Foo", &["f"]);
        let text = |name: &str| name.to_owned();
        let listed = Names { list_kind: text("Bar"), ..free.clone() };
        let table = [
            (Names { plural: text("bars"), ..free.clone() }, "PluralConflict", r#""bars" is already in use"#),
            (Names { singular: text("b"), ..free.clone() }, "SingularConflict", r#""b" is already in use"#),
            (
                Names { short_names: vec![text("bar")], ..free.clone() },
                "ShortNamesConflict",
                r#""bar" is already in use"#,
            ),
            (
                Names { kind: text("BarList"), ..free.clone() },
                "KindConflict",
                r#""BarList" is already in use"#,
            ),
            (listed, "ListKindConflict", r#""Bar" is already in use"#),
        ];
        for (wanted, reason, message) in table {
            let (accepted, conflict) = accept(&wanted, &Names::default(), &taken);
            assert_eq!(conflict, Some((reason, message.to_owned())));
            let same = [
                accepted.plural == wanted.plural,
                accepted.singular == wanted.singular,
                accepted.short_names == wanted.short_names,
                accepted.kind == wanted.kind,
                accepted.list_kind == wanted.list_kind,
            ];
            assert_eq!(same.iter().filter(|same| !**same).count(), 1, "{reason}: the others are accepted");
        }
    }

    #[test]
    fn names_that_one_has_are_kept() {
        let mine = names("foos", "foo", "Foo", &["f"]);
        let taken = Others(vec![mine.clone()]);
        assert_eq!(accept(&mine, &mine, &taken), (mine.clone(), None));
    }
}
