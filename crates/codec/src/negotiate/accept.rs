//! The `Accept` header as upstream's goautoneg reads it.

/// Further clauses of a header are not looked at; clients send a handful.
const MAX_CLAUSES: usize = 64;

/// One alternative of the header.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause<'a> {
    pub(super) kind: &'a str,
    pub(super) subtype: &'a str,
    quality: f32,
    pub(super) parameters: Vec<(&'a str, &'a str)>,
}

impl Clause<'_> {
    /// Upstream's comparison, which is no order: a lower quality still precedes a wildcard.
    fn precedes(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }
}

/// The clauses in the order they are tried.
pub(super) fn parse(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<_> = header.split(',').take(MAX_CLAUSES).filter_map(clause).collect();
    // Go sorts few elements by insertion. As the comparison is no order, the way of sorting shows.
    for n in 1..clauses.len() {
        let mut at = n;
        while at > 0 && clauses[at].precedes(&clauses[at - 1]) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = trim(text).split(';');
    let range = parts.next()?;
    let (kind, subtype) = match range.split_once('/') {
        Some((kind, subtype)) if !subtype.is_empty() => (trim(kind), subtype),
        // A lone star is `*/*`.
        _ if trim(range.trim_end_matches('/')) == "*" => ("*", "*"),
        _ => return None,
    };
    // What follows a second slash is refused, an empty rest is not.
    let subtype = match subtype.split_once('/') {
        Some((_, rest)) if !rest.is_empty() => return None,
        Some((subtype, _)) => subtype,
        None => subtype,
    };
    let mut clause = Clause { kind, subtype: trim(subtype), quality: 1.0, parameters: Vec::new() };
    for (name, value) in parts.filter_map(parameter) {
        if name == "q" {
            clause.quality = value.parse().unwrap_or(0.0);
        } else {
            clause.parameters.push((name, trim(value)));
        }
    }
    Some(clause)
}

fn parameter(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let (value, rest) = value.split_once('=').unwrap_or((value, ""));
    (!value.is_empty() && rest.is_empty()).then_some((trim(name), value))
}

fn trim(text: &str) -> &str {
    text.trim_matches(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(header: &str) -> Vec<String> {
        let clauses = parse(header);
        clauses.iter().map(|clause| format!("{}/{}", clause.kind, clause.subtype)).collect()
    }

    #[test]
    fn clauses_are_ordered_as_upstream_orders_them() {
        let cases: [(&str, &[&str]); 8] = [
            ("a/b, c/d", &["a/b", "c/d"]),
            ("a/b;q=0.5, c/d;q=0.9", &["c/d", "a/b"]),
            ("*/*, a/b;q=0.1", &["a/b", "*/*"]),
            ("a/*, a/b", &["a/b", "a/*"]),
            ("*", &["*/*"]),
            ("a, a/, a/b/c, /, a/b/", &["a/b"]),
            ("", &[]),
            (",,", &[]),
        ];
        for (header, expected) in cases {
            assert_eq!(order(header), expected, "{header}");
        }
    }

    #[test]
    fn parameters_are_read() {
        let clauses = parse("application/json; as=Table ;v=v1;q=0.5; g = meta.k8s.io;x;y=;z=1=2");
        assert_eq!(clauses[0].parameters, [("as", "Table"), ("v", "v1"), ("g", "meta.k8s.io")]);
        assert!((clauses[0].quality - 0.5).abs() < f32::EPSILON);
    }

    #[test]
    fn an_absurd_header_costs_little() {
        assert_eq!(parse(&"a/b;q=0.1,".repeat(100_000)).len(), MAX_CLAUSES);
    }
}
