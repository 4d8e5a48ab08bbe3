use crate::go;

/// Why bytes are no object. The texts are those a client of kube-apiserver sees.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The body is longer than [`Limits::max_bytes`](crate::Limits::max_bytes); the server answers 413.
    #[error("limit is {limit}")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// A byte that JSON does not allow where it stands. Nesting that is too deep is reported here too,
    /// at the bracket that is one too many, as Go does.
    #[error("invalid character {} {context}", go::quote_byte(*.byte))]
    Syntax {
        /// The offending byte; a space where the input ended inside a literal.
        byte: u8,
        /// What was being read.
        context: &'static str,
        /// How many bytes stand before it.
        offset: usize,
    },
    /// The input ended early.
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// A number beyond what a float can hold.
    #[error("json: cannot unmarshal number {literal} into Go value of type float64")]
    Number {
        /// The number as it was spelled.
        literal: String,
    },
    /// The document is JSON, but not an object.
    #[error(
        "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
         \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )]
    NotAnObject {
        /// `array`, `string`, `number` or `bool`.
        found: &'static str,
    },
    /// `kind` or `apiVersion` is not a string.
    #[error("json: cannot unmarshal {found} into Go struct field .{field} of type string")]
    TypeField {
        /// `object`, `array`, `number` or `bool`.
        found: &'static str,
        /// `kind` or `apiVersion`.
        field: &'static str,
    },
    /// `apiVersion` has more than one slash.
    #[error("unexpected GroupVersion string: {api_version}")]
    GroupVersion {
        /// The value as given.
        api_version: String,
    },
    /// The YAML does not parse, or holds what JSON cannot.
    #[error("{0}")]
    Yaml(String),
}

impl DecodeError {
    /// Whether upstream meets this error before it knows the object's kind.
    pub(crate) fn hides_the_kind(&self) -> bool {
        !matches!(self, Self::Number { .. } | Self::TooLarge { .. })
    }

    /// Whether upstream meets this error while it looks for `kind` and `apiVersion` in JSON.
    pub(crate) fn met_while_looking_for_the_kind(&self) -> bool {
        matches!(
            self,
            Self::Syntax { .. } | Self::UnexpectedEnd | Self::NotAnObject { .. } | Self::TypeField { .. }
        )
    }
}
