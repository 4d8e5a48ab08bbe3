//! The allocator, and what it does not need any more.

use std::{hint::black_box, time::Duration};

use tokio_util::sync::CancellationToken;

/// glibc's allocator returns little memory after bursts of large and small buffers side by side, which is
/// what watches make.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often memory is given back. The allocator waits for a second in case that it is needed again.
const PERIOD: Duration = Duration::from_secs(2);

/// More than fits into the pages that threads keep for small and middle-sized blocks.
const LARGE: usize = 4 << 20;

/// Gives memory back to the system after bursts.
///
/// The allocator looks at what it could give back only when it takes or returns a page. Nobody needs one in a server that has
/// become quiet, which would keep what the last documents took. So one is taken, and returned without having been touched.
pub(crate) async fn give_back(end: CancellationToken) {
    while end.run_until_cancelled(tokio::time::sleep(PERIOD)).await.is_some() {
        drop(black_box(Vec::<u8>::with_capacity(LARGE)));
    }
}
