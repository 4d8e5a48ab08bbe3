//! What the annotations hold that keep what autoscaling/v1 has no fields for, in the order of upstream's structs.

use crate::go_json::{Field, Kind};

const fn always(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, always: true }
}

const fn optional(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, always: false }
}

const REFERENCE: Kind = Kind::Struct(&[
    always("kind", Kind::Text),
    always("name", Kind::Text),
    optional("apiVersion", Kind::Text),
]);

const SELECTOR: Kind = Kind::Struct(&[
    optional("matchLabels", Kind::Labels),
    optional("matchExpressions", Kind::List(&REQUIREMENT)),
]);

const REQUIREMENT: Kind = Kind::Struct(&[
    always("key", Kind::Text),
    always("operator", Kind::Text),
    optional("values", Kind::List(&Kind::Text)),
]);

/// `autoscaling.alpha.kubernetes.io/metrics`
pub(super) const METRIC_SPECS: Kind = Kind::List(&Kind::Struct(&[
    always("type", Kind::Text),
    optional(
        "object",
        Kind::Struct(&[
            always("target", REFERENCE),
            always("metricName", Kind::Text),
            always("targetValue", Kind::Quantity),
            optional("selector", SELECTOR),
            optional("averageValue", Kind::Quantity),
        ]),
    ),
    optional(
        "pods",
        Kind::Struct(&[
            always("metricName", Kind::Text),
            always("targetAverageValue", Kind::Quantity),
            optional("selector", SELECTOR),
        ]),
    ),
    optional(
        "resource",
        Kind::Struct(&[
            always("name", Kind::Text),
            optional("targetAverageUtilization", Kind::Number),
            optional("targetAverageValue", Kind::Quantity),
        ]),
    ),
    optional(
        "containerResource",
        Kind::Struct(&[
            always("name", Kind::Text),
            optional("targetAverageUtilization", Kind::Number),
            optional("targetAverageValue", Kind::Quantity),
            always("container", Kind::Text),
        ]),
    ),
    optional(
        "external",
        Kind::Struct(&[
            always("metricName", Kind::Text),
            optional("metricSelector", SELECTOR),
            optional("targetValue", Kind::Quantity),
            optional("targetAverageValue", Kind::Quantity),
        ]),
    ),
]));

/// `autoscaling.alpha.kubernetes.io/current-metrics`
pub(super) const METRIC_STATUSES: Kind = Kind::List(&Kind::Struct(&[
    always("type", Kind::Text),
    optional(
        "object",
        Kind::Struct(&[
            always("target", REFERENCE),
            always("metricName", Kind::Text),
            always("currentValue", Kind::Quantity),
            optional("selector", SELECTOR),
            optional("averageValue", Kind::Quantity),
        ]),
    ),
    optional(
        "pods",
        Kind::Struct(&[
            always("metricName", Kind::Text),
            always("currentAverageValue", Kind::Quantity),
            optional("selector", SELECTOR),
        ]),
    ),
    optional(
        "resource",
        Kind::Struct(&[
            always("name", Kind::Text),
            optional("currentAverageUtilization", Kind::Number),
            always("currentAverageValue", Kind::Quantity),
        ]),
    ),
    optional(
        "containerResource",
        Kind::Struct(&[
            always("name", Kind::Text),
            optional("currentAverageUtilization", Kind::Number),
            always("currentAverageValue", Kind::Quantity),
            always("container", Kind::Text),
        ]),
    ),
    optional(
        "external",
        Kind::Struct(&[
            always("metricName", Kind::Text),
            optional("metricSelector", SELECTOR),
            always("currentValue", Kind::Quantity),
            optional("currentAverageValue", Kind::Quantity),
        ]),
    ),
]));

/// `autoscaling.alpha.kubernetes.io/conditions`
pub(super) const CONDITIONS: Kind = Kind::List(&Kind::Struct(&[
    always("type", Kind::Text),
    always("status", Kind::Text),
    always("lastTransitionTime", Kind::Time),
    optional("reason", Kind::Text),
    optional("message", Kind::Text),
]));

const RULES: Kind = Kind::Struct(&[
    optional("stabilizationWindowSeconds", Kind::Number),
    optional("selectPolicy", Kind::Text),
    optional("policies", Kind::List(&POLICY)),
    optional("tolerance", Kind::Quantity),
]);

const POLICY: Kind = Kind::Struct(&[
    always("type", Kind::Text),
    always("value", Kind::Number),
    always("periodSeconds", Kind::Number),
]);

/// `autoscaling.alpha.kubernetes.io/behavior`
pub(super) const BEHAVIOR: Kind = Kind::Struct(&[optional("scaleUp", RULES), optional("scaleDown", RULES)]);
