//! The declared functions: the table `facts/functions.txt`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::types::Type;
use crate::version::Version;

const TABLE: &str = include_str!("../facts/functions.txt");

/// One signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    /// Its id, which cost and evaluation go by.
    pub(crate) id: &'static str,
    pub(crate) since: Version,
    /// Whether it is called on a receiver, which is then the first argument.
    pub(crate) member: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
    /// Whether a type parameter occurs.
    pub(crate) generic: bool,
}

/// The overloads of a function in this version, in order.
pub(crate) fn overloads(name: &str, version: Version) -> impl Iterator<Item = &'static Overload> {
    let all = FUNCTIONS.get(name).map_or(&[][..], Vec::as_slice);
    all.iter().filter(move |overload| overload.since <= version)
}

static FUNCTIONS: LazyLock<BTreeMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: BTreeMap<&str, Vec<Overload>> = BTreeMap::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        // The table is part of the program; a test reads all of it.
        let (name, overload) = parse_line(line).unwrap_or_else(|| panic!("functions.txt: {line}"));
        functions.entry(name).or_default().push(overload);
    }
    functions
});

fn parse_line(line: &'static str) -> Option<(&'static str, Overload)> {
    let mut words = line.splitn(5, ' ');
    let (major, minor) = words.next()?.split_once('.')?;
    let since = Version::new(major.parse().ok()?, minor.parse().ok()?);
    let name = words.next()?;
    let id = words.next()?;
    let member = words.next()? == "member";
    let (args, result) = words.next()?.split_once(" -> ")?;
    let args = parse_types(args.strip_prefix('(')?.strip_suffix(')')?)?;
    let result = parse_type(result)?;
    let generic = args.iter().chain([&result]).any(has_param);
    Some((name, Overload { id, since, member, args, result, generic }))
}

fn has_param(of: &Type) -> bool {
    match of {
        Type::Param(_) => true,
        Type::List(element) => has_param(element),
        Type::Map(key, value) => has_param(key) || has_param(value),
        Type::Opaque(_, params) => params.iter().any(has_param),
        Type::Type(inner) => inner.as_deref().is_some_and(has_param),
        _ => false,
    }
}

/// Types separated by commas; none for nothing.
fn parse_types(text: &str) -> Option<Vec<Type>> {
    let mut types = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                types.push(parse_type(&text[start..i])?);
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        types.push(parse_type(&text[start..])?);
    }
    Some(types)
}

fn parse_type(text: &str) -> Option<Type> {
    let text = text.trim();
    let simple = match text {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        _ if text.len() == 1 => Type::Param(Arc::from(text)),
        _ => return parse_compound(text),
    };
    Some(simple)
}

fn parse_compound(text: &str) -> Option<Type> {
    let Some((name, rest)) = text.split_once('(') else {
        return Some(Type::Opaque(Arc::from(text), Vec::new()));
    };
    let mut params = parse_types(rest.strip_suffix(')')?)?;
    Some(match (name, params.len()) {
        ("list", 1) => Type::list(params.remove(0)),
        ("map", 2) => Type::map(params.remove(0), params.remove(0)),
        ("type", 1) => Type::Type(Some(Arc::new(params.remove(0)))),
        _ => Type::Opaque(Arc::from(name), params),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads() {
        assert!(FUNCTIONS.len() > 120, "{}", FUNCTIONS.len());
        let in_map = overloads("@in", Version::CURRENT).nth(1).expect("in_map");
        assert_eq!(
            (in_map.id, in_map.generic, in_map.args[1].to_string()),
            ("in_map", true, "map(A, B)".into())
        );
        assert_eq!(overloads("sets.contains", Version::new(1, 28)).count(), 0);
        assert_eq!(overloads("sets.contains", Version::new(1, 29)).count(), 1);
    }
}
