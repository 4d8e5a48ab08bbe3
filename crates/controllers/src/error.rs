/// Why something of this crate cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A resource that the server cannot do without is not served.
    #[error("{plural} of {version} are not served")]
    NotServed {
        /// Group and version.
        version: String,
        /// The resource.
        plural: String,
    },
    /// A range of service addresses that cannot be used.
    #[error("service-cluster-ip-range {range:?}: {why}")]
    IpRange {
        /// What was given.
        range: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A range of node ports that cannot be used.
    #[error("service-node-port-range {range:?}: {why}")]
    PortRange {
        /// What was given.
        range: String,
        /// What is wrong with it.
        why: &'static str,
    },
}
