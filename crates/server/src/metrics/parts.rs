use super::{
    AdmissionMetrics, AggregationMetrics, CelMetrics, ClientMetrics, DecisionMetrics, FlowMetrics,
    LevelSeats, Metrics, MigrationMetrics, PeerMetrics, QueueMetrics, TokenUses,
};

/// Where the parts of a server count what they do.
impl Metrics {
    /// How many audit events a backend could not write so far: `apiserver_audit_error_total`.
    pub fn set_audit_lost(&self, plugin: &str, total: u64) {
        self.audit.lost(plugin, total);
    }

    /// How often tokens of service accounts were accepted so far: `serviceaccount_*`.
    pub fn set_token_uses(&self, uses: TokenUses) {
        self.tokens.set(uses);
    }

    /// Where to count what admission does: `apiserver_admission_*` and those of policies.
    #[must_use]
    pub fn admission(&self) -> &AdmissionMetrics {
        &self.admission
    }

    /// Where to count the requests of a FlowSchema in a priority level: `apiserver_flowcontrol_*`.
    #[must_use]
    pub fn flow(&self, priority_level: &str, flow_schema: &str) -> FlowMetrics {
        self.flow_control.flow(priority_level, flow_schema)
    }

    /// How many seats a priority level has.
    pub fn set_seats(&self, priority_level: &str, seats: LevelSeats) {
        self.flow_control.set_seats(priority_level, seats);
    }

    /// How many seats a priority level could have now, with those that others do not need.
    pub fn set_current_seats(&self, priority_level: &str, seats: u32) {
        self.flow_control.set_current(priority_level, seats);
    }

    /// A priority level is gone.
    pub fn forget_level(&self, priority_level: &str) {
        self.flow_control.forget(priority_level);
    }

    /// Where to count what an authorizer decides: `apiserver_authorization_decisions_total`. To be kept by who asks it.
    #[must_use]
    pub fn decisions(&self, kind: &str, name: &str) -> DecisionMetrics {
        self.access.decisions(kind, name)
    }

    /// Where to tell how long the rules of custom resources take.
    pub fn cel(&self) -> &CelMetrics {
        &self.cel
    }

    /// Where to count what this server asks others.
    pub fn clients(&self) -> &ClientMetrics {
        &self.clients
    }

    /// Where to say what controllers have to do.
    pub fn queues(&self) -> &QueueMetrics {
        &self.queues
    }

    /// Where to say what the storage version migrator does.
    pub fn migration(&self) -> &MigrationMetrics {
        &self.migration
    }

    /// Which encryption configuration a server works with. Both are hashes: `sha256:` and hexadecimal digits.
    pub fn set_encryption_config(&self, server: &str, file: &str) {
        self.encryption.in_force(server, file);
    }

    /// The encryption configuration was read again, at a time in seconds since 1970; `status` is `success` or `failure`.
    pub fn encryption_config_reloaded(&self, server: &str, status: &str, at: f64) {
        self.encryption.reloaded(server, status, at);
    }

    /// Where to say which servers behind this one can be reached.
    pub fn aggregation(&self) -> &AggregationMetrics {
        &self.aggregation
    }

    /// Where to count what is sent to other servers of the fleet.
    pub fn peers(&self) -> &PeerMetrics {
        &self.peers
    }
}
