//! What to tell who writes a Service.

use super::{TOPOLOGY_HINTS, TOPOLOGY_MODE};
use crate::{
    ip::{warn_cidr, warn_ip},
    node::Root,
};

/// What to tell who writes a service.
/// What to tell who writes the status of something that is balanced: a Service, or an Ingress.
pub(crate) fn status_warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    let ingress = new.get("status").get2("loadBalancer", "ingress");
    ingress.items().for_each(|item| warn_ip(item, item.str("ip")));
}

pub(crate) fn warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    if new.annotation(TOPOLOGY_HINTS).is_some() {
        new.warn(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"));
    }
    let spec = new.get("spec");
    let (kind, primary) = (spec.str("type"), spec.str("clusterIP"));
    if !["", "None"].contains(&primary) {
        spec.get("clusterIPs").items().for_each(|address| warn_ip(address, address.text()));
    }
    let external = spec.get("externalIPs");
    let headless = kind == "ClusterIP" && primary == "None";
    if headless {
        let ignored = [
            (!spec.str("loadBalancerIP").is_empty(), "spec.loadBalancerIP"),
            (!external.is_empty(), "spec.externalIPs"),
            (spec.str("sessionAffinity") != "None", "spec.SessionAffinity"),
        ];
        for (_, name) in ignored.into_iter().filter(|(given, _)| *given) {
            new.warn(format!("{name} is ignored for headless services"));
        }
    }
    external.items().for_each(|address| warn_ip(address, address.text()));
    if !external.is_empty() && !headless && kind != "ExternalName" {
        new.warn("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
    }
    warn_ip(spec.get("loadBalancerIP"), spec.str("loadBalancerIP"));
    spec.get("loadBalancerSourceRanges").items().for_each(|range| warn_cidr(range, range.text()));
    if kind == "ExternalName" && !external.is_empty() {
        new.warn("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    }
    if kind != "ExternalName" && !spec.str("externalName").is_empty() {
        new.warn("spec.externalName is ignored when spec.type is not \"ExternalName\"");
    }
    if spec.str("trafficDistribution") == "PreferClose" {
        new.warn("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    }
}
