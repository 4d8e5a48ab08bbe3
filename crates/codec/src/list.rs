use crate::{
    json::write_string,
    splice::{Splice, TypeFields},
};

/// In which order a list's fields are written, and whether an empty `continue` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOrder {
    /// As upstream's built-in types: kind, apiVersion, metadata, items; empty metadata fields left out and
    /// items without kind and apiVersion.
    Typed,
    /// As custom resources: sorted, with `continue` always there and items complete.
    Sorted,
}

/// A list that is written item by item from stored bytes.
///
/// The buffer belongs to the caller, who may send what is in it and empty it between any two calls, so a
/// list need never be in memory as a whole.
#[derive(Debug)]
pub struct List {
    kind: String,
    api_version: String,
    resource_version: u64,
    continue_token: String,
    remaining_item_count: Option<u64>,
    order: ListOrder,
    items: usize,
}

impl List {
    /// A list without a next page. `kind` is that of the list, such as `ConfigMapList`.
    pub fn new(kind: &str, api_version: &str, resource_version: u64, order: ListOrder) -> Self {
        Self {
            kind: kind.to_owned(),
            api_version: api_version.to_owned(),
            resource_version,
            continue_token: String::new(),
            remaining_item_count: None,
            order,
            items: 0,
        }
    }

    /// Says how to get the next page, and how many items follow this one if that is known.
    #[must_use]
    pub fn with_next_page(mut self, continue_token: &str, remaining_item_count: Option<u64>) -> Self {
        continue_token.clone_into(&mut self.continue_token);
        self.remaining_item_count = remaining_item_count;
        self
    }

    /// Writes everything before the items.
    pub fn begin(&self, out: &mut Vec<u8>) {
        match self.order {
            ListOrder::Typed => {
                field(b"{\"kind\":", &self.kind, out);
                field(b",\"apiVersion\":", &self.api_version, out);
                out.extend_from_slice(b",\"metadata\":{");
                // Nothing has version 0: such a list is of what is not stored.
                if self.resource_version > 0 {
                    out.extend_from_slice(
                        format!("\"resourceVersion\":\"{}\"", self.resource_version).as_bytes(),
                    );
                }
                if !self.continue_token.is_empty() {
                    field(b",\"continue\":", &self.continue_token, out);
                }
                if let Some(count) = self.remaining_item_count {
                    out.extend_from_slice(format!(",\"remainingItemCount\":{count}").as_bytes());
                }
                out.extend_from_slice(b"},\"items\":[");
            }
            ListOrder::Sorted => {
                field(b"{\"apiVersion\":", &self.api_version, out);
                out.extend_from_slice(b",\"items\":[");
            }
        }
    }

    /// Writes one stored object with its revision as `resourceVersion`.
    pub fn item(&mut self, stored: &[u8], splice: &Splice, resource_version: u64, out: &mut Vec<u8>) {
        let type_fields = match self.order {
            ListOrder::Typed => TypeFields::Omit,
            ListOrder::Sorted => TypeFields::Keep,
        };
        self.separate(out);
        splice.write(stored, resource_version, type_fields, out);
    }

    /// Writes one object that is encoded already, as it is.
    pub fn encoded_item(&mut self, object: &[u8], out: &mut Vec<u8>) {
        self.separate(out);
        out.extend_from_slice(object.trim_ascii());
    }

    fn separate(&mut self, out: &mut Vec<u8>) {
        if self.items > 0 {
            out.push(b',');
        }
        self.items += 1;
    }

    /// Writes everything after the items.
    pub fn end(self, out: &mut Vec<u8>) {
        out.push(b']');
        if self.order == ListOrder::Sorted {
            field(b",\"kind\":", &self.kind, out);
            field(b",\"metadata\":{\"continue\":", &self.continue_token, out);
            if let Some(count) = self.remaining_item_count {
                out.extend_from_slice(format!(",\"remainingItemCount\":{count}").as_bytes());
            }
            out.extend_from_slice(format!(",\"resourceVersion\":\"{}\"}}", self.resource_version).as_bytes());
        }
        out.extend_from_slice(b"}\n");
    }
}

fn field(before: &[u8], value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(before);
    write_string(value, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(mut list: List, items: &[&str]) -> String {
        let mut out = Vec::new();
        list.begin(&mut out);
        for (n, item) in items.iter().enumerate() {
            let splice = Splice::find(item.as_bytes()).expect("an object");
            list.item(item.as_bytes(), &splice, 10 + n as u64, &mut out);
        }
        list.end(&mut out);
        String::from_utf8(out).expect("text")
    }

    const ITEMS: [&str; 2] = [
        r#"{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"a","uid":"u"}}"#,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}"#,
    ];

    #[test]
    fn typed_lists_omit_what_upstream_omits() {
        let list = List::new("ConfigMapList", "v1", 123, ListOrder::Typed);
        assert_eq!(
            body(list, &ITEMS),
            "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"123\"},\
             \"items\":[{\"data\":{\"a\":\"b\"},\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"10\",\"uid\":\"u\"}},\
             {\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"11\"}}]}\n"
        );
        let list = List::new("ComponentStatusList", "v1", 0, ListOrder::Typed);
        let expected =
            "{\"kind\":\"ComponentStatusList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}\n";
        assert_eq!(body(list, &[]), expected, "what is not stored has no version");
        let list = List::new("ConfigMapList", "v1", 5, ListOrder::Typed).with_next_page("t<", Some(3));
        assert_eq!(
            body(list, &[]),
            "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"5\",\
             \"continue\":\"t\\u003c\",\"remainingItemCount\":3},\"items\":[]}\n"
        );
    }

    #[test]
    fn lists_of_custom_resources_are_sorted_and_complete() {
        let list = List::new("FooList", "example.com/v1", 123, ListOrder::Sorted);
        assert_eq!(
            body(list, &ITEMS[1..]),
            "{\"apiVersion\":\"example.com/v1\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\
             \"metadata\":{\"name\":\"b\",\"resourceVersion\":\"10\"}}],\"kind\":\"FooList\",\
             \"metadata\":{\"continue\":\"\",\"resourceVersion\":\"123\"}}\n"
        );
        let list = List::new("FooList", "example.com/v1", 1, ListOrder::Sorted).with_next_page("t", Some(2));
        assert!(body(list, &[]).ends_with(
            "\"metadata\":{\"continue\":\"t\",\"remainingItemCount\":2,\"resourceVersion\":\"1\"}}\n"
        ));
    }

    #[test]
    fn encoded_items_are_taken_as_they_are() {
        let mut list = List::new("FooList", "v1", 1, ListOrder::Typed);
        let mut out = Vec::new();
        list.encoded_item(b"{\"a\":1}\n", &mut out);
        list.encoded_item(b"{}", &mut out);
        assert_eq!(out, b"{\"a\":1},{}");
    }
}
