//! How many seats a request takes, as upstream estimates it.

use concord_server::RequestInfo;

use crate::Queuing;

/// What is read for one seat, in bytes.
const BYTES_PER_SEAT: usize = 100_000;

/// What is in memory at once of a list that is sent while it is read, in bytes.
const MOST_BYTES: usize = 1_000_000;

/// Knows how large answers are.
pub trait AnswerSizes: Send + Sync + 'static {
    /// How many bytes a list reads, counted only up to `most`; 0 if that is not known.
    fn list_bytes(&self, request: &RequestInfo, most: usize) -> usize;
}

/// How many seats one request of a level can take: a part of those that are its own, so that others run beside it.
pub(crate) fn most_seats(nominal: u32, queuing: Option<Queuing>) -> u32 {
    let hand = queuing.map_or(1, |queuing| queuing.hand_size).max(1);
    let part = u64::from(nominal).saturating_mul(15).div_ceil(100);
    u32::try_from(part).unwrap_or(u32::MAX).min(nominal / hand).max(1)
}

/// How many seats a request takes of a level where one can take `most`.
pub(crate) fn seats(request: &RequestInfo, most: u32, sizes: Option<&dyn AnswerSizes>) -> u32 {
    let (Some(sizes), true) = (sizes, most > 1 && request.is_resource_request) else { return 1 };
    // One object is not a list, however it is asked for.
    if request.verb != "list" || !request.name.is_empty() {
        return 1;
    }
    let bytes = sizes.list_bytes(request, MOST_BYTES).min(MOST_BYTES);
    u32::try_from(bytes.div_ceil(BYTES_PER_SEAT)).unwrap_or(u32::MAX).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(usize);

    impl AnswerSizes for Fixed {
        fn list_bytes(&self, _: &RequestInfo, most: usize) -> usize {
            self.0.min(most)
        }
    }

    #[test]
    fn lists_take_seats_by_their_size() {
        let list = RequestInfo { is_resource_request: true, verb: "list".into(), ..RequestInfo::default() };
        let taken = |request: &RequestInfo, most, bytes| seats(request, most, Some(&Fixed(bytes)));
        for (bytes, most, expected) in
            [(0, 10, 1), (1, 10, 1), (100_000, 10, 1), (100_001, 10, 2), (1 << 30, 20, 10), (1 << 30, 3, 3)]
        {
            assert_eq!(taken(&list, most, bytes), expected, "{bytes} of {most}");
        }
        let one = RequestInfo { name: "a".to_owned(), ..list.clone() };
        let get = RequestInfo { verb: "get".into(), ..list.clone() };
        assert_eq!((taken(&one, 10, 1 << 30), taken(&get, 10, 1 << 30), seats(&list, 10, None)), (1, 1, 1));
    }

    #[test]
    fn no_request_takes_a_level_for_itself() {
        let queuing = |hand_size| Some(Queuing { queues: 64, hand_size, queue_length_limit: 50 });
        for (nominal, hand, expected) in
            [(0, 6, 1), (5, 6, 1), (49, 6, 8), (245, 6, 37), (245, 1, 37), (40, 8, 5)]
        {
            assert_eq!(most_seats(nominal, queuing(hand)), expected, "{nominal} {hand}");
        }
        assert_eq!(most_seats(13, None), 2);
    }
}
