use crate::go;

const MAX_MANAGER: usize = 128;

/// The field manager of a request that names none: its user agent up to the first slash, what can be printed
/// of it, at most 128 bytes.
pub fn manager_of_user_agent(user_agent: &str) -> String {
    let product = user_agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for character in product.chars() {
        if manager.len() + character.len_utf8() > MAX_MANAGER {
            break;
        }
        if go::is_print(character) {
            manager.push(character);
        }
    }
    manager
}

#[cfg(test)]
mod tests {
    use super::manager_of_user_agent;

    #[test]
    fn the_product_is_the_manager() {
        assert_eq!(manager_of_user_agent("kubectl/v1.36.4 (linux/amd64) kubernetes/abc"), "kubectl");
        assert_eq!(manager_of_user_agent("a\tb c"), "ab c");
        assert_eq!(manager_of_user_agent(""), "");
        assert_eq!(manager_of_user_agent(&"é".repeat(100)).len(), 128);
    }
}
