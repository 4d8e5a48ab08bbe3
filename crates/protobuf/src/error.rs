use concord_codec::DecodeError;

/// Why bytes are no object. The texts are those a client of kube-apiserver sees.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is nothing at all.
    #[error("empty data")]
    EmptyData,
    /// There is nothing after the prefix.
    #[error("empty body")]
    EmptyBody,
    /// It does not begin as it must.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// It ends early.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// A number of more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length beyond what there can be.
    #[error("proto: negative length found during unmarshaling")]
    Length,
    /// A group ends that has not begun.
    #[error("proto: unexpected end of group")]
    EndOfGroup,
    /// A way to write values that there is not.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    /// A field that is written as another type would be.
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WrongWireType {
        /// How it is written.
        wire_type: u8,
        /// Its name in Go.
        field: String,
    },
    /// A message that ends as only groups do.
    #[error("proto: {0}: wiretype end group for non-group")]
    NoGroup(String),
    /// A number that no field has.
    #[error("proto: {message}: illegal tag {number} (wire type {wire_type})")]
    IllegalTag {
        /// The message it stands in.
        message: String,
        /// The number.
        number: i32,
        /// How the value is written.
        wire_type: u8,
    },
    /// Messages in messages beyond the depth that objects may have.
    #[error("proto: exceeded max depth")]
    TooDeep,
    /// A number that JSON cannot tell.
    #[error("json: unsupported value: {0}")]
    Float(String),
    /// A moment outside of the years that JSON can tell.
    #[error("proto: timestamp {0} is out of range")]
    Time(i64),
    /// A field that holds JSON holds something else.
    #[error(transparent)]
    Json(#[from] DecodeError),
}
