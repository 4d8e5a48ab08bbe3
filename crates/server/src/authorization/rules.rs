/// What a user may do in a namespace, as lists that people can read. Decisions are never made with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectRules {
    /// What may be done to resources.
    pub resources: Vec<ResourceRule>,
    /// What may be done to other paths.
    pub non_resources: Vec<NonResourceRule>,
    /// Whether the user may do more than could be listed.
    pub incomplete: bool,
    /// What went wrong while the lists were made.
    pub errors: Vec<String>,
}

/// What may be done to resources. `*` stands for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceRule {
    /// The verbs.
    pub verbs: Vec<String>,
    /// The groups; the core group is empty.
    pub api_groups: Vec<String>,
    /// The resources, with their subresources: `pods/log`.
    pub resources: Vec<String>,
    /// The names; none means all.
    pub resource_names: Vec<String>,
}

/// What may be done to paths that are no resources. `*` stands for all, also at the end of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    /// The verbs: HTTP methods in lower case.
    pub verbs: Vec<String>,
    /// The paths.
    pub non_resource_urls: Vec<String>,
}

impl SubjectRules {
    /// Everything.
    #[must_use]
    pub fn everything() -> Self {
        let all = || vec!["*".to_owned()];
        let resource =
            ResourceRule { verbs: all(), api_groups: all(), resources: all(), resource_names: Vec::new() };
        let path = NonResourceRule { verbs: all(), non_resource_urls: all() };
        Self { resources: vec![resource], non_resources: vec![path], ..Self::default() }
    }

    /// Adds what another authorizer lists.
    pub fn extend(&mut self, other: Self) {
        self.resources.extend(other.resources);
        self.non_resources.extend(other.non_resources);
        self.incomplete |= other.incomplete;
        self.errors.extend(other.errors);
    }
}
