/// A resource of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Every process stores it in the version of its binary.
    BuiltIn,
    /// It is stored in the version that the definition in the log says.
    Custom,
    /// Only binaries of the first version store it.
    Dropped,
}

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    /// A process starts, in either version.
    pub starts: u8,
    /// A process is killed; what it has on its way may still land.
    pub crashes: u8,
    /// A process is asked to stop.
    pub stops: u8,
    /// An object is written.
    pub writes: u8,
    /// The definition changes its stored version.
    pub flips: u8,
    /// An administrator deletes an identity lease, or it expires.
    pub lease_losses: u8,
    /// An administrator takes an entry away.
    pub strips: u8,
    /// A migrator runs.
    pub migrations: u8,
}

/// What is explored.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// How many servers there are; each may have several processes, one after the other or at once.
    pub servers: u8,
    /// What they store.
    pub resources: Vec<Resource>,
    /// What may happen.
    pub budget: Budget,
    /// How many transactions may be on their way at once.
    pub flying: usize,
    /// Whether the last server has the API turned off: it has an identity, and says nothing.
    pub silent_server: bool,
    /// Whether processes see what happens later than it happens: each decides on what it has seen, which may be any earlier
    /// state of the log that is not older than the one it saw before.
    pub late_views: bool,
    /// Whether a second process of a server may start while the first one runs.
    pub duplicates: bool,
    /// How the machine of the first server is called.
    pub hostname: String,
    /// What is done as upstream does it.
    pub race: Option<Race>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            servers: 2,
            resources: vec![Resource::BuiltIn],
            budget: Budget::default(),
            flying: 2,
            silent_server: false,
            late_views: false,
            duplicates: false,
            hostname: "host".to_owned(),
            race: None,
        }
    }
}

/// What kube-apiserver v1.36 does, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Race {
    /// The collector looks for the lease first and at the object later.
    LeaseBeforeObject,
    /// Entries are registered under the lease of a predecessor.
    PredecessorsLease,
    /// Writes go on when the lease is lost.
    NoFence,
    /// The collector relies on the object's revision alone, which a repeated registration does not change.
    RevisionAlone,
    /// A lease that could not be read is taken for gone.
    ErrorIsAbsent,
    /// The object of the last entry is deleted without a condition.
    UnconditionalDelete,
    /// An object is created first and filled later, and empty ones are never collected.
    CreateThenFill,
    /// A server that stops removes its lease before its last writes.
    LeaseBeforeDrain,
    /// Nobody looks whose process holds the lease.
    SharedIdentity,
    /// The order of served versions is another one each time.
    UnstableOrder,
    /// A gate that was open once stays open.
    LatchedGate,
    /// What failed once is not tried again.
    NoRetry,
    /// A resource that cannot be registered keeps all others waiting.
    Sequential,
    /// The name of the machine becomes a label as it is.
    RawHostname,
    /// Entries of resources that are no longer stored stay.
    NoWithdrawal,
    /// Some objects are written before anything is registered.
    ExemptWrites,
    /// Old writes of a custom resource go on after the new version was published.
    DrainCutShort,
    /// The version to publish is remembered, and published whenever it is its turn.
    OutOfOrder,
    /// Internal writers do not ask the gate.
    InternalWriter,
    /// Only the entries that exist are asked whether they agree.
    EntriesOnly,
    /// A migrator compares versions at the end with those at the beginning, not what was between, and does not look at
    /// what is stored. Not upstream's, which does not even compare, but what a consumer of upstream's API can do at best.
    ValuesCompared,
    /// A migrator believes an older state of the servers than the state it has counted the objects of.
    StaleServers,
}
