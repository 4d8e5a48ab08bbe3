//! Traffic into, inside and through the cluster.

use jiff::Timestamp;

use super::services::load_balancer;
use crate::column::{AGE, NAME};
use crate::fields::Fields;
use crate::format::{NONE, age, join, lower, selector_or_none, with_group};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "Ingress" => Some(&INGRESS),
        "IngressClass" => Some(&INGRESS_CLASS),
        "NetworkPolicy" => Some(&NETWORK_POLICY),
        "ServiceCIDR" => Some(&SERVICE_CIDR),
        "IPAddress" => Some(&IP_ADDRESS),
        _ => None,
    }
}

/// How many hosts of an ingress are shown.
const MAX_HOSTS: usize = 3;

const IS_DEFAULT_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";

static INGRESS: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Class", "Ingress class that serves it."),
        Column::string("Hosts", "The first few host names of its rules."),
        Column::string("Address", "Where the load balancer takes traffic."),
        Column::string("Ports", "Ports that are open."),
        AGE,
    ],
    print: ingress,
};

fn ingress(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    row![
        object.name(),
        spec.optional_text("ingressClassName").unwrap_or(NONE),
        hosts(spec),
        load_balancer(object),
        if spec.count("tls") > 0 { "80, 443" } else { "80" },
        age(object, now),
    ]
}

/// What is left over are rules, with or without a host.
fn hosts(spec: Fields<'_>) -> String {
    let rules = spec.items("rules").len();
    let named = spec.items("rules").map(|rule| rule.text("host")).enumerate();
    let shown: Vec<(usize, &str)> = named.filter(|(_, host)| !host.is_empty()).take(MAX_HOSTS).collect();
    let text = join(shown.iter().map(|(_, host)| *host), ",");
    match shown.last() {
        None => "*".to_owned(),
        Some((last, _)) if shown.len() == MAX_HOSTS && last + 1 < rules => {
            format!("{text} + {} more...", rules - MAX_HOSTS)
        }
        Some(_) => text,
    }
}

static INGRESS_CLASS: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Controller", "Who serves the ingresses of this class."),
        Column::string("Parameters", "Object with its settings."),
        AGE,
    ],
    print: ingress_class,
};

fn ingress_class(object: Fields<'_>, now: Timestamp) -> Row {
    let default = object.annotation(IS_DEFAULT_CLASS) == Some("true");
    let name = format!("{}{}", object.name(), if default { " (default)" } else { "" });
    let spec = object.at("spec");
    let parameters = spec.present("parameters").map(|parameters| {
        let group = parameters.optional_text("apiGroup").map(|group| format!(".{group}")).unwrap_or_default();
        format!("{}{group}/{}", parameters.text("kind"), parameters.text("name"))
    });
    row![name, spec.text("controller"), parameters.unwrap_or_else(|| NONE.to_owned()), age(object, now)]
}

static NETWORK_POLICY: BuiltIn = BuiltIn {
    columns: &[NAME, Column::string("Pod-Selector", "Labels of the pods it applies to."), AGE],
    print: network_policy,
};

fn network_policy(object: Fields<'_>, now: Timestamp) -> Row {
    row![object.name(), selector_or_none(object.at("spec"), "podSelector"), age(object, now)]
}

static SERVICE_CIDR: BuiltIn = BuiltIn {
    columns: &[NAME, Column::string("CIDRs", "Ranges from which services get addresses."), AGE],
    print: service_cidr,
};

fn service_cidr(object: Fields<'_>, now: Timestamp) -> Row {
    row![object.name(), join(object.at("spec").texts("cidrs"), ","), age(object, now)]
}

/// Upstream's rows have an age, for which it forgot the column.
static IP_ADDRESS: BuiltIn = BuiltIn {
    columns: &[NAME, Column::string("ParentRef", "Object that has the address.")],
    print: ip_address,
};

fn ip_address(object: Fields<'_>, now: Timestamp) -> Row {
    let parent = object.at("spec").present("parentRef").map(|parent| {
        let namespace = Some(parent.text("namespace")).filter(|namespace| !namespace.is_empty());
        let resource = lower(&with_group(parent.text("resource"), parent.text("group")));
        join([Some(resource.as_str()), namespace, Some(parent.text("name"))].into_iter().flatten(), "/")
    });
    row![object.name(), parent.unwrap_or_else(|| NONE.to_owned()), age(object, now)]
}
