use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use rustls::pki_types::{DnsName, ServerName};

/// The names under which clients reach a server: what its certificate must be valid for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServingNames {
    dns: BTreeSet<String>,
    ips: BTreeSet<IpAddr>,
}

impl ServingNames {
    /// `localhost` and the loopback addresses.
    pub fn loopback() -> Self {
        Self {
            dns: BTreeSet::from(["localhost".to_owned()]),
            ips: BTreeSet::from([Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
        }
    }

    /// Adds a host name. One that no certificate can carry (a host may be called `my_machine`) is left out:
    /// no client could verify it.
    #[must_use]
    pub fn with_dns(mut self, name: &str) -> Self {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if DnsName::try_from(name.as_str()).is_ok() {
            self.dns.insert(name);
        }
        self
    }

    /// Adds an address. The unspecified address is left out: it is where a server listens, never what a
    /// client dials.
    #[must_use]
    pub fn with_ip(mut self, address: IpAddr) -> Self {
        if !address.is_unspecified() {
            self.ips.insert(address);
        }
        self
    }

    /// All of them as a certificate lists them.
    pub(crate) fn to_strings(&self) -> Vec<String> {
        self.dns.iter().cloned().chain(self.ips.iter().map(IpAddr::to_string)).collect()
    }

    /// All of them as a client checks them.
    pub(crate) fn server_names(&self) -> impl Iterator<Item = ServerName<'static>> {
        let dns = self.dns.iter().filter_map(|name| DnsName::try_from(name.clone()).ok());
        dns.map(ServerName::DnsName).chain(self.ips.iter().map(|ip| ServerName::IpAddress((*ip).into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_no_client_can_use_are_left_out() {
        let names = ServingNames::loopback()
            .with_dns("bad name")
            .with_dns("")
            .with_ip(Ipv4Addr::UNSPECIFIED.into())
            .with_ip(Ipv6Addr::UNSPECIFIED.into());
        assert_eq!(names, ServingNames::loopback());
    }

    #[test]
    fn a_name_counts_once_however_it_is_spelled() {
        let names = ServingNames::loopback().with_dns("Node-1.example.").with_dns("node-1.example");
        assert_eq!(names.to_strings(), ["localhost", "node-1.example", "127.0.0.1", "::1"]);
        assert_eq!(names.server_names().count(), 4);
    }
}
