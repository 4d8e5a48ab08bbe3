use std::sync::Arc;

/// A uid, small: the server gives objects random ones, but a reference may name anything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Uid {
    /// One as the server writes it.
    Uuid([u8; 16]),
    /// Any other text.
    Other(Arc<str>),
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        uuid(text.as_bytes()).map_or_else(|| Self::Other(text.into()), Self::Uuid)
    }
}

/// The bytes of a uid in the one form that the server writes; every other spelling is another uid.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    if text.len() != 36 || HYPHENS.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut digits = (0..36).filter(|at| !HYPHENS.contains(at)).map(|at| match text[at] {
        digit @ b'0'..=b'9' => Some(digit - b'0'),
        digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    });
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_equal_when_their_texts_are() {
        let usual = "0f8fad5b-d9cb-469f-a165-70867728950e";
        assert!(matches!(Uid::from(usual), Uid::Uuid([0x0f, 0x8f, .., 0x0e])));
        assert_eq!(Uid::from(usual), Uid::from(usual));
        for other in [
            "0F8FAD5B-D9CB-469F-A165-70867728950E",
            "0f8fad5b-d9cb-469f-a165-70867728950f",
            "0f8fad5bd9cb469fa16570867728950e",
            "0f8fad5b-d9cb-469f-a165-70867728950g",
            "0f8fad5b+d9cb-469f-a165-70867728950e",
            "",
            "é",
        ] {
            assert_ne!(Uid::from(usual), Uid::from(other), "{other}");
        }
    }
}
