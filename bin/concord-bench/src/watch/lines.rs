//! Cuts a stream of bytes into lines: a watch sends one event per line.

/// What is left of a line that has not ended yet.
#[derive(Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Passes on every line that ends in `data`; copies only what crosses the borders of frames.
    pub(super) fn push(&mut self, data: &[u8], mut line: impl FnMut(&[u8])) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', data) {
            if self.rest.is_empty() {
                line(&data[start..end]);
            } else {
                self.rest.extend_from_slice(&data[start..end]);
                line(&self.rest);
                self.rest.clear();
            }
            start = end + 1;
        }
        self.rest.extend_from_slice(&data[start..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_depend_on_frames() {
        let text = b"one\ntwo\n\nthree\nfour";
        for size in 1..=text.len() {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for frame in text.chunks(size) {
                lines.push(frame, |line| found.push(String::from_utf8_lossy(line).into_owned()));
            }
            assert_eq!(found, ["one", "two", "", "three"], "frames of {size}");
            assert_eq!(lines.rest, b"four");
        }
    }
}
