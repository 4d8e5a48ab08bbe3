//! A `resourceVersion` put into stored bytes without parsing them.

mod scan;

use std::ops::Range;

use self::scan::{Member, Scanner};

/// Why stored bytes cannot be spliced. The caller decodes, sets and encodes instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSpliceable {
    /// Not the JSON of an object.
    #[error("not a JSON object (at byte {offset})")]
    Malformed {
        /// Where it stops being one.
        offset: usize,
    },
    /// `metadata` is missing or is not an object.
    #[error("no metadata object")]
    NoMetadata,
    /// A field that matters here is given twice.
    #[error("field given twice")]
    Duplicate,
    /// Longer than 4 GiB.
    #[error("too large")]
    TooLarge,
}

/// Whether an object is written with its `kind` and `apiVersion`. Items of upstream's typed lists have
/// neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeFields {
    /// As stored.
    Keep,
    /// Left out.
    Omit,
}

/// What stands around the revision where it is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The value of a field that is there.
    Value,
    /// A new field before another one.
    Before,
    /// A new field after the last one.
    After,
    /// The only field.
    Only,
}

/// A part of the stored bytes; four bytes a side, as one of these is kept for every stored object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    start: u32,
    end: u32,
}

impl Part {
    /// The bytes were checked to be shorter than 4 GiB.
    fn of(range: &Range<usize>) -> Self {
        let short = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: short(range.start), end: short(range.end) }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Where in an object's bytes its `resourceVersion` goes, found once and used for every read.
///
/// Where the metadata is sorted, the result is sorted too: what is written is byte for byte what encoding
/// the changed object would give.
///
/// ```
/// use concord_codec::{Splice, TypeFields};
///
/// let stored = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"u"}}"#;
/// let splice = Splice::find(stored)?;
/// let mut out = Vec::new();
/// splice.write(stored, 42, TypeFields::Omit, &mut out);
/// assert_eq!(out, br#"{"metadata":{"name":"a","resourceVersion":"42","uid":"u"}}"#);
/// # Ok::<(), concord_codec::NotSpliceable>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splice {
    object: Part,
    cut: Part,
    form: Form,
    /// The members other than `kind` and `apiVersion`, in runs of neighbours; unused ones are empty.
    runs: [Part; 3],
}

/// What is learned from the members of an object, one after the other.
#[derive(Default)]
struct Finding {
    cut: Option<(Part, Form)>,
    runs: [Part; 3],
    run: usize,
    kind: bool,
    api_version: bool,
}

impl Finding {
    fn member(&mut self, member: &Member<'_>, scanner: &Scanner<'_>) -> Result<(), NotSpliceable> {
        let (is_kind, is_api_version) = (member.is("kind"), member.is("apiVersion"));
        if (is_kind && self.kind) || (is_api_version && self.api_version) {
            return Err(NotSpliceable::Duplicate);
        }
        self.kind |= is_kind;
        self.api_version |= is_api_version;
        if is_kind || is_api_version {
            // Each of the two ends a run at most once, so three runs are enough.
            self.run += usize::from(self.runs[self.run] != Part::default());
            return Ok(());
        }
        let part = Part::of(&(member.start..member.value.end));
        let run = &mut self.runs[self.run];
        *run = if *run == Part::default() { part } else { Part { start: run.start, end: part.end } };
        if member.is("metadata") {
            let duplicate = self.cut.replace(metadata(&scanner.inside(&member.value)?)?).is_some();
            return if duplicate { Err(NotSpliceable::Duplicate) } else { Ok(()) };
        }
        Ok(())
    }
}

/// Where the revision goes in the metadata that starts where the scanner stands.
fn metadata(scanner: &Scanner<'_>) -> Result<(Part, Form), NotSpliceable> {
    let mut scanner = scanner.clone();
    let mut there = None;
    let mut before = None;
    let mut after = None;
    scanner.object(|member, _| {
        if member.is("resourceVersion") {
            let duplicate = there.replace(member.value.clone()).is_some();
            return if duplicate { Err(NotSpliceable::Duplicate) } else { Ok(()) };
        }
        if before.is_none() && member.sorts_after("resourceVersion") {
            before = Some(member.start);
        }
        after = Some(member.value.end);
        Ok(())
    })?;
    let at = |offset: usize| Part::of(&(offset..offset));
    Ok(match (there, before, after) {
        (Some(value), ..) => (Part::of(&value), Form::Value),
        (None, Some(start), _) => (at(start), Form::Before),
        (None, None, Some(end)) => (at(end), Form::After),
        (None, None, None) => (at(scanner.position() - 1), Form::Only),
    })
}

impl Splice {
    /// Finds the place in the JSON of an object, however it is spelled.
    ///
    /// The bytes are taken to be JSON; only their structure is looked at.
    ///
    /// # Errors
    ///
    /// See [`NotSpliceable`].
    pub fn find(stored: &[u8]) -> Result<Self, NotSpliceable> {
        u32::try_from(stored.len()).map_err(|_| NotSpliceable::TooLarge)?;
        let mut scanner = Scanner::new(stored);
        let mut finding = Finding::default();
        let object = scanner.object(|member, scanner| finding.member(member, scanner))?;
        scanner.end()?;
        let (cut, form) = finding.cut.ok_or(NotSpliceable::NoMetadata)?;
        Ok(Self { object: Part::of(&object), cut, form, runs: finding.runs })
    }

    /// The place in an object that begins with this text, which ends with the brace that opens `metadata`;
    /// `None` if it does not, or if a resource version stands there already. Finding it so costs a comparison, whatever
    /// the size of the object: it is how objects are found that [`crate::encode_object`] wrote, which never have a
    /// resource version in storage.
    pub fn after(prefix: &[u8], stored: &[u8]) -> Option<Self> {
        const METADATA: &[u8] = b"\"metadata\":{";
        const FIELD: &[u8] = b"\"resourceVersion\"";
        let end = stored.trim_ascii_end().len();
        let rest = stored.get(..end)?.strip_prefix(prefix)?;
        if !prefix.ends_with(METADATA) || end > u32::MAX as usize || rest.starts_with(FIELD) {
            return None;
        }
        let cut = prefix.len()..prefix.len();
        let form = if rest.first()? == &b'}' { Form::Only } else { Form::Before };
        let members = prefix.len() - METADATA.len()..end - 1;
        let runs = [Part::of(&members), Part::default(), Part::default()];
        Some(Self { object: Part::of(&(0..end)), cut: Part::of(&cut), form, runs })
    }

    /// Writes the object with this revision as its `metadata.resourceVersion`.
    ///
    /// # Panics
    ///
    /// May panic if these are not the bytes the splice was found in.
    pub fn write(&self, stored: &[u8], resource_version: u64, type_fields: TypeFields, out: &mut Vec<u8>) {
        out.reserve(stored.len() + 48);
        if type_fields == TypeFields::Keep {
            self.part(self.object, stored, resource_version, out);
            return;
        }
        out.push(b'{');
        let runs = self.runs.iter().filter(|run| **run != Part::default());
        for (n, run) in runs.enumerate() {
            if n > 0 {
                out.push(b',');
            }
            self.part(*run, stored, resource_version, out);
        }
        out.push(b'}');
    }

    /// Writes a part, with the revision if its place is in it.
    fn part(&self, part: Part, stored: &[u8], resource_version: u64, out: &mut Vec<u8>) {
        if self.cut.start < part.start || self.cut.end > part.end {
            out.extend_from_slice(&stored[part.range()]);
            return;
        }
        out.extend_from_slice(&stored[part.range().start..self.cut.range().start]);
        let (before, after): (&[u8], &[u8]) = match self.form {
            Form::Value => (b"\"", b"\""),
            Form::Before => (b"\"resourceVersion\":\"", b"\","),
            Form::After => (b",\"resourceVersion\":\"", b"\""),
            Form::Only => (b"\"resourceVersion\":\"", b"\""),
        };
        out.extend_from_slice(before);
        crate::json::write_integer(false, resource_version, out);
        out.extend_from_slice(after);
        out.extend_from_slice(&stored[self.cut.range().end..part.range().end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stored: &str, kept: &str, omitted: &str) {
        let splice = Splice::find(stored.as_bytes()).expect(stored);
        for (type_fields, expected) in [(TypeFields::Keep, kept), (TypeFields::Omit, omitted)] {
            let mut out = Vec::new();
            splice.write(stored.as_bytes(), 42, type_fields, &mut out);
            assert_eq!(String::from_utf8(out).expect("text"), expected, "{stored}");
        }
    }

    #[test]
    fn the_revision_goes_where_it_belongs() {
        let same = |stored: &str, written: &str| check(stored, written, written);
        same(r#"{"metadata":{}}"#, r#"{"metadata":{"resourceVersion":"42"}}"#);
        same(r#"{"metadata":{ }}"#, r#"{"metadata":{ "resourceVersion":"42"}}"#);
        same(r#"{"metadata":{"name":"a"}}"#, r#"{"metadata":{"name":"a","resourceVersion":"42"}}"#);
        same(r#"{"metadata":{"uid":"a"}}"#, r#"{"metadata":{"resourceVersion":"42","uid":"a"}}"#);
        same(r#"{"metadata":{"resourceVersion":""}}"#, r#"{"metadata":{"resourceVersion":"42"}}"#);
        same(
            r#"{"metadata":{"resourceVersion" : null , "a":"}\"{"}}"#,
            r#"{"metadata":{"resourceVersion" : "42" , "a":"}\"{"}}"#,
        );
        same(
            r#"{"met\u0061data":{"resource\u0056ersion":"7"},"spec":[{"metadata":{}}]}"#,
            r#"{"met\u0061data":{"resource\u0056ersion":"42"},"spec":[{"metadata":{}}]}"#,
        );
    }

    #[test]
    fn the_type_can_be_left_out() {
        check(
            "\n{\"a\":1, \"apiVersion\":\"v1\", \"kind\":\"K\"\n, \"metadata\":{\"x\":[]}} \n",
            "{\"a\":1, \"apiVersion\":\"v1\", \"kind\":\"K\"\n, \"metadata\":{\"resourceVersion\":\"42\",\"x\":[]}}",
            "{\"a\":1,\"metadata\":{\"resourceVersion\":\"42\",\"x\":[]}}",
        );
        check(
            r#"{"apiVersion":"v1","b":1,"kind":"K","metadata":{},"spec":{}}"#,
            r#"{"apiVersion":"v1","b":1,"kind":"K","metadata":{"resourceVersion":"42"},"spec":{}}"#,
            r#"{"b":1,"metadata":{"resourceVersion":"42"},"spec":{}}"#,
        );
        check(
            r#"{"metadata":{},"apiVersion":"v1","kind":"K"}"#,
            r#"{"metadata":{"resourceVersion":"42"},"apiVersion":"v1","kind":"K"}"#,
            r#"{"metadata":{"resourceVersion":"42"}}"#,
        );
        check(
            r#"{"a":1,"kind":"K","metadata":{},"apiVersion":"v1","z":{}}"#,
            r#"{"a":1,"kind":"K","metadata":{"resourceVersion":"42"},"apiVersion":"v1","z":{}}"#,
            r#"{"a":1,"metadata":{"resourceVersion":"42"},"z":{}}"#,
        );
    }

    #[test]
    fn what_was_written_for_storage_is_found_by_its_beginning() {
        let object = serde_json::json!({"data": {"a": "1"}, "apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}});
        let mut stored = Vec::new();
        crate::encode_object(object.as_object().expect("an object"), &mut stored);
        assert_eq!(stored, br#"{"kind":"K","apiVersion":"v1","metadata":{"name":"n"},"data":{"a":"1"}}"#);
        let prefix = br#"{"kind":"K","apiVersion":"v1","metadata":{"#;
        let check = |stored: &[u8], keep: &str, omit: &str| {
            let splice = Splice::after(prefix, stored).expect(keep);
            for (fields, expected) in [(TypeFields::Keep, keep), (TypeFields::Omit, omit)] {
                let mut out = Vec::new();
                splice.write(stored, 42, fields, &mut out);
                assert_eq!(String::from_utf8_lossy(&out), expected);
            }
        };
        check(
            &stored,
            r#"{"kind":"K","apiVersion":"v1","metadata":{"resourceVersion":"42","name":"n"},"data":{"a":"1"}}"#,
            r#"{"metadata":{"resourceVersion":"42","name":"n"},"data":{"a":"1"}}"#,
        );
        check(
            b"{\"kind\":\"K\",\"apiVersion\":\"v1\",\"metadata\":{}}\n",
            r#"{"kind":"K","apiVersion":"v1","metadata":{"resourceVersion":"42"}}"#,
            r#"{"metadata":{"resourceVersion":"42"}}"#,
        );
        for other in [
            r#"{"kind":"L","apiVersion":"v1","metadata":{"name":"n"}}"#,
            r#"{"kind":"K","apiVersion":"v1","metadata":{"resourceVersion":"1"}}"#,
            r#"{"kind":"K","apiVersion":"v1","metadata":{"#,
            "",
        ] {
            assert_eq!(Splice::after(prefix, other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn what_cannot_be_spliced_is_said() {
        let cases = [
            ("", NotSpliceable::Malformed { offset: 0 }),
            ("[]", NotSpliceable::Malformed { offset: 0 }),
            ("{}", NotSpliceable::NoMetadata),
            (r#"{"metadata":null}"#, NotSpliceable::NoMetadata),
            (r#"{"metadata":[]}"#, NotSpliceable::NoMetadata),
            (r#"{"metadata":{},"metadata":{}}"#, NotSpliceable::Duplicate),
            (r#"{"kind":"a","kind":"b","metadata":{}}"#, NotSpliceable::Duplicate),
            (r#"{"metadata":{"resourceVersion":"","resourceVersion":""}}"#, NotSpliceable::Duplicate),
            (r#"{"metadata":{}} x"#, NotSpliceable::Malformed { offset: 16 }),
            (r#"{"metadata":{}"#, NotSpliceable::Malformed { offset: 14 }),
            (r#"{"a":"#, NotSpliceable::Malformed { offset: 5 }),
        ];
        for (stored, reason) in cases {
            assert_eq!(Splice::find(stored.as_bytes()), Err(reason), "{stored}");
        }
    }

    #[test]
    fn one_is_small_enough_to_keep_for_every_object() {
        assert!(size_of::<Splice>() <= 48);
    }
}
