use std::str::FromStr;

/// How much of a request is written down. Each level has all of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nothing.
    None,
    /// Who asked for what, when, and how it ended.
    Metadata,
    /// Also what was sent.
    Request,
    /// Also what was answered.
    RequestResponse,
}

impl Level {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Request, Self::RequestResponse];

    /// Upstream's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// A moment in the life of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// It is known who asks for what; nothing has been done.
    RequestReceived,
    /// The answer of a request that lasts, such as a watch, has begun.
    ResponseStarted,
    /// All has been answered.
    ResponseComplete,
    /// The handler panicked.
    Panic,
}

impl Stage {
    /// All of them, in upstream's order.
    pub const ALL: [Self; 4] =
        [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic];

    /// Upstream's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// Not a word that upstream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown;

impl FromStr for Level {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        Self::ALL.into_iter().find(|level| level.as_str() == text).ok_or(Unknown)
    }
}

impl FromStr for Stage {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == text).ok_or(Unknown)
    }
}

/// Some stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    /// Whether `stage` is one of them.
    #[must_use]
    pub fn contains(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    /// Those of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Stage> for Stages {
    fn from_iter<I: IntoIterator<Item = Stage>>(stages: I) -> Self {
        Self(stages.into_iter().fold(0, |all, stage| all | 1 << stage as u8))
    }
}
