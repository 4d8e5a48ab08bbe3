//! The tables in `facts/`.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
    fs,
    path::Path,
};

/// Texts by group and name, with the version they are for if not for all.
type Rows = HashMap<(String, String), Vec<(Option<String>, String)>>;

/// The lines of a table by group and struct.
struct Table(Rows);

/// What the tables say.
pub(crate) struct Facts {
    presence: Table,
    required: Table,
    embedded: Table,
    merging: Table,
    since: Table,
    until: Table,
    gated: Table,
    /// Go's names by field.
    go_types: Rows,
    keys: HashSet<String>,
    enums: Table,
    documents: Table,
}

/// A struct: where its facts are found.
#[derive(Clone, Copy)]
pub(crate) struct Struct<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) name: &'a str,
}

/// What is known of one field.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FieldFacts {
    pub(crate) presence: Option<char>,
    pub(crate) required: Option<bool>,
    pub(crate) embedded: Option<String>,
    /// `set`, or `map=` with keys.
    pub(crate) list: Option<String>,
    pub(crate) atomic: bool,
    /// `merge` or `replace`.
    pub(crate) strategy: Option<String>,
    pub(crate) merge_key: Option<String>,
    pub(crate) retain_keys: bool,
    pub(crate) default: Option<String>,
    pub(crate) go_types: Vec<String>,
    /// The release that introduced it.
    pub(crate) since: Option<String>,
    /// The last release that has it.
    pub(crate) until: Option<String>,
    /// The features that it belongs to.
    pub(crate) gate: Option<String>,
}

impl Facts {
    pub(crate) fn read(directory: &Path) -> Result<Self, Box<dyn Error>> {
        let read = |name: &str| fs::read_to_string(directory.join(name));
        let mut go_types = Rows::new();
        for (group, name, fields) in rows(&read("go-types.txt")?)? {
            for field in fields.split_whitespace() {
                let (version, field) = split_version(field);
                go_types.entry((group.clone(), field)).or_default().push((version, name.clone()));
            }
        }
        let presence = Table::parse(&read("presence.txt")?)?;
        let required = Table::parse(&read("required.txt")?)?;
        let embedded = Table::parse(&read("embedded.txt")?)?;
        let merging = Table::parse(&read("merging.txt")?)?;
        let since = Table::parse(&read("since.txt")?)?;
        let until = Table::parse(&read("until.txt")?)?;
        let gated = Table::parse(&read("gated.txt")?)?;
        let keys = merging.keys();
        let enums = Table::parse(&read("enums.txt")?)?;
        let documents = Table::parse(&read("documents.txt")?)?;
        Ok(Self {
            presence,
            required,
            embedded,
            merging,
            since,
            until,
            gated,
            go_types,
            keys,
            enums,
            documents,
        })
    }

    /// Whether some list tells its items apart by a field of this name.
    pub(crate) fn is_key(&self, name: &str) -> bool {
        self.keys.contains(name)
    }

    pub(crate) fn is_atomic(&self, structure: Struct<'_>) -> bool {
        self.merging.get(structure).split_whitespace().any(|word| word == "atomic")
    }

    pub(crate) fn field(&self, structure: Struct<'_>, name: &str) -> FieldFacts {
        let mut facts = FieldFacts {
            presence: listed(self.presence.get(structure), name).and_then(presence_code),
            required: listed(self.required.get(structure), name).map(|word| word == "required"),
            embedded: listed(self.embedded.get(structure), name).map(str::to_owned),
            go_types: self.go_types(structure, name),
            since: listed(self.since.get(structure), name).map(str::to_owned),
            until: listed(self.until.get(structure), name).map(str::to_owned),
            gate: listed(self.gated.get(structure), name).map(str::to_owned),
            ..FieldFacts::default()
        };
        merging(&mut facts, self.merging.get(structure), name);
        facts
    }

    /// The values of a type, which a field of this struct has.
    pub(crate) fn values(&self, structure: Struct<'_>, go_type: &str) -> Vec<String> {
        let (package, name) = go_type.rsplit_once('.').unwrap_or(("", go_type));
        let own = self.enums.get(Struct { name, ..structure });
        let core = Struct { group: "core", version: "v1", name };
        let values = if own.is_empty() && package == "v1" { self.enums.get(core) } else { own };
        let values = values.split(',').map(str::trim).filter(|value| !value.is_empty());
        values.map(|value| value.trim_matches('"').to_owned()).collect()
    }

    /// What else documents say of a struct and its fields: words of `facts/documents.txt`.
    pub(crate) fn documents(&self, structure: Struct<'_>) -> impl Iterator<Item = (&str, &str)> {
        self.documents.get(structure).split_whitespace().filter_map(|word| word.split_once('='))
    }

    fn go_types(&self, structure: Struct<'_>, name: &str) -> Vec<String> {
        let key = (structure.group.to_owned(), format!("{}.{name}", structure.name));
        let rows = self.go_types.get(&key).map_or(&[][..], Vec::as_slice);
        let own = |version: &Option<String>| version.as_deref().is_none_or(|only| only == structure.version);
        rows.iter().filter(|(version, _)| own(version)).map(|(_, name)| name.clone()).collect()
    }
}

/// Group, name before the colon, and the rest of every entry. Indented lines continue the one before.
fn rows(text: &str) -> Result<Vec<(String, String, String)>, String> {
    let mut rows: Vec<(String, String, String)> = Vec::new();
    let mut group = String::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut group);
        } else if let (Some(more), Some((_, _, rest))) = (line.strip_prefix("  "), rows.last_mut()) {
            rest.push(' ');
            rest.push_str(more);
        } else {
            let (name, rest) = line.split_once(": ").ok_or_else(|| format!("no colon: {line}"))?;
            rows.push((group.clone(), name.to_owned(), rest.to_owned()));
        }
    }
    Ok(rows)
}

/// A name may have a version before it: `v1beta1.DeviceTaint`.
fn split_version(name: &str) -> (Option<String>, String) {
    match name.split_once('.') {
        Some((version, rest)) if version.starts_with('v') => (Some(version.to_owned()), rest.to_owned()),
        _ => (None, name.to_owned()),
    }
}

impl Table {
    fn parse(text: &str) -> Result<Self, String> {
        let mut table = Rows::new();
        for (group, name, rest) in rows(text)? {
            let (version, name) = split_version(&name);
            table.entry((group, name)).or_default().push((version, rest));
        }
        Ok(Self(table))
    }

    /// All names in `map=`.
    fn keys(&self) -> HashSet<String> {
        let rests = self.0.values().flatten().map(|(_, rest)| rest);
        let words = rests.flat_map(|rest| rest.split(['(', ')', ' ']));
        let keys = words.filter_map(|word| word.strip_prefix("map="));
        keys.flat_map(|keys| keys.split(',')).map(str::to_owned).collect()
    }

    fn get(&self, structure: Struct<'_>) -> &str {
        let rows = self.0.get(&(structure.group.to_owned(), structure.name.to_owned()));
        let own = |(version, _): &&(Option<String>, String)| {
            version.as_deref().is_none_or(|only| only == structure.version)
        };
        rows.and_then(|rows| rows.iter().find(own)).map_or("", |(_, rest)| rest)
    }
}

/// The word of `word=a,b,c` that lists the name.
fn listed<'a>(rest: &'a str, name: &str) -> Option<&'a str> {
    let words = rest.split_whitespace().filter_map(|word| word.split_once('='));
    words.into_iter().find(|(_, names)| names.split(',').any(|listed| listed == name)).map(|(word, _)| word)
}

fn presence_code(word: &str) -> Option<char> {
    match word {
        "given" => Some('g'),
        "nonzero" => Some('z'),
        "always" => Some('a'),
        "null" => Some('n'),
        _ => None,
    }
}

/// Reads `name(map=a merge=b)` and `default.name=x`.
fn merging(facts: &mut FieldFacts, rest: &str, name: &str) {
    let default = format!("default.{name}=");
    facts.default = rest.split_whitespace().find_map(|word| word.strip_prefix(&default)).map(str::to_owned);
    let mut entries = rest.split(')').filter_map(|entry| entry.split_once('('));
    let Some((_, words)) = entries.find(|(before, _)| before.split_whitespace().next_back() == Some(name))
    else {
        return;
    };
    for word in words.split(' ') {
        let (word_name, value) =
            word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        match word_name {
            "atomic" => facts.atomic = true,
            "retain" => facts.retain_keys = true,
            "set" | "map" => facts.list = Some(word.to_owned()),
            "merge" | "replace" => {
                facts.strategy = Some(word_name.to_owned());
                let key = facts.list.as_deref().and_then(|list| list.strip_prefix("map="));
                facts.merge_key = value.or(key).map(str::to_owned);
            }
            _ => {}
        }
    }
}
