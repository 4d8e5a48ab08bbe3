use std::sync::Arc;

/// Those who watch a resource at the moment: whoever holds one of these is counted.
#[derive(Debug, Default, Clone)]
pub struct Audience(Arc<()>);

impl Audience {
    /// How many watch, besides the resource itself that holds the first one.
    pub fn size(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_are_counted_who_are_there() {
        let audience = Audience::default();
        let watchers = vec![audience.clone(); 3];
        assert_eq!(audience.size(), watchers.len());
        drop(watchers);
        assert_eq!(audience.size(), 0);
    }
}
