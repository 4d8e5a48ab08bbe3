//! One order out of several.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashSet},
};

/// Merges lists into one in which names keep the order they have in each of them. Where no list says which of two names
/// comes first, `compare` does.
///
/// kube-apiserver's rule: names that stand next to each other are an edge of a graph, which is sorted topologically; a list
/// that has all names is taken as it is. Where lists contradict each other, kube-apiserver sorts everything by name, which
/// would throw all priorities away: here the first list keeps its order, and what it lacks follows in the order of the others.
pub(crate) fn merged_order(lists: &[Vec<&str>], compare: fn(&str, &str) -> Ordering) -> Vec<String> {
    let names: BTreeSet<&str> = lists.iter().flatten().copied().collect();
    let complete = |list: &&Vec<&str>| {
        list.len() == names.len() && list.iter().copied().collect::<HashSet<_>>().len() == names.len()
    };
    if let Some(list) = lists.iter().find(complete) {
        return owned(list);
    }
    sorted(lists, &names, compare).unwrap_or_else(|| appended(lists))
}

/// The names sorted topologically; `None` if the lists contradict each other.
fn sorted(
    lists: &[Vec<&str>],
    names: &BTreeSet<&str>,
    compare: fn(&str, &str) -> Ordering,
) -> Option<Vec<String>> {
    let edges: BTreeSet<(&str, &str)> =
        lists.iter().flat_map(|list| list.windows(2).map(|pair| (pair[0], pair[1]))).collect();
    let mut before: BTreeMap<&str, usize> = names.iter().map(|name| (*name, 0)).collect();
    for (_, after) in &edges {
        *before.entry(after).or_default() += 1;
    }
    let mut ready: Vec<&str> = names.iter().copied().filter(|name| before[name] == 0).collect();
    let mut order = Vec::with_capacity(names.len());
    while let Some(least) = (0..ready.len()).min_by(|one, other| compare(ready[*one], ready[*other])) {
        let name = ready.swap_remove(least);
        order.push(name);
        for (_, after) in edges.range((name, "")..).take_while(|(from, _)| *from == name) {
            let count = before.entry(after).or_default();
            *count -= 1;
            if *count == 0 {
                ready.push(after);
            }
        }
    }
    (order.len() == names.len()).then(|| owned(&order))
}

/// All names in the order in which they are first mentioned.
fn appended(lists: &[Vec<&str>]) -> Vec<String> {
    let mut seen = HashSet::new();
    let order: Vec<&str> = lists.iter().flatten().copied().filter(|name| seen.insert(*name)).collect();
    owned(&order)
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use concord_meta::compare_kube_aware_versions;

    use super::*;

    fn order(lists: &[&str], compare: fn(&str, &str) -> Ordering) -> String {
        let lists: Vec<Vec<&str>> = lists.iter().map(|list| list.split_whitespace().collect()).collect();
        merged_order(&lists, compare).join(" ")
    }

    #[test]
    fn lists_keep_their_order() {
        for (lists, expected) in [
            (&[][..], ""),
            (&["", ""], ""),
            (&["b a"], "b a"),
            (&["a b c", "b c"], "a b c"),
            (&["a c", "b c"], "a b c"),
            (&["A B C D", "A B C D", "A X Z D", "Z Y", "Q"], "A B C Q X Z D Y"),
            // A list with all names is taken as it is, also where another one says otherwise.
            (&["A B", "B A"], "A B"),
            (&["A B C", "B C A", "C A B"], "A B C"),
            (&["b", "c b a"], "c b a"),
            // A contradiction: the first list, then what the others add.
            (&["A B", "C D", "B A"], "A B C D"),
            (&["z y", "y x", "x z"], "z y x"),
            // A name twice in a list contradicts itself.
            (&["a b a", "c"], "a b c"),
        ] {
            assert_eq!(order(lists, str::cmp), expected, "{lists:?}");
        }
    }

    #[test]
    fn versions_that_no_list_compares_are_ordered_by_maturity() {
        let newest_first = |a: &str, b: &str| compare_kube_aware_versions(b, a);
        for (lists, expected) in [
            (&["v1alpha1", "v1beta1"][..], "v1beta1 v1alpha1"),
            (&["v9", "v10"], "v10 v9"),
            (&["v1", "v2"], "v2 v1"),
            (&["v1 v1beta1", "v1 v1alpha1"], "v1 v1beta1 v1alpha1"),
        ] {
            assert_eq!(order(lists, newest_first), expected, "{lists:?}");
        }
    }
}
