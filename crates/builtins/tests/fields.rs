//! The tables of fields by release and by feature, against the schemas.

use std::collections::{BTreeMap, BTreeSet};

use concord_builtins::{FeatureGates, Release, schema_in, schemas};
use concord_schema::{Place, Shape};

/// Fields by group and struct, each with its features.
type Fields = BTreeMap<(String, String), BTreeMap<String, Vec<String>>>;

/// All structs of all kinds, as a release has them.
fn structs(release: Release) -> Fields {
    let mut fields = Fields::new();
    let mut seen = BTreeSet::new();
    let mut places: Vec<Place> = schemas()
        .filter_map(|(group, version, kind)| Some(schema_in(release, group, version, kind)?.place().clone()))
        .collect();
    while let Some(place) = places.pop() {
        match place.shape() {
            Shape::Map { values, .. } => places.push(place.at(*values)),
            Shape::List { items, .. } => places.push(place.at(*items)),
            Shape::Struct { fields: declared, .. } => {
                let Some(definition) = place.definition() else { continue };
                if !seen.insert(definition.to_owned()) {
                    continue;
                }
                let mut parts = definition.rsplit('.');
                let (name, group) = (parts.next().unwrap_or_default(), parts.nth(1).unwrap_or_default());
                let of = fields.entry((group.to_owned(), name.to_owned())).or_default();
                for field in declared {
                    let features = field.features().map(str::to_owned).collect();
                    of.insert(field.name().to_owned(), features);
                    places.push(place.at(field.ty()));
                }
            }
            Shape::Either { .. } | Shape::Scalar(_) => {}
        }
    }
    fields
}

/// Group, struct, word and field of every entry of a table.
fn rows(text: &str) -> Vec<[String; 4]> {
    let (mut group, mut name) = ("", "");
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            group = heading;
            continue;
        }
        let words = match line.strip_prefix("  ") {
            Some(words) => words,
            None => {
                let (of, words) = line.split_once(": ").expect("a struct and its fields");
                name = of.rsplit('.').next().unwrap_or(of);
                words
            }
        };
        for (word, fields) in words.split(' ').filter_map(|word| word.split_once('=')) {
            rows.extend(fields.split(',').map(|field| [group, name, word, field].map(str::to_owned)));
        }
    }
    rows
}

#[test]
fn fields_are_known_from_the_release_that_introduced_them() {
    let known: Vec<(Release, Fields)> = Release::all().map(|release| (release, structs(release))).collect();
    let gone = rows(include_str!("../facts/until.txt"));
    let rows = rows(include_str!("../facts/since.txt"));
    assert!(rows.len() > 40, "{} fields", rows.len());
    let is_gone = |row: &[String; 4]| gone.iter().any(|gone| gone[..2] == row[..2] && gone[3] == row[3]);
    for [group, name, since, field] in rows.into_iter().filter(|row| !is_gone(row)) {
        let since: Release = since.parse().expect("a release");
        for (release, fields) in &known {
            let is_known =
                fields.get(&(group.clone(), name.clone())).is_some_and(|of| of.contains_key(&field));
            // A struct that is reached through a newer field only is not there at all.
            let must = *release == Release::LATEST || *release < since;
            assert!(!must || is_known == (*release >= since), "{release}: {group} {name}.{field}");
        }
    }
}

#[test]
fn fields_are_known_to_the_last_release_that_had_them() {
    let rows = rows(include_str!("../facts/until.txt"));
    assert!(rows.len() > 2, "{} fields", rows.len());
    for [group, name, until, field] in rows {
        let until: Release = until.parse().expect("a release");
        for release in Release::all().filter(|release| *release >= until) {
            let fields = structs(release);
            let is_known =
                fields.get(&(group.clone(), name.clone())).is_some_and(|of| of.contains_key(&field));
            assert_eq!(is_known, release == until, "{release}: {group} {name}.{field}");
        }
    }
}

#[test]
fn fields_belong_to_features_that_exist() {
    // Of any release: some are gone from the newest.
    let mut known = Fields::new();
    for (of, fields) in Release::all().flat_map(structs) {
        known.entry(of).or_default().extend(fields);
    }
    let gates = FeatureGates::of(Release::LATEST);
    let rows = rows(include_str!("../facts/gated.txt"));
    assert!(rows.len() > 70, "{} fields", rows.len());
    for [group, name, gate, field] in rows {
        for gate in gate.split('+') {
            assert!(gates.iter().any(|(known, _)| known == gate), "{gate}");
        }
        let features = known.get(&(group.clone(), name.clone())).and_then(|of| of.get(&field));
        let features = features.unwrap_or_else(|| panic!("{group} {name} has no {field}"));
        assert_eq!(features.join("+"), gate, "{group} {name}.{field}");
    }
}
