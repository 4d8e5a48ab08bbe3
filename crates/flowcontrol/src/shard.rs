//! Shuffle sharding: each flow may use a few of the queues, and hardly any two flows the same ones.

/// The queues that a flow may use: the cards of its hand, each once. `flow` is a hash of what tells flows apart.
///
/// The hand is dealt as upstream's: each card is drawn from those that are left, by one digit of the hash in a number
/// system with a shrinking base.
pub(crate) fn hand(flow: u64, queues: usize, size: usize) -> impl Iterator<Item = usize> {
    let mut dealt: Vec<usize> = Vec::with_capacity(size.min(queues));
    let mut hash = flow;
    (0..size.min(queues)).map(move |index| {
        let left = (queues - index) as u64;
        let mut card = (hash % left) as usize;
        hash /= left;
        // The card-th of those that are left: every card dealt before that is not above it makes way.
        for earlier in &dealt {
            if *earlier <= card {
                card += 1;
            }
        }
        let at = dealt.partition_point(|earlier| *earlier < card);
        dealt.insert(at, card);
        card
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_hand_has_each_card_once_and_no_other() {
        for flow in (0..5000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            for (queues, size) in [(1, 1), (4, 4), (64, 6), (128, 6), (3, 9)] {
                let dealt: Vec<usize> = hand(flow, queues, size).collect();
                let distinct: BTreeSet<_> = dealt.iter().copied().collect();
                assert_eq!(distinct.len(), size.min(queues), "{flow} {queues} {size}: {dealt:?}");
                assert!(dealt.iter().all(|card| *card < queues), "{dealt:?}");
            }
        }
    }

    #[test]
    fn hands_are_spread_over_all_queues() {
        let mut used = [0_usize; 64];
        for flow in (0..6400_u64).map(|number| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            hand(flow, 64, 6).for_each(|card| used[card] += 1);
        }
        let (least, most) = (used.iter().min().copied(), used.iter().max().copied());
        assert!(least > Some(450) && most < Some(750), "600 each would be even: {least:?} to {most:?}");
    }
}
